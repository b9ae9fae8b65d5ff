//! Tags: a block belongs to a path if a thread allocates the block under the path's tag, for any type and owner.
//!
//! Invariant: a thread's current tag is the tag of its newest guard that still lives. Without a guard, it is the tag
//! that the thread keeps.

use core::cell::RefCell;
use core::fmt;
use core::marker::PhantomData;
use std::thread::{self, JoinHandle};

use memory_report::{Kind, Units};

use crate::allocator::tags::{self, LAST_TAG, NO_TAG, TagNumber};
use crate::process_lock::ProcessLock;

use super::conventions::{is_explicit, kind_fault, path_fault};

/// Makes `path` the tag of this thread until the guard is dropped. Memory that the thread allocates until then belongs
/// to that path.
///
/// Use it for memory without a measurable type and without an owner, such as the heap of a script engine:
///
/// ```standalone_crate
/// use memory_reporter::{CollectOptions, collect_reports, tag, tree::Forest};
///
/// memory_reporter::global_allocator!(std::alloc::System);
///
/// let values: Vec<String> = {
///     let _tag = tag("explicit/script");
///     (0..100).map(|i| format!("value {i}")).collect() // stands for `engine.eval(..)`
/// };
/// let reports = collect_reports(&CollectOptions::new());
/// assert!(Forest::new(&reports).amount("explicit/script").unwrap() >= 100 * 24);
/// drop(values);
/// ```
///
/// - The block carries the tag, not the thread: any thread may free the block, at any time. A block that grows keeps
///   its tag. A block without a tag gets the current tag when it grows.
/// - With nested tags, the innermost tag counts. If a panic drops a guard, the tag of this guard ends.
/// - A report takes precedence over a tag: a collection subtracts the blocks that its reporters measured. It cannot
///   subtract bytes whose blocks are unknown, so these bytes count in addition to the tag: amounts that a reporter
///   computes, bytes that a value states of itself, and the few blocks whose address a walk cannot find (the table of
///   indices of an `IndexMap`).
/// - The path appears even in anonymized reports, so it must not contain private data.
/// - [`collect_reports`](crate::collect_reports) adds one report for each path, of kind Heap. A
///   [`Collection`](crate::Collection) of borrowed reporters does not add these reports.
/// - DMD counts blocks with a tag as reported.
///
/// Tags need an allocator that the program declared with [`global_allocator!`](crate::global_allocator), and apply
/// only to its blocks. For blocks of C libraries, use [`CountingMalloc`](crate::counters::CountingMalloc). The path
/// must be valid for a report under `explicit/`. With another path the call sets no tag, and collections warn.
///
/// Bind the guard to a name such as `_tag`: `let _ = tag(..)` drops it at once. [`Tag::run`] needs no guard. Threads,
/// futures and thread pools do not inherit a tag by default: see [`spawn_tagged`], [`TaggedFuture`] and
/// [`Tag::keep`].
///
/// Until a thread first uses a tag, an allocation reads one thread-local variable, and a deallocation reads one word.
/// An active tag costs about 20 nanoseconds for an allocation with its deallocation, and two bits for each 16 bytes of
/// memory around blocks with a tag. A page with blocks of more than three tags takes up to a byte more for each 16
/// bytes. Blocks with a tag take at least 24 bytes.
pub fn tag(path: impl AsRef<str>) -> TagGuard {
    Tag::new(path).enter()
}

/// A tag: see [`tag`].
///
/// A tag is a number. Making it from a path takes a lock, so code that changes tags often should keep the `Tag`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag(TagNumber);

impl Tag {
    /// No tag: memory that a thread allocates under it belongs to no path.
    pub const NONE: Self = Self(NO_TAG);

    /// The tag of this path. A process has room for 32,767 paths. Without room, or if the path is invalid for a
    /// report under `explicit/`, the result is [`NONE`](Self::NONE) and collections warn.
    pub fn new(path: impl AsRef<str>) -> Self {
        // The conversion is code of the program, so it runs before the lock is taken, and under the program's own
        // tag.
        let path = path.as_ref();
        let _suspended = TagPause::new();
        let number = NAMES.lock().number(path);
        Self(number)
    }

