//! The server: its options, its requests and its end.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use memory_report::ReportSet;

use super::api::PageApi;
use super::assets;
use super::codes::OneTimeCode;
use super::displays::Displays;
use super::downloads::PendingDownloads;
use super::opening::{OpenedStacks, StackOpening};
use super::processes::SnapshotProcesses;
use super::recordings::ProcessRecordings;
use super::reports::ServedReports;
use super::stacks::{AllStacks, ServedStacks};
use super::stream;
use super::tickets::DownloadTickets;
use super::types::{AllTypes, TypeTables};
use crate::http::{
    ConnectionHandler, ConnectionPlace, HttpMethod, HttpRefusal, HttpRequest, HttpResponse, HttpServer,
    Listen, refuse,
};
use crate::session::{Session, SessionError, SnapshotId};

/// Options of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServeOptions {
    pub(crate) listen: Listen,
    pub(crate) port: u16,
    pub(crate) read_only: bool,
    pub(crate) anonymize: bool,
    pub(crate) keep: Option<NonZeroUsize>,
    pub(crate) max_upload: u64,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            listen: Listen::Loopback,
            port: 0,
            read_only: false,
            anonymize: false,
            keep: None,
            max_upload: 4 << 30,
        }
    }
}

impl ServeOptions {
    /// Options with all defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the place where the server listens. Default: 127.0.0.1.
    #[must_use]
    pub fn listen(self, listen: Listen) -> Self {
        Self { listen, ..self }
    }

    /// Whether all measurements omit private names, even if a page requests them. Default: no.
    #[must_use]
    pub fn anonymize(self, anonymize: bool) -> Self {
        Self { anonymize, ..self }
    }

    /// Limits the reports and the stacks that pages request: the server keeps the latest `most` of each. Default: 50
    /// reports and 20 stacks.
    #[must_use]
    pub fn keep(self, most: NonZeroUsize) -> Self {
        Self { keep: Some(most), ..self }
    }

    /// Sets the port. Default: 0, which selects a free port. With a Unix socket, this is the port that ssh forwards,
    /// and 0 means 8123.
    #[must_use]
    pub fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// Whether the page may only measure and compare. A read-only page changes no processes, imports no files and
    /// removes nothing. Default: no.
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Self {
        Self { read_only, ..self }
    }

    /// Sets the maximum length of a file that a page sends, in bytes: a heap snapshot, a report, a dump or a recording.
    /// Default: 4 GiB.
    #[must_use]
    pub fn max_upload(self, bytes: u64) -> Self {
        Self { max_upload: bytes, ..self }
    }
}

#[derive(Debug)]
struct ServerState {
    api: PageApi,
    is_over: AtomicBool,
    use_: Mutex<ServerUse>,
}

/// Counts the requests of pages.
#[derive(Debug)]
struct ServerUse {
    /// The number of requests to `/api` that are being answered, including streams of events.
    asking: usize,
    /// The time at which the latest of these requests ended.
    last: Instant,
}

impl ServerState {
    fn use_(&self) -> MutexGuard<'_, ServerUse> {
        self.use_.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that counts as being answered until this value is dropped, even after a panic.
struct RunningRequest<'a>(&'a ServerState);

impl<'a> RunningRequest<'a> {
    fn new(state: &'a ServerState) -> Self {
        state.use_().asking += 1;
        Self(state)
    }
}

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        let mut now = self.0.use_();
        now.asking -= 1;
        now.last = Instant::now();
    }
}

/// A server that runs on its own threads until it is dropped.
///
/// ```
/// use about_memory::serve::{ServeOptions, Server};
/// use about_memory::session::{Session, SessionOptions};
///
/// let server = Server::start(Session::new(SessionOptions::new()), &ServeOptions::new()).unwrap();
/// assert!(server.address().ip().is_loopback());
/// assert!(server.url().contains("/#token="));
/// ```
#[derive(Debug)]
pub struct Server {
    state: Arc<ServerState>,
    http: HttpServer,
}

impl Server {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// Returns an error if the port or the path is in use, a host name is not valid, or the system provides no random
    /// bytes or no thread.
    pub fn start(session: Session, options: &ServeOptions) -> io::Result<Self> {
        let is_remote = options.listen.is_remote();
        // Readers on other machines may only look, and see no private names.
        let read_only = options.read_only || is_remote;
        let code = OneTimeCode::new()?;
        let (http, state) = HttpServer::start(&options.listen, options.port, read_only, |guard| {
            let api = PageApi {
                reports: ServedReports::new(session.clone(), options.keep),
                stacks: AllStacks::new(session.clone(), options.keep),
                session,
                anonymize: options.anonymize || is_remote,
                types: AllTypes::default(),
                opening: StackOpening::default(),
                recordings: ProcessRecordings::default(),
                taken: SnapshotProcesses::default(),
                tickets: DownloadTickets::default(),
                displays: OnceLock::new(),
                downloads: PendingDownloads::default(),
                guard,
                code,
                max_upload: options.max_upload,
            };
            ServerState {
                api,
                is_over: AtomicBool::new(false),
                use_: Mutex::new(ServerUse { asking: 0, last: Instant::now() }),
            }
        })?;
        Ok(Self { state, http })
    }

    /// Returns the address that the server listens on or, with a Unix socket, the address from which ssh forwards.
    pub fn address(&self) -> SocketAddr {
        self.http.address()
    }

    /// Returns the address of the page, with the token. The token permits all requests, so the address must be kept
    /// secret.
    pub fn url(&self) -> String {
        self.state.api.guard.url()
    }

