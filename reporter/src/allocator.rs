//! The program's global allocator, if the program declared it: the right to ask it about
//! pointers, and the count of its live bytes.
//!
//! Invariant: [`declared`] gives only the static that carries `#[global_allocator]`. Only
//! [`global_allocator!`](crate::global_allocator) makes a [`DeclaredAllocator`], and that macro emits
//! the attribute itself, by a path that no name in the program can shadow. Before it is given out, a
//! block from `std::alloc` must have passed through its static. No other function of this crate hands a
//! pointer to an allocator.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::fmt;
use core::hint::black_box;
use core::sync::atomic::{AtomicU8, Ordering};

use counters::Noted;

pub(crate) mod counters;
#[cfg(feature = "jemalloc")]
mod jemalloc;
#[cfg(feature = "mimalloc")]
mod mimalloc;
mod system;

pub(crate) use counters::heap_allocated_counter;

/// An allocator that knows how large its blocks really are.
///
/// # Safety
///
/// [`usable_size`](Self::usable_size) must be right, and sound to call, for every live block
/// that this allocator returned.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not tell the usable size of its blocks",
    label = "`{Self}` does not implement `UsableSize`",
    note = "implement `UsableSize` for it; `layout.size()` will do for an allocator that knows no more"
)]
#[allow(unsafe_code, reason = "implementing it is a promise about foreign memory")]
pub unsafe trait UsableSize {
    /// Bytes that may be used at `pointer`: at least `layout.size()`, the rest is slop.
    ///
    /// Must not allocate and must not panic: it runs at every allocation and deallocation.
    ///
    /// # Safety
    ///
    /// `pointer` is a live block of this allocator, allocated with `layout`.
    unsafe fn usable_size(&self, pointer: *const u8, layout: Layout) -> usize;

    /// A C function that gives the same answers from the pointer alone, where there is one: it spares a
    /// walk one of the two calls a block.
    fn c_function(&self) -> Option<CUsableSize> {
        None
    }

    /// What the allocator knows of itself.
    fn statistics(&self) -> AllocatorStatistics {
        AllocatorStatistics::default()
    }

    /// Gives unused pages back to the operating system.
    fn purge(&self) {}
}

/// A C function like glibc's `malloc_usable_size`: sound to call for every live block of its allocator.
pub type CUsableSize = unsafe extern "C" fn(*const c_void) -> usize;

/// What an allocator tells of itself, in bytes; `None` is not told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocatorStatistics {
    /// Backed by memory: blocks, headers and free pages that were not given back.
    pub committed: Option<u64>,
    /// Address space taken.
    pub mapped: Option<u64>,
    /// Committed, but in no live block: headers, bookkeeping, free chunks, unused pages.
    pub overhead: Option<u64>,
}

/// The wrapper that [`global_allocator!`](crate::global_allocator) puts around an allocator: it
/// forwards, and counts the usable bytes of live blocks.
#[derive(Debug, Default)]
pub struct Declared<A>(A, Proof);

/// Whether the static that it lies in is the global allocator. Its address is that of no other static,
/// however small the allocator.
#[derive(Debug, Default)]
struct Proof(AtomicU8);

impl Proof {
    /// Nothing was tried yet.
    const NONE: u8 = 0;
    /// Blocks from `std::alloc` pass through the static.
    const FOUND: u8 = 1;
    /// They do not.
    const REFUTED: u8 = 2;
}

impl<A> Declared<A> {
    #[doc(hidden)]
    pub const fn new(allocator: A) -> Self {
        Self(allocator, Proof(AtomicU8::new(Proof::NONE)))
    }
}

#[allow(unsafe_code, reason = "an allocator")]
// SAFETY: every call is forwarded as it is; the counting neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc + UsableSize> GlobalAlloc for Declared<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        let pointer = unsafe { self.0.alloc(layout) };
        self.count_new(pointer, layout);
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        let pointer = unsafe { self.0.alloc_zeroed(layout) };
        self.count_new(pointer, layout);
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the block is live until the next line.
        counters::freed(unsafe { self.0.usable_size(pointer, layout) });
        // SAFETY: the caller's promise is passed on.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the block is live until the next line.
        let before = unsafe { self.0.usable_size(pointer, layout) };
        // SAFETY: the caller's promise is passed on.
        let moved = unsafe { self.0.realloc(pointer, layout, size) };
        if !moved.is_null() {
            counters::freed(before);
            // SAFETY: the caller promises that `size` rounded up to `layout.align()` fits.
            self.count_new(moved, unsafe { Layout::from_size_align_unchecked(size, layout.align()) });
        }
        moved
    }
}

#[allow(unsafe_code, reason = "asks about blocks")]
impl<A: UsableSize> Declared<A> {
    /// # Safety
    ///
    /// `pointer` is a live block of this allocator, allocated with `layout`.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn usable_size(&self, pointer: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.0.usable_size(pointer, layout) }
    }

    #[inline]
    fn count_new(&self, pointer: *mut u8, layout: Layout) {
        if !pointer.is_null() {
            // SAFETY: the allocator has just returned this block for this layout.
            let bytes = unsafe { self.0.usable_size(pointer, layout) };
            counters::allocated(bytes, || Noted::new(pointer, &self.1));
        }
    }
}

