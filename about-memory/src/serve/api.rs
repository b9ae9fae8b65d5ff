//! The requests to `/api`. A request names snapshots, reports, stacks and computations by number.

use std::net::TcpStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use memory_report::file::{self, ReadOptions};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::answers;
use super::codes::OneTimeCode;
use super::displays::Displays;
use super::downloads::PendingDownloads;
use super::opening::StackOpening;
use super::processes::{self, MeasureRequest, ProcessButtons, SnapshotProcesses};
use super::recordings::ProcessRecordings;
use super::reports::{self, ReportRequest, ServedReports};
use super::series::{SeriesRequest, SeriesSources};
use super::snapshots::{SnapshotExport, SnapshotRequest};
use super::stacks::{self, AllStacks, ServedStacks};
use super::tickets::DownloadTickets;
use super::types::AllTypes;
use crate::http::RequestGuard;
use crate::http::{HttpMethod, HttpRequest};
use crate::http::{HttpRefusal, HttpResponse};
use crate::session::{JobId, Session, SnapshotId, SnapshotInfo};
use crate::temporary;

/// The JSON in the body of a request has at most this many bytes.
const MAX_BODY: u64 = 1 << 20;

/// The state that requests work with.
#[derive(Debug)]
pub(super) struct PageApi {
    pub(super) session: Session,
    pub(super) reports: ServedReports,
    pub(super) stacks: AllStacks,
    pub(super) types: AllTypes,
    pub(super) opening: StackOpening,
    pub(super) recordings: ProcessRecordings,
    pub(super) taken: SnapshotProcesses,
    pub(super) tickets: DownloadTickets,
    /// The user's own groups and labels.
    pub(super) displays: OnceLock<Displays>,
    pub(super) downloads: PendingDownloads,
    pub(super) guard: RequestGuard,
    /// The code that a page exchanges for the token.
    pub(super) code: OneTimeCode,
    pub(super) max_upload: u64,
    /// Whether all measurements omit private names.
    pub(super) anonymize: bool,
}

/// Two reports. The second report is the later one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CompareReports {
    baseline: u32,
    comparison: u32,
}

fn number<T: core::str::FromStr>(text: &str) -> Result<T, HttpRefusal> {
    text.parse().map_err(|_| HttpRefusal::new(404, "the number is invalid"))
}

