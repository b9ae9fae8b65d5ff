//! The requests and answers on the socket.

use super::json::{self, JsonFault, JsonObject, JsonValue};

/// The version of the protocol. Every request contains it, and so do errors and the answer types of this module.
pub const VERSION: u32 = 1;

/// The largest size of a request, in bytes, including the newline.
pub const MAX_REQUEST: usize = 4096;

/// The answer to `hello`: describes the process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HelloAnswer {
    /// The version of the protocol that the process uses.
    pub version: u32,
    /// The process number, as the process itself sees it.
    pub pid: u32,
    /// The name of the process; see [`ListenOptions::name`](super::ListenOptions::name).
    pub name: String,
    /// The path of the program's file.
    pub exe: String,
    /// The start time of the process, in seconds since 1970; 0 if unknown.
    pub started: u64,
    /// The names of the requests that the process answers, in addition to `hello`, `report`, `minimize` and `amounts`.
    pub requests: Vec<String>,
}

impl HelloAnswer {
    /// Reads the answer to `hello`, one line of JSON; `None` for any other text.
    pub fn from_json(line: &str) -> Option<Self> {
        let object = JsonObject::read(line).ok()?;
        Some(Self {
            version: object.required("version").ok()?,
            pid: object.required("pid").ok()?,
            name: object.required("name").ok()?,
            exe: object.optional("exe").ok()?.unwrap_or_default(),
            started: object.optional("started").ok()?.unwrap_or_default(),
            requests: object.optional("requests").ok()?.unwrap_or_default(),
        })
    }

    pub(super) fn to_line(&self) -> String {
        json::line(&[
            ("version", JsonValue::Number(self.version.into())),
            ("pid", JsonValue::Number(self.pid.into())),
            ("name", JsonValue::Text(&self.name)),
            ("exe", JsonValue::Text(&self.exe)),
            ("started", JsonValue::Number(self.started)),
            ("requests", JsonValue::Texts(&self.requests)),
        ])
    }

    /// Whether the process answers requests for dumps of DMD.
    pub fn has_dmd(&self) -> bool {
        self.requests.iter().any(|request| request == "dmd-dump")
    }
}

/// The answer to `minimize` and to `collect`: the effect of minimizing memory usage or of collecting garbage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MinimizeAnswer {
    /// The version of the protocol that the process uses.
    pub version: u32,
    /// Physical memory in use before the request, in bytes.
    pub resident_before: Option<u64>,
    /// Physical memory in use after the request, in bytes.
    pub resident: Option<u64>,
}

impl MinimizeAnswer {
    /// Reads the answer to `minimize` or `collect`, one line of JSON; `None` for any other text.
    pub fn from_json(line: &str) -> Option<Self> {
        let object = JsonObject::read(line).ok()?;
        Some(Self {
            version: object.required("version").ok()?,
            resident_before: object.optional("resident_before").ok()?,
            resident: object.optional("resident").ok()?,
        })
    }

    pub(super) fn to_line(&self) -> String {
        json::line(&[
            ("version", JsonValue::Number(self.version.into())),
            ("resident_before", JsonValue::Amount(self.resident_before)),
            ("resident", JsonValue::Amount(self.resident)),
        ])
    }
}

/// The answer to `amounts`: amounts that need no collection, in bytes. `None` if the process does not have the
/// figure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AmountsAnswer {
    /// The version of the protocol that the process uses.
    pub version: u32,
    /// See [`heap_allocated`](crate::amounts::heap_allocated).
    pub heap_allocated: Option<u64>,
    /// See [`resident`](crate::amounts::resident).
    pub resident: Option<u64>,
    /// See [`vsize`](crate::amounts::vsize).
    pub vsize: Option<u64>,
}

impl AmountsAnswer {
    /// Reads the answer to `amounts`, one line of JSON; `None` for any other text.
    pub fn from_json(line: &str) -> Option<Self> {
        let object = JsonObject::read(line).ok()?;
        Some(Self {
            version: object.required("version").ok()?,
            heap_allocated: object.optional("heap_allocated").ok()?,
            resident: object.optional("resident").ok()?,
            vsize: object.optional("vsize").ok()?,
        })
    }

