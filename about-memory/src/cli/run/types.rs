//! The types of a program's heap at one moment of its life, from a copy that the process has made of itself.

use std::path::PathBuf;
use std::time::Duration;

use about_memory::live::{CopyKeeper, KeptCopy};
use clap::Args;
use dmd_analyze::Dump;
use dmd_analyze::recording::Moment;
use heap_graph::DominatorTree;
use heap_graph::dominators::sizes_by_field;
use typed_heap::{FROM_OUTSIDE, MemorySource, TypedHeap};

use super::super::dump_limits::DumpLimits;
use super::super::heap::{self, TypedHeapReader};
use super::super::symbols::SymbolSearch;
use super::{Failure, say};

/// The table of types has at least this many rows. The table of unused memory has at most this many rows.
const ROWS: usize = 5;
const OWNERS: usize = 10;

/// Longer rows are shortened to this many characters.
const WIDTH: usize = 89;
const MOST_ROWS: usize = 12;
const MOST_OF_HEAP: u64 = 80;

/// Whether `run` shows types, and the moment of these types.
#[derive(Args, Clone)]
pub(super) struct TypePlan {
    /// Also show the types of the heap, the fields that keep its blocks alive, and its unused memory. The process makes
    /// a copy of itself at its peak; the copy takes as much memory as the process changes afterwards. Needs `debug = 2`
    /// in the program's profile. With --when, the process makes the copy each time the condition becomes true, and the
    /// types are from the last copy.
    #[arg(long, conflicts_with = "recorded")]
    types: bool,
    /// Show the blocks at this time: `peak`, `end` or a time after the start such as `12.5s` or `1m30s`. A time after
    /// the start needs --types. [default: peak with --types, or if the heap has shrunk by a tenth since the peak;
    /// otherwise end]
    #[arg(long, value_name = "TIME")]
    at: Option<Moment>,
    /// Save the blocks of --types as a heap snapshot, for `about-memory snapshot` and `about-memory serve`.
    #[arg(long, requires = "types", value_name = "FILE.fxsnapshot")]
    snapshot: Option<PathBuf>,
}

impl TypePlan {
    /// Whether the user chose `--types`.
    pub(super) fn is_on(&self) -> bool {
        self.types
    }

    /// The time that the user chose for the summary.
    pub(super) fn at(&self) -> Option<Moment> {
        self.at
    }

    /// Returns the time after the start at which the process makes the copy, if the user chose such a time.
    pub(super) fn copy_after(&self) -> Option<Duration> {
        match self.at {
            Some(Moment::After(time)) if self.types => Some(time),
            _ => None,
        }
    }

    /// Rejects options that contradict each other.
    pub(super) fn check(&self, has_conditions: bool) -> Result<(), Failure> {
        let usage = |reason: &str| Err(Failure::Usage(reason.to_owned()));
        match self.at {
            Some(Moment::After(_)) if !self.types => usage(
                "--at: a time after the start needs --types; without --types, use --record, and show the recording at \
                 this time with: about-memory dmd FILE --at TIME",
            ),
            Some(_) if self.types && has_conditions => {
                usage("--at and --when both choose the time of --types; use only one of them")
            }
            _ => Ok(()),
        }
    }

    /// The words of `$DMD` that let the process make its copies.
    pub(super) fn words(&self, keeper: &CopyKeeper, has_conditions: bool) -> Result<Vec<String>, Failure> {
        let at = match self.at {
            Some(Moment::End) => "end",
            _ if has_conditions || self.copy_after().is_some() => "request",
            _ => "peak",
        };
        let path = super::word("the folder for temporary files", keeper.path())?;
        Ok(vec![format!("--copy-to={path}"), format!("--copy-at={at}")])
    }

    /// Reads the copy that `keeper` has kept. Returns a text about the heap of the copy. If there is no copy or reading
    /// fails, prints the reason and returns `None`.
    pub(super) fn text(&self, keeper: CopyKeeper, has_conditions: bool) -> Option<TypeText> {
        let Some(kept) = keeper.end().ok().flatten() else {
            say(&match self.copy_after() {
                Some(time) => format!("no types: the program ended before {}", Moment::After(time)),
                None if has_conditions => "no types: the condition of --when was false at each check".to_owned(),
                None => "no types: the process made no copy of itself, because DMD did not record the process, or the process restricted its own system calls".to_owned(),
            });
            return None;
        };
        let (process, copied, time) = (kept.process, kept.bytes, kept.time);
        match self.read(kept) {
            Ok(heap) => Some(TypeText { process, copied, time, heap }),
            Err(failure) => {
                failure.lines(heap::TYPED).iter().for_each(|line| say(line));
                None
            }
        }
    }

    /// Returns the tables of a copy, and saves the copy's heap snapshot if the user named a file. Ends the copy.
    fn read(&self, kept: KeptCopy) -> Result<HeapTables, Failure> {
        let limits = dmd_analyze::DumpReadOptions::MAX_BYTES;
        let reading = TypedHeapReader::new(SymbolSearch::default(), DumpLimits::with_max_bytes(limits));
        let mut tables = HeapTables::default();
        reading.with_copy(kept.process, kept.copy, |heap, memory, dump| {
            tables = HeapTables::new(heap, memory, dump)?;
            if let Some(path) = &self.snapshot {
                heap::save_graph(heap, dump, &format!("process {}", kept.process), path)?;
                say(&format!("wrote {}", path.display()));
            }
            Ok(())
        })?;
        Ok(tables)
    }
}

