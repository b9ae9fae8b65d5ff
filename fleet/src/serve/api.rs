//! The requests of the page.

use std::io::Read as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use about_memory::http::{
    ConnectionHandler, ConnectionPlace, HttpMethod, HttpRefusal, HttpRequest, HttpResponse, RequestGuard,
    ResponseBody, refuse,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::cells::{self, MAX_ROWS, cut};
use super::reports::OpenReports;
use super::series;
use crate::day::Day;
use crate::error::FleetError;
use crate::folder::DayRange;
use crate::questions::{Question, QuestionOptions, deployments};
use crate::session::{FleetSession, SessionOptions};

/// The maximum number of bytes of a request's body.
const MAX_BODY: u64 = 64 << 10;
/// The maximum number of questions that run at the same time; others wait.
const MAX_RUNNING: usize = 2;
/// The time for an answer.
const TIME: Duration = Duration::from_secs(120);
/// The time for which opened tables are used again.
const FRESH: Duration = Duration::from_secs(60);
/// The maximum number of services, and of versions of a service, in the lists of the page.
const MAX_LISTED: usize = 200;

const PAGE: &[u8] = include_bytes!("../../assets/fleet.html");
const SCRIPT: &[u8] = include_bytes!("../../assets/fleet.js");
const STYLE: &[u8] = include_bytes!("../../assets/fleet.css");

/// The part of the tables that a request is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PageScope {
    service: String,
    path: String,
    version: String,
    from: String,
    to: String,
}

impl PageScope {
    pub(super) fn options(&self) -> QuestionOptions {
        let known = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        QuestionOptions {
            service: known(&self.service),
            path: self.path.clone(),
            version: known(&self.version),
            limit: MAX_ROWS,
        }
    }