    /// Returns the address of the page with a code that works once, for a browser: its history then never contains the
    /// token. After the code is used, this function returns an address with another code.
    pub fn one_time_url(&self) -> String {
        let url = self.url();
        let page = url.split_once('#').map_or(url.as_str(), |(page, _)| page);
        format!("{page}#code={}", self.state.api.code.text())
    }

    /// Adds reports that the page shows.
    pub fn add_report(&self, title: impl Into<String>, set: ReportSet) {
        self.state.api.reports.give(title.into(), set, Vec::new());
    }

    /// Adds reports that a user requested. Returns the address of their view, with the token. [`ServeOptions::keep`] limits
    /// the number of these reports.
    pub fn open_report(&self, title: impl Into<String>, set: ReportSet) -> String {
        let id = self.state.api.reports.add_made(title.into(), set, Vec::new());
        format!("{}&report={id}", self.url())
    }

    /// Adds a measurement of processes. The page can repeat it.
    pub fn add_measurement(&self, title: impl Into<String>, set: ReportSet, pids: &[u32]) {
        self.state.api.reports.give(title.into(), set, pids.to_vec());
    }

    /// Adds a dump or a recording that the page shows.
    pub fn add_stacks(&self, title: impl Into<String>, opened: OpenedStacks) {
        self.state.api.stacks.add(ServedStacks::new(&title.into(), opened, true));
    }

    /// Sets the function that opens the dumps and recordings that pages send or request from processes. Without this
    /// function, the server opens only dumps.
    pub fn open_stacks_by(
        &self,
        open: impl Fn(&Path) -> Result<OpenedStacks, String> + Send + Sync + 'static,
    ) {
        self.state.api.opening.by(Arc::new(open));
    }

    /// Adds groups and labels that the page offers in addition to its own. Only the first call has an effect.
    pub fn offer(&self, displays: Displays) {
        let _ = self.state.api.displays.set(displays);
    }

    /// Adds a typed heap. `save` runs on another thread: it saves the heap as a heap snapshot at a path and returns its
    /// tables. The page shows the tables beside the snapshot's views. If `save` fails, the page shows its error.
    ///
    /// # Errors
    ///
    /// Returns an error if the session already has its maximum number of snapshots.
    pub fn add_types(
        &self,
        title: &str,
        save: impl FnOnce(&Path) -> Result<TypeTables, String> + Send + 'static,
    ) -> Result<SnapshotId, SessionError> {
        self.state.api.types.add(title, &self.state.api.session, save)
    }

    /// Lets the page offer the types of processes that can make copies of themselves
    /// ([`ForkedProcess`](crate::live::ForkedProcess)). `save` gets the process id, and works as in
    /// [`add_types`](Self::add_types).
    pub fn types_of_processes(
        &self,
        save: impl Fn(u32, &Path) -> Result<TypeTables, String> + Send + Sync + 'static,
    ) {
        self.state.api.types.save_by(Arc::new(save));
    }

    /// Returns the time since the latest request for data ended, or since the start. Zero while the server answers a
    /// request for data, or while a process records for the server. A page that reads events counts as an endless
    /// request. Requests without the token, and requests for the page itself, do not count.
    pub fn idle_for(&self) -> Duration {
        let now = self.state.use_();
        let is_used = now.asking > 0 || self.state.api.recordings.is_running();
        if is_used { Duration::ZERO } else { now.last.elapsed() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        self.state.api.session.close();
    }
}

impl ConnectionHandler for ServerState {
    fn serve(&self, place: &ConnectionPlace, stream: &mut TcpStream) {
        let mut asking = None;
        // A client that closes its connection loses only its own answer.
        let _ = match answer(self, place, stream, &mut asking) {
            Ok(Some(response)) => response.write(stream),
            Ok(None) => Ok(()),
            Err(refusal) => refuse(&refusal, stream),
        };
        drop(asking);
    }
}

/// Answers the request of a connection. `None` if the function has already sent the answer. A request for data sets
/// `asking`.
fn answer<'a>(
    state: &'a ServerState,
    place: &ConnectionPlace,
    stream: &mut TcpStream,
    asking: &mut Option<RunningRequest<'a>>,
) -> Result<Option<HttpResponse>, HttpRefusal> {
    let request = HttpRequest::read(stream)?;
    let api = &state.api;
    api.guard.check(&request)?;
    if let Some(asset) = assets::asset(&request.path) {
        return Ok(Some(asset));
    }
    if let Some(ticket) = api.tickets.take(&request.path) {
        place.keep();
        *asking = Some(RunningRequest::new(state));
        let (id, export) = ticket.resource.clone();
        let answer = export.run(id, &api.stacks, &api.downloads, &api.session, stream);
        // Status 429 asks the client to try again later. For this, the ticket must become valid again.
        if answer.as_ref().is_err_and(|refusal| refusal.status == 429) {
            api.tickets.put_back(ticket);
        }
        return answer.map(Some);
    }
    if let Some(code) = request.path.strip_prefix("/code/") {
        // This request comes without the token, so it neither keeps its connection nor counts as use.
        return api.token_for(code).map(Some);
    }
    if !request.path.starts_with("/api/") {
        return Err(HttpRefusal::new(404, "the server has nothing at this address"));
    }
    place.keep();
    *asking = Some(RunningRequest::new(state));
    if (request.method, request.path.as_str()) == (HttpMethod::Get, "/api/events") {
        let since = request.parameter("since").and_then(|seq| seq.parse().ok()).unwrap_or(0);
        let is_over = || state.is_over.load(Ordering::SeqCst);
        // The stream ends when the page closes the connection.
        let _ = stream::events(&api.session, since, stream, is_over);
        return Ok(None);
    }
    api.answer(&request, stream).map(Some)
}
