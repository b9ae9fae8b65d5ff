//! The thread that compresses and writes. A tenth of a second after the last time it takes what every thread has, so
//! that a process that is killed leaves all but its last moments.

use core::sync::atomic::{AtomicU8, Ordering};
use core::time::Duration;

use memory_report::dmd::recording::{ChunkKind, Module};

use crate::dump::modules::{self, Modules};
use crate::recording::output::{Output, output};
use crate::recording::{buffer, names, slots};
use crate::system::background::{self, Bell};
use crate::system::{clock, confined, fork};
use crate::tables::{observers, thread};

/// The time between two passes.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

static BELL: Bell = Bell::new();
static STATE: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = 0;
const RUNS: u8 = 1;
/// The system refused to start one.
const REFUSED: u8 = 2;

/// Whether the thread runs.
pub(super) fn runs() -> bool {
    STATE.load(Ordering::Relaxed) == RUNS
}

/// Starts the thread, unless it runs or the system refused before.
pub(super) fn start() {
    if STATE.compare_exchange(NONE, RUNS, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        && !background::start(run)
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

fn run() {
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
    let mut modules = list_modules();
    let mut changes = loaded_and_unloaded();
    while pass(&modules) {
        wait();
        if confined::all_noted() {
            // A filter may end the process for the next call.
            background::vanish();
        }
        let now = loaded_and_unloaded();
        if now != changes {
            modules = list_modules();
            changes = now;
        }
    }
}

/// How often the program has loaded and unloaded libraries. The caller holds no lock, since the loader has one. In the
/// child of a fork that one may be held for ever, and then nobody is asked.
fn loaded_and_unloaded() -> Option<(u64, u64)> {
    (!fork::is_child()).then(modules::changes)
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
        rings = BELL.rings();
    }
}

/// The modules as recordings have them.
pub(super) fn list_modules() -> Vec<Module> {
    let modules = Modules::now();
    let as_recorded = modules.iter().map(|module| Module {
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
fn pass(modules: &[Module]) -> bool {
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
