//! The broker's log lines on standard output, in the form that Kafka's layout gives them:
//! `[2024-01-31 12:00:00,123] INFO message (logger)`.
//!
//! `RUST_LOG` chooses levels per logger; without it everything from `info` on is shown. A line is written
//! whole; if nobody reads, it is dropped, as a broker must not die of its log.

use std::collections::BTreeMap;
use std::fmt;
use std::io::IsTerminal;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use node::loggers::{self, LogLevel, LogLevels, Loggers};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Begins to log, and gives the loggers, whose levels may change. A second call has no effect on what is logged.
pub(crate) fn init() -> Arc<Loggers> {
    let given = std::env::var("RUST_LOG").unwrap_or_default();
    let (levels, rest) = levels_in(&given);
    let layout = KafkaLayout { zone: TimeZone::system(), now: Timestamp::now };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(&rest, &levels))
        .with_ansi(std::io::stdout().is_terminal())
        .log_internal_errors(false)
        .event_format(layout)
        .with_filter_reloading();
    let handle = builder.reload_handle();
    // It fails only if there is a subscriber already, which then is the one to use.
    let _ = tracing::subscriber::set_global_default(builder.finish());
    Arc::new(Loggers::new(levels, move |levels| {
        if let Err(error) = handle.reload(filter(&rest, levels)) {
            tracing::error!(%error, "the levels of loggers cannot be changed");
        }
    }))
}

/// The levels that `RUST_LOG` gives to loggers that have a name, and the rest of it.
fn levels_in(given: &str) -> (LogLevels, String) {
    let mut levels = LogLevels { root: LogLevel::Info, own: BTreeMap::new() };
    let mut rest = Vec::new();
    for directive in given.split(',') {
        let (logger, word) = directive.split_once('=').unwrap_or((loggers::ROOT, directive));
        let logger = logger.trim().replace("::", ".");
        match LogLevel::parse(&word.trim().to_uppercase()) {
            Some(level) if logger == loggers::ROOT => levels.root = level,
            Some(level) if loggers::exists(&logger) => drop(levels.own.insert(logger, level)),
            _ => rest.push(directive),
        }
    }
    (levels, rest.join(","))
}

/// What passes by these levels, and by the `rest` of what `RUST_LOG` says.
fn filter(rest: &str, levels: &LogLevels) -> EnvFilter {
    let root = Directive::from(level_filter(levels.root));
    let parsed = EnvFilter::builder().with_default_directive(root.clone()).parse_lossy(rest);
    let own = levels.own.iter().filter_map(|(logger, level)| {
        format!("{}={}", loggers::target(logger), level_filter(*level)).parse().ok()
    });
    std::iter::once(root).chain(own).fold(parsed, EnvFilter::add_directive)
}

fn level_filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Fatal => LevelFilter::OFF,
    }
}

/// Kafka's layout of a log line.
struct KafkaLayout {
    zone: TimeZone,
    now: fn() -> Timestamp,
}

impl<S, N> FormatEvent<S, N> for KafkaLayout
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let now = (self.now)().to_zoned_datetime(self.zone.clone());
        let metadata = event.metadata();
        let mut message = Message::default();
        event.record(&mut message);
        writeln!(
            writer,
            "[{},{:03}] {} {}{} ({})",
            now.strftime("%Y-%m-%d %H:%M:%S"),
            now.millisecond(),
            metadata.level(),
            message.text,
            message.fields,
            metadata.target().replace("::", ".")
        )
    }
}

/// The message of an event, and its other fields behind it.
#[derive(Default)]
struct Message {
    text: String,
    fields: String,
}

impl Message {
    fn add(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        use fmt::Write;
        // Writing to a string does not fail.
        let _ = if field.name() == "message" {
            self.text.write_fmt(value)
        } else {
            write!(self.fields, " {}={value}", field.name())
        };
    }
}

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, format_args!("{value}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn levels_come_from_the_environment_and_may_be_changed() {
        let (mut levels, rest) = levels_in("warn,node::drive=debug,other=trace");
        assert_eq!((levels.root, levels.of("node.drive.fetchers")), (LogLevel::Warn, LogLevel::Debug));
        assert_eq!((levels.own.len(), rest.as_str()), (1, "other=trace"));
        assert_eq!(filter(&rest, &levels).to_string(), "node::drive=debug,other=trace,warn");
        levels.root = LogLevel::Error;
        levels.own = BTreeMap::from([("net".to_owned(), LogLevel::Fatal)]);
        assert_eq!(filter(&rest, &levels).to_string(), "other=trace,net=off,error");
        for name in loggers::NAMES {
            let one =
                LogLevels { root: LogLevel::Info, own: BTreeMap::from([(name.to_owned(), LogLevel::Warn)]) };
            assert_eq!(filter("", &one).to_string(), format!("{}=warn,info", loggers::target(name)));
        }
        assert_eq!(levels_in("").0, LogLevels { root: LogLevel::Info, own: BTreeMap::new() });
    }

    #[test]
    fn a_line_is_laid_out_as_kafka_does() {
        let lines = Lines::default();
        let writer = lines.clone();
        let layout = KafkaLayout {
            zone: TimeZone::UTC,
            now: || Timestamp::from_millisecond(1_706_702_400_123).unwrap(),
        };
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .event_format(layout)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "kafka.server.KafkaServer", "[KafkaServer id={}] started", 7);
            tracing::warn!(target: "storage::segment", path = %"/a b", size = 3, "odd");
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(
            text,
            "[2024-01-31 12:00:00,123] INFO [KafkaServer id=7] started (kafka.server.KafkaServer)\n\
             [2024-01-31 12:00:00,123] WARN odd path=/a b size=3 (storage.segment)\n"
        );
    }
}
