//! Bytes that a value states of itself, by its own method such as `memory_usage()`. This crate does not check them.

use super::block::Edge;
use super::ops::{MOST_BYTES, MallocSizeOfOps};
use super::reading::Reading;

/// The edge to the part of a value that is known only by the value's own figure. A size tree shows this name.
pub(super) const STATED: Edge = Edge::Field("(stated)");

/// The type of the part behind [`STATED`]. It differs from the value's type, since a tree merges parts of one type.
struct StatedPart<T: ?Sized>(core::marker::PhantomData<T>);

/// The name of the value's type, extracted from the name of the part's type.
pub(super) fn stated_type(part: &'static str) -> &'static str {
    part.split_once('<').and_then(|(_, rest)| rest.strip_suffix('>')).unwrap_or(part)
}

impl<R: Reading> MallocSizeOfOps<R> {
    /// Counts bytes that `value` states of itself, by a method of its crate such as `memory_usage()`, `heap_bytes()`
    /// or `estimated_size()`, and returns them. Such a method may leave out slop and whole blocks, or count memory
    /// that the value shares or only reserves. So the results distinguish stated bytes:
    ///
    /// - The description of the report shows how many of its bytes are stated, and by which types. Reports of
    ///   [`Reports::split`](crate::Reports::split) do not show this.
    /// - A [`SizeTree`](crate::measure::SizeTree) contains them in a node `(stated)`. A
    ///   [`SizeSummary`](crate::measure::SizeSummary) does not count a block for them.
    /// - With DMD they are reported by amount: the blocks stay unreported, and the row
    ///   `(reported by amount, blocks unknown)` subtracts them.
    ///
    /// `#[malloc_size_of(stated_by = path)]` on a field calls this method.
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
        // A reading that needs names needs no node for these bytes, since they have no block.
        if !self.wants_steps() || self.wants_names() {
            return self.reading().stated(bytes);
        }
        self.step(STATED, &StatedPart::<T>(core::marker::PhantomData), |_, ops| ops.reading().stated(bytes))
    }
}

/// A number of bytes, as methods of other crates return it.
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
            #[allow(unused_comparisons, reason = "the macro also compares unsigned integers with 0")]
            fn bytes(self) -> usize {
                usize::try_from(self).unwrap_or(if self < 0 { 0 } else { usize::MAX })
            }
        }
    )*};
}
integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

/// For the derive: converts any integer into bytes. A negative number is 0 bytes.
#[inline]
pub fn bytes(stated: impl StatedBytes) -> usize {
    stated.bytes()
}
