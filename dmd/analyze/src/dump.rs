//! A dump in memory, with compact ids in place of its keys.

mod allocators;
mod at;
mod black_box;
mod build;
mod faulty_pointer;
mod frame;
mod frames;
mod keys;
mod measurements;
mod memory;
mod outline;
mod peak;
mod read;
mod sample;
mod scanned;
mod trace_id;

use core::ops::Range;

use dmd_format::Mode;

pub use allocators::DumpAllocator;
pub use black_box::BlackBoxDump;
pub use build::{BuiltStack, DumpBuilder};
pub use faulty_pointer::ReportFaultKind;
pub use frame::CallFrame;
pub use memory::{MemoryArea, MemoryByOwner, MemoryOwner};
pub use outline::{HeapAt, RecordingOutline};
pub use peak::{DumpPeak, DumpStatistics, DumpTime};
pub use read::{DumpReadOptions, is_heap_profile, read, read_from, read_with};
pub use sample::ByteSample;
pub use scanned::ScannedBlock;

pub(crate) use faulty_pointer::FaultyPointer;
pub(crate) use frame::FrameText;
pub(crate) use frames::{CallId, CallTable, FrameTextId, FrameTexts};
pub(crate) use measurements::EngineMemory;
pub(crate) use read::open;
pub(crate) use trace_id::DumpTraceId;

/// An entry of `blockList`: `num` equal blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DumpBlock {
    pub(crate) req: u64,
    pub(crate) slop: u64,
    pub(crate) num: u64,
    pub(crate) alloc: DumpTraceId,
    /// The traces of the first and the second report. The second trace is set only if the first trace is set.
    pub(crate) reps: [DumpTraceId; 2],
    /// The first and the second reporter, as indices into [`Dump::reporters`]. Only dumps of the crate `dmd` have
    /// reporters.
    pub(crate) reporters: [u32; 2],
    /// Whether the amounts are estimates: the block represents smaller blocks and has the sum of their sizes, or a
    /// sample by bytes selected it.
    pub(crate) sampled: bool,
    /// The bytes of all `num` blocks that are swapped out.
    pub(crate) swapped: u64,
    /// The bytes of all `num` blocks without memory: never written, or given back.
    pub(crate) untouched: u64,
    /// The number of blocks of its size that each block represents; 1 except in a sample by bytes.
    pub(crate) weight: f64,
}

impl DumpBlock {
    /// Blocks of one stack of which only the sum of the sizes is known, in bytes. Each block gets the mean size, rounded
    /// down or up so that the sum stays exact. `num` is at least 1.
    pub(crate) fn with_mean_size(
        alloc: DumpTraceId,
        num: u64,
        bytes: u64,
        weight: f64,
    ) -> impl Iterator<Item = Self> {
        let (size, larger) = (bytes / num, bytes % num);
        let sizes = [(size, num - larger), (size.saturating_add(1), larger)];
        sizes.into_iter().filter(|(_, num)| *num > 0).map(move |(req, num)| Self {
            req,
            slop: 0,
            num,
            alloc,
            reps: [DumpTraceId::NONE; 2],
            reporters: [u32::MAX; 2],
            sampled: weight > 1.0,
            swapped: 0,
            untouched: 0,
            weight,
        })
    }

    pub(crate) fn usable(&self) -> i128 {
        i128::from(self.req) + i128::from(self.slop)
    }
}

/// The additional data of a block in scan mode.
#[derive(Clone, Debug)]
pub(crate) struct BlockContents {
    pub(crate) addr: u64,
    /// The range of its words in [`Dump::words`].
    pub(crate) words: Range<usize>,
    /// The range of the array `contents` in the file's text; `None` if the block has no `contents`.
    pub(crate) text: Option<Range<u64>>,
}

/// A program or library that was loaded when a dump was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedModule {
    /// The path of its file.
    pub path: String,
    /// The build id, hexadecimal in lower case; empty if the module has none.
    pub build_id: String,
    /// The address of code in memory minus its address in the module's file; `None` if the dump does not contain it.
    pub bias: Option<u64>,
    /// Whether the offsets of frames are positions in the file, as in profiles of pprof. Otherwise they are addresses in
    /// the file.
    pub has_file_offsets: bool,
}

/// A reporter's path with two amounts: the bytes that the reporter reported, and the bytes of the blocks that the
/// reporter marked in the same collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReporterAmounts {
    pub(crate) path: String,
    pub(crate) claimed: u64,
    pub(crate) marked: u64,
}

