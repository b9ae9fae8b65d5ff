//! The program's global allocator, if the program declared it: gives the usable sizes of its blocks, and counts its
//! live bytes.
//!
//! Invariant: [`declared`] returns only the static that carries `#[global_allocator]`. Only
//! [`global_allocator!`](crate::global_allocator) makes a [`DeclaredAllocator`], and that macro emits the attribute
//! itself, by a path that no name in the program can shadow. [`declared`] returns a static only after a block from
//! `std::alloc` has passed through this static. Walks pass pointers only to the allocator that [`declared`] returns.

use core::alloc::{GlobalAlloc, Layout};
use core::fmt;
use core::hint::black_box;
use core::sync::atomic::{AtomicU8, Ordering};

use counters::NotedBlock;
use tags::NO_TAG;

pub(crate) mod counters;
#[cfg(feature = "jemalloc07")]
mod jemalloc;
#[cfg(feature = "mimalloc01")]
mod mimalloc;
mod system;
mod with_tag;

pub(crate) mod tags;

pub use crate::platform::CUsableSize;

pub(crate) use counters::{heap_allocated_counter, noted_stacks};

/// An allocator that knows the usable size of its blocks.
///
/// # Safety
///
/// [`usable_size`](Self::usable_size) must be right, and sound to call, for every live block
/// that this allocator returned.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not give the usable size of its blocks",
    label = "`{Self}` does not implement `UsableSize`",
    note = "for `tikv_jemallocator::Jemalloc` turn on the feature `jemalloc07` of memory-reporter, and for `mimalloc::MiMalloc` the feature `mimalloc01`",
    note = "implement `UsableSize` for your own allocator; return `layout.size()` if the allocator does not know the usable size"
)]
#[allow(unsafe_code, reason = "an impl promises that the sizes of blocks are right")]
pub unsafe trait UsableSize {
    /// The bytes that may be used at `pointer`: at least `layout.size()`. The bytes beyond the requested size are
    /// slop.
    ///
    /// An impl must not allocate and must not panic: the function runs at every allocation and deallocation.
    ///
    /// # Safety
    ///
    /// `pointer` is a live block of this allocator, allocated with `layout`.
    unsafe fn usable_size(&self, pointer: *const u8, layout: Layout) -> usize;

    /// A C function that returns the same size from the pointer alone; `None` if the allocator has no such function.
    /// With this function, a walk saves one call for each block.
    fn c_function(&self) -> Option<CUsableSize> {
        None
    }

    /// The allocator's own statistics. By default, no figure is provided.
    fn statistics(&self) -> AllocatorStatistics {
        AllocatorStatistics::default()
    }

    /// Returns unused pages to the operating system. By default, does nothing.
    fn purge(&self) {}
}

/// The statistics of an allocator, in bytes. A field is `None` if the allocator does not provide the figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocatorStatistics {
    /// The bytes backed by memory: blocks, headers, and free pages that the allocator has not returned to the system.
    pub committed: Option<u64>,
    /// The address space that the allocator has reserved, in bytes.
    pub mapped: Option<u64>,
    /// The committed bytes outside of live blocks: headers, bookkeeping, free chunks, unused pages.
    pub overhead: Option<u64>,
}

/// The wrapper that [`global_allocator!`](crate::global_allocator) puts around an allocator. It forwards all calls,
/// and counts the usable bytes of live blocks.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct CountingAllocator<A>(A, GlobalProof);

/// Records whether the static that contains this value is the global allocator. The address of this value is unique:
/// its size is not 0, even if the size of the allocator is 0.
#[derive(Debug, Default)]
struct GlobalProof(AtomicU8);

impl GlobalProof {
    /// The test has not run yet.
    const NONE: u8 = 0;
    /// Blocks from `std::alloc` pass through the static.
    const FOUND: u8 = 1;
    /// Blocks from `std::alloc` do not pass through the static.
    const REFUTED: u8 = 2;
}

impl<A> CountingAllocator<A> {
    #[doc(hidden)]
    pub const fn new(allocator: A) -> Self {
        Self(allocator, GlobalProof(AtomicU8::new(GlobalProof::NONE)))
    }
}

