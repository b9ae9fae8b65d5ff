//! Reads sources as runs, and writes the tables of the runs.

use std::fs;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dmd_analyze::recording::Recording;
use heap_graph::census::TreeOptions;
use heap_graph::dominators::retained_by_leaves;
use heap_graph::{Breakdown, CensusTree, DominatorTree};
use memory_export::dmd::ProfileOptions;
use memory_export::parquet::{self, CensusRow, ParquetOptions, ParquetRun};
use memory_export::{ExportError, StackProfile};
use memory_report::ReportSet;

use super::super::super::file_kind::is_pprof;
use super::super::super::input::InputArgument;
use super::super::super::{Failure, new_file};
use super::super::profile::StackConversion;
use super::super::{ExportCommand, has_end};
use super::{ParquetTable, TableArguments};

/// The name of the breakdown that groups the nodes of a heap snapshot.
const BY: &str = "type";

/// The contents of a source.
enum RunSource {
    Reports(Box<ReportSet>),
    Stacks(Box<StackProfile>),
    Census(Vec<CensusRow>),
}

impl RunSource {
    fn tables(&self) -> &'static [ParquetTable] {
        match self {
            Self::Reports(_) => &[ParquetTable::Reports, ParquetTable::Warnings],
            Self::Stacks(_) => &[ParquetTable::Stacks, ParquetTable::Frames],
            Self::Census(_) => &[ParquetTable::Census],
        }
    }
}

impl ParquetTable {
    fn name(self) -> &'static str {
        match self {
            Self::Reports => "reports",
            Self::Warnings => "warnings",
            Self::Stacks => "stacks",
            Self::Frames => "frames",
            Self::Census => "census",
        }
    }
}

impl ExportCommand {
    pub(in super::super) fn tables(&self) -> Result<(), Failure> {
        let mut runs = Vec::new();
        for source in &self.sources {
            let read = self.source(source)?;
            let run = self.tables.run(source, &read)?;
            runs.push((run, read));
        }
        let name = |index: usize| self.sources[index].name();
        if let Some(folder) = &self.tables.append_to {
            for (index, run) in runs.iter().enumerate() {
                for table in run.1.tables() {
                    if self.tables.table.is_none_or(|chosen| chosen == *table) {
                        self.append(folder, &name(index), *table, run)?;
                    }
                }
            }
            return Ok(());
        }
        let table = self.tables.table.unwrap_or(runs[0].1.tables()[0]);
        for (index, (_, source)) in runs.iter().enumerate() {
            if !source.tables().contains(&table) {
                let of = source.tables().iter().map(|table| table.name()).collect::<Vec<_>>().join(" and ");
                let message = format!("{}: has no table {}; its tables: {of}", name(index), table.name());
                return Err(Failure::Usage(message));
            }
        }
        if runs.len() > 1 && !matches!(table, ParquetTable::Reports | ParquetTable::Warnings) {
            return Err(Failure::Usage(format!(
                "a file with the table {} needs exactly one source",
                table.name()
            )));
        }
        let path = self.output.as_deref().filter(|path| path.as_os_str() != "-");
        let Some(path) = path else {
            if io::stdout().is_terminal() {
                return Err(Failure::Usage(
                    "parquet is binary: use --output FILE or --append-to FOLDER".to_owned(),
                ));
            }
            return write(table, &runs, &mut io::stdout()).map_err(|error| match error {
                ExportError::Write(error) => Failure::Output(error),
                error => Failure::File(name(0), error.into()),
            });
        };
        if has_end(path, "gz") {
            return Err(Failure::Usage(format!(
                "{}: a Parquet file is always compressed; use a name without .gz",
                path.display()
            )));
        }
        self.put(path, &name(0), table, &runs)
    }

