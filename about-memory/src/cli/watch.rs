//! `about-memory watch`.

mod screen;

use std::io::{self, IsTerminal as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use about_memory::live::{Watch as Comparison, WatchRow};
use clap::Args;
use memory_report::WarningKind;

use super::Failure;
use super::input::{self, Input};
use super::live_input::{LiveOptions, seconds};
use super::view::View;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory watch 1234
  about-memory watch 1234 --tree --interval 0.5
  about-memory watch --all --count 10 > log.txt

Marks: + larger, - smaller, * new, x gone. If stdout is not a terminal, each update is appended.";

#[derive(Args)]
pub(crate) struct Watch {
    /// The process ids or names of running processes.
    #[arg(value_name = "PID", required_unless_present = "all", conflicts_with = "all")]
    pids: Vec<Input>,
    /// The time between updates: seconds, or a number with ms, s, m or h.
    #[arg(long, short, value_name = "TIME", default_value = "2", value_parser = seconds)]
    interval: Duration,
    /// Exit after this many updates.
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    view: View,
    #[command(flatten)]
    live: LiveOptions,
}

/// The result of one update.
struct Look {
    rows: Vec<WatchRow>,
    /// One line for each process that did not answer.
    missing: Vec<String>,
}

impl Watch {
    pub(super) fn run(self) -> Result<(), Failure> {
        let pids = input::pids(&self.pids)?;
        let mut comparison = self.view.watch(self.view.filter()?);
        let mut look = || self.look(&pids, &mut comparison);
        if io::stdout().is_terminal() && io::stdin().is_terminal() {
            screen::run(self.interval, self.count, &mut look)
        } else {
            self.print(&mut look)
        }
    }

    fn look(&self, pids: &[u32], comparison: &mut Comparison) -> Result<Look, Failure> {
        let set = self.live.collect_quietly(pids, &self.live.ask())?;
        let missing = set.warnings().iter().filter(|warning| warning.kind == WarningKind::ProcessMissing);
        let missing = missing.map(|warning| about_memory::escape(&warning.to_string())).collect();
        Ok(Look { rows: comparison.rows(&set), missing })
    }

    fn print(&self, look: &mut dyn FnMut() -> Result<Look, Failure>) -> Result<(), Failure> {
        let start = Instant::now();
        for number in 1.. {
            let seen = look()?;
            let mut text = format!("== {number}, after {:.1} s\n", start.elapsed().as_secs_f64());
            for line in &seen.missing {
                text.push_str(&format!("WARNING: {line}\n"));
            }
            for row in &seen.rows {
                text.push_str(&format!("{row}\n"));
            }
            text.push('\n');
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output)?;
            if self.count == Some(number) {
                break;
            }
            thread::sleep(self.interval);
        }
        Ok(())
    }
}
