//! Growing tables in the engine's own pages, for code that does not run in every allocation.

use core::alloc::Layout;
use core::hash::Hash;
use core::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};
use rustc_hash::FxBuildHasher;

use crate::system::memory;

const PAGE: usize = 4096;

/// An allocator that always maps whole pages, for a table or for a dump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageAllocator<const FOR_DUMP: bool>;

/// A list in [`PageAllocator`] memory; [`push`] never panics.
pub(crate) type PageVec<T, const FOR_DUMP: bool = false> =
    allocator_api2::vec::Vec<T, PageAllocator<FOR_DUMP>>;
/// A map in [`PageAllocator`] memory; [`entry`] never panics.
pub(crate) type PageMap<K, V, const FOR_DUMP: bool = false> =
    hashbrown::HashMap<K, V, FxBuildHasher, PageAllocator<FOR_DUMP>>;

/// A list that a dump needs.
pub(crate) type DumpVec<T> = PageVec<T, true>;
/// A map that a dump needs.
pub(crate) type DumpMap<K, V> = PageMap<K, V, true>;

pub(crate) const fn map<K, V, const FOR_DUMP: bool>() -> PageMap<K, V, FOR_DUMP> {
    PageMap::with_hasher_in(FxBuildHasher, PageAllocator)
}

pub(crate) const fn list<T, const FOR_DUMP: bool>() -> PageVec<T, FOR_DUMP> {
    PageVec::new_in(PageAllocator)
}

/// Adds a value to a list. Returns false if memory is short.
pub(crate) fn push<T, const FOR_DUMP: bool>(list: &mut PageVec<T, FOR_DUMP>, value: T) -> bool {
    let room = list.try_reserve(1).is_ok();
    if room {
        list.push(value);
    }
    room
}

/// Copies a list for a dump. Returns `None` if memory is short.
pub(crate) fn copy<T: Copy>(list: &[T]) -> Option<DumpVec<T>> {
    let mut copy = self::list();
    copy.try_reserve_exact(list.len()).ok()?;
    copy.extend_from_slice(list);
    Some(copy)
}

/// The value of a key. Makes the value if the key is not in the map. Returns `None` if memory is short.
pub(crate) fn entry<K: Eq + Hash, V, const FOR_DUMP: bool>(
    map: &mut PageMap<K, V, FOR_DUMP>,
    key: K,
    make: impl FnOnce() -> V,
) -> Option<&mut V> {
    map.try_reserve(1).ok()?;
    Some(map.entry(key).or_insert_with(make))
}

/// The approximate size of a map in bytes.
pub(crate) fn map_bytes<K, V>(map: &PageMap<K, V>) -> usize {
    map.capacity() * (size_of::<(K, V)>() + 1) * 8 / 7
}

// SAFETY: a mapping has one owner until it is unmapped, and it is aligned to a page.
unsafe impl<const FOR_DUMP: bool> Allocator for PageAllocator<FOR_DUMP> {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.align() > PAGE || layout.size() > isize::MAX as usize - PAGE {
            return Err(AllocError);
        }
        let bytes = layout.size().next_multiple_of(PAGE);
        let pages = NonNull::new(if FOR_DUMP { memory::map_for_dump(bytes) } else { memory::map(bytes) });
        let pages = pages.ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(pages, layout.size()))
    }

    unsafe fn deallocate(&self, pages: NonNull<u8>, layout: Layout) {
        let bytes = layout.size().next_multiple_of(PAGE);
        if FOR_DUMP {
            // SAFETY: `allocate` mapped the pages with the same size, rounded up in the same way.
            unsafe { memory::unmap_for_dump(pages.as_ptr(), bytes) };
        } else {
            // SAFETY: `allocate` mapped the pages with the same size, rounded up in the same way.
            unsafe { memory::unmap(pages.as_ptr(), bytes) };
        }
    }
}
