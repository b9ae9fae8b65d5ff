//! Scopes: what a piece of code allocates, exactly, in a process whose other threads also allocate.
//!
//! ```standalone_crate
//! use memory_reporter::scopes::Scope;
//!
//! memory_reporter::global_allocator!(std::alloc::System);
//!
//! let (words, scope) = Scope::measure(|| "one two three".split(' ').map(str::to_owned).collect::<Vec<_>>());
//! let figures = scope.figures()?;
//! assert_eq!(figures.allocations, 1 + 3);
//! assert_eq!(figures.retained_blocks, 4);
//! # drop(words);
//! # Ok::<(), memory_reporter::scopes::ScopeError>(())
//! ```
//!
//! A scope is a [tag](crate::tags) without a path: each block carries the scope that allocated it. So any thread may
//! free the block, and tests that run at the same time do not see each other. Scopes nest: an outer scope contains
//! everything of its inner scopes.
//!
//! | code runs | write |
//! | --- | --- |
//! | in one call | `Scope::measure(\|\| work())`, or `scope.run(\|\| work())` |
//! | until the end of a block | `let _guard = scope.enter();` |
//! | in a future, on any thread | `scope.future(task)` |
//! | in a job of a pool | `pool.spawn(scope.wrap(\|\| work()))` |
//! | on a new thread | `scope.spawn(\|\| work())`, or `spawn_tagged` in the scope |
//!
//! Scopes need an allocator that the program declares with [`global_allocator!`](crate::global_allocator). Without it,
//! [`figures`](Scope::figures) returns an error.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::panic::Location;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::allocator;
use crate::allocator::tags::sites;
use crate::allocator::tags::tallies::{self, RawFigures};
use crate::engine_abi;

use super::contexts::{EnteredTag, ScopeNumber};
use super::open_guards;
use super::tag_pause::TagPause;

pub use super::heap_figures::{HeapFigures, ScopeError, ScopeStack};

/// A scope: see [the module](self).
///
/// Clones are the same scope. The blocks of a scope keep its number, so a process can have 65,534 scopes and tags at
/// once. Each combination of nested scopes and tags that a thread enters needs a number, too, and a path below a
/// [counted path](crate::tags::CountedTag) needs two. The number of a dropped scope is used again when its last block is
/// freed.
///
/// An allocation counts in each scope around it, so its time grows with their number. The free of a block from outside
/// compares each scope of the thread with each scope of the block: do not measure in each call of a deep recursion.
#[derive(Clone)]
pub struct Scope(Option<Arc<ScopeData>>);

struct ScopeData {
    name: Cow<'static, str>,
    /// `None` if all numbers were in use.
    number: Option<Arc<ScopeNumber>>,
    has_allocator: bool,
    /// Some code of the scope ran without being counted, near the end of a thread.
    missed: AtomicBool,
    process: u32,
}

impl Scope {
    /// Makes a scope. Its name is the place of the call.
    #[track_caller]
    pub fn new() -> Self {
        let place = Location::caller();
        let _paused = TagPause::new();
        Self::with_name(format!("{}:{}", place.file(), place.line()).into())
    }

    /// Makes a scope with a name for messages.
    pub fn named(name: impl Into<Cow<'static, str>>) -> Self {
        // The conversion is code of the program, so it runs under the program's own tag.
        let name = name.into();
        let _paused = TagPause::new();
        Self::with_name(name)
    }

    /// The caller suspends the thread's tag.
    fn with_name(name: Cow<'static, str>) -> Self {
        let has_allocator = allocator::declared().is_some();
        let number = ScopeNumber::new().map(Arc::new);
        if let Some(number) = &number
            && engine_abi::is_connected()
            && let Some(record) = tallies::record(number.number())
        {
            sites::register(|block| engine_abi::allocation_site(block.addr()).unwrap_or(0));
            record.count_sites();
        }
        Self(Some(Arc::new(ScopeData {
            name,
            number,
            has_allocator,
            missed: AtomicBool::new(false),
            process: std::process::id(),
        })))
    }

    fn data(&self) -> &ScopeData {
        self.0.as_ref().expect("only the destructor takes the data")
    }

    /// Calls `code` in a new scope. Returns its result, and the scope with the figures at the end of the call. The
    /// result's memory is retained memory.
    #[track_caller]
    pub fn measure<T>(code: impl FnOnce() -> T) -> (T, MeasuredScope) {
        let scope = Self::new();
        let result = scope.run(code);
        let figures = scope.figures();
        (result, MeasuredScope { scope, figures })
    }

    /// The name of the scope.
    pub fn name(&self) -> &str {
        &self.data().name
    }

