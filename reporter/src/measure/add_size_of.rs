//! Several numbers for one value: [`AddSizeOf`].

use super::ops::MallocSizeOfOps;
use super::reading::{MeasuredReading, Reading};
use super::walk_state::WalkState;

/// Adds the heap that a value owns to several numbers of `S`. A reporter reports each number.
///
/// Corresponds to Firefox's `AddSizeOfExcludingThis`: the caller starts from `S::default()`, and the method adds to
/// it, so that one `S` can sum many values. The attribute `#[malloc_size_of(sizes = S)]` derives this trait together
/// with [`MallocSizeOf`](crate::MallocSizeOf). The numbers then add up to the result of `MallocSizeOf`.
///
/// ```standalone_crate
/// use memory_reporter::{MallocSizeOf, computed_size_of, measure::{AddSizeOf, add_size_of}};
///
/// #[derive(Debug, Default, PartialEq)]
/// struct TabSizes {
///     text: usize,
///     images: usize,
///     other: usize,
/// }
///
/// #[derive(MallocSizeOf)]
/// #[malloc_size_of(sizes = TabSizes)]
/// struct Tab {
///     #[malloc_size_of(add_to = text)]
///     title: String,
///     #[malloc_size_of(add_to = images)]
///     images: Vec<Vec<u8>>,
///     /// The vector's own block counts as `other`; each frame splits its own heap.
///     #[malloc_size_of(add_to = other, split)]
///     frames: Vec<Frame>,
///     id: u64,
/// }
///
/// #[derive(MallocSizeOf)]
/// #[malloc_size_of(sizes = TabSizes)]
/// struct Frame {
///     #[malloc_size_of(add_to = text)]
///     text: String,
/// }
///
/// let tab = Tab {
///     title: "a tab".into(),
///     images: vec![vec![0; 100]],
///     frames: vec![Frame { text: "text".into() }],
///     id: 1,
/// };
/// let mut sizes = TabSizes::default();
/// add_size_of(&tab, &mut sizes);
/// assert_eq!(sizes, TabSizes { text: 5 + 4, images: 24 + 100, other: 24 });
/// assert_eq!(sizes.text + sizes.images + sizes.other, computed_size_of(&tab));
/// # assert_eq!(tab.id, 1);
/// ```
#[diagnostic::on_unimplemented(
    message = "the heap of `{Self}` is not split into `{S}`",
    label = "does not implement `AddSizeOf<{S}>`",
    note = "if the type is yours, write `#[malloc_size_of(sizes = {S})]` beside its `#[derive(MallocSizeOf)]`",
    note = "to add the whole heap to one of the sizes, write `add_to = name` without `split`",
    note = "for a container of such values, write `#[malloc_size_of(add_to = name, split)]`: the container's own blocks go to `name`"
)]
pub trait AddSizeOf<S> {
    /// Adds the bytes of heap that this value owns, without the value itself, to `sizes`.
    fn add_size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>, sizes: &mut S);
}

/// Adds the heap that `value` owns to `sizes`, in usable bytes if the program declared its allocator
/// ([`global_allocator!`](crate::global_allocator)), otherwise in bytes computed from layouts.
///
/// A reporter calls [`Reports::split`](crate::Reports::split) instead.
pub fn add_size_of<S, T: AddSizeOf<S> + ?Sized>(value: &T, sizes: &mut S) {
    let mut ops = MallocSizeOfOps::new(MeasuredReading::best(None, WalkState::default()));
    value.add_size_of_excluding_this(&mut ops, sizes);
}
