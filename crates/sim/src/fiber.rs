//! Code that waits in the middle of things: the start of a broker. It runs on a thread of its own, and the baton is with
//! either the world or one such thread, never with two: threads add a stack here, and nothing happens at the same time.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

use crate::incarnation::Incarnation;
use crate::world::World;

/// What a fiber says when it hands the baton back.
enum Step {
    /// It waits for something.
    Paused,
    /// It has come to its end.
    Ended(std::thread::Result<()>),
}

/// See the module's text. Clones are the same fiber.
#[derive(Clone)]
pub(crate) struct Fiber(Arc<Inner>);

struct Inner {
    ends: Mutex<Ends>,
}

/// The world's ends of the channels; the thread is gone when `thread` is.
struct Ends {
    go_on: Sender<()>,
    step: Receiver<Step>,
    thread: Option<JoinHandle<()>>,
}

/// The fiber's own ends.
struct Own {
    go_on: Receiver<()>,
    step: Sender<Step>,
    fiber: Weak<Inner>,
}

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

impl Fiber {
    /// A fiber that does `work` once it is resumed.
    pub(crate) fn new(work: impl FnOnce() + Send + 'static) -> Self {
        let (go_on, may_go_on) = channel();
        let (say, step) = channel();
        let inner = Arc::new(Inner { ends: Mutex::new(Ends { go_on, step, thread: None }) });
        let own = Own { go_on: may_go_on, step: say, fiber: Arc::downgrade(&inner) };
        let subscriber = tracing::dispatcher::get_default(Clone::clone);
        let thread = std::thread::spawn(move || {
            if own.go_on.recv().is_err() {
                return;
            }
            let say = own.step.clone();
            OWN.with_borrow_mut(|slot| *slot = Some(own));
            let ended =
                tracing::dispatcher::with_default(&subscriber, || catch_unwind(AssertUnwindSafe(work)));
            // Nobody listens after a panic of the world.
            let _ = say.send(Step::Ended(ended));
        });
        inner.ends.lock().unwrap_or_else(PoisonError::into_inner).thread = Some(thread);
        Self(inner)
    }

    /// Lets it go on until it waits again or ends. Returns whether it has ended; its panic goes on here.
    pub(crate) fn resume(&self) -> bool {
        let mut ends = self.0.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if ends.thread.is_none() || ends.go_on.send(()).is_err() {
            return true;
        }
        let Ok(Step::Ended(result)) = ends.step.recv() else { return false };
        if let Some(thread) = ends.thread.take() {
            let _ = thread.join();
        }
        drop(ends);
        if let Err(panic) = result {
            resume_unwind(panic);
        }
        true
    }

    /// The fiber that runs here.
    ///
    /// # Panics
    /// Outside of one: a broker that serves must not wait.
    fn current() -> Self {
        let inner = OWN.with_borrow(|own| own.as_ref().and_then(|own| own.fiber.upgrade()));
        Self(inner.expect("something waits outside of a start"))
    }
}

/// Waits within a fiber until `is_over`, or until the life ends that it belongs to. It looks whenever it is resumed: by
/// the [`Alarm`] that `begin` is given.
pub(crate) fn wait(
    world: &Arc<World>,
    owner: &Incarnation,
    begin: impl FnOnce(Alarm),
    is_over: impl Fn() -> bool,
) {
    begin(Alarm { world: world.weak(), fiber: Fiber::current() });
    while owner.is_alive() && !is_over() {
        OWN.with_borrow(|own| {
            let own = own.as_ref().expect("a fiber");
            // The world is gone: so is the owner.
            let is_paused = own.step.send(Step::Paused).is_ok();
            assert!(is_paused && own.go_on.recv().is_ok(), "the world has ended around a start");
        });
    }
}

/// Resumes a fiber.
#[derive(Clone)]
pub(crate) struct Alarm {
    world: Weak<World>,
    fiber: Fiber,
}

impl Alarm {
    /// Resumes it at `at_us`, as an event of its own.
    pub(crate) fn ring_at(self, at_us: u64) {
        let Some(world) = self.world.upgrade() else { return };
        world.schedule.at(at_us, "goes on", move |_| {
            self.fiber.resume();
        });
    }

    /// Resumes it behind what happens now.
    pub(crate) fn ring(self) {
        self.ring_at(0);
    }
}
