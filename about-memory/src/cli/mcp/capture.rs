//! Captures of processes that the user allowed with `--allow-capture`.

use std::time::{Duration, Instant};

use about_memory::live;
use about_memory::temporary::TemporaryFolder;
use dmd_analyze::recording::Moment;

use super::super::input::InputArgument;
use super::super::live_input::{self, DEFAULT_DUMP_TIMEOUT};
use super::answers::opened;
use super::argument::CheckedArguments;
use super::control::CallControl;
use super::graph_source::GraphSource;
use super::opened::MemoryTools;
use super::page::ToolAnswer;
use super::place::process;
use super::reason::reason;
use super::source::{FileRequest, SourceData};

/// The captures: a dump of all live blocks, the growth during a time, and the types of a copy of the process.
pub(super) const KINDS: &[&str] = &["dump", "track", "types"];

const SECONDS: u64 = 10;
/// `track` records one block per this many allocated bytes, as `about-memory track` does.
const SAMPLE_BYTES: u64 = 512 << 10;

/// Captures a process, and opens the result.
pub(super) fn capture(
    tools: &MemoryTools,
    arguments: &CheckedArguments<'_>,
    control: &CallControl,
) -> Result<ToolAnswer, String> {
    tools.check_room()?;
    let input = InputArgument::from(std::ffi::OsString::from(arguments.required("process")));
    let (pid, name) = process(&input)?;
    tools.places.check_capture(pid, name.as_deref())?;
    let title = name.unwrap_or_else(|| format!("process {pid}"));
    let failed = |error| reason(title.as_ref(), live_input::failure(&[pid], error));
    if arguments.required("what") == "types" {
        control.say("copying the process");
        let input = InputArgument::from(std::ffi::OsString::from(pid.to_string()));
        let graph = GraphSource::typed(&tools.session, input, &tools.limits, control)?;
        return opened(tools, &title, "the types of a process", SourceData::Graph(graph), None);
    }
    let folder = TemporaryFolder::new().map_err(|error| error.to_string())?;
    let file = folder.path().join("dmd.json.gz");
    if arguments.required("what") == "dump" {
        control.say("taking a dump");
        live::save_dump(pid, &file, DEFAULT_DUMP_TIMEOUT).map_err(failed)?;
    } else {
        let seconds = arguments.number("seconds").unwrap_or(SECONDS);
        let mut tracking = live::track(pid, SAMPLE_BYTES, DEFAULT_DUMP_TIMEOUT).map_err(failed)?;
        control.say(format!("tracking process {pid} for {seconds} s"));
        tracking
            .wait(Some(Instant::now() + Duration::from_secs(seconds)), control.cancelled())
            .map_err(failed)?;
        if control.is_cancelled() {
            return Err("cancelled".to_owned());
        }
        tracking.save(&file).map_err(failed)?;
    }
    let request = FileRequest { path: file, at: Some(Moment::End), as_types: false, limits: &tools.limits };
    let (kind, data) = SourceData::open(&request, &tools.session, control)?;
    opened(tools, &title, kind, data, Some(folder))
}
