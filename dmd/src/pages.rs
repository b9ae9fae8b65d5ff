//! Growing tables over pages of our own, for what is not on the path of every allocation.

use core::alloc::Layout;
use core::hash::Hash;
use core::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};
use rustc_hash::FxBuildHasher;

use crate::memory;

const PAGE: usize = 4096;

/// Maps whole pages, and nothing smaller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pages;

/// A list over [`Pages`]; [`push`] never panics.
pub(crate) type PageVec<T> = allocator_api2::vec::Vec<T, Pages>;
/// A map over [`Pages`]; [`entry`] never panics.
pub(crate) type PageMap<K, V> = hashbrown::HashMap<K, V, FxBuildHasher, Pages>;

pub(crate) const fn map<K, V>() -> PageMap<K, V> {
    PageMap::with_hasher_in(FxBuildHasher, Pages)
}

pub(crate) const fn list<T>() -> PageVec<T> {
    PageVec::new_in(Pages)
}

/// Adds to a list; false if there is no memory.
pub(crate) fn push<T>(list: &mut PageVec<T>, value: T) -> bool {
    let room = list.try_reserve(1).is_ok();
    if room {
        list.push(value);
    }
    room
}

/// A copy of a list; `None` if there is no memory.
pub(crate) fn copy<T: Copy>(list: &PageVec<T>) -> Option<PageVec<T>> {
    let mut copy = self::list();
    copy.try_reserve_exact(list.len()).ok()?;
    copy.extend_from_slice(list);
    Some(copy)
}

/// The value of a key, made if there is none; `None` if there is no memory.
pub(crate) fn entry<K: Eq + Hash, V>(
    map: &mut PageMap<K, V>,
    key: K,
    make: impl FnOnce() -> V,
) -> Option<&mut V> {
    map.try_reserve(1).ok()?;
    Some(map.entry(key).or_insert_with(make))
}

/// Bytes that a map has taken, nearly.
pub(crate) fn map_bytes<K, V>(map: &PageMap<K, V>) -> usize {
    map.capacity() * (size_of::<(K, V)>() + 1) * 8 / 7
}

// SAFETY: a mapping is not used by anyone else until it is given back, and is aligned to a page.
unsafe impl Allocator for Pages {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.align() > PAGE || layout.size() > isize::MAX as usize - PAGE {
            return Err(AllocError);
        }
        let bytes = layout.size().next_multiple_of(PAGE);
        let pages = NonNull::new(memory::map(bytes)).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(pages, layout.size()))
    }

    unsafe fn deallocate(&self, pages: NonNull<u8>, layout: Layout) {
        // SAFETY: mapped by `allocate` with the same size, rounded up in the same way.
        unsafe { memory::unmap(pages.as_ptr(), layout.size().next_multiple_of(PAGE)) };
    }
}
