//! A system that nobody has taught this crate yet.

use super::CHeap;

pub(crate) fn c_heap() -> Option<CHeap> {
    None
}

pub(crate) fn trim_c_heap() {}
