//! The guards of each thread's tags and scopes.
//!
//! Invariant: the current context of a thread comes from its living guards, in the order in which they were made: all
//! scopes, and the path of the newest guard of a tag. Without such a guard, the path is the one that the thread keeps.
//! The number of the context is the current tag of the hooks.

use core::cell::RefCell;

use crate::allocator::tags::{self, NO_TAG, TagNumber, tallies};

use super::contexts::{self, EnteredTag, TagContext};
use super::tag_pause::TagPause;

std::thread_local! {
    static OPEN: RefCell<ThreadGuards> = const { RefCell::new(ThreadGuards { kept: NO_TAG, guards: Vec::new(), made: 0 }) };
}

/// The guards of one thread.
struct ThreadGuards {
    kept: TagNumber,
    /// The living guards, in the order in which they were made.
    guards: Vec<OpenGuard>,
    /// The number of guards made so far.
    made: u64,
}

/// Identifies a guard on its thread.
#[derive(Clone, Copy, PartialEq, Eq)]
struct GuardPlace {
    /// The number of the set of keys; 0 for guards without a key.
    set: u64,
    /// The key, or the number of the guard, from 1.
    key: u64,
}

struct OpenGuard {
    place: GuardPlace,
    entered: EnteredTag,
    /// The context that this guard makes current.
    context: TagContext,
    /// The numbers whose records this thread owns because of this guard.
    claimed: [TagNumber; 2],
}

impl OpenGuard {
    fn new(place: GuardPlace, entered: EnteredTag, before: TagContext) -> Self {
        let context = contexts::inside(before, &entered);
        let scope = match &entered {
            EnteredTag::Scope(scope) => scope.number(),
            EnteredTag::Path(_) => NO_TAG,
        };
        let claimed = [context.number, if scope == context.number { NO_TAG } else { scope }]
            .map(|number| if claim(number) { number } else { NO_TAG });
        Self { place, entered, context, claimed }
    }

    fn release(&self) {
        for number in self.claimed.into_iter().filter(|number| *number != NO_TAG) {
            if let Some(record) = tallies::record(number) {
                record.release();
            }
        }
    }
}

fn claim(number: TagNumber) -> bool {
    number != NO_TAG && tallies::record(number).is_some_and(|record| record.is_counting() && record.claim())
}

impl ThreadGuards {
    fn push(&mut self, place: GuardPlace, entered: EnteredTag) {
        let guard = OpenGuard::new(place, entered, self.context());
        self.guards.push(guard);
    }

    /// Opens a guard without a key. Returns its number.
    fn push_new(&mut self, entered: EnteredTag) -> u64 {
        self.made += 1;
        self.push(GuardPlace { set: 0, key: self.made }, entered);
        self.made
    }

    /// Removes the newest guard with this identity. Newer guards may exist.
    fn remove(&mut self, place: GuardPlace) {
        let Some(index) = self.guards.iter().rposition(|guard| guard.place == place) else { return };
        let newer = self.guards.split_off(index + 1);
        if let Some(removed) = self.guards.pop() {
            removed.release();
        }
        for guard in newer {
            guard.release();
            let guard = OpenGuard::new(guard.place, guard.entered, self.context());
            self.guards.push(guard);
        }
    }

    fn context(&self) -> TagContext {
        self.guards.last().map_or_else(|| contexts::path_context(self.kept), |guard| guard.context)
    }
}

impl Drop for ThreadGuards {
    fn drop(&mut self) {
        tags::set_current(NO_TAG);
        self.guards.iter().for_each(OpenGuard::release);
    }
}

/// Calls `change` with the guards of this thread, which then have no tag themselves. Applies the new context. `None`
/// near the end of a thread: the list no longer exists, and the thread has no tag.
fn change<T>(change: impl FnOnce(&mut ThreadGuards) -> T) -> Option<T> {
    let before = tags::current();
    tags::set_current(NO_TAG);
    let changed = OPEN.try_with(|open| {
        let mut open = open.borrow_mut();
        let result = change(&mut open);
        (result, open.context().number)
    });
    let (result, number) = match changed {
        Ok((result, number)) => (Some(result), number),
        Err(_) => (None, before),
    };
    tags::set_current(number);
    result
}

/// Opens a guard. Returns its number on this thread, from 1; 0 near the end of a thread.
pub(super) fn open(entered: EnteredTag) -> u64 {
    change(|open| open.push_new(entered)).unwrap_or(0)
}

/// Opens a guard with a key of a set, whose number is at least 1.
pub(super) fn open_key(set: u64, key: u64, entered: EnteredTag) {
    change(|open| open.push(GuardPlace { set, key }, entered));
}

/// Ends the newest guard with this key of a set.
pub(super) fn close_key(set: u64, key: u64) {
    change(|open| open.remove(GuardPlace { set, key }));
}

/// Ends the guard with this number.
pub(super) fn close(place: u64) {
    change(|open| open.remove(GuardPlace { set: 0, key: place }));
}

/// Sets the tag of this thread for the time without a guard.
pub(super) fn keep(path: TagNumber) {
    change(|open| open.kept = path);
}

/// The context of this thread. Under a [`TagPause`], it is still the context of the guards.
pub(super) fn current() -> TagContext {
    OPEN.try_with(|open| open.borrow().context()).unwrap_or_default()
}

/// A closure that runs under the tag and the scopes of this thread, on any thread.
pub(super) fn inherit<T>(code: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let entered = {
        let _paused = TagPause::new();
        OPEN.try_with(|open| {
            let open = open.borrow();
            let mut all = vec![EnteredTag::Path(open.context().path)];
            let scopes = open.guards.iter().map(|guard| &guard.entered).filter(|entered| entered.is_scope());
            all.extend(scopes.cloned());
            all
        })
        .unwrap_or_default()
    };
    move || {
        let _open = {
            let _paused = TagPause::new();
            InheritedGuards(entered.into_iter().map(open).collect())
        };
        // The pause ends with the context before the guards, so it is applied again.
        change(|_| ());
        code()
    }
}

/// The numbers of guards that end together.
struct InheritedGuards(Vec<u64>);

impl Drop for InheritedGuards {
    fn drop(&mut self) {
        for place in self.0.iter().rev() {
            close(*place);
        }
        let _paused = TagPause::new();
        self.0 = Vec::new();
    }
}