    /// The current tag of this thread.
    pub fn current() -> Self {
        Self(tags::current())
    }

    /// Makes this the tag of this thread until the guard is dropped.
    pub fn enter(self) -> TagGuard {
        // Near the end of a thread the list of guards no longer exists, and the thread has no tag.
        let place = OPEN.try_with(|open| open.borrow_mut().push(self.0)).unwrap_or(0);
        TagGuard { place, one_thread: PhantomData }
    }

    /// Calls `code` under this tag.
    pub fn run<T>(self, code: impl FnOnce() -> T) -> T {
        let _tag = self.enter();
        code()
    }

    /// A closure that runs under this tag, on any thread. Use it for the jobs of a thread pool:
    /// `pool.spawn(Tag::current().wrap(|| work()))`.
    pub fn wrap<T>(self, code: impl FnOnce() -> T) -> impl FnOnce() -> T {
        move || self.run(code)
    }

    /// A future that runs under this tag, on any thread.
    pub fn future<F>(self, future: F) -> TaggedFuture<F> {
        TaggedFuture { tag: self, future }
    }

    /// Makes this the tag of this thread whenever no guard lives, until the thread ends. One line sets the tag of all
    /// threads of a pool:
    ///
    /// ```ignore
    /// rayon::ThreadPoolBuilder::new().start_handler(|_| Tag::new("explicit/pool").keep())
    /// tokio::runtime::Builder::new_multi_thread().on_thread_start(|| Tag::new("explicit/tasks").keep())
    /// ```
    pub fn keep(self) {
        // Near the end of a thread, the tag has no further use.
        let _ = OPEN.try_with(|open| open.borrow_mut().keep(self.0));
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = {
            let _suspended = TagPause::new();
            NAMES.lock().path(self.0).map(str::to_owned)
        };
        f.debug_tuple("Tag").field(&path).finish()
    }
}

/// Ends the tag that it set, when dropped: see [`tag`].
#[derive(Debug)]
#[must_use = "bind the guard to a variable, as in `let _tag = ..`: the tag ends when the guard is dropped, and `let _ = ..` drops the guard at once; to keep the tag, call `forever`"]
pub struct TagGuard {
    /// The number of this guard on its thread, from 1; 0 if the list of guards no longer exists.
    place: u64,
    one_thread: PhantomData<*const ()>,
}

impl TagGuard {
    /// Keeps the tag until its thread ends. [`Tag::keep`] does the same without a guard, and any guard overrides it.
    #[allow(clippy::mem_forget, reason = "the caller requests that it never ends")]
    pub fn forever(self) {
        core::mem::forget(self);
    }
}

impl Drop for TagGuard {
    fn drop(&mut self) {
        // Without the list, the thread has no tag.
        let _ = OPEN.try_with(|open| open.borrow_mut().remove(self.place));
    }
}

/// A future that runs under a tag: see [`tag`].
///
/// The tag is current while the future is polled, on any thread. So `tokio::spawn(TaggedFuture::new(task))` inherits
/// the tag of the code that spawns.
#[derive(Clone, Copy, Debug)]
#[must_use = "futures do nothing unless they are awaited or polled"]
pub struct TaggedFuture<F> {
    pub(super) tag: Tag,
    pub(super) future: F,
}

impl<F> TaggedFuture<F> {
    /// A future that runs under the current tag of this thread.
    pub fn new(future: F) -> Self {
        Tag::current().future(future)
    }
}

/// Spawns a thread that keeps the current tag of this thread until the new thread ends.
///
/// # Panics
///
/// Panics if the system cannot create a thread, like `std::thread::spawn`.
pub fn spawn_tagged<F, T>(code: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    thread::spawn(Tag::current().wrap(code))
}

std::thread_local! {
    static OPEN: RefCell<ThreadGuards> = const { RefCell::new(ThreadGuards { kept: NO_TAG, guards: Vec::new(), made: 0 }) };
}

