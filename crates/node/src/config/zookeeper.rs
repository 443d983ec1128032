//! The keys of the cluster's store: where the ensemble is and how a session with it is kept. What Blumfeld does not have
//! there yet is refused, since a broker without it would do something less safe than what was asked for.

use std::time::Duration;

use metadata::zookeeper::ConnectString;

use super::broker_values::BrokerValues;

/// A broker's part in a cluster that keeps its state in ZooKeeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZooKeeperConfig {
    /// `zookeeper.connect`: the servers and the chroot.
    pub connect: ConnectString,
    /// `zookeeper.session.timeout.ms`; the ensemble has limits of its own.
    pub session_timeout: Duration,
    /// `zookeeper.connection.timeout.ms`, else the session timeout: how long the start waits for a session.
    pub connection_timeout: Duration,
    /// `zookeeper.max.in.flight.requests`.
    pub max_in_flight: usize,
}

impl ZooKeeperConfig {
    /// Reads the keys; `None` without `zookeeper.connect`, when the others have no effect.
    pub(super) fn read(values: &BrokerValues) -> Result<Option<Self>, String> {
        let key = "zookeeper.connect";
        let Some(text) = values.text(key) else { return Ok(None) };
        let connect = text.parse().map_err(|error| format!("{key}={text}: {error}"))?;
        refuse(values, "zookeeper.set.acl", "access lists of znodes are not available")?;
        refuse(values, "zookeeper.ssl.client.enable", "TLS to ZooKeeper is not available")?;
        let session = "zookeeper.session.timeout.ms";
        let connection = "zookeeper.connection.timeout.ms";
        let connection = if values.integer(connection).is_some() { connection } else { session };
        Ok(Some(Self {
            connect,
            session_timeout: duration(values, session)?,
            connection_timeout: duration(values, connection)?,
            max_in_flight: values
                .integer("zookeeper.max.in.flight.requests")
                .and_then(|count| usize::try_from(count).ok())
                .unwrap_or(1),
        }))
    }
}

fn refuse(values: &BrokerValues, key: &str, why: &str) -> Result<(), String> {
    if values.boolean(key) { Err(format!("{key}=true: {why} yet; it must be false")) } else { Ok(()) }
}

fn duration(values: &BrokerValues, key: &str) -> Result<Duration, String> {
    let ms = values.integer(key).unwrap_or_default();
    let positive = u64::try_from(ms).ok().filter(|ms| *ms > 0);
    positive.map(Duration::from_millis).ok_or_else(|| format!("{key}={ms}: it must be at least 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<Option<ZooKeeperConfig>, String> {
        let given = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ZooKeeperConfig::read(&BrokerValues::parse(given).unwrap())
    }

    fn refused(settings: &[(&str, &str)], line: &str) {
        let settings: Vec<_> = [("zookeeper.connect", "h:1")].iter().chain(settings).copied().collect();
        assert_eq!(read(&settings), Err(line.to_owned()));
    }

    #[test]
    fn the_connection_timeout_is_that_of_the_session_unless_it_is_given() {
        let config = read(&[("zookeeper.connect", "a,b:7/kafka")]).unwrap().unwrap();
        assert_eq!(config.connect.to_string(), "a:2181,b:7/kafka");
        assert_eq!((config.session_timeout, config.connection_timeout), (SECONDS_18, SECONDS_18));
        assert_eq!(config.max_in_flight, 10);
        let given = [("zookeeper.connect", "a"), ("zookeeper.connection.timeout.ms", "7")];
        assert_eq!(read(&given).unwrap().unwrap().connection_timeout, Duration::from_millis(7));
    }

    const SECONDS_18: Duration = Duration::from_secs(18);

    #[test]
    fn without_an_ensemble_the_other_keys_have_no_effect() {
        assert_eq!(read(&[("zookeeper.set.acl", "true"), ("zookeeper.connect", " ")]), Ok(None));
    }

    #[test]
    fn what_cannot_be_had_is_one_line() {
        assert_eq!(
            read(&[("zookeeper.connect", "h:x")]),
            Err("zookeeper.connect=h:x: \"h:x\" is no host:port".to_owned())
        );
        refused(
            &[("zookeeper.set.acl", "true")],
            "zookeeper.set.acl=true: access lists of znodes are not available yet; it must be false",
        );
        refused(
            &[("zookeeper.ssl.client.enable", "true")],
            "zookeeper.ssl.client.enable=true: TLS to ZooKeeper is not available yet; it must be false",
        );
        refused(
            &[("zookeeper.session.timeout.ms", "0")],
            "zookeeper.session.timeout.ms=0: it must be at least 1",
        );
    }
}
