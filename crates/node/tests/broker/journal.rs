//! What a broker logs while a test does something on its own thread.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Messages with their levels, without fields.
type Lines = Arc<Mutex<Vec<(Level, String)>>>;

/// Does something, and returns what was logged meanwhile at `INFO` and above.
pub(crate) fn logged(act: impl FnOnce()) -> Vec<(Level, String)> {
    let lines = Lines::default();
    tracing::subscriber::with_default(Journal(lines.clone()), act);
    let lines = lines.lock().unwrap();
    lines.clone()
}

struct Journal(Lines);

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            write!(self.0, "{value:?}").unwrap();
        }
    }
}

impl Subscriber for Journal {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message::default();
        event.record(&mut message);
        self.0.lock().unwrap().push((*event.metadata().level(), message.0));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