/// The program's global allocator: who may be asked about any block that Rust allocated.
pub struct DeclaredAllocator {
    allocator: &'static (dyn UsableSize + Sync),
    proof: &'static Proof,
    /// The allocator's [`UsableSize::usable_size`], without the detour over a vtable.
    usable_size: unsafe fn(*const u8, Layout) -> usize,
    name: fn() -> &'static str,
}

/// [`UsableSize::usable_size`] of one allocator.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AskUsableSize {
    C(CUsableSize),
    Rust(unsafe fn(*const u8, Layout) -> usize),
}

#[allow(unsafe_code, reason = "asks about blocks")]
impl AskUsableSize {
    /// # Safety
    ///
    /// `pointer` is a live block of that allocator, allocated with `layout`.
    #[inline]
    pub(crate) unsafe fn ask(self, pointer: *const u8, layout: Layout) -> usize {
        match self {
            // SAFETY: the caller's promise is passed on.
            Self::C(function) => unsafe { function(pointer.cast()) },
            // SAFETY: the caller's promise is passed on.
            Self::Rust(function) => unsafe { function(pointer, layout) },
        }
    }
}

inventory::collect!(DeclaredAllocator);

#[allow(unsafe_code, reason = "the right to ask is a promise")]
impl DeclaredAllocator {
    /// # Safety
    ///
    /// `declared` is the static that carries `#[global_allocator]`, and `usable_size` is its
    /// [`Declared::usable_size`].
    #[doc(hidden)]
    pub const unsafe fn new<A: UsableSize + Sync>(
        declared: &'static Declared<A>,
        usable_size: unsafe fn(*const u8, Layout) -> usize,
    ) -> Self {
        Self { allocator: &declared.0, proof: &declared.1, usable_size, name: core::any::type_name::<A> }
    }

    /// Whether blocks from `std::alloc` pass through the static; tried once.
    fn is_global(&self) -> bool {
        match self.proof.0.load(Ordering::Relaxed) {
            Proof::NONE => self.prove(),
            proof => proof == Proof::FOUND,
        }
    }

    #[cold]
    fn prove(&self) -> bool {
        let layout = Layout::new::<usize>();
        // SAFETY: the size is not 0.
        let (block, noted) = counters::noted(|| black_box(unsafe { std::alloc::alloc(layout) }));
        if block.is_null() {
            // Without memory there is no answer yet.
            return false;
        }
        // SAFETY: the block was allocated above with this layout.
        unsafe { std::alloc::dealloc(block, layout) };
        let is_global = noted == Noted::new(block, self.proof);
        let proof = if is_global { Proof::FOUND } else { Proof::REFUTED };
        self.proof.0.store(proof, Ordering::Relaxed);
        is_global
    }

    /// Gives the usable bytes of any live block of the program's global allocator, asked with the
    /// layout it was allocated for.
    pub(crate) fn usable_size(&self) -> AskUsableSize {
        self.allocator.c_function().map_or(AskUsableSize::Rust(self.usable_size), AskUsableSize::C)
    }

    /// The allocator's type.
    pub fn name(&self) -> &'static str {
        (self.name)()
    }

    /// What the allocator knows of itself.
    pub fn statistics(&self) -> AllocatorStatistics {
        self.allocator.statistics()
    }

    /// Gives unused pages back to the operating system.
    pub fn purge(&self) {
        self.allocator.purge();
    }
}

impl fmt::Debug for DeclaredAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeclaredAllocator").field(&self.name()).finish()
    }
}

/// The allocator that the program declared with
/// [`global_allocator!`](crate::global_allocator), if it did.
pub fn declared() -> Option<&'static DeclaredAllocator> {
    inventory::iter::<DeclaredAllocator>().find(|declared| declared.is_global())
}

/// Declares the program's global allocator, so that sizes are measured and `heap-allocated` is
/// known. Without it everything is computed from layouts, and still right.
///
/// Takes the place of `#[global_allocator]`, which it emits itself:
///
/// ```
/// use std::alloc::System;
///
/// memory_reporter::global_allocator!(System);
///
/// let text = String::from("usable bytes, slop included");
/// assert!(memory_reporter::malloc_size_of(&text) >= text.capacity());
/// ```
///
/// Any `A: GlobalAlloc + UsableSize` will do: `System`, `tikv_jemallocator::Jemalloc` (feature
/// `jemalloc`), `mimalloc::MiMalloc` (feature `mimalloc`), or your own, with its value if it is
/// no unit struct: `global_allocator!(Arena: Arena::new())`.
#[macro_export]
macro_rules! global_allocator {
    ($allocator:path) => {
        $crate::global_allocator!($allocator: $allocator);
    };
    ($type:ty: $value:expr) => {
        const _: () = {
            #[$crate::__private::global_allocator]
            static DECLARED: $crate::__private::Declared<$type> =
                $crate::__private::Declared::new($value);

            unsafe fn usable_size(pointer: *const u8, layout: ::core::alloc::Layout) -> usize {
                // SAFETY: the caller's promise is passed on.
                unsafe { DECLARED.usable_size(pointer, layout) }
            }

            $crate::__private::inventory::submit! {
                // SAFETY: `DECLARED` carries core's `#[global_allocator]`, and the function asks it.
                unsafe { $crate::__private::DeclaredAllocator::new(&DECLARED, usable_size) }
            }
        };
    };
}
