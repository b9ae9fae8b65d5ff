//! Reports that wait for the end of the minute.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memory_export::parquet::{ParquetRun, folder_name};
use memory_report::ReportSet;

use crate::day::Day;
use crate::error::FleetError;
use crate::import::write_runs;
use crate::life::LifeHash;

/// The bytes of a report in memory, without its texts: the row, and its part of the tables of texts.
const REPORT_BYTES: usize = 64;

/// The approximate size of reports in bytes.
fn size_of(set: &ReportSet) -> usize {
    let texts: usize = set.iter().map(|report| report.path.len() + report.description.len()).sum();
    texts + set.len() * REPORT_BYTES
}

#[derive(Default)]
pub(super) struct ReportBuffer {
    /// By day and service, because each has a folder of its own.
    runs: BTreeMap<(Day, String), Vec<(ParquetRun, ReportSet)>>,
    size: usize,
}

impl ReportBuffer {
    pub(super) fn add(&mut self, run: ParquetRun, set: ReportSet) {
        self.size += size_of(&set);
        self.runs.entry((Day::at(run.time), run.service.clone())).or_default().push((run, set));
    }

    /// The approximate size in bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Writes a file for each day and service. Reports that cannot be written stay in the buffer.
    pub(super) fn write(&mut self, root: &Path, files: &mut Vec<PathBuf>) -> Result<(), FleetError> {
        while let Some(mut entry) = self.runs.first_entry() {
            let service = entry.key().1.clone();
            let runs = entry.get_mut();
            runs.sort_by_key(|(run, _)| (run.time, run.id));
            // Two answers with the same contents in the same millisecond are one run.
            runs.dedup_by_key(|(run, _)| run.id);
            let time = runs[0].0.time;
            let mut hash = LifeHash::new();
            runs.iter().for_each(|(run, _)| hash.text(&run.id_text()));
            let name = format!("minute-{:010}-{:016x}", time.as_secs(), hash.0);
            files.push(write_runs(root, runs, |table| {
                format!("{}/{name}.parquet", folder_name(table, time, &service))
            })?);
            let written: usize = entry.remove().iter().map(|(_, set)| size_of(set)).sum();
            self.size = self.size.saturating_sub(written);
        }
        self.size = 0;
        Ok(())
    }
}
