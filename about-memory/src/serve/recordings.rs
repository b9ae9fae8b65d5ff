//! Recordings of processes, which pages start and stop.
//!
//! A recording stays here until it is opened, even if its process has ended or its file cannot be opened at first. A
//! recording that can never be opened can be saved and discarded. The lock is not held while a process answers or a
//! file is read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use memory_reporter::live::HelloAnswer;
use serde_json::json;
use tempfile::TempDir;

use super::opening::StackOpening;
use super::stacks::{AllStacks, ServedStacks};
use crate::http::{HttpRefusal, HttpResponse};
use crate::live::{self, TrackingSession};
use crate::session::Session;

/// The name of a recording in its folder.
const FILE: &str = "recording.dmdrec";
/// The maximum number of recordings: the running ones, and the ended ones that are not opened yet.
const MOST: usize = 8;

#[derive(Debug)]
struct ActiveRecording {
    /// The answer of the process to `hello`; `None` if the process did not answer.
    hello: Option<HelloAnswer>,
    /// The running session. `None` after the process was asked to end the recording.
    tracking: Option<TrackingSession>,
    /// The reason why the end of the recording may be missing.
    failure: Option<String>,
    /// The reason why the recording could not be opened.
    refusal: Option<String>,
    path: PathBuf,
    folder: Arc<TempDir>,
}

impl ActiveRecording {
    /// Whether the recording belongs to this process, and not to an earlier process with the same id. True if one of
    /// the two did not answer `hello`.
    fn is_of(&self, hello: Option<&HelloAnswer>) -> bool {
        let (Some(own), Some(other)) = (&self.hello, hello) else { return true };
        own.started == other.started
    }