    /// Adds the file of a run to a table's folder.
    fn append(
        &self,
        folder: &Path,
        source: &str,
        table: ParquetTable,
        run: &(ParquetRun, RunSource),
    ) -> Result<(), Failure> {
        if matches!((&run.1, table), (RunSource::Reports(set), ParquetTable::Warnings) if set.warnings().is_empty())
        {
            return Ok(());
        }
        let path: PathBuf = folder.join(parquet::file_name(table.name(), &run.0));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| {
                Failure::File(folder.display().to_string(), anyhow::anyhow!("cannot be created: {error}"))
            })?;
        }
        self.put(&path, source, table, std::slice::from_ref(run))?;
        writeln!(io::stdout(), "{}", path.display()).map_err(Failure::Output)
    }

    fn put(
        &self,
        path: &Path,
        source: &str,
        table: ParquetTable,
        runs: &[(ParquetRun, RunSource)],
    ) -> Result<(), Failure> {
        let mut private = false;
        for source in &self.sources {
            private |= source.is_private()?;
        }
        new_file::write(path, private, |out| write(table, runs, out)).map_err(|error| match error {
            ExportError::Write(error) => {
                Failure::File(path.display().to_string(), anyhow::anyhow!("cannot be written: {error}"))
            }
            error => Failure::File(source.to_owned(), error.into()),
        })
    }

    fn source(&self, source: &InputArgument) -> Result<RunSource, Failure> {
        let path = source.path();
        match self.tables.table {
            Some(ParquetTable::Reports | ParquetTable::Warnings) => {
                return self.report(source).map(Box::new).map(RunSource::Reports);
            }
            Some(ParquetTable::Stacks | ParquetTable::Frames) => return self.stacks_of(source),
            Some(ParquetTable::Census) => return self.census(source),
            None => {}
        }
        if has_end(path, "fxsnapshot") {
            return self.census(source);
        }
        if !source.is_stdin() && (is_pprof(path) || Recording::is_at(path)) {
            return self.stacks_of(source);
        }
        match self.report(source) {
            Err(Failure::File(_, error)) if !source.is_stdin() && has_no_reports(&error) => {
                self.stacks_of(source)
            }
            read => read.map(Box::new).map(RunSource::Reports),
        }
    }

    fn stacks_of(&self, source: &InputArgument) -> Result<RunSource, Failure> {
        let making = StackConversion {
            symbols: Some(&self.symbols),
            system_names: false,
            limits: &self.limits,
            when: &self.when,
            options: ProfileOptions::new().all_frames(self.all_frames).types(true).both(true),
        };
        making.stacks(source, making.source(source)?).map(|stacks| RunSource::Stacks(Box::new(stacks)))
    }

    fn census(&self, source: &InputArgument) -> Result<RunSource, Failure> {
        let graph = self.graph(source)?;
        let failure = |error: anyhow::Error| Failure::File(source.name(), error);
        let breakdown = Breakdown::preset(BY).expect("the breakdown has this name");
        let report = heap_graph::census(&graph, &breakdown).map_err(|error| failure(error.into()))?;
        let tree = CensusTree::new(&report, &TreeOptions::default());
        let retained = retained_by_leaves(&DominatorTree::new(&graph), &breakdown)
            .map_err(|error| failure(error.into()))?;
        let mut rows = Vec::new();
        let mut left = vec![(tree.root(), Vec::new())];
        while let Some((node, group)) = left.pop() {
            let amount = |amount: i128| {
                i64::try_from(amount)
                    .map_err(|_| failure(anyhow::anyhow!("the amount {amount} of a group exceeds 64 bits")))
            };
            if node.bytes != 0 || node.count != 0 {
                let leaf = node.leaves.first().filter(|_| node.leaves.len() == 1);
                let retained = leaf.and_then(|leaf| i128::try_from(retained[*leaf as usize]).ok());
                rows.push(CensusRow {
                    by: BY.to_owned(),
                    group: group.clone(),
                    bytes: amount(node.bytes)?,
                    count: amount(node.count)?,
                    retained: retained.map(amount).transpose()?,
                });
            }
            left.extend(tree.children(node).map(|child| {
                let mut group = group.clone();
                group.extend(child.name.as_ref().map(ToString::to_string));
                (child, group)
            }));
        }
        Ok(RunSource::Census(rows))
    }
}

