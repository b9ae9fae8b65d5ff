//! The thread that compresses and writes. A tenth of a second after the last time it takes what every thread has, so
//! that a process that is killed leaves all but its last moments.

use core::sync::atomic::{AtomicU8, Ordering};
use core::time::Duration;

use dmd_format::recording::{ChunkKind, RecordedModule};

use crate::dump::modules::{self, Modules};
use crate::recording::output::{Output, output};
use crate::recording::{buffer, names, slots};
use crate::system::bell::Bell;
use crate::system::{background, clock, confined, fork, helpers};
use crate::tables::{observers, seen_modules, thread};

/// The time between two passes.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// The thread looks whether it is the last one of the process after this many passes.
const PASSES_TO_LOOK: u64 = 10;

static BELL: Bell = Bell::new();
static STATE: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = 0;
const RUNS: u8 = 1;
/// The system refused to start one.
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

/// For the child of a fork, which has no such thread.
pub(super) fn after_fork_in_child() {
    STATE.store(NONE, Ordering::Relaxed);
}

/// Tells the thread that a buffer waits.
pub(super) fn wake() {
    BELL.ring();
}

/// In the child of a fork that has no file yet: starts a helper, which opens the file in a tenth of a second. Where there are no
/// helpers the child opens it at an event.
pub(super) fn start_to_wait() {
    if helpers::are_possible() {
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
        // A recording may have begun since, and found this thread still there.
        let is_open = output().as_ref().is_some_and(Output::is_open);
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
            // A filter may end the process for the next call.
            background::vanish();
        }
        if passes.is_multiple_of(PASSES_TO_LOOK) {
            helpers::end_if_alone();
        }
        let now = loaded_and_unloaded();
        if now != changes {
            changes = now;
            modules = list_modules();
        }
    }
}

/// How often the program has loaded and unloaded libraries. The caller holds no lock, since the loader has one. In the
/// child of a fork that one may be held for ever, and a helper does not take it: then these are the libraries that were on a
/// stack so far.
fn loaded_and_unloaded() -> (u64, u64) {
    if fork::is_child() || helpers::is_helper() {
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
        helpers::pause_point();
        rings = BELL.rings();
    }
}

/// The modules as recordings have them.
pub(super) fn list_modules() -> Vec<RecordedModule> {
    let modules = Modules::now();
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

/// Takes what every thread has, and writes it. Returns whether the recording goes on.
pub(super) fn pass(modules: &[RecordedModule]) -> bool {
    let tick = clock::ticks();
    hand_over();
    let names = names::take();
    let mut output = output();
    let Some(output) = output.as_mut().filter(|output| output.is_open()) else { return false };
    output.drain();
    output.modules(modules);
    if !names.is_empty() {
        output.chunk(ChunkKind::Threads, &names);
    }
    output.passed(tick);
    output.is_open()
}

/// Puts what every thread has into the queue.
pub(super) fn hand_over() {
    loop {
        let mut is_full = false;
        let mut take = |slot: &slots::Slot| {
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
            if let Some(slot) = slots::of(Some(lease)) {
                take(slot);
            }
        });
        if let Some(slot) = slots::of(None) {
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
