//! The table `reports`.

use std::io::Write;

use memory_report::{Kind, Report, ReportSet, Units};
use rustc_hash::FxHashMap;

use super::columns::{ColumnEntry, TableColumns, micros};
use super::options::ParquetOptions;
use super::order::sort_by_text;
use super::run::ParquetRun;
use super::table::{TableLayout, TableWriter};
use super::threads;
use crate::error::ExportError;

const LAYOUT: TableLayout = TableLayout {
    name: "reports",
    schema: "message reports {
        required int64 ts (TIMESTAMP(MICROS,true));
        required fixed_len_byte_array(16) run_id;
        optional binary host (STRING);
        required binary service (STRING);
        optional binary version (STRING);
        optional binary build_id (STRING);
        required binary process (STRING);
        optional int32 pid (INTEGER(32,false));
        optional int64 started (TIMESTAMP(MICROS,true));
        required binary path (STRING);
        required binary name (STRING);
        required int32 depth (INTEGER(8,false));
        required binary kind (STRING);
        required binary units (STRING);
        required int64 amount;
        required binary description (STRING);
        optional group labels (MAP) {
            repeated group key_value {
                required binary key (STRING);
                optional binary value (STRING);
            }
        }
    }",
    sorted_by: &["service", "process", "path", "ts"],
    deltas: &["ts"],
    prefixes: &["path"],
    plain: &["amount"],
    bloom: &["path"],
};

const UNCLASSIFIED: &str = "explicit/heap-unclassified";
const ABOUT_UNCLASSIFIED: &str = "Memory of the heap that no report counts. Computed as heap-allocated less all reports \
                                  of kind heap under explicit.";

/// A report, or the computed amount of `heap-unclassified`.
#[derive(Clone, Copy)]
struct ReportTableRow<'a> {
    run: &'a ParquetRun,
    report: Report<'a>,
    /// `report.process` without the process id.
    process: &'a str,
    pid: Option<u32>,
}

/// Writes the table `reports`: the reports of all runs. A process that has `heap-allocated` and reports below
/// `explicit`, but no report `explicit/heap-unclassified`, gets a computed row for that path.
///
/// Columns: `ts`, `run_id`, `host`, `service`, `version`, `build_id`, `process` (without the process id), `pid`,
/// `started`, `path` (a `/` inside of a name is `\`), `name` (the last name of the path), `depth` (the number of names,
/// at most 255), `kind` (`heap`, `nonheap`, `other`), `units` (`bytes`, `count`, `count-cumulative`, or `percentage`,
/// in hundredths of a percent), `amount`, `description`, `labels`. Inner nodes of trees have no rows, so a sum over
/// `explicit/%` counts each byte once.
///
/// # Errors
///
/// Returns an error if `out` fails, if a path exceeds 1 GiB, or if an amount of `heap-unclassified` exceeds 64 bits.
pub fn reports(
    runs: &[(&ParquetRun, &ReportSet)],
    options: &ParquetOptions,
    out: impl Write + Send,
) -> Result<(), ExportError> {
    let mut rows = Vec::with_capacity(runs.iter().map(|(_, set)| set.len() + 1).sum());
    for (run, set) in runs {
        add(run, set, &mut rows)?;
    }
    let order = order(&rows, threads::number(options.threads));
    let paths = in_order(&rows, &order);
    // The rows are also sorted in memory, because each column passes over all rows.
    let rows: Vec<ReportTableRow<'_>> = texts(&paths)
        .zip(&order)
        .map(|(path, row)| {
            let row = rows[*row as usize];
            ReportTableRow { report: Report { path, ..row.report }, ..row }
        })
        .collect();
    let table = TableWriter::new(&LAYOUT, options, rows.len(), runs.iter().map(|(run, _)| *run), out)?;
    table.write(&rows, add_columns)
}

fn add<'a>(
    run: &'a ParquetRun,
    set: &'a ReportSet,
    rows: &mut Vec<ReportTableRow<'a>>,
) -> Result<(), ExportError> {
    /// The amounts from which `heap-unclassified` of a process is computed.
    #[derive(Default)]
    struct HeapTotals {
        allocated: Option<i128>,
        reported: i128,
        has_explicit: bool,
        is_there: bool,
    }
    let mut processes: Vec<(&str, HeapTotals)> = Vec::new();
    let mut known: FxHashMap<&str, usize> = FxHashMap::default();
    let mut last = usize::MAX;
    for report in set.iter() {
        if processes.get(last).is_none_or(|(name, _)| *name != report.process) {
            last = *known.entry(report.process).or_insert_with(|| {
                processes.push((report.process, HeapTotals::default()));
                processes.len() - 1
            });
        }
        let heap = &mut processes[last].1;
        if let Some(rest) = report.path.strip_prefix("explicit/") {
            heap.has_explicit = true;
            heap.is_there |= rest
                .strip_prefix("heap-unclassified")
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            if report.kind == Kind::Heap && report.units == Units::Bytes {
                heap.reported += i128::from(report.amount);
            }
        } else if report.path == "heap-allocated" {
            *heap.allocated.get_or_insert(0) += i128::from(report.amount);
        }
        rows.push(row(run, report));
    }
    for (process, heap) in processes {
        let Some(allocated) = heap.allocated.filter(|_| heap.has_explicit && !heap.is_there) else {
            continue;
        };
        let exact = allocated - heap.reported;
        let most = if exact < 0 { i64::MIN } else { i64::MAX };
        let amount = i64::try_from(exact).map_err(|_| {
            ExportError::TooLarge("Parquet", "an amount of heap-unclassified", exact, i128::from(most))
        })?;
        let (kind, units) = (Kind::Heap, Units::Bytes);
        let report =
            Report { process, path: UNCLASSIFIED, kind, units, amount, description: ABOUT_UNCLASSIFIED };
        rows.push(row(run, report));
    }
    Ok(())
}

