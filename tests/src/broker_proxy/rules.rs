//! What becomes of a frame: rules are asked in the order in which they were added, and the first that is
//! concerned decides. A frame that concerns no rule is passed on.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::gate::Gate;
use super::header::RequestHeader;

/// Which way a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From whoever connected to the broker behind the proxy.
    Request,
    /// Back from the broker.
    Response,
}

/// What is done with a frame.
#[derive(Debug, Clone)]
pub enum Action {
    /// It goes on.
    Pass,
    /// It vanishes; the connection lives.
    Drop,
    /// It vanishes, and the connection is closed at both ends.
    Close,
    /// It and what follows in its direction goes on after this time. Frames of one direction are held one after
    /// the other.
    Delay(Duration),
    /// It and what follows in its direction goes on when the gate is opened.
    Hold(Arc<Gate>),
}

/// A test on the header and the whole frame (without its size).
type Condition = Arc<dyn Fn(&RequestHeader, &[u8]) -> bool + Send + Sync>;

/// A rule; see the module.
#[derive(Clone)]
pub struct Rule {
    direction: Direction,
    api_key: Option<i16>,
    client_id: Option<String>,
    broker: Option<i32>,
    condition: Option<Condition>,
    skip: u64,
    times: u64,
    action: Action,
}

impl Rule {
    /// A rule for every request.
    #[must_use]
    pub fn for_requests(action: Action) -> Self {
        Self::new(Direction::Request, action)
    }

    /// A rule for every response. What is said below of headers concerns the request that it answers.
    #[must_use]
    pub fn for_responses(action: Action) -> Self {
        Self::new(Direction::Response, action)
    }

    fn new(direction: Direction, action: Action) -> Self {
        Self {
            direction,
            api_key: None,
            client_id: None,
            broker: None,
            condition: None,
            skip: 0,
            times: u64::MAX,
            action,
        }
    }

    /// Only those of this API key.
    #[must_use]
    pub fn of_key(mut self, api_key: i16) -> Self {
        self.api_key = Some(api_key);
        self
    }

    /// Only those of clients whose id begins so.
    #[must_use]
    pub fn of_client(mut self, prefix: &str) -> Self {
        self.client_id = Some(prefix.to_owned());
        self
    }

    /// Only those of this broker, whatever it wants.
    #[must_use]
    pub fn of_broker(mut self, id: i32) -> Self {
        self.broker = Some(id);
        self
    }

    /// Only those for which `condition` holds; it is given the header of the request and the frame's bytes,
    /// without their size, whichever direction the frame goes.
    #[must_use]
    pub fn where_frame(
        mut self,
        condition: impl Fn(&RequestHeader, &[u8]) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.condition = Some(Arc::new(condition));
        self
    }

    /// The first `count` frames that it would concern do not concern it.
    #[must_use]
    pub fn after(mut self, count: u64) -> Self {
        self.skip = count;
        self
    }

    /// It concerns `count` frames and no more.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.times = count;
        self
    }

    fn fits(&self, direction: Direction, header: &RequestHeader, frame: &[u8]) -> bool {
        self.direction == direction
            && self.api_key.is_none_or(|key| key == header.api_key)
            && self.client_id.as_ref().is_none_or(|prefix| {
                header.client_id.as_ref().is_some_and(|id| id.starts_with(prefix.as_str()))
            })
            && self.broker.is_none_or(|id| header.is_of_broker(id))
            && self.condition.as_ref().is_none_or(|holds| holds(header, frame))
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { direction, api_key, client_id, broker, condition, skip, times, action } = self;
        f.debug_struct("Rule")
            .field("direction", direction)
            .field("api_key", api_key)
            .field("client_id", client_id)
            .field("broker", broker)
            .field("has_condition", &condition.is_some())
            .field("skip", skip)
            .field("times", times)
            .field("action", action)
            .finish()
    }
}

/// A rule that a proxy has taken over, seen from outside.
#[derive(Debug, Clone)]
pub struct Applied {
    used: Arc<AtomicU64>,
    removed: Arc<AtomicU64>,
}

