//! The sizes of the engine's own tables.

use crate::engine::ENGINE;
use crate::system::log::say;
use crate::system::memory;
use crate::tables::{stack, thread};

/// The sizes in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TableSizes {
    pub(crate) traces_used: usize,
    pub(crate) traces_unused: usize,
    pub(crate) trace_table: usize,
    pub(crate) live_blocks: usize,
    pub(crate) dead_blocks: usize,
    pub(crate) marks: usize,
    pub(crate) threads: usize,
    pub(crate) unwinding: usize,
}

pub(crate) fn sizes() -> TableSizes {
    let (traces_used, traces_unused, trace_table) = ENGINE.tree().bytes();
    TableSizes {
        // This includes the table of changes since the peak.
        traces_used: traces_used + ENGINE.peak().mapped(),
        traces_unused,
        trace_table,
        live_blocks: ENGINE.table().touched(),
        dead_blocks: ENGINE.dead.bytes(),
        marks: ENGINE.marks.bytes(),
        threads: thread::bytes(),
        unwinding: stack::bytes(),
    }
}

/// Writes all sizes to stderr, under Firefox's heading.
pub(crate) fn say_all() {
    let sizes = sizes();
    say(format_args!("  Execution measurements {{"));
    say(format_args!(
        "    Stack traces: {} nodes, {} bytes used, {} unused",
        ENGINE.tree().nodes(),
        sizes.traces_used,
        sizes.traces_unused
    ));
    say(format_args!("    Stack trace table: {} bytes", sizes.trace_table));
    say(format_args!(
        "    Live block table: {} bytes touched, {} mapped",
        sizes.live_blocks,
        ENGINE.table().mapped()
    ));
    say(format_args!("    Dead block table: {} bytes", sizes.dead_blocks));
    say(format_args!("    Reports: {} bytes", sizes.marks));
    say(format_args!("    Threads: {} bytes", sizes.threads));
    say(format_args!("    Unwind rules: {} bytes mapped", sizes.unwinding));
    say(format_args!("    Logs: {} bytes mapped", memory::mapped_for_logs()));
    say(format_args!("    All: {} bytes mapped", memory::mapped()));
    say(format_args!(
        "    Dropped: {} blocks, {} freed blocks, {} reports, {} frames",
        ENGINE.dropped(),
        ENGINE.dropped_dead(),
        ENGINE.dropped_reports(),
        ENGINE.tree().cut()
    ));
    say(format_args!("  }}"));
}
