//! The lines of a file. A text, an instruction or a trace comes before its first use.

use std::io::{self, Write};
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::error::ExportError;
use crate::stacks::{Frame, FrameId, Owner, StackId, Stacks};

/// Lines are sent in pieces.
const PIECE: usize = 1 << 16;

/// The addresses of frames without one. No program has them, and the client takes equal addresses for one place.
const NOWHERE: u64 = 0xffff_0000_0000_0000;

pub(super) struct Writer<'a, W: Write> {
    stacks: &'a Stacks,
    out: W,
    /// Lines that are to be sent.
    lines: Vec<u8>,
    texts: FxHashMap<String, u64>,
    /// The instructions of frames at one address, and of one frame alone.
    instructions: FxHashMap<Box<[FrameId]>, u64>,
    single: Vec<u64>,
    next_instruction: u64,
    traces: u64,
    kinds: u64,
    last_kind: (u64, u64),
    /// The last trace, from its outermost frame on: the instructions, each with its trace.
    path: Vec<(u64, u64)>,
    /// The number of frames in `path` that stand for the owner.
    of_owner: usize,
    last_stack: Option<StackId>,
    /// The instructions of a stack, the innermost first.
    found: Vec<u64>,
}

impl<'a, W: Write> Writer<'a, W> {
    pub(super) fn new(stacks: &'a Stacks, out: W) -> io::Result<Self> {
        let program = &stacks.facts().program;
        let program = line(if program.is_empty() { "unknown" } else { program });
        Ok(Self {
            stacks,
            out,
            lines: format!("v 10400 2\nX {program}\nI 1000 0\n").into(),
            texts: FxHashMap::default(),
            instructions: FxHashMap::default(),
            single: vec![0; stacks.frame_count()],
            next_instruction: 1,
            traces: 0,
            kinds: 0,
            last_kind: (0, 0),
            path: Vec::new(),
            of_owner: 0,
            last_stack: None,
            found: Vec::new(),
        })
    }