impl PageApi {
    fn buttons(&self) -> ProcessButtons<'_> {
        let Self { session, stacks, types, taken, recordings, opening, .. } = self;
        ProcessButtons { session, stacks, types, taken, recordings, opening }
    }

    /// Exchanges a one-time code for the token.
    pub(super) fn token_for(&self, code: &str) -> Result<HttpResponse, HttpRefusal> {
        if !self.code.redeem(code.as_bytes()) {
            let reason = "the code was used before: open the address that `serve` printed";
            return Err(HttpRefusal::new(401, reason));
        }
        let url = self.guard.url();
        Ok(HttpResponse::json(&json!({ "token": url.split_once("#token=").map(|(_, token)| token) })))
    }

    /// Answers a request that the guard has accepted.
    pub(super) fn answer(
        &self,
        request: &HttpRequest,
        stream: &mut TcpStream,
    ) -> Result<HttpResponse, HttpRefusal> {
        let parts: Vec<&str> = request.path.split('/').skip(2).collect();
        match (request.method, parts.as_slice()) {
            (HttpMethod::Get, ["state"]) => Ok(state(self)),
            (HttpMethod::Get, ["processes"]) => {
                processes::list(&self.reports, &self.recordings, self.anonymize)
            }
            (HttpMethod::Get, ["reports", id]) => {
                let against = request.parameter("against").map(number).transpose()?;
                ReportRequest { against, shape: String::new() }.at(number(id)?, &self.reports)
            }
            (HttpMethod::Get, ["reports", id, "file"]) => {
                let id = number(id)?;
                let set = self.reports.get(id)?.set;
                let mark =
                    request.parameter("against").map(|mark| self.reports.get(number(mark)?)).transpose()?;
                let set = mark.map_or(set.clone(), |mark| Arc::new(crate::diff(&mark.set, &set)));
                reports::file(id, &set, request.parameter("format").unwrap_or("json"))
            }
            (HttpMethod::Get, ["types", id]) => self.types.get(SnapshotId(number(id)?)),
            (HttpMethod::Get, ["stacks", id]) => {
                Ok(HttpResponse::bytes(self.stacks.get(number(id)?)?.data.to_vec()))
            }
            (HttpMethod::Post, ["stacks", id, "export"]) => {
                let export = body::<stacks::StackExport>(request, stream)?;
                export.run(number(id)?, &self.stacks, &self.downloads, &self.session, stream)
            }
            (HttpMethod::Get, ["stacks", id, "suggestions"]) => {
                stacks::suggestions(number(id)?, &self.stacks, &self.downloads, &self.session, stream)
            }
            (HttpMethod::Post, ["stacks", "compare"]) => {
                let compare = body::<stacks::CompareStacks>(request, stream)?;
                compare.run(&self.stacks, &self.downloads, stream)
            }
            (HttpMethod::Post, ["stacks", id, "ticket"]) => {
                let id = number(id)?;
                self.stacks.get(id)?;
                let issued = self.tickets.issue((id, body::<stacks::StackExport>(request, stream)?));
                let path = issued.map_err(|error| HttpRefusal::new(503, error.to_string()))?;
                Ok(HttpResponse::json(&json!({ "path": path })))
            }
            (HttpMethod::Post, ["query"]) => {
                body::<SnapshotRequest>(request, stream)?.answer(&self.session, stream)
            }
            (HttpMethod::Post, ["export"]) => {
                body::<SnapshotExport>(request, stream)?.run(&self.downloads, &self.session, stream)
            }
            (HttpMethod::Post, ["measure"]) => {
                let measure: MeasureRequest = body(request, stream)?;
                if measure.changes() {
                    self.guard.change()?;
                }
                measure.run(&self.reports, self.anonymize)
            }
            (HttpMethod::Post, ["series"]) => {
                let Self { reports, stacks, taken, session, .. } = self;
                body::<SeriesRequest>(request, stream)?.run(&SeriesSources {
                    reports,
                    stacks,
                    taken,
                    session,
                })
            }
            (HttpMethod::Post, ["compare"]) => {
                let CompareReports { baseline, comparison } = body(request, stream)?;
                let (first, second) = (self.reports.get(baseline)?, self.reports.get(comparison)?);
                let title = format!("diff of {} and {}", first.title, second.title);
                let set = crate::diff(&first.set, &second.set);
                Ok(HttpResponse::json(
                    &json!({ "report": self.reports.add_made(title.clone(), set, Vec::new()), "title": title }),
                ))
            }
            (HttpMethod::Get, ["processes", pid, "recording"]) => self.recordings.file(number(pid)?),
            (HttpMethod::Post, ["processes", pid, action]) => {
                self.guard.change()?;
                let length = request.parameter("milliseconds").map(number).transpose()?;
                let length = length.map(|length: u32| Duration::from_millis(length.into()));
                processes::action(&self.buttons(), number(pid)?, action, length)
            }
            (HttpMethod::Put, ["reports"]) => {
                self.guard.change()?;
                let title = request.text("title").unwrap_or_else(|| "imported".to_owned());
                let from = request.body(stream, self.max_upload)?;
                let set = file::read_from(from, &ReadOptions::new());
                let set = set.map_err(|error| HttpRefusal::new(409, format!("{title}: {error}")))?;
                let report = self.reports.add_made(title.clone(), set, Vec::new());
                Ok(HttpResponse::json(&json!({ "report": report, "title": title })))
            }
            (HttpMethod::Put, ["stacks"]) => {
                self.guard.change()?;
                let title = request.text("title").unwrap_or_else(|| "imported".to_owned());
                let cannot = |error: std::io::Error| HttpRefusal::new(503, error.to_string());
                let folder = self.session.folder().map_err(cannot)?;
                let path = folder.path().join("imported");
                let mut from = request.body(stream, self.max_upload)?;
                let mut copy = temporary::private_file(&path).map_err(cannot)?;
                std::io::copy(&mut from, &mut copy).map_err(cannot)?;
                drop(from);
                let _one = self.downloads.one()?;
                let id = self.stacks.add(ServedStacks::from_file(&title, &path, folder, &self.opening)?);
                Ok(HttpResponse::json(&json!({ "stacks": id, "title": title })))
            }
            (HttpMethod::Put, ["snapshots"]) => {
                self.guard.change()?;
                let mut from = request.body(stream, self.max_upload)?;
                let title = request.text("title").unwrap_or_else(|| "imported".to_owned());
                let id = self.session.import(&title, &mut from).map_err(answers::refusal)?;
                Ok(HttpResponse::json(&json!({ "snapshot": id.0 })))
            }
            (HttpMethod::Delete, ["snapshots"]) => {
                self.guard.change()?;
                for snapshot in self.session.snapshots() {
                    self.session.remove(snapshot.id);
                }
                Ok(HttpResponse::json(&json!({})))
            }
            (HttpMethod::Delete, ["snapshots", id]) => {
                self.guard.change()?;
                match self.session.remove(SnapshotId(number(id)?)) {
                    true => Ok(HttpResponse::json(&json!({}))),
                    false => Err(HttpRefusal::new(404, "no snapshot has this id")),
                }
            }
            // Any page may cancel a computation that a page has started.
            (HttpMethod::Delete, ["jobs", id]) => match self.session.cancel(JobId(number(id)?)) {
                true => Ok(HttpResponse::json(&json!({}))),
                false => Err(HttpRefusal::new(404, "no computation has this id")),
            },
            _ => Err(HttpRefusal::new(404, "the server has nothing at this address")),
        }
    }
}

