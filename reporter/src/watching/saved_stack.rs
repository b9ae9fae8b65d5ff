//! The stack that allocated a block, kept as a value.

use core::fmt;
use std::sync::Arc;

use memory_report::json::push_string;

use crate::engine_abi::{self, SiteFrame};

/// The stack that allocated a block, the innermost frame first, like Firefox's `SavedFrame` with its parents.
///
/// Clones share the frames. If DMD could not walk the stack, there are no frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedStack(Arc<[SiteFrame]>);

impl SavedStack {
    /// The stack with this number.
    pub(super) fn from_site(site: u64) -> Self {
        Self(engine_abi::allocation_frames(site).into())
    }

    /// The stack with this number, with modules and offsets only.
    pub(super) fn places_of_site(site: u64) -> Self {
        Self(engine_abi::allocation_places(site).into())
    }

    /// The frames, the innermost first.
    pub fn frames(&self) -> &[SiteFrame] {
        &self.0
    }

    /// The frames as a JSON array.
    pub(crate) fn to_json(&self) -> String {
        let mut json = String::from("[");
        for (at, frame) in self.0.iter().enumerate() {
            json.push_str(if at == 0 { "{\"functionDisplayName\":" } else { ",{\"functionDisplayName\":" });
            match &frame.function {
                Some(function) => push_string(&mut json, function),
                None => json.push_str("null"),
            }
            json.push_str(",\"source\":");
            push_string(&mut json, &frame.source);
            json.push_str(&format!(",\"line\":{},\"column\":{}}}", frame.line, frame.column));
        }
        json.push(']');
        json
    }
}

/// Writes one line for each frame: `app::load (src/load.rs:12)`.
impl fmt::Display for SavedStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, frame) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            let function = frame.function.as_deref().unwrap_or("???");
            match frame.line {
                0 => write!(f, "{function} ({})", frame.source)?,
                line => write!(f, "{function} ({}:{line})", frame.source)?,
            }
        }
        Ok(())
    }
}

/// The stack that allocated the block around this address. `None` if there is no such block, if DMD does not record
/// this process, or if it recorded no stack for the block.
///
/// The first call reads symbols from the files of the program. This can take a second.
///
/// Source: `Debugger.Object.prototype.allocationSite` of Firefox.
pub fn allocation_site<T: ?Sized>(block: *const T) -> Option<SavedStack> {
    engine_abi::enclosing_site(block.addr()).map(SavedStack::from_site)
}
