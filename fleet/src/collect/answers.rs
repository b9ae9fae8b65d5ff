//! Asks a target, and reads its answer. Answers are not trusted.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use about_memory::live::{self, AskOptions};
use memory_export::StackProfile;
use memory_export::parquet::ParquetRun;
use memory_export::pprof::{self, PprofReadOptions};
use memory_report::ReportSet;
use memory_report::file::{ReadOptions, read_from};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::target::{CollectTarget, TargetKind};
use super::{CollectOptions, http};
use crate::import::{service_of, since_1970};

/// What a target answered.
pub(super) enum CollectedRun {
    Reports(Box<ParquetRun>, Box<ReportSet>),
    Profile(Box<ParquetRun>, Box<StackProfile>),
}

/// The limits of a report: a small answer may be large when it is decompressed.
fn limits(options: &CollectOptions) -> ReadOptions {
    ReadOptions::new().max_bytes(options.max_answer as u64 * 8).max_reports(200_000)
}

/// Asks a target. The permit bounds the answers that are read together.
pub(super) async fn asked(
    target: &CollectTarget,
    options: &CollectOptions,
    reading: Arc<Semaphore>,
) -> (Result<CollectedRun, String>, Option<OwnedSemaphorePermit>) {
    let body = match target.kind() {
        TargetKind::Http { authority, path } => {
            let asked =
                tokio::time::timeout(options.timeout, http::get(authority, path, options.max_answer)).await;
            match asked {
                Err(_) => return (Err(format!("no answer in {} s", options.timeout.as_secs_f64())), None),
                Ok(Err(reason)) => return (Err(reason), None),
                Ok(Ok(body)) => Some(body),
            }
        }
        _ => None,
    };
    let time = now();
    let Ok(permit) = reading.acquire_owned().await else {
        return (Err("the collector ends".to_owned()), None);
    };
    let (target, options) = (target.clone(), options.clone());
    // Decompressing and reading take the time of a processor, not of the network.
    let read = tokio::task::spawn_blocking(move || match (target.kind(), &body) {
        (TargetKind::Process(pid), _) => {
            let asking = AskOptions::new().own_name(true).timeout(options.timeout).read(limits(&options));
            live::collect(&[pid], &asking)
                .map(|set| reports(&target, time, set))
                .map_err(|error| error.to_string())
        }
        (_, Some(body)) if target.is_profile() => profile(&target, time, body, options.max_answer),
        (_, Some(body)) => read_from(&**body, &limits(&options))
            .map(|set| reports(&target, time, set))
            .map_err(|error| error.to_string()),
        (_, None) => Err("this target stands for several".to_owned()),
    });
    (read.await.unwrap_or_else(|error| Err(error.to_string())), Some(permit))
}

fn now() -> Duration {
    Duration::from_millis(since_1970(SystemTime::now()).as_millis() as u64)
}

fn run(target: &CollectTarget, time: Duration, service: Option<String>) -> ParquetRun {
    let mut run = ParquetRun::new(service.unwrap_or_else(|| target.place_name().to_owned()), time);
    run.version.clone_from(&target.version);
    run.host = Some(target.host.clone().unwrap_or_else(|| target.place_name().to_owned()));
    run.started = target.started;
    run
}

fn reports(target: &CollectTarget, time: Duration, set: ReportSet) -> CollectedRun {
    let run = run(target, time, target.service.clone().or_else(|| service_of(&set)));
    CollectedRun::Reports(Box::new(run.with_id_from_reports(&set)), Box::new(set))
}

fn profile(target: &CollectTarget, time: Duration, body: &[u8], max: usize) -> Result<CollectedRun, String> {
    let limits =
        PprofReadOptions::new().max_bytes(max as u64 * 8).max_entries(1_000_000).max_frames(4_000_000);
    let profile = pprof::read(body, &limits).map_err(|error| error.to_string())?;
    let run = run(target, time, target.service.clone());
    Ok(CollectedRun::Profile(Box::new(run.with_id_from_stacks(&profile)), Box::new(profile)))
}
