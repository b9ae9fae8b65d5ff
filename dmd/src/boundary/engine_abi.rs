//! The table of this copy's engine: see [`memory_reporter::engine_abi`].

use core::ffi::{CStr, c_char, c_int, c_void};
use core::slice;
use core::time::Duration;

use memory_reporter::engine_abi::{
    Body, CopyHandle, ENCLOSING, EachBlock, EachFrame, EachName, EachRow, EngineTable, EngineTypeName,
    FOREIGN, FREED, INTERIOR, LogState, MoveRoom, NO_PEER, NOT_HEAP, ON_ALLOC, PROBE, RECORDED, RowsOutcome,
    RunReporters, Sizes,
};

use crate::boundary::with_caller::with_caller;
use crate::boundary::{black_box, dark_matter, dumping, hooks_off, listening, logs, reporter_hosts, sites};
use crate::dump::sizes;
use crate::engine::{
    BlockMove, ENGINE, MarkOptions, MarkOutcome, OfAllocator, Phase, SizeOf, UsableBytes, add_stacks,
};
use crate::options::Mode;
use crate::recording;
use crate::system::path_bytes::path_of;
use crate::system::slot::{Inside, slot};
use crate::system::{copy, error_numbers, internal_alloc, memory, session_peer};
use crate::tables::block_table::FoundBlock;
use crate::tables::mark::{FaultKind, PathId};
use crate::tables::runs;
use crate::tables::stack::Caller;

pub(crate) static TABLE: EngineTable = EngineTable {
    size: size_of::<EngineTable>(),
    is_running,
    add_program,
    record,
    forget,
    begin_move,
    commit_move,
    roll_back_move,
    guard,
    look_at_guard,
    path,
    mark,
    claim,
    withdraw,
    clear_marks,
    is_unreported,
    begin: dark_matter::begin,
    enter: runs::enter,
    new_reporter: runs::new_reporter,
    enter_reporter: runs::enter_reporter,
    end,
    sizes,
    heap,
    site: sites::site,
    site_frames,
    dump: dumping::local_dump,
    report_and_dump,
    reset: dumping::local_reset,
    live_blocks,
    enclosing_site: sites::enclosing_site,
    site_type,
    open_log: logs::open,
    limit_log: logs::limit,
    log_state,
    drain_log,
    close_log: logs::close,
    ticks: logs::ticks,
    may_record,
    start_tracking,
    stop_tracking,
    start_recording,
    unrecorded,
    drain_log_places,
    site_places,
    log_bytes,
    copy_process,
    end_copy,
    usable,
    set_session_peer: session_peer::set,
    working_bytes,
    allocation_failed,
    black_box_folder,
};

const _: () = assert!(
    size_of::<BlockMove>() <= size_of::<MoveRoom>() && align_of::<BlockMove>() <= align_of::<MoveRoom>(),
    "a move fits into the room that programs give for it"
);

/// The table of the engine in this copy of the library. `libdmd.so` exports it as a symbol.
pub fn table() -> *const EngineTable {
    &raw const TABLE
}

/// Connects the engine in this copy of the library with the `memory-reporter` that it is linked with.
pub(crate) fn connect_local() {
    reporter_hosts::pin((&raw const TABLE).cast());
    reporter_hosts::add(memory_reporter::__private::run_reporters);
    // SAFETY: the functions below, and the functions of the modules named in the table, do what the entries of the
    // table describe. They stay valid, since `pin` keeps this library loaded.
    unsafe { memory_reporter::engine_abi::connect(&TABLE) };
}

/// Connects the engine with the `memory-reporter` in the preloaded library.
pub(crate) fn connect_itself() {
    // SAFETY: the functions below, and the functions of the modules named in the table, do what the entries of the
    // table describe. The preloaded library stays loaded.
    unsafe { memory_reporter::engine_abi::connect_itself(&TABLE) };
}

