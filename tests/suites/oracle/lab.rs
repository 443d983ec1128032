//! The two brokers side by side: the same request to both, and what differs between the answers.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use interop::broker::{Broker, Kind as Program, Options};
use interop::raw::{Answer, Connection};
use interop::wait;
use wire::api::ApiKey;
use wire::batch::{Limits, Record, TimestampType, batches};
use wire::header::{RequestHeader, decode_response_header, encode_request_header};
use wire::messages::{
    self, AnyMessage, FetchResponse, InitProducerIdRequest, Kind, Message, MetadataRequest, Request,
    decode_any,
};
use wire::types::{Millis, TopicId};
use wire::{Decoder, Encoder, Str};

use crate::tree::Node;

const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// How long a real Kafka is waited for where it is known to stay silent.
const SILENCE: Duration = Duration::from_secs(4);
const CLIENT: &str = "interop";

/// One of the two brokers, with what a test remembers of it.
#[derive(Debug)]
pub struct Side {
    broker: Broker,
    connection: Option<Connection>,
    patience: Duration,
    ids: BTreeMap<String, TopicId>,
    numbers: BTreeMap<String, i64>,
    texts: BTreeMap<String, Str>,
    aside: BTreeMap<String, Connection>,
}

impl Side {
    fn start(program: Program, options: Options) -> Result<Self> {
        let broker = Broker::start(program, options)?;
        Ok(Self {
            broker,
            connection: None,
            patience: ANSWER_LIMIT,
            ids: BTreeMap::new(),
            numbers: BTreeMap::new(),
            texts: BTreeMap::new(),
            aside: BTreeMap::new(),
        })
    }

    /// The id that this broker gave a topic; the absent id if it has none.
    pub fn id(&self, topic: &str) -> TopicId {
        self.ids.get(topic).copied().unwrap_or_default()
    }

    /// A number that was remembered; 0 if none was.
    pub fn number(&self, name: &str) -> i64 {
        self.numbers.get(name).copied().unwrap_or_default()
    }

    /// Remembers a number that only this broker knows: a producer id, a session.
    pub fn remember(&mut self, name: &str, number: i64) {
        self.numbers.insert(name.to_owned(), number);
    }

    /// A text that was remembered: the id of a member.
    pub fn text(&self, name: &str) -> Option<Str> {
        self.texts.get(name).cloned()
    }

    /// Remembers a text that only this broker knows; answers show it by this name.
    pub fn remember_text(&mut self, name: &str, text: Str) {
        self.texts.insert(name.to_owned(), text);
    }

    /// The folder of its logs.
    pub fn data(&self) -> Str {
        Str::from(&*self.broker.data().to_string_lossy())
    }

    /// Asks until the broker gives out producer ids.
    pub fn settle_producer_ids(&mut self, request: &InitProducerIdRequest) -> Result<()> {
        let request = frame(1, 1, request)?;
        wait::until("a producer id", ANSWER_LIMIT, || {
            let Answer::Frame(bytes) = self.exchange(&request, false)? else { bail!("no answer") };
            let mut src = Decoder::new(bytes);
            decode_response_header(&mut src, 0)?;
            let response = messages::InitProducerIdResponse::decode(&mut src, 1)?;
            ensure!([0, 14, 15].contains(&response.error_code), "{}: {response:?}", self.broker.kind());
            Ok((response.error_code == 0).then_some(()))
        })
    }

    fn exchange(&mut self, frame: &[u8], probe: bool) -> Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.broker.bootstrap())?,
        };
        connection.set_answer_limit(self.patience)?;
        let mut sent = connection.send(frame);
        if probe {
            sent = sent.and_then(|()| connection.send(&probe_frame()?));
        }
        if sent.is_err() {
            return Ok(Answer::Closed);
        }
        let answer = connection.receive()?;
        if matches!(answer, Answer::Frame(_)) {
            self.connection = Some(connection);
        }
        Ok(answer)
    }

    /// What stands in for a value that may differ between any two brokers.
    fn mask(&self, field: &str, value: &str) -> String {
        let some = |what: &str| match value {
            "null" | "-1" | "0" | "\"\"" => value.to_owned(),
            _ => format!("<{what}>"),
        };
        match field {
            "error_message" | "batch_index_error_message" => some("text"),
            "cluster_id" => some("cluster"),
            "session_id" => some("session"),
            "producer_id" => some("producer"),
            "member_id" | "leader" if value.len() > UUID_LENGTH => self
                .texts
                .iter()
                .find_map(|(name, text)| {
                    (format!("{:?}", text.as_str()) == value).then(|| format!("<{name}>"))
                })
                .unwrap_or_else(|| "<a member>".to_owned()),
            "log_append_time_ms" => some("time"),
            "total_bytes" | "usable_bytes" => some("bytes"),
            "timestamp" if value.parse::<i64>().is_ok_and(|time| time > NOW && time < i64::MAX) => {
                "<time>".to_owned()
            }
            "port" if format!("127.0.0.1:{value}") == self.broker.bootstrap() => "<port>".to_owned(),
            "log_dir" if value == format!("{:?}", self.data().as_str()) => "<dir>".to_owned(),
            "topic_id" => self
                .ids
                .iter()
                .find_map(|(name, id)| (format!("{id:?}") == value).then(|| format!("<id of {name}>")))
                .unwrap_or_else(|| {
                    if value == format!("{:?}", TopicId::default()) { "<no id>" } else { "<an id>" }
                        .to_owned()
                }),
            _ => value.to_owned(),
        }
    }
}