impl Applied {
    /// How many frames it has concerned.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.used.load(Ordering::SeqCst)
    }

    /// It concerns no further frame. One that it holds is still held.
    pub fn remove(&self) {
        self.removed.store(1, Ordering::SeqCst);
    }
}

#[derive(Debug)]
struct Entry {
    rule: Rule,
    met: u64,
    applied: Applied,
}

/// The rules of a proxy.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<Entry>);

impl Rules {
    /// Adds a rule behind the others.
    pub(super) fn add(&mut self, rule: Rule) -> Applied {
        let applied = Applied { used: Arc::default(), removed: Arc::default() };
        self.0.push(Entry { rule, met: 0, applied: applied.clone() });
        applied
    }

    /// Forgets all rules.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Decides over one frame.
    pub(super) fn decide(&mut self, direction: Direction, header: &RequestHeader, frame: &[u8]) -> Action {
        self.0.retain(|entry| entry.applied.removed.load(Ordering::SeqCst) == 0);
        for Entry { rule, met, applied } in &mut self.0 {
            if applied.count() >= rule.times || !rule.fits(direction, header, frame) {
                continue;
            }
            *met += 1;
            if *met > rule.skip {
                applied.used.fetch_add(1, Ordering::SeqCst);
                return rule.action.clone();
            }
        }
        Action::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(api_key: i16, client_id: &str) -> RequestHeader {
        RequestHeader { api_key, version: 1, correlation_id: 1, client_id: Some(client_id.to_owned()) }
    }

    fn is_dropped(rules: &mut Rules, direction: Direction, header: &RequestHeader) -> bool {
        matches!(rules.decide(direction, header, b"body"), Action::Drop)
    }

    #[test]
    fn a_rule_concerns_what_it_names_and_nothing_else() {
        let mut rules = Rules::default();
        rules.add(Rule::for_requests(Action::Drop).of_key(1).of_client("broker-2-"));
        let fetch = header(1, "broker-2-fetcher-0");
        assert!(is_dropped(&mut rules, Direction::Request, &fetch));
        assert!(!is_dropped(&mut rules, Direction::Response, &fetch));
        assert!(!is_dropped(&mut rules, Direction::Request, &header(0, "broker-2-fetcher-0")));
        assert!(!is_dropped(&mut rules, Direction::Request, &header(1, "broker-1-fetcher-0")));
        let nobody = RequestHeader { client_id: None, ..fetch };
        assert!(!is_dropped(&mut rules, Direction::Request, &nobody));
    }

    #[test]
    fn a_rule_may_spare_the_first_and_end_after_some() {
        let mut rules = Rules::default();
        let applied = rules.add(Rule::for_responses(Action::Drop).after(2).times(2));
        let got: Vec<bool> =
            (0..6).map(|_| is_dropped(&mut rules, Direction::Response, &header(1, "x"))).collect();
        assert_eq!(got, [false, false, true, true, false, false]);
        assert_eq!(applied.count(), 2);
    }

    #[test]
    fn the_first_rule_that_is_concerned_decides() {
        let mut rules = Rules::default();
        let spared = rules.add(Rule::for_requests(Action::Pass).of_key(4));
        rules.add(Rule::for_requests(Action::Drop));
        assert!(!is_dropped(&mut rules, Direction::Request, &header(4, "x")));
        assert!(is_dropped(&mut rules, Direction::Request, &header(5, "x")));
        spared.remove();
        assert!(is_dropped(&mut rules, Direction::Request, &header(4, "x")));
        rules.clear();
        assert!(!is_dropped(&mut rules, Direction::Request, &header(4, "x")));
    }

    #[test]
    fn a_condition_sees_header_and_frame() {
        let mut rules = Rules::default();
        rules.add(
            Rule::for_requests(Action::Drop)
                .where_frame(|header, frame| header.version == 1 && frame.ends_with(b"dy")),
        );
        assert!(is_dropped(&mut rules, Direction::Request, &header(1, "x")));
        let other = RequestHeader { version: 2, ..header(1, "x") };
        assert!(!is_dropped(&mut rules, Direction::Request, &other));
    }
}