/// The text about the heap of a copied process.
pub(super) struct TypeText {
    pub(super) process: u32,
    /// The bytes of the copied heap, counted as DMD counts the peak. `time` is the time from the start to the copy.
    copied: u64,
    time: Duration,
    heap: HeapTables,
}

/// The size of a heap, the percentage of its bytes that have a type, and the text of its tables.
#[derive(Default)]
struct HeapTables {
    bytes: u64,
    typed: f64,
    text: String,
}

impl TypeText {
    /// Returns the text. If `peak` (the bytes of the heap's peak) is known, the text compares the copied heap with the
    /// peak.
    pub(super) fn text(&self, peak: Option<u64>) -> String {
        let share = match peak.filter(|peak| *peak > 0) {
            Some(peak) => {
                let share = (100.0 * self.copied as f64 / peak as f64).round().min(100.0);
                format!(", at {share}% of the peak")
            }
            None => String::new(),
        };
        let time = self.time.as_secs_f64();
        let HeapTables { bytes, typed, text } = &self.heap;
        let bytes = heap::size(*bytes);
        format!("Types of {bytes}{share}, {time:.2} s after the start; {typed:.2}% has a type:\n{text}")
    }
}

impl HeapTables {
    fn new(heap: &TypedHeap<'_>, memory: &dyn MemorySource, dump: &Dump) -> Result<Self, Failure> {
        let census = heap.census();
        let typed = 100.0 * census.typed_bytes as f64 / census.bytes.max(1) as f64;
        let rows: Vec<_> = census.rows.iter().map(|row| (row.bytes, row.blocks, row.name.clone())).collect();
        let mut text = table("by type", &rows, census.bytes, enough(&rows, census.bytes));
        if !heap.knows_fields() {
            text += &format!("\nThe fields that hold them, and the unused memory, are {}\n", heap::NO_FIELDS);
            return Ok(Self { bytes: census.bytes, typed, text });
        }
        let graph = heap.graph(dump).map_err(|error| Failure::File("the copy".to_owned(), error.into()))?;
        let tree = DominatorTree::new(&graph);
        let amount = |amount: u128| u64::try_from(amount).unwrap_or(u64::MAX);
        let rows: Vec<_> = sizes_by_field(&tree)
            .iter()
            // Leaves out memory that no field holds: it has no owner to show.
            .filter(|field| field.field.as_ref().is_some_and(|name| name.as_str() != Some(FROM_OUTSIDE)))
            .map(|field| (amount(field.retained_size), field.count, heap::field_name(field)))
            .collect();
        text += "\n";
        text += &table("by the field that keeps it alive, also indirectly", &rows, census.bytes, OWNERS);
        let waste = heap.waste(memory);
        let rows = waste.rows.iter().map(|row| {
            // The kind of the waste is at the end, so only the name is cut.
            let [name, kind] = heap::unused_parts(row);
            let name = cut(&name, WIDTH.saturating_sub(kind.chars().count()));
            (row.unused_bytes, row.blocks, name + &kind)
        });
        let rows: Vec<_> = rows.collect();
        text += "\n";
        if !rows.is_empty() {
            text += &table("not used", &rows, census.bytes, ROWS);
        }
        let share = 100.0 * waste.unused_bytes as f64 / census.bytes.max(1) as f64;
        text += &format!("{:>13}  {share:>6.2}%  not used in total\n", heap::size(waste.unused_bytes));
        if waste.unknown_blocks > 0 {
            text += &format!(
                "{:>13}  {:>7}  unknown: in vectors and strings whose length only a stack or a static contains\n",
                heap::size(waste.unknown_bytes),
                ""
            );
        }
        Ok(Self { bytes: census.bytes, typed, text })
    }
}

/// Returns the number of rows to show: enough rows for `MOST_OF_HEAP` percent of the heap, within `ROWS` and
/// `MOST_ROWS`.
fn enough(rows: &[(u64, u64, String)], whole: u64) -> usize {
    let mut sum = 0;
    let needed = rows.iter().take_while(|row| {
        let is_needed = sum < whole / 100 * MOST_OF_HEAP;
        sum += row.0;
        is_needed
    });
    needed.count().clamp(ROWS, MOST_ROWS)
}

/// Replaces the middle of a name that is too long by `…`. The start and the end of a name contain the most information.
fn cut(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let part = width.saturating_sub(1) / 2;
    let (start, end) = (name.chars().take(part), name.chars().skip(length - part));
    start.chain(['…']).chain(end).collect()
}

fn table(title: &str, rows: &[(u64, u64, String)], whole: u64, limit: usize) -> String {
    let mut text = format!("{:>13}  {:>7}  {title}\n", "bytes", "share");
    for (bytes, blocks, name) in rows.iter().take(limit) {
        let share = 100.0 * *bytes as f64 / whole.max(1) as f64;
        let (bytes, blocks) = (heap::size(*bytes), heap::counted(*blocks));
        let name = cut(&about_memory::escape(name), WIDTH);
        text += &format!("{bytes:>13}  {share:>6.2}%  {name}  ({blocks})\n");
    }
    if rows.len() > limit {
        text += &format!("{:>13}  {:>7}  ({} more)\n", "", "", rows.len() - limit);
    }
    text
}
