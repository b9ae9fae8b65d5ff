//! Reads the objects `traceTable` and `frameTable`, and checks that every key has its value.

use std::io::Read;

use dmd_format::Mode;

use super::value::shorten;
use super::weights::weigh;
use super::{DumpReader, faults, missing, quoted, wrong};
use crate::dump::Dump;
use crate::dump::frames::CallTable;
use crate::dump::keys::KeyUse;
use crate::dump::peak::DumpTime;
use crate::dump::trace_id::DumpTraceId;
use crate::error::AnalyzeError;

/// The fault of a trace.
enum TraceFault {
    NotAnArray,
    NotAString(usize),
    TooLong,
}

/// The maximum number of frames in a trace. DMD records far fewer. The limit is needed because an analysis may print
/// all frames for each block.
const MOST_FRAMES: usize = 10_000;

impl<R: Read> DumpReader<'_, R> {
    pub(super) fn trace_table(&mut self) -> Result<(), AnalyzeError> {
        self.traces = None;
        self.calls.clear();
        let mut traces = Vec::new();
        let read = self.entries("traceTable", &mut |reader| {
            let (keys, frame_keys, frames) =
                (&mut reader.trace_keys, &mut reader.frame_keys, &mut reader.calls);
            let start = frames.len();
            let (number, result) = reader.window.take(|scan| {
                frames.truncate(start);
                let key = scan.string()?;
                scan.expect(b':', "`:`")?;
                let number = keys.number(&key, || KeyUse::Table);
                if scan.peek()? != b'[' {
                    return Ok((number, Err(TraceFault::NotAnArray)));
                }
                scan.expect(b'[', "`[`")?;
                if scan.eat(b']')? {
                    return Ok((number, Ok(())));
                }
                loop {
                    let nth = frames.len() - start;
                    if nth == MOST_FRAMES {
                        return Ok((number, Err(TraceFault::TooLong)));
                    }
                    if scan.peek()? != b'"' {
                        return Ok((number, Err(TraceFault::NotAString(nth))));
                    }
                    let frame = scan.string()?;
                    frames.push(frame_keys.number(&frame, || KeyUse::Frame(number, nth as u32)));
                    if !scan.eat(b',')? {
                        break;
                    }
                }
                scan.expect(b']', "`,` or `]`")?;
                Ok((number, Ok(())))
            })?;
            if let Err(fault) = result {
                let key = quoted(&reader.trace_keys.key(number));
                return Err(match fault {
                    TraceFault::NotAnArray => wrong(format!("traceTable[{key}]"), "not an array"),
                    TraceFault::TooLong => {
                        wrong(format!("traceTable[{key}]"), format!("more than {MOST_FRAMES} frames"))
                    }
                    TraceFault::NotAString(nth) => wrong(format!("traceTable[{key}][{nth}]"), "not a string"),
                });
            }
            let end = reader.calls.len();
            if u32::try_from(end).is_err() {
                return Err(AnalyzeError::TooManyEntries(u32::MAX as usize));
            }
            put(&mut traces, number, start as u32..end as u32);
            reader.check_count(0)
        });
        self.traces = Some(traces);
        read
    }

    pub(super) fn frame_table(&mut self) -> Result<(), AnalyzeError> {
        self.frames = None;
        let mut frames = CallTable::default();
        let mut ids = Vec::new();
        let read = self.entries("frameTable", &mut |reader| {
            let keys = &mut reader.frame_keys;
            let (number, frame) = reader.window.take(|scan| {
                let key = scan.string()?;
                scan.expect(b':', "`:`")?;
                let number = keys.number(&key, || KeyUse::Table);
                if scan.peek()? != b'"' {
                    return Ok((number, None));
                }
                Ok((number, Some(frames.read(&scan.string()?))))
            })?;
            let Some(frame) = frame else {
                let key = quoted(&reader.frame_keys.key(number));
                return Err(wrong(format!("frameTable[{key}]"), "not a string"));
            };
            put(&mut ids, number, frame);
            reader.check_count(0)
        });
        self.frames = Some((frames, ids));
        read
    }

    /// Combines the parts into a dump.
    pub(super) fn dump(mut self) -> Result<Dump, AnalyzeError> {
        if self.black_box.as_ref().is_some_and(|facts| facts.is_partial) {
            self.complete();
        }
        if !self.version {
            return Err(missing("version"));
        }
        let invocation = self.invocation.ok_or_else(|| missing("invocation"))?;
        let mut blocks = self.blocks.ok_or_else(|| missing("blockList"))?;
        let weighed = |mean| {
            let sample = weigh(&mut blocks, mean);
            sample.ok_or_else(|| AnalyzeError::Overflow("invocation.sampleBytes".to_owned()))
        };
        let sample = invocation.sample_bytes.map(weighed).transpose()?;
        let found = self.traces.ok_or_else(|| missing("traceTable"))?;
        let (frames, ids) = self.frames.ok_or_else(|| missing("frameTable"))?;
        let no_trace = |number| {
            let place = match self.trace_keys.place(number) {
                KeyUse::Alloc(block) => format!("blockList[{block}].alloc"),
                KeyUse::Reps(block, nth) => format!("blockList[{block}].reps[{nth}]"),
                KeyUse::Mapping(area) => format!("mappings.list[{area}].alloc"),
                KeyUse::Peak(stack) => format!("peak.stacks[{stack}].alloc"),
                KeyUse::Frame(..) | KeyUse::Table => "traceTable".to_owned(),
            };
            let key = quoted(&self.trace_keys.key(number));
            wrong(place, format!("no trace {key} in traceTable"))
        };
        let no_frame = |number| {
            let place = match self.frame_keys.place(number) {
                KeyUse::Frame(trace, nth) => {
                    format!("traceTable['{}'][{nth}]", shorten(&self.trace_keys.key(trace)))
                }
                _ => "frameTable".to_owned(),
            };
            let key = quoted(&self.frame_keys.key(number));
            wrong(place, format!("no frame {key} in frameTable"))
        };
        let traces = all(found, self.trace_keys.len()).map_err(no_trace)?;
        let ids = all(ids, self.frame_keys.len()).map_err(no_frame)?;
        let calls = self.calls.into_iter().map(|number| ids[number as usize]).collect();
        let scan = invocation.mode == Mode::Scan;
        if scan && self.scanned.len() < blocks.len() {
            return Err(missing(format!("blockList[{}].addr", self.scanned.len())));
        }
        debug_assert!(
            blocks.iter().all(|b| b.alloc == DumpTraceId::NONE || (b.alloc.0 as usize) < traces.len())
        );
        let mut measurements = self.measurements;
        measurements.counts = [blocks.len(), traces.len(), frames.len()];
        let mut dump = Dump {
            variable: invocation.variable,
            mode: invocation.mode,
            blocks,
            scanned: if scan { self.scanned } else { Vec::new() },
            words: self.words,
            traces,
            calls,
            frames,
            modules: self.modules,
            reporters: self.reporters,
            faults: Vec::new(),
            measurements,
            time: self.time,
            process: self.process,
            resident_peak: self.resident_peak,
            memory: self.memory,
            shown: DumpTime::End,
            peak: self.peak,
            statistics: self.statistics,
            allocators: self.allocators,
            unseen_frees: self.unseen_frees,
            older_bytes: self.older_bytes,
            older: 0,
            outline: None,
            sample,
            has_means: false,
            is_cut: false,
            black_box: self.black_box,
        };
        faults::add(&mut dump, self.faults);
        Ok(dump)
    }
}

