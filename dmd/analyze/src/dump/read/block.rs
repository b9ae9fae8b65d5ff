//! Reads the array `blockList`.

use std::io::Read;

use memory_report::reader::{ScanStop, TextScan, ValueSkip};

use super::value::{ValueKind, address, size};
use super::{DumpReader, wrong};
use crate::dump::keys::{DumpKeys, KeyUse};
use crate::dump::trace_id::DumpTraceId;
use crate::dump::{BlockContents, DumpBlock};
use crate::error::AnalyzeError;

/// The depth of a block's members.
const DEPTH: u32 = 3;

/// The number of a missing reporter.
const NOBODY: u32 = u32::MAX;

/// A fault of a block: the faulty member (empty for the block itself), and the reason.
type BlockFault = (&'static str, &'static str);

/// The members of a block that were read so far.
#[derive(Clone, Copy)]
struct PartialBlock {
    begun: bool,
    req: Option<u64>,
    slop: u64,
    num: u64,
    alloc: DumpTraceId,
    reps: [DumpTraceId; 2],
    reporters: [u32; 2],
    sampled: bool,
    swapped: u64,
    untouched: u64,
    addr: Option<u64>,
}

/// The part of a block that the reader has read.
enum BlockProgress {
    ToTheEnd,
    /// The next value is `contents`. It may be longer than the window.
    ToContents,
    Wrong(BlockFault),
}

impl<R: Read> DumpReader<'_, R> {
    pub(super) fn block_list(&mut self) -> Result<(), AnalyzeError> {
        self.blocks = None;
        self.scanned.clear();
        self.words.clear();
        self.total = 0;
        let mut blocks = Vec::new();
        let read = self.elements("blockList", &mut |reader, index| {
            reader.check_count(index + 1)?;
            reader.block(index, &mut blocks)
        });
        self.blocks = Some(blocks);
        read
    }

    fn block(&mut self, index: usize, blocks: &mut Vec<DumpBlock>) -> Result<(), AnalyzeError> {
        let mut partial = PartialBlock {
            begun: false,
            req: None,
            slop: 0,
            num: 1,
            alloc: DumpTraceId::NONE,
            reps: [DumpTraceId::NONE; 2],
            reporters: [NOBODY; 2],
            sampled: false,
            swapped: 0,
            untouched: 0,
            addr: None,
        };
        let first_word = self.words.len();
        let mut text = None;
        loop {
            let keys = &mut self.trace_keys;
            let (part, taken) = self.window.take(|scan| {
                let mut partial = partial;
                Ok((partial.take(scan, keys, index)?, partial))
            })?;
            partial = taken;
            match part {
                BlockProgress::ToTheEnd => break,
                BlockProgress::ToContents => {
                    let start = self.window.position();
                    self.words.truncate(first_word);
                    self.contents(index)?;
                    text = Some(start..self.window.position());
                }
                BlockProgress::Wrong((member, how)) => return Err(wrong(place(index, member), how)),
            }
        }
        let req = partial.req.ok_or_else(|| AnalyzeError::Missing(place(index, "req")))?;
        let block = DumpBlock {
            req,
            slop: partial.slop,
            num: partial.num,
            alloc: partial.alloc,
            reps: partial.reps,
            reporters: partial.reporters,
            sampled: partial.sampled,
            swapped: partial.swapped,
            untouched: partial.untouched,
            weight: 1.0,
        };
        let bytes = block.usable().checked_mul(i128::from(block.num));
        self.total = bytes
            .and_then(|bytes| self.total.checked_add(bytes))
            .ok_or_else(|| AnalyzeError::Overflow(place(index, "")))?;
        let absent = i128::from(block.swapped) + i128::from(block.untouched);
        if bytes.is_some_and(|bytes| absent > bytes) {
            return Err(wrong(place(index, "untouched"), "more bytes than the blocks have"));
        }
        blocks.push(block);
        if let Some(addr) = partial.addr {
            // Only dumps of scan mode have addresses. The first block without an address ends `scanned`.
            if self.scanned.len() == index {
                self.scanned.push(BlockContents { addr, words: first_word..self.words.len(), text });
            }
        }
        Ok(())
    }

    /// Reads the words of a block, one by one.
    fn contents(&mut self, index: usize) -> Result<(), AnalyzeError> {
        if !self.next_is(b'[')? {
            return Err(wrong(place(index, "contents"), "not an array"));
        }
        if !self.options.contents {
            let mut skip = ValueSkip::new(DEPTH);
            return Ok(self.window.stream(|scan| skip.run(scan))?);
        }
        let words = &mut self.words;
        let first = words.len();
        let most = self.options.max_entries.saturating_mul(8);
        let mut at = WordsState::Start;
        let mut fault = None;
        self.window.stream(|scan| {
            loop {
                at = scan.whole(|scan| at.step(scan, words, &mut fault))?;
                if at == WordsState::End || fault.is_some() || words.len() > most {
                    return Ok(());
                }
            }
        })?;
        if words.len() > most {
            return Err(AnalyzeError::TooManyEntries(self.options.max_entries));
        }
        match fault {
            None => Ok(()),
            Some(how) => {
                let place = format!("{}[{}]", place(index, "contents"), self.words.len() - first);
                Err(wrong(place, how))
            }
        }
    }
}

