//! Bytes that a value states of itself, by a method of its own such as `memory_usage()`. This crate does not check them.

use super::block::Edge;
use super::ops::{MOST_BYTES, MallocSizeOfOps};
use super::reading::Reading;

/// The part of a value that is known by its own figure only. A size tree shows it by this name.
pub(super) const STATED: Edge = Edge::Field("(stated)");

/// The type of that part. A tree merges parts of one type, so it is not the value's own.
struct StatedPart<T: ?Sized>(core::marker::PhantomData<T>);

/// The value's type, from the name of the part's type.
pub(super) fn stated_type(part: &'static str) -> &'static str {
    part.split_once('<').and_then(|(_, rest)| rest.strip_suffix('>')).unwrap_or(part)
}

impl<R: Reading> MallocSizeOfOps<R> {
    /// Counts bytes that `value` states of itself, by a method of its crate such as `memory_usage()`, `heap_bytes()` or
    /// `estimated_size()`, and returns them. Such a method can leave slop and whole blocks out, or count memory that the
    /// value shares or only reserves, so the bytes are marked:
    ///
    /// - The description of the report says how many of its bytes are stated, and by values of which types; except for
    ///   reports of what [`Reports::split`](crate::Reports::split) has measured.
    /// - A [`SizeTree`](crate::measure::SizeTree) has them in a node `(stated)`, and a [`SizeSummary`](crate::measure::SizeSummary) in no
    ///   block.
    /// - With DMD they are reported by amount: the blocks stay unreported, and the row `(reported by amount, blocks
    ///   unknown)` subtracts them.
    ///
    /// `#[malloc_size_of(stated_by = path)]` on a field calls it.
    ///
    /// ```
    /// use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};
    ///
    /// # mod foreign { pub struct Index; impl Index { pub fn memory_usage(&self) -> usize { 300 } } }
    /// fn index<R: Reading>(index: &foreign::Index, ops: &mut MallocSizeOfOps<R>) -> usize {
    ///     ops.stated(index, index.memory_usage())
    /// }
    ///
    /// #[derive(MallocSizeOf)]
    /// struct Search {
    ///     #[malloc_size_of(with = index)]
    ///     first: foreign::Index,
    ///     #[malloc_size_of(stated_by = foreign::Index::memory_usage)]
    ///     second: foreign::Index,
    /// }
    ///
    /// let search = Search { first: foreign::Index, second: foreign::Index };
    /// assert_eq!(memory_reporter::computed_size_of(&search), 600);
    /// ```
    pub fn stated<T: ?Sized>(&mut self, value: &T, bytes: usize) -> usize {
        let _ = value;
        let bytes = bytes.min(MOST_BYTES);
        if bytes == 0 {
            return 0;
        }
        self.reading().state().note_stated(core::any::type_name::<T>(), bytes);
        // A reading of names sees no block, so it has no node to name.
        if !self.wants_steps() || self.wants_names() {
            return self.reading().stated(bytes);
        }
        self.step(STATED, &StatedPart::<T>(core::marker::PhantomData), |_, ops| ops.reading().stated(bytes))
    }
}

/// A number of bytes, as the methods of other crates give it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of bytes",
    label = "the function of `stated_by` returns a `{Self}`",
    note = "`stated_by = path` names a function that takes a reference to the field and returns an integer"
)]
pub trait StatedBytes {
    fn bytes(self) -> usize;
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl StatedBytes for $integer {
            #[inline]
            #[allow(unused_comparisons, reason = "of unsigned integers too")]
            fn bytes(self) -> usize {
                usize::try_from(self).unwrap_or(if self < 0 { 0 } else { usize::MAX })
            }
        }
    )*};
}
integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

/// For the derive: any integer as bytes. A negative number is 0 bytes.
#[inline]
pub fn bytes(stated: impl StatedBytes) -> usize {
    stated.bytes()
}
