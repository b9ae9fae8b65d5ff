//! Implements measuring for the hash tables of other crates.

/// Implements measuring for a hash table. `$parts` are the types of an entry's parts, `$measure` measures an entry, and
/// `$own` counts the blocks of the table.
macro_rules! table {
    ([$($generics:tt)*] $type:ty, [$($part:ident),+], $each:ty, $measure:expr, |$this:ident, $ops:ident| $own:expr) => {
        impl<$($generics)*> MallocSizeOf for $type
        where
            $($part: MallocSizeOf,)+
        {
            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                if $($part::NEEDS_WALK ||)+ ops.wants_names() {
                    self.size_of_each(ops, $measure)
                } else {
                    self.shallow_size_of_excluding_this(ops)
                }
            }
        }

        $crate::measure::impls::map::each_entry!([$($generics)*] $type, $each, |$this, $ops| $own);
    };
}
pub(crate) use table;