/// The position in an array of words.
#[derive(Clone, Copy, PartialEq)]
enum WordsState {
    Start,
    First,
    Next,
    CommaOrEnd,
    End,
}

impl WordsState {
    fn step(
        self,
        scan: &mut TextScan<'_>,
        words: &mut Vec<u64>,
        fault: &mut Option<&'static str>,
    ) -> Result<Self, ScanStop> {
        match self {
            Self::Start => scan.expect(b'[', "`[`").map(|()| Self::First),
            Self::First if scan.eat(b']')? => Ok(Self::End),
            Self::First | Self::Next => {
                match ValueKind::take(scan, DEPTH + 1)? {
                    ValueKind::Text(text) => match address(&text) {
                        Ok(word) => words.push(word),
                        Err(how) => *fault = Some(how),
                    },
                    _ => *fault = Some("not a string"),
                }
                Ok(Self::CommaOrEnd)
            }
            Self::CommaOrEnd if scan.eat(b',')? => Ok(Self::Next),
            Self::CommaOrEnd => scan.expect(b']', "`,` or `]`").map(|()| Self::End),
            Self::End => Ok(Self::End),
        }
    }
}

impl PartialBlock {
    fn take(
        &mut self,
        scan: &mut TextScan<'_>,
        keys: &mut DumpKeys,
        index: usize,
    ) -> Result<BlockProgress, ScanStop> {
        let mut first = !self.begun;
        if first {
            if scan.peek()? != b'{' {
                return Ok(BlockProgress::Wrong(("", "not an object")));
            }
            scan.expect(b'{', "`{`")?;
            self.begun = true;
        }
        loop {
            if scan.eat(b'}')? {
                return Ok(BlockProgress::ToTheEnd);
            }
            if !first {
                scan.expect(b',', "`,` or `}`")?;
            }
            first = false;
            let key = scan.string()?;
            scan.expect(b':', "`:`")?;
            if let Err(part) = self.member(&key, scan, keys, index)? {
                return Ok(part);
            }
        }
    }

