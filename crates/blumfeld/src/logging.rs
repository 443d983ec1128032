//! The broker's log lines on standard output, in the form that Kafka's layout gives them:
//! `[2024-01-31 12:00:00,123] INFO message (logger)`.
//!
//! `RUST_LOG` chooses levels per logger; without it everything from `info` on is shown. A line is written
//! whole; if nobody reads, it is dropped, as a broker must not die of its log.

use std::fmt;
use std::io::IsTerminal;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Begins to log. A second call has no effect.
pub(crate) fn init() {
    let filter = EnvFilter::builder().with_default_directive(Level::INFO.into()).from_env_lossy();
    let layout = KafkaLayout { zone: TimeZone::system(), now: Timestamp::now };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stdout().is_terminal())
        .log_internal_errors(false)
        .event_format(layout)
        .finish();
    // It fails only if there is a subscriber already, which then is the one to use.
    let _ = tracing::subscriber::set_global_default(subscriber);
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
