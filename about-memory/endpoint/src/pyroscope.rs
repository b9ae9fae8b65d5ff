//! Pushes profiles to a server of Pyroscope, for programs that no collector can reach.
//!
//! The push service takes `POST /push.v1.PusherService/Push` with JSON (grafana/pyroscope `api/push/v1/push.proto`).
//! The program sends it with its own HTTP client, which handles TLS, proxies and passwords. So this module needs no
//! HTTP client.
//!
//! ```no_run
//! use std::io;
//! use std::sync::Arc;
//!
//! use memory_endpoint::Endpoint;
//! use memory_endpoint::pyroscope::{PyroscopePush, PushRequest};
//!
//! fn send(request: &PushRequest<'_>) -> io::Result<u16> {
//!     # let post = |_url: &str, _headers: &[(&str, &str)], _body: &[u8]| Ok(200);
//!     post(request.url, &request.headers, request.body) // of any HTTP client; returns the status
//! }
//!
//! let endpoint = Arc::new(Endpoint::new());
//! let pushing = PyroscopePush::new("http://pyroscope:4040", "my-service").label("region", "eu").start(endpoint, send)?;
//! // It pushes until `pushing` is dropped.
//! # drop(pushing);
//! # Ok::<(), io::Error>(())
//! ```
//!
//! A profile has addresses and build ids, because the program looks up no symbols. Pyroscope shows functions if it can
//! look them up: it needs its symbolizer, and a server of debuginfod that has the program's debug information.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memory_report::json::push_string;
use thiserror::Error;

use crate::Endpoint;

/// The path of the push service below the address of the server.
const SERVICE: &str = "push.v1.PusherService/Push";

/// The target of pushes: the server, the labels, the tenant, and the interval.
#[derive(Clone, Debug)]
pub struct PyroscopePush {
    url: String,
    labels: Vec<(String, String)>,
    tenant: Option<String>,
    interval: Duration,
}

/// A `POST` to send.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PushRequest<'a> {
    /// The address.
    pub url: &'a str,
    /// The headers.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The body: JSON.
    pub body: &'a [u8],
}

/// The reason why a push failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PushError {
    /// The endpoint returned no profile: the status of its answer, and its message.
    #[error("no profile ({0}): {1}")]
    NoProfile(u16, String),
    /// The client could not send the request.
    #[error("the profile cannot be sent: {0}")]
    Send(#[source] io::Error),
    /// The server answered with this status, which is not between 200 and 299.
    #[error("the server refused the profile with the status {0}")]
    Refused(u16),
}

impl PyroscopePush {
    /// Makes a target: the server at this address (`http://pyroscope:4040`), and the name of the service. The interval
    /// between two pushes is one minute.
    pub fn new(server: &str, service_name: impl Into<String>) -> Self {
        Self {
            url: format!("{}/{SERVICE}", server.trim_end_matches('/')),
            labels: vec![
                ("__name__".to_owned(), "memory".to_owned()),
                ("service_name".to_owned(), service_name.into()),
            ],
            tenant: None,
            interval: Duration::from_secs(60),
        }
    }

