//! The allocators that the program and its libraries link statically, and whether hooks record their blocks. Only
//! `libdmd.so` adds them.

use std::sync::OnceLock;

/// An allocator in a file.
#[derive(Clone, Debug)]
pub struct LinkedAllocator {
    /// The allocator's name.
    pub name: &'static str,
    /// `the program`, or the name of the library.
    pub place: String,
    /// The number of its functions that have hooks.
    pub functions: usize,
    /// The number of references that were redirected to the hooks.
    pub references: usize,
    /// Which of its blocks are not recorded, and the reason; `None` if all of them are recorded.
    pub obstacle: Option<String>,
}

const MOST: usize = 16;
static ALL: [OnceLock<LinkedAllocator>; MOST] = [const { OnceLock::new() }; MOST];

/// Adds an allocator, unless the list is full. Only one thread at a time calls this.
pub(crate) fn add(allocator: LinkedAllocator) {
    if let Some(place) = ALL.iter().find(|place| place.get().is_none()) {
        let _ = place.set(allocator);
    }
}

/// All allocators, in the order in which they were added.
pub(crate) fn iter() -> impl Iterator<Item = &'static LinkedAllocator> {
    ALL.iter().map_while(OnceLock::get)
}