    /// Ends the recording, unless it has ended.
    fn finish(&mut self) {
        if let Some(tracking) = self.tracking.take() {
            // If the process has ended, `finish` fails, but the file is still readable. Only if the process was killed,
            // the events of its last moments are missing.
            self.failure = tracking.finish().err().map(|error| error.to_string());
        }
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
pub(super) struct ProcessRecordings(Arc<Mutex<BTreeMap<u32, RecordingSlot>>>);

/// The exclusive right to start or stop the recording of a process. When this value is dropped, even after a panic, the
/// process's slot gets the recording; if there is no recording, the slot becomes free.
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

/// Returns the recording of a turn. Fails while the process still writes the recording.
fn ended<'a>(turn: &'a SlotTurn<'_>) -> Result<&'a ActiveRecording, HttpRefusal> {
    let recording = turn.recording.as_deref().filter(|recording| recording.tracking.is_none());
    recording.ok_or_else(|| {
        HttpRefusal::new(409, format!("process {} is still recording; stop it first", turn.pid))
    })
}

impl ProcessRecordings {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, RecordingSlot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a process has a recording. A recording that is still starting does not count.
    pub(super) fn has(&self, pid: u32, hello: Option<&HelloAnswer>) -> bool {
        match self.all().get(&pid) {
            None | Some(RecordingSlot::Starting) => false,
            Some(RecordingSlot::Stopping) => true,
            Some(RecordingSlot::Held(recording)) => recording.is_of(hello),
        }
    }

    /// Whether a process records for this server. The server then counts as used, because the end of the server would
    /// end the recording.
    pub(super) fn is_running(&self) -> bool {
        self.all().values().any(|slot| !matches!(slot, RecordingSlot::Held(held) if held.tracking.is_none()))
    }

    /// Returns the id and the name of each process that has a recording and is not in `listeners`.
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

    /// Lets a process record each allocation from now on. With a length, the recording ends by itself after this time,
    /// and [`stop`](Self::stop) opens it.
    pub(super) fn start(
        &self,
        pid: u32,
        hello: Option<HelloAnswer>,
        session: &Session,
        length: Option<Duration>,
        timeout: Duration,
    ) -> Result<HttpResponse, HttpRefusal> {
        let mut turn = self.begin(pid, hello.as_ref())?;
        let folder = session.folder().map_err(|error| HttpRefusal::new(503, error.to_string()))?;
        let path = folder.path().join(FILE);
        let tracking =
            live::record(pid, &path, timeout).map_err(|error| HttpRefusal::new(409, error.to_string()))?;
        let folder = Arc::new(folder);
        if let Some(length) = length {
            self.end_after(pid, &folder, length).map_err(|error| HttpRefusal::new(503, error.to_string()))?;
        }
        let recording =
            ActiveRecording { hello, tracking: Some(tracking), failure: None, refusal: None, path, folder };
        turn.recording = Some(Box::new(recording));
        Ok(HttpResponse::json(&json!({})))
    }

    /// Ends the recording in a folder after a time. It stays until a page opens it.
    fn end_after(&self, pid: u32, folder: &Arc<TempDir>, length: Duration) -> std::io::Result<()> {
        // The end of the server must not wait for this thread, and a removed recording must not keep its files.
        let (all, folder) = (Arc::downgrade(&self.0), Arc::downgrade(folder));
        let wait = move || {
            std::thread::sleep(length);
            let Some(all) = all.upgrade() else { return };
            let of = Self(all);
            // Without a turn, a page starts or stops the recording at this moment.
            let Ok(mut turn) = of.end(pid) else { return };
            let recording = turn.recording.as_mut();
            let own = recording.filter(|held| Weak::ptr_eq(&Arc::downgrade(&held.folder), &folder));
            if let Some(recording) = own {
                recording.finish();
            }
        };
        std::thread::Builder::new().name("recording".to_owned()).spawn(wait).map(drop)
    }

    fn begin(&self, pid: u32, hello: Option<&HelloAnswer>) -> Result<SlotTurn<'_>, HttpRefusal> {
        let mut all = self.all();
        match all.get(&pid) {
            None if all.len() >= MOST => {
                let reason = format!("there are {MOST} recordings already; stop or discard one");
                return Err(HttpRefusal::new(429, reason));
            }
            None => {}
            Some(RecordingSlot::Held(recording)) if !recording.is_of(hello) => {
                let reason =
                    format!("an earlier process with the id {pid} has a recording; stop the recording first");
                return Err(HttpRefusal::new(409, reason));
            }
            Some(_) => return Err(HttpRefusal::new(409, format!("process {pid} is already recording"))),
        }
        all.insert(pid, RecordingSlot::Starting);
        Ok(SlotTurn { of: self, pid, recording: None })
    }

    /// Ends the recording of a process and opens it. If the recording cannot be opened, it stays, and a page can try
    /// again.
    pub(super) fn stop(
        &self,
        pid: u32,
        opening: &StackOpening,
        stacks: &AllStacks,
    ) -> Result<HttpResponse, HttpRefusal> {
        let mut turn = self.end(pid)?;
        let recording = turn.recording.as_mut().expect("a turn that stops a recording has it");
        recording.finish();
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

    /// Returns the reason why the recording of a process could not be opened.
    pub(super) fn refusal(&self, pid: u32, hello: Option<&HelloAnswer>) -> Option<String> {
        match self.all().get(&pid)? {
            RecordingSlot::Held(recording) if recording.is_of(hello) => recording.refusal.clone(),
            _ => None,
        }
    }

    /// Returns the file of an ended recording.
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

    /// Removes an ended recording and its file.
    pub(super) fn discard(&self, pid: u32) -> Result<HttpResponse, HttpRefusal> {
        let mut turn = self.end(pid)?;
        ended(&turn)?;
        turn.recording = None;
        Ok(HttpResponse::json(&json!({})))
    }

    fn end(&self, pid: u32) -> Result<SlotTurn<'_>, HttpRefusal> {
        let mut all = self.all();
        match all.remove(&pid) {
            None => Err(HttpRefusal::new(409, format!("process {pid} is not recording"))),
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
