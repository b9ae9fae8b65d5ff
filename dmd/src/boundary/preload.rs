//! The functions that `libdmd.so` calls.

use core::ffi::{CStr, c_char, c_void};

use memory_reporter::live::ListenOptions;

use crate::boundary::{black_box, ending, engine_abi, listening, recorder};
use crate::engine::{BlockMove, ENGINE, EngineSetup, Phase, SizeOf};
use crate::recording;
use crate::system::errno::keeping_errno;
use crate::system::slot::{Inside, slot};
use crate::system::{engine_threads, process};
use crate::tables::linked_allocators::{self, LinkedAllocator};

/// Whether a preloaded library records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreloadRecording {
    /// The options are not read yet: the library records blocks without stacks.
    Undecided,
    /// The library does not record.
    No,
    /// The library records.
    Yes,
    /// The library records a sample by bytes: [`passes_over`] and [`has_no_record`] decide which blocks are left out.
    Sample,
}

/// Whether the preloaded library records blocks.
#[inline(always)]
pub fn recording() -> PreloadRecording {
    match ENGINE.phase() {
        Phase::Undecided => PreloadRecording::Undecided,
        Phase::Starting | Phase::StartingSession | Phase::Off | Phase::Waiting => PreloadRecording::No,
        Phase::On => PreloadRecording::Yes,
        Phase::Sampling => PreloadRecording::Sample,
    }
}

const NAME: &[u8] = b"DMD=";

/// Reads the environment of the process that loads the library, and starts the engine. Called once, before `main`.
///
/// # Safety
///
/// `environment` is the environment of the process, and the process has no second thread.
pub unsafe fn start_preloaded(environment: *mut *mut c_char) {
    let mut at = environment;
    let (entry, variable) = loop {
        if at.is_null() {
            return ENGINE.switch_off();
        }
        // SAFETY: `at` is not beyond the null that ends the list.
        let entry = unsafe { *at };
        if entry.is_null() {
            return ENGINE.switch_off();
        }
        // SAFETY: strings of the environment end in 0, and are never freed.
        let text: &'static CStr = unsafe { CStr::from_ptr(entry) };
        if text.to_bytes().starts_with(NAME) {
            break (entry, CStr::from_bytes_with_nul(&text.to_bytes_with_nul()[NAME.len()..]).unwrap_or(c""));
        }
        at = at.wrapping_add(1);
    };
    // The program's first allocation may call this function, which must preserve `errno`.
    keeping_errno(|| {
        let Some((setup, first)) = EngineSetup::parse(variable) else { return ENGINE.switch_off() };
        if first.is_none() && process::hands_on(&setup.options) {
            let users = setup.variable.unwrap_or_default();
            // SAFETY: the process has no second thread; `entry` was found in its environment.
            unsafe { process::start_again(environment.cast_const().cast(), entry, users) };
        }
        // SAFETY: the process has no second thread; the pointer is the value of the entry found above.
        unsafe { process::start(first, entry.wrapping_add(NAME.len())) };
        ENGINE.start(setup);
        recording::start();
        recorder::is_preloaded();
        ending::start();
        if !setup.options.children {
            // SAFETY: the process has no second thread; `at` is the entry's place in its environment.
            unsafe { process::leave_out(at) };
        }
    });
}

/// Lets the preloaded library start threads that the C library does not count. The library calls this once, when the
/// loader initializes it, and before it starts a thread.
pub fn prepare_engine_threads() {
    if may_record() {
        let _inside = Inside::deeper();
        keeping_errno(engine_threads::prepare);
    }
}

/// Starts the thread that writes the recording, if there is a recording, and the thread of the black box, if the options
/// ask for it.
pub fn start_threads() {
    recording::start_writer();
    black_box::start();
}

/// Lets a black box write a dump: the allocator has no memory for this many bytes.
pub fn allocation_failed(requested: usize) {
    black_box::allocation_failed(requested);
}

/// Whether the library records, or waits for a request to record.
pub fn may_record() -> bool {
    ENGINE.records() || ENGINE.phase() == Phase::Waiting
}

/// Runs code whose allocations belong to the engine, and keeps `errno`.
pub fn own_allocations(run: impl FnOnce()) {
    let _inside = Inside::deeper();
    keeping_errno(run);
}

/// Stores an allocator that the program links statically. Dumps list it. Only one thread calls this at a time.
pub fn add_linked_allocator(allocator: LinkedAllocator) {
    linked_allocators::add(allocator);
}

/// Calls an allocator that has its own hook. During the call, other hooks do not record the blocks that the allocator
/// takes from them.
#[inline(always)]
pub fn within_allocator<T>(call: impl FnOnce() -> T) -> T {
    slot().guard.around(call)
}

/// Lets the preloaded library answer requests if it records or waits for a request, and `ABOUT_MEMORY` asks for it. The
/// library calls this once, before `main`.
pub fn listen_if_asked() {
    if !may_record() || !memory_reporter::live::is_asked_to_listen() {
        return;
    }
    let _inside = Inside::deeper();
    keeping_errno(|| {
        engine_abi::connect_itself();
        // An error is ignored: the process then has no socket, and other processes cannot find it.
        _ = listening::start(&ListenOptions::new());
    });
}

/// Whether the library samples blocks by bytes and does not sample a new block of this size. A hook calls this once
/// for each block, and does not record the block if the result is true.
#[inline(always)]
pub fn passes_over(requested: usize) -> bool {
    ENGINE.passes_over(requested)
}

/// Whether it is certain that the library has no record of this block.
#[inline(always)]
pub fn has_no_record(block: *mut c_void) -> bool {
    ENGINE.has_no_record(block.addr())
}

/// Records a block. `size_of` returns its usable bytes; if `size_of` is `None`, the usable bytes are the requested
/// bytes. The hook itself calls this: its frame is the innermost of the stack.
///
/// # Safety
///
/// The block is valid for `size_of`.
#[inline(always)]
pub unsafe fn record(block: *mut c_void, requested: usize, size_of: Option<SizeOf>) {
    if ENGINE.phase() == Phase::Undecided {
        // SAFETY: the block is valid for `size_of`: the hook passes the function of the allocator that has just made
        // it.
        let usable = size_of.map_or(requested, |size_of| unsafe { size_of(block) });
        ENGINE.record_early(block.addr(), requested, usable);
    } else {
        // SAFETY: the caller guarantees that the block is valid for `size_of`.
        unsafe { engine_abi::record_with(block, requested, requested, size_of) };
    }
}

/// Forgets a block before the allocator frees it.
#[inline(always)]
pub fn forget(block: *mut c_void) {
    ENGINE.forget(block.addr());
}

/// Forgets a block before the allocator moves it.
#[inline(always)]
pub fn begin_move(block: *mut c_void) -> BlockMove {
    ENGINE.begin_move(block.addr())
}

/// Records that the allocator moved the block.
#[inline(always)]
pub fn commit_move(begun: BlockMove) {
    ENGINE.commit_move(begun);
}

/// Records that the allocator did not move the block.
#[inline(always)]
pub fn roll_back_move(begun: BlockMove) {
    ENGINE.roll_back_move(begun);
}

/// Whether the hook must ignore a block that this thread allocates now: the block belongs to the engine, or another
/// hook records it.
#[inline(always)]
pub fn passes_by() -> bool {
    slot().guard.passes_by()
}