    /// Puts this thread into the scope until the guard is dropped.
    pub fn enter(&self) -> ScopeGuard {
        let place = match &self.data().number {
            Some(number) => open_guards::open(EnteredTag::Scope(Arc::clone(number))),
            None => 0,
        };
        if place == 0 {
            self.data().missed.store(true, Ordering::Relaxed);
        }
        ScopeGuard { place, one_thread: PhantomData }
    }

    /// Calls `code` in the scope.
    pub fn run<T>(&self, code: impl FnOnce() -> T) -> T {
        let _guard = self.enter();
        code()
    }

    /// A closure that runs in the scope, on any thread. Use it for the jobs of a thread pool.
    pub fn wrap<F, T>(&self, code: F) -> impl FnOnce() -> T + use<F, T>
    where
        F: FnOnce() -> T,
    {
        let scope = self.clone();
        move || scope.run(code)
    }

    /// A future that runs in the scope, on any thread. Its end also runs in the scope.
    pub fn future<F>(&self, future: F) -> ScopedFuture<F> {
        ScopedFuture { scope: self.clone(), future: ManuallyDrop::new(future) }
    }

    /// Spawns a thread that is in the scope until it ends. The memory of the thread itself does not belong to the scope.
    ///
    /// # Panics
    ///
    /// Panics if the system cannot create a thread, like `std::thread::spawn`.
    pub fn spawn<F, T>(&self, code: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let scope = self.clone();
        let _paused = TagPause::new();
        std::thread::spawn(move || scope.run(code))
    }

    /// The figures of the scope up to now. They are exact if no thread allocates or frees memory of the scope at the
    /// same time.
    ///
    /// # Errors
    ///
    /// Returns an error if a figure could be wrong. It names the reason, and the line to add.
    pub fn figures(&self) -> Result<HeapFigures, ScopeError> {
        let raw = self.raw()?;
        Ok(HeapFigures::from_raw(&raw))
    }

    fn raw(&self) -> Result<RawFigures, ScopeError> {
        let data = self.data();
        if !data.has_allocator {
            return Err(ScopeError::NoAllocator);
        }
        if data.process != std::process::id() {
            return Err(ScopeError::OtherProcess { process: data.process });
        }
        let Some(record) = data.number.as_ref().and_then(|number| tallies::record(number.number())) else {
            let _paused = TagPause::new();
            return Err(ScopeError::NoRoom { scope: data.name.clone().into_owned() });
        };
        if data.missed.load(Ordering::Relaxed) || record.has_missed() {
            return Err(ScopeError::Uncounted);
        }
        let raw = record.figures();
        if raw.lost > 0 {
            return Err(ScopeError::LostBlocks { blocks: raw.lost });
        }
        Ok(raw)
    }

    /// The stacks that allocated in the scope, the largest number of bytes first. `None` if no engine of DMD recorded
    /// when the scope was made.
    pub fn allocation_stacks(&self) -> Option<Vec<ScopeStack>> {
        let _paused = TagPause::new();
        let number = self.data().number.as_ref()?;
        let sites = tallies::record(number.number())?.sites()?;
        Some(ScopeStack::all(sites.counts()))
    }

    /// The stacks that allocated the live blocks of the scope, the largest number of bytes first. `None` if no engine
    /// of DMD recorded when the scope was made.
    pub fn retained_stacks(&self) -> Option<Vec<ScopeStack>> {
        let _paused = TagPause::new();
        let number = self.data().number.as_ref()?.number();
        tallies::record(number)?.sites()?;
        Some(ScopeStack::all(super::heap_figures::live_sites(number)))
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // An outer scope must not count the end of this scope's own memory.
        let _paused = TagPause::new();
        self.0 = None;
    }
}

impl Default for Scope {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scope").field(&self.data().name).finish()
    }
}

/// A future that runs in a scope: see [`Scope::future`].
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited or polled"]
pub struct ScopedFuture<F> {
    pub(super) scope: Scope,
    pub(super) future: ManuallyDrop<F>,
}

/// A scope with its figures at the end of [`Scope::measure`].
#[derive(Clone, Debug)]
pub struct MeasuredScope {
    scope: Scope,
    figures: Result<HeapFigures, ScopeError>,
}

impl MeasuredScope {
    /// The figures at the end of the call.
    ///
    /// # Errors
    ///
    /// Returns the error of [`Scope::figures`].
    pub fn figures(&self) -> Result<HeapFigures, ScopeError> {
        self.figures.clone()
    }

    /// The scope, for its figures at a later time.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// Ends the scope on its thread when dropped: see [`Scope::enter`].
#[derive(Debug)]
#[must_use = "bind the guard to a variable, as in `let _guard = ..`: the scope ends when the guard is dropped, and `let _ = ..` drops the guard at once"]
pub struct ScopeGuard {
    /// The number of this guard on its thread, from 1; 0 if the guard has no effect.
    place: u64,
    one_thread: PhantomData<*const ()>,
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        if self.place != 0 {
            open_guards::close(self.place);
        }
    }
}
