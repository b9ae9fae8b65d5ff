//! Records all events into a file in the format `dmd_format::recording`.
//!
//! A thread encodes its events into its own buffer, in the same step that updates the peak. Full buffers go into a
//! bounded queue. An engine thread compresses and writes them, so that the program does not wait for the disk. If the
//! queue is full, or the engine thread is missing, the thread with the full buffer writes the queue and then its own
//! buffer. So memory is bounded, and each thread's events stay in order.
//!
//! The child of a fork starts its own file when it has filled a buffer, has started a thread, has lived for a tenth of
//! a second after its first event, or ends. It waits until then because most children replace themselves by another
//! program first.
//!
//! A thread takes locks in this order: the lock of its lease, then the lock of the queue or of the file. The thread
//! that holds the file's lock takes no lock of a lease, and does not call the loader.

#[allow(unsafe_code, reason = "buffers in the engine's own memory")]
mod buffer;
mod live;
mod names;
mod output;
#[allow(unsafe_code, reason = "buffers that change their owners")]
mod slots;
mod writer;

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use dmd_format::recording::{self as format, BlockAction, ChunkKind, LiveBlock, RecordedProcess};

use crate::dump::file;
use crate::engine::ENGINE;
use crate::options::Run;
use crate::system::errno::keeping_errno;
use crate::system::lock::Lock;
use crate::system::slot::Inside;
use crate::system::{clock, confined, internal_alloc, log, memory, own_stack, process, raw_file, signals};
use crate::tables::events::{EventKind, TableEvent};
use crate::tables::mappings::MAPPINGS;
use crate::tables::observers::{self, EventBatch, EventSource, Observer, ObserverPlace};
use crate::tables::statistics::BlockEnd;
use crate::tables::thread;
use buffer::OwnedBuffer;
use live::EventsBefore;
use output::{RecordingOutput, output};

static RECORDING: ProcessRecording = ProcessRecording {
    state: AtomicU8::new(OFF),
    process: AtomicU32::new(0),
    forked_from: AtomicU32::new(0),
    since: AtomicU64::new(0),
    lost: AtomicU64::new(0),
    lost_before: AtomicU64::new(0),
    dropped_before: AtomicU64::new(0),
};

struct ProcessRecording {
    state: AtomicU8,
    /// The process whose events are recorded.
    process: AtomicU32,
    /// The parent, if a fork made this process.
    forked_from: AtomicU32,
    /// The time at which a thread of the program last wrote its buffer; before that, the time of the start or of the
    /// fork. In nanoseconds of the system's monotonic clock.
    since: AtomicU64,
    /// The number of lost events: memory was short, or the file could not be written.
    lost: AtomicU64,
    /// The number of events that observers had lost when the recording started.
    lost_before: AtomicU64,
    /// The number of blocks that the engine had dropped when a request started the recording.
    dropped_before: AtomicU64,
}

/// Nothing is recorded.
const OFF: u8 = 0;
/// The process is the child of a fork, and has no file yet.
const WAITING: u8 = 1;
const ON: u8 = 2;
/// The recording has ended. A request may start another one.
const ENDED: u8 = 3;
/// A request is starting a recording.
const STARTING: u8 = 4;

/// Whether this process has a recording that has not ended, or may still start one.
pub(crate) fn is_on() -> bool {
    RECORDING.is_on()
}

/// Registers the recording as an observer. If the process may have several threads, call it before the engine starts:
/// from then on, a fork takes the locks of all registered observers, and must release the same locks.
pub(crate) fn register() {
    observers::register(ObserverPlace::Recording, &RECORDING);
}

