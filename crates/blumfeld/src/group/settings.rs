//! The properties of Kafka's consumers that concern groups.

use std::time::Duration;

use super::assign::Assignor;
use super::consumer::ConsumerSettings;
use super::member::MemberSettings;
use crate::cluster::fetcher::FetchSettings;
use crate::cluster::settings::{ClientProperties, invalid};
use crate::error::VerbError;

impl ConsumerSettings {
    /// Takes what concerns groups. `auto_commit` is the default of `enable.auto.commit`.
    ///
    /// # Errors
    /// If a value cannot be used.
    pub(crate) fn take(
        properties: &mut ClientProperties,
        group: String,
        fetch: FetchSettings,
        auto_commit: bool,
    ) -> Result<Self, VerbError> {
        if group.is_empty() {
            return Err(VerbError::Usage("the id of a group must not be empty".to_owned()));
        }
        if let Some(protocol) = properties.take("group.protocol")
            && !protocol.trim().eq_ignore_ascii_case("classic")
        {
            return Err(VerbError::Usage(format!(
                "group.protocol {protocol}: these tools take part in groups of the classic protocol only"
            )));
        }
        let session_timeout = properties.take_millis("session.timeout.ms", Duration::from_secs(45))?;
        let heartbeat = properties.take_millis("heartbeat.interval.ms", Duration::from_secs(3))?;
        if heartbeat >= session_timeout || heartbeat.is_zero() {
            return Err(VerbError::Usage(
                "heartbeat.interval.ms must lie between 0 and session.timeout.ms".to_owned(),
            ));
        }
        let assignors = properties.take("partition.assignment.strategy");
        let interval = properties.take_millis("auto.commit.interval.ms", Duration::from_secs(5))?;
        let instance = properties.take("group.instance.id");
        if instance.as_deref().is_some_and(str::is_empty) {
            return Err(invalid("group.instance.id", ""));
        }
        Ok(Self {
            member: MemberSettings {
                group,
                instance,
                session_timeout,
                rebalance_timeout: properties
                    .take_millis("max.poll.interval.ms", Duration::from_secs(300))?,
                assignors: Assignor::parse_list(assignors.as_deref().unwrap_or("range"))?,
            },
            heartbeat,
            auto_commit: properties.take_flag("enable.auto.commit", auto_commit).then_some(interval),
            metadata_age: properties.take_millis("metadata.max.age.ms", Duration::from_secs(300))?,
            fetch,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::settings::ConnectOptions;

    fn take(pairs: &[&str]) -> Result<ConsumerSettings, VerbError> {
        let options = ConnectOptions { bootstrap_server: "a:1".to_owned(), command_config: None };
        let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        let mut properties = options.properties(&pairs)?;
        let fetch = FetchSettings::take(&mut properties, "latest")?;
        ConsumerSettings::take(&mut properties, "g".to_owned(), fetch, true)
    }

    #[test]
    fn defaults_are_those_of_kafkas_consumers() {
        let settings = take(&[]).unwrap();
        assert_eq!(settings.member.session_timeout, Duration::from_secs(45));
        assert_eq!(settings.auto_commit, Some(Duration::from_secs(5)));
        assert_eq!(settings.member.assignors, [Assignor::Range]);
        assert_eq!(take(&["enable.auto.commit=false"]).unwrap().auto_commit, None);
    }

    #[test]
    fn what_cannot_be_honoured_is_refused() {
        for pair in [
            "group.protocol=consumer",
            "heartbeat.interval.ms=50000",
            "heartbeat.interval.ms=0",
            "partition.assignment.strategy=my.Own",
            "group.instance.id=",
        ] {
            assert!(matches!(take(&[pair]), Err(VerbError::Usage(_))), "{pair}");
        }
    }
}
