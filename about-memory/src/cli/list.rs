//! `about-memory list`.

use std::io::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use about_memory::{escape, live};
use clap::Args;

use super::live_input::{self, HOW_TO_LISTEN, seconds};
use super::{Failure, say};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory run --listen -- my-program &
  about-memory list
  about-memory list --timeout 0.5

A program answers requests if `about-memory run --listen` or ABOUT_MEMORY=listen started it, or if it calls
memory_reporter::listen().";

#[derive(Args)]
pub(crate) struct ListCommand {
    /// Wait at most this long for an answer. Seconds, or a number with ms, s, m or h.
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = seconds)]
    timeout: Duration,
}

impl ListCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let listeners = live::list(self.timeout).map_err(|error| live_input::failure(&[], error))?;
        if listeners.is_empty() {
            say(&format!("no process listens: {HOW_TO_LISTEN}"));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let rows = listeners.iter().map(|listener| {
            let (name, uptime) = match &listener.hello {
                Ok(hello) => {
                    let known = hello.started != 0;
                    let uptime =
                        if known { uptime(now.saturating_sub(hello.started)) } else { "?".to_owned() };
                    (hello.name.clone(), uptime)
                }
                Err(error) => (format!("({error})"), "?".to_owned()),
            };
            let socket = listener.socket.display().to_string();
            [listener.pid.to_string(), escape(&name), uptime, escape(&socket)]
        });
        let heads = ["PID", "NAME", "UPTIME", "SOCKET"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(heads).chain(rows).collect();
        if listeners.is_empty() {
            return Ok(());
        }
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2)];
        let mut out = io::stdout().lock();
        for [pid, name, uptime, socket] in &rows {
            writeln!(out, "{pid:>0$}  {name:<1$}  {uptime:>2$}  {socket}", widths[0], widths[1], widths[2])
                .map_err(Failure::Output)?;
        }
        Ok(())
    }
}

/// Formats an uptime with its largest unit that is not zero, and the next smaller unit: days, hours, minutes, seconds.
fn uptime(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h{:02}m", minutes % 60),
        (_, _, _) => format!("{days}d{:02}h", hours % 24),
    }
}
