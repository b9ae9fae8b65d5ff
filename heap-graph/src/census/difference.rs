//! The difference of two reports with the same breakdown.

use hashbrown::HashMap;

use super::report::{CensusCount, CensusReport, StackKey, sort_keys};
use crate::graph::GraphText;

/// The difference of two reports, and the totals of the first report.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CensusDifference {
    /// The second report minus the first.
    pub delta: CensusReport,
    /// The bytes of the first report: 100 % for percentages.
    pub basis_total_bytes: i128,
    /// The number of nodes in the first report.
    pub basis_total_count: i128,
}

impl CensusDifference {
    /// Subtracts `first` from `second`. Both must be reports of the same breakdown.
    ///
    /// As in Firefox, the entries of `first` come first. An entry is negative if `second` lacks it, and zero if it is
    /// equal in both reports. The entries that only `second` contains follow with their own counts. Equal stacks of the
    /// two reports are one key. A bucket contains the ids that only `second` contains.
    pub fn new(first: &CensusReport, second: &CensusReport) -> Self {
        let (basis_total_bytes, basis_total_count) = totals(first);
        Self { delta: diff(first, Some(second)), basis_total_bytes, basis_total_count }
    }
}

/// The bytes and the number of nodes of all counts in a report.
pub(crate) fn totals(report: &CensusReport) -> (i128, i128) {
    match report {
        CensusReport::Count(count) => (count.bytes.unwrap_or(0), count.count.unwrap_or(0)),
        CensusReport::Bucket(ids) => (0, ids.len() as i128),
        _ => report.children().into_iter().fold((0, 0), |(bytes, count), (_, below)| {
            let below = totals(below);
            (bytes + below.0, count + below.1)
        }),
    }
}

fn diff(first: &CensusReport, second: Option<&CensusReport>) -> CensusReport {
    match (first, second) {
        (CensusReport::Count(first), second) => {
            let second = match second {
                Some(CensusReport::Count(second)) => second,
                _ => &CensusCount::default(),
            };
            let minus = |second: Option<i128>, first: Option<i128>| first.map(|n| second.unwrap_or(0) - n);
            CensusReport::Count(CensusCount {
                count: minus(second.count, first.count),
                bytes: minus(second.bytes, first.bytes),
                label: None,
            })
        }
        (CensusReport::Bucket(first), Some(CensusReport::Bucket(second))) => {
            let known: hashbrown::HashSet<_> = first.iter().collect();
            CensusReport::Bucket(second.iter().filter(|id| !known.contains(id)).copied().collect())
        }
        (CensusReport::Bucket(_), _) => CensusReport::Bucket(Vec::new()),
        (CensusReport::Map(first), second) => {
            let second: &[(GraphText<'_>, CensusReport)] = match second {
                Some(CensusReport::Map(second)) => second,
                _ => &[],
            };
            let mut entries = entries(first, second);
            sort_keys(&mut entries);
            CensusReport::Map(entries)
        }
        (CensusReport::Stacks(first), second) => {
            let second: &[(StackKey, CensusReport)] = match second {
                Some(CensusReport::Stacks(second)) => second,
                _ => &[],
            };
            CensusReport::Stacks(entries(first, second))
        }
        (CensusReport::All(first), second) => {
            let second: &[CensusReport] = match second {
                Some(CensusReport::All(second)) => second,
                _ => &[],
            };
            CensusReport::All(
                first.iter().enumerate().map(|(at, first)| diff(first, second.get(at))).collect(),
            )
        }
    }
}

fn entries<K: Clone + Eq + core::hash::Hash>(
    first: &[(K, CensusReport)],
    second: &[(K, CensusReport)],
) -> Vec<(K, CensusReport)> {
    let known: HashMap<&K, &CensusReport> = first.iter().map(|(key, report)| (key, report)).collect();
    let others: HashMap<&K, &CensusReport> = second.iter().map(|(key, report)| (key, report)).collect();
    let changed = first.iter().map(|(key, report)| (key.clone(), diff(report, others.get(key).copied())));
    let new = second.iter().filter(|(key, _)| !known.contains_key(key)).cloned();
    changed.chain(new).collect()
}