/// Opens the file and starts to record, if the options contain `--record`. Called once, when the engine has started.
pub(crate) fn start() {
    let options = ENGINE.setup().options;
    if options.wait_for_track {
        // A later request may start a recording.
        register();
    }
    if options.record.is_none() || options.run != Run::Normal {
        return;
    }
    calmly(|| {
        RECORDING.process.store(std::process::id(), Ordering::Relaxed);
        RECORDING.since.store(clock::nanoseconds(), Ordering::Relaxed);
        let pattern = options.record.filter(|_| internal_alloc::is_ready());
        if RECORDING.open_of(pattern, &mut output(), &live::now(), &EventsBefore::new()) {
            thread::observe(ObserverPlace::Recording, &RECORDING);
        }
    });
}

/// Starts a recording into this file, as a request asks. The engine records no block yet: the file will contain every
/// block from this call on, and no older block.
///
/// # Errors
///
/// Returns the system's error if the file cannot be opened, and `ResourceBusy` if there is a recording already.
pub(crate) fn begin_requested(path: &Path) -> io::Result<()> {
    let free = [OFF, ENDED].into_iter().any(|state| {
        RECORDING.state.compare_exchange(state, STARTING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    });
    if !free {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    calmly(|| {
        // Buffers of other threads contain events of an earlier recording.
        thread::hand_over_all(|lease| {
            if let Some(slot) = slots::slot_for(Some(lease)) {
                slot.empty();
            }
        });
        if let Some(slot) = slots::slot_for(None) {
            let _held = observers::hold_unknown();
            slot.empty();
        }
        while let Some(buffer) = { buffer::queue().pop() } {
            buffer::give_back(buffer);
        }
        names::forget();
        RECORDING.process.store(std::process::id(), Ordering::Relaxed);
        RECORDING.forked_from.store(0, Ordering::Relaxed);
        RECORDING.since.store(clock::nanoseconds(), Ordering::Relaxed);
        RECORDING.lost.store(0, Ordering::Relaxed);
        RECORDING.lost_before.store(observers::lost(), Ordering::Relaxed);
        RECORDING.dropped_before.store(ENGINE.dropped(), Ordering::Relaxed);
        let opened =
            file::open_requested(path).and_then(|file| RecordingOutput::create(path.to_owned(), file));
        match opened {
            Ok(opened) => {
                RECORDING.begin(opened, &mut output(), true, &[], &EventsBefore::new());
                thread::observe(ObserverPlace::Recording, &RECORDING);
                writer::start();
                Ok(())
            }
            Err(error) => {
                RECORDING.state.store(ENDED, Ordering::Relaxed);
                Err(error)
            }
        }
    })
}

/// Ends the recording that [`begin_requested`] started.
pub(crate) fn end_requested() {
    if RECORDING.process.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    end();
    let _inside = Inside::deeper();
    thread::stop_observing(ObserverPlace::Recording);
}

/// Starts the thread that writes, if there is a recording. The first call runs before `main`, when the loader and the
/// C library are ready. If the system refuses to start the thread, threads of the program write their buffers.
pub(crate) fn start_writer() {
    if RECORDING.state.load(Ordering::Relaxed) == ON {
        let _inside = Inside::deeper();
        keeping_errno(writer::start);
    }
}

/// Whether this is the child of a fork that has no file yet.
fn is_waiting() -> bool {
    RECORDING.state.load(Ordering::Relaxed) == WAITING
}

/// Opens the file of a forked child that has no file yet. The caller holds no lock.
fn begin_if_waiting() {
    if is_waiting() && RECORDING.may_write() {
        calmly(|| RECORDING.begin_if_waiting());
    }
}

/// Writes all events so far, in case the process never reaches its end. The caller has made sure that this thread
/// holds no lock.
pub(crate) fn write_now() {
    if RECORDING.state.load(Ordering::Relaxed) == ON && RECORDING.may_write() {
        calmly(|| writer::pass(&writer::list_modules()));
    }
}

/// Writes the remaining events and ends the recording. The caller has made sure that this thread holds no lock.
pub(crate) fn process_ends() {
    end();
}

fn end() {
    if !is_on() || RECORDING.process.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    calmly(|| {
        RECORDING.begin_if_waiting();
        let modules = writer::list_modules();
        writer::hand_over();
        let names = names::take();
        let mut end = format::RecordingEnd::new();
        let (statistics, peak) = (ENGINE.statistics(), ENGINE.peak());
        (end.allocations, end.frees) = (statistics.allocations, statistics.frees);
        (end.reallocations, end.temporary) = (statistics.reallocations, statistics.temporary);
        end.dropped_blocks =
            ENGINE.dropped().saturating_sub(RECORDING.dropped_before.load(Ordering::Relaxed));
        let lost_before = RECORDING.lost_before.load(Ordering::Relaxed);
        end.lost_events =
            RECORDING.lost.load(Ordering::Relaxed) + observers::lost().saturating_sub(lost_before);
        let level = peak.level();
        (end.peak_bytes, end.peak_within) = (level.bytes(), peak.within(level, thread::made()));
        let mut output = output();
        RECORDING.state.store(ENDED, Ordering::Relaxed);
        let Some(mut output) = output.take().filter(RecordingOutput::is_open) else { return };
        output.drain();
        output.mappings();
        output.nodes();
        output.modules(&modules);
        output.chunk(ChunkKind::Threads, &names);
        output.clock();
        (end.tick, end.nanoseconds) = output.time();
        output.end(end);
    });
}

/// Runs `body` in conditions in which it may use the stack, allocate and write: inside the engine's guard, on another
/// stack, with signals held.
fn calmly<T>(body: impl FnOnce() -> T) -> T {
    let _inside = Inside::deeper();
    keeping_errno(|| signals::held(|| own_stack::run(body)))
}

impl ProcessRecording {
    /// Opens the file with a name of this pattern, and writes the chunks that precede the events. If that fails, it
    /// prints the reason and returns false.
    fn open_of(
        &self,
        pattern: Option<&'static str>,
        place: &mut Option<RecordingOutput>,
        now: &[LiveBlock],
        before: &EventsBefore,
    ) -> bool {
        let Some(pattern) = pattern else { return false };
        let (path, file) = file::open_recording(&process::recording_names(pattern));
        let opened = file.and_then(|file| RecordingOutput::create(path.clone(), file));
        match opened {
            Ok(opened) => {
                log::mention(format_args!("records into {}", path.display()));
                self.begin(opened, place, false, now, before);
                true
            }
            Err(error) => {
                log::say_anyway(format_args!("no recording: {}: {error}", path.display()));
                self.state.store(ENDED, Ordering::Relaxed);
                false
            }
        }
    }

    /// Writes the chunks that precede the events into an open file.
    fn begin(
        &self,
        mut opened: RecordingOutput,
        place: &mut Option<RecordingOutput>,
        is_late: bool,
        now: &[LiveBlock],
        before: &EventsBefore,
    ) {
        let setup = ENGINE.setup();
        let mut about = RecordedProcess::new();
        about.process = std::process::id().into();
        about.forked_from = self.forked_from.load(Ordering::Relaxed).into();
        about.wall_time = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        about.tick_picoseconds = clock::tick_picoseconds();
        about.tick = clock::ticks();
        about.page_size = memory::page_size();
        about.max_frames = setup.options.max_frames as u64;
        about.mode = setup.options.mode.name().as_bytes().to_vec();
        about.options = setup.variable.unwrap_or_default().to_vec();
        let command = raw_file::read_whole(c"/proc/self/cmdline", 0);
        let command = command.strip_suffix(b"\0").unwrap_or(&command);
        about.command = command.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        about.began_late = is_late.into();
        opened.chunk(ChunkKind::About, &about.encode());
        opened.clock();
        live::write(&mut opened, now, before);
        opened.start_mappings(about.tick);
        *place = Some(opened);
        self.state.store(ON, Ordering::Relaxed);
    }

    /// Opens the file of a forked child that has no file yet. The caller holds no lock.
    fn begin_if_waiting(&self) {
        if self.state.load(Ordering::Relaxed) == WAITING {
            let (now, mut before) = (live::now(), EventsBefore::new());
            thread::hand_over_all(|lease| {
                let Some(slot) = slots::slot_for(Some(lease)) else { return };
                if let Some(buffer) = slot.take() {
                    before.add(&buffer);
                    slot.put(buffer);
                }
            });
            self.begin_forked(&now, &before);
        }
    }

    /// Continues [`begin_if_waiting`](Self::begin_if_waiting), unless another thread has opened the file. `before` is
    /// made from all buffers with events.
    fn begin_forked(&self, now: &[LiveBlock], before: &EventsBefore) {
        let mut place = output();
        if self.state.load(Ordering::Relaxed) == WAITING {
            let pattern = ENGINE.setup().options.record.filter(|_| internal_alloc::is_ready());
            self.open_of(pattern, &mut place, now, before);
        }
    }

    fn is_on(&self) -> bool {
        matches!(self.state.load(Ordering::Relaxed), WAITING | ON) && !output::has_failed()
    }

    fn lose(&self, events: usize) {
        self.lost.fetch_add(events as u64, Ordering::Relaxed);
    }

    /// Whether this process may write now.
    fn may_write(&self) -> bool {
        // A child of `vfork` or of a raw system call may reach this code with the state of its parent. Such a child has
        // another process number.
        !confined::any_noted() && self.process.load(Ordering::Relaxed) == std::process::id()
    }

    /// Hands a full buffer over or writes it, and puts an empty buffer in its place. The caller is inside the engine's
    /// guard, and holds the lock of the source's lease.
    #[cold]
    #[inline(never)]
    fn hand_over(&self, buffer: &mut Option<OwnedBuffer>) {
        let Some(mut full) = buffer.take() else { return };
        if writer::runs() && self.state.load(Ordering::Relaxed) != WAITING {
            let pushed = buffer::queue().push(full, false);
            match pushed {
                Ok(()) => {
                    if !confined::any_noted() {
                        let _inside = Inside::deeper();
                        keeping_errno(writer::wake);
                    }
                    *buffer = buffer::empty();
                    return;
                }
                Err(returned) => full = returned,
            }
        }
        if !self.may_write() {
            self.lose(full.events());
            full.clear();
            *buffer = Some(full);
            return;
        }
        calmly(|| {
            if self.state.load(Ordering::Relaxed) == WAITING {
                let (now, mut before) = (live::now(), EventsBefore::new());
                before.add(&full);
                self.begin_forked(&now, &before);
            }
            if let Some(output) = output().as_mut() {
                output.drain();
                output.events(&full);
            }
            writer::start();
        });
        self.since.store(clock::nanoseconds(), Ordering::Relaxed);
        full.clear();
        *buffer = Some(full);
    }

    /// Whether this thread must write now, because no other thread writes and the last write was too long ago.
    fn is_due(&self) -> bool {
        !writer::runs()
            && clock::nanoseconds().saturating_sub(self.since.load(Ordering::Relaxed))
                > writer::PERIOD.as_nanos() as u64
    }
}

impl Observer for ProcessRecording {
    fn observe(&self, source: EventSource, batch: &EventBatch<'_>) {
        if !self.is_on() {
            return;
        }
        let Some(slot) = slots::slot_for(source.lease) else {
            return batch.for_each(|_| self.lose(1));
        };
        slot.set_thread(source.thread, source.system_id);
        let mut taken = slot.take();
        if let Some((mut left, lost)) = slot.left_by_jump() {
            self.lose(lost);
            self.hand_over(&mut left);
            taken = taken.or(left);
        }
        taken = taken.or_else(buffer::empty);
        let mut at_risk = batch.len();
        slot.fill(taken.as_mut(), at_risk);
        let with_blocks = self.state.load(Ordering::Relaxed) == WAITING;
        batch.for_each(|event| {
            let event = encoded(event, with_blocks);
            let pushed = taken.as_mut().is_some_and(|buffer| buffer.push(source.thread, &event));
            if !pushed {
                slot.fill(None, at_risk + taken.as_ref().map_or(0, |full| full.events()));
                self.hand_over(&mut taken);
                slot.fill(taken.as_mut(), at_risk);
                if !taken.as_mut().is_some_and(|buffer| buffer.push(source.thread, &event)) {
                    self.lose(1);
                }
            }
            at_risk -= 1;
            slot.still_at_risk(at_risk);
        });
        slot.fill(None, 0);
        if with_blocks {
            writer::start_to_wait();
        }
        if !writer::runs() && self.is_due() {
            self.hand_over(&mut taken);
        }
        if let Some(buffer) = taken {
            slot.put(buffer);
        }
    }

    fn thread_began(&self) {
        // From now on, several threads allocate, so a child that still waits opens its file now.
        if is_waiting() {
            begin_if_waiting();
            start_writer();
        }
    }

    fn thread_ended(&self, source: EventSource, again: bool) {
        let Some(slot) = slots::slot_for(source.lease) else { return };
        slot.forget_thread();
        let is_on = self.is_on();
        if is_on && !again && !confined::any_noted() {
            let _inside = Inside::deeper();
            names::thread_ends(source.thread, source.system_id);
        }
        let mut taken = slot.take();
        if is_on && taken.as_ref().is_some_and(|buffer| !buffer.is_empty()) {
            self.hand_over(&mut taken);
        }
        if let Some(mut buffer) = taken {
            self.lose(buffer.events());
            buffer.clear();
            buffer::give_back(buffer);
        }
    }

    fn for_each_lock(&self, each: &mut dyn FnMut(&Lock)) {
        each(output::lock());
        each(buffer::lock());
        each(names::lock());
    }

    fn after_fork_in_child(&self) {
        writer::after_fork_in_child();
        match self.state.load(Ordering::Relaxed) {
            WAITING | ON => {}
            STARTING => return self.state.store(ENDED, Ordering::Relaxed),
            _ => return,
        }
        names::forget();
        // In the child, the thread that forked has another number.
        slots::all().for_each(slots::BufferSlot::empty);
        while let Some(buffer) = { buffer::queue().pop() } {
            buffer::give_back(buffer);
        }
        if let Some(output) = output().as_mut() {
            output.leave_to_parent();
        }
        self.forked_from.store(self.process.swap(std::process::id(), Ordering::Relaxed), Ordering::Relaxed);
        self.since.store(clock::nanoseconds(), Ordering::Relaxed);
        self.lost.store(0, Ordering::Relaxed);
        // Events and blocks that the parent has lost are missing only in the parent's file.
        self.lost_before.store(observers::lost(), Ordering::Relaxed);
        self.dropped_before.store(ENGINE.dropped(), Ordering::Relaxed);
        let options = ENGINE.setup().options;
        // A request starts a recording only for the parent.
        let begins = options.children && options.record.is_some();
        self.state.store(if begins { WAITING } else { ENDED }, Ordering::Relaxed);
        if !begins {
            MAPPINGS.hold().stop_log();
        }
    }
}

/// Converts an event to the format of recordings. With `with_blocks`, the end of a block contains the block.
#[inline(always)]
fn encoded(event: TableEvent, with_blocks: bool) -> format::BlockEvent {
    let block = live::block(event.block);
    let of_end = with_blocks.then_some(block);
    let what = match event.happened {
        EventKind::Began => BlockAction::Begin(block),
        EventKind::Ended(BlockEnd::Freed) => BlockAction::End(of_end),
        EventKind::Ended(BlockEnd::Moved) => BlockAction::EndByMove(of_end),
        EventKind::CameBack => BlockAction::Back(block),
    };
    format::BlockEvent { tick: event.tick, address: event.address as u64, what }
}
