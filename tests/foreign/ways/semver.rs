use std::alloc::Layout;

use memory_reporter::{MallocSizeOfOps, Reading};
use semver::Version;

pub fn measure<R: Reading>(version: &Version, ops: &mut MallocSizeOfOps<R>) -> usize {
    // Up to 8 bytes are stored in place. A block contains the length before the text.
    let mut text = |text: &str| if text.len() > 8 { ops.enclosing(text, Layout::for_value(text)) } else { 0 };
    text(&version.pre) + text(&version.build)
}
