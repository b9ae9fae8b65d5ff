//! Running processes: the list, and the page's requests to them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use memory_reporter::live::HelloAnswer;
use serde::Deserialize;
use serde_json::json;

use super::opening::StackOpening;
use super::recordings::ProcessRecordings;
use super::reports::{Measurement, ReportRequest, ServedReports};
use super::stacks::{AllStacks, ServedStacks};
use super::types::AllTypes;
use crate::http::{HttpRefusal, HttpResponse};
use crate::live::{self, AskOptions};
use crate::platform;
use crate::session::{Session, SnapshotId};

/// All processes together have this time to send their names and their amounts.
const TIME_FOR_NAMES: Duration = Duration::from_secs(1);
/// A process has this time to send a snapshot or a dump, to free memory, or to start or end a recording.
const TIME_FOR_FILES: Duration = Duration::from_secs(60);
/// The name of a dump in its folder.
const DUMP: &str = "dmd.json.gz";
/// A measurement has at most this many processes.
const MOST: usize = 64;

fn failed(error: live::LiveError) -> HttpRefusal {
    HttpRefusal::new(409, error.to_string())
}

/// The process of each heap snapshot that a page took.
#[derive(Debug, Default)]
pub(super) struct SnapshotProcesses(Mutex<BTreeMap<SnapshotId, u32>>);

impl SnapshotProcesses {
    fn note(&self, id: SnapshotId, pid: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, pid);
    }

    pub(super) fn process_of(&self, id: SnapshotId) -> Option<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).copied()
    }
}

/// Returns the listening processes and the ended processes with a recording. With `anonymize`, leaves out the paths of
/// programs, because a path may contain a person's name.
pub(super) fn list(
    reports: &ServedReports,
    recordings: &ProcessRecordings,
    anonymize: bool,
) -> Result<HttpResponse, HttpRefusal> {
    let listeners = live::list_with_amounts(TIME_FOR_NAMES).map_err(failed)?;
    let ended = recordings.ended(&listeners).into_iter().map(|(pid, name)| {
        json!({ "pid": pid, "name": name, "error": "the process has ended", "ended": true, "recording": true, "unopened": recordings.refusal(pid, None) })
    });
    let rows = listeners.iter().map(|listener| match &listener.hello {
        Ok(hello) => {
            let amounts = listener.amounts.as_ref();
            let measured = reports.parts(listener.pid);
            let number = super::answers::number;
            let unclassified = measured.as_ref().and_then(|(_, parts)| {
                parts.unclassified.map(|part| [number(part), number(parts.explicit)])
            });
            let largest = measured.as_ref().map(|(_, parts)| {
                let part = |(path, bytes): &(String, i128)| json!([path, number(*bytes)]);
                parts.largest.iter().map(part).collect::<Vec<_>>()
            });
            json!({
                "pid": listener.pid, "name": hello.name, "started": hello.started, "requests": hello.requests,
                "exe": (!anonymize).then_some(&hello.exe), "recording": recordings.has(listener.pid, Some(hello)),
                "unopened": recordings.refusal(listener.pid, Some(hello)),
                "unclassified": unclassified, "largest": largest,
                "explicit": measured.as_ref().map(|(_, parts)| number(parts.explicit)),
                "report": measured.as_ref().map(|(id, _)| id), "limit": platform::memory_limit(listener.pid),
                "resident": amounts.and_then(|amounts| amounts.resident),
                "heap": amounts.and_then(|amounts| amounts.heap_allocated),
            })
        }
        Err(error) => {
            let recording = recordings.has(listener.pid, None);
            json!({ "pid": listener.pid, "error": error.to_string(), "recording": recording, "unopened": recordings.refusal(listener.pid, None) })
        }
    });
    Ok(HttpResponse::json(&json!({ "processes": rows.chain(ended).collect::<Vec<_>>() })))
}

/// The page's request to measure processes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasureRequest {
    pids: Vec<u32>,
    #[serde(default)]
    minimize: bool,
    #[serde(default)]
    anonymize: bool,
    /// Whether the measurement is a mark: the page then shows the changes since this measurement.
    #[serde(default)]
    mark: bool,
    /// The number of an earlier measurement of the same processes. This measurement replaces the earlier one.
    #[serde(default)]
    renew: Option<u32>,
    /// If this is set, the answer contains the data of the measurement.
    #[serde(default)]
    look: Option<ReportRequest>,
}

impl MeasureRequest {
    /// Whether the request changes the processes.
    pub(super) fn changes(&self) -> bool {
        self.minimize
    }

