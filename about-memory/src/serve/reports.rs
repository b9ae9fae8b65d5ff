//! The reports that the page shows, by number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use memory_report::ReportSet;

/// The reports that the server keeps. A new one pushes out the oldest.
const MOST: usize = 50;

#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) title: String,
    pub(super) set: Arc<ReportSet>,
}

#[derive(Debug, Default)]
pub(super) struct Reports(Mutex<(u32, BTreeMap<u32, Report>)>);

impl Reports {
    pub(super) fn add(&self, title: String, set: ReportSet) -> u32 {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.0 += 1;
        let id = all.0;
        all.1.insert(id, Report { title, set: Arc::new(set) });
        if all.1.len() > MOST {
            all.1.pop_first();
        }
        id
    }

    pub(super) fn get(&self, id: u32) -> Option<Report> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.get(&id).cloned()
    }

    pub(super) fn list(&self) -> Vec<(u32, String)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.1.iter().map(|(id, report)| (*id, report.title.clone())).collect()
    }
}