fn probe_frame() -> Result<Bytes> {
    frame(0, PROBE, &messages::ApiVersionsRequest::default())
}

/// Later than any time that a test writes, but for those it writes on purpose.
const NOW: i64 = 1_700_100_000_000;

/// Letters of a UUID; the id of a member ends with one.
const UUID_LENGTH: usize = 36;

const PROBE: i32 = 0x7072_6f62;

/// Header and body of a request.
pub fn frame<R: Request>(version: i16, correlation_id: i32, request: &R) -> Result<Bytes> {
    let mut dst = Encoder::new();
    put_header(&mut dst, R::API_KEY, version, correlation_id)?;
    request.encode(&mut dst, version).with_context(|| format!("{} v{version}", R::NAME))?;
    Ok(dst.into_bytes())
}

/// A header for any key and version, to be followed by anything.
pub fn put_header(dst: &mut Encoder, api_key: i16, api_version: i16, correlation_id: i32) -> Result<()> {
    let client_id = Some(Str::from(CLIENT));
    let header = RequestHeader { api_key, api_version, correlation_id, client_id };
    Ok(encode_request_header(dst, &header)?)
}

/// A field that the two brokers answered differently.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The case it came up in.
    pub case: String,
    /// The request's key.
    pub key: i16,
    /// The request's version.
    pub version: i16,
    /// The field.
    pub path: String,
    /// What the real Kafka says.
    pub kafka: String,
    /// What Blumfeld says.
    pub blumfeld: String,
}

/// Both brokers, and everything that differed so far.
#[derive(Debug)]
pub struct Lab {
    /// The real one.
    pub kafka: Side,
    /// The one under test.
    pub blumfeld: Side,
    /// What differed.
    pub differences: Vec<Difference>,
    /// How many answers were compared, by key and version.
    pub compared: BTreeMap<(i16, i16), usize>,
    /// What Kafka left without an answer, and is not known to.
    pub unanswered_by_kafka: Vec<String>,
    /// What Blumfeld left without one, whatever Kafka did.
    pub unanswered_by_blumfeld: Vec<String>,
}

impl Lab {
    /// Starts both with the same properties.
    pub fn start(properties: &[(&str, &str)]) -> Result<Self> {
        let options = Options::with(properties);
        let kafka = Side::start(Program::Kafka, options.clone())?;
        let blumfeld = Side::start(Program::Blumfeld, options)?;
        Ok(Self {
            kafka,
            blumfeld,
            differences: Vec::new(),
            compared: BTreeMap::new(),
            unanswered_by_kafka: Vec::new(),
            unanswered_by_blumfeld: Vec::new(),
        })
    }

    /// Sends a request in each of `versions` to both.
    pub fn ask<R: Request>(
        &mut self,
        case: &str,
        versions: RangeInclusive<i16>,
        build: impl Fn(&Side, i16) -> R,
    ) -> Result<()> {
        for version in versions {
            self.once(case, version, |side| build(side, version))?;
        }
        Ok(())
    }

    /// Sends one request to both; gives back both answers, the real Kafka's first.
    pub fn once<R: Request>(
        &mut self,
        case: &str,
        version: i16,
        build: impl Fn(&Side) -> R,
    ) -> Result<[Option<R::Response>; 2]> {
        let answers =
            self.raw(case, R::API_KEY, version, |side| frame(version, 77, &build(side)).map(|f| (f, false)))?;
        Ok(answers
            .map(|answer| answer.and_then(|message| message.as_any().downcast_ref::<R::Response>().cloned())))
    }

