//! Stubs: the portable engine has no engine threads.

use core::ffi::CStr;

use crate::system::bell::Bell;

pub(crate) fn are_possible() -> bool {
    false
}

pub(crate) fn is_engine_thread() -> bool {
    false
}

pub(crate) fn start(
    _: &'static &'static CStr,
    _: Option<&'static Bell>,
    _: Box<dyn FnOnce() + Send>,
) -> bool {
    false
}

pub(crate) fn end() {}

pub(crate) fn pause_point() {}

pub(crate) fn end_if_alone() {}

pub(crate) fn after_fork_in_child() {}

pub(crate) fn continue_waiting() {}
