//! The lines of a log, with functions and lines instead of modules and offsets.

use std::collections::HashMap;

use dmd::analyze::{Frame, Module, Verdict};
use dmd::symbolize::{ResolvedFrames, SymbolOptions};
use serde::{Deserialize, Serialize};

/// The most places that stay resolved. A process that names more makes the resolver forget them.
const MOST_PLACES: usize = 1 << 20;

/// A line to write, with its newline.
pub(super) struct Line {
    pub(super) text: String,
    /// It says that entries are missing.
    pub(super) is_overflow: bool,
}

#[derive(Deserialize, Serialize)]
struct Entry {
    frame: Option<Vec<Call>>,
    timestamp: f64,
    class: Option<String>,
    size: u64,
    #[serde(rename = "inNursery")]
    in_nursery: bool,
    requested: u64,
}

#[derive(Deserialize, Serialize)]
struct Call {
    #[serde(rename = "functionDisplayName")]
    function: Option<String>,
    source: String,
    line: u32,
    column: u32,
}

/// What the process says of its log.
#[derive(Deserialize, Serialize)]
struct Note {
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    overflowed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost: Option<u64>,
}

enum Said {
    Entry(Entry),
    Note(Note),
}

/// Looks up places, each once.
pub(super) struct Resolver {
    /// `None`: places stay as they are.
    options: Option<SymbolOptions>,
    frames: ResolvedFrames,
    /// The number of each place in `frames`, from 1.
    places: HashMap<String, usize>,
}

impl Resolver {
    pub(super) fn new(options: Option<SymbolOptions>) -> Self {
        Self { options, frames: ResolvedFrames::default(), places: HashMap::new() }
    }

    /// The lines to write for lines of the process; an error if one of them is none of a log.
    pub(super) fn resolved(&mut self, lines: Vec<String>) -> Result<Vec<Line>, ()> {
        let said: Vec<Said> = lines.iter().map(|line| said(line).ok_or(())).collect::<Result<_, ()>>()?;
        if let Some(options) = self.options.clone() {
            self.look_up(&said, &options);
        }
        let line = |said| match said {
            Said::Entry(entry) => Line { text: text(&self.with_symbols(entry)), is_overflow: false },
            Said::Note(note) => Line { text: text(&note), is_overflow: note.overflowed },
        };
        Ok(said.into_iter().map(line).collect())
    }

    fn look_up(&mut self, said: &[Said], options: &SymbolOptions) {
        if self.places.len() > MOST_PLACES {
            *self = Self::new(self.options.take());
        }
        let (mut asked, mut modules, mut numbers) = (Vec::new(), Vec::new(), HashMap::new());
        let entries = said.iter().filter_map(|said| match said {
            Said::Entry(entry) => entry.frame.as_ref(),
            Said::Note(_) => None,
        });
        for call in entries.flatten().filter(|call| call.function.is_none()) {
            let Some((module, offset)) = place(&call.source) else { continue };
            if self.places.contains_key(&call.source) {
                continue;
            }
            let number = *numbers.entry(module).or_insert_with(|| {
                modules.push(Module { path: module.to_owned(), build_id: String::new(), bias: None });
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

    /// The entry with functions, without the calls inside the allocator.
    fn with_symbols(&self, mut entry: Entry) -> Entry {
        let Some(calls) = entry.frame.take() else { return entry };
        if calls.iter().all(|call| !self.places.contains_key(&call.source)) {
            entry.frame = Some(calls);
            return entry;
        }
        let mut frames: Vec<Frame<'_>> = Vec::new();
        for call in &calls {
            match self.places.get(&call.source) {
                Some(address) => frames.extend(self.frames.get(*address)),
                None => frames.push(call.frame()),
            }
        }
        let own = frames.iter().take_while(|frame| frame.is_of_allocator()).count();
        // If all calls are the allocator's, keep them.
        let frames = &frames[if own == frames.len() { 0 } else { own }..];
        if entry.class.is_none() {
            entry.class = Verdict::of(frames).type_name();
        }
        entry.frame = Some(frames.iter().map(Call::of).collect());
        entry
    }
}

impl Call {
    fn of(frame: &Frame<'_>) -> Self {
        let source = match (frame.file, frame.module, frame.offset) {
            (Some(file), ..) => file.to_owned(),
            (None, Some(module), Some(offset)) => format!("{module} +0x{offset:x}"),
            (None, module, _) => module.unwrap_or("???").to_owned(),
        };
        let (line, column) = (frame.line.unwrap_or_default(), frame.column.unwrap_or_default());
        Self { function: frame.function.map(str::to_owned), source, line, column }
    }

    fn frame(&self) -> Frame<'_> {
        let mut frame = Frame::default();
        frame.function = self.function.as_deref();
        frame.file = Some(&self.source);
        frame.line = Some(self.line).filter(|line| *line > 0);
        frame
    }
}

/// The module and the offset that a source stands for.
fn place(source: &str) -> Option<(&str, u64)> {
    let (module, offset) = source.rsplit_once(" +0x")?;
    Some((module, u64::from_str_radix(offset, 16).ok()?))
}

fn said(line: &str) -> Option<Said> {
    if let Ok(entry) = serde_json::from_str(line) {
        return Some(Said::Entry(entry));
    }
    serde_json::from_str(line).ok().map(Said::Note)
}

fn text(line: &impl Serialize) -> String {
    let mut text = serde_json::to_string(line).expect("plain data is always JSON");
    text.push('\n');
    text
}