    pub(super) fn to_line(&self) -> String {
        json::line(&[
            ("version", JsonValue::Number(self.version.into())),
            ("heap_allocated", JsonValue::Amount(self.heap_allocated)),
            ("resident", JsonValue::Amount(self.resident)),
            ("vsize", JsonValue::Amount(self.vsize)),
        ])
    }
}

/// The answer to `dmd-copy`: DMD has made a copy of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyAnswer {
    /// The version of the protocol that the process uses.
    pub version: u32,
    /// The process number of the copy; 0 if the reader that DMD's option `--copy-to` names gets the copy.
    pub pid: u32,
}

impl CopyAnswer {
    /// Reads the answer to `dmd-copy`, one line of JSON; `None` for any other text.
    pub fn from_json(line: &str) -> Option<Self> {
        let object = JsonObject::read(line).ok()?;
        Some(Self { version: object.required("version").ok()?, pid: object.required("pid").ok()? })
    }

    pub(super) fn to_line(&self) -> String {
        json::line(&[
            ("version", JsonValue::Number(self.version.into())),
            ("pid", JsonValue::Number(self.pid.into())),
        ])
    }
}

#[derive(Debug)]
pub(super) struct LiveRequest {
    pub(super) version: u32,
    pub(super) request: String,
    pub(super) anonymize: bool,
    pub(super) minimize: bool,
    pub(super) resident_map: bool,
    pub(super) named: bool,
    pub(super) deadline_ms: Option<u64>,
    pub(super) sample_bytes: Option<u64>,
    pub(super) record: Option<String>,
    pub(super) per_million: Option<u64>,
    pub(super) length: Option<u64>,
    pub(super) keep: bool,
}

impl LiveRequest {
    pub(super) fn from_json(line: &str) -> Result<Self, JsonFault> {
        let object = JsonObject::read(line)?;
        let flag = |key| object.optional(key).map(Option::unwrap_or_default);
        Ok(Self {
            version: object.required("version")?,
            request: object.required("request")?,
            anonymize: flag("anonymize")?,
            minimize: flag("minimize")?,
            resident_map: flag("resident_map")?,
            named: flag("named")?,
            deadline_ms: object.optional("deadline_ms")?,
            sample_bytes: object.optional("sample_bytes")?,
            record: object.optional("record")?,
            per_million: object.optional("per_million")?,
            length: object.optional("length")?,
            keep: flag("keep")?,
        })
    }
}

/// The answer to `dmd-track`, and the first line of the answer to `dmd-log`: DMD records.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrackAnswer {
    /// The version of the protocol that the process uses.
    pub version: u32,
    /// The mean distance of the samples in bytes; 0 if DMD records every block.
    pub sample_bytes: u64,
    /// Whether DMD records all events into the file that the peer requested.
    pub recording: bool,
}

impl TrackAnswer {
    /// Reads the answer, one line of JSON; `None` for any other text.
    pub fn from_json(line: &str) -> Option<Self> {
        let object = JsonObject::read(line).ok()?;
        Some(Self {
            version: object.required("version").ok()?,
            sample_bytes: object.required("sample_bytes").ok()?,
            recording: object.optional("recording").ok()?.unwrap_or_default(),
        })
    }

    pub(super) fn to_line(&self) -> String {
        let mut members = vec![
            ("version", JsonValue::Number(self.version.into())),
            ("sample_bytes", JsonValue::Number(self.sample_bytes)),
        ];
        if self.recording {
            members.push(("recording", JsonValue::True));
        }
        json::line(&members)
    }
}

/// A line with an error.
pub(super) fn refusal(error: &str) -> String {
    json::line(&[("version", JsonValue::Number(VERSION.into())), ("error", JsonValue::Text(error))])
}
