//! The reports that the page shows, by number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memory_report::ReportSet;

/// The reports that pages made and that the server keeps. A new one pushes out the oldest of them. The reports that the
/// server was started with stay.
const MOST: usize = 50;

#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) title: String,
    pub(super) set: Arc<ReportSet>,
    /// The processes that were measured; empty for a file or a difference.
    pub(super) pids: Vec<u32>,
    /// Whether the server was started with it.
    pub(super) is_given: bool,
}

#[derive(Debug, Default)]
struct All {
    last: u32,
    by_id: BTreeMap<u32, Report>,
}

#[derive(Debug, Default)]
pub(super) struct Reports(Mutex<All>);

impl Reports {
    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a report that the server is started with.
    pub(super) fn give(&self, title: String, set: ReportSet, pids: Vec<u32>) -> u32 {
        self.insert(Report { title, set: Arc::new(set), pids, is_given: true })
    }

    /// Adds a report that a page asked for.
    pub(super) fn add(&self, title: String, set: ReportSet, pids: Vec<u32>) -> u32 {
        self.insert(Report { title, set: Arc::new(set), pids, is_given: false })
    }

    fn insert(&self, report: Report) -> u32 {
        let mut all = self.all();
        all.last += 1;
        let id = all.last;
        all.by_id.insert(id, report);
        let mut made = all.by_id.iter().filter(|(_, report)| !report.is_given).map(|(id, _)| *id);
        let oldest = made.next();
        if made.count() >= MOST
            && let Some(oldest) = oldest
        {
            all.by_id.remove(&oldest);
        }
        id
    }

    /// Replaces the set of a measurement by a later one of the same processes; returns whether there is such a report.
    pub(super) fn renew(&self, id: u32, set: ReportSet, pids: &[u32]) -> bool {
        let mut all = self.all();
        match all.by_id.get_mut(&id) {
            Some(report) if !report.is_given && report.pids == pids => {
                report.set = Arc::new(set);
                true
            }
            _ => false,
        }
    }

    pub(super) fn get(&self, id: u32) -> Option<Report> {
        self.all().by_id.get(&id).cloned()
    }

    pub(super) fn list(&self) -> Vec<(u32, Report)> {
        self.all().by_id.iter().map(|(id, report)| (*id, report.clone())).collect()
    }
}
