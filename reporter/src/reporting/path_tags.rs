//! Tags for paths: the guards, futures and threads that have a tag.

use core::fmt;
use core::marker::PhantomData;
use std::thread::{self, JoinHandle};

use crate::allocator::tags::{NO_TAG, TagNumber};

use super::contexts::{self, EnteredTag};
use super::open_guards;

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
pub struct Tag(pub(super) TagNumber);

impl Tag {
    /// No tag: memory that a thread allocates under it belongs to no path.
    pub const NONE: Self = Self(NO_TAG);

    /// The tag of this path. A process has room for 65,534 paths and [scopes](crate::scopes). Without room, or if the path is invalid for a
    /// report under `explicit/`, the result is [`NONE`](Self::NONE) and collections warn.
    pub fn new(path: impl AsRef<str>) -> Self {
        // The conversion is code of the program, so it runs before the lock is taken, and under the program's own
        // tag.
        Self(contexts::number_of_path(path.as_ref()))
    }

    /// The current tag of this thread.
    pub fn current() -> Self {
        Self(open_guards::current().path)
    }

    /// Makes this the tag of this thread until the guard is dropped.
    pub fn enter(self) -> TagGuard {
        TagGuard { place: open_guards::open(EnteredTag::Path(self.0)), one_thread: PhantomData }
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
        open_guards::keep(self.0);
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tag").field(&contexts::path(self.0)).finish()
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
        open_guards::close(self.place);
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

/// Spawns a thread that keeps the current tag and the [scopes](crate::scopes) of this thread until the new thread ends.
///
/// # Panics
///
/// Panics if the system cannot create a thread, like `std::thread::spawn`.
pub fn spawn_tagged<F, T>(code: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    thread::spawn(open_guards::inherit(code))
}
