//! Targets that stand for several: the addresses of a name, and the processes of this machine.
//!
//! A search runs beside the requests, and its result counts from the next round on. So a slow server of names delays no
//! target. Only the first search for a new target is waited for. A search that fails leaves the targets as they were.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use about_memory::live;
use tokio::net::lookup_host;
use tokio::task::{Id, JoinSet};

use super::target::{CollectTarget, TargetKind};
use crate::import::host_name;

/// The maximum number of targets that one target stands for.
const MAX_FOUND: usize = 10_000;

type Search = Result<Vec<CollectTarget>, String>;

/// The targets that were found, by the address of the target that stands for them.
#[derive(Default)]
pub(super) struct TargetSearches {
    found: HashMap<String, Vec<CollectTarget>>,
    running: JoinSet<Search>,
    /// The addresses of the targets whose searches run.
    searched: HashMap<Id, String>,
}

impl TargetSearches {
    /// Replaces the targets that stand for several. `fail` gets the failures of searches.
    pub(super) async fn expand(
        &mut self,
        targets: Vec<CollectTarget>,
        timeout: Duration,
        mut fail: impl FnMut(String),
    ) -> Vec<CollectTarget> {
        let is_new = |found: &HashMap<String, _>| {
            targets.iter().any(|target| target.kind().is_search() && !found.contains_key(&target.url))
        };
        for target in targets.iter().filter(|target| target.kind().is_search()) {
            if !self.searched.values().any(|url| *url == target.url) {
                let (url, target) = (target.url.clone(), target.clone());
                let running = self.running.spawn(async move {
                    let found = tokio::time::timeout(timeout, search(&target, timeout)).await;
                    let late = || Err(format!("no answer in {} s", timeout.as_secs_f64()));
                    found.unwrap_or_else(|_| late())
                });
                self.searched.insert(running.id(), url);
            }
        }
        while let Some(done) = match is_new(&self.found) {
            true => self.running.join_next_with_id().await,
            false => self.running.try_join_next_with_id(),
        } {
            let (id, found) = done.unwrap_or_else(|error| (error.id(), Err(error.to_string())));
            let Some(url) = self.searched.remove(&id) else { continue };
            match found {
                Ok(found) => drop(self.found.insert(url, found)),
                Err(reason) => {
                    fail(format!("{url}: {reason}"));
                    self.found.entry(url).or_default();
                }
            }
        }
        self.found.retain(|url, _| targets.iter().any(|target| target.url == *url));
        let found = |target: CollectTarget| match target.kind().is_search() {
            true => self.found.get(&target.url).cloned().unwrap_or_default(),
            false => vec![target],
        };
        // Several targets may stand for an address, which is asked once.
        let mut known = HashSet::new();
        targets.into_iter().flat_map(found).filter(|target| known.insert(target.url.clone())).collect()
    }
}

async fn search(target: &CollectTarget, timeout: Duration) -> Result<Vec<CollectTarget>, String> {
    match target.kind() {
        TargetKind::Name { authority, path } => {
            let addresses = lookup_host(authority).await.map_err(|error| error.to_string())?;
            let mut found: Vec<CollectTarget> = addresses
                .take(MAX_FOUND)
                .map(|address| CollectTarget { url: format!("http://{address}{path}"), ..target.clone() })
                .collect();
            found.sort_by(|one, other| one.url.cmp(&other.url));
            found.dedup();
            Ok(found)
        }
        TargetKind::Local => {
            let target = target.clone();
            let found = tokio::task::spawn_blocking(move || local(&target, timeout)).await;
            found.map_err(|error| error.to_string())?
        }
        TargetKind::Http { .. } | TargetKind::Process(_) => Ok(vec![target.clone()]),
    }
}

/// The processes of this user that answer on their sockets.
fn local(target: &CollectTarget, timeout: Duration) -> Result<Vec<CollectTarget>, String> {
    let processes = live::list(timeout).map_err(|error| error.to_string())?;
    let host = target.host.clone().or_else(host_name);
    let found = processes.into_iter().filter_map(|process| {
        let hello = process.hello.ok()?;
        let name = Path::new(&hello.exe).file_name().map(|name| name.to_string_lossy().into_owned());
        Some(CollectTarget {
            url: format!("{}{}", TargetKind::PROCESS, process.pid),
            service: target.service.clone().or(name).or(Some(hello.name)),
            version: target.version.clone(),
            host: host.clone(),
            started: (hello.started > 0).then(|| Duration::from_secs(hello.started)),
        })
    });
    Ok(found.take(MAX_FOUND).collect())
}
