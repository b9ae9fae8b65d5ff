//! The thread that compresses and writes. Every tenth of a second it collects the buffers of all threads. So if the
//! process is killed, only the events of its last moments are missing.

use core::sync::atomic::{AtomicU8, Ordering};
use core::time::Duration;

use dmd_format::recording::{ChunkKind, RecordedModule};

use crate::dump::modules::{self, DumpModules};
use crate::recording::output::{RecordingOutput, output};
use crate::recording::{buffer, names, slots};
use crate::system::bell::Bell;
use crate::system::{background, clock, confined, engine_threads, fork};
use crate::tables::{observers, seen_modules, thread};

/// The time between two passes.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// Once in this many passes, the thread checks whether the process has only engine threads left.
const PASSES_TO_LOOK: u64 = 10;

static BELL: Bell = Bell::new();
static STATE: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = 0;
const RUNS: u8 = 1;
/// The system refused to start a thread.
const REFUSED: u8 = 2;

/// Whether the thread runs.
pub(super) fn runs() -> bool {
    STATE.load(Ordering::Relaxed) == RUNS && !BELL.is_lost()
}

/// Starts the thread, unless it runs or the system refused before.
pub(super) fn start() {
    if STATE.compare_exchange(NONE, RUNS, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        && !background::start(&BELL, run)
    {
        STATE.store(REFUSED, Ordering::Relaxed);
    }
}

/// Resets the state in the child of a fork: the thread does not exist there.
pub(super) fn after_fork_in_child() {
    STATE.store(NONE, Ordering::Relaxed);
}

/// Wakes the writer's thread: a buffer waits to be written.
pub(super) fn wake() {
    BELL.ring();
}

/// In the child of a fork that has no file yet: starts an engine thread that opens the file after a tenth of a second.
/// On systems without engine threads, the child opens the file at an event.
pub(super) fn start_to_wait() {
    if engine_threads::are_possible() {
        start();
    }
}

fn run() {
    if super::is_waiting() {
        wait();
        super::begin_if_waiting();
    }
    loop {
        write_one();
        STATE.store(NONE, Ordering::Release);
        // A request may have started another recording while this thread still counted as running. Then this thread
        // must continue.
        let is_open = output().as_ref().is_some_and(RecordingOutput::is_open);
        let again = || STATE.compare_exchange(NONE, RUNS, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if !is_open || !again() {
            return;
        }
    }
}

/// Writes until the recording ends.
fn write_one() {
    let mut changes = loaded_and_unloaded();
    let mut modules = list_modules();
    for passes in 1_u64.. {
        if !pass(&modules) {
            return;
        }
        wait();
        if confined::all_noted() {
            // A filter may end the process at the next system call.
            background::vanish();
        }
        if passes.is_multiple_of(PASSES_TO_LOOK) {
            engine_threads::end_if_alone();
        }
        let now = loaded_and_unloaded();
        if now != changes {
            changes = now;
            modules = list_modules();
        }
    }
}

/// The numbers of libraries that the program has loaded and unloaded. The caller holds no lock, since the loader takes
/// a lock of its own. In the child of a fork, the loader's lock may never be released. An engine thread must not take
/// the loader's lock. In both cases, the function returns the number of libraries on stacks so far, and 0.
fn loaded_and_unloaded() -> (u64, u64) {
    if fork::is_child() || engine_threads::is_engine_thread() {
        return (seen_modules::noted(), 0);
    }
    modules::changes()
}

/// Writes buffers until it is time for the next pass.
fn wait() {
    let start = clock::nanoseconds();
    let mut rings = BELL.rings();
    loop {
        if confined::all_noted() {
            return;
        }
        let passed = Duration::from_nanos(clock::nanoseconds().saturating_sub(start));
        let Some(left) = PERIOD.checked_sub(passed) else { return };
        if let Some(output) = output().as_mut() {
            output.drain();
        }
        BELL.wait(rings, left);
        engine_threads::pause_point();
        rings = BELL.rings();
    }
}

/// The modules in the format of recordings.
pub(super) fn list_modules() -> Vec<RecordedModule> {
    let modules = DumpModules::now();
    let as_recorded = modules.iter().map(|module| RecordedModule {
        path: module.path.clone(),
        build_id: module.build_id.clone(),
        start: module.start as u64,
        end: module.end as u64,
        bias: module.bias as u64,
        unloaded_since: module.since.map(|node| node.0),
    });
    as_recorded.collect()
}

/// Collects the buffers of all threads and writes them. Returns whether the recording continues.
pub(super) fn pass(modules: &[RecordedModule]) -> bool {
    let tick = clock::ticks();
    hand_over();
    let names = names::take();
    let mut output = output();
    let Some(output) = output.as_mut().filter(|output| output.is_open()) else { return false };
    output.drain();
    output.mappings();
    output.modules(modules);
    if !names.is_empty() {
        output.chunk(ChunkKind::Threads, &names);
    }
    output.passed(tick);
    output.is_open()
}

/// Puts the buffers of all threads into the queue.
pub(super) fn hand_over() {
    loop {
        let mut is_full = false;
        let mut take = |slot: &slots::BufferSlot| {
            let Some(buffer) = slot.take() else { return };
            if buffer.is_empty() {
                return slot.put(buffer);
            }
            let pushed = buffer::queue().push(buffer, true);
            if let Err(buffer) = pushed {
                slot.put(buffer);
                is_full = true;
            }
        };
        thread::hand_over_all(|lease| {
            if let Some(slot) = slots::slot_for(Some(lease)) {
                take(slot);
            }
        });
        if let Some(slot) = slots::slot_for(None) {
            let _held = observers::hold_unknown();
            take(slot);
        }
        if !is_full {
            return;
        }
        if let Some(output) = output().as_mut() {
            output.drain();
        }
    }
}