    /// Writes a line: a letter and numbers.
    fn line(&mut self, mode: u8, numbers: &[u64]) -> io::Result<()> {
        self.lines.push(mode);
        numbers.iter().for_each(|number| push_hexadecimal(&mut self.lines, *number));
        self.lines.push(b'\n');
        if self.lines.len() >= PIECE { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> io::Result<()> {
        self.out.write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }

    fn text(&mut self, text: &str) -> u64 {
        let text = line(text);
        if let Some(known) = self.texts.get(&text) {
            return *known;
        }
        self.lines.extend_from_slice(b"s ");
        self.lines.extend_from_slice(text.as_bytes());
        self.lines.push(b'\n');
        let next = self.texts.len() as u64 + 1;
        self.texts.insert(text, next);
        next
    }

    /// Starts traces of another owner.
    pub(super) fn begin_owner(&mut self, owner: &Owner<'_>) -> io::Result<()> {
        self.path.clear();
        self.last_stack = None;
        for name in owner.frames() {
            let text = self.text(&name);
            let number = self.next_instruction;
            self.next_instruction += 1;
            self.line(b'i', &[NOWHERE + number, 0, text])?;
            self.extend(number)?;
        }
        self.of_owner = self.path.len();
        Ok(())
    }

    /// Adds an instruction to the path.
    fn extend(&mut self, instruction: u64) -> io::Result<()> {
        let caller = self.path.last().map_or(0, |(_, trace)| *trace);
        self.traces += 1;
        self.path.push((instruction, self.traces));
        self.line(b't', &[instruction, caller])
    }

    /// The trace of a stack. If stacks come in order, each common start of them is written once.
    pub(super) fn next_trace(&mut self, stack: StackId) -> io::Result<u64> {
        if self.last_stack != Some(stack) {
            self.last_stack = Some(stack);
            let mut found = core::mem::take(&mut self.found);
            found.clear();
            let stacks = self.stacks;
            for frames in stacks.addresses(stack) {
                found.push(self.instruction(frames)?);
            }
            let known = self.path[self.of_owner..].iter().map(|(instruction, _)| instruction);
            let same = known.zip(found.iter().rev()).take_while(|(a, b)| a == b).count();
            self.path.truncate(self.of_owner + same);
            for instruction in found.iter().rev().skip(same) {
                self.extend(*instruction)?;
            }
            self.found = found;
        }
        Ok(self.path.last().map_or(0, |(_, trace)| *trace))
    }

    fn instruction(&mut self, frames: &[FrameId]) -> io::Result<u64> {
        let known = match frames {
            [frame] => Some(self.single[frame.0 as usize]).filter(|number| *number != 0),
            frames => self.instructions.get(frames).copied(),
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let stacks = self.stacks;
        let first = stacks.frame(frames[0]);
        let module = match first.module {
            Some(module) => self.text(&stacks.modules()[module.0 as usize].path),
            None => 0,
        };
        let number = self.next_instruction;
        self.next_instruction += 1;
        let mut numbers = vec![first.offset.unwrap_or(NOWHERE + number), module];
        for (index, id) in frames.iter().enumerate() {
            let frame @ Frame { function, file, line, .. } = stacks.frame(*id);
            if function.is_none() && frames.len() == 1 && first.offset.is_some() {
                // The client shows the module and the address.
                break;
            }
            numbers.push(self.text(&stacks.frame_name(&frame)));
            match file {
                Some(file) => numbers.extend([self.text(file), line.unwrap_or_default().into()]),
                // A file and a line are between two functions.
                None if index + 1 < frames.len() => numbers.extend([0, 0]),
                None => {}
            }
        }
        self.line(b'i', &numbers)?;
        match frames {
            [frame] => self.single[frame.0 as usize] = number,
            frames => drop(self.instructions.insert(frames.into(), number)),
        }
        Ok(number)
    }

    /// A new kind of allocations.
    pub(super) fn kind(&mut self, size: u64, trace: u64) -> io::Result<u64> {
        self.line(b'a', &[size, trace])?;
        self.kinds += 1;
        self.last_kind = (size, trace);
        Ok(self.kinds - 1)
    }

    /// Blocks of a size.
    pub(super) fn allocate(&mut self, size: u64, trace: u64, count: u64) -> io::Result<()> {
        if count == 0 {
            return Ok(());
        }
        let is_known = self.kinds > 0 && self.last_kind == (size, trace);
        let kind = if is_known { self.kinds - 1 } else { self.kind(size, trace)? };
        let start = self.lines.len();
        self.lines.push(b'+');
        push_hexadecimal(&mut self.lines, kind);
        self.lines.push(b'\n');
        let line = self.lines.len() - start;
        let mut written = 1;
        while written < count {
            // As many of the last lines again as there are.
            let more = written.min(count - written).min((PIECE / line) as u64);
            let last = self.lines.len() - more as usize * line;
            self.lines.extend_from_within(last..);
            written += more;
            if self.lines.len() >= 2 * PIECE {
                self.out.write_all(&self.lines[..last])?;
                self.lines.drain(..last);
            }
        }
        Ok(())
    }

    pub(super) fn event(&mut self, mode: char, kind: u64) -> io::Result<()> {
        self.line(mode as u8, &[kind])
    }

    pub(super) fn time(&mut self, time: Duration) -> io::Result<()> {
        self.line(b'c', &[u64::try_from(time.as_millis()).unwrap_or(u64::MAX)])
    }

    pub(super) fn finish(mut self, duration: Option<Duration>) -> Result<(), ExportError> {
        self.time(duration.unwrap_or_default())?;
        self.send()?;
        self.out.flush()?;
        Ok(())
    }
}

/// A text as one line.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Adds a blank and a number. Files have tens of millions of numbers, and formatting takes several times as long.
fn push_hexadecimal(out: &mut Vec<u8>, number: u64) {
    let digits = (u64::BITS - number.leading_zeros()).div_ceil(4).max(1);
    let mut text = [b' '; 17];
    for digit in 0..digits {
        let value = number >> (4 * (digits - 1 - digit)) & 15;
        text[1 + digit as usize] = b"0123456789abcdef"[value as usize];
    }
    // A copy of a fixed length is a few instructions.
    let end = out.len() + 1 + digits as usize;
    out.extend_from_slice(&text);
    out.truncate(end);
}