#[allow(unsafe_code, reason = "an allocator")]
// SAFETY: `A` fulfills the contract of `GlobalAlloc`. Each call passes to `A` the layout with which `A` allocated the
// block: the program's layout or, for a block with a tag, the layout that `raised` returns, which is at least as large
// and as aligned. The code that counts does not unwind.
unsafe impl<A: GlobalAlloc + UsableSize> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let tag = tags::current();
        if tag != NO_TAG {
            // SAFETY: the caller of this method guarantees that the size of `layout` is not 0.
            return unsafe { self.alloc_with_tag(layout, tag, A::alloc) };
        }
        // SAFETY: the caller of this method guarantees that the size of `layout` is not 0, which is all `A` requires.
        let pointer = unsafe { self.0.alloc(layout) };
        self.count_new(pointer, layout);
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let tag = tags::current();
        if tag != NO_TAG {
            // SAFETY: the caller of this method guarantees that the size of `layout` is not 0.
            return unsafe { self.alloc_with_tag(layout, tag, A::alloc_zeroed) };
        }
        // SAFETY: the caller of this method guarantees that the size of `layout` is not 0, which is all `A` requires.
        let pointer = unsafe { self.0.alloc_zeroed(layout) };
        self.count_new(pointer, layout);
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let layout = tags::remove_at_end(pointer, layout);
        // SAFETY: the caller guarantees a live block of `self`; `self.0` allocated it with this layout, and the next line
        // frees it.
        counters::freed(unsafe { self.0.usable_size(pointer, layout) });
        // SAFETY: the caller guarantees a live block of `self`; `self.0` allocated it with this layout.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if tags::tag_of(pointer) != NO_TAG || tags::current() != NO_TAG {
            // SAFETY: the caller guarantees a live block of `self` with this layout, and a valid size that is not 0.
            return unsafe { self.realloc_with_tag(pointer, layout, size) };
        }
        // SAFETY: the caller guarantees a live block of `self` with this layout; `self.0` allocated it, and only the
        // next line can free it.
        let before = unsafe { self.0.usable_size(pointer, layout) };
        // SAFETY: the caller guarantees a live block of `self` with this layout, which `self.0` allocated, and a
        // valid size that is not 0.
        let moved = unsafe { self.0.realloc(pointer, layout, size) };
        if !moved.is_null() {
            counters::freed(before);
            // SAFETY: the caller guarantees that `size`, rounded up to `layout.align()`, does not exceed `isize::MAX`.
            self.count_new(moved, unsafe { Layout::from_size_align_unchecked(size, layout.align()) });
        }
        moved
    }
}

#[allow(unsafe_code, reason = "passes blocks to the allocator")]
impl<A: UsableSize> CountingAllocator<A> {
    /// # Safety
    ///
    /// `pointer` is a live block of this allocator, allocated with `layout`.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn usable_size(&self, pointer: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller guarantees a live block of `self`; `self.0` allocated it with the layout that `layout_of`
        // returns.
        unsafe { self.0.usable_size(pointer, tags::layout_of(pointer, layout)) }
    }

    #[inline]
    fn count_new(&self, pointer: *mut u8, layout: Layout) {
        if !pointer.is_null() {
            // SAFETY: the callers pass a block that `self.0` has just returned for this layout.
            let bytes = unsafe { self.0.usable_size(pointer, layout) };
            self.count_bytes(pointer, bytes);
        }
    }

    #[inline]
    fn count_bytes(&self, pointer: *mut u8, bytes: usize) {
        counters::allocated(bytes, || NotedBlock::new(pointer, &self.1));
    }
}

/// The program's global allocator. It returns the usable size of any block that Rust allocated.
pub struct DeclaredAllocator {
    allocator: &'static (dyn UsableSize + Sync),
    proof: &'static GlobalProof,
    /// The allocator's [`UsableSize::usable_size`], without a call through a vtable.
    usable_size: unsafe fn(*const u8, Layout) -> usize,
    name: fn() -> &'static str,
}

/// The function behind [`UsableSize::usable_size`] of one allocator.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AskUsableSize {
    C(CUsableSize),
    Rust(unsafe fn(*const u8, Layout) -> usize),
}

#[allow(unsafe_code, reason = "passes blocks to the allocator")]
impl AskUsableSize {
    /// # Safety
    ///
    /// `pointer` is a live block of the allocator of this function, allocated with `layout`.
    #[inline]
    pub(crate) unsafe fn ask(self, pointer: *const u8, layout: Layout) -> usize {
        match self {
            // SAFETY: the caller guarantees a live block of the allocator that returned `function` from `c_function`.
            // `UsableSize` guarantees that the function is sound for every live block of this allocator.
            Self::C(function) => unsafe { function(pointer.cast()) },
            // SAFETY: `function` is the `usable_size` of an allocator. The caller guarantees a live block of this
            // allocator with this layout.
            Self::Rust(function) => unsafe { function(pointer, layout) },
        }
    }
}

inventory::collect!(DeclaredAllocator);

#[allow(unsafe_code, reason = "the caller promises a valid static")]
impl DeclaredAllocator {
    /// # Safety
    ///
    /// `declared` is the static that carries `#[global_allocator]`, and `usable_size` is its
    /// [`CountingAllocator::usable_size`].
    #[doc(hidden)]
    pub const unsafe fn new<A: UsableSize + Sync>(
        declared: &'static CountingAllocator<A>,
        usable_size: unsafe fn(*const u8, Layout) -> usize,
    ) -> Self {
        Self { allocator: &declared.0, proof: &declared.1, usable_size, name: core::any::type_name::<A> }
    }

    /// Whether blocks from `std::alloc` pass through the static. The first call tests it.
    fn is_global(&self) -> bool {
        match self.proof.0.load(Ordering::Relaxed) {
            GlobalProof::NONE => self.prove(),
            proof => proof == GlobalProof::FOUND,
        }
    }