    fn days(&self) -> Result<DayRange, HttpRefusal> {
        let day = |text: &String| match text.as_str() {
            "" => Ok(None),
            text => text.parse::<Day>().map(Some).map_err(|error| HttpRefusal::new(400, error)),
        };
        Ok(DayRange { from: day(&self.from)?, to: day(&self.to)? })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskRequest {
    question: String,
    scope: PageScope,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesRequest {
    scope: PageScope,
    process: Option<ProcessName>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportRequest {
    scope: PageScope,
    process: ProcessName,
}

/// A process of a row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessName {
    pub(super) host: String,
    pub(super) process: String,
    /// `None` stands for all processes of this name.
    pub(super) pid: Option<u32>,
}

/// Opened tables, and the time at which they were opened.
#[derive(Debug)]
struct OpenTables {
    days: DayRange,
    opened: Instant,
    session: Arc<FleetSession>,
}

/// The tables and the state of the page's server.
#[derive(Debug)]
pub(super) struct FleetApi {
    guard: RequestGuard,
    root: PathBuf,
    options: SessionOptions,
    runtime: Handle,
    running: Semaphore,
    tables: Mutex<Option<OpenTables>>,
    reports: OpenReports,
}

impl ConnectionHandler for FleetApi {
    fn serve(&self, place: &ConnectionPlace, stream: &mut TcpStream) {
        // A client that closes its connection loses only its own answer.
        let _ = match self.answer(place, stream) {
            Ok(response) => response.write(stream),
            Err(refusal) => refuse(&refusal, stream),
        };
    }
}

impl FleetApi {
    pub(super) fn new(
        guard: RequestGuard,
        root: PathBuf,
        options: SessionOptions,
        runtime: Handle,
        reports: OpenReports,
    ) -> Self {
        let running = Semaphore::new(MAX_RUNNING);
        Self { guard, root, options, runtime, running, tables: Mutex::default(), reports }
    }

    pub(super) fn url(&self) -> String {
        self.guard.url()
    }

    fn answer(&self, place: &ConnectionPlace, stream: &mut TcpStream) -> Result<HttpResponse, HttpRefusal> {
        let request = HttpRequest::read(stream)?;
        self.guard.check(&request)?;
        let asset = match request.path.as_str() {
            "/" => Some(("text/html; charset=utf-8", PAGE)),
            "/fleet.js" => Some(("text/javascript; charset=utf-8", SCRIPT)),
            "/fleet.css" => Some(("text/css; charset=utf-8", STYLE)),
            _ => None,
        };
        if let Some((media_type, bytes)) = asset {
            return Ok(HttpResponse { media_type, body: ResponseBody::Static(bytes) });
        }
        if !request.path.starts_with("/api/") {
            return Err(HttpRefusal::new(404, "the server has nothing at this address"));
        }
        place.keep();
        let value = match (request.method, request.path.as_str()) {
            (HttpMethod::Post, "/api/state") => {
                let scope: PageScope = body(&request, stream)?;
                self.run(&scope, async |session| self.state(session).await)
            }
            (HttpMethod::Post, "/api/ask") => {
                let AskRequest { question, scope } = body(&request, stream)?;
                let question = named(&question)?;
                self.run(&scope, async |session| {
                    cells::json(&session.ask(&question, &scope.options()).await?)
                })
            }
            (HttpMethod::Post, "/api/series") => {
                let SeriesRequest { scope, process } = body(&request, stream)?;
                self.run(&scope, async |session| {
                    series::series(session, &scope.options(), process.as_ref()).await
                })
            }
            (HttpMethod::Post, "/api/processes") => {
                let scope: PageScope = body(&request, stream)?;
                self.run(&scope, async |session| series::largest(session, &scope.options()).await)
            }
            (HttpMethod::Post, "/api/report") => {
                let ReportRequest { scope, process } = body(&request, stream)?;
                self.run(&scope, async |session| {
                    let (title, set) =
                        super::reports::last_report(session, &scope.options(), &process).await?;
                    let service = scope.service.as_str();
                    Ok(json!({ "url": self.reports.add(service, &title, set)?, "title": cut(&title) }))
                })
            }
            _ => Err(HttpRefusal::new(404, "the server has nothing at this address")),
        };
        value.map(|value| HttpResponse::json(&value))
    }

    /// Runs a question on the opened tables; again if a compaction deletes files meanwhile.
    fn run(
        &self,
        scope: &PageScope,
        ask: impl AsyncFn(&FleetSession) -> Result<Value, FleetError>,
    ) -> Result<Value, HttpRefusal> {
        const TRIES: usize = 5;
        let days = scope.days()?;
        let all = async {
            let _permit = self.running.acquire().await;
            let mut tries = 0;
            loop {
                let session = self.session(&days)?;
                match ask(&session).await {
                    Err(FleetError::Query(_)) if tries < TRIES && session.is_stale() => tries += 1,
                    asked => return asked,
                }
                *self.tables() = None;
            }
        };
        match self.runtime.block_on(async { tokio::time::timeout(TIME, all).await }) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(HttpRefusal::new(409, cut(&error.to_string()))),
            Err(_) => Err(HttpRefusal::new(503, "the answer takes too long; ask about fewer days")),
        }
    }

    fn tables(&self) -> std::sync::MutexGuard<'_, Option<OpenTables>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self, days: &DayRange) -> Result<Arc<FleetSession>, FleetError> {
        let mut tables = self.tables();
        if let Some(open) = tables.as_ref()
            && open.days == *days
            && open.opened.elapsed() < FRESH
        {
            return Ok(Arc::clone(&open.session));
        }
        let options = SessionOptions { days: *days, ..self.options.clone() };
        let session = Arc::new(FleetSession::open(&self.root, &options)?);
        *tables = Some(OpenTables { days: *days, opened: Instant::now(), session: Arc::clone(&session) });
        Ok(session)
    }

    /// The lists of the page.
    async fn state(&self, session: &FleetSession) -> Result<Value, FleetError> {
        let options = QuestionOptions { path: String::new(), ..QuestionOptions::default() };
        let deployed = deployments(session, &options).await?;
        let services: Vec<Value> = deployed
            .iter()
            .take(MAX_LISTED)
            .map(|(service, versions)| {
                let versions: Vec<String> =
                    versions.iter().rev().take(MAX_LISTED).map(|(_, version)| cut(version)).collect();
                json!({ "name": cut(service), "versions": versions })
            })
            .collect();
        let days = |day: Option<&crate::folder::TableFile>| day.map(|file| file.day.to_string());
        Ok(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "folder": cut(&self.root.to_string_lossy()),
            "services": services,
            "omitted": deployed.len().saturating_sub(MAX_LISTED),
            "from": days(session.measured().iter().min_by_key(|file| file.day)),
            "to": days(session.measured().iter().max_by_key(|file| file.day)),
        }))
    }
}

fn named(question: &str) -> Result<Question, HttpRefusal> {
    Ok(match question {
        "growth" => Question::Growth,
        "versions" => Question::Versions,
        "leaks" => Question::Leaks,
        "changes" => Question::Changes,
        "outliers" => Question::Outliers,
        "dark" => Question::Dark,
        "coverage" => Question::Coverage,
        _ => return Err(HttpRefusal::new(404, "there is no such question")),
    })
}

/// The body of a request.
fn body<T: DeserializeOwned>(request: &HttpRequest, stream: &mut TcpStream) -> Result<T, HttpRefusal> {
    let mut bytes = Vec::new();
    let read = request.body(stream, MAX_BODY)?.read_to_end(&mut bytes);
    read.map_err(|error| HttpRefusal::new(400, error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| HttpRefusal::new(400, error.to_string()))
}
