//! `blumfeld verifiable-consumer`: reads a topic as a member of a group, and tells as JSON what it is assigned, what it
//! has read and what it has committed, as kafka-verifiable-consumer does.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::{Value, json};
use wire::types::{Offset, TopicPartition};

use super::{asked_to_end, block_on, now_ms};
use crate::cluster::fetcher::{FetchSettings, Fetched};
use crate::cluster::settings::{ClientSettings, ConnectOptions};
use crate::cluster::{ClusterError, error_name};
use crate::error::VerbError;
use crate::group::{Consumer, ConsumerSettings, Event, Subscription};
use crate::output::{bytes_json, stdout, write_json};

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifiableConsumerOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    /// The topic
    #[arg(long)]
    topic: String,
    /// The group
    #[arg(long)]
    group_id: String,
    /// classic; other protocols are not known
    #[arg(long, default_value = "classic")]
    group_protocol: String,
    /// Accepted for compatibility; it concerns another protocol
    #[arg(long, hide = true)]
    group_remote_assignor: Option<String>,
    /// Makes this a static member
    #[arg(long)]
    group_instance_id: Option<String>,
    /// How many records; -1: until the process is ended
    #[arg(long, value_name = "N", default_value_t = -1, allow_hyphen_values = true)]
    max_messages: i64,
    /// Milliseconds after which a silent member is taken for dead
    #[arg(long, value_name = "MS", default_value_t = 30_000)]
    session_timeout: i32,
    /// Tell of each record
    #[arg(long)]
    verbose: bool,
    /// Commit from time to time instead of after each answer
    #[arg(long)]
    enable_autocommit: bool,
    /// Where to begin if the group has been nowhere: earliest, latest or none
    #[arg(long, default_value = "earliest", value_parser = ["earliest", "latest", "none"])]
    reset_policy: String,
    /// How partitions are shared: RangeAssignor or RoundRobinAssignor
    #[arg(long, default_value = "org.apache.kafka.clients.consumer.RangeAssignor")]
    assignment_strategy: String,
}

impl VerifiableConsumerOptions {
    /// The settings; an option wins over the property that it stands for.
    fn settings(&self) -> Result<(ClientSettings, ConsumerSettings), VerbError> {
        let mut properties = self.connect.properties(&[])?;
        for (key, value) in [
            ("group.protocol", self.group_protocol.clone()),
            ("session.timeout.ms", self.session_timeout.to_string()),
            ("auto.offset.reset", self.reset_policy.clone()),
            ("partition.assignment.strategy", self.assignment_strategy.clone()),
            ("enable.auto.commit", self.enable_autocommit.to_string()),
        ] {
            properties.take(key);
            properties.set_default(key, value);
        }
        if let Some(instance) = &self.group_instance_id {
            properties.take("group.instance.id");
            properties.set_default("group.instance.id", instance.as_str());
        }
        properties.take("group.id");
        let client = ClientSettings::take(&mut properties, "verifiable-consumer")?;
        let fetch = FetchSettings::take(&mut properties, "earliest")?;
        let settings = ConsumerSettings::take(&mut properties, self.group_id.clone(), fetch, false)?;
        properties.warn_rest();
        Ok((client, settings))
    }
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &VerifiableConsumerOptions) -> Result<(), VerbError> {
    let (client, settings) = options.settings()?;
    let servers = options.connect.servers()?;
    block_on(async {
        let end = asked_to_end()?;
        say(&json!({ "timestamp": now_ms(), "name": "startup_complete" }))?;
        let subscription = Subscription::Names([options.topic.clone()].into());
        let mut consumer = Consumer::open(servers, client, subscription, settings).await?;
        let mut left = u64::try_from(options.max_messages).unwrap_or(u64::MAX);
        while left > 0 && !*end.borrow() {
            match consumer.next().await? {
                Event::Assigned(partitions) => say(&moved("partitions_assigned", &partitions))?,
                Event::Revoked(partitions) => say(&moved("partitions_revoked", &partitions))?,
                Event::Records(records) if records.is_empty() => {}
                Event::Records(mut records) => {
                    let fetched = records.len();
                    records.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                    left = left.saturating_sub(u64::try_from(records.len()).unwrap_or(u64::MAX));
                    if records.len() < fetched {
                        consumer.stop_at(&ends(&records));
                    }
                    tell_records(&records, options.verbose)?;
                    if !options.enable_autocommit {
                        let result = consumer.commit().await;
                        say(&committed(&result))?;
                        result?;
                    }
                }
            }
        }
        let revoked = consumer.close().await?;
        say(&moved("partitions_revoked", &revoked))?;
        say(&json!({ "timestamp": now_ms(), "name": "shutdown_complete" }))
    })
}

/// One line of JSON, seen at once by whoever reads.
fn say(line: &Value) -> Result<(), VerbError> {
    let mut out = stdout();
    write_json(&mut out, line)?;
    Ok(out.flush()?)
}

