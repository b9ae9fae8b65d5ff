//! The program, the time and the machine of an export. All rows of the export have them in common.

use std::collections::BTreeMap;
use std::time::Duration;

use memory_report::ReportSet;

use super::census_row::CensusRow;
use super::hash::TableHash;
use crate::stack_profile::StackProfile;

/// A run: the measured program, with the time and the place. Unknown parts are empty or `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParquetRun {
    /// The time of the measurement, since 1970.
    pub time: Duration,
    /// The run's id. [`with_id_from_reports`](Self::with_id_from_reports) and similar functions compute it.
    pub id: [u8; 16],
    /// The machine.
    pub host: Option<String>,
    /// The service or program, the same on all machines and in all versions.
    pub service: String,
    /// The version of the service.
    pub version: Option<String>,
    /// The build id of the service's program, hexadecimal.
    pub build_id: Option<String>,
    /// The process. If a report names its own process, the report's row has that process instead.
    pub process: Option<String>,
    /// The process id. If a report names its own process, the report's row has the id of that process instead.
    pub pid: Option<u32>,
    /// The start time of the process, since 1970.
    pub started: Option<Duration>,
    /// Other labels, such as a region.
    pub labels: BTreeMap<String, String>,
}

impl ParquetRun {
    /// Makes a run of a service at a time since 1970. Set the other fields, and then the id.
    pub fn new(service: impl Into<String>, time: Duration) -> Self {
        Self {
            time,
            id: [0; 16],
            host: None,
            service: service.into(),
            version: None,
            build_id: None,
            process: None,
            pid: None,
            started: None,
            labels: BTreeMap::new(),
        }
    }

    /// Sets an id from the other fields and the reports: equal runs with equal reports have equal ids.
    #[must_use]
    pub fn with_id_from_reports(self, set: &ReportSet) -> Self {
        let mut hash = self.hash("reports");
        for report in set.iter() {
            hash.text(report.process);
            hash.text(report.path);
            hash.word(report.amount as u64);
            hash.word(report.kind as u64 | (report.units as u64) << 8);
        }
        for warning in set.warnings() {
            hash.text(&warning.subject);
            hash.text(&warning.message);
        }
        self.with_id(hash)
    }

    /// Sets an id from the other fields, the stacks and their amounts.
    #[must_use]
    pub fn with_id_from_stacks(self, stacks: &StackProfile) -> Self {
        let mut hash = self.hash("stacks");
        let ids = super::stack_ids::stack_ids(stacks);
        for sample in stacks.samples() {
            hash.word(ids[sample.stack.0 as usize]);
            for (name, value) in stacks.labels(sample.labels).iter() {
                hash.text(name);
                hash.text(value);
            }
            sample.amounts.iter().for_each(|amount| hash.word(*amount as u64));
        }
        self.with_id(hash)
    }

    /// Sets an id from the other fields and the groups of a census.
    #[must_use]
    pub fn with_id_from_census(self, rows: &[CensusRow]) -> Self {
        let mut hash = self.hash("census");
        for row in rows {
            hash.text(&row.by);
            row.group.iter().for_each(|name| hash.text(name));
            hash.word(row.bytes as u64);
            hash.word(row.count as u64);
        }
        self.with_id(hash)
    }

    /// A hash of the table's name and of all fields except the id.
    fn hash(&self, table: &str) -> TableHash {
        let mut hash = TableHash::new();
        hash.text(table);
        hash.word(self.time.as_micros() as u64);
        hash.text(&self.service);
        for text in [&self.host, &self.version, &self.build_id, &self.process] {
            hash.maybe(text.as_deref());
        }
        hash.word(self.pid.map_or(u64::MAX, u64::from));
        hash.word(self.started.map_or(u64::MAX, |started| started.as_micros() as u64));
        for (name, value) in &self.labels {
            hash.text(name);
            hash.text(value);
        }
        hash
    }

    fn with_id(mut self, hash: TableHash) -> Self {
        let [first, second] = hash.finish();
        self.id[..8].copy_from_slice(&first.to_be_bytes());
        self.id[8..].copy_from_slice(&second.to_be_bytes());
        self
    }

    /// The id as 32 hexadecimal digits.
    pub fn id_text(&self) -> String {
        self.id.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
