//! Processes that record their call stacks since a page asked for it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::opening::Opening;
use super::response::{Refusal, Response};
use super::stacks::{AllStacks, Stacks};
use crate::live::{self, Tracking};
use crate::session::Session;

/// The name of a recording in its folder.
const FILE: &str = "recording.dmdrec";
/// The most processes that record at the same time.
const MOST: usize = 8;

#[derive(Debug)]
struct Recording {
    tracking: Tracking,
    path: PathBuf,
    folder: TempDir,
}

/// The recordings that run, by process.
#[derive(Debug, Default)]
pub(super) struct Recordings(Mutex<BTreeMap<u32, Recording>>);

impl Recordings {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, Recording>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has(&self, pid: u32) -> bool {
        self.all().contains_key(&pid)
    }

    /// Lets a process record each allocation from now on.
    pub(super) fn start(&self, pid: u32, session: &Session, timeout: Duration) -> Result<Response, Refusal> {
        let mut all = self.all();
        if all.contains_key(&pid) {
            return Err(Refusal::new(409, format!("process {pid} records already")));
        }
        if all.len() >= MOST {
            return Err(Refusal::new(429, format!("{MOST} processes record already; stop one")));
        }
        let folder = session.folder().map_err(|error| Refusal::new(503, error.to_string()))?;
        let path = folder.path().join(FILE);
        let tracking =
            live::record(pid, &path, timeout).map_err(|error| Refusal::new(409, error.to_string()))?;
        all.insert(pid, Recording { tracking, path, folder });
        Ok(Response::json(&json!({})))
    }

    /// Ends the recording of a process, and opens it.
    pub(super) fn stop(&self, pid: u32, opening: &Opening, stacks: &AllStacks) -> Result<Response, Refusal> {
        let recording = self.all().remove(&pid);
        let Some(Recording { tracking, path, folder }) = recording else {
            return Err(Refusal::new(409, format!("process {pid} does not record")));
        };
        // The file of a process that has ended has all until then.
        let _ = tracking.finish();
        let title = format!("recording of process {pid}");
        let id = stacks.add(Stacks::of_file(&title, &path, folder, opening)?);
        Ok(Response::json(&json!({ "stacks": id, "title": title })))
    }
}