    /// Asks both, each by itself, until they answer as they should; nothing is compared.
    pub fn until<R: Request>(
        &mut self,
        what: &str,
        version: i16,
        request: &R,
        is_right: impl Fn(&R::Response) -> bool,
    ) -> Result<()> {
        let request = frame(version, 1, request)?;
        let key = ApiKey::from_code(R::API_KEY).context("a key")?;
        for side in [&mut self.kafka, &mut self.blumfeld] {
            wait::until(what, ANSWER_LIMIT, || {
                let Answer::Frame(bytes) = side.exchange(&request, false)? else { bail!("no answer") };
                let mut src = Decoder::new(bytes);
                decode_response_header(&mut src, key.response_header_version(version))?;
                Ok(is_right(&R::Response::decode(&mut src, version)?).then_some(()))
            })?;
        }
        Ok(())
    }

    /// Sends a request to both that is answered later, over a connection of its own.
    pub fn send_aside<R: Request>(
        &mut self,
        name: &str,
        version: i16,
        build: impl Fn(&Side) -> R,
    ) -> Result<()> {
        for side in [&mut self.kafka, &mut self.blumfeld] {
            let mut connection = Connection::open(&side.broker.bootstrap())?;
            connection.set_answer_limit(ANSWER_LIMIT)?;
            connection.send(&frame(version, 77, &build(side))?)?;
            side.aside.insert(name.to_owned(), connection);
        }
        Ok(())
    }

    /// Compares the answers to what was sent aside; gives back both, the real Kafka's first.
    pub fn answer_aside<R: Request>(
        &mut self,
        case: &str,
        name: &str,
        version: i16,
    ) -> Result<[Option<R::Response>; 2]> {
        let mut answers = Vec::new();
        for side in [&mut self.kafka, &mut self.blumfeld] {
            let mut connection = side.aside.remove(name).context("nothing was sent aside")?;
            answers.push(connection.receive()?);
        }
        let messages = self.compare(case, R::API_KEY, version, &answers)?;
        Ok(messages
            .map(|answer| answer.and_then(|message| message.as_any().downcast_ref::<R::Response>().cloned())))
    }

    /// Sends one request that may have no answer at all; a second one right behind it shows that.
    pub fn unanswered<R: Request>(
        &mut self,
        case: &str,
        version: i16,
        build: impl Fn(&Side) -> R,
    ) -> Result<()> {
        self.raw(case, R::API_KEY, version, |side| frame(version, 77, &build(side)).map(|f| (f, true)))?;
        Ok(())
    }

    /// Asks what a real Kafka is known to leave without an answer.
    pub fn silent_kafka(&mut self, ask: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.kafka.patience = SILENCE;
        let asked = ask(self);
        self.kafka.patience = ANSWER_LIMIT;
        asked
    }

    /// Sends a frame to both and compares the answers.
    pub fn raw(
        &mut self,
        case: &str,
        key: i16,
        version: i16,
        build: impl Fn(&Side) -> Result<(Bytes, bool)>,
    ) -> Result<[Option<Box<dyn AnyMessage>>; 2]> {
        let mut answers = Vec::new();
        for side in [&mut self.kafka, &mut self.blumfeld] {
            let (frame, probe) = build(side).with_context(|| case.to_owned())?;
            let answer = side
                .exchange(&frame, probe)
                .with_context(|| format!("{case}: key {key} v{version} to {}", side.broker.kind()))?;
            answers.push(answer);
        }
        self.compare(case, key, version, &answers)
    }

    fn compare(
        &mut self,
        case: &str,
        key: i16,
        version: i16,
        answers: &[Answer],
    ) -> Result<[Option<Box<dyn AnyMessage>>; 2]> {
        let silences = [
            (&self.kafka, &mut self.unanswered_by_kafka),
            (&self.blumfeld, &mut self.unanswered_by_blumfeld),
        ];
        for ((side, silent), answer) in silences.into_iter().zip(answers) {
            if *answer == Answer::Silence && side.patience == ANSWER_LIMIT {
                silent.push(format!("key {key} v{version} {case:?}"));
            }
        }
        let mut seen = Vec::new();
        let mut messages = Vec::new();
        for (side, answer) in [&self.kafka, &self.blumfeld].into_iter().zip(answers) {
            let (fields, message) = read_answer(side, key, version, answer)
                .with_context(|| format!("{case}: key {key} v{version} from {}", side.broker.kind()))?;
            seen.push(fields);
            messages.push(message);
        }
        *self.compared.entry((key, version)).or_default() += 1;
        let [kafka, blumfeld] = seen.try_into().map_err(|_| anyhow::anyhow!("two sides"))?;
        self.differences.extend(differ(case, key, version, &kafka, &blumfeld));
        messages.try_into().map_err(|_| anyhow::anyhow!("two sides"))
    }