extern "C" fn is_running() -> bool {
    ENGINE.records()
}

extern "C" fn add_program(run_reporters: RunReporters) {
    // The engine does not record allocations that the loader makes during this call.
    let _inside = Inside::deeper();
    reporter_hosts::add(run_reporters);
    listening::stop();
}

with_caller!(
    /// Records a block.
    record(address: *mut c_void, requested: usize, usable: usize), None, "xor ecx, ecx", "mov x3, xzr"
        => record_for, ["r8", "r9"], ["x4", "x5"]
);

with_caller!(
    /// Records a block. `size_of` returns its usable bytes; if `size_of` is `None`, the usable bytes are `usable`.
    ///
    /// # Safety
    ///
    /// The block is valid for `size_of`.
    [unsafe] record_with(address: *mut c_void, requested: usize, usable: usize, size_of: Option<SizeOf>)
        => record_for, ["r8", "r9"], ["x4", "x5"]
);

/// All hooks call this one function directly. If there were further functions between a hook and the engine, a walk of
/// the stack would need one more step for each of them.
///
/// # Safety
///
/// The block is valid for `size_of`.
unsafe extern "C" fn record_for(
    address: *mut c_void,
    requested: usize,
    usable: usize,
    size_of: Option<SizeOf>,
    place: usize,
    fp: usize,
) {
    // `size_of` needs a pointer with provenance.
    let address = address.expose_provenance();
    // SAFETY: the caller guarantees that the block is valid for `size_of`, and the engine gets both together.
    let usable = unsafe { UsableBytes::by(size_of, usable) };
    ENGINE.record(address, requested, usable, Caller::new(place, fp));
    if requested >= black_box::LARGE {
        black_box::expect_use(requested);
    }
}

extern "C" fn forget(address: *mut c_void) {
    ENGINE.forget(address.addr());
}

unsafe extern "C" fn begin_move(address: *mut c_void, room: *mut MoveRoom) {
    // SAFETY: the caller passes room, which is large enough and aligned, as asserted above.
    unsafe { room.cast::<BlockMove>().write(ENGINE.begin_move(address.addr())) };
}

unsafe extern "C" fn commit_move(room: *const MoveRoom) {
    // SAFETY: the caller passes the room as `begin_move` left it.
    ENGINE.commit_move(unsafe { room.cast::<BlockMove>().read() });
}

unsafe extern "C" fn roll_back_move(room: *const MoveRoom) {
    // SAFETY: the caller passes the room as `begin_move` left it.
    ENGINE.roll_back_move(unsafe { room.cast::<BlockMove>().read() });
}

extern "C" fn guard() -> *const c_void {
    (&raw const slot().guard).cast()
}

extern "C" fn look_at_guard() {
    slot().guard.is_set();
}

unsafe extern "C" fn path(text: *const u8, len: usize) -> u32 {
    if ENGINE.setup().options.mode != Mode::DarkMatter {
        // No block is marked with this path.
        return PathId::NONE.0;
    }
    let _inside = Inside::deeper();
    // SAFETY: the caller passes a text of this length.
    ENGINE.marks.path(unsafe { slice::from_raw_parts(text, len) }).0
}

with_caller!(
    /// Marks a block, and returns its usable bytes.
    mark(address: *const c_void, path: u32, flags: u32) -> usize => mark_for, ["rcx", "r8"], ["x3", "x4"]
);

