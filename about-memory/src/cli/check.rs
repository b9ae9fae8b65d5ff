//! `about-memory check`: checks a report against a budget.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use about_memory::{Budget, BudgetCheck, BudgetError, BudgetOptions, LimitError, escape};
use clap::Args;
use serde::Serialize;

use super::input::{InputArgument, ReadLimits};
use super::view::percent;
use super::{Failure, say};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory check memory-report.json.gz --budget budget.toml --write
  about-memory check memory-report.json.gz --budget budget.toml
  about-memory check memory-report.json.gz --budget budget.toml --json
  about-memory check memory-report.json.gz --budget budget.toml --write --headroom 25 --path explicit/cache

A budget is a TOML file that you keep in your repository:
  [budget]                                  # sums over all processes
  explicit = \"120 MiB\"                      # at most
  \"explicit/cache\" = [\"64 MiB\", \">= 1 MiB\"]  # and at least
  threads = 40
  [process.\"Main Process\"]                  # processes whose name contains this
  \"explicit/heap-unclassified\" = \"12.5 MiB\"

Units are B; KiB, MiB and GiB (powers of 1,024); kB or KB, MB and GB (powers of 1,000); and %. The texts of `show` call
a MiB MB, as Firefox does: write such an amount as MiB.

A path that the report does not contain meets every maximum; a line on stderr names it, and the most similar path.

Exit status: 0 on success, 1 if a file cannot be read or is not a budget, 2 for wrong usage, 3 if a
limit does not hold.";

#[derive(Args)]
pub(crate) struct CheckCommand {
    /// The report file, compressed or not; `-` for standard input; or the process id or the name of a running process.
    file: InputArgument,
    /// The budget file.
    #[arg(long, value_name = "FILE")]
    budget: PathBuf,
    /// Write the budget instead of checking it: set each limit without a comparison, or with `<=`, to the reported
    /// amount plus headroom. A new budget limits `explicit` and its large children, or the paths of `--path`.
    #[arg(long, conflicts_with = "json")]
    write: bool,
    /// The headroom of a written budget above the reported amount, in percent.
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = percent, requires = "write")]
    headroom: f64,
    /// Choose this path. It gets a maximum in the written budget. Repeatable.
    #[arg(long, value_name = "PATH", requires = "write")]
    path: Vec<String>,
    /// Write JSON instead of text. The JSON contains each limit with its amount.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: ReadLimits,
}

impl CheckCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let failed = |error: anyhow::Error| Failure::File(self.budget.display().to_string(), error);
        let text = match std::fs::read_to_string(&self.budget) {
            Ok(text) => text,
            Err(error) if self.write && error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(failed(anyhow::anyhow!("not found; --write creates it")));
            }
            Err(error) => return Err(failed(error.into())),
        };
        let wrong = |BudgetError { line, message, .. }| {
            Failure::File(format!("{}:{line}", self.budget.display()), anyhow::Error::msg(message))
        };
        if self.write {
            let options = BudgetOptions::new().headroom(self.headroom);
            let options = self.path.iter().fold(options, BudgetOptions::path);
            Budget::parse(&text).map_err(wrong)?;
            let set = self.file.read(&self.reading)?;
            if let Some(missing) = options.missing(&set).first() {
                return Err(Failure::File(
                    self.file.name(),
                    anyhow::anyhow!(
                        "no report has the path {missing}; `about-memory show --verbose` lists all paths"
                    ),
                ));
            }
            let new = Budget::update(&text, &set, &options).map_err(wrong)?;
            return std::fs::write(&self.budget, new).map_err(|error| failed(error.into()));
        }
        let budget = Budget::parse(&text).map_err(wrong)?;
        let set = self.file.read(&self.reading)?;
        let checks = budget.check(&set);
        let mut out = io::BufWriter::new(io::stdout().lock());
        let written = if self.json { write_json(&mut out, &checks) } else { write_table(&mut out, &checks) };
        written.and_then(|()| out.flush()).map_err(Failure::Output)?;
        let place = |check: &BudgetCheck<'_>| format!("{}: {check}", place(&self.budget, check));
        for check in checks.iter().filter(|check| matches!(check.verdict, Err(LimitError::NotReported(_)))) {
            say(&place(check));
        }
        let reasons: Vec<_> = checks.iter().filter(|check| check.failed()).map(place).collect();
        if reasons.is_empty() { Ok(()) } else { Err(Failure::Exceeded(reasons)) }
    }
}

fn place(budget: &Path, check: &BudgetCheck<'_>) -> String {
    format!("{}:{}", budget.display(), check.line)
}

fn write_table(mut out: impl Write, checks: &[BudgetCheck<'_>]) -> io::Result<()> {
    let amount = |check: &BudgetCheck<'_>| match &check.verdict {
        Ok(verdict) => verdict.to_string(),
        Err(_) => "-".to_owned(),
    };
    let width = |text: &dyn Fn(&BudgetCheck<'_>) -> usize| checks.iter().map(text).max().unwrap_or(0);
    let amounts = width(&|check| amount(check).len());
    let conditions = width(&|check| check.limit.condition().len());
    for check in checks {
        let state = if check.failed() { "FAILED" } else { "ok" };
        let process = check.limit.process().map(|process| format!("[{process}] ")).unwrap_or_default();
        let name = escape(&format!("{process}{}", check.limit.path()));
        let (amount, condition) = (amount(check), check.limit.condition());
        writeln!(out, "{state:6}  {amount:>amounts$}  {condition:conditions$}  {name}")?;
    }
    Ok(())
}

#[derive(Serialize)]
struct CheckedLimit<'c> {
    line: usize,
    process: Option<&'c str>,
    path: &'c str,
    condition: &'c str,
    amount: Option<i128>,
    failed: bool,
    reason: String,
}

fn write_json(mut out: impl Write, checks: &[BudgetCheck<'_>]) -> io::Result<()> {
    out.write_all(b"[")?;
    let mut before = "\n ";
    for check in checks {
        out.write_all(before.as_bytes())?;
        let line = CheckedLimit {
            line: check.line,
            process: check.limit.process(),
            path: check.limit.path(),
            condition: check.limit.condition(),
            amount: check.verdict.as_ref().ok().and_then(|verdict| verdict.second),
            failed: check.failed(),
            reason: check.to_string(),
        };
        serde_json::to_writer(&mut out, &line)?;
        before = ",\n ";
    }
    out.write_all(b"\n]\n")
}
