//! Which stacks allocated the blocks of this process, for a graph of them.

use core::ffi::c_void;

use memory_reporter::bridge::SiteFrame;

use crate::engine::{ENGINE, Phase};
use crate::table::MAX_TRACE;
use crate::thread::Inside;
use crate::trace_tree::TraceId;

/// The number of the stack that allocated the block which starts here; 0 if there is none.
pub(crate) extern "C" fn site(address: *const c_void) -> u64 {
    if ENGINE.phase() != Phase::On {
        return 0;
    }
    ENGINE.table().get(address.addr()).map_or(0, |block| block.trace.0.into())
}

/// Calls `each` with the frames of a stack, the youngest first; not at all if there is no such stack.
pub(crate) fn frames(site: u64, each: &mut dyn FnMut(&SiteFrame<'_>)) {
    // What is allocated for it goes by, the lookup of symbols above all.
    let _inside = Inside::deeper();
    let Some(trace) = u32::try_from(site).ok().filter(|trace| *trace <= MAX_TRACE) else { return };
    // A panic must not reach the caller, which may be another library.
    let texts = std::panic::catch_unwind(|| texts(TraceId(trace))).unwrap_or_default();
    for text in &texts {
        let (function, place, line) = parts(text);
        each(&SiteFrame::new(function, place, line));
    }
}

#[cfg(feature = "analyze")]
fn texts(trace: TraceId) -> Vec<String> {
    crate::analyze::sites::texts(trace)
}

#[cfg(not(feature = "analyze"))]
fn texts(trace: TraceId) -> Vec<String> {
    let modules = crate::modules::Modules::now();
    let text = |(node, pc)| modules.describe(modules.find(node, pc), pc);
    ENGINE.tree.calls(trace).map(text).collect()
}

/// Function, place and line of `#00: FUNCTION (FILE:LINE)` or `#00: FUNCTION[FILE +0xOFFSET]`.
fn parts(text: &str) -> (&str, &str, u32) {
    let text = text.split_once(": ").map_or(text, |(_, rest)| rest);
    let (function, place) = match text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
        Some(parts) => parts,
        None => match text
            .strip_suffix(']')
            .and_then(|text| Some((text, text[..text.rfind(" +0x")?].rfind('[')?)))
        {
            Some((text, at)) => (&text[..at], &text[at + 1..]),
            None => (text, ""),
        },
    };
    let function = if function == "???" { "" } else { function };
    match place.rsplit_once(':') {
        Some((file, "???")) => (function, file, 0),
        Some((file, line)) => match line.parse() {
            Ok(line) => (function, file, line),
            Err(_) => (function, place, 0),
        },
        None => (function, place, 0),
    }
}
