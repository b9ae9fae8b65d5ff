//! Processes that record their call stacks since a page asked for it.
//!
//! A recording stays here until it is open, also when its process has ended or its file cannot be opened at first. One
//! that can never be opened can be saved and discarded. The lock is free while a process answers or a file is read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memory_reporter::live::HelloAnswer;
use serde_json::json;
use tempfile::TempDir;

use super::opening::StackOpening;
use super::response::{HttpRefusal, HttpResponse};
use super::stacks::{AllStacks, ServedStacks};
use crate::live::{self, TrackingSession};
use crate::session::Session;

/// The name of a recording in its folder.
const FILE: &str = "recording.dmdrec";
/// The most recordings at the same time.
const MOST: usize = 8;

#[derive(Debug)]
struct ActiveRecording {
    /// The process; `None` if it did not say who it is.
    hello: Option<HelloAnswer>,
    /// `None` once the process was asked to end the recording.
    tracking: Option<TrackingSession>,
    /// Why the end of the recording may be missing.
    failure: Option<String>,
    /// Why it could not be opened.
    refusal: Option<String>,
    path: PathBuf,
    folder: Arc<TempDir>,
}

impl ActiveRecording {
    /// Whether it is of this process, and not of an earlier one with the same number.
    fn is_of(&self, hello: Option<&HelloAnswer>) -> bool {
        let (Some(own), Some(other)) = (&self.hello, hello) else { return true };
        own.started == other.started
    }
}

#[derive(Debug)]
enum RecordingSlot {
    Starting,
    Stopping,
    Held(Box<ActiveRecording>),
}

/// The recordings, by process.
#[derive(Debug, Default)]
pub(super) struct ProcessRecordings(Mutex<BTreeMap<u32, RecordingSlot>>);

/// The slot of a process while its recording starts or stops. When this is dropped, also by a panic, the slot has the
/// recording, or is free.
struct SlotTurn<'a> {
    of: &'a ProcessRecordings,
    pid: u32,
    recording: Option<Box<ActiveRecording>>,
}

impl Drop for SlotTurn<'_> {
    fn drop(&mut self) {
        let mut all = self.of.all();
        match self.recording.take() {
            Some(recording) => drop(all.insert(self.pid, RecordingSlot::Held(recording))),
            None => drop(all.remove(&self.pid)),
        }
    }
}

/// The recording of a turn, if its process no longer writes it.
fn ended<'a>(turn: &'a SlotTurn<'_>) -> Result<&'a ActiveRecording, HttpRefusal> {
    let recording = turn.recording.as_deref().filter(|recording| recording.tracking.is_none());
    recording
        .ok_or_else(|| HttpRefusal::new(409, format!("process {} records still; stop it first", turn.pid)))
}

impl ProcessRecordings {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, RecordingSlot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a recording of a process.
    pub(super) fn has(&self, pid: u32, hello: Option<&HelloAnswer>) -> bool {
        match self.all().get(&pid) {
            None | Some(RecordingSlot::Starting) => false,
            Some(RecordingSlot::Stopping) => true,
            Some(RecordingSlot::Held(recording)) => recording.is_of(hello),
        }
    }

    /// Whether a process records now: a server ends its recordings when it ends.
    pub(super) fn is_running(&self) -> bool {
        self.all().values().any(|slot| !matches!(slot, RecordingSlot::Held(held) if held.tracking.is_none()))
    }

    /// The number and the name of the processes that have recordings and are not among `listeners`.
    pub(super) fn ended(&self, listeners: &[live::ListeningProcess]) -> Vec<(u32, Option<String>)> {
        let all = self.all();
        let held = all.iter().filter_map(|(pid, slot)| match slot {
            RecordingSlot::Held(recording) => Some((*pid, recording)),
            RecordingSlot::Starting | RecordingSlot::Stopping => None,
        });
        let is_there = |pid: u32, recording: &ActiveRecording| {
            let mut of = listeners.iter().filter(|listener| listener.pid == pid);
            of.any(|listener| recording.is_of(listener.hello.as_ref().ok()))
        };
        let ended = held.filter(|(pid, recording)| !is_there(*pid, recording));
        ended
            .map(|(pid, recording)| (pid, recording.hello.as_ref().map(|hello| hello.name.clone())))
            .collect()
    }

