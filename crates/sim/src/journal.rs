//! What brokers log, as part of the trace; and which broker it is that acts.

use std::cell::Cell;
use std::fmt::{self, Write};
use std::sync::Weak;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};
use wire::types::BrokerId;

use crate::world::World;

/// Where controllers log what they do.
const STATE_CHANGES: &str = "state.change.logger";

thread_local! {
    static ACTING: Cell<BrokerId> = const { Cell::new(BrokerId::NONE) };
}

/// Does something in the name of a broker: what is logged meanwhile is its own.
pub(crate) fn acting<R>(broker: BrokerId, act: impl FnOnce() -> R) -> R {
    let before = ACTING.replace(broker);
    let result = act();
    ACTING.set(before);
    result
}

/// Who acts here; [`BrokerId::NONE`] if it is no broker.
pub(crate) fn actor() -> BrokerId {
    ACTING.get()
}

/// Takes what is logged into the world's trace.
pub(crate) struct Journal(Weak<World>);

impl Journal {
    /// The journal of `world`.
    pub(crate) fn new(world: Weak<World>) -> Self {
        Self(world)
    }
}

/// A line of the log: the message, then the fields.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a text does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

impl Subscriber for Journal {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && (*metadata.level() <= Level::INFO || metadata.target() == STATE_CHANGES)
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let Some(world) = self.0.upgrade() else { return };
        let mut line = Line::default();
        event.record(&mut line);
        let Line { message, fields } = line;
        world.logged(
            *event.metadata().level(),
            event.metadata().target() == STATE_CHANGES,
            &message,
            &fields,
        );
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}