fn has_no_reports(error: &anyhow::Error) -> bool {
    error.downcast_ref::<super::super::NoReports>().is_some()
}

fn write(
    table: ParquetTable,
    runs: &[(ParquetRun, RunSource)],
    out: &mut (dyn Write + Send),
) -> Result<(), ExportError> {
    let options = ParquetOptions::new().created_by(concat!("about-memory ", env!("CARGO_PKG_VERSION")));
    let sets: Vec<(&ParquetRun, &ReportSet)> = runs
        .iter()
        .filter_map(|(run, source)| match source {
            RunSource::Reports(set) => Some((run, &**set)),
            _ => None,
        })
        .collect();
    match (table, &runs[0]) {
        (ParquetTable::Reports, _) => parquet::reports(&sets, &options, out),
        (ParquetTable::Warnings, _) => parquet::warnings(&sets, &options, out),
        (ParquetTable::Frames, (run, RunSource::Stacks(stacks))) => {
            parquet::frames(run, stacks, &options, out)
        }
        (_, (run, RunSource::Stacks(stacks))) => parquet::stacks(run, stacks, &options, out),
        (_, (run, RunSource::Census(rows))) => parquet::census(run, rows, &options, out),
        (_, (_, RunSource::Reports(_))) => parquet::reports(&sets, &options, out),
    }
}

impl TableArguments {
    /// Returns the values that all rows of the source share.
    fn run(&self, source: &InputArgument, read: &RunSource) -> Result<ParquetRun, Failure> {
        let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = || since(SystemTime::now());
        let pid = source.process()?;
        let changed = || {
            let time = fs::metadata(source.path()).ok().filter(fs::Metadata::is_file)?.modified().ok()?;
            // Drops the fraction of a second: a copy of the file often loses it, and must get the same time.
            Some(Duration::from_secs(since(time).as_secs()))
        };
        let in_file = match read {
            RunSource::Stacks(stacks) => stacks.facts().time,
            _ => None,
        };
        let time = self.time.or_else(|| if pid.is_some() { Some(now()) } else { in_file.or_else(changed) });
        let service = self.service.clone().unwrap_or_else(|| service_of(source, read));
        let mut run = ParquetRun::new(service, time.unwrap_or_else(now));
        run.version.clone_from(&self.service_version);
        run.host = self.host.clone().or_else(host_name);
        run.labels = self.labels.iter().cloned().collect();
        if let RunSource::Stacks(stacks) = read {
            run.pid = stacks.facts().pid.or(pid);
            run.process = Some(file_of(&stacks.facts().program)).filter(|name| !name.is_empty());
            run.build_id =
                stacks.modules().first().map(|module| module.build_id.clone()).filter(|id| !id.is_empty());
        }
        Ok(match read {
            RunSource::Reports(set) => run.with_id_from_reports(set),
            RunSource::Stacks(stacks) => run.with_id_from_stacks(stacks),
            RunSource::Census(rows) => run.with_id_from_census(rows),
        })
    }
}

fn file_of(program: &str) -> String {
    program.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Returns the name of the program. If the source does not contain the name, returns the name of the file.
fn service_of(source: &InputArgument, read: &RunSource) -> String {
    let name = match read {
        RunSource::Reports(set) => {
            let process = set.processes().find(|process| !process.is_empty()).unwrap_or_default();
            process.split(" (pid ").next().unwrap_or_default().to_owned()
        }
        RunSource::Stacks(stacks) => file_of(&stacks.facts().program),
        RunSource::Census(_) => String::new(),
    };
    match name.is_empty() {
        true => source.path().file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        false => name,
    }
}

/// Returns the name of this machine; `None` if the system does not provide the name as a file.
fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}
