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

/// How long a client may take to end a connection that has its answer.
const TIME_TO_CLOSE: Duration = Duration::from_millis(500);
/// The time that a client has to take a part of a response.
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
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the server listens. Default: at 127.0.0.1.
    #[must_use]
    pub fn listen(self, listen: Listen) -> Self {
        Self { listen, ..self }
    }

    /// Whether processes are measured without private names, whatever a page asks for. Default: no.
    #[must_use]
    pub fn anonymize(self, anonymize: bool) -> Self {
        Self { anonymize, ..self }
    }

    /// The reports and the stacks that pages made and that the server keeps. Default: 50 reports and 20 stacks.
    #[must_use]
    pub fn keep(self, most: NonZeroUsize) -> Self {
        Self { keep: Some(most), ..self }
    }

    /// The port. Default: 0, one that is free; with a Unix socket the port that ssh forwards, 8123 by default.
    #[must_use]
    pub fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// Whether the page only measures and compares: it changes nothing in processes, imports nothing and removes nothing.
    /// Default: no.
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Self {
        Self { read_only, ..self }
    }

    /// The longest snapshot that a page may send, in bytes. Default: 4 GiB.
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

/// How pages use the server.
#[derive(Debug)]
struct ServerUse {
    /// Requests to `/api` that are being answered, among them the streams of events.
    asking: usize,
    /// When the last of them ended.
    last: Instant,
}

impl ServerState {
    fn use_(&self) -> MutexGuard<'_, ServerUse> {
        self.use_.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered, until it is dropped, also by a panic.
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

/// A server that runs on threads of its own until it is dropped.
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
    /// If the port or the path is in use, a host name is not valid, or the system gives no random bytes or no thread.
    pub fn start(session: Session, options: &ServeOptions) -> io::Result<Self> {
        let listener = Arc::new(options.listen.open(options.port)?);
        let address = listener.address(options.port)?;
        let is_remote = options.listen.is_remote();
        let guard = RequestGuard {
            names: options.listen.names(address),
            token: AccessToken::new()?,
            // Who reads from another machine only looks, and learns no private names.
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

    /// The address that it listens on; with a Unix socket, that from which ssh forwards.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the page, with the token. Whoever knows it may ask anything.
    pub fn url(&self) -> String {
        let RequestGuard { names, token, .. } = &self.state.api.guard;
        format!("http://{}:{}/#token={}", names.first(), self.address.port(), token.as_str())
    }

    /// Adds reports that the page shows.
    pub fn add_report(&self, title: impl Into<String>, set: ReportSet) {
        self.state.api.reports.give(title.into(), set, Vec::new());
    }

    /// Adds a measurement of processes. The page can follow it.
    pub fn add_measurement(&self, title: impl Into<String>, set: ReportSet, pids: &[u32]) {
        self.state.api.reports.give(title.into(), set, pids.to_vec());
    }

    /// Adds a dump or a recording that the page shows.
    pub fn add_stacks(&self, title: impl Into<String>, opened: OpenedStacks) {
        self.state.api.stacks.add(ServedStacks::new(&title.into(), opened, true));
    }

    /// From now on `open` opens the dumps and recordings that pages send or ask processes for. Without it the server opens
    /// dumps only.
    pub fn open_stacks_by(
        &self,
        open: impl Fn(&Path) -> Result<OpenedStacks, String> + Send + Sync + 'static,
    ) {
        self.state.api.opening.by(Arc::new(open));
    }

    /// Groups and labels that the page offers beside its own; those of the first call stay.
    pub fn offer(&self, displays: Displays) {
        let _ = self.state.api.displays.set(displays);
    }

    /// Adds a typed heap: `save` saves it as a heap snapshot at a path, on another thread, and returns its tables, which the
    /// page shows beside the snapshot's views. The page shows its error to the reader.
    ///
    /// # Errors
    ///
    /// If the session has as many snapshots as it may have.
    pub fn add_types(
        &self,
        title: &str,
        save: impl FnOnce(&Path) -> Result<TypeTables, String> + Send + 'static,
    ) -> Result<SnapshotId, SessionError> {
        self.state.api.types.add(title, &self.state.api.session, save)
    }

    /// From now on the page offers the types of processes that make copies of themselves
    /// ([`ForkedProcess`](crate::live::ForkedProcess)). `save` does for the process of a number as in
    /// [`add_types`](Self::add_types).
    pub fn types_of_processes(
        &self,
        save: impl Fn(u32, &Path) -> Result<TypeTables, String> + Send + Sync + 'static,
    ) {
        self.state.api.types.save_by(Arc::new(save));
    }

    /// The time since the end of the latest request for data, or since the start; zero while the server answers one, or a
    /// process records for it. A page
    /// that reads events asks all the time. Requests without the token do not count, nor do those for the page itself.
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
        // The thread waits for a connection.
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
        // A connection that ended before it was accepted does not end the server.
        let Ok(stream) = stream else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let _ = stream.set_write_timeout(Some(TIME_TO_TAKE));
        let _ = stream.set_nodelay(true);
        let Some((place, mut stream)) = connections.place(stream) else { continue };
        let there = Arc::clone(state);
        let work = move || serve(&there, &place, &mut stream);
        // A connection without a thread is closed.
        let _ = thread::Builder::new().name("connection".to_owned()).spawn(work);
    }
}

fn serve(state: &ServerState, place: &ConnectionPlace, stream: &mut TcpStream) {
    let mut asking = None;
    // A client that goes away loses its own answer only.
    let _ = match answer(state, place, stream, &mut asking) {
        Ok(Some(response)) => response.write(stream),
        Ok(None) => Ok(()),
        Err(refusal) => refuse(&refusal, stream),
    };
    drop(asking);
    // Closing with unread bytes would take the answer away from the client.
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

/// The answer to the request of a connection; `None` if the function has sent it. A request for data is `asking`.
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
        // The client is asked to try again, and has no other address for that.
        if answer.as_ref().is_err_and(|refusal| refusal.status == 429) {
            api.tickets.put_back(ticket);
        }
        return answer.map(Some);
    }
    if !request.path.starts_with("/api/") {
        return Err(HttpRefusal::new(404, "there is no such address"));
    }
    place.keep();
    *asking = Some(RunningRequest::new(state));
    if (request.method, request.path.as_str()) == (HttpMethod::Get, "/api/events") {
        let since = request.parameter("since").and_then(|seq| seq.parse().ok()).unwrap_or(0);
        let is_over = || state.is_over.load(Ordering::SeqCst);
        // The stream ends when the page goes.
        let _ = stream::events(&api.session, since, stream, is_over);
        return Ok(None);
    }
    api.answer(&request, stream).map(Some)
}
