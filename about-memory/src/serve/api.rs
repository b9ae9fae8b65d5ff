//! The requests to `/api`. They name all things by number.

use std::net::TcpStream;
use std::sync::{Arc, OnceLock};

use memory_report::file::{self, ReadOptions};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::answers;
use super::displays::Displays;
use super::downloads::Downloads;
use super::guard::Guard;
use super::opening::Opening;
use super::processes::{self, Buttons, Measure, Taken};
use super::recordings::Recordings;
use super::reports::{self, Look, Reports};
use super::request::{Method, Request};
use super::response::{Refusal, Response};
use super::series::{Over, Sources};
use super::snapshots::{Export, Question};
use super::stacks::{self, AllStacks, Stacks};
use super::tickets::Tickets;
use super::types::AllTypes;
use crate::session::{JobId, Session, SnapshotId, SnapshotInfo};
use crate::temporary;

/// The longest body of a question.
const MAX_BODY: u64 = 1 << 20;

/// What requests work with.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) session: Session,
    pub(super) reports: Reports,
    pub(super) stacks: AllStacks,
    pub(super) types: AllTypes,
    pub(super) opening: Opening,
    pub(super) recordings: Recordings,
    pub(super) taken: Taken,
    pub(super) tickets: Tickets,
    /// Groups and labels of the user's own.
    pub(super) displays: OnceLock<Displays>,
    pub(super) downloads: Downloads,
    pub(super) guard: Guard,
    pub(super) max_upload: u64,
    /// Whether all measurements are without private names.
    pub(super) anonymize: bool,
}

/// Two reports, of which the second is the later.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Compare {
    baseline: u32,
    comparison: u32,
}

fn number<T: core::str::FromStr>(text: &str) -> Result<T, Refusal> {
    text.parse().map_err(|_| Refusal::new(404, "the number is wrong"))
}

