//! `blumfeld explain`: why a partition is as it is, in words. It asks the pages of one broker or of several
//! (`blumfeld.http.address`) and tells what each knows: its replica, what happened to it and why, and what it did as
//! controller.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use jiff::Timestamp;
use kernel::topic_name;
use serde_json::Value;

use crate::error::VerbError;

/// How long a broker may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// A longer answer is not one of a broker's.
const MAX_ANSWER_BYTES: u64 = 16 << 20;

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainOptions {
    /// The partition, as its directory is called
    #[arg(value_name = "TOPIC-PARTITION")]
    partition: String,
    /// Where the brokers' pages are (blumfeld.http.address); each tells what it knows
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', default_value = "127.0.0.1:9644")]
    http: Vec<String>,
    /// Print the answers as JSON, one a line
    #[arg(long)]
    json: bool,
}

/// Asks and tells.
///
/// # Errors
/// If the partition is none, or no broker knows it.
pub(crate) fn run(options: &ExplainOptions) -> Result<(), VerbError> {
    let (topic, partition) = parse(&options.partition)?;
    let mut out = io::stdout().lock();
    let mut known = false;
    let mut failed = Vec::new();
    for address in &options.http {
        match ask(address, topic, partition) {
            Ok(None) => {}
            Ok(Some(text)) => {
                known = true;
                if options.json { writeln!(out, "{text}")? } else { tell(&mut out, address, &text)? }
            }
            Err(error) => failed.push(format!("{address}: {error}")),
        }
    }
    if known {
        failed.iter().for_each(|error| eprintln!("{error}"));
        Ok(())
    } else if failed.is_empty() {
        Err(VerbError::Failed(format!("no broker that was asked knows {}", options.partition)))
    } else {
        Err(VerbError::Failed(failed.join("; ")))
    }
}

fn parse(text: &str) -> Result<(&str, i32), VerbError> {
    let none =
        || VerbError::Usage(format!("{text} is no partition: it must be a topic, a dash and a number"));
    let (topic, partition) = text.rsplit_once('-').ok_or_else(none)?;
    topic_name::check(topic).map_err(|_| none())?;
    Ok((topic, partition.parse().ok().filter(|it| *it >= 0).ok_or_else(none)?))
}

/// The answer of one page; `None` if the broker knows nothing of the partition.
fn ask(address: &str, topic: &str, partition: i32) -> io::Result<Option<String>> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for resolved in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&resolved, PATIENCE) {
            Ok(stream) => return ask_over(stream, topic, partition),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn ask_over(mut stream: TcpStream, topic: &str, partition: i32) -> io::Result<Option<String>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // The characters of a topic's name mean nothing else in an address. With 1.0 the answer ends with the connection.
    // One write: a broker must not have to wait for the rest of a line.
    let request = format!("GET /explain?topic={topic}&partition={partition} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER_BYTES).read_to_string(&mut answer)?;
    let no_page = || io::Error::new(io::ErrorKind::InvalidData, "this is not the page of a broker");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(no_page)?;
    match head.split_ascii_whitespace().nth(1) {
        Some("200") => Ok(Some(body.to_owned())),
        Some("404") => Ok(None),
        Some("503") => Err(io::Error::other("the broker is starting")),
        _ => Err(no_page()),
    }
}

/// Tells an answer in words.
fn tell(out: &mut impl Write, address: &str, text: &str) -> io::Result<()> {
    let Ok(told) = serde_json::from_str::<Value>(text) else { return writeln!(out, "{text}") };
    let told = &told;
    writeln!(
        out,
        "{}-{} at broker {} ({address}): {}",
        told_of(told, "topic"),
        told_of(told, "partition"),
        told_of(told, "broker"),
        told_of(told, "state")
    )?;
    writeln!(
        out,
        "  leader {}, leader epoch {}, partition epoch {}, replicas {}, ISR {}",
        told_of(told, "leader"),
        told_of(told, "leaderEpoch"),
        told_of(told, "partitionEpoch"),
        told_of(told, "replicas"),
        told_of(told, "isr")
    )?;
    let log = at(told, "log");
    if log.is_object() {
        writeln!(
            out,
            "  here a {}: log start {}, high watermark {}, log end {}, {} bytes",
            told_of(log, "role"),
            told_of(log, "logStartOffset"),
            told_of(log, "highWatermark"),
            told_of(log, "logEndOffset"),
            told_of(log, "sizeBytes")
        )?;
        if !at(log, "loss").is_null() {
            writeln!(out, "  LOSS: the log {}", told_of(log, "loss"))?;
        }
    }
    for (title, history) in [
        ("What happened to replicas that were removed here", at(told, "removed")),
        ("What happened to the replica here", at(log, "history")),
        ("What this broker did as controller", at(told, "history")),
    ] {
        let entries = history.as_array().map(Vec::as_slice).unwrap_or_default();
        if !entries.is_empty() {
            writeln!(out, "  {title}:")?;
        }
        entries.iter().try_for_each(|entry| tell_entry(out, entry))?;
    }
    Ok(())
}

fn tell_entry(out: &mut impl Write, entry: &Value) -> io::Result<()> {
    let time = at(entry, "timestampMs").as_i64().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let time = time.map_or_else(|| "-".to_owned(), |time| time.to_string());
    writeln!(out, "    {time}  event {}: {}", told_of(entry, "event"), told_of(entry, "what"))?;
    write!(out, "      because {}", told_of(entry, "cause"))?;
    if !at(entry, "causedByEvent").is_null() {
        write!(out, ", after event {}", told_of(entry, "causedByEvent"))?;
    }
    if !at(entry, "controllerEpoch").is_null() {
        write!(out, "; controller epoch {}", told_of(entry, "controllerEpoch"))?;
    }
    for (name, before, after) in [
        ("leader epoch", "leaderEpochBefore", "leaderEpoch"),
        ("partition epoch", "partitionEpochBefore", "partitionEpoch"),
    ] {
        if at(entry, before) != at(entry, after) {
            write!(out, "; {name} {} -> {}", told_of(entry, before), told_of(entry, after))?;
        }
    }
    if !at(entry, "logEndOffset").is_null() {
        let [start, high, end] =
            ["logStartOffset", "highWatermark", "logEndOffset"].map(|it| told_of(entry, it));
        write!(out, "; log from {start} to {end}, high watermark {high}")?;
    }
    writeln!(out)
}

/// What an object tells of itself under a key, as people read it.
fn told_of(object: &Value, key: &str) -> String {
    word(at(object, key))
}

/// A member of an object; null if there is none.
fn at<'a>(object: &'a Value, key: &str) -> &'a Value {
    object.get(key).unwrap_or(&Value::Null)
}