    /// Reads the value of a member. Returns the inner error if [`take`](Self::take) must stop at this member: at
    /// `contents`, which another function reads, or at a fault.
    fn member(
        &mut self,
        key: &str,
        scan: &mut TextScan<'_>,
        keys: &mut DumpKeys,
        index: usize,
    ) -> Result<Result<(), BlockProgress>, ScanStop> {
        let wrong = |member| move |how| BlockProgress::Wrong((member, how));
        Ok(match key {
            "req" => size(scan, DEPTH)?.map(|n| self.req = Some(n)).map_err(wrong("req")),
            "slop" => size(scan, DEPTH)?.map(|n| self.slop = n).map_err(wrong("slop")),
            "num" => size(scan, DEPTH)?.map(|n| self.num = n).map_err(wrong("num")),
            "alloc" => match trace_key(scan, keys, || KeyUse::Alloc(index as u32))? {
                Some(trace) => {
                    self.alloc = trace;
                    Ok(())
                }
                None => Err(BlockProgress::Wrong(("alloc", "not a string"))),
            },
            "reps" => self.reports(scan, keys, index)?.map_err(wrong("reps")),
            "swapped" => size(scan, DEPTH)?.map(|n| self.swapped = n).map_err(wrong("swapped")),
            "untouched" => size(scan, DEPTH)?.map(|n| self.untouched = n).map_err(wrong("untouched")),
            "addr" => match ValueKind::take(scan, DEPTH)? {
                ValueKind::Text(text) => address(&text).map(|n| self.addr = Some(n)),
                _ => Err("not a string"),
            }
            .map_err(wrong("addr")),
            "contents" => {
                scan.peek()?;
                Err(BlockProgress::ToContents)
            }
            "repPaths" if scan.peek()? == b'[' => {
                self.reporters(scan)?;
                Ok(())
            }
            "sampled" => {
                self.sampled = matches!(ValueKind::take(scan, DEPTH)?, ValueKind::Truth(true));
                Ok(())
            }
            _ => {
                scan.skip(DEPTH)?;
                Ok(())
            }
        })
    }

    /// Reads the reporters of a block. Firefox's dumps do not have them. The reader ignores values of another type.
    fn reporters(&mut self, scan: &mut TextScan<'_>) -> Result<(), ScanStop> {
        self.reporters = [NOBODY; 2];
        scan.expect(b'[', "`[`")?;
        if scan.eat(b']')? {
            return Ok(());
        }
        for nth in 0.. {
            if let ValueKind::Number(number) = ValueKind::take(scan, DEPTH + 1)?
                && let Some(place) = self.reporters.get_mut(nth)
            {
                *place = number.parse().unwrap_or(NOBODY);
            }
            if !scan.eat(b',')? {
                break;
            }
        }
        scan.expect(b']', "`,` or `]`")
    }

    fn reports(
        &mut self,
        scan: &mut TextScan<'_>,
        keys: &mut DumpKeys,
        index: usize,
    ) -> Result<Result<(), &'static str>, ScanStop> {
        self.reps = [DumpTraceId::NONE; 2];
        if !scan.eat(b'[')? {
            return Ok(Err("not an array"));
        }
        if scan.eat(b']')? {
            return Ok(Ok(()));
        }
        for nth in 0.. {
            let Some(trace) = trace_key(scan, keys, || KeyUse::Reps(index as u32, nth))? else {
                return Ok(Err("contains a value that is not a string"));
            };
            match self.reps.get_mut(usize::from(nth)) {
                Some(place) => *place = trace,
                None => return Ok(Err("more than two")),
            }
            if !scan.eat(b',')? {
                break;
            }
        }
        scan.expect(b']', "`,` or `]`")?;
        Ok(Ok(()))
    }
}

/// Reads a key and returns its number; `None` if the next value is not a string.
#[inline]
fn trace_key(
    scan: &mut TextScan<'_>,
    keys: &mut DumpKeys,
    place: impl FnOnce() -> KeyUse,
) -> Result<Option<DumpTraceId>, ScanStop> {
    if scan.peek()? != b'"' {
        return Ok(None);
    }
    Ok(Some(DumpTraceId(keys.number(&scan.string()?, place))))
}

fn place(index: usize, member: &str) -> String {
    let dot = if member.is_empty() { "" } else { "." };
    format!("blockList[{index}]{dot}{member}")
}