impl Api {
    fn buttons(&self) -> Buttons<'_> {
        let Self { session, stacks, types, taken, recordings, opening, .. } = self;
        Buttons { session, stacks, types, taken, recordings, opening }
    }

    /// Answers a request that the guard has let in.
    pub(super) fn answer(&self, request: &Request, stream: &mut TcpStream) -> Result<Response, Refusal> {
        let parts: Vec<&str> = request.path.split('/').skip(2).collect();
        match (request.method, parts.as_slice()) {
            (Method::Get, ["state"]) => Ok(state(self)),
            (Method::Get, ["processes"]) => processes::list(&self.reports, &self.recordings, self.anonymize),
            (Method::Get, ["reports", id]) => {
                let against = request.parameter("against").map(number).transpose()?;
                Look { against, shape: String::new() }.at(number(id)?, &self.reports)
            }
            (Method::Get, ["reports", id, "file"]) => {
                let id = number(id)?;
                let set = self.report(id)?.set;
                let mark = request.parameter("against").map(|mark| self.report(number(mark)?)).transpose()?;
                let set = mark.map_or(set.clone(), |mark| Arc::new(crate::diff(&mark.set, &set)));
                reports::file(id, &set, request.parameter("format").unwrap_or("json"))
            }
            (Method::Get, ["types", id]) => self.types.get(SnapshotId(number(id)?)),
            (Method::Get, ["stacks", id]) => Ok(Response::bytes(self.stacks.get(number(id)?)?.data.to_vec())),
            (Method::Post, ["stacks", id, "export"]) => {
                let export = body::<stacks::Export>(request, stream)?;
                export.run(number(id)?, &self.stacks, &self.downloads, &self.session, stream)
            }
            (Method::Get, ["stacks", id, "suggestions"]) => {
                stacks::suggestions(number(id)?, &self.stacks, &self.downloads, &self.session, stream)
            }
            (Method::Post, ["stacks", "compare"]) => {
                let compare = body::<stacks::Compare>(request, stream)?;
                compare.run(&self.stacks, &self.downloads, stream)
            }
            (Method::Post, ["stacks", id, "ticket"]) => {
                let id = number(id)?;
                self.stacks.get(id)?;
                let issued = self.tickets.issue((id, body::<stacks::Export>(request, stream)?));
                let path = issued.map_err(|error| Refusal::new(503, error.to_string()))?;
                Ok(Response::json(&json!({ "path": path })))
            }
            (Method::Post, ["query"]) => body::<Question>(request, stream)?.answer(&self.session, stream),
            (Method::Post, ["export"]) => {
                body::<Export>(request, stream)?.run(&self.downloads, &self.session, stream)
            }
            (Method::Post, ["measure"]) => {
                let measure: Measure = body(request, stream)?;
                if measure.changes() {
                    self.guard.change()?;
                }
                measure.run(&self.reports, self.anonymize)
            }
            (Method::Post, ["series"]) => {
                let Self { reports, stacks, taken, session, .. } = self;
                body::<Over>(request, stream)?.run(&Sources { reports, stacks, taken, session })
            }
            (Method::Post, ["compare"]) => {
                let Compare { baseline, comparison } = body(request, stream)?;
                let (first, second) = (self.report(baseline)?, self.report(comparison)?);
                let title = format!("diff of {} and {}", first.title, second.title);
                let set = crate::diff(&first.set, &second.set);
                Ok(Response::json(
                    &json!({ "report": self.reports.add(title.clone(), set, Vec::new()), "title": title }),
                ))
            }
            (Method::Get, ["processes", pid, "recording"]) => self.recordings.file(number(pid)?),
            (Method::Post, ["processes", pid, action]) => {
                self.guard.change()?;
                processes::action(&self.buttons(), number(pid)?, action)
            }
            (Method::Put, ["reports"]) => {
                self.guard.change()?;
                let title = request.text("title").unwrap_or_else(|| "imported".to_owned());
                let from = request.body(stream, self.max_upload)?;
                let set = file::read_from(from, &ReadOptions::new());
                let set = set.map_err(|error| Refusal::new(409, format!("{title}: {error}")))?;
                let report = self.reports.add(title.clone(), set, Vec::new());
                Ok(Response::json(&json!({ "report": report, "title": title })))
            }
            (Method::Put, ["stacks"]) => {
                self.guard.change()?;
                let title = request.text("title").unwrap_or_else(|| "imported".to_owned());
                let cannot = |error: std::io::Error| Refusal::new(503, error.to_string());
                let folder = self.session.folder().map_err(cannot)?;
                let path = folder.path().join("imported");
                let mut from = request.body(stream, self.max_upload)?;
                let mut copy = temporary::private_file(&path).map_err(cannot)?;
                std::io::copy(&mut from, &mut copy).map_err(cannot)?;
                drop(from);
                let _one = self.downloads.one()?;
                let id = self.stacks.add(Stacks::of_file(&title, &path, folder, &self.opening)?);
                Ok(Response::json(&json!({ "stacks": id, "title": title })))
            }
            (Method::Put, ["snapshots"]) => {
                self.guard.change()?;
                let mut from = request.body(stream, self.max_upload)?;
                let title = request.text("title").unwrap_or_else(|| "imported".to_owned());
                let id = self.session.import(&title, &mut from).map_err(answers::refusal)?;
                Ok(Response::json(&json!({ "snapshot": id.0 })))
            }
            (Method::Delete, ["snapshots"]) => {
                self.guard.change()?;
                for snapshot in self.session.snapshots() {
                    self.session.remove(snapshot.id);
                }
                Ok(Response::json(&json!({})))
            }
            (Method::Delete, ["snapshots", id]) => {
                self.guard.change()?;
                match self.session.remove(SnapshotId(number(id)?)) {
                    true => Ok(Response::json(&json!({}))),
                    false => Err(Refusal::new(404, "there is no such snapshot")),
                }
            }
            // A reader may cancel what a reader has begun.
            (Method::Delete, ["jobs", id]) => match self.session.cancel(JobId(number(id)?)) {
                true => Ok(Response::json(&json!({}))),
                false => Err(Refusal::new(404, "there is no such computation")),
            },
            _ => Err(Refusal::new(404, "there is nothing here")),
        }
    }

    fn report(&self, id: u32) -> Result<reports::Report, Refusal> {
        self.reports.get(id).ok_or(Refusal::new(404, "there is no such report"))
    }
}

fn body<T: DeserializeOwned>(request: &Request, stream: &mut TcpStream) -> Result<T, Refusal> {
    let from = std::io::BufReader::new(request.body(stream, MAX_BODY)?);
    serde_json::from_reader(from).map_err(|error| Refusal::new(400, format!("the body is wrong: {error}")))
}

/// What the page shows first, and after a gap in the events.
fn state(api: &Api) -> Response {
    let Api { session, types, .. } = api;
    // The number comes first: what changes meanwhile makes an event that the page gets, too.
    let seq = session.events().last();
    let reports = api.reports.list().into_iter().map(|(id, report)| {
        json!({
            "id": id, "title": report.title, "pids": report.pids, "given": report.is_given,
            "anonymized": report.is_anonymized, "mark": report.is_mark,
        })
    });
    let stacks = api
        .stacks
        .list()
        .into_iter()
        .map(|(id, stacks)| json!({ "id": id, "title": stacks.title, "files": stacks.has_files(), "blocks": stacks.has_blocks() }));
    let snapshot = |info: &SnapshotInfo| answers::snapshot(info, api.taken.process_of(info.id));
    Response::json(&json!({
        "seq": seq, "server": std::process::id(), "readOnly": api.guard.read_only, "anonymize": api.anonymize,
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