/// A value as people read it.
fn word(value: &Value) -> String {
    match value {
        Value::Null => "unknown".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(word).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use serde_json::json;

    use super::*;

    /// A page that answers once.
    fn page(status: &'static str, body: String) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // To its last byte, or closing the connection would reset it.
            let mut request = [0; b"GET /explain?topic=a-b&partition=3 HTTP/1.0\r\n\r\n".len()];
            stream.read_exact(&mut request).unwrap();
            assert_eq!(&request, b"GET /explain?topic=a-b&partition=3 HTTP/1.0\r\n\r\n");
            write!(stream, "HTTP/1.0 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        });
        address
    }

    #[test]
    fn a_partition_is_a_topic_a_dash_and_a_number() {
        assert_eq!(parse("a-b-3").unwrap(), ("a-b", 3));
        for wrong in ["t", "t-", "-1", "t--1x", "t-x", "a b-1", "a&b-1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_page_is_asked_and_its_answer_read_by_its_status() {
        assert_eq!(ask(&page("200 OK", "{}".into()), "a-b", 3).unwrap().as_deref(), Some("{}"));
        assert_eq!(ask(&page("404 Not Found", String::new()), "a-b", 3).unwrap(), None);
        let starting = ask(&page("503 Service Unavailable", String::new()), "a-b", 3).unwrap_err();
        assert_eq!(starting.to_string(), "the broker is starting");
        assert!(ask(&page("418 Teapot", String::new()), "a-b", 3).is_err());
    }

    #[test]
    fn an_answer_is_told_in_words() {
        let happened = json!({
            "timestampMs": 1_000, "event": 7, "cause": "leader 1 answered", "causedByEvent": 5,
            "leaderEpochBefore": 2, "leaderEpoch": 2, "partitionEpochBefore": 1, "partitionEpoch": 1,
            "logStartOffset": 0, "highWatermark": 1, "logEndOffset": 1, "what": "truncated from 2 to 1",
        });
        let did = json!({
            "timestampMs": 1_000, "event": 3, "cause": "broker 2 is gone", "causedByEvent": null,
            "controllerEpoch": 4, "what": "t-0: leader 2 -> leader 1",
        });
        let answer = json!({
            "broker": 0, "topic": "t", "partition": 0, "leader": 1, "leaderEpoch": 2, "partitionEpoch": 1,
            "replicas": [0, 1], "isr": [1], "state": "served",
            "log": {
                "role": "follower", "logStartOffset": 0, "highWatermark": 1, "logEndOffset": 1, "sizeBytes": 70,
                "loss": "came back ending at 0", "history": [happened],
            },
            "removed": [], "history": [did],
        });
        let mut out = Vec::new();
        tell(&mut out, "h:1", &answer.to_string()).unwrap();
        expect_test::expect![[r"
            t-0 at broker 0 (h:1): served
              leader 1, leader epoch 2, partition epoch 1, replicas 0 1, ISR 1
              here a follower: log start 0, high watermark 1, log end 1, 70 bytes
              LOSS: the log came back ending at 0
              What happened to the replica here:
                1970-01-01T00:00:01Z  event 7: truncated from 2 to 1
                  because leader 1 answered, after event 5; log from 0 to 1, high watermark 1
              What this broker did as controller:
                1970-01-01T00:00:01Z  event 3: t-0: leader 2 -> leader 1
                  because broker 2 is gone; controller epoch 4
        "]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }
}
