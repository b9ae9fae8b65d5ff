//! The lines of a log, with functions and lines instead of modules and offsets.

use std::collections::{HashMap, HashSet};

use dmd_analyze::symbolize::{ResolvedFrames, SymbolOptions};
use dmd_analyze::{CallFrame, LoadedModule, TypeVerdict};
use serde::{Deserialize, Serialize};

/// At most this many places stay resolved. If a process names more places, the resolver forgets all resolved places.
const MOST_PLACES: usize = 1 << 20;

/// At most this many bytes of resolved stacks are kept, as text.
const MOST_TEXT: usize = 64 << 20;

/// A line to write, with its newline.
pub(super) struct LogLine {
    pub(super) text: String,
    /// Whether the line reports that entries are missing.
    pub(super) is_overflow: bool,
}

/// An entry without its stack.
#[derive(Deserialize, Serialize)]
struct LoggedAllocation {
    timestamp: f64,
    class: Option<String>,
    size: u64,
    #[serde(rename = "inNursery")]
    in_nursery: bool,
    requested: u64,
}

#[derive(Deserialize, Serialize)]
struct LoggedCall {
    #[serde(rename = "functionDisplayName")]
    function: Option<String>,
    source: String,
    line: u32,
    column: u32,
}

/// A note of the process about its log.
#[derive(Deserialize, Serialize)]
struct LogNote {
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    overflowed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost: Option<u64>,
}

enum LogMessage<'l> {
    /// The text of the stack, and the other fields of the entry.
    Entry(&'l str, LoggedAllocation),
    Note(LogNote),
}

type LoggedStack = Option<Vec<LoggedCall>>;

/// A resolved stack, as text.
struct WrittenStack {
    json: String,
    /// The Rust type that the stack names.
    class: Option<String>,
}

/// Resolves each place and writes each stack only once.
pub(super) struct StackWriter {
    /// `None` leaves the places unresolved.
    options: Option<SymbolOptions>,
    frames: ResolvedFrames,
    /// The number of each place in `frames`, from 1.
    places: HashMap<String, usize>,
    /// The key is the text that the process sends. A log has few different stacks, and each has thousands of bytes.
    stacks: HashMap<String, WrittenStack>,
    /// Bytes of all texts in `stacks`.
    text: usize,
}

impl StackWriter {
    pub(super) fn new(options: Option<SymbolOptions>) -> Self {
        let (frames, places, stacks) = (ResolvedFrames::default(), HashMap::new(), HashMap::new());
        Self { options, frames, places, stacks, text: 0 }
    }

    /// Returns the lines to write for lines of the process. A line that does not belong to a log is an error.
    pub(super) fn resolved(&mut self, lines: &[String]) -> Result<Vec<LogLine>, ()> {
        let said: Vec<LogMessage<'_>> =
            lines.iter().map(|line| said(line).ok_or(())).collect::<Result<_, ()>>()?;
        if self.text > MOST_TEXT {
            self.stacks.clear();
            self.text = 0;
        }
        self.resolve(&said)?;
        let line = |said| match said {
            LogMessage::Entry(stack, allocation) => {
                LogLine { text: self.with_symbols(stack, allocation), is_overflow: false }
            }
            LogMessage::Note(note) => LogLine { text: text(&note) + "\n", is_overflow: note.overflowed },
        };
        Ok(said.into_iter().map(line).collect())
    }