extern "C" fn mark_for(address: *const c_void, path: u32, flags: u32, place: usize, fp: usize) -> usize {
    let has = |flag| flags & flag != 0;
    if has(PROBE) {
        let _inside = Inside::deeper();
        return usize::from(ENGINE.knows_all() && ENGINE.table().get(address.addr()).is_some());
    }
    let allocator = match () {
        () if has(RECORDED) => OfAllocator::Recorded,
        () if has(FOREIGN) => OfAllocator::Foreign,
        () => OfAllocator::Unsaid,
    };
    let options = MarkOptions { on_alloc: has(ON_ALLOC), enclosing: has(ENCLOSING), allocator };
    match ENGINE.report(address.addr(), PathId(path), options, Caller::new(place, fp)) {
        MarkOutcome::Block(usable) => usable,
        MarkOutcome::Unknown => 0,
        MarkOutcome::Fault(FaultKind::Interior) => INTERIOR,
        MarkOutcome::Fault(FaultKind::Freed | FaultKind::FreedSince) => FREED,
        MarkOutcome::Fault(FaultKind::NotHeap) => NOT_HEAP,
    }
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

extern "C" fn clear_marks() {
    ENGINE.clear_reports();
}

extern "C" fn is_unreported(address: *const c_void) -> bool {
    let _inside = Inside::deeper();
    let is_marked = match ENGINE.table().find(address.addr()) {
        FoundBlock::Start(block) | FoundBlock::Inside(_, block) => block.marked,
        FoundBlock::Freed | FoundBlock::Nothing => true,
    };
    // Read the mark before the owner: another run first takes the marks, and then removes them.
    !is_marked && ENGINE.runs.owns_marks()
}

extern "C" fn usable(address: *const c_void) -> usize {
    let _inside = Inside::deeper();
    match ENGINE.table().find(address.addr()) {
        FoundBlock::Start(block) | FoundBlock::Inside(_, block) => block.usable(),
        FoundBlock::Freed | FoundBlock::Nothing => 0,
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
    // SAFETY: the caller passes a valid pointer for the sizes.
    unsafe { sizes.write(told) };
}

extern "C" fn heap(probe: *const c_void) -> u64 {
    let _inside = Inside::deeper();
    if !ENGINE.knows_all() || (!probe.is_null() && ENGINE.table().get(probe.addr()).is_none()) {
        return 0;
    }
    let mut bytes = 0;
    ENGINE.table().for_each(|_, block| bytes += block.usable() as u64);
    bytes
}

unsafe extern "C" fn end(run: runs::RunNumber, context: *mut c_void, each: EachRow) -> RowsOutcome {
    dark_matter::end(run, &mut |row| {
        // SAFETY: the caller passes the context that `each` takes, and waits for this function.
        unsafe { each(context, row) };
    })
}

unsafe extern "C" fn site_frames(site: u64, context: *mut c_void, each: EachFrame) {
    sites::frames(site, &mut |frame| {
        // SAFETY: the caller passes the context that `each` takes, and waits for this function.
        unsafe { each(context, frame) };
    });
}

unsafe extern "C" fn live_blocks(context: *mut c_void, each: EachBlock) {
    sites::live_blocks(&mut |block| {
        // SAFETY: the caller passes the context that `each` takes, and waits for this function.
        unsafe { each(context, block) };
    });
}

unsafe extern "C" fn site_type(site: u64, context: *mut c_void, each: EachName) {
    sites::type_name(site, &mut |name| {
        // SAFETY: the caller passes the context that `each` takes, and waits for this function.
        unsafe { each(context, &EngineTypeName::new(name)) };
    });
}

unsafe extern "C" fn log_state(log: u32, state: *mut LogState) {
    // SAFETY: the caller passes a valid pointer for the state.
    unsafe { state.write(logs::state(log)) };
}

unsafe extern "C" fn drain_log(log: u32, context: *mut c_void, each: EachBlock) {
    logs::drain(log, true, &mut |block| {
        // SAFETY: the caller passes the context that `each` takes, and waits for this function.
        unsafe { each(context, block) };
    });
}

unsafe extern "C" fn drain_log_places(log: u32, state: *mut LogState, context: *mut c_void, each: EachBlock) {
    let contained = logs::drain(log, false, &mut |block| {
        // SAFETY: the caller passes the context that `each` takes, and waits for this function.
        unsafe { each(context, block) };
    });
    // SAFETY: the caller passes a valid pointer for the state.
    unsafe { state.write(contained) };
}

unsafe extern "C" fn site_places(site: u64, context: *mut c_void, each: EachFrame) {
    sites::places(site, &mut |frame| {
        // SAFETY: the caller passes the context that `each` takes, and waits for this function.
        unsafe { each(context, frame) };
    });
}

extern "C" fn working_bytes() -> u64 {
    let _inside = Inside::deeper();
    internal_alloc::live() as u64
}

extern "C" fn allocation_failed(requested: usize) {
    black_box::allocation_failed(requested);
}

unsafe extern "C" fn black_box_folder(context: *mut c_void, each: EachName) -> u64 {
    let first = black_box::first_dump();
    if let Some(folder) = black_box::folder_path().and_then(|folder| str::from_utf8(folder).ok()) {
        // SAFETY: the caller passes the context that `each` takes, and waits for this function.
        unsafe { each(context, &EngineTypeName::new(folder)) };
    }
    first
}

extern "C" fn log_bytes() -> u64 {
    memory::mapped_for_logs() as u64
}

unsafe extern "C" fn report_and_dump(path: *const c_char, milliseconds: u64) -> c_int {
    let deadline = (milliseconds != 0).then(|| Duration::from_millis(milliseconds));
    // SAFETY: the caller passes null or a string that ends in 0.
    unsafe { dumping::local_report_and_dump(path, deadline) }
}

extern "C" fn may_record() -> bool {
    ENGINE.records() || ENGINE.phase() == Phase::Waiting
}

pub(crate) extern "C" fn start_tracking(mean: u64) -> c_int {
    let mean = usize::try_from(mean).unwrap_or(usize::MAX);
    if ENGINE.start_tracking((mean > 0).then_some(mean)) {
        hooks_off::set_off(false);
        return 0;
    }
    if ENGINE.records() || ENGINE.phase() == Phase::Waiting {
        error_numbers::BUSY
    } else {
        dumping::NOT_RUNNING
    }
}

pub(crate) extern "C" fn stop_tracking() {
    session_peer::set(NO_PEER);
    if ENGINE.setup().options.wait_for_track {
        hooks_off::set_off(true);
        recording::end_requested();
        ENGINE.stop_tracking();
    }
}

pub(crate) unsafe extern "C" fn start_recording(path: *const c_char) -> c_int {
    match ENGINE.phase() {
        Phase::Waiting => {}
        Phase::On | Phase::Sampling => return error_numbers::BUSY,
        _ => return dumping::NOT_RUNNING,
    }
    // SAFETY: the caller passes a string that ends in 0.
    let path = unsafe { CStr::from_ptr(path) };
    let path = path_of(path.to_bytes());
    // The file is open before the first block is recorded.
    if let Err(error) = recording::begin_requested(&path) {
        return error.raw_os_error().unwrap_or(error_numbers::BUSY);
    }
    let started = start_tracking(0);
    if started != 0 {
        recording::end_requested();
    }
    started
}

unsafe extern "C" fn copy_process(made: *mut CopyHandle) -> c_int {
    if !ENGINE.records() {
        return dumping::NOT_RUNNING;
    }
    if made.is_null() {
        if slot().guard.is_set() {
            return error_numbers::BUSY;
        }
        let _inside = Inside::deeper();
        return ENGINE.keep_copy(0).map_or_else(|error| error, |()| 0);
    }
    match copy::make(add_stacks) {
        Ok(copy) => {
            // SAFETY: the caller passes a valid pointer for the copy.
            unsafe { made.write(copy) };
            0
        }
        Err(error) => error,
    }
}

extern "C" fn end_copy(copy: CopyHandle) {
    copy::end(copy);
}

unsafe extern "C" fn unrecorded(context: *mut c_void, body: Body) {
    let _inside = Inside::deeper();
    // SAFETY: the caller passes the context that `body` takes, and waits for this function.
    unsafe { body(context) };
}
