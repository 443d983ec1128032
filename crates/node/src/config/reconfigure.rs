//! What a running broker does not become, though a new one could be started so: each rule compares the configuration in
//! force with the one that is wanted (KIP-226).

use super::broker_values::BrokerValues;
use super::kafka_config::KafkaConfig;

/// Counts of threads, which move by no more than a factor of two at a time.
const THREADS: [&str; 5] = [
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "log.cleaner.threads",
];

/// Checks whether a broker that runs with `now` can go on with `next`.
///
/// # Errors
/// Why it cannot, in one line.
pub(super) fn check(now: &KafkaConfig, next: &KafkaConfig) -> Result<(), String> {
    let number = |config: &KafkaConfig, key: &str| config.values().integer(key).unwrap_or_default();
    for key in THREADS {
        check_threads(key, number(now, key), number(next, key))?;
    }
    check_listeners(now, next)?;
    check_local_retention(now.values(), next.values())
}

fn check_threads(key: &str, now: i64, next: i64) -> Result<(), String> {
    let refuse = |bound: String| Err(format!("{key}={next}: a running broker changes it to {bound}"));
    if now == next {
        return Ok(());
    }
    if next < 1 {
        return refuse("at least 1".to_owned());
    }
    if next < now / 2 {
        return refuse(format!("at least half the current value {now}"));
    }
    if next > now * 2 {
        return refuse(format!("at most double the current value {now}"));
    }
    Ok(())
}

/// Listeners may come, go and move (what they must be to be a broker's at all is checked with the configuration); what each
/// has of threads and connections changes within bounds.
fn check_listeners(now: &KafkaConfig, next: &KafkaConfig) -> Result<(), String> {
    for listener in &next.listeners.bound {
        let name = listener.listener_name.to_lowercase();
        let of = |config: &KafkaConfig, key: &str| {
            let own = config.values().originals().get(&format!("listener.name.{name}.{key}"));
            own.and_then(|text| text.trim().parse::<i64>().ok())
        };
        let effective = |config: &KafkaConfig, key: &str| {
            of(config, key).or_else(|| config.values().integer(key)).unwrap_or_default()
        };
        let threads = "num.network.threads";
        check_threads(threads, effective(now, threads), effective(next, threads))?;
        // A broker may start with a limit of 0, which lets nobody in, to be raised while it runs.
        for key in ["max.connections", "max.connection.creation.rate"] {
            let limit = effective(next, key);
            if limit < 1 && limit != effective(now, key) {
                let prefix =
                    if of(next, key).is_some() { format!("listener.name.{name}.") } else { String::new() };
                return Err(format!("{prefix}{key}={limit}: a running broker changes it to at least 1"));
            }
        }
    }
    Ok(())
}

/// The local part of a log is no longer than the whole.
fn check_local_retention(now: &BrokerValues, next: &BrokerValues) -> Result<(), String> {
    const AS_THE_WHOLE: i64 = -2;
    let total_ms = |values: &BrokerValues| {
        let scaled = |key: &str, unit: i64| Some(values.integer(key)?.saturating_mul(unit));
        let total = scaled("log.retention.ms", 1)
            .or_else(|| scaled("log.retention.minutes", 60_000))
            .or_else(|| scaled("log.retention.hours", 3_600_000));
        total.map_or(-1, |total| total.max(-1))
    };
    let total_bytes = |values: &BrokerValues| values.integer("log.retention.bytes").unwrap_or(-1).max(-1);
    for (key, of_now, total) in [
        ("log.local.retention.ms", total_ms(now), total_ms(next)),
        ("log.local.retention.bytes", total_bytes(now), total_bytes(next)),
    ] {
        let local = next.integer(key).unwrap_or(AS_THE_WHOLE);
        let unchanged = now.integer(key) == next.integer(key) && of_now == total;
        if unchanged || total == -1 || local == AS_THE_WHOLE {
            continue;
        }
        if local == -1 || local > total {
            return Err(format!(
                "{key}={local}: it must not be more than the retention of the whole log, {total}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> KafkaConfig {
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        KafkaConfig::without_file(&pairs).unwrap().0
    }

    fn changes(now: &[(&str, &str)], next: &[(&str, &str)]) -> Result<(), String> {
        check(&config(now), &config(next))
    }

    #[test]
    fn threads_at_most_double_or_halve() {
        for key in
            THREADS.into_iter().chain(["num.network.threads", "listener.name.plaintext.num.network.threads"])
        {
            for (now, next, allowed) in
                [("8", "16", true), ("8", "17", false), ("8", "4", true), ("8", "3", false)]
            {
                assert_eq!(changes(&[(key, now)], &[(key, next)]).is_ok(), allowed, "{key} {now} to {next}");
            }
            assert!(changes(&[(key, "1")], &[(key, "2")]).is_ok(), "{key}");
        }
        assert!(changes(&[("log.cleaner.threads", "1")], &[("log.cleaner.threads", "0")]).is_err());
        // A listener that does not exist has no threads.
        assert!(changes(&[], &[("listener.name.other.num.network.threads", "70")]).is_ok());
    }

    #[test]
    fn listeners_come_go_and_move() {
        let two = ("listeners", "PLAINTEXT://localhost:9092,SSL://localhost:9093");
        let map = ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,SSL:PLAINTEXT");
        assert_eq!(changes(&[map], &[map, two]), Ok(()));
        assert_eq!(changes(&[map, two], &[map]), Ok(()));
        assert_eq!(changes(&[], &[("advertised.listeners", "PLAINTEXT://other:9092")]), Ok(()));
        assert_eq!(changes(&[], &[("listeners", "PLAINTEXT://localhost:9094")]), Ok(()));
        assert_eq!(changes(&[], &[("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,B:SSL")]), Ok(()));
    }

    #[test]
    fn a_listener_takes_at_least_one_connection() {
        for key in ["max.connections", "max.connection.creation.rate"] {
            let own = format!("listener.name.plaintext.{key}");
            assert!(changes(&[], &[(&own, "0")]).unwrap_err().contains(&own));
            assert!(changes(&[], &[(&own, "1")]).is_ok(), "{key}");
            // The broker's limit holds for a listener without one.
            assert!(changes(&[], &[(key, "0")]).unwrap_err().starts_with(key));
            assert!(changes(&[(&own, "5")], &[(&own, "5"), (key, "0")]).is_ok(), "{key}");
            // Whoever was started so can be rescued, and other keys can be changed.
            assert!(changes(&[(key, "0")], &[(key, "1")]).is_ok(), "{key}");
            assert!(changes(&[(key, "0")], &[(key, "0"), ("num.io.threads", "9")]).is_ok(), "{key}");
        }
    }

    #[test]
    fn the_local_part_of_a_log_is_no_longer_than_the_whole() {
        let retention = ("log.retention.ms", "1000");
        for (key, total, local, allowed) in [
            ("log.local.retention.ms", retention, "1001", false),
            ("log.local.retention.ms", retention, "1000", true),
            ("log.local.retention.ms", retention, "-1", false),
            ("log.local.retention.ms", ("log.retention.ms", "-1"), "5", true),
            ("log.local.retention.bytes", ("log.retention.bytes", "10"), "11", false),
            ("log.local.retention.bytes", ("log.retention.bytes", "10"), "-2", true),
        ] {
            assert_eq!(changes(&[total], &[total, (key, local)]).is_ok(), allowed, "{key} {local}");
        }
        // What the broker was started with is not judged by another change.
        let odd = [retention, ("log.local.retention.ms", "5000")];
        assert!(changes(&odd, &[odd[0], odd[1], ("num.io.threads", "9")]).is_ok());
    }
}