    /// Resolves the new stacks. A text that is not a stack is an error.
    fn resolve(&mut self, said: &[LogMessage<'_>]) -> Result<(), ()> {
        let (mut fresh, mut texts): (Vec<(&str, LoggedStack)>, _) = (Vec::new(), HashSet::new());
        for said in said {
            if let LogMessage::Entry(text, _) = said
                && !self.stacks.contains_key(*text)
                && texts.insert(*text)
            {
                fresh.push((text, serde_json::from_str(text).map_err(|_| ())?));
            }
        }
        if let Some(options) = self.options.clone() {
            self.look_up(fresh.iter().filter_map(|(_, calls)| calls.as_ref()).flatten(), &options);
        }
        for (text, stack) in fresh {
            let resolved = self.resolved_stack(stack);
            self.text += text.len() + resolved.json.len();
            self.stacks.insert(text.to_owned(), resolved);
        }
        Ok(())
    }

    fn look_up<'c>(&mut self, calls: impl Iterator<Item = &'c LoggedCall>, options: &SymbolOptions) {
        if self.places.len() > MOST_PLACES {
            (self.frames, self.places) = (ResolvedFrames::default(), HashMap::new());
        }
        let (mut asked, mut modules, mut numbers) = (Vec::new(), Vec::new(), HashMap::new());
        for call in calls.filter(|call| call.function.is_none()) {
            let Some((module, offset)) = place(&call.source) else { continue };
            if self.places.contains_key(&call.source) {
                continue;
            }
            let number = *numbers.entry(module).or_insert_with(|| {
                modules.push(LoadedModule { path: module.to_owned(), ..LoadedModule::default() });
                modules.len() - 1
            });
            let address = self.places.len() + 1;
            self.places.insert(call.source.clone(), address);
            asked.push((address, Some((number, offset))));
        }
        if !asked.is_empty() {
            self.frames.look_up(&asked, &modules, options);
        }
    }

    /// Returns the stack with functions, without the calls inside the allocator.
    fn resolved_stack(&self, stack: LoggedStack) -> WrittenStack {
        let unchanged = |stack: &LoggedStack| WrittenStack { json: text(stack), class: None };
        let Some(calls) = &stack else { return unchanged(&stack) };
        if calls.iter().all(|call| !self.places.contains_key(&call.source)) {
            return unchanged(&stack);
        }
        let mut frames: Vec<CallFrame<'_>> = Vec::new();
        for call in calls {
            match self.places.get(&call.source) {
                Some(address) => frames.extend(self.frames.get(*address)),
                None => frames.push(call.frame()),
            }
        }
        let own = frames.iter().take_while(|frame| frame.is_of_allocator()).count();
        // Omits the calls inside the allocator, unless all calls are inside the allocator.
        let frames = &frames[if own == frames.len() { 0 } else { own }..];
        let calls: Vec<LoggedCall> = frames.iter().map(LoggedCall::new).collect();
        WrittenStack { json: text(&calls), class: TypeVerdict::from_stack(frames).type_name() }
    }

    fn with_symbols(&self, stack: &str, mut allocation: LoggedAllocation) -> String {
        let resolved = &self.stacks[stack];
        if allocation.class.is_none() {
            allocation.class.clone_from(&resolved.class);
        }
        let rest = text(&allocation);
        // Joins two JSON objects into one.
        format!("{FRAME}{},{}\n", resolved.json, &rest[1..])
    }
}

impl LoggedCall {
    fn new(frame: &CallFrame<'_>) -> Self {
        let source = match (frame.file, frame.module, frame.offset) {
            (Some(file), ..) => file.to_owned(),
            (None, Some(module), Some(offset)) => format!("{module} +0x{offset:x}"),
            (None, module, _) => module.unwrap_or("???").to_owned(),
        };
        let (line, column) = (frame.line.unwrap_or_default(), frame.column.unwrap_or_default());
        Self { function: frame.function.map(str::to_owned), source, line, column }
    }

    fn frame(&self) -> CallFrame<'_> {
        let mut frame = CallFrame::default();
        frame.function = self.function.as_deref();
        frame.file = Some(&self.source);
        frame.line = Some(self.line).filter(|line| *line > 0);
        frame
    }
}

/// Returns the module and the offset that a source names.
fn place(source: &str) -> Option<(&str, u64)> {
    let (module, offset) = source.rsplit_once(" +0x")?;
    Some((module, u64::from_str_radix(offset, 16).ok()?))
}

/// The start of each entry. It does not occur inside a JSON string, where each quotation mark follows a backslash.
const FRAME: &str = "{\"frame\":";
/// The text after the stack of an entry. It does not occur inside a JSON string either.
const AFTER_FRAME: &str = ",\"timestamp\":";

fn said(line: &str) -> Option<LogMessage<'_>> {
    let Some(entry) = line.strip_prefix(FRAME) else {
        return serde_json::from_str(line).ok().map(LogMessage::Note);
    };
    let (stack, _) = entry.split_once(AFTER_FRAME)?;
    let rest = format!("{{{}", &entry[stack.len() + 1..]);
    Some(LogMessage::Entry(stack, serde_json::from_str(&rest).ok()?))
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data is always JSON")
}