fn moved(name: &str, partitions: &[TopicPartition]) -> Value {
    let one = |at: &TopicPartition| json!({ "topic": at.topic.as_str(), "partition": at.partition });
    let partitions: Vec<Value> = partitions.iter().map(one).collect();
    json!({ "timestamp": now_ms(), "name": name, "partitions": partitions })
}

/// The offsets behind the last records.
fn ends(records: &[Fetched]) -> BTreeMap<TopicPartition, Offset> {
    records.iter().map(|it| (it.partition.clone(), it.record.offset.plus(1))).collect()
}

fn tell_records(records: &[Fetched], verbose: bool) -> Result<(), VerbError> {
    let mut out = stdout();
    for it in records.iter().filter(|_| verbose) {
        write_json(
            &mut out,
            &json!({
                "timestamp": now_ms(),
                "name": "record_data",
                "key": it.record.key.as_deref().map(bytes_json),
                "value": it.record.value.as_deref().map(bytes_json),
                "topic": it.partition.topic.as_str(),
                "partition": it.partition.partition,
                "offset": it.record.offset.0,
            }),
        )?;
    }
    write_json(&mut out, &consumed(records))?;
    Ok(out.flush()?)
}

fn consumed(records: &[Fetched]) -> Value {
    let mut partitions: BTreeMap<&TopicPartition, (u64, i64, i64)> = BTreeMap::new();
    for it in records {
        let offset = it.record.offset.0;
        let entry = partitions.entry(&it.partition).or_insert((0, offset, offset));
        *entry = (entry.0 + 1, entry.1.min(offset), entry.2.max(offset));
    }
    let partition = |(at, (count, least, most)): (&TopicPartition, (u64, i64, i64))| {
        json!({
            "topic": at.topic.as_str(),
            "partition": at.partition,
            "count": count,
            "minOffset": least,
            "maxOffset": most,
        })
    };
    json!({
        "timestamp": now_ms(),
        "name": "records_consumed",
        "count": records.len(),
        "partitions": partitions.into_iter().map(partition).collect::<Vec<_>>(),
    })
}

fn committed(result: &Result<BTreeMap<TopicPartition, (Offset, i16)>, ClusterError>) -> Value {
    let (offsets, error) = match result {
        Ok(told) => {
            let refused = told.values().find(|(_, code)| *code != 0);
            let row = |(at, (offset, _)): (&TopicPartition, &(Offset, i16))| json!({ "topic": at.topic.as_str(), "partition": at.partition, "offset": offset.0 });
            (told.iter().map(row).collect(), refused.map(|(_, code)| error_name(*code)))
        }
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let mut line = json!({
        "timestamp": now_ms(),
        "name": "offsets_committed",
        "offsets": offsets,
        "success": error.is_none(),
    });
    if let (Some(error), Some(members)) = (error, line.as_object_mut()) {
        members.insert("error".to_owned(), Value::from(error));
    }
    line
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use wire::error_code::ErrorCode;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: VerifiableConsumerOptions,
    }

    fn settings(line: &str) -> Result<ConsumerSettings, VerbError> {
        let words =
            ["consumer", "--topic", "t", "--group-id", "g"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().options.settings().map(|(_, settings)| settings)
    }

    #[test]
    fn options_stand_for_properties() {
        let settings = settings("--session-timeout 6000 --group-instance-id i").unwrap();
        assert_eq!(settings.member.session_timeout.as_millis(), 6000);
        assert_eq!((settings.member.instance.as_deref(), settings.auto_commit), (Some("i"), None));
        assert!(self::settings("--group-protocol consumer").is_err());
        assert!(self::settings("--enable-autocommit").unwrap().auto_commit.is_some());
    }

    #[test]
    fn what_was_read_is_told_by_partition() {
        let records = [(0, 5), (1, 2), (0, 6)].map(|(index, offset)| Fetched::empty(index, offset));
        let line = consumed(&records);
        assert_eq!(line["count"], 3);
        let expected = json!({ "topic": "t", "partition": 0, "count": 2, "minOffset": 5, "maxOffset": 6 });
        assert_eq!(line["partitions"][0], expected);
        let told: Vec<i64> = ends(&records).into_values().map(|offset| offset.0).collect();
        assert_eq!(told, [7, 3]);
    }

    #[test]
    fn a_commit_that_was_refused_is_told_with_its_reason() {
        let at = TopicPartition::new("t", 0);
        let good = committed(&Ok(BTreeMap::from([(at.clone(), (Offset(5), 0))])));
        assert_eq!((&good["success"], &good["offsets"][0]["offset"]), (&json!(true), &json!(5)));
        assert!(good.get("error").is_none());
        let code = ErrorCode::RebalanceInProgress.code();
        let bad = committed(&Ok(BTreeMap::from([(at, (Offset(5), code))])));
        assert_eq!((&bad["success"], &bad["error"]), (&json!(false), &json!("REBALANCE_IN_PROGRESS")));
    }
}