fn row<'a>(run: &'a ParquetRun, report: Report<'a>) -> ReportTableRow<'a> {
    // Reports without a process are about the program of the run.
    let (process, pid) = match report.process {
        "" => (run.process.as_deref().unwrap_or_default(), run.pid),
        process => split(process),
    };
    ReportTableRow { run, report, process, pid }
}

/// The name and the process id: `app (pid 7)` becomes `app` and 7.
fn split(process: &str) -> (&str, Option<u32>) {
    let parts = process.strip_suffix(')').and_then(|process| process.rsplit_once(" (pid "));
    let parts = parts.and_then(|(name, pid)| Some((name, pid.parse().ok()?)));
    parts.map_or((process, None), |(name, pid)| (name, Some(pid)))
}

/// The order of the rows: by service, process, path, time, and position in the input.
fn order(rows: &[ReportTableRow<'_>], threads: usize) -> Vec<u32> {
    let mut groups: Vec<((&str, &str), Vec<u32>)> = Vec::new();
    let mut known: FxHashMap<(&str, &str), usize> = FxHashMap::default();
    let mut last: Option<((&str, &str), usize)> = None;
    for (index, row) in rows.iter().enumerate() {
        let key = (&*row.run.service, row.process);
        let group = match last {
            Some((known, group)) if known == key => group,
            _ => *known.entry(key).or_insert_with(|| {
                groups.push((key, Vec::new()));
                groups.len() - 1
            }),
        };
        last = Some((key, group));
        groups[group].1.push(index as u32);
    }
    groups.sort_unstable_by_key(|(key, _)| *key);
    let report = |row: u32| &rows[row as usize];
    threads::for_each(groups.iter_mut(), threads, |(_, group)| {
        sort_by_text(group, |row| report(row).report.path, |row| (report(row).run.time, row));
    });
    groups.into_iter().flat_map(|(_, group)| group).collect()
}

/// All paths in one text, and the end of each path.
fn in_order(rows: &[ReportTableRow<'_>], order: &[u32]) -> (String, Vec<usize>) {
    let path = |row: &u32| rows[*row as usize].report.path;
    let mut all = String::with_capacity(rows.iter().map(|row| row.report.path.len()).sum());
    let mut ends = Vec::with_capacity(order.len());
    for row in order {
        all.push_str(path(row));
        ends.push(all.len());
    }
    (all, ends)
}

fn texts((all, ends): &(String, Vec<usize>)) -> impl Iterator<Item = &str> {
    let mut start = 0;
    ends.iter().map(move |end| &all[core::mem::replace(&mut start, *end)..*end])
}

fn add_columns<'r>(columns: &mut TableColumns<'r>, rows: &'r [ReportTableRow<'_>]) {
    let rows = rows.iter();
    let runs = rows.clone().map(|row| row.run);
    columns.run(runs.clone());
    columns.texts(runs.clone().map(|run| run.version.as_deref()));
    columns.texts(runs.clone().map(|run| run.build_id.as_deref()));
    columns.texts(rows.clone().map(|row| Some(row.process)));
    // The format stores unsigned integers as signed integers with the same bits.
    columns.small(rows.clone().map(|row| row.pid.map(u32::cast_signed)));
    columns.integers(runs.clone().map(|run| run.started.map(micros)));
    columns.texts(rows.clone().map(|row| Some(row.report.path)));
    columns.texts(rows.clone().map(|row| row.report.path.rsplit('/').next()));
    columns.small(rows.clone().map(|row| {
        let names = 1 + row.report.path.bytes().filter(|byte| *byte == b'/').count();
        Some(names.min(255) as i32)
    }));
    columns.texts(rows.clone().map(|row| {
        Some(match row.report.kind {
            Kind::Heap => "heap",
            Kind::NonHeap => "nonheap",
            Kind::Other => "other",
        })
    }));
    columns.texts(rows.clone().map(|row| {
        Some(match row.report.units {
            Units::Bytes => "bytes",
            Units::Count => "count",
            Units::CountCumulative => "count-cumulative",
            Units::Percentage => "percentage",
        })
    }));
    columns.integers(rows.clone().map(|row| Some(row.report.amount)));
    columns.texts(rows.map(|row| Some(row.report.description)));
    columns.nested_texts(runs.clone().flat_map(|run| labels(run, 2, |(key, _)| key)));
    columns.nested_texts(runs.flat_map(|run| labels(run, 3, |(_, value)| value)));
}

/// The keys or the values of a run's labels; null if the run has no labels.
fn labels<'r>(
    run: &'r ParquetRun,
    full: i16,
    part: impl Fn((&'r str, &'r str)) -> &'r str + Send,
) -> impl Iterator<Item = ColumnEntry<&'r str>> + Send {
    let none = run.labels.is_empty().then_some(ColumnEntry { repetition: 0, definition: 0, value: None });
    let labels = run.labels.iter().enumerate().map(move |(index, (key, value))| ColumnEntry {
        repetition: i16::from(index > 0),
        definition: full,
        value: Some(part((key, value))),
    });
    none.into_iter().chain(labels)
}