/// A DMD dump (JSON, version 5), written by Firefox or by the crate `dmd`.
///
/// Read one with [`read`](crate::read). The reader rejects a dump whose sums exceed 127 bits, so no sum of the dump's
/// amounts overflows.
#[derive(Debug)]
pub struct Dump {
    /// The value of `$DMD`; `None` if the variable was not set.
    pub(crate) variable: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) blocks: Vec<DumpBlock>,
    /// The contents of each block. Scan mode only.
    pub(crate) scanned: Vec<BlockContents>,
    pub(crate) words: Vec<u64>,
    pub(crate) traces: Vec<Range<u32>>,
    /// The frames of all traces, innermost first.
    pub(crate) calls: Vec<CallId>,
    pub(crate) frames: CallTable,
    pub(crate) modules: Option<Vec<LoadedModule>>,
    /// Only dumps of the crate `dmd` have reporters.
    pub(crate) reporters: Vec<ReporterAmounts>,
    /// Reported pointers that do not point to the start of a live block.
    pub(crate) faults: Vec<FaultyPointer>,
    /// The time at which DMD wrote the dump, in seconds since 1970.
    pub(crate) time: Option<u64>,
    /// The process id.
    pub(crate) process: Option<u64>,
    pub(crate) measurements: EngineMemory,
    pub(crate) resident_peak: Option<u64>,
    /// The memory of the process by owner, or the reason why the process could not read it. `None` for dumps of
    /// Firefox, of older versions and of other systems than Linux.
    pub(crate) memory: Option<Result<MemoryByOwner, String>>,
    /// The time whose blocks the dump shows.
    pub(crate) shown: DumpTime,
    pub(crate) peak: Option<DumpPeak>,
    pub(crate) statistics: Option<DumpStatistics>,
    /// The allocators that the program links statically.
    pub(crate) allocators: Vec<DumpAllocator>,
    /// The number of blocks whose end DMD did not see.
    pub(crate) unseen_frees: u64,
    /// The bytes of blocks from before an attachment.
    pub(crate) older_bytes: u64,
    /// The number of blocks at the end of the list that DMD did not record.
    pub(crate) older: usize,
    /// The facts of the recording; only dumps from a recording have them.
    pub(crate) outline: Option<RecordingOutline>,
    /// The sample by bytes; `None` if the dump is not a sample.
    pub(crate) sample: Option<ByteSample>,
    /// Whether the size of each block is the mean size of its stack's blocks: heap profiles and the peak have only sums.
    pub(crate) has_means: bool,
    /// Whether the end of the file is missing.
    pub(crate) is_cut: bool,
    pub(crate) black_box: Option<BlackBoxDump>,
}

impl Dump {
    /// A dump without blocks.
    pub(crate) fn empty(mode: Mode) -> Self {
        Self {
            variable: None,
            mode,
            blocks: Vec::new(),
            scanned: Vec::new(),
            words: Vec::new(),
            traces: Vec::new(),
            calls: Vec::new(),
            frames: CallTable::default(),
            modules: None,
            reporters: Vec::new(),
            faults: Vec::new(),
            time: None,
            process: None,
            measurements: EngineMemory::default(),
            resident_peak: None,
            memory: None,
            shown: DumpTime::End,
            peak: None,
            statistics: None,
            allocators: Vec::new(),
            unseen_frees: 0,
            older_bytes: 0,
            older: 0,
            outline: None,
            sample: None,
            has_means: false,
            is_cut: false,
            black_box: None,
        }
    }

    /// The mode in which DMD recorded the dump.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The facts of the black box that wrote the dump; `None` for other dumps.
    pub fn black_box(&self) -> Option<&BlackBoxDump> {
        self.black_box.as_ref()
    }

    /// The facts of the recording that the dump is from; `None` for other dumps.
    pub fn outline(&self) -> Option<&RecordingOutline> {
        self.outline.as_ref()
    }

    /// Removes the reports. A dump of mode [`DarkMatter`](Mode::DarkMatter) becomes a dump of mode
    /// [`Live`](Mode::Live), so that it can be compared with other dumps.
    #[must_use]
    pub fn without_reports(mut self) -> Self {
        if self.mode == Mode::DarkMatter {
            self.mode = Mode::Live;
            self.reporters.clear();
            self.faults.clear();
            for block in &mut self.blocks {
                block.reps = [DumpTraceId::NONE; 2];
                block.reporters = [u32::MAX; 2];
            }
        }
        self
    }

    /// The peak of the process's resident memory until the process started to exit, in bytes. `None` if DMD wrote the
    /// dump earlier, or if the dump does not contain the peak.
    pub fn resident_peak(&self) -> Option<u64> {
        self.resident_peak
    }

    /// Bytes of DMD's own tables.
    pub fn table_bytes(&self) -> u64 {
        self.measurements.bytes()
    }

    /// The sample of the dump; `None` unless DMD recorded with `--sample-bytes`.
    pub fn sample(&self) -> Option<&ByteSample> {
        self.sample.as_ref()
    }

    /// Whether the dump lists the loaded modules with their build ids. Dumps of the crate `dmd` list them; Firefox's
    /// dumps do not.
    pub fn has_modules(&self) -> bool {
        self.modules.is_some()
    }

    /// The stacks of the dump, each with its frames, innermost first.
    pub fn stacks(&self) -> impl ExactSizeIterator<Item = impl ExactSizeIterator<Item = CallFrame<'_>>> {
        (0..self.traces.len()).map(|index| self.stack(index))
    }

    /// The frames of the stack with this index in [`stacks`](Self::stacks), innermost first; empty if the index is out
    /// of range.
    pub fn stack(&self, index: usize) -> impl ExactSizeIterator<Item = CallFrame<'_>> {
        let calls = match self.traces.get(index) {
            Some(range) => &self.calls[range.start as usize..range.end as usize],
            None => &[],
        };
        calls.iter().map(|frame| self.frames.get(*frame))
    }

    pub(crate) fn trace(&self, trace: DumpTraceId) -> &[CallId] {
        match trace.index() {
            None => &[],
            Some(index) => {
                let range = &self.traces[index];
                &self.calls[range.start as usize..range.end as usize]
            }
        }
    }
}