    pub(super) fn run(&self, reports: &ServedReports, anonymize: bool) -> Result<HttpResponse, HttpRefusal> {
        if self.pids.is_empty() || self.pids.len() > MOST {
            return Err(HttpRefusal::new(400, format!("a measurement needs 1 to {MOST} processes")));
        }
        let missing = || HttpRefusal::new(404, "no measurement of these processes has this id");
        let renewed = self.renew.map(|id| reports.get(id).map_err(|_| missing())).transpose()?;
        let is_anonymized = anonymize || self.anonymize || renewed.is_some_and(|report| report.is_anonymized);
        let options = AskOptions::new().minimize(self.minimize).anonymize(is_anonymized);
        let set = live::collect(&self.pids, &options).map_err(failed)?;
        let pids: Vec<_> = self.pids.iter().map(u32::to_string).collect();
        let what = if self.mark { "mark" } else { "live measurement" };
        let title = match self.pids.as_slice() {
            [pid] => format!("{what} of process {pid}"),
            _ => format!("{what} of processes {}", pids.join(", ")),
        };
        let made = Measurement { pids: self.pids.clone(), is_anonymized, is_mark: self.mark };
        let report = match self.renew {
            None => reports.measured(title.clone(), set, made),
            Some(id) if reports.renew(id, set, &self.pids) => id,
            Some(_) => return Err(missing()),
        };
        match &self.look {
            Some(look) => look.at(report, reports),
            None => Ok(HttpResponse::json(&json!({ "report": report, "title": title }))),
        }
    }
}

/// Returns the facts that a process reports about itself.
fn hello_of(pid: u32) -> Option<HelloAnswer> {
    live::hello(pid, TIME_FOR_NAMES).ok()
}

/// Returns the name and the id of a process as a text: `server (pid 7)`.
fn name_of(pid: u32) -> String {
    let hello = hello_of(pid);
    format!("{} (pid {pid})", hello.as_ref().map_or("process", |hello| hello.name.as_str()))
}

/// The state that the buttons of a process work with.
pub(super) struct ProcessButtons<'a> {
    pub(super) session: &'a Session,
    pub(super) stacks: &'a AllStacks,
    pub(super) types: &'a AllTypes,
    pub(super) taken: &'a SnapshotProcesses,
    pub(super) recordings: &'a ProcessRecordings,
    pub(super) opening: &'a StackOpening,
}

/// Runs the action of a process's button. A recording ends by itself after `length`, if there is one.
pub(super) fn action(
    buttons: &ProcessButtons<'_>,
    pid: u32,
    action: &str,
    length: Option<Duration>,
) -> Result<HttpResponse, HttpRefusal> {
    let ProcessButtons { session, stacks, types, taken, recordings, opening } = *buttons;
    match action {
        "minimize" => {
            live::minimize(pid, TIME_FOR_FILES).map_err(failed)?;
            Ok(HttpResponse::json(&json!({})))
        }
        "collect" => {
            live::collect_garbage(pid, TIME_FOR_FILES).map_err(failed)?;
            Ok(HttpResponse::json(&json!({})))
        }
        "heap-snapshot" => {
            let title = name_of(pid);
            let save = move |path: &Path| {
                live::save_snapshot(pid, path, TIME_FOR_FILES).map_err(|error| error.to_string())
            };
            let id = session.take(&title, save).map_err(super::answers::refusal)?;
            taken.note(id, pid);
            Ok(HttpResponse::json(&json!({ "snapshot": id.0 })))
        }
        "types" => {
            let id = types.take(pid, &format!("types of {}", name_of(pid)), session)?;
            Ok(HttpResponse::json(&json!({ "snapshot": id.0 })))
        }
        "dmd-dump" => {
            let folder = session.folder().map_err(|error| HttpRefusal::new(503, error.to_string()))?;
            let path = folder.path().join(DUMP);
            live::save_dump(pid, &path, TIME_FOR_FILES).map_err(failed)?;
            Ok(HttpResponse::download(format!("dmd-{pid}.json.gz"), move |out| {
                let copied = std::io::copy(&mut std::fs::File::open(&path)?, out);
                drop(folder);
                copied.map(drop)
            }))
        }
        "stacks" => {
            let folder = session.folder().map_err(|error| HttpRefusal::new(503, error.to_string()))?;
            let path = folder.path().join(DUMP);
            live::save_dump(pid, &path, TIME_FOR_FILES).map_err(failed)?;
            let title = format!("DMD of process {pid}");
            let id = stacks.add(ServedStacks::from_file(&title, &path, folder, opening)?);
            Ok(HttpResponse::json(&json!({ "stacks": id, "title": title })))
        }
        "record" => recordings.start(pid, hello_of(pid), session, length, TIME_FOR_FILES),
        "discard" => recordings.discard(pid),
        "stop" => recordings.stop(pid, opening, stacks),
        _ => Err(HttpRefusal::new(404, "no action has this name")),
    }
}
