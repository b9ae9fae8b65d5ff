//! The requests of the screens to processes. Each request has its own thread, so that the screen never waits.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use about_memory::live::{self, AskOptions};
use about_memory::temporary::TemporaryFolder;
use dmd_analyze::DumpReadOptions;
use dmd_analyze::program::{HeapBlocks, ProgramOptions};
use memory_report::{ReportSet, file};

use super::super::symbols::SymbolSearch;

/// All processes together have this time to send their names and their amounts.
const TIME_FOR_NAMES: Duration = Duration::from_secs(1);
/// A process has this time to write a dump or a heap snapshot, or to free caches.
const TIME_FOR_FILES: Duration = Duration::from_secs(60);

/// A request of a screen to a process or to the session.
#[derive(Clone, Debug)]
pub(super) enum ScreenRequest {
    List,
    Measure(Vec<u32>),
    /// Measures two processes and compares them.
    Diff([u32; 2]),
    Minimize(u32),
    /// Measures a process and writes a report file.
    Save(u32),
    /// Writes this report to a file.
    Export(Box<ReportSet>),
    Stacks(u32),
    /// Takes a heap snapshot into the session. The session reports the state of the snapshot.
    Snapshot(u32, String),
    /// Reads the types of a process into the session.
    Types(u32, String),
}

/// A process in the list of running processes. Its texts are escaped, except `requests`.
#[derive(Clone, Debug, Default)]
pub(super) struct ListedProcess {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) requests: Vec<String>,
    pub(super) resident: Option<u64>,
    pub(super) heap: Option<u64>,
    pub(super) error: Option<String>,
}

/// The answer to a [`ScreenRequest`].
#[derive(Debug)]
pub(super) enum ScreenAnswer {
    Processes(Vec<ListedProcess>),
    Report(Vec<u32>, Box<ReportSet>),
    Difference(String, Box<ReportSet>),
    Stacks(String, Box<HeapBlocks>),
    Done(String),
    /// The reason why a request has no answer.
    Failed(RequestKind, String),
}

/// The kind of a request that failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// A measurement of these processes. Without processes, a difference.
    Report(Vec<u32>),
    Other,
}

impl ScreenRequest {
    fn asked(&self) -> RequestKind {
        match self {
            Self::Measure(pids) => RequestKind::Report(pids.clone()),
            Self::Diff(_) => RequestKind::Report(Vec::new()),
            _ => RequestKind::Other,
        }
    }

    /// Runs the request on another thread, which sends the answer to `to`.
    pub(super) fn start(self, to: &Sender<ScreenAnswer>) {
        let (to, failed) = (to.clone(), to.clone());
        let (asked, not_asked) = (self.asked(), self.asked());
        let work = move || {
            let told = self.answer().unwrap_or_else(|reason| ScreenAnswer::Failed(asked, reason));
            // The send fails if the screen is closed.
            let _ = to.send(told);
        };
        if let Err(error) = thread::Builder::new().name("ask".to_owned()).spawn(work) {
            let _ =
                failed.send(ScreenAnswer::Failed(not_asked, format!("no thread can be started: {error}")));
        }
    }

    fn answer(self) -> Result<ScreenAnswer, String> {
        let words = |error: live::LiveError| error.to_string();
        let collect = |pids: &[u32]| live::collect(pids, &AskOptions::new()).map_err(words);
        match self {
            Self::List => list().map(ScreenAnswer::Processes).map_err(words),
            Self::Measure(pids) => {
                // The screen shows the process's own name. Differences and saved files call it `Main Process`, so that
                // two runs can be compared.
                let set = live::collect(&pids, &AskOptions::new().own_name(true)).map_err(words)?;
                Ok(ScreenAnswer::Report(pids, Box::new(set)))
            }
            Self::Diff([first, second]) => {
                // A process that hangs must not delay the other one.
                let (first_set, second_set) = thread::scope(|scope| {
                    let other = scope.spawn(|| collect(&[second]));
                    (collect(&[first]), other.join().expect("a collection does not panic"))
                });
                let set = about_memory::diff(&first_set?, &second_set?);
                Ok(ScreenAnswer::Difference(
                    format!("from process {first} to process {second}"),
                    Box::new(set),
                ))
            }
            Self::Minimize(pid) => {
                live::minimize(pid, TIME_FOR_FILES).map_err(words)?;
                Ok(ScreenAnswer::Done(format!("process {pid} has minimized its memory")))
            }
            Self::Save(pid) => save(&collect(&[pid])?),
            Self::Export(mut set) => {
                name_as_main(&mut set);
                save(&set)
            }
            Self::Stacks(pid) => {
                let folder = TemporaryFolder::new().map_err(|error| error.to_string())?;
                let path = folder.path().join("dmd.json.gz");
                live::save_dump(pid, &path, TIME_FOR_FILES).map_err(words)?;
                let mut dump = dmd_analyze::read(&path).map_err(|error| error.to_string())?;
                SymbolSearch::default().fix_quietly(&mut dump, &DumpReadOptions::default());
                let blocks = HeapBlocks::new(dump, &ProgramOptions::new());
                Ok(ScreenAnswer::Stacks(format!("process {pid}"), Box::new(blocks)))
            }
            Self::Snapshot(..) | Self::Types(..) => Err("the session takes a snapshot itself".to_owned()),
        }
    }
}

fn list() -> Result<Vec<ListedProcess>, live::LiveError> {
    let listeners = live::list_with_amounts(TIME_FOR_NAMES)?;
    let process = |listener: &live::ListeningProcess| match &listener.hello {
        Ok(hello) => {
            let amounts = listener.amounts.as_ref();
            ListedProcess {
                pid: listener.pid,
                name: about_memory::escape(&hello.name),
                requests: hello.requests.clone(),
                resident: amounts.and_then(|amounts| amounts.resident),
                heap: amounts.and_then(|amounts| amounts.heap_allocated),
                error: None,
            }
        }
        Err(error) => ListedProcess {
            pid: listener.pid,
            error: Some(about_memory::escape(&error.to_string())),
            ..ListedProcess::default()
        },
    };
    Ok(listeners.iter().map(process).collect())
}

/// Renames a single process to the name that it has in a file of `about-memory save`. Such a file and the file of this
/// program can then be compared.
fn name_as_main(set: &mut ReportSet) {
    let mut names = set.iter().map(|report| report.process);
    let first = names.next();
    if names.all(|name| Some(name) == first) {
        set.rename_processes(|name| match name.rfind(" (pid ") {
            Some(at) => format!("Main Process{}", &name[at..]),
            None => name.to_owned(),
        });
    }
}

/// Writes a report to a new file in the current folder.
fn save(set: &ReportSet) -> Result<ScreenAnswer, String> {
    let names = (1..).map(|number| PathBuf::from(format!("memory-report-{number}.json.gz")));
    let path = names.into_iter().find(|path| !Path::new(path).exists()).expect("a free name exists");
    file::write(&path, set).map_err(|error| format!("{}: cannot be written: {error}", path.display()))?;
    Ok(ScreenAnswer::Done(format!("saved as {}", path.display())))
}

/// Lets the session take a heap snapshot of a process.
pub(super) fn take(session: &about_memory::session::Session, pid: u32, name: &str) -> Result<(), String> {
    let save =
        move |path: &Path| live::save_snapshot(pid, path, TIME_FOR_FILES).map_err(|error| error.to_string());
    session.take(&format!("{name} (pid {pid})"), save).map(drop).map_err(|error| error.to_string())
}
