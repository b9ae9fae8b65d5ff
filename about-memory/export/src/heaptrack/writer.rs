//! Writes the lines of a file. A text, an instruction or a trace comes before its first use.

use core::ops::Range;
use std::borrow::Cow;
use std::io;
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::error::ExportError;
use crate::stack_profile::{BlockOwner, ProfileFrame, ProfileFrameId, ProfileStackId, StackProfile};

use super::lines::HeaptrackLines;

/// The first address for frames without an address. No program has such addresses. Each such frame gets another
/// address, because the client treats equal addresses as one place.
const NOWHERE: u64 = 0xffff_0000_0000_0000;

pub(super) struct HeaptrackWriter<'a, S> {
    stacks: &'a StackProfile,
    /// A function that receives the lines in pieces.
    send: S,
    lines: HeaptrackLines,
    /// The numbers of texts of code. Texts of owners are not stored: few lines use them, and they may outnumber all
    /// other texts.
    texts: FxHashMap<String, u64>,
    next_text: u64,
    /// The numbers of instructions with several frames at one address. `single` has the instructions with one frame.
    instructions: FxHashMap<Box<[ProfileFrameId]>, u64>,
    single: Vec<u64>,
    next_instruction: u64,
    traces: u64,
    kinds: u64,
    last_kind: (u64, u64),
    /// The last trace, from its outermost frame: pairs of an instruction and its trace.
    path: Vec<(u64, u64)>,
    /// The number of frames in `path` that represent the owner.
    of_owner: usize,
    last_stack: Option<ProfileStackId>,
    /// The instructions of all stacks so far, each stack from its outermost frame.
    found: Vec<u64>,
    of_stacks: Vec<Option<Range<u32>>>,
}

impl<'a, S: FnMut(HeaptrackLines) -> io::Result<()>> HeaptrackWriter<'a, S> {
    pub(super) fn new(stacks: &'a StackProfile, send: S) -> Self {
        let program = &stacks.facts().program;
        let program = line(if program.is_empty() { "unknown" } else { program });
        let mut lines = HeaptrackLines::new();
        lines.text(b'v', "10400 2");
        lines.text(b'X', &program);
        lines.text(b'I', "1000 0");
        Self {
            stacks,
            send,
            lines,
            texts: FxHashMap::default(),
            next_text: 1,
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
            of_stacks: vec![None; stacks.stack_count()],
        }
    }

    /// Adds a line with a letter and numbers.
    fn line(&mut self, mode: u8, numbers: &[u64]) -> io::Result<()> {
        self.lines.numbers(mode, numbers);
        self.send_piece()
    }

    fn send_piece(&mut self) -> io::Result<()> {
        if self.lines.is_piece() { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> io::Result<()> {
        (self.send)(core::mem::replace(&mut self.lines, HeaptrackLines::new()))
    }

    fn text(&mut self, text: &str) -> u64 {
        let text = line(text);
        if let Some(known) = self.texts.get(&*text) {
            return *known;
        }
        let number = self.new_text(&text);
        self.texts.insert(text.into_owned(), number);
        number
    }

    fn new_text(&mut self, text: &str) -> u64 {
        self.lines.text(b's', text);
        self.next_text += 1;
        self.next_text - 1
    }

    /// Starts the traces of another owner.
    pub(super) fn begin_owner(&mut self, owner: &BlockOwner<'_>) -> io::Result<()> {
        self.path.clear();
        self.last_stack = None;
        for name in owner.frames() {
            let text = self.new_text(&line(&name));
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

    /// The trace of a stack. If stacks are passed in order, each common start is written once.
    pub(super) fn next_trace(&mut self, stack: ProfileStackId) -> io::Result<u64> {
        if self.last_stack != Some(stack) {
            self.last_stack = Some(stack);
            let Range { start, end } = self.instructions_of(stack)?;
            let known = self.path[self.of_owner..].iter().map(|(instruction, _)| instruction);
            let same = known.zip(&self.found[start..end]).take_while(|(a, b)| a == b).count();
            self.path.truncate(self.of_owner + same);
            for at in start + same..end {
                self.extend(self.found[at])?;
            }
        }
        Ok(self.path.last().map_or(0, |(_, trace)| *trace))
    }

    /// The range of a stack's instructions in `found`.
    fn instructions_of(&mut self, stack: ProfileStackId) -> io::Result<Range<usize>> {
        let index = stack.0 as usize;
        if let Some(Range { start, end }) = &self.of_stacks[index] {
            return Ok(*start as usize..*end as usize);
        }
        let start = self.found.len();
        let stacks = self.stacks;
        for frames in stacks.addresses(stack) {
            let instruction = self.instruction(frames)?;
            self.found.push(instruction);
        }
        self.found[start..].reverse();
        let end = self.found.len();
        self.of_stacks[index] = Some(start as u32..end as u32);
        Ok(start..end)
    }

    fn instruction(&mut self, frames: &[ProfileFrameId]) -> io::Result<u64> {
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
            let frame @ ProfileFrame { function, file, line, .. } = stacks.frame(*id);
            if function.is_none() && frames.len() == 1 && first.offset.is_some() {
                // The client shows the module and the address instead.
                break;
            }
            numbers.push(self.text(&stacks.frame_name(&frame)));
            match file {
                Some(file) => numbers.extend([self.text(file), line.unwrap_or_default().into()]),
                // Between two functions, the client expects a file and a line.
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

    /// Adds a kind of allocations.
    pub(super) fn kind(&mut self, size: u64, trace: u64) -> io::Result<u64> {
        self.line(b'a', &[size, trace])?;
        self.kinds += 1;
        self.last_kind = (size, trace);
        Ok(self.kinds - 1)
    }

    /// Adds `count` blocks of a size.
    pub(super) fn allocate(&mut self, size: u64, trace: u64, count: u64) -> io::Result<()> {
        if count == 0 {
            return Ok(());
        }
        let is_known = self.kinds > 0 && self.last_kind == (size, trace);
        let kind = if is_known { self.kinds - 1 } else { self.kind(size, trace)? };
        self.lines.repeated(b'+', kind, count);
        self.send_piece()
    }

    pub(super) fn event(&mut self, mode: char, kind: u64) -> io::Result<()> {
        self.line(mode as u8, &[kind])
    }

    pub(super) fn time(&mut self, time: Duration) -> io::Result<()> {
        self.line(b'c', &[u64::try_from(time.as_millis()).unwrap_or(u64::MAX)])
    }

    pub(super) fn finish(mut self, duration: Option<Duration>) -> Result<(), ExportError> {
        self.time(duration.unwrap_or_default())?;
        Ok(self.send()?)
    }
}

/// A text without line breaks.
fn line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return text.into();
    }
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