    /// Adds a label to all profiles. It replaces an earlier label with the same name.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        self.labels.retain(|(known, _)| *known != name);
        self.labels.push((name, value.into()));
        self
    }

    /// Sets the tenant: the header `X-Scope-OrgID`.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Sets the interval between two pushes. Each push costs a profile: see the [crate](crate#what-it-costs).
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Pushes one profile now. `send` sends the request, and returns the status of the answer.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no profile (as for `/debug/pprof/heap`), if `send` fails, or if the status is not
    /// between 200 and 299.
    pub fn once(
        &self,
        endpoint: &Endpoint,
        send: impl FnOnce(&PushRequest<'_>) -> io::Result<u16>,
    ) -> Result<(), PushError> {
        let profile = endpoint.respond("/debug/pprof/heap", "", "");
        if profile.status != 200 {
            let line = String::from_utf8_lossy(&profile.body).trim_end().to_owned();
            return Err(PushError::NoProfile(profile.status, line));
        }
        let body = self.body(&profile.body);
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(self.tenant.as_deref().map(|tenant| ("x-scope-orgid", tenant)));
        let status = send(&PushRequest { url: &self.url, headers, body: body.as_bytes() });
        match status.map_err(PushError::Send)? {
            200..300 => Ok(()),
            status => Err(PushError::Refused(status)),
        }
    }

    /// Starts to push, on a thread of its own. The first push is after one interval. A failed push is counted, and not
    /// repeated.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot start a thread.
    pub fn start(
        self,
        endpoint: Arc<Endpoint>,
        mut send: impl FnMut(&PushRequest<'_>) -> io::Result<u16> + Send + 'static,
    ) -> io::Result<PushThread> {
        let shared = Arc::new(PushState::default());
        let threads = Arc::clone(&shared);
        let push = move || {
            while threads.wait(self.interval) {
                let pushed = self.once(&endpoint, &mut send);
                threads.note(pushed);
            }
        };
        let thread = thread::Builder::new().name("memory-pyroscope".to_owned()).spawn(push)?;
        Ok(PushThread { shared, thread: Some(thread) })
    }

    /// The message `PushRequest` as JSON: series of labels and samples.
    fn body(&self, profile: &[u8]) -> String {
        let mut json = "{\"series\":[{\"labels\":[".to_owned();
        for (index, (name, value)) in self.labels.iter().enumerate() {
            json.push_str(if index == 0 { "{\"name\":" } else { ",{\"name\":" });
            push_string(&mut json, name);
            json.push_str(",\"value\":");
            push_string(&mut json, value);
            json.push('}');
        }
        json.push_str("],\"samples\":[{\"ID\":\"");
        json.push_str(&random_id());
        json.push_str("\",\"rawProfile\":\"");
        STANDARD.encode_string(profile, &mut json);
        json.push_str("\"}]}]}");
        json
    }
}

/// A UUID of version 4. It only needs to differ from the ids of other profiles.
fn random_id() -> String {
    let [high, low] = [0, 1].map(|part| RandomState::new().hash_one(part));
    let high = high & !0xf000 | 0x4000;
    let low = low & !(0b11 << 62) | 0b10 << 62;
    let [a, b, c, d, e] = [high >> 32, high >> 16 & 0xffff, high & 0xffff, low >> 48, low & 0xffff_ffff_ffff];
    format!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
}

/// The handle of a thread that pushes until the handle is dropped. The drop waits for a running push.
#[derive(Debug)]
pub struct PushThread {
    shared: Arc<PushState>,
    /// `None` after the thread has ended.
    thread: Option<JoinHandle<()>>,
}

impl PushThread {
    /// The number of pushes that the server accepted.
    pub fn pushed(&self) -> u64 {
        self.shared.lock().pushed
    }

    /// The number of pushes that failed, and the last error.
    pub fn failed(&self) -> (u64, Option<String>) {
        let state = self.shared.lock();
        (state.failed, state.last_error.clone())
    }
}

impl Drop for PushThread {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic of the program's HTTP client.
            let _ = thread.join();
        }
    }
}

#[derive(Debug, Default)]
struct PushState {
    state: Mutex<PushCounts>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PushCounts {
    is_over: bool,
    pushed: u64,
    failed: u64,
    last_error: Option<String>,
}

impl PushState {
    /// Waits for the interval. Returns `false` if the thread should end.
    fn wait(&self, interval: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), interval, |state| !state.is_over);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.is_over
    }

    fn note(&self, pushed: Result<(), PushError>) {
        let mut state = self.lock();
        match pushed {
            Ok(()) => state.pushed += 1,
            Err(error) => {
                state.failed += 1;
                state.last_error = Some(error.to_string());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, PushCounts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