/// The guards of one thread.
struct ThreadGuards {
    kept: TagNumber,
    /// The living guards, in the order in which they were made: the number and the tag of each.
    guards: Vec<(u64, TagNumber)>,
    /// The number of guards made so far.
    made: u64,
}

impl ThreadGuards {
    fn push(&mut self, tag: TagNumber) -> u64 {
        self.made += 1;
        // The list itself must have no tag.
        tags::set_current(NO_TAG);
        self.guards.push((self.made, tag));
        self.apply();
        self.made
    }

    /// Removes the guard with this number, which need not be the newest guard.
    fn remove(&mut self, place: u64) {
        if let Some(index) = self.guards.iter().rposition(|guard| guard.0 == place) {
            self.guards.remove(index);
        }
        self.apply();
    }

    fn keep(&mut self, tag: TagNumber) {
        self.kept = tag;
        self.apply();
    }

    fn apply(&self) {
        tags::set_current(self.guards.last().map_or(self.kept, |(_, tag)| *tag));
    }
}

impl Drop for ThreadGuards {
    fn drop(&mut self) {
        tags::set_current(NO_TAG);
    }
}

/// Suspends the tag of its thread until it is dropped.
pub(crate) struct TagPause(TagNumber);

impl TagPause {
    pub(crate) fn new() -> Self {
        let before = tags::current();
        tags::set_current(NO_TAG);
        Self(before)
    }
}

impl Drop for TagPause {
    fn drop(&mut self) {
        tags::set_current(self.0);
    }
}

/// The paths of all tags.
struct TagNames {
    /// The paths, in the order of their tags: the path of tag 1 is first.
    paths: Vec<String>,
    /// The numbers of all tags, sorted by path.
    by_path: Vec<TagNumber>,
    faults: Vec<TagFault>,
    /// The number of calls with a path for which there was no room.
    beyond: u64,
}

/// A path that a tag cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TagFault {
    pub(crate) path: String,
    pub(crate) why: &'static str,
}

/// The largest number of paths in the list of faults.
const FAULTS: usize = 16;

impl TagNames {
    fn number(&mut self, path: &str) -> TagNumber {
        let found =
            self.by_path.binary_search_by(|number| self.paths[usize::from(*number) - 1].as_str().cmp(path));
        let place = match found {
            Ok(place) => return self.by_path[place],
            Err(place) => place,
        };
        if let Some(why) = fault(path) {
            let fault = TagFault { path: path.to_owned(), why };
            if self.faults.len() < FAULTS && !self.faults.contains(&fault) {
                self.faults.push(fault);
            }
            return NO_TAG;
        }
        match TagNumber::try_from(self.paths.len() + 1) {
            Ok(number) if number <= LAST_TAG => {
                self.paths.push(path.to_owned());
                self.by_path.insert(place, number);
                number
            }
            _ => {
                self.beyond += 1;
                NO_TAG
            }
        }
    }

    fn path(&self, number: TagNumber) -> Option<&str> {
        self.paths.get(usize::from(number).checked_sub(1)?).map(String::as_str)
    }
}

fn fault(path: &str) -> Option<&'static str> {
    path_fault(path)
        .or(kind_fault(path, Kind::Heap, Units::Bytes))
        .or((!is_explicit(path)).then_some("a tag's path must be under `explicit/`"))
}

/// Before locking these names, the caller must suspend this thread's tag. While they are locked, code of the program
/// must not run.
static NAMES: ProcessLock<TagNames> =
    ProcessLock::new(TagNames { paths: Vec::new(), by_path: Vec::new(), faults: Vec::new(), beyond: 0 });

/// The paths of all tags, and the rejected paths, each with its fault.
#[derive(Debug)]
pub(crate) struct TagPaths {
    /// The paths, in the order of their tags: the path of tag 1 is first.
    pub(crate) paths: Vec<String>,
    pub(crate) faults: Vec<TagFault>,
    /// The number of calls with a path for which there was no room.
    pub(crate) beyond: u64,
}

pub(crate) fn tag_paths() -> TagPaths {
    let _suspended = TagPause::new();
    let names = NAMES.lock();
    TagPaths { paths: names.paths.clone(), faults: names.faults.clone(), beyond: names.beyond }
}
