//! The traits for a value's heap ([`MallocSizeOf`]), for the elements of containers ([`MallocSizeOfEach`]), and for
//! pointers that own their target ([`SizeOfIncludingThis`]).

use super::ops::MallocSizeOfOps;
use super::reading::{ComputedReading, MeasuredReading, Reading};
use super::walk_state::WalkState;

/// Writes a trait with the messages for types that cannot be measured.
macro_rules! with_messages {
    ($(#[$attribute:meta])* pub trait $name:ident $($rest:tt)*) => {
        #[diagnostic::on_unimplemented(
            message = "the heap of `{Self}` cannot be measured",
            label = "`{Self}` does not implement `MallocSizeOf`",
            note = "if the type is yours, write `#[derive(MallocSizeOf)]` on it, and on its type arguments",
            note = "if the type is a `dyn` value of your own trait, give the trait the supertrait `ErasedMallocSizeOf`, and write `memory_reporter::malloc_size_of_dyn!(TheTrait);`",
            note = "if the type is from another crate, memory-reporter may have a feature for it, named after the crate and its major version: arc-swap1, arrayvec07, bitvec1, bumpalo3, bytes1, chrono04, compact_str010, dashmap6, either1, hashbrown017, indexmap2, lru018, num-bigint05, once_cell1, ordered-float5, parking_lot012, petgraph08, roaring011, serde_json1, slab04, slotmap1, smallvec1, smol_str03, thin-vec02, time03, tinyvec1, tokio1, triomphe01, url2, uuid1",
            note = "if no such feature measures the type, put `#[malloc_size_of(with = path::to::function)]` or `#[malloc_size_of(ignore = \"reason\")]` on the field"
        )]
        $(#[$attribute])*
        pub trait $name $($rest)*
    };
}

with_messages! {
    /// Measures the heap that a value owns. Derive it: `#[derive(MallocSizeOf)]`.
    ///
    /// Corresponds to Firefox's `SizeOfExcludingThis`: it leaves out the value itself, which is in the block of its
    /// owner or on a stack. The heap of an owning pointer (`Box`, `Rc`, `Arc`) *is* its block and the contents of that
    /// block.
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
    pub trait MallocSizeOf {
        /// Whether a value of this type can own heap. It is `false` for plain data, and the walk does not visit the
        /// elements of a container of plain data.
        ///
        /// It is `true` for every container and pointer, for any element type. Otherwise the constant of a recursive
        /// type would depend on itself.
        const NEEDS_WALK: bool = true;

        /// The bytes of heap that this value owns, without the value itself.
        fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize;
    }
}

with_messages! {
    /// A type that can be measured. The derive names field types through this trait. Its only impl has
    /// `do_not_recommend`, so the compiler's errors list no other types.
    pub trait Measurable {
        /// This type.
        type Itself: ?Sized;

        /// Another type, under the same condition.
        type And<Other: ?Sized>: ?Sized;
    }
}

#[diagnostic::do_not_recommend]
impl<T: MallocSizeOf + ?Sized> Measurable for T {
    type Itself = T;
    type And<Other: ?Sized> = Other;
}

with_messages! {
    /// A part of the type `Whole`, if `Whole` can be measured. If not, the compiler's error is about the part.
    #[diagnostic::on_unimplemented(
        note = "if `{Self}` does implement `MallocSizeOf`, then a container around it in `{Whole}` does not"
    )]
    pub trait MeasurableIn<Whole: ?Sized> {
        /// The whole type.
        type Itself: ?Sized;

        /// Another type, under the same condition.
        type And<Other: ?Sized>: ?Sized;
    }
}

#[diagnostic::do_not_recommend]
impl<T: ?Sized, Whole: MallocSizeOf + ?Sized> MeasurableIn<Whole> for T {
    type Itself = Whole;
    type And<Other: ?Sized> = Other;
}

/// A container that can pass each element to a function. So its elements may have foreign types, which cannot
/// implement [`MallocSizeOf`].
#[diagnostic::on_unimplemented(
    message = "the elements of `{Self}` cannot be measured one by one",
    label = "`{Self}` does not implement `MallocSizeOfEach`",
    note = "to measure the field as a whole, put `#[malloc_size_of(with = path::to::function)]` on the field"
)]
pub trait MallocSizeOfEach {
    /// The argument type of the function: `&T` for sequences and sets, `(&K, &V)` for maps.
    type Each<'a>
    where
        Self: 'a;

    /// The bytes of the container's own blocks plus the sum of `each` over all elements.
    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        each: impl FnMut(Self::Each<'a>, &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize;

    /// The bytes of the container's own blocks, as in Firefox's `ShallowSizeOfExcludingThis`.
    fn shallow_size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.size_of_each(ops, |_, _| 0)
    }
}

/// A pointer that owns its target: `Box`, `Rc`, `Arc` and `Pin` of them.
#[diagnostic::on_unimplemented(
    message = "`size_of_including_this` needs an owning pointer, and `{Self}` is not one",
    label = "not an owning pointer",
    note = "rule of thumb: if you measure via an owning pointer (`Box`, `Rc`, `Arc`), use `size_of_including_this`, otherwise `size_of_excluding_this`",
    note = "the owner of the block that holds this value counts that block"
)]
pub trait OwningPointer: MallocSizeOf {}

/// Corresponds to Firefox's `SizeOfIncludingThis`: measures the block of an owning pointer and its contents.
///
/// A call on any other type is a compile error. Its message is Firefox's rule: "via a pointer, including; otherwise,
/// excluding".
///
/// ```
/// use memory_reporter::{MallocSizeOfOps, measure::SizeOfIncludingThis};
///
/// let boxed = Box::new(7_u64);
/// assert_eq!(boxed.size_of_including_this(&mut MallocSizeOfOps::computed()), 8);
/// ```
///
/// ```compile_fail,E0277
/// use memory_reporter::{MallocSizeOfOps, measure::SizeOfIncludingThis};
///
/// let plain = String::new();
/// plain.size_of_including_this(&mut MallocSizeOfOps::computed());
/// ```
pub trait SizeOfIncludingThis {
    /// The bytes of the block that this pointer owns, and of all blocks that its contents own.
    ///
    /// The result equals [`MallocSizeOf::size_of_excluding_this`] of the pointer.
    fn size_of_including_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize
    where
        Self: OwningPointer;
}

/// Every type has the method, so that the error of a wrong call contains the rule instead of "no such method". A call
/// also cannot reach another type's method through `Deref`.
impl<T: ?Sized> SizeOfIncludingThis for T {
    #[inline]
    fn size_of_including_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize
    where
        Self: OwningPointer,
    {
        self.size_of_excluding_this(ops)
    }
}

/// The bytes of heap that `value` owns: usable bytes if the program declared its allocator
/// ([`global_allocator!`](crate::global_allocator)), otherwise bytes computed from layouts.
pub fn malloc_size_of<T: MallocSizeOf + ?Sized>(value: &T) -> usize {
    value.size_of_excluding_this(&mut MallocSizeOfOps::new(MeasuredReading::best(None, WalkState::default())))
}

/// The requested bytes of the heap that `value` owns, computed from layouts. The function calls no allocator.
///
/// Corresponds to Firefox's `ComputedSizeOf`. By convention, your own function that computes a size by arithmetic,
/// without blocks, has a name such as `computed_size_of_something`.
pub fn computed_size_of<T: MallocSizeOf + ?Sized>(value: &T) -> usize {
    value.size_of_excluding_this(&mut MallocSizeOfOps::new(ComputedReading::default()))
}
