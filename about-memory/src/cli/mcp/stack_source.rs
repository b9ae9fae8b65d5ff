//! Stacks of a dump, a recording or a pprof profile as tables.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use dmd_analyze::program::{HeapSummary, HolderKey, ProgramOptions};
use dmd_analyze::recording::Moment;
use dmd_analyze::{Analysis, AnalyzeOptions, Dump};
use memory_export::dmd::{self, ProfileOptions, RecordingWindow};
use memory_export::{ProfileFrame, ProfileStackId, ProfileValue, SampleLabelsId, StackProfile};

use super::super::Failure;
use super::super::dump_limits::DumpLimits;
use super::super::export::profile;
use super::super::input::InputArgument;
use super::super::recorded::BlockTime;
use super::super::symbols::SymbolSearch;
use super::reason::reason;
use super::table::{AmountRow, AmountTable, RowSource, RowSums, short};

/// The columns for names. Names in answers are cut later.
const WIDTH: usize = 240;
/// The name of a stack has at most this many frames.
const NAMED_FRAMES: usize = 3;

/// The stacks of a file at one time.
pub(super) struct StackSource {
    file: StackFile,
    total: RowSums,
    /// The tables by site, type and crate; empty for a pprof profile.
    holders: Vec<(&'static str, Vec<AmountRow>)>,
    is_estimated: bool,
    stacks: OnceLock<Arc<StackTable>>,
    notes: Vec<String>,
}

/// A file with stacks. A dump or a recording is read again for each question about single stacks, because it takes more
/// memory than the tables.
struct StackFile {
    path: PathBuf,
    at: Option<Moment>,
    limits: DumpLimits,
}

impl StackFile {
    /// Returns the blocks at the chosen time, with symbols. Also returns the overview of the run.
    fn dump(&self) -> Result<(Dump, String), Failure> {
        let limits = self.limits.options();
        let when = self
            .at
            .map_or_else(BlockTime::default, |at| BlockTime::within(RecordingWindow { from: None, to: at }));
        let fix = |dump: &mut Dump| SymbolSearch::default().fix_quietly(dump, &limits);
        let (dump, overview) = when.read(&self.path, &limits, None, fix)?;
        Ok((dump, overview.to_string()))
    }
}

impl StackSource {
    pub(super) fn open(path: &Path, at: Option<Moment>, limits: &DumpLimits) -> Result<Self, String> {
        let file = StackFile { path: path.to_owned(), at, limits: limits.clone() };
        let (dump, overview) = file.dump().map_err(|failure| reason(path, failure))?;
        let mut notes: Vec<String> =
            overview.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        if !dump.has_lines_of_program() {
            notes.push("the program has no line numbers: build it with debug information".to_owned());
        }
        let summary = HeapSummary::whole(&Analysis::new(dump, &analysis_options()), &view());
        Ok(Self {
            file,
            total: sums_of(&summary),
            is_estimated: summary.is_estimated(),
            holders: holders(&summary),
            stacks: OnceLock::new(),
            notes,
        })
    }

    pub(super) fn open_pprof(path: &Path, limits: &DumpLimits) -> Result<Self, String> {
        let read = profile::read(&InputArgument::from(path.as_os_str().to_owned()), limits);
        let stacks = match read.map_err(|failure| reason(path, failure))? {
            profile::StackSource::Pprof(stacks) => *stacks,
            profile::StackSource::Heap(_) => return Err("the file is not a profile".to_owned()),
        };
        let file = StackFile { path: path.to_owned(), at: None, limits: limits.clone() };
        let table = Arc::new(StackTable::new(stacks)?);
        let total = AmountTable { rows: Box::new(StackRows(Arc::clone(&table))), ..table.empty() }.sums();
        let stacks = OnceLock::from(table);
        Ok(Self { file, total, holders: Vec::new(), is_estimated: false, stacks, notes: Vec::new() })
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    pub(super) fn total(&self) -> RowSums {
        self.total
    }

    pub(super) fn units(&self) -> [&'static str; 2] {
        match (self.stacks.get().filter(|_| self.is_profile()), self.is_estimated) {
            (Some(stacks), _) => [stacks.value.name(), "blocks"],
            (None, true) => ["usable bytes, estimated from a sample", "blocks"],
            (None, false) => ["usable bytes", "blocks"],
        }
    }

    fn is_profile(&self) -> bool {
        self.holders.is_empty()
    }

    pub(super) fn groups(&self) -> Vec<&'static str> {
        match self.is_profile() {
            true => vec!["function", "stack"],
            false => self.holders.iter().map(|(group, _)| *group).chain(["stack"]).collect(),
        }
    }

