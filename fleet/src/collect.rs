//! Collects the reports and profiles of running processes, and writes a file for each service and minute.
//!
//! One task asks all targets. Each target has a place in the interval, so that the requests are spread, and a limit
//! keeps few requests open. A target that fails is asked less often. Reports wait in memory until the minute ends or
//! until they exceed a limit, and are written to files that appear only when they are complete. So a kill loses the
//! reports since the last write. Reports that cannot be written, because the disk is full, wait for the next write.
//! A profile is large, so it is written at once, into files of its own.

mod answers;
mod buffer;
mod discovery;
mod http;
mod target;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use memory_export::StackProfile;
use memory_export::parquet::ParquetRun;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

use crate::error::FleetError;
use crate::import::write_stacks;
use answers::CollectedRun;
use buffer::ReportBuffer;

pub use target::{CollectTarget, parse_targets};

/// Options of [`collect`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectOptions {
    /// Targets that never change.
    pub targets: Vec<CollectTarget>,
    /// A file with targets, which is read again at the start of each interval.
    pub file: Option<PathBuf>,
    /// The time between two requests to a target, and between two files.
    pub interval: Duration,
    /// The maximum time for a request.
    pub timeout: Duration,
    /// The maximum number of open requests.
    pub concurrency: usize,
    /// The maximum size of an answer in bytes.
    pub max_answer: usize,
    /// The size of waiting reports in bytes above which they are written before the interval ends.
    pub max_waiting: usize,
    /// The number of intervals; `None` collects until the process ends.
    pub rounds: Option<u64>,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            targets: Vec::new(),
            file: None,
            interval: Duration::from_secs(60),
            timeout: Duration::from_secs(10),
            concurrency: 64,
            max_answer: 16 << 20,
            max_waiting: 24 << 20,
            rounds: None,
        }
    }
}

/// What happened in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectedRound {
    /// The number of targets, and of those that answered.
    pub targets: usize,
    /// The number of targets whose reports are in the files.
    pub answered: usize,
    /// The number of targets that were not asked, because they failed before.
    pub waiting: usize,
    /// The first failures, with the target or the file.
    pub failures: Vec<String>,
    /// The files of the table `reports`.
    pub files: Vec<PathBuf>,
}

/// The maximum number of failures that a round keeps.
const MAX_FAILURES: usize = 5;
/// The maximum number of answers that are decompressed and read together, because each may be large.
const MAX_READING: usize = 4;
/// The maximum number of intervals between two requests to a target that fails.
const MAX_BACK_OFF: u32 = 16;

/// Collects until the rounds are over, or until `stop` completes. `report` gets each round.
///
/// # Errors
///
/// Returns an error if there are no targets at the start, or if a table cannot be written at the end. In between, both
/// are failures of the round: the targets of the round before are asked, and the reports wait.
pub async fn collect(
    root: &Path,
    options: &CollectOptions,
    stop: impl Future<Output = ()>,
    mut report: impl FnMut(&CollectedRound),
) -> Result<(), FleetError> {
    std::fs::create_dir_all(root).map_err(|error| FleetError::at(root, error))?;
    let mut stop = core::pin::pin!(stop);
    let mut failing = target::FailingTargets::default();
    let permits = CollectPermits {
        requests: Arc::new(Semaphore::new(options.concurrency.max(1))),
        reading: Arc::new(Semaphore::new(MAX_READING)),
    };
    let mut targets = targets_of(options)?;
    let mut searches = discovery::TargetSearches::default();
    let mut buffer = ReportBuffer::default();
    let mut start = Instant::now();
    let mut round = 0;
    loop {
        let end = start + options.interval;
        let mut done = CollectedRound::default();
        match targets_of(options) {
            Ok(read) => targets = read,
            // An editor or a script is writing the file.
            Err(error) => done.fail(format!("the targets stay as they were: {error}")),
        }
        // A first search may take long.
        let asked = tokio::select! {
            asked = searches.expand(targets.clone(), options.timeout, |failure| done.fail(failure)) => asked,
            () = &mut stop => return flush(root, &mut buffer, &mut done.files).await,
        };
        done.targets = asked.len();
        let (sender, mut answers) = mpsc::channel::<TargetAnswer>(4);
        let mut requests = tokio::task::JoinSet::new();
        for target in &asked {
            if failing.must_wait(target, round) {
                done.waiting += 1;
                continue;
            }
            let at = start + target.place(options.interval);
            requests.spawn(ask(target.clone(), at, options.clone(), permits.clone(), sender.clone()));
        }
        drop(sender);
        let (mut is_stopped, mut can_write) = (false, true);
        let (mut failed, mut lost) = (0, 0);
        loop {
            tokio::select! {
                answer = answers.recv() => match answer {
                    Some(answer) => {
                        failing.note(&answer.target, round, answer.result.is_ok());
                        match answer.result {
                            // Memory is bounded while the disk is full, too.
                            Ok(_) if buffer.size() > options.max_waiting.saturating_mul(2) => lost += 1,
                            Ok(CollectedRun::Reports(run, set)) => {
                                done.answered += 1;
                                buffer.add(*run, *set);
                            }
                            Ok(CollectedRun::Profile(run, profile)) => {
                                match write_profile(root, run, profile).await {
                                    Ok(()) => done.answered += 1,
                                    Err(error) => {
                                        failed += 1;
                                        done.fail(format!("{}: {error}", answer.target.url));
                                    }
                                }
                            }
                            Err(reason) => {
                                failed += 1;
                                done.fail(format!("{}: {reason}", answer.target.url));
                            }
                        }
                        if can_write && buffer.size() > options.max_waiting
                            && let Err(error) = flush(root, &mut buffer, &mut done.files).await
                        {
                            can_write = false;
                            done.fail(format!("the reports wait: {error}"));
                        }
                    }
                    None => break,
                },
                () = &mut stop => {
                    is_stopped = true;
                    break;
                }
                // Answers that come later are lost: their targets are asked again in this moment.
                () = sleep_until(end) => break,
            }
        }
        requests.abort_all();
        let late = done.targets.saturating_sub(done.waiting + done.answered + failed + lost);
        if !is_stopped && late > 0 {
            done.fail(format!("{late} targets did not answer before the interval ended"));
        }
        if lost > 0 {
            done.fail(format!("{lost} answers are lost, because too many reports wait"));
        }
        let written = flush(root, &mut buffer, &mut done.files).await;
        if let Err(error) = &written {
            done.fail(format!("the reports wait: {error}"));
        }
        report(&done);
        round += 1;
        if is_stopped || options.rounds.is_some_and(|rounds| round >= rounds) {
            return written;
        }
        tokio::select! {
            () = &mut stop => return flush(root, &mut buffer, &mut Vec::new()).await,
            () = sleep_until(end) => {}
        }
        // A machine that slept does not catch up.
        start = if Instant::now() > end + options.interval { Instant::now() } else { end };
    }
}

