//! The file of a recording. The thread that holds the file's lock writes, in the order of the queue.

use core::sync::atomic::{AtomicBool, Ordering};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use dmd_format::recording::{
    ChunkKind, ClockReading, MAGIC, MappingEncoder, NodeEncoder, RecordedModule, RecordingEnd, StackNode,
    Watermark, encode_modules, frame_chunk, most_framed,
};

use crate::dump::file;
use crate::engine::ENGINE;
use crate::recording::buffer::{self, EventBuffer};
use crate::system::lock::{Lock, LockUse, LockedValue};
use crate::system::pages::{self, DumpVec};
use crate::system::{clock, log, raw_file};
use crate::tables::mappings::MAPPINGS;
use crate::tables::trace_id::TraceId;

/// The approximate size of a chunk of nodes or live blocks, in bytes.
pub(super) const CHUNK: usize = 256 << 10;

/// The maximum number of skipped nodes that the writer remembers and writes later. The writer skips a node that another
/// thread is still making.
const MOST_MISSING: usize = 4096;

/// The file, and the state of its contents.
pub(super) struct RecordingOutput {
    file: Option<File>,
    path: PathBuf,
    /// The device and inode of the file. They show whether the descriptor is still this file: a program may close
    /// descriptors that it did not open, and open its own files under the same numbers.
    identity: (u64, u64),
    length: u64,
    /// A buffer for a framed chunk. It is in the engine's own pages, because a program may count the blocks of its
    /// allocator.
    framed: DumpVec<u8>,
    /// The number of the first node that is not written yet.
    next_node: u32,
    missing: Vec<u32>,
    modules: Vec<u8>,
    /// The system's time at the start, in nanoseconds.
    started: u64,
    /// The tick of the next watermark: the start of the last pass. All events before this tick are written when the
    /// next pass is complete.
    passed: u64,
    /// The number of passes since the last event, at most 2. A third pass would write nothing new.
    quiet_passes: u32,
    pub(super) lost_events: u64,
}

static OUTPUT: LockedValue<Option<RecordingOutput>> = LockedValue::new(None);

/// Whether a write to the file has failed.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Whether a write to the file has failed, so that the recording is incomplete.
pub(super) fn has_failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}

/// Locks the output until the result is dropped. The value is `None` before the start and after the end of a
/// recording.
pub(super) fn output() -> LockUse<'static, Option<RecordingOutput>> {
    OUTPUT.hold()
}

pub(super) fn lock() -> &'static Lock {
    OUTPUT.lock()
}

impl RecordingOutput {
    /// Writes the first bytes of a file.
    pub(super) fn create(path: PathBuf, file: File) -> io::Result<Self> {
        let about = file.metadata()?;
        let mut output = Self {
            file: Some(file),
            path,
            identity: (about.dev(), about.ino()),
            length: 0,
            framed: pages::list(),
            next_node: 1,
            missing: Vec::new(),
            modules: Vec::new(),
            started: clock::nanoseconds(),
            passed: clock::ticks(),
            quiet_passes: 0,
            lost_events: 0,
        };
        FAILED.store(false, Ordering::Relaxed);
        output.write(&MAGIC)?;
        Ok(output)
    }