    /// Lets a process record each allocation from now on.
    pub(super) fn start(
        &self,
        pid: u32,
        hello: Option<HelloAnswer>,
        session: &Session,
        timeout: Duration,
    ) -> Result<HttpResponse, HttpRefusal> {
        let mut turn = self.begin(pid, hello.as_ref())?;
        let folder = session.folder().map_err(|error| HttpRefusal::new(503, error.to_string()))?;
        let path = folder.path().join(FILE);
        let tracking =
            live::record(pid, &path, timeout).map_err(|error| HttpRefusal::new(409, error.to_string()))?;
        let folder = Arc::new(folder);
        let recording =
            ActiveRecording { hello, tracking: Some(tracking), failure: None, refusal: None, path, folder };
        turn.recording = Some(Box::new(recording));
        Ok(HttpResponse::json(&json!({})))
    }

    fn begin(&self, pid: u32, hello: Option<&HelloAnswer>) -> Result<SlotTurn<'_>, HttpRefusal> {
        let mut all = self.all();
        match all.get(&pid) {
            None if all.len() >= MOST => {
                let reason = format!("there are {MOST} recordings already; stop one");
                return Err(HttpRefusal::new(429, reason));
            }
            None => {}
            Some(RecordingSlot::Held(recording)) if !recording.is_of(hello) => {
                let reason = format!("an earlier process {pid} has a recording; stop it first");
                return Err(HttpRefusal::new(409, reason));
            }
            Some(_) => return Err(HttpRefusal::new(409, format!("process {pid} records already"))),
        }
        all.insert(pid, RecordingSlot::Starting);
        Ok(SlotTurn { of: self, pid, recording: None })
    }

    /// Ends the recording of a process, and opens it. If it cannot be opened, it stays, and a page can try again.
    pub(super) fn stop(
        &self,
        pid: u32,
        opening: &StackOpening,
        stacks: &AllStacks,
    ) -> Result<HttpResponse, HttpRefusal> {
        let mut turn = self.end(pid)?;
        let recording = turn.recording.as_mut().expect("a turn that stops a recording has it");
        if let Some(tracking) = recording.tracking.take() {
            // The file of a process that has ended has all until then.
            recording.failure = tracking.finish().err().map(|error| error.to_string());
        }
        let title = match &recording.failure {
            None => format!("recording of process {pid}"),
            Some(failure) => format!("recording of process {pid} (its end may be missing: {failure})"),
        };
        let folder = Arc::clone(&recording.folder);
        let opened = ServedStacks::from_file(&title, &recording.path, folder, opening);
        let opened = opened.map_err(|refusal| match &recording.failure {
            None => refusal,
            Some(failure) => HttpRefusal::new(refusal.status, format!("{}; {failure}", refusal.message)),
        });
        recording.refusal = opened.as_ref().err().map(|refusal| refusal.message.clone());
        let id = stacks.add(opened?);
        turn.recording = None;
        Ok(HttpResponse::json(&json!({ "stacks": id, "title": title })))
    }

    /// Why the recording of a process could not be opened.
    pub(super) fn refusal(&self, pid: u32, hello: Option<&HelloAnswer>) -> Option<String> {
        match self.all().get(&pid)? {
            RecordingSlot::Held(recording) if recording.is_of(hello) => recording.refusal.clone(),
            _ => None,
        }
    }

    /// The file of a recording that has ended.
    pub(super) fn file(&self, pid: u32) -> Result<HttpResponse, HttpRefusal> {
        let turn = self.end(pid)?;
        let recording = ended(&turn)?;
        let file = std::fs::File::open(&recording.path);
        let mut file =
            file.map_err(|error| HttpRefusal::new(409, format!("the recording of process {pid}: {error}")))?;
        Ok(HttpResponse::download(format!("recording-{pid}.dmdrec"), move |out| {
            std::io::copy(&mut file, out).map(drop)
        }))
    }

    /// Removes a recording that has ended, with its file.
    pub(super) fn discard(&self, pid: u32) -> Result<HttpResponse, HttpRefusal> {
        let mut turn = self.end(pid)?;
        ended(&turn)?;
        turn.recording = None;
        Ok(HttpResponse::json(&json!({})))
    }

    fn end(&self, pid: u32) -> Result<SlotTurn<'_>, HttpRefusal> {
        let mut all = self.all();
        match all.remove(&pid) {
            None => Err(HttpRefusal::new(409, format!("process {pid} does not record"))),
            Some(RecordingSlot::Held(recording)) => {
                all.insert(pid, RecordingSlot::Stopping);
                Ok(SlotTurn { of: self, pid, recording: Some(recording) })
            }
            Some(busy) => {
                all.insert(pid, busy);
                let reason = format!("the recording of process {pid} is starting or stopping; try again");
                Err(HttpRefusal::new(409, reason))
            }
        }
    }
}
