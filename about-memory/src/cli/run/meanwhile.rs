//! Writes dumps while the program runs: at intervals, and when a condition becomes true. With `--types`, a condition
//! requests a copy of the process instead.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use about_memory::Limit;
use about_memory::live::{self, LiveError};
use clap::Args;
use memory_report::tree::Forest;
use memory_report::{Kind, Report, ReportSet, Units};

use super::types::TypePlan;
use super::{Failure, say};

/// The dumps to write while the program runs.
#[derive(Args, Clone)]
pub(super) struct DumpPlan {
    /// Also write a dump at this interval, such as 10s, 500ms or 2m. The name of the file contains its number:
    /// dmd-PID.1.json.gz.
    #[arg(long, value_name = "TIME", value_parser = time)]
    every: Option<Duration>,
    /// Also write a dump each time this condition becomes true: `heap`, `resident` or `vsize`, a comparison, and a
    /// limit. Checked about once a second. With --types, the process makes a copy of itself at that time instead of a
    /// dump. The program runs on while it writes a dump, so a dump with contents (--mode scan) may show a later moment;
    /// the copy shows exactly that time.
    #[arg(long, value_name = "CONDITION")]
    when: Vec<Limit>,
    /// Let the program answer requests while it runs, such as `about-memory save --dump PID`. --every and --when imply
    /// it.
    #[arg(long)]
    listen: bool,
}

/// The amounts that a condition can limit.
const AMOUNTS: [&str; 3] = ["heap", "resident", "vsize"];

impl DumpPlan {
    /// Rejects conditions that can never be checked.
    pub(super) fn check(&self) -> Result<(), Failure> {
        for limit in &self.when {
            let usage = |reason: &str| Err(Failure::Usage(format!("--when {limit}: {reason}")));
            if limit.process().is_some() || !AMOUNTS.contains(&limit.path()) {
                return usage("can only be about heap, resident or vsize");
            }
            if limit.is_relative() {
                return usage("must be an absolute amount, not growth");
            }
            if let Err(error) = holds(limit, 0) {
                return usage(&error);
            }
        }
        Ok(())
    }

    /// Whether the program is watched for a condition.
    pub(super) fn has_conditions(&self) -> bool {
        !self.when.is_empty()
    }

    /// Returns the value of `$ABOUT_MEMORY` with which the program listens, if `always` is true or the options need it.
    /// `None` if the variable does not change.
    pub(super) fn listening(&self, always: bool) -> Option<String> {
        let is_needed = always || self.listen || self.every.is_some() || self.has_conditions();
        let words = env::var("ABOUT_MEMORY").unwrap_or_default();
        if !is_needed || words.split(',').any(|word| word.trim() == "listen") {
            return None;
        }
        Some(if words.is_empty() { "listen".to_owned() } else { format!("{words},listen") })
    }
}

fn holds(limit: &Limit, bytes: u64) -> Result<bool, String> {
    let mut set = ReportSet::new();
    let amount = i64::try_from(bytes).unwrap_or(i64::MAX);
    let (kind, units) = (Kind::Other, Units::Bytes);
    set.push(Report { process: "", path: limit.path(), kind, units, amount, description: "" });
    let verdict = limit.check(None, &Forest::new(&set));
    verdict.map(|verdict| verdict.holds).map_err(|error| error.to_string())
}

/// The time between two checks of the conditions.
const CHECK: Duration = Duration::from_secs(1);
/// Checks take at most 1/`SHARE` of the time, because each check also slows the program.
const SHARE: u32 = 20;
const TIMEOUT: Duration = Duration::from_secs(60);

/// The thread that requests the dumps and the copies while the program runs.
pub(super) struct DumpThread {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl DumpThread {
    /// Starts the thread. `None` if the thread would have nothing to request, or if no thread can be started.
    /// `has_contents` means that dumps have the contents of blocks.
    pub(super) fn start(
        plan: &DumpPlan,
        types: &TypePlan,
        output: &Path,
        pid: u32,
        has_contents: bool,
    ) -> Option<Self> {
        if plan.every.is_none() && plan.when.is_empty() && types.copy_after().is_none() {
            return None;
        }
        let (end, ended) = mpsc::channel();
        let conditions = plan.when.iter().map(|limit| (limit.clone(), false)).collect();
        let mut watcher = ConditionWatcher {
            pid,
            output: output.to_owned(),
            conditions,
            written: 0,
            problem: None,
            is_unknown: false,
            keeps_copies: types.is_on(),
            has_contents,
        };
        let (every, copy_after) = (plan.every, types.copy_after());
        let thread = thread::Builder::new().name("dumps".to_owned()).spawn(move || {
            let start = Instant::now();
            let mut dump_at = every.map(|every| start + every);
            let mut check_at = (!watcher.conditions.is_empty()).then_some(start);
            let mut copy_at = copy_after.map(|after| start + after);
            loop {
                let Some(next) = dump_at.into_iter().chain(check_at).chain(copy_at).min() else {
                    let _ = ended.recv();
                    return watcher.finish();
                };
                match ended.recv_timeout(next.saturating_duration_since(Instant::now())) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return watcher.finish(),
                }
                let now = Instant::now();
                if let (Some(at), Some(every)) = (&mut dump_at, every)
                    && *at <= now
                {
                    watcher.dump();
                    // After a slow dump, the program runs for a while before the next dump.
                    *at = (*at + every).max(Instant::now() + every / 2);
                }
                if copy_at.is_some_and(|at| at <= now) {
                    copy_at = None;
                    watcher.keep_copy();
                }
                if let Some(at) = &mut check_at
                    && *at <= now
                {
                    let begun = Instant::now();
                    watcher.check();
                    *at = begun + CHECK.max(begun.elapsed() * SHARE);
                }
            }
        });
        match thread {
            Ok(thread) => Some(Self { end, thread }),
            Err(error) => {
                say(&format!("no dumps while the program runs: {error}"));
                None
            }
        }
    }

