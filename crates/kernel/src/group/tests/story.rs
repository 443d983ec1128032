//! The words of a story: clients that ask, a log that can be slow, time, and another coordinator that takes over.

use wire::internal::{GroupMetadataValue, OffsetCommitValue, OffsetsKey};

use super::*;

/// One story.
pub(super) struct Story {
    bench: Bench,
    /// Who sent each request.
    clients: BTreeMap<RequestId, String>,
    /// How many ids each client was given.
    ids: BTreeMap<String, u32>,
}

impl Default for Story {
    fn default() -> Self {
        Self { bench: Bench::new(), clients: BTreeMap::new(), ids: BTreeMap::new() }
    }
}

/// The word after another.
fn after<'a>(words: &[&'a str], word: &str) -> Option<&'a str> {
    words.iter().position(|it| *it == word).map(|at| words[at + 1])
}

fn number<T: std::str::FromStr>(words: &[&str], word: &str) -> Option<T> {
    after(words, word).and_then(|it| it.parse().ok())
}

impl Story {
    pub(super) fn line(&mut self, line: &str) -> Vec<String> {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["max", "size", max] => {
                let max_size = max.parse().unwrap();
                self.bench = Bench::with(Settings { max_size, ..settings() });
            }
            ["retention", ms] => {
                let offsets_retention = Millis(ms.parse().unwrap());
                self.bench = Bench::with(Settings { offsets_retention, ..settings() });
            }
            ["offsets", "expire"] => drop(self.bench.step(Event::ExpireOffsets)),
            ["wait", ms] => self.bench.wait(ms.parse().unwrap()),
            ["appends", "wait"] => self.bench.holds_appends = true,
            ["appends", "succeed"] => self.end_appends(ErrorCode::None),
            ["appends", "fail", code] => {
                self.end_appends(ErrorCode::from_code(code.parse().unwrap()).unwrap());
            }
            ["coordinator", "moves"] => return self.moves(),
            ["describe"] => return self.describe(),
            ["fetch", partition] => return vec![self.fetch(partition, false)],
            ["fetch", partition, "stable"] => return vec![self.fetch(partition, true)],
            [client, verb, ..] => self.ask(client, verb, &words),
            _ => panic!("{line}?"),
        }
        self.consequences()
    }

    fn ask(&mut self, client: &str, verb: &str, words: &[&str]) {
        let request = self.bench.request();
        self.clients.insert(request, client.to_owned());
        let member_id = Str::from(after(words, "id").unwrap_or_default());
        let instance_id = after(words, "as").map(Str::from);
        let generation = number(words, "generation").unwrap_or(-1);
        let event = match verb {
            "joins" => Event::Join(request, self.join(client, member_id, instance_id, words)),
            "syncs" => {
                let given = words.iter().filter_map(|word| word.split_once('=')).collect::<Vec<_>>();
                let sync = sync_of("", generation);
                let assignments = assigned(&given);
                Event::Sync(request, SyncRequest { member_id, instance_id, assignments, ..sync })
            }
            "beats" => Event::Heartbeat(request, HeartbeatRequest { member_id, instance_id, generation }),
            "deletes" if words.contains(&"offsets") => {
                let partitions = words.iter().filter(|word| word.contains('-'));
                Event::DeleteOffsets(request, partitions.map(|it| partition_of(it)).collect())
            }
            "deletes" => Event::Delete(request),
            "leaves" => Event::Leave(request, vec![LeavingMember { member_id, instance_id }]),
            "commits" => {
                let metadata = "x".repeat(number(words, "metadata").unwrap_or(0));
                let offset = |word: &&str| {
                    let (partition, offset) = word.split_once(':')?;
                    Some((partition_of(partition), committing(offset.parse().ok()?, &metadata)))
                };
                let offsets = words.iter().filter_map(offset).collect();
                let producer = number(words, "producer").map(|id| Producer { id, epoch: 0 });
                let commit = commit_of("", generation, &[]);
                Event::Commit(request, CommitRequest { member_id, instance_id, producer, offsets, ..commit })
            }
            other => panic!("{other}?"),
        };
        self.bench.step(event);
    }

    fn join(&mut self, client: &str, id: Str, instance: Option<Str>, words: &[&str]) -> JoinRequest {
        let version = words.iter().find_map(|word| word.strip_prefix('v')?.parse::<i16>().ok()).unwrap_or(8);
        let name = instance.as_ref().map_or(client, Str::as_str).to_owned();
        let number_of_id = self.ids.entry(name.clone()).or_default();
        *number_of_id += u32::from(id.is_empty());
        let protocols = after(words, "knows").unwrap_or("range:t");
        let protocols = protocols.split(',').map(|text| {
            let (name, topics) = text.split_once(':').unwrap();
            protocol(name, &subscription(&topics.split('+').collect::<Vec<_>>()))
        });
        JoinRequest {
            member_id: id,
            instance_id: instance,
            session_timeout_ms: number(words, "session").unwrap_or(SESSION_MS),
            rebalance_timeout_ms: number(words, "rebalance").unwrap_or(REBALANCE_MS),
            protocol_type: Str::from(after(words, "type").unwrap_or(CONSUMER)),
            protocols: protocols.collect(),
            requires_known_member_id: version >= 4,
            supports_skipping_assignment: version >= 9,
            ..joining(&format!("{name}-{number_of_id}"))
        }
    }

    fn end_appends(&mut self, error: ErrorCode) {
        self.bench.holds_appends = false;
        while !self.bench.held.is_empty() {
            self.bench.end_append(error);
        }
    }

    /// The coordinator dies, and another one loads what is in the log.
    fn moves(&mut self) -> Vec<String> {
        let loaded = self.bench.reloaded();
        let Some(group) = loaded.into_iter().next() else { return vec!["no group".to_owned()] };
        let mut next = Bench::of(group);
        next.now_ms = self.bench.now_ms;
        next.requests = self.bench.requests;
        next.log.clone_from(&self.bench.log);
        next.markers.clone_from(&self.bench.markers);
        next.log_end = self.bench.log_end;
        self.bench = next;
        self.describe()
    }

    fn fetch(&self, partition: &str, stable: bool) -> String {
        let fetched = self.bench.group.fetch_offset(&partition_of(partition), stable);
        match fetched.error {
            ErrorCode::None => format!("offset {}", fetched.offset),
            error => error.name().to_owned(),
        }
    }

    fn describe(&self) -> Vec<String> {
        let described = self.bench.group.describe();
        let (state, protocol) = (described.state.name(), described.protocol);
        let mut lines = vec![format!("{state} generation {} {protocol}", self.bench.group.generation())];
        lines.extend(described.members.iter().map(|member| {
            let instance = member.instance_id.as_ref().map(|it| format!(" as {it}")).unwrap_or_default();
            format!("{}{instance} has {:?}", member.member_id, String::from_utf8_lossy(&member.assignment))
        }));
        lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
    }

    fn consequences(&mut self) -> Vec<String> {
        let trace = std::mem::take(&mut self.bench.trace);
        trace
            .iter()
            .filter_map(|(at_ms, command)| Some(format!("{at_ms}: {}", self.told(command)?)))
            .collect()
    }

    fn told(&self, command: &Command) -> Option<String> {
        Some(match command {
            Command::Answer { request, answer } => {
                format!("{} <- {}", self.clients[request], told_answer(answer))
            }
            Command::Append { batch, .. } | Command::AppendTombstones(batch) => {
                let records: Vec<_> = batch.records.iter().map(told_record).collect();
                format!("log: {}", records.join("; "))
            }
            Command::Forget => "the group may be dropped".to_owned(),
            Command::Note(note) => format!("{note}"),
        })
    }
}

