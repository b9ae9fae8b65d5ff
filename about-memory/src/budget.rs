//! Budgets: files of limits on the memory of a program.

mod update;

use core::fmt;
use std::collections::BTreeSet;

use memory_report::ReportSet;
use memory_report::tree::Forest;
use thiserror::Error;
use toml_edit::{Document, Item, TableLike, Value};

use crate::limit::{Limit, LimitError, LimitOutcome};
use crate::nearest_name::nearest_name;
use crate::normalize::{DiffOptions, Normalizer};

pub use update::BudgetOptions;

/// The limits of a budget file.
///
/// The file is TOML. The table `budget` contains limits on sums over all processes. Each table in `process` contains
/// limits on the processes whose name contains the name of the table. A key is a path. A value is a limit, or an
/// array of limits: a number in the units of the report, or a text as in [`Limit`]. A text without a comparison is a
/// maximum. kB, MB and GB are powers of 1,000; KiB, MiB and GiB are powers of 1,024. Names in the report are first
/// normalized as for a diff, so `(pid 12)` is `(pid NNN)`.
///
/// ```toml
/// [budget]
/// explicit = "120 MiB"
/// "explicit/cache" = ["64 MiB", ">= 1 MiB"]
/// threads = 40
///
/// [process."Main Process"]
/// "explicit/heap-unclassified" = "12.5 MiB"
/// ```
///
/// ```
/// use about_memory::Budget;
/// use memory_reporter::{Kind, Report, ReportSet, Units};
///
/// let mut set = ReportSet::new();
/// let (process, path, description) = ("Main Process (pid 1)", "explicit/cache", "");
/// set.push(Report { process, path, kind: Kind::Heap, units: Units::Bytes, amount: 3 << 20, description });
///
/// let budget = Budget::parse("[budget]\n'explicit/cache' = '2 MiB'\nexplicit = '4 MiB'\n")?;
/// let failed: Vec<_> = budget.check(&set).into_iter().filter(|check| check.failed()).collect();
/// assert_eq!(failed[0].to_string(), "explicit/cache <= 2 MiB: 3.00 MiB");
/// assert_eq!((failed.len(), failed[0].line), (1, 2));
/// # Ok::<(), about_memory::BudgetError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Budget {
    limits: Vec<(usize, Limit)>,
}

impl Budget {
    /// Reads the text of a budget file.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not TOML, contains another key than `budget` and `process`, or contains a value
    /// that is not a limit. The error contains the line.
    pub fn parse(text: &str) -> Result<Self, BudgetError> {
        let document = Document::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            BudgetError { line: line(text, at), message: error.message().replace('\n', ", ") }
        })?;
        let mut budget = Self { limits: Vec::new() };
        for (key, item) in document.iter() {
            let table =
                || item.as_table_like().ok_or_else(|| wrong(text, item, format!("{key} is not a table")));
            match key {
                "budget" => budget.add(text, None, table()?)?,
                "process" => {
                    for (process, item) in table()?.iter() {
                        let table = item.as_table_like();
                        let table =
                            table.ok_or_else(|| wrong(text, item, format!("{process} is not a table")))?;
                        budget.add(text, Some(process), table)?;
                    }
                }
                _ => {
                    let message = format!("{key} is not a table of budgets; use budget or process");
                    return Err(wrong(text, item, message));
                }
            }
        }
        Ok(budget)
    }

    fn add(&mut self, text: &str, process: Option<&str>, table: &dyn TableLike) -> Result<(), BudgetError> {
        for (path, item) in table.iter() {
            let values: Vec<&Value> = match item {
                Item::Value(Value::Array(values)) => values.iter().collect(),
                Item::Value(value) => vec![value],
                _ => return Err(wrong(text, item, format!("{path} is a table; quote a path with dots"))),
            };
            for value in values {
                let at = value.span().map_or(0, |span| span.start);
                let limit = limit(process, path, value)
                    .map_err(|message| BudgetError { line: line(text, at), message })?;
                self.limits.push((line(text, at), limit));
            }
        }
        Ok(())
    }

    /// Checks every limit, in the order of the file.
    pub fn check(&self, set: &ReportSet) -> Vec<BudgetCheck<'_>> {
        let normalizer = Normalizer::new(&DiffOptions::new(), &[set])
            .expect("the rules of Firefox are regular expressions");
        let set = normalizer.normalized(set);
        let forest = Forest::new(&set);
        let check = |(line, limit): &'_ (usize, Limit)| (*line, limit.check(None, &forest));
        let checks = self.limits.iter().map(|entry| (entry, check(entry)));
        checks
            .map(|((_, limit), (line, verdict))| {
                let is_missing = matches!(verdict, Err(LimitError::NotReported(_)));
                let nearest = is_missing.then(|| nearest_path(limit, &set)).flatten();
                BudgetCheck { line, limit, verdict, nearest }
            })
            .collect()
    }
}

/// The reported path that is nearest to the path of a limit.
fn nearest_path(limit: &Limit, set: &ReportSet) -> Option<String> {
    let process = limit.process().unwrap_or("");
    let reports = set.iter().filter(|report| report.process.contains(process));
    let paths: BTreeSet<&str> = reports
        .flat_map(|report| {
            let path = report.path;
            let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
            ends.map(move |end| &path[..end])
        })
        .collect();
    nearest_name(limit.path(), paths).map(str::to_owned)
}

fn limit(process: Option<&str>, path: &str, value: &Value) -> Result<Limit, String> {
    let condition = match value {
        Value::String(text) => text.value().clone(),
        Value::Integer(number) => number.value().to_string(),
        _ => return Err(format!("the limit of {path} is neither a string nor a whole number")),
    };
    let limit = Limit::on_path(process, path, &condition).map_err(|error| error.to_string())?;
    if limit.is_relative() {
        return Err(format!("{limit}: a budget has no earlier report, so it cannot limit growth"));
    }
    Ok(limit)
}

/// The outcome of one limit of a budget.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BudgetCheck<'b> {
    /// The line of the limit in the budget file, counted from 1.
    pub line: usize,
    /// The limit.
    pub limit: &'b Limit,
    /// The amount and whether it meets the limit, or why the limit could not be checked.
    pub verdict: Result<LimitOutcome, LimitError>,
    /// If no report has the limit's path: the most similar path of the report, if one is similar.
    pub nearest: Option<String>,
}

impl BudgetCheck<'_> {
    /// Whether the limit fails. A limit also fails if its units differ from the report's units. A path that the report
    /// does not contain meets each maximum and fails each minimum.
    pub fn failed(&self) -> bool {
        match &self.verdict {
            Ok(verdict) => !verdict.holds,
            Err(LimitError::NotReported(_)) => !self.limit.holds_for_nothing(),
            Err(_) => true,
        }
    }
}

impl fmt::Display for BudgetCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Ok(verdict) => write!(f, "{}: {verdict}", self.limit),
            Err(error) => {
                error.fmt(f)?;
                match &self.nearest {
                    Some(path) => write!(f, "; did you mean {path}?"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// An error in a budget file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
#[non_exhaustive]
pub struct BudgetError {
    /// The line of the error, counted from 1.
    pub line: usize,
    /// The description of the error.
    pub message: String,
}

fn wrong(text: &str, item: &Item, message: String) -> BudgetError {
    BudgetError { line: line(text, item.span().map_or(0, |span| span.start)), message }
}

/// The line of a byte offset in a text, counted from 1.
fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
