//! Writes the tables as JSON of version 5, the format of Firefox's `dmd.py`. DMD's own keys come after Firefox's.
//!
//! A dump is streamed: it merges equal blocks, and keeps only the merged blocks in memory. All memory of a dump comes
//! from the engine's own pages. Other threads continue to allocate during the dump, so a dump is exact only if no other
//! thread allocates or frees. A dump looks up no symbols: a frame is a library and an offset, and the list of modules
//! has the build id of each library.

mod at_peak;
mod blocks;
mod contents;
#[allow(unsafe_code, reason = "reads and sets flags of descriptors")]
pub(crate) mod file;
mod json;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "system calls")]
pub(crate) mod kept;
#[allow(unsafe_code, reason = "asks the loader")]
pub(crate) mod modules;
#[cfg_attr(not(target_os = "linux"), path = "dump/resident_none.rs")]
mod resident;
pub(crate) mod sizes;

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::Compression;
#[cfg(target_os = "linux")]
use flate2::GzBuilder;
use flate2::write::GzEncoder;

#[cfg(target_os = "linux")]
use dmd_format::kept_dump::LifeSign;

use crate::engine::ENGINE;
use crate::options::{Mode, Stacks};
use crate::sampler;
#[cfg(target_os = "linux")]
use crate::system::confined;
use crate::system::log;
use crate::system::pages::{self, DumpMap, DumpVec};
use crate::system::process::{self, DumpOutput};
use crate::system::slot::Inside;
use crate::tables::block_table::TableBlock;
use crate::tables::linked_allocators;
use crate::tables::mark::{BlockReport, FaultKind, PathId};
use crate::tables::older_blocks::OLDER_BLOCKS;
use crate::tables::trace_id::TraceId;
use at_peak::{AtPeak, LiveStacks};
use blocks::{BlockKind, KindAmount, LiveBlocks, LiveTotals};
use contents::BlockReader;
use json::{JsonWriter, base32};
use modules::DumpModules;
use resident::{AbsentBytes, MemoryJoin};

/// Writes a dump, gzipped if the name ends in `.gz`.
pub(crate) fn write(output: &DumpOutput, number: usize) -> io::Result<()> {
    let _inside = Inside::deeper();
    let mut file = match file::open(output) {
        Ok(file) => file,
        Err((path, error)) => {
            log::say(format_args!("can't create {}: {error}", path.display()));
            return Err(error);
        }
    };
    let path = file.path.clone();
    log::mention(format_args!("opened {} for writing", path.display()));
    log::mention(format_args!("Dump {number} {{"));
    let written = if path.as_os_str().as_encoded_bytes().ends_with(b".gz") {
        let mut zip = GzEncoder::new(file.writer(), Compression::fast());
        write_to(&mut zip).and_then(|()| zip.finish().map(drop))
    } else {
        write_to(file.writer())
    };
    // Half of a dump is useless, and the disk may be full: a file that did not get its final name is removed when it is
    // dropped.
    let written = written.and_then(|()| file.finish());
    match &written {
        Ok(name) if *name != path => {
            log::mention(format_args!(
                "  the name is taken by another file; the dump is in {}",
                name.display()
            ));
        }
        Ok(_) => {}
        Err(error) => log::say(format_args!("  can't write {}: {error}", path.display())),
    }
    if ENGINE.setup().options.show_dump_stats {
        sizes::say_all();
    }
    log::mention(format_args!("}}"));
    written.map(drop)
}

/// Writes a dump. One function for all kinds of writers keeps the library small.
fn write_to(out: &mut dyn Write) -> io::Result<()> {
    DumpWriter::new(out, None).and_then(DumpWriter::write)
}

/// The state of the memory when a black box writes a dump.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "no black box writes dumps"))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlackBoxFacts {
    pub(crate) reason: &'static str,
    /// The origin of the limit.
    pub(crate) bound: &'static str,
    pub(crate) limit: u64,
    pub(crate) used: u64,
    /// The growth of the used memory, in bytes per second.
    pub(crate) rate: u64,
    /// The time in milliseconds since 1970.
    pub(crate) milliseconds: u64,
}