    /// Whether more can be written to the file.
    pub(super) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        let is_ours =
            |file: &File| file.metadata().is_ok_and(|about| (about.dev(), about.ino()) == self.identity);
        if !is_ours(&file) {
            // The descriptor now belongs to the program.
            let _ = std::os::fd::IntoRawFd::into_raw_fd(file);
            file = file::open_again(&self.path)?;
            if !is_ours(&file) {
                return Err(io::Error::other(
                    "the program has closed the file, and another file has its name now",
                ));
            }
        }
        let written = file.write_all(bytes);
        if written.is_err() {
            // Cut the incomplete chunk off.
            let _ = file.set_len(self.length);
            raw_file::close_file(file);
            return written;
        }
        self.length += bytes.len() as u64;
        self.file = Some(file);
        Ok(())
    }

    /// Writes a chunk. If that fails, prints the reason and ends the recording.
    pub(super) fn chunk(&mut self, kind: ChunkKind, payload: &[u8]) {
        let mut framed = core::mem::replace(&mut self.framed, pages::list());
        let most = most_framed(payload.len());
        if framed.len() < most && framed.try_reserve(most).is_ok() {
            framed.resize(most, 0);
        }
        let written = match frame_chunk(kind, payload, &mut framed) {
            Some(length) => self.write(&framed[..length]),
            None => Err(io::ErrorKind::OutOfMemory.into()),
        };
        self.framed = framed;
        if let Err(error) = written {
            self.close();
            FAILED.store(true, Ordering::Relaxed);
            log::say_anyway(format_args!("the recording {} ends here: {error}", self.path.display()));
        }
    }

    /// Writes the nodes that are not written yet.
    pub(super) fn nodes(&mut self) {
        let tree = ENGINE.tree();
        let end = tree.nodes() as u32;
        if self.next_node >= end && self.missing.is_empty() {
            return;
        }
        let missing = core::mem::take(&mut self.missing);
        let mut encoder = NodeEncoder::new();
        for id in missing.into_iter().chain(self.next_node..end) {
            match tree.entry(TraceId(id)) {
                Some((parent, pc)) => encoder.push(StackNode { id, parent: parent.0, pc: pc as u64 }),
                // Another thread is making the node, or memory was short.
                None if self.missing.len() < MOST_MISSING => self.missing.push(id),
                None => {}
            }
            if encoder.payload().len() >= CHUNK {
                self.chunk(ChunkKind::Nodes, encoder.payload());
                encoder.clear();
            }
        }
        self.next_node = self.next_node.max(end);
        if !encoder.payload().is_empty() {
            self.chunk(ChunkKind::Nodes, encoder.payload());
        }
    }

    /// Writes the events of a thread.
    pub(super) fn events(&mut self, buffer: &EventBuffer) {
        if buffer.is_empty() {
            return;
        }
        self.nodes();
        self.chunk(ChunkKind::Events, buffer.payload());
        if !self.is_open() {
            self.lost_events += buffer.events() as u64;
        }
        self.quiet_passes = 0;
    }

    /// Starts to log the changes of mappings, and writes the mappings of now. `tick` is the start of the recording.
    pub(super) fn start_mappings(&mut self, tick: u64) {
        if self.is_open() {
            MAPPINGS.hold().start_log(tick);
            self.mappings();
        }
    }

    /// Writes the changes of mappings.
    pub(super) fn mappings(&mut self) {
        let log = { MAPPINGS.hold().take_log() };
        self.lost_events += log.lost;
        if log.events.is_empty() {
            return;
        }
        self.nodes();
        let mut encoder = MappingEncoder::new();
        for event in &log.events {
            encoder.push(event);
            if encoder.payload().len() >= CHUNK {
                self.chunk(ChunkKind::Mappings, encoder.payload());
                encoder.clear();
            }
        }
        if !encoder.payload().is_empty() {
            self.chunk(ChunkKind::Mappings, encoder.payload());
        }
        self.quiet_passes = 0;
    }

    /// Writes the waiting buffers.
    pub(super) fn drain(&mut self) {
        loop {
            // Release the queue's lock before writing.
            let buffer = buffer::queue().pop();
            let Some(buffer) = buffer else { return };
            self.events(&buffer);
            buffer::give_back(buffer);
        }
    }

    /// Writes the modules if they have changed.
    pub(super) fn modules(&mut self, modules: &[RecordedModule]) {
        let payload = encode_modules(modules);
        if payload != self.modules {
            self.chunk(ChunkKind::Modules, &payload);
            self.modules = payload;
        }
    }

    /// Writes the time.
    pub(super) fn clock(&mut self) {
        let mut clock = ClockReading::new();
        (clock.tick, clock.nanoseconds) = self.time();
        self.chunk(ChunkKind::Clock, &clock.encode());
    }

    /// The current tick, and the nanoseconds since the start.
    pub(super) fn time(&self) -> (u64, u64) {
        (clock::ticks(), clock::nanoseconds().saturating_sub(self.started))
    }

    /// Records that a pass, which started at this tick, has handed over the events of all threads. The watermark is
    /// the start of the previous pass, because a thread may have been in the middle of an event during this pass.
    pub(super) fn passed(&mut self, tick: u64) {
        const UNTIL_ALL_IS_SAID: u32 = 2;
        if self.quiet_passes < UNTIL_ALL_IS_SAID {
            let mut watermark = Watermark::new();
            watermark.tick = self.passed;
            self.clock();
            self.chunk(ChunkKind::Watermark, &watermark.encode());
            self.quiet_passes += 1;
        }
        self.passed = tick;
    }

    /// Writes the last chunk.
    pub(super) fn end(&mut self, mut end: RecordingEnd) {
        end.lost_events += self.lost_events;
        self.chunk(ChunkKind::End, &end.encode());
        self.close();
    }

    fn close(&mut self) {
        // No later pass takes the log.
        MAPPINGS.hold().stop_log();
        if let Some(file) = self.file.take() {
            raw_file::close_file(file);
        }
    }

    /// Forgets the file, since the file belongs to the parent. The child of a fork calls this.
    pub(super) fn leave_to_parent(&mut self) {
        FAILED.store(false, Ordering::Relaxed);
        if let Some(file) = self.file.take()
            && !file.metadata().is_ok_and(|about| (about.dev(), about.ino()) == self.identity)
        {
            let _ = std::os::fd::IntoRawFd::into_raw_fd(file);
        }
    }
}