    /// Stops the thread after the program has ended.
    pub(super) fn end(self) {
        // The results are ignored: the thread ends in any case, and does not panic.
        let _ = self.end.send(());
        let _ = self.thread.join();
    }
}

struct ConditionWatcher {
    pid: u32,
    output: PathBuf,
    /// Each condition, and whether it was true at the last check.
    conditions: Vec<(Limit, bool)>,
    written: u32,
    /// The error of the last failed request.
    problem: Option<LiveError>,
    /// Whether a message was printed that the process cannot count an amount.
    is_unknown: bool,
    /// Whether a condition requests a copy of the process instead of a dump.
    keeps_copies: bool,
    /// Whether dumps have the contents of blocks, which change while the process writes a dump.
    has_contents: bool,
}

impl ConditionWatcher {
    fn dump(&mut self) {
        let path = numbered(&self.output, self.pid, self.written + 1);
        let begun = Instant::now();
        match live::save_dump(self.pid, &path, TIMEOUT) {
            Ok(()) => {
                self.written += 1;
                let note = if self.has_contents {
                    let seconds = begun.elapsed().as_secs_f64();
                    format!(
                        " in {seconds:.1} s; the program ran on meanwhile, so contents may be newer than its blocks"
                    )
                } else {
                    String::new()
                };
                say(&format!("wrote {}{note}", path.display()));
            }
            Err(error) => self.problem = Some(error),
        }
    }

    fn keep_copy(&mut self) {
        if let Err(error) = live::keep_copy(self.pid, TIMEOUT) {
            say(&format!("the types of this moment are not recorded: process {}: {error}", self.pid));
        }
    }

    fn check(&mut self) {
        let amounts = match live::amounts(self.pid, TIMEOUT) {
            Ok(amounts) => amounts,
            Err(error) => return self.problem = Some(error),
        };
        let mut is_time = false;
        for (limit, was_true) in &mut self.conditions {
            let amount = match limit.path() {
                "heap" => amounts.heap_allocated,
                "resident" => amounts.resident,
                _ => amounts.vsize,
            };
            if amount.is_none() && !self.is_unknown {
                self.is_unknown = true;
                let (pid, path) = (self.pid, limit.path());
                say(&format!(
                    "--when {limit}: process {pid} cannot count {path}: it records a sample, or has dropped blocks"
                ));
            }
            let is_true = amount.is_some_and(|bytes| holds(limit, bytes).unwrap_or(false));
            is_time |= is_true && !*was_true;
            *was_true = is_true;
        }
        if is_time && self.keeps_copies {
            self.keep_copy();
        } else if is_time {
            self.dump();
        }
    }

    /// Prints the failure if no dump was written. If dumps were written, ignores the failure: the last request may fail
    /// because the program ends.
    fn finish(self) {
        if let (0, Some(problem)) = (self.written, self.problem) {
            say(&format!("no dump while the program ran: process {}: {problem}", self.pid));
        }
    }
}

/// Returns the name of a dump: `dmd-%p.json.gz` becomes `dmd-1234.1.json.gz`.
fn numbered(output: &Path, pid: u32, number: u32) -> PathBuf {
    let name = output.file_name().unwrap_or_default().to_string_lossy().replace("%p", &pid.to_string());
    let dot = name.char_indices().skip(1).find(|(_, c)| *c == '.').map_or(name.len(), |(at, _)| at);
    let (head, tail) = name.split_at(dot);
    let tail = if tail.ends_with(".gz") { tail.to_owned() } else { format!("{tail}.gz") };
    output.with_file_name(format!("{head}.{number}{tail}"))
}

/// Parses a time: a number of seconds, or a number with `ms`, `s`, `m` or `h`.
fn time(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a time such as 10s, 500ms or 2m".to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| "expected a time such as 10s, 500ms or 2m".to_owned())?;
    let time = Duration::try_from_secs_f64(number * factor).map_err(|_| "the time is too long".to_owned())?;
    if time < Duration::from_millis(100) || time > Duration::from_secs(30 * 86_400) {
        return Err("the time must be between 100ms and 720h".to_owned());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_number_before_the_extension() {
        let check = |output: &str, expected: &str| {
            assert_eq!(numbered(Path::new(output), 12, 3), Path::new(expected));
        };
        check("dmd-%p.json.gz", "dmd-12.3.json.gz");
        check("a/b.json", "a/b.3.json.gz");
        check("a/.b", "a/.b.3.gz");
    }

    #[test]
    fn times_have_units() {
        for (text, milliseconds) in
            [("10s", 10_000), ("10", 10_000), ("500ms", 500), ("1.5m", 90_000), ("2h", 7_200_000)]
        {
            assert_eq!(time(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "10 parsecs", "1.2.3s", "0s", "10ms", "1e9h", "99999999999999999999h"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