impl<R: Read> DumpReader<'_, R> {
    /// Gives blocks of a partial dump the parts that are missing: empty stacks, and frames without a place.
    fn complete(&mut self) {
        let blocks = self.blocks.get_or_insert_default();
        let traces = self.traces.get_or_insert_default();
        // A trace without its end may have frames already.
        traces.resize(self.trace_keys.len().max(traces.len()), None);
        traces.iter_mut().for_each(|trace| *trace = Some(trace.take().unwrap_or(0..0)));
        let (frames, ids) = self.frames.get_or_insert_default();
        ids.resize(self.frame_keys.len().max(ids.len()), None);
        if ids.iter().any(Option::is_none) {
            let unknown = frames.read("#00: ??? (???:???)");
            ids.iter_mut().for_each(|id| *id = Some(id.unwrap_or(unknown)));
        }
        // In scan mode, the contents of the last block may be missing.
        if self.invocation.as_ref().is_some_and(|invocation| invocation.mode == Mode::Scan) {
            blocks.truncate(self.scanned.len());
        }
    }
}

fn put<T: Clone>(list: &mut Vec<Option<T>>, number: u32, value: T) {
    let index = number as usize;
    if list.len() <= index {
        list.resize(index + 1, None);
    }
    list[index] = Some(value);
}

/// Returns the value of each key. The error is the first key without a value.
fn all<T>(mut found: Vec<Option<T>>, keys: usize) -> Result<Vec<T>, u32> {
    found.resize_with(keys.max(found.len()), || None);
    found.into_iter().enumerate().map(|(number, value)| value.ok_or(number as u32)).collect()
}