/// Writes a dump of a black box. The dump needs little memory: it leaves out the memory of the process by owner, and
/// takes the list of modules from the kernel, since another thread may hold the loader's lock. After each table, the
/// file contains all data so far, in case the process is killed.
#[cfg(target_os = "linux")]
pub(crate) fn write_kept(file: &mut kept::KeptFile, facts: BlackBoxFacts) -> io::Result<()> {
    let _inside = Inside::deeper();
    let extra = LifeSign::default().extra_field();
    let out: &mut dyn Write = file;
    let mut zip = GzBuilder::new().extra(extra).write(out, Compression::fast());
    let written = DumpWriter::new(&mut zip as &mut dyn Write, Some(facts)).and_then(DumpWriter::write);
    written.and_then(|()| zip.finish().map(drop))
}

/// The error for a dump that must end early, since readers would take half of a dump for a whole one. It contains the
/// system's number, which the C functions return.
fn no_memory() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOMEM)
}

/// Rounds seconds to milliseconds.
fn in_milliseconds(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

/// A frame of the traces in the dump, with the index of its module in the list.
struct DumpFrame {
    key: u32,
    pc: usize,
    module: Option<usize>,
}

struct DumpWriter<W: Write> {
    json: JsonWriter<W>,
    modules: DumpModules,
    /// The key of each trace in the dump, by the id of the trace.
    trace_keys: DumpMap<u32, u32>,
    /// The traces in order of their first use.
    traces: DumpVec<TraceId>,
    next_key: u32,
    max_frames: usize,
    /// The memory of the process; `None` if it is not known, or if the options do not ask for it.
    memory: Option<MemoryJoin>,
    /// The reason why the memory is not known; `None` if it is known, or if the options do not ask for it.
    unreadable: Option<String>,
    /// The heap at its peak; `None` in scan mode, or if memory is short.
    at_peak: Option<AtPeak>,
    /// The number of stacks that are missing because memory was short.
    lost_stacks: u64,
    lost_frames: u64,
    /// Whether a block has the key [`NO_FRAMES`].
    has_no_frames: bool,
    /// The state of the memory; `None` except for dumps of a black box.
    facts: Option<BlackBoxFacts>,
}

/// The key of a stack without frames. A report gets this key if its own stack is missing.
const NO_FRAMES: u32 = u32::MAX;

impl<W: Write> DumpWriter<W> {
    fn new(out: W, facts: Option<BlackBoxFacts>) -> io::Result<Self> {
        let json = JsonWriter::new(out);
        let modules = if facts.is_some() { DumpModules::without_loader() } else { DumpModules::now() };
        #[cfg(target_os = "linux")]
        let (memory, unreadable) = match ENGINE.setup().options.resident && facts.is_none() {
            // A filter may end the process at a system call that the program does not make without DMD.
            true if confined::is_confined() => (None, Some("filters of system calls".to_owned())),
            true => match MemoryJoin::read(&modules) {
                Ok(memory) => (Some(memory), None),
                Err(reason) => (None, Some(reason.to_string())),
            },
            false => (None, None),
        };
        #[cfg(not(target_os = "linux"))]
        let (memory, unreadable) = (None, None);
        Ok(Self {
            json,
            modules,
            memory,
            unreadable,
            trace_keys: pages::map(),
            traces: pages::list(),
            next_key: 0,
            max_frames: ENGINE.setup().options.max_frames,
            at_peak: None,
            lost_stacks: 0,
            lost_frames: 0,
            has_no_frames: false,
            facts,
        })
    }

    fn write(mut self) -> io::Result<()> {
        self.json.begin('{')?;
        self.json.number("version", 5)?;
        self.invocation()?;
        self.black_box()?;
        log::mention(format_args!("  Constructing the heap block list..."));
        self.block_list()?;
        self.settle()?;
        #[cfg(target_os = "linux")]
        self.join_memory()?;
        log::mention(format_args!("  Constructing the stack trace table..."));
        let frames = self.trace_table()?;
        log::mention(format_args!("  Constructing the stack frame table..."));
        self.settle()?;
        self.frame_table(&frames)?;
        self.settle()?;
        #[cfg(target_os = "linux")]
        self.mappings()?;
        self.statistics()?;
        self.peak()?;
        self.our_own()?;
        self.json.end('}')?;
        self.json.finish()
    }

    fn invocation(&mut self) -> io::Result<()> {
        let setup = ENGINE.setup();
        self.json.open("invocation", '{')?;
        match setup.variable {
            Some(variable) => self.json.text("dmdEnvVar", variable)?,
            None => self.json.null("dmdEnvVar")?,
        }
        self.json.text("mode", setup.options.mode.name().as_bytes())?;
        // This key is not Firefox's. Readers use it to weigh the blocks.
        if ENGINE.mean() > 0 {
            self.json.number("sampleBytes", ENGINE.mean() as u64)?;
        }
        self.json.end('}')
    }

    /// Writes the state of the memory, for a dump of a black box. The modules follow here, so that a partial file has
    /// them.
    fn black_box(&mut self) -> io::Result<()> {
        let Some(facts) = self.facts else { return Ok(()) };
        let json = &mut self.json;
        json.open("blackBox", '{')?;
        json.text("reason", facts.reason.as_bytes())?;
        json.text("bound", facts.bound.as_bytes())?;
        json.number("limit", facts.limit)?;
        json.number("used", facts.used)?;
        json.number("rate", facts.rate)?;
        json.number("milliseconds", facts.milliseconds)?;
        json.end('}')?;
        self.module_list()
    }

    /// Lets the file contain all data so far, for a dump of a black box.
    fn settle(&mut self) -> io::Result<()> {
        if self.facts.is_some() { self.json.flush() } else { Ok(()) }
    }

    fn block_list(&mut self) -> io::Result<()> {
        self.json.open("blockList", '[')?;
        let mode = ENGINE.setup().options.mode;
        let mut totals = LiveTotals { stacks: LiveStacks::new(), memory: self.memory.take() };
        if mode == Mode::Scan {
            let mut contents = BlockReader::open();
            let mut failed = Ok(());
            ENGINE.table().for_each(|address, block| {
                let absent = totals.memory.as_mut().map(|memory| memory.add(address, block));
                if failed.is_ok() {
                    failed = self.scanned_block(address, block, absent.unwrap_or_default(), &mut contents);
                }
            });
            failed?;
            self.memory = totals.memory;
        } else {
            match LiveBlocks::merged(mode, &mut totals) {
                Some(live) => {
                    for (kind, amount) in live.iter() {
                        self.some_blocks(*kind, *amount)?;
                    }
                }
                None => {
                    let mut written = Ok(());
                    blocks::for_each(mode, &mut totals, |kind, amount| {
                        if written.is_ok() {
                            written = self.some_blocks(kind, amount);
                        }
                    });
                    written?;
                }
            }
            self.memory = totals.memory;
            // The stacks of the peak also need keys, so that the dump contains their frames.
            let at_peak = totals.stacks.at_peak();
            for (trace, _) in at_peak.iter().flat_map(|peak| &peak.stacks) {
                if *trace != TraceId::NONE {
                    self.trace_key(*trace);
                }
            }
            self.at_peak = at_peak;
        }
        self.json.end(']')
    }

    fn some_blocks(&mut self, kind: BlockKind, amount: KindAmount) -> io::Result<()> {
        self.json.item('{')?;
        self.block(kind)?;
        if amount.count > 1 {
            self.json.inline_number("num", amount.count)?;
        }
        self.absent_bytes(amount.absent)?;
        self.json.end_inline('}')
    }

    /// Writes how many bytes of blocks are swapped out or untouched. All other bytes are resident. These keys are not
    /// Firefox's.
    fn absent_bytes(&mut self, absent: AbsentBytes) -> io::Result<()> {
        if absent.swapped > 0 {
            self.json.inline_number("swapped", absent.swapped)?;
        }
        if absent.untouched > 0 {
            self.json.inline_number("untouched", absent.untouched)?;
        }
        Ok(())
    }

    /// Ends the join of blocks and areas, and makes keys for the stacks of mappings.
    #[cfg(target_os = "linux")]
    fn join_memory(&mut self) -> io::Result<()> {
        let Some(mut memory) = self.memory.take() else { return Ok(()) };
        if let Err(error) = memory.finish() {
            // The dump continues without the areas: the blocks are written already, and are more important.
            self.unreadable = Some(error.to_string());
            return Ok(());
        }
        for trace in memory.traces() {
            self.trace_key(trace);
        }
        self.memory = Some(memory);
        Ok(())
    }

    /// Writes the memory of the process by owner, or the reason why it is not known.
    #[cfg(target_os = "linux")]
    fn mappings(&mut self) -> io::Result<()> {
        let (json, keys) = (&mut self.json, &self.trace_keys);
        if let Some(memory) = &self.memory {
            return memory.write(json, &self.modules, |trace| keys.get(&trace.0).copied());
        }
        let Some(reason) = &self.unreadable else { return Ok(()) };
        json.open("mappings", '{')?;
        json.text("unreadable", reason.as_bytes())?;
        json.end('}')
    }

    fn scanned_block(
        &mut self,
        address: usize,
        block: TableBlock,
        absent: AbsentBytes,
        contents: &mut BlockReader,
    ) -> io::Result<()> {
        self.json.item('{')?;
        self.json.inline_hex("addr", address)?;
        if block.requested >= size_of::<usize>() {
            self.json.inline_open("contents")?;
            contents.for_each_word(address, block.requested, |word| self.json.inline_hex_item(word))?;
            self.json.inline_close()?;
        }
        self.block(BlockKind::from_block(block))?;
        self.absent_bytes(absent)?;
        self.json.end_inline('}')
    }

    fn block(&mut self, kind: BlockKind) -> io::Result<()> {
        self.json.inline_number("req", kind.requested as u64)?;
        if kind.slop > 0 {
            self.json.inline_number("slop", kind.slop as u64)?;
        }
        if kind.trace != TraceId::NONE
            && let Some(key) = self.trace_key(kind.trace)
        {
            self.json.inline_base32("alloc", key)?;
        }
        if kind.reports[0].is_some() {
            self.json.inline_open("reps")?;
            for report in kind.reports.iter().flatten() {
                let key = self.trace_key(report.trace);
                self.has_no_frames |= key.is_none();
                let key = key.unwrap_or(NO_FRAMES);
                self.json.inline_base32_item(key)?;
            }
            self.json.inline_close()?;
        }
        // This key is not Firefox's.
        let has_path =
            |report: &BlockReport| report.path != PathId::NONE && ENGINE.marks.is_known(report.path);
        if kind.reports.iter().flatten().any(has_path) {
            self.json.inline_open("repPaths")?;
            for report in kind.reports.iter().flatten() {
                let path = if has_path(report) { i64::from(report.path.0) } else { -1 };
                self.json.inline_number_item(path)?;
            }
            self.json.inline_close()?;
        }
        if kind.sampled {
            self.json.inline_true("sampled")?;
        }
        Ok(())
    }

    /// The key of a stack; `None` if memory is too short for a new key.
    fn trace_key(&mut self, trace: TraceId) -> Option<u32> {
        let next = self.next_key;
        let key = pages::entry(&mut self.trace_keys, trace.0, || next).copied();
        if key == Some(next) {
            if !pages::push(&mut self.traces, trace) {
                self.trace_keys.remove(&trace.0);
                self.lost_stacks += 1;
                return None;
            }
            self.next_key += 1;
        }
        self.lost_stacks += u64::from(key.is_none());
        key
    }

    /// Writes the traces. Returns their frames in order of the keys.
    fn trace_table(&mut self) -> io::Result<DumpVec<DumpFrame>> {
        let mut frame_keys: DumpMap<(usize, Option<usize>), u32> = pages::map();
        let mut frames = pages::list();
        self.json.open("traceTable", '{')?;
        let traces = core::mem::replace(&mut self.traces, pages::list());
        for trace in &traces {
            let key = self.trace_keys.get(&trace.0).copied().unwrap_or_default();
            self.json.key_item(base32(key).as_bytes(), '[')?;
            for (node, pc) in ENGINE.tree().calls(*trace).take(self.max_frames) {
                let next = self.next_key;
                let module = self.modules.find(node, pc);
                let key = pages::entry(&mut frame_keys, (pc, module), || next).copied();
                if key == Some(next) {
                    if !pages::push(&mut frames, DumpFrame { key: next, pc, module }) {
                        frame_keys.remove(&(pc, module));
                        self.lost_frames += 1;
                        continue;
                    }
                    self.next_key += 1;
                }
                match key {
                    Some(key) => self.json.inline_base32_item(key)?,
                    None => self.lost_frames += 1,
                }
            }
            self.json.end_inline(']')?;
        }
        if self.has_no_frames {
            self.json.key_item(base32(NO_FRAMES).as_bytes(), '[')?;
            self.json.end_inline(']')?;
        }
        self.json.end('}')?;
        Ok(frames)
    }

    fn frame_table(&mut self, frames: &[DumpFrame]) -> io::Result<()> {
        self.json.open("frameTable", '{')?;
        for frame in frames {
            let text = self.modules.describe(frame.module, frame.pc);
            self.json.text(base32(frame.key), text.as_bytes())?;
        }
        self.json.end('}')
    }

    /// Writes the statistics, except to a dump of a sample by bytes: the engine does not count blocks that it does not
    /// sample.
    fn statistics(&mut self) -> io::Result<()> {
        if ENGINE.mean() > 0 {
            return Ok(());
        }
        let statistics = ENGINE.statistics();
        let json = &mut self.json;
        json.open("statistics", '{')?;
        json.float("seconds", in_milliseconds(ENGINE.peak().seconds().1))?;
        json.number("allocations", statistics.allocations)?;
        json.number("frees", statistics.frees)?;
        json.number("reallocations", statistics.reallocations)?;
        json.number("temporary", statistics.temporary)?;
        json.end('}')
    }

    fn peak(&mut self) -> io::Result<()> {
        let Some(peak) = &self.at_peak else { return Ok(()) };
        let json = &mut self.json;
        json.open("peak", '{')?;
        json.text("measure", b"usable")?;
        json.number("bytes", peak.sum.bytes as u64)?;
        json.number("blocks", peak.sum.blocks as u64)?;
        json.float("seconds", in_milliseconds(peak.seconds))?;
        json.number("within", peak.within)?;
        json.open("stacks", '[')?;
        for (trace, amount) in &peak.stacks {
            json.item('{')?;
            if let Some(key) = self.trace_keys.get(&trace.0) {
                json.inline_base32("alloc", *key)?;
            }
            json.inline_number("num", amount.blocks as u64)?;
            json.inline_number("bytes", amount.bytes as u64)?;
            json.end_inline('}')?;
        }
        json.end(']')?;
        json.end('}')
    }

    fn our_own(&mut self) -> io::Result<()> {
        let options = ENGINE.setup().options;
        let json = &mut self.json;
        json.open("process", '{')?;
        json.number("pid", u64::from(std::process::id()))?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        json.number("time", time.as_secs())?;
        if let Some(bytes) = process::resident_peak() {
            json.number("residentPeak", bytes)?;
        }
        json.end('}')?;

        json.open("sampling", '{')?;
        json.text("stacks", options.stacks.name().as_bytes())?;
        if ENGINE.mean() > 0 {
            json.number("sampleBytes", ENGINE.mean() as u64)?;
        } else if let Some(bytes) = options.sample_below {
            json.number("sampleBelow", bytes as u64)?;
        } else if options.stacks == Stacks::Partial {
            json.float("chancePerByte", sampler::CHANCE)?;
        }
        json.number("maxFrames", options.max_frames as u64)?;
        json.end('}')?;

        json.open("dropped", '{')?;
        json.number("blocks", ENGINE.dropped())?;
        json.number("freedBlocks", ENGINE.dropped_dead())?;
        json.number("reports", ENGINE.dropped_reports())?;
        json.number("frames", ENGINE.tree().cut() as u64)?;
        let lost_changes = ENGINE.peak().lost();
        for (key, lost) in [
            ("stacksInDump", self.lost_stacks),
            ("framesInDump", self.lost_frames),
            ("changesSincePeak", lost_changes),
            ("frees", ENGINE.unseen_frees()),
        ] {
            if lost > 0 {
                json.number(key, lost)?;
            }
        }
        json.end('}')?;

        let sizes = sizes::sizes();
        json.open("measurements", '{')?;
        for (key, bytes) in [
            ("stackTracesUsed", sizes.traces_used),
            ("stackTracesUnused", sizes.traces_unused),
            ("stackTraceTable", sizes.trace_table),
            ("liveBlockTable", sizes.live_blocks),
            ("deadBlockTable", sizes.dead_blocks),
            ("reports", sizes.marks),
            ("threads", sizes.threads),
            ("unwindRules", sizes.unwinding),
        ] {
            json.number(key, bytes as u64)?;
        }
        json.end('}')?;

        if OLDER_BLOCKS.in_use() > 0 {
            json.number("olderBytes", OLDER_BLOCKS.in_use())?;
        }
        Self::linked_allocators(json)?;
        if self.facts.is_none() {
            self.module_list()?;
        }
        if options.mode == Mode::DarkMatter {
            self.reported()?;
        }
        Ok(())
    }

    fn module_list(&mut self) -> io::Result<()> {
        let json = &mut self.json;
        json.open("modules", '[')?;
        for module in self.modules.iter() {
            json.item('{')?;
            json.inline_text("path", &module.path)?;
            json.inline_hex("bias", module.bias)?;
            json.inline_hex("start", module.start)?;
            json.inline_hex("end", module.end)?;
            json.inline_text("buildId", module.build_id.as_bytes())?;
            if module.since.is_some() {
                json.inline_true("unloaded")?;
            }
            json.end_inline('}')?;
        }
        json.end(']')
    }

    /// Writes the allocators that the program links statically. Most programs link none.
    fn linked_allocators(json: &mut JsonWriter<W>) -> io::Result<()> {
        if linked_allocators::iter().next().is_none() {
            return Ok(());
        }
        json.open("allocators", '[')?;
        for allocator in linked_allocators::iter() {
            json.item('{')?;
            json.inline_text("name", allocator.name.as_bytes())?;
            json.inline_text("place", allocator.place.as_bytes())?;
            match &allocator.obstacle {
                Some(obstacle) => json.inline_text("obstacle", obstacle.as_bytes())?,
                None => {
                    json.inline_number("functions", allocator.functions as u64)?;
                    json.inline_number("references", allocator.references as u64)?;
                }
            }
            json.end_inline('}')?;
        }
        json.end(']')
    }

    fn reported(&mut self) -> io::Result<()> {
        let json = &mut self.json;
        json.open("reportPaths", '[')?;
        let mut known = 0;
        for (text, path) in ENGINE.marks.paths().ok_or_else(no_memory)?.iter() {
            known += 1;
            json.item('{')?;
            json.inline_text("path", text)?;
            json.inline_number("claimed", path.claimed)?;
            json.inline_number("marked", path.marked)?;
            json.end_inline('}')?;
        }
        json.end(']')?;
        let faults = ENGINE.marks.faults().ok_or_else(no_memory)?;
        json.open("reportFaultCounts", '{')?;
        for kind in FaultKind::ALL {
            json.number(kind.name(), faults.counts[kind as usize])?;
        }
        json.end('}')?;
        json.open("reportFaults", '[')?;
        for fault in &faults.list {
            json.item('{')?;
            json.inline_text("kind", fault.kind.name().as_bytes())?;
            json.inline_hex("addr", fault.address)?;
            if fault.path.0 < known {
                json.inline_number("path", u64::from(fault.path.0))?;
            }
            json.inline_open("frames")?;
            for (node, pc) in ENGINE.tree().calls(fault.trace).take(self.max_frames) {
                let module = self.modules.find(node, pc);
                json.inline_text_item(self.modules.describe(module, pc).as_bytes())?;
            }
            json.inline_close()?;
            json.end_inline('}')?;
        }
        json.end(']')
    }
}