    pub(super) fn table(&self, group: &str) -> Result<AmountTable, String> {
        let [bytes, counts] = self.units();
        if let Some((group, rows)) = self.holders.iter().find(|(known, _)| *known == group) {
            return Ok(AmountTable::new(*group, bytes, counts, rows.clone()).share_of(self.total.bytes));
        }
        let stacks = self.stacks()?;
        if group == "function" {
            let table = AmountTable::new("function", bytes, counts, stacks.functions());
            return Ok(table.share_of(self.total.bytes));
        }
        let table = AmountTable { rows: Box::new(StackRows(Arc::clone(&stacks))), ..stacks.empty() };
        Ok(table.share_of(self.total.bytes))
    }

    /// The stacks with files and lines. Reads a dump or a recording again at the first call.
    pub(super) fn stacks(&self) -> Result<Arc<StackTable>, String> {
        if let Some(stacks) = self.stacks.get() {
            return Ok(Arc::clone(stacks));
        }
        let path = &self.file.path;
        let (dump, _) = self.file.dump().map_err(|failure| reason(path, failure))?;
        let stacks =
            dmd::stacks(dump, &ProfileOptions::new().types(true)).map_err(|error| error.to_string())?;
        let table = Arc::new(StackTable::new(stacks)?);
        Ok(Arc::clone(self.stacks.get_or_init(|| table)))
    }

    /// The difference to a later source, by a key.
    pub(super) fn changes(&self, after: &Self, group: &str) -> Result<AmountTable, String> {
        if self.is_profile() != after.is_profile() {
            return Err("a pprof profile can be compared only with another pprof profile".to_owned());
        }
        if self.is_profile() {
            let tables = (self.table(group)?, after.table(group)?);
            return super::table::changes_by_name(&tables.0, &tables.1);
        }
        let dump = |source: &Self| source.file.dump().map_err(|failure| reason(&source.file.path, failure));
        let ((first, _), (second, _)) = (dump(self)?, dump(after)?);
        let (first, second) = (first.without_reports(), second.without_reports());
        let bytes = "change of the usable bytes";
        if group == "stack" {
            let stacks = dmd::difference(first, second, &ProfileOptions::new().types(true));
            let stacks = stacks.map_err(|error| error.to_string())?;
            let stacks = Arc::new(StackTable::new(stacks)?);
            return Ok(AmountTable {
                bytes,
                rows: Box::new(StackRows(Arc::clone(&stacks))),
                ..stacks.empty()
            });
        }
        let analysis = Analysis::difference(first, second, &analysis_options().without_lines(true));
        let summary = HeapSummary::whole(&analysis.map_err(|error| error.to_string())?, &view());
        let rows = holders(&summary).into_iter().find(|(known, _)| *known == group);
        let rows = rows.ok_or_else(|| format!("there is no group {group}"))?.1;
        let rows = rows.into_iter().filter(|row| row.bytes != 0 || row.count != 0).collect();
        Ok(AmountTable::new(group, bytes, "blocks", rows))
    }
}

fn analysis_options() -> AnalyzeOptions {
    AnalyzeOptions::new().max_frames(usize::MAX).limit(usize::MAX).estimate(true).types(true)
}

fn view() -> ProgramOptions {
    ProgramOptions::new().width(WIDTH)
}

fn sums_of(summary: &HeapSummary) -> RowSums {
    RowSums { rows: 0, bytes: summary.total.usable(), count: summary.total.num }
}

fn holders(summary: &HeapSummary) -> Vec<(&'static str, Vec<AmountRow>)> {
    let table = |table: &dmd_analyze::program::SummaryTable| {
        let rows = table.rows.iter().map(|row| AmountRow {
            name: short(&row.name),
            place: short(&row.place),
            bytes: row.sums.usable(),
            count: row.sums.num,
            ..AmountRow::default()
        });
        (HolderKey::name(table.by), rows.collect())
    };
    summary.tables.iter().map(table).collect()
}

/// All stacks of a profile, each with its labels.
#[derive(Debug)]
pub(super) struct StackTable {
    profile: StackProfile,
    value: ProfileValue,
    rows: Vec<(ProfileStackId, SampleLabelsId, i128, i128)>,
}

impl StackTable {
    fn new(profile: StackProfile) -> Result<Self, String> {
        let pairs = [
            (ProfileValue::LiveBytes, ProfileValue::LiveBlocks),
            (ProfileValue::AllocatedBytes, ProfileValue::AllocatedBlocks),
        ];
        let found = pairs
            .iter()
            .find_map(|(bytes, blocks)| Some((*bytes, profile.index_of(*bytes)?, profile.index_of(*blocks))));
        let (value, bytes, blocks) = found.ok_or("the profile has no bytes of live or allocated memory")?;
        let mut sums: BTreeMap<(ProfileStackId, SampleLabelsId), (i128, i128)> = BTreeMap::new();
        for sample in profile.samples() {
            let sum = sums.entry((sample.stack, sample.labels)).or_default();
            sum.0 += i128::from(sample.amounts[bytes]);
            sum.1 += blocks.map_or(0, |blocks| i128::from(sample.amounts[blocks]));
        }
        let rows: Vec<_> = sums
            .into_iter()
            .filter(|(_, (bytes, blocks))| *bytes != 0 || *blocks != 0)
            .map(|((stack, labels), (bytes, blocks))| (stack, labels, bytes, blocks))
            .collect();
        Ok(Self { profile, value, rows })
    }

