//! The requests and answers on the socket.

use serde::{Deserialize, Serialize};

/// The version of the protocol, in every request and answer but a report.
pub const VERSION: u32 = 1;

/// The longest request, in bytes, its newline included.
pub const MAX_REQUEST: usize = 4096;

/// The answer to `hello`: the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Hello {
    /// The version of the protocol that is spoken.
    pub version: u32,
    /// The process's number, as it sees itself.
    pub pid: u32,
    /// The name of the process; see [`ListenOptions::name`](super::ListenOptions::name).
    pub name: String,
    /// The program's file.
    #[serde(default)]
    pub exe: String,
    /// When the process started, in seconds since 1970; 0 if unknown.
    #[serde(default)]
    pub started: u64,
    /// The other requests that the process answers.
    #[serde(default)]
    pub requests: Vec<String>,
}

impl Hello {
    /// Whether the process answers requests for dumps of DMD.
    pub fn has_dmd(&self) -> bool {
        self.requests.iter().any(|request| request == "dmd-dump")
    }
}

/// The answer to `minimize`: the effect of minimizing memory usage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Minimized {
    /// The version of the protocol that is spoken.
    pub version: u32,
    /// Physical memory in use before, in bytes.
    pub resident_before: Option<u64>,
    /// Physical memory in use afterwards, in bytes.
    pub resident: Option<u64>,
}

/// The answer to `amounts`: amounts that cost no collection, in bytes; `None` if the process does not know one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Amounts {
    /// The version of the protocol that is spoken.
    pub version: u32,
    /// See [`heap_allocated`](crate::amounts::heap_allocated).
    pub heap_allocated: Option<u64>,
    /// See [`resident`](crate::amounts::resident).
    pub resident: Option<u64>,
    /// See [`vsize`](crate::amounts::vsize).
    pub vsize: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Request {
    pub(super) version: u32,
    pub(super) request: String,
    #[serde(default)]
    pub(super) anonymize: bool,
    #[serde(default)]
    pub(super) minimize: bool,
    #[serde(default)]
    pub(super) resident_map: bool,
    #[serde(default)]
    pub(super) named: bool,
    pub(super) deadline_ms: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct Refusal<'a> {
    pub(super) version: u32,
    pub(super) error: &'a str,
}
