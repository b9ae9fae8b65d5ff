//! The server: its thread, its connections and its end.

use std::io::{self, Read as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use memory_report::ReportSet;

use super::api::PageApi;
use super::assets;
use super::connections::{ConnectionPlace, ConnectionPlaces};
use super::displays::Displays;
use super::downloads::PendingDownloads;
use super::guard::RequestGuard;
use super::listening::{Listen, ServerSocket};
use super::opening::{OpenedStacks, StackOpening};
use super::processes::SnapshotProcesses;
use super::recordings::ProcessRecordings;
use super::reports::ServedReports;
use super::request::{HttpMethod, HttpRequest};
use super::response::{HttpRefusal, HttpResponse, refuse};
use super::stacks::{AllStacks, ServedStacks};
use super::stream;
use super::tickets::DownloadTickets;
use super::token::AccessToken;
use super::types::{AllTypes, TypeTables};
use crate::session::{Session, SessionError, SnapshotId};

/// The time that a client has to close a connection after its answer.
const TIME_TO_CLOSE: Duration = Duration::from_millis(500);
/// The time that a client has to accept a part of a response.
const TIME_TO_TAKE: Duration = Duration::from_secs(30);

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
    listener: Arc<ServerSocket>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// Returns an error if the port or the path is in use, a host name is not valid, or the system provides no random
    /// bytes or no thread.
    pub fn start(session: Session, options: &ServeOptions) -> io::Result<Self> {
        let listener = Arc::new(options.listen.open(options.port)?);
        let address = listener.address(options.port)?;
        let is_remote = options.listen.is_remote();
        let guard = RequestGuard {
            names: options.listen.names(address),
            token: AccessToken::new()?,
            // Readers on other machines may only look, and see no private names.
            read_only: options.read_only || is_remote,
        };
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
            max_upload: options.max_upload,
        };
        let state = Arc::new(ServerState {
            api,
            is_over: AtomicBool::new(false),
            use_: Mutex::new(ServerUse { asking: 0, last: Instant::now() }),
        });
        let (there, on) = (Arc::clone(&state), Arc::clone(&listener));
        let connections = ConnectionPlaces::new()?;
        let accept = move || accept(&on, &there, &connections);
        let thread = thread::Builder::new().name("serve".to_owned()).spawn(accept)?;
        Ok(Self { state, listener, address, thread: Some(thread) })
    }

    /// Returns the address that the server listens on or, with a Unix socket, the address from which ssh forwards.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the page, with the token. The token permits all requests, so the address must be kept
    /// secret.
    pub fn url(&self) -> String {
        let RequestGuard { names, token, .. } = &self.state.api.guard;
        format!("http://{}:{}/#token={}", names.first(), self.address.port(), token.as_str())
    }

    /// Adds reports that the page shows.
    pub fn add_report(&self, title: impl Into<String>, set: ReportSet) {
        self.state.api.reports.give(title.into(), set, Vec::new());
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
        // The server's thread waits for a connection, so it is woken up.
        self.listener.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &ServerSocket, state: &Arc<ServerState>, connections: &ConnectionPlaces) {
    loop {
        let stream = listener.accept();
        if state.is_over.load(Ordering::SeqCst) {
            return;
        }
        // A connection that ended before it was accepted must not end the server.
        let Ok(stream) = stream else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let _ = stream.set_write_timeout(Some(TIME_TO_TAKE));
        let _ = stream.set_nodelay(true);
        let Some((place, mut stream)) = connections.place(stream) else { continue };
        let there = Arc::clone(state);
        let work = move || serve(&there, &place, &mut stream);
        // If no thread can be started, the connection is closed.
        let _ = thread::Builder::new().name("connection".to_owned()).spawn(work);
    }
}

fn serve(state: &ServerState, place: &ConnectionPlace, stream: &mut TcpStream) {
    let mut asking = None;
    // A client that closes its connection loses only its own answer.
    let _ = match answer(state, place, stream, &mut asking) {
        Ok(Some(response)) => response.write(stream),
        Ok(None) => Ok(()),
        Err(refusal) => refuse(&refusal, stream),
    };
    drop(asking);
    // Closing a connection with unread bytes would discard the answer before the client reads it.
    let _ = stream.shutdown(Shutdown::Write);
    let end = Instant::now() + TIME_TO_CLOSE;
    let mut rest = [0; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return;
        }
        if !matches!(stream.read(&mut rest), Ok(1..)) {
            return;
        }
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