impl CollectedRound {
    /// Keeps a failure. Its text may come from a server, so a terminal must not obey it.
    fn fail(&mut self, text: String) {
        if self.failures.len() < MAX_FAILURES {
            self.failures.push(about_memory::escape(&text));
        }
    }
}

/// The limits of all requests together.
#[derive(Clone)]
struct CollectPermits {
    requests: Arc<Semaphore>,
    reading: Arc<Semaphore>,
}

struct TargetAnswer {
    target: CollectTarget,
    result: Result<CollectedRun, String>,
}

async fn ask(
    target: CollectTarget,
    at: Instant,
    options: CollectOptions,
    permits: CollectPermits,
    answers: mpsc::Sender<TargetAnswer>,
) {
    sleep_until(at).await;
    let Ok(permit) = permits.requests.acquire_owned().await else { return };
    let (result, reading) = answers::asked(&target, &options, permits.reading).await;
    // The permits also bound the answers that wait for the channel.
    let _ = answers.send(TargetAnswer { target, result }).await;
    drop((permit, reading));
}

fn targets_of(options: &CollectOptions) -> Result<Vec<CollectTarget>, FleetError> {
    let mut targets = options.targets.clone();
    if let Some(path) = &options.file {
        let text = std::fs::read_to_string(path).map_err(|error| FleetError::at(path, error))?;
        targets.extend(parse_targets(&text).map_err(|error| FleetError::at(path, error))?);
    }
    match targets.is_empty() {
        true => {
            Err(FleetError::Usage("there are no targets: name URLs, or a file with --targets".to_owned()))
        }
        false => Ok(targets),
    }
}

async fn write_profile(
    root: &Path,
    run: Box<ParquetRun>,
    profile: Box<StackProfile>,
) -> Result<(), FleetError> {
    let root = root.to_owned();
    let written = tokio::task::spawn_blocking(move || write_stacks(&root, &run, &profile));
    written.await.map_err(|error| FleetError::Output(std::io::Error::other(error.to_string())))?
}

/// Writes the buffer. After an error, the buffer has the reports that are not written.
async fn flush(root: &Path, buffer: &mut ReportBuffer, files: &mut Vec<PathBuf>) -> Result<(), FleetError> {
    if buffer.is_empty() {
        return Ok(());
    }
    let (root, mut full) = (root.to_owned(), core::mem::take(buffer));
    let written = tokio::task::spawn_blocking(move || {
        let mut files = Vec::new();
        let written = full.write(&root, &mut files);
        (full, files, written)
    });
    let (rest, new, written) =
        written.await.map_err(|error| FleetError::Output(std::io::Error::other(error.to_string())))?;
    *buffer = rest;
    files.extend(new);
    written
}
