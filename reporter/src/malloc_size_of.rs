//! The traits: what a value's heap is ([`MallocSizeOf`]), how containers hand out their elements
//! ([`MallocSizeOfEach`]), and which pointers own what they point to ([`SizeOfIncludingThis`]).

use crate::ops::MallocSizeOfOps;
use crate::reading::{Computed, Measured, Reading};

/// The heap that a value owns. Derive it: `#[derive(MallocSizeOf)]`.
///
/// Firefox's `SizeOfExcludingThis`: the value itself is left out, since it lies in somebody
/// else's block or on a stack. For an owning pointer (`Box`, `Rc`, `Arc`) the heap it owns *is*
/// its block and what that holds.
///
/// ```
/// use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};
///
/// struct Names(Vec<String>);
///
/// impl MallocSizeOf for Names {
///     fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
///         ops.field("0", &self.0)
///     }
/// }
///
/// let names = Names(vec!["ab".into()]);
/// assert_eq!(memory_reporter::computed_size_of(&names), size_of::<String>() + 2);
/// ```
#[diagnostic::on_unimplemented(
    message = "the heap of `{Self}` cannot be measured",
    label = "`{Self}` does not implement `MallocSizeOf`",
    note = "if the type is yours, write `#[derive(MallocSizeOf)]` on it",
    note = "if it is another crate's, put `#[malloc_size_of(with = path::to::function)]` or `#[malloc_size_of(ignore = \"reason\")]` on the field"
)]
pub trait MallocSizeOf {
    /// Whether a value of this type can own heap at all; plain data says `false`, and containers
    /// of it are measured without a look at their elements.
    ///
    /// Containers and pointers say `true` without asking their elements, or recursive types would
    /// ask in circles.
    const NEEDS_WALK: bool = true;

    /// Bytes of heap that this value owns, itself left out.
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize;
}

/// A container whose elements can be measured by any function, so that elements of foreign types,
/// which cannot implement [`MallocSizeOf`], can be measured too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not hand out elements to be measured each",
    label = "`{Self}` does not implement `MallocSizeOfEach`",
    note = "if it is measured as a whole, put `#[malloc_size_of(with = path::to::function)]` on the field"
)]
pub trait MallocSizeOfEach {
    /// What is handed out: `&T` for sequences and sets, `(&K, &V)` for maps.
    type Each<'a>
    where
        Self: 'a;

    /// Bytes of the container's own blocks, and what `each` gives for every element.
    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        each: impl FnMut(Self::Each<'a>, &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize;

    /// Bytes of the container's own blocks; Firefox's `ShallowSizeOfExcludingThis`.
    fn shallow_size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.size_of_each(ops, |_, _| 0)
    }
}

/// A pointer that owns what it points to: `Box`, `Rc`, `Arc` and `Pin` of them.
#[diagnostic::on_unimplemented(
    message = "`size_of_including_this` is only for pointers that own what they point to, and `{Self}` is none",
    label = "not an owning pointer",
    note = "rule of thumb: if you measure via an owning pointer (`Box`, `Rc`, `Arc`), use `size_of_including_this`, otherwise `size_of_excluding_this`",
    note = "the block that holds this value belongs to whoever allocated it, and is counted there"
)]
pub trait OwningPointer: MallocSizeOf {}

/// Firefox's `SizeOfIncludingThis`: the block of an owning pointer and what it holds.
///
/// Calling it on anything else is a compile error that tells the rule: Firefox's "via a pointer,
/// including; otherwise, excluding" as a type error.
///
/// ```
/// use memory_reporter::{MallocSizeOfOps, SizeOfIncludingThis};
///
/// let boxed = Box::new(7_u64);
/// assert_eq!(boxed.size_of_including_this(&mut MallocSizeOfOps::computed()), 8);
/// ```
///
/// ```compile_fail,E0277
/// use memory_reporter::{MallocSizeOfOps, SizeOfIncludingThis};
///
/// let plain = String::new();
/// plain.size_of_including_this(&mut MallocSizeOfOps::computed());
/// ```
pub trait SizeOfIncludingThis {
    /// Bytes of the block that this pointer owns and of all that it holds.
    ///
    /// The same as [`MallocSizeOf::size_of_excluding_this`] of the pointer.
    fn size_of_including_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize
    where
        Self: OwningPointer;
}

/// For every type, so that a wrong call finds this method and says the rule, in place of "no such
/// method" or, through `Deref`, a silent other one.
impl<T: ?Sized> SizeOfIncludingThis for T {
    #[inline]
    fn size_of_including_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize
    where
        Self: OwningPointer,
    {
        self.size_of_excluding_this(ops)
    }
}

/// Bytes of heap that `value` owns, as the allocator counts them where the program declared it
/// ([`global_allocator!`](crate::global_allocator)), else computed from layouts.
pub fn malloc_size_of<T: MallocSizeOf + ?Sized>(value: &T) -> usize {
    match Measured::new() {
        Some(measured) => value.size_of_excluding_this(&mut MallocSizeOfOps::new(measured)),
        None => computed_size_of(value),
    }
}

/// Bytes of heap that `value` asked for, computed from layouts; touches no allocator.
///
/// Firefox's `ComputedSizeOf`. A function of your own that finds a size by arithmetic, without a look at
/// blocks, is by convention called `computed_size_of_something`.
pub fn computed_size_of<T: MallocSizeOf + ?Sized>(value: &T) -> usize {
    value.size_of_excluding_this(&mut MallocSizeOfOps::new(Computed::default()))
}