fn partition_of(text: &str) -> TopicPartition {
    let (topic, partition) = text.rsplit_once('-').unwrap();
    tp(topic, partition.parse().unwrap())
}

fn told_answer(answer: &Answer) -> String {
    match answer {
        Answer::Join(joined) if joined.error.is_error() => {
            format!("{} {}", joined.error.name(), joined.member_id).trim_end().to_owned()
        }
        Answer::Join(joined) => {
            let members: Vec<_> = joined.members.iter().map(|it| it.member_id.as_str()).collect();
            let skip = if joined.skip_assignment { ", skip assignment" } else { "" };
            format!(
                "joined as {}, generation {}, {}, leader {}, members {members:?}{skip}",
                joined.member_id,
                joined.generation,
                joined.protocol_name.as_deref().unwrap_or("no protocol"),
                joined.leader
            )
        }
        Answer::Sync(sync) if sync.error.is_error() => sync.error.name().to_owned(),
        Answer::Sync(sync) => format!("assigned {:?}", String::from_utf8_lossy(&sync.assignment)),
        Answer::Heartbeat(error) | Answer::Delete(error) => error.name().to_owned(),
        Answer::Leave(Ok(codes)) => codes.iter().map(|it| it.name()).collect::<Vec<_>>().join(" "),
        Answer::Leave(Err(error)) => error.name().to_owned(),
        Answer::DeleteOffsets(Err(error)) => error.name().to_owned(),
        Answer::Commit(codes) | Answer::DeleteOffsets(Ok(codes)) => {
            let told = codes.iter().map(|(partition, code)| format!("{partition} {}", code.name()));
            told.collect::<Vec<_>>().join(", ")
        }
    }
}

fn told_record((key, value): &(Bytes, Option<Bytes>)) -> String {
    match OffsetsKey::decode(key.clone()).unwrap() {
        OffsetsKey::OffsetCommit { topic, partition, .. } => {
            let value = value.clone().map(|it| OffsetCommitValue::decode(it).unwrap().offset.to_string());
            format!("{topic}-{partition} {}", value.as_deref().unwrap_or("gone"))
        }
        OffsetsKey::GroupMetadata { .. } => match value {
            None => "the group is gone".to_owned(),
            Some(value) => {
                let value = GroupMetadataValue::decode(value.clone()).unwrap();
                let members: Vec<_> = value.members.iter().map(|it| it.member_id.as_str()).collect();
                let leader = value.leader.as_deref().unwrap_or("none").to_owned();
                format!("generation {}, leader {leader}, members {members:?}", value.generation)
            }
        },
        OffsetsKey::Unknown(version) => panic!("{version}"),
    }
}