    /// A table of these stacks, without rows.
    fn empty(&self) -> AmountTable {
        AmountTable::new("stack", self.value.name(), "blocks", Vec::new())
            .note("A row's name has the innermost functions; `node` with the row's id shows all calls.")
    }

    /// The row with this id.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        let index = id.strip_prefix('s')?.parse().ok()?;
        (index < self.rows.len()).then_some(index)
    }

    /// The bytes and blocks of a row.
    pub(super) fn amounts(&self, index: usize) -> (i128, i128) {
        let (_, _, bytes, blocks) = self.rows[index];
        (bytes, blocks)
    }

    /// The labels of a row, such as the type of its blocks.
    pub(super) fn labels(&self, index: usize) -> impl Iterator<Item = (&'static str, &str)> {
        self.profile.labels(self.rows[index].1).iter()
    }

    /// The calls of a row, innermost first.
    pub(super) fn frames(&self, index: usize) -> impl ExactSizeIterator<Item = ProfileFrame<'_>> {
        self.profile.stack(self.rows[index].0).iter().map(|frame| self.profile.frame(*frame))
    }

    /// The name of a call: its function or, without one, its module and offset.
    pub(super) fn name<'t>(&'t self, frame: &ProfileFrame<'t>) -> Cow<'t, str> {
        if let Some(name) = frame.function.or(frame.system_name) {
            return name.into();
        }
        let module = frame.module.and_then(|module| self.profile.modules().get(module.index()));
        match (module, frame.offset) {
            (Some(module), Some(offset)) => {
                let file = module.path.rsplit('/').next().unwrap_or(&module.path);
                format!("{}+0x{offset:x}", short(file)).into()
            }
            _ => "???".into(),
        }
    }

    /// The amounts by the innermost function.
    fn functions(&self) -> Vec<AmountRow> {
        let mut rows: BTreeMap<String, AmountRow> = BTreeMap::new();
        for index in 0..self.rows.len() {
            let frame = self.frames(index).next().unwrap_or_default();
            let name = short(&self.name(&frame));
            let row = rows.entry(name.clone()).or_insert_with(|| AmountRow {
                name,
                place: place(&frame),
                ..AmountRow::default()
            });
            let (bytes, blocks) = self.amounts(index);
            row.bytes += bytes;
            row.count += blocks;
        }
        rows.into_values().collect()
    }
}

/// The file and line of a call. Empty if the file is unknown.
pub(super) fn place(frame: &ProfileFrame<'_>) -> String {
    match (frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{}:{line}", short(file)),
        (Some(file), None) => short(file),
        (None, _) => String::new(),
    }
}

/// The rows of a table of stacks.
struct StackRows(Arc<StackTable>);

impl RowSource for StackRows {
    fn len(&self) -> usize {
        self.0.rows.len()
    }

    fn amounts(&self, index: usize) -> (i128, i128) {
        self.0.amounts(index)
    }

    fn row(&self, index: usize) -> AmountRow {
        let (bytes, count) = self.amounts(index);
        let frames = self.0.frames(index).take(NAMED_FRAMES);
        let names: Vec<String> = frames.map(|frame| short(&self.0.name(&frame))).collect();
        let (name, place) = match names.is_empty() {
            true => ("(no stack)".to_owned(), String::new()),
            false => (
                short(&names.join(" < ")),
                self.0.frames(index).next().map_or(String::new(), |frame| place(&frame)),
            ),
        };
        AmountRow { id: format!("s{index}"), name, place, bytes, count, more: Vec::new() }
    }

    fn contains(&self, index: usize, text: &str) -> bool {
        self.0.labels(index).any(|(_, label)| label.contains(text))
            || self.0.frames(index).any(|frame| {
                self.0.name(&frame).contains(text) || frame.file.is_some_and(|file| file.contains(text))
            })
    }
}
