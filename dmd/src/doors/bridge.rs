//! The engine's functions for a program that links `memory-reporter`: to mark blocks, and to look them up. See
//! [`memory_reporter::bridge`].

use core::ffi::{c_char, c_int, c_void};
use core::slice;
use core::time::Duration;

use memory_reporter::bridge::{EachFrame, EachRow, Engine, Program, Rows, Sizes};

use crate::doors::with_caller::with_caller;
use crate::doors::{dark_matter, dumping, reporter_hosts, sites};
use crate::dump::sizes;
use crate::engine::{ENGINE, Phase};
use crate::options::Mode;
use crate::system::slot::Inside;
use crate::tables::block_table::Found;
use crate::tables::mark::PathId;
use crate::tables::runs;
use crate::tables::runs::Run;

// SAFETY: the functions below and those of the modules named here only compare the addresses that callers pass.
// They pass contexts on unchanged, before they return, and catch panics. They stay valid, since nobody unloads the
// library.
static TABLE: Engine = unsafe {
    Engine::new(
        path,
        mark,
        mark_on_alloc,
        mark_enclosing,
        claim,
        sizes,
        report_and_dump,
        heap,
        dark_matter::begin,
        runs::enter,
        end,
        sites::site,
        site_frames,
        is_unreported,
        runs::new_reporter,
        runs::enter_reporter,
        withdraw,
    )
};

/// Takes a program's functions and returns the engine's; null if nothing is recorded. `DMDConnect1` of `libdmd.so`
/// calls this: the loader must not find a program's own copy of it instead.
///
/// # Safety
///
/// `program` is null or from [`memory_reporter::bridge::program`] of any library.
pub unsafe fn connect_program(program: *const Program) -> *const Engine {
    // SAFETY: the caller passes null or a static table, and `add` keeps its library loaded.
    let program: Option<&'static Program> = unsafe { program.as_ref() };
    let (Some(program), Phase::On) = (program, ENGINE.phase()) else { return core::ptr::null() };
    // The loader's allocations for this are not recorded.
    let _inside = Inside::deeper();
    reporter_hosts::add(program);
    &raw const TABLE
}

/// Connects the engine in this copy of the library with the `memory-reporter` that it is linked with.
pub(crate) fn connect_local() {
    reporter_hosts::pin((&raw const TABLE).cast());
    reporter_hosts::add(memory_reporter::bridge::program());
    memory_reporter::bridge::connect(&TABLE);
}

unsafe extern "C" fn path(text: *const u8, len: usize) -> u32 {
    if ENGINE.setup().options.mode != Mode::DarkMatter {
        // No block is marked with it.
        return PathId::NONE.0;
    }
    let _inside = Inside::deeper();
    // SAFETY: `memory_reporter::bridge` passes a string.
    ENGINE.marks.path(unsafe { slice::from_raw_parts(text, len) }).0
}

with_caller!(
    /// Marks the block that starts here.
    mark(address: *const c_void, path: u32) -> usize => mark_for, "rdx", "x2"
);

extern "C" fn mark_for(address: *const c_void, path: u32, caller: usize) -> usize {
    ENGINE.report(address.addr(), PathId(path), false, false, caller)
}

with_caller!(
    /// Marks the block that starts here for as long as it lives.
    mark_on_alloc(address: *const c_void, path: u32) -> usize => mark_on_alloc_for, "rdx", "x2"
);

extern "C" fn mark_on_alloc_for(address: *const c_void, path: u32, caller: usize) -> usize {
    ENGINE.report(address.addr(), PathId(path), true, false, caller)
}

with_caller!(
    /// Marks the block that has the address inside.
    mark_enclosing(address: *const c_void, path: u32) -> usize => mark_enclosing_for, "rdx", "x2"
);

extern "C" fn mark_enclosing_for(address: *const c_void, path: u32, caller: usize) -> usize {
    ENGINE.report(address.addr(), PathId(path), false, true, caller)
}

extern "C" fn claim(path: u32, bytes: u64) {
    let _inside = Inside::deeper();
    if ENGINE.runs.may_mark() {
        ENGINE.marks.claim(PathId(path), bytes);
    }
}

extern "C" fn withdraw(reporter: u32, path: u32, claimed: u64) {
    let _inside = Inside::deeper();
    ENGINE.withdraw(reporter as u16, PathId(path));
    if ENGINE.runs.may_mark() {
        ENGINE.marks.disclaim(PathId(path), claimed);
    }
}

unsafe extern "C" fn sizes(sizes: *mut Sizes) {
    let _inside = Inside::deeper();
    let ours = sizes::sizes();
    let told = Sizes {
        traces_used: ours.traces_used as u64,
        traces_unused: ours.traces_unused as u64,
        trace_table: ours.trace_table as u64,
        live_blocks: ours.live_blocks as u64,
        dead_blocks: ours.dead_blocks as u64,
        marks: ours.marks as u64,
        threads: ours.threads as u64,
    };
    // SAFETY: `memory_reporter::bridge` passes a place for the sizes.
    unsafe { sizes.write(told) };
}

unsafe extern "C" fn report_and_dump(path: *const c_char, milliseconds: u64) -> c_int {
    // SAFETY: `memory_reporter::bridge` passes a string that ends in 0.
    unsafe { dumping::report_and_write(path, Some(Duration::from_millis(milliseconds))) }
}

extern "C" fn heap(probe: *const c_void) -> u64 {
    let _inside = Inside::deeper();
    let are_all = ENGINE.setup().options.sample_below.is_none() && ENGINE.dropped() == 0;
    if !are_all || ENGINE.table().get(probe.addr()).is_none() {
        return 0;
    }
    let mut bytes = 0;
    ENGINE.table().for_each(|_, block| bytes += block.usable() as u64);
    bytes
}

unsafe extern "C" fn end(run: Run, context: *mut c_void, each: EachRow) -> Rows {
    dark_matter::end(run, &mut |row| {
        // SAFETY: the program passes the context that `each` takes, and waits for this function.
        unsafe { each(context, row) };
    })
}

unsafe extern "C" fn site_frames(site: u64, context: *mut c_void, each: EachFrame) {
    sites::frames(site, &mut |frame| {
        // SAFETY: the program passes the context that `each` takes, and waits for this function.
        unsafe { each(context, frame) };
    });
}

extern "C" fn is_unreported(address: *const c_void) -> bool {
    let _inside = Inside::deeper();
    let is_marked = match ENGINE.table().find(address.addr()) {
        Found::Start(block) | Found::Inside(_, block) => block.marked,
        Found::Freed | Found::Nothing => true,
    };
    // The order matters: another run first takes the marks, and then removes them.
    !is_marked && ENGINE.runs.owns_marks()
}
