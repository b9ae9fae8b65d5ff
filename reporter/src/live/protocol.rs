//! What goes over the socket.

use serde::{Deserialize, Serialize};

/// The version of the protocol, in every request and answer but a report.
pub const VERSION: u32 = 1;

/// The longest request, in bytes, its newline included.
pub const MAX_REQUEST: usize = 4096;

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Hello {
    /// The version of the protocol that is spoken.
    pub version: u32,
    /// The process's number, as it sees itself.
    pub pid: u32,
    /// What the process is called; see [`ListenOptions::name`](super::ListenOptions::name).
    pub name: String,
    /// The program's file.
    #[serde(default)]
    pub exe: String,
    /// When the process started, in seconds since 1970; 0 if unknown.
    #[serde(default)]
    pub started: u64,
    /// Further requests that are answered.
    #[serde(default)]
    pub requests: Vec<String>,
}

impl Hello {
    /// Whether the process can dump what nobody has reported.
    pub fn has_dmd(&self) -> bool {
        self.requests.iter().any(|request| request == "dmd-dump")
    }
}

/// What minimizing memory usage has brought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Minimized {
    /// The version of the protocol that is spoken.
    pub version: u32,
    /// Bytes of physical memory in use before.
    pub resident_before: Option<u64>,
    /// The same afterwards.
    pub resident: Option<u64>,
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
