//! The endpoint: controls the turns of requests, and makes the answers.

use core::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::answer::{self, WriteSnapshot};
use crate::get_request::GetRequest;
use crate::host;
use crate::options::EndpointOptions;
use crate::request::{self, EndpointRequest};
use crate::response::{EndpointResponse, RefusedRequest, ResponseBody};
use crate::turn::{self, DIFFERENCE, NoResult, WORK, WorkPermit};

/// The time that a refused client is asked to wait.
const SOON: Duration = Duration::from_secs(1);
/// The interval at which a difference checks whether its client still waits.
const LOOK: Duration = Duration::from_millis(50);

/// Answers requests about the memory of the program. See the [crate](crate) for paths, limits and security.
pub struct Endpoint {
    options: EndpointOptions,
    snapshot: Option<Arc<WriteSnapshot>>,
}

impl Endpoint {
    /// Makes an endpoint with the default options, without snapshots.
    pub fn new() -> Self {
        Self::with_options(EndpointOptions::default())
    }

    /// Makes an endpoint without snapshots.
    pub fn with_options(options: EndpointOptions) -> Self {
        Self { options, snapshot: None }
    }

    /// Sets the function that writes the answer of `/memory/snapshot`, such as `heap_graph::HeapGraph::stream`.
    ///
    /// ```
    /// use heap_graph::HeapGraph;
    /// use heap_graph::live::LiveGraphOptions;
    /// use heap_graph::snapshot::SnapshotWriteOptions;
    /// use memory_endpoint::Endpoint;
    ///
    /// static NAMES: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    ///
    /// let endpoint = Endpoint::new().snapshot(|file| {
    ///     let roots = |roots: &mut heap_graph::live::Roots<'_>| roots.add("names", &NAMES);
    ///     HeapGraph::stream(file, LiveGraphOptions::new(), &SnapshotWriteOptions::new(), roots).map(drop)
    /// });
    /// assert_eq!(endpoint.respond("/memory/snapshot", "", "*/*").status, 200);
    /// ```
    #[must_use]
    pub fn snapshot(
        mut self,
        write: impl Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.snapshot = Some(Arc::new(write));
        self
    }

    /// Answers a `GET` of a server that has already checked the header `Host`; see [`answer`](Self::answer). `accept`
    /// is the header `Accept`, or an empty text.
    pub fn respond(&self, path: &str, query: &str, accept: &str) -> EndpointResponse {
        self.answer(&GetRequest::new(path, query).accept(accept))
    }

    /// Answers a `GET`.
    ///
    /// The call blocks until the answer is complete, so an asynchronous server must call it on a thread that may block.
    /// It does not panic.
    ///
    /// ```
    /// use memory_endpoint::{Endpoint, GetRequest};
    ///
    /// let endpoint = Endpoint::new();
    /// // A page has rebound its own name to 127.0.0.1.
    /// let foreign = GetRequest::new("/metrics", "").host("evil.example");
    /// assert_eq!(endpoint.answer(&foreign).status, 403);
    /// ```
    pub fn answer(&self, request: &GetRequest<'_>) -> EndpointResponse {
        let answered = self.check(request).and_then(|()| {
            let GetRequest { path, query, accept, .. } = *request;
            match EndpointRequest::parse(path, query, accept, &self.options)? {
                EndpointRequest::Profile(Some(seconds)) => {
                    self.difference(Duration::from_secs(seconds), request)
                }
                at_once => self.at_once(at_once),
            }
        });
        match answered {
            Ok(body) => EndpointResponse::with_body(body),
            Err(refusal) => EndpointResponse::refused(refusal, request::is_pprof(request.path)),
        }
    }

    fn check(&self, request: &GetRequest<'_>) -> Result<(), RefusedRequest> {
        match request.host {
            Some(host) if !self.options.any_host && !host::is_known(host, &self.options.host_names) => {
                let message = "the header Host must contain an address, localhost or a name that the program \
                               allows (EndpointOptions::host_name, any_host)";
                Err(RefusedRequest::new(403, message))
            }
            _ => Ok(()),
        }
    }

    fn at_once(&self, request: EndpointRequest) -> Result<ResponseBody, RefusedRequest> {
        let end = turn::end_of(self.options.deadline);
        let options = self.options.clone();
        let snapshot = self.snapshot.clone();
        if request == EndpointRequest::Snapshot && snapshot.is_none() {
            return Err(RefusedRequest::new(
                404,
                "this program does not write heap snapshots: it does not call Endpoint::snapshot",
            ));
        }
        self.work(end, WORK.take(end), move || match (request, snapshot) {
            (EndpointRequest::Metrics(form), _) => answer::metrics(form, &options),
            (EndpointRequest::Report { is_compressed }, _) => answer::report(is_compressed, &options),
            (EndpointRequest::Snapshot, Some(snapshot)) => answer::snapshot(&*snapshot, &options),
            (EndpointRequest::Last, _) => answer::last(&options),
            (EndpointRequest::Snapshot, None) | (EndpointRequest::Profile(_), _) => {
                answer::profile(None, answer::dump(&options)?, &options)
            }
        })
    }

    /// Takes two dumps, and makes a profile only after the second dump, so that no profile's memory counts as growth.
    /// Other requests are answered between the dumps.
    fn difference(&self, wait: Duration, request: &GetRequest<'_>) -> Result<ResponseBody, RefusedRequest> {
        let _difference = DIFFERENCE.take(turn::end_of(wait)).map_err(|end| {
            let message = "another request waits for its second profile";
            RefusedRequest::new(429, message).retry_after(end.saturating_duration_since(Instant::now()))
        })?;
        let start = Instant::now();
        let end = turn::end_of(self.options.deadline);
        let options = self.options.clone();
        let first = self.work(end, WORK.take(end), move || answer::dump(&options))?;
        let used = start.elapsed();
        let second_at = turn::end_of(wait);
        loop {
            let left = second_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            if !request.is_wanted() {
                return Err(RefusedRequest::new(503, "the client closed the connection"));
            }
            thread::sleep(left.min(LOOK));
        }
        let end = turn::end_of(self.options.deadline.saturating_sub(used));
        let options = self.options.clone();
        self.work(end, WORK.take_before(end, end), move || {
            answer::profile(Some(first), answer::dump(&options)?, &options)
        })
    }

    fn work<T: Send + 'static>(
        &self,
        end: Instant,
        turn: Result<WorkPermit, Instant>,
        work: impl FnOnce() -> Result<T, RefusedRequest> + Send + 'static,
    ) -> Result<T, RefusedRequest> {
        let Ok(turn) = turn else {
            let message = "another request is running; the endpoint answers one at a time";
            return Err(RefusedRequest::new(429, message).retry_after(SOON));
        };
        turn::run_before(end, turn, work).unwrap_or_else(|error| {
            Err(match error {
                NoResult::Late => {
                    let deadline = self.options.deadline;
                    let message =
                        format!("no answer within {deadline:?}, the limit of the endpoint (deadline)");
                    RefusedRequest::new(503, message).retry_after(SOON)
                }
                NoResult::Panicked => {
                    RefusedRequest::new(500, "a part of the program panicked while it answered")
                }
                NoResult::NoThread(error) => {
                    RefusedRequest::new(503, format!("no thread can be started: {error}"))
                }
            })
        })
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("options", &self.options)
            .field("has_snapshot", &self.snapshot.is_some())
            .finish()
    }
}