    #[cold]
    fn prove(&self) -> bool {
        let layout = Layout::new::<usize>();
        // SAFETY: the size of `usize` is not 0.
        let (block, noted) = counters::noted(|| black_box(unsafe { std::alloc::alloc(layout) }));
        if block.is_null() {
            // The system has no memory: the next call repeats the test.
            return false;
        }
        // SAFETY: `std::alloc` allocated the block above with this layout, and it is not null.
        unsafe { std::alloc::dealloc(block, layout) };
        let is_global = noted == NotedBlock::new(block, self.proof);
        let proof = if is_global { GlobalProof::FOUND } else { GlobalProof::REFUTED };
        self.proof.0.store(proof, Ordering::Relaxed);
        is_global
    }

    /// The function that returns the usable bytes of a live block of the program's global allocator, from the block's
    /// pointer and layout.
    pub(crate) fn usable_size(&self) -> AskUsableSize {
        self.allocator.c_function().map_or(AskUsableSize::Rust(self.usable_size), AskUsableSize::C)
    }

    /// The name of the allocator's type.
    pub fn name(&self) -> &'static str {
        (self.name)()
    }

    /// The allocator's own statistics.
    pub fn statistics(&self) -> AllocatorStatistics {
        self.allocator.statistics()
    }

    /// Returns unused pages to the operating system.
    pub fn purge(&self) {
        self.allocator.purge();
    }
}

impl fmt::Debug for DeclaredAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeclaredAllocator").field(&self.name()).finish()
    }
}

/// The allocator that the program declared with [`global_allocator!`](crate::global_allocator); `None` without a
/// declaration.
pub fn declared() -> Option<&'static DeclaredAllocator> {
    inventory::iter::<DeclaredAllocator>().find(|declared| declared.is_global())
}

/// Declares the program's global allocator. This crate then measures sizes with the allocator, and reports
/// `heap-allocated`. Without a declaration it computes sizes from layouts: the requested bytes, without slop.
///
/// The macro emits `#[global_allocator]` itself, so a program uses it instead of the attribute:
/// ```standalone_crate
/// use std::alloc::System;
///
/// memory_reporter::global_allocator!(System);
///
/// let text = String::from("usable bytes, slop included");
/// assert!(memory_reporter::malloc_size_of(&text) >= text.capacity());
/// ```
///
/// The macro accepts any `A: GlobalAlloc + UsableSize`: `System`, `tikv_jemallocator::Jemalloc` (feature
/// `jemalloc07`), `mimalloc::MiMalloc` (feature `mimalloc01`), or your own allocator. If the allocator is not a unit
/// struct, add its value: `global_allocator!(Arena: Arena::new())`.
#[macro_export]
macro_rules! global_allocator {
    ($($declaration:tt)*) => {
        $crate::__global_allocator!(@sort [$($declaration)*] $($declaration)*);
    };
}

/// The rules of [`global_allocator!`](crate::global_allocator).
#[doc(hidden)]
#[macro_export]
macro_rules! __global_allocator {
    (@no_type) => {
        ::core::compile_error!(
            "write `global_allocator!(TYPE: VALUE)`, as in `global_allocator!(Dmd<System>: Dmd::new(System))`"
        );
    };
    // A value without its type ends in parentheses or braces, and has no colon. The rules below must not receive such
    // a value: they would parse `new(..)` as a type with arguments.
    (@sort [$($all:tt)*] : $($rest:tt)*) => { $crate::__global_allocator!(@declare $($all)*); };
    (@sort [$($all:tt)*] ($($arguments:tt)*)) => { $crate::__global_allocator!(@no_type); };
    (@sort [$($all:tt)*] {$($fields:tt)*}) => { $crate::__global_allocator!(@no_type); };
    (@sort [$($all:tt)*] $last:tt) => { $crate::__global_allocator!(@declare $($all)*); };
    (@sort [$($all:tt)*] $next:tt $($rest:tt)+) => { $crate::__global_allocator!(@sort [$($all)*] $($rest)+); };
    (@sort []) => { $crate::__global_allocator!(@no_type); };
    (@declare $allocator:path) => {
        $crate::__global_allocator!(@declare $allocator: $allocator);
    };
    (@declare $type:ty: $value:expr) => {
        const _: () = {
            #[$crate::__private::global_allocator]
            static DECLARED: $crate::__private::CountingAllocator<$type> =
                $crate::__private::CountingAllocator::new($value);

            unsafe fn usable_size(pointer: *const u8, layout: ::core::alloc::Layout) -> usize {
                // SAFETY: the caller guarantees a live block of `DECLARED` with this layout: only `DeclaredAllocator`
                // calls this function, and its callers give this guarantee.
                unsafe { DECLARED.usable_size(pointer, layout) }
            }

            $crate::__private::inventory::submit! {
                // SAFETY: this macro puts core's `#[global_allocator]` on `DECLARED`, and `usable_size` calls the
                // method of `DECLARED`.
                unsafe { $crate::__private::DeclaredAllocator::new(&DECLARED, usable_size) }
            }
        };
    };
    (@declare $($other:tt)*) => { $crate::__global_allocator!(@no_type); };
}