fn body<T: DeserializeOwned>(request: &HttpRequest, stream: &mut TcpStream) -> Result<T, HttpRefusal> {
    let from = std::io::BufReader::new(request.body(stream, MAX_BODY)?);
    serde_json::from_reader(from)
        .map_err(|error| HttpRefusal::new(400, format!("the body is invalid: {error}")))
}

/// Returns the state that the page shows at first, and after a gap in the events.
fn state(api: &PageApi) -> HttpResponse {
    let PageApi { session, types, .. } = api;
    // Reads the number of the latest event before the state: the page also gets an event for each later change.
    let seq = session.events().last();
    let reports = api.reports.list().into_iter().map(|(id, report)| {
        json!({
            "id": id, "title": report.title, "pids": report.pids, "given": report.is_given,
            "anonymized": report.is_anonymized, "mark": report.is_mark,
            "time": report.measured_at().map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        })
    });
    let stacks = api
        .stacks
        .list()
        .into_iter()
        .map(|(id, stacks)| json!({ "id": id, "title": stacks.title, "files": stacks.has_files(), "blocks": stacks.has_blocks() }));
    let snapshot = |info: &SnapshotInfo| answers::snapshot(info, api.taken.process_of(info.id));
    HttpResponse::json(&json!({
        "seq": seq, "server": std::process::id(), "readOnly": api.guard.is_read_only(), "anonymize": api.anonymize,
        "snapshots": session.snapshots().iter().map(snapshot).collect::<Vec<_>>(),
        "reports": reports.collect::<Vec<_>>(),
        "stacks": stacks.collect::<Vec<_>>(),
        "types": types.list(),
        "typesOfProcesses": types.are_possible(),
        "displays": api.displays.get().cloned().unwrap_or_default(),
        "cache": session.memory(),
        "version": env!("CARGO_PKG_VERSION"),
        "system": format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
    }))
}