    /// Creates a topic on both, and learns its ids.
    pub fn create_topic(&mut self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> Result<()> {
        let request = crate::requests::create_topic(name, partitions, configs);
        self.once(&format!("setup: create {name}"), 7, |_| request.clone())?;
        self.learn_ids()
    }

    /// Asks both for the ids of their topics.
    pub fn learn_ids(&mut self) -> Result<()> {
        for side in [&mut self.kafka, &mut self.blumfeld] {
            let request = frame(12, 1, &MetadataRequest { topics: None, ..MetadataRequest::default() })?;
            let Answer::Frame(bytes) = side.exchange(&request, false)? else { bail!("no metadata") };
            let mut src = Decoder::new(bytes);
            decode_response_header(&mut src, 1)?;
            let response = messages::MetadataResponse::decode(&mut src, 12)?;
            for topic in response.topics {
                side.ids.insert(topic.name.unwrap_or_default().to_string(), topic.topic_id);
            }
        }
        Ok(())
    }
}

type Fields = BTreeMap<String, String>;

fn read_answer(
    side: &Side,
    key: i16,
    version: i16,
    answer: &Answer,
) -> Result<(Fields, Option<Box<dyn AnyMessage>>)> {
    let word = |word: &str| (Fields::from([("answer".to_owned(), word.to_owned())]), None);
    let bytes = match answer {
        Answer::Closed => return Ok(word("connection closed")),
        Answer::Silence => return Ok(word("silence")),
        Answer::Frame(bytes) => bytes.clone(),
    };
    if bytes.get(..4) == Some(&PROBE.to_be_bytes()) {
        return Ok(word("none, and the next request is answered"));
    }
    let api = ApiKey::from_code(key).context("an answer to an unknown key")?;
    // What is refused as too new is answered in the oldest version.
    let version = if api == ApiKey::ApiVersions && !api.supports(version) { 0 } else { version };
    let mut src = Decoder::new(bytes);
    decode_response_header(&mut src, api.response_header_version(version))?;
    let message = decode_any(key, version, Kind::Response, &mut src)?;
    let mut fields = match message.as_any().downcast_ref::<FetchResponse>() {
        Some(fetched) => Node::parse(&format!("{:?}", readable(fetched.clone())))?,
        None => Node::parse(&format!("{message:?}"))?,
    }
    .flatten(&|field, value| side.mask(field, value));
    fields.insert("answer".to_owned(), "a response".to_owned());
    fields.insert("bytes behind the response".to_owned(), src.remaining().to_string());
    Ok((fields, Some(message)))
}

/// The same response with records as text: codecs compress in many ways, the records are what counts.
fn readable(mut response: FetchResponse) -> FetchResponse {
    for partition in response.responses.iter_mut().flat_map(|topic| topic.partitions.iter_mut()) {
        // Null and empty are the same to every client.
        partition.records =
            Some(Bytes::from(describe_records(&partition.records.take().unwrap_or_default())));
    }
    response
}

fn describe_records(bytes: &Bytes) -> String {
    let mut text = String::new();
    let mut all = batches(bytes.clone());
    for batch in all.by_ref() {
        let Ok(batch) = batch else {
            text.push_str("| what is no batch");
            break;
        };
        let mut header = batch.header;
        let crc = batch.verify_crc().is_ok();
        (header.crc, header.batch_length) = (0, 0);
        let appended = header.timestamp_type() == TimestampType::LogAppendTime;
        if appended {
            header.max_timestamp = Millis(0);
        }
        let records: Vec<String> = batch
            .records(Limits::default())
            .map(|record| match record {
                Ok(record) if appended => format!("{:?}", Record { timestamp: Millis(0), ..record }),
                other => format!("{other:?}"),
            })
            .collect();
        text.push_str(&format!("| {header:?} crc {crc} {}", records.join(" ")));
    }
    if all.position() < bytes.len() {
        text.push_str("| part of a batch");
    }
    text
}

fn differ(case: &str, key: i16, version: i16, kafka: &Fields, blumfeld: &Fields) -> Vec<Difference> {
    let mut paths: Vec<&String> = kafka.keys().chain(blumfeld.keys()).collect();
    paths.sort();
    paths.dedup();
    // When only one of them answers, its fields say nothing more.
    if kafka.get("answer") != blumfeld.get("answer") {
        paths.retain(|path| *path == "answer");
    }
    let absent = || "(absent)".to_owned();
    let pairs = paths.into_iter().map(|path| {
        (
            path,
            kafka.get(path).cloned().unwrap_or_else(absent),
            blumfeld.get(path).cloned().unwrap_or_else(absent),
        )
    });
    pairs
        .filter(|(_, kafka, blumfeld)| kafka != blumfeld)
        .map(|(path, kafka, blumfeld)| Difference {
            case: case.to_owned(),
            key,
            version,
            path: path.clone(),
            kafka,
            blumfeld,
        })
        .collect()
}
