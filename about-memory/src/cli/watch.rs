//! Shows running processes repeatedly, as lines of text in which changes are marked.

use std::io::{self, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use about_memory::live::Watch;
use memory_report::WarningKind;

use super::Failure;
use super::live_input::RequestOptions;
use super::view::TreeView;

/// Prints the reports of processes every `interval`: forever, or `count` times.
pub(super) fn watch(
    pids: &[u32],
    view: &TreeView,
    live: &RequestOptions,
    interval: Duration,
    count: Option<u64>,
) -> Result<(), Failure> {
    let mut comparison = Watch::new();
    let start = Instant::now();
    for number in 1.. {
        let set = live.collect_quietly(pids, &live.ask())?;
        let mut text = format!("== {number}, after {:.1} s\n", start.elapsed().as_secs_f64());
        for warning in set.warnings().iter().filter(|warning| warning.kind == WarningKind::ProcessMissing) {
            text.push_str(&format!("WARNING: {}\n", about_memory::escape(&warning.to_string())));
        }
        for row in comparison.rows(&view.apply(about_memory::text(&set), view.filter()?)) {
            text.push_str(&format!("{row}\n"));
        }
        text.push('\n');
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output)?;
        if count == Some(number) {
            break;
        }
        thread::sleep(interval);
    }
    Ok(())
}
