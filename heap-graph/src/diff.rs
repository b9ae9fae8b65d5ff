//! What changed between two reports of one breakdown.

use hashbrown::HashMap;

use crate::report::{Count, Report, StackKey, sort_keys};
use crate::text::Text;

/// The difference of two reports, and what it is a difference to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// The second report minus the first.
    pub delta: Report,
    /// Bytes of the first report: the 100 % of a percentage.
    pub basis_total_bytes: i128,
    /// Nodes of the first report.
    pub basis_total_count: i128,
}

impl Difference {
    /// `second` minus `first`, which are of the same breakdown.
    ///
    /// As in Firefox: what is only in the first stays, negative; what is only in the second stands behind it, as
    /// it is; what did not change stays, as zero. Equal stacks of the two are one key. Of
    /// buckets, the ids that only the second has.
    pub fn new(first: &Report, second: &Report) -> Self {
        let (basis_total_bytes, basis_total_count) = totals(first);
        Self { delta: diff(first, Some(second)), basis_total_bytes, basis_total_count }
    }
}

/// Bytes and nodes of all counts in a report.
pub(crate) fn totals(report: &Report) -> (i128, i128) {
    match report {
        Report::Count(count) => (count.bytes.unwrap_or(0), count.count.unwrap_or(0)),
        Report::Bucket(ids) => (0, ids.len() as i128),
        _ => report.children().into_iter().fold((0, 0), |(bytes, count), (_, below)| {
            let below = totals(below);
            (bytes + below.0, count + below.1)
        }),
    }
}

fn diff(first: &Report, second: Option<&Report>) -> Report {
    match (first, second) {
        (Report::Count(first), second) => {
            let second = match second {
                Some(Report::Count(second)) => second,
                _ => &Count::default(),
            };
            let minus = |second: Option<i128>, first: Option<i128>| first.map(|n| second.unwrap_or(0) - n);
            Report::Count(Count {
                count: minus(second.count, first.count),
                bytes: minus(second.bytes, first.bytes),
                label: None,
            })
        }
        (Report::Bucket(first), Some(Report::Bucket(second))) => {
            let known: hashbrown::HashSet<_> = first.iter().collect();
            Report::Bucket(second.iter().filter(|id| !known.contains(id)).copied().collect())
        }
        (Report::Bucket(_), _) => Report::Bucket(Vec::new()),
        (Report::Map(first), second) => {
            let second: &[(Text<'_>, Report)] = match second {
                Some(Report::Map(second)) => second,
                _ => &[],
            };
            let mut entries = entries(first, second);
            sort_keys(&mut entries);
            Report::Map(entries)
        }
        (Report::Stacks(first), second) => {
            let second: &[(StackKey, Report)] = match second {
                Some(Report::Stacks(second)) => second,
                _ => &[],
            };
            Report::Stacks(entries(first, second))
        }
        (Report::All(first), second) => {
            let second: &[Report] = match second {
                Some(Report::All(second)) => second,
                _ => &[],
            };
            Report::All(first.iter().enumerate().map(|(at, first)| diff(first, second.get(at))).collect())
        }
    }
}

fn entries<K: Clone + Eq + core::hash::Hash>(
    first: &[(K, Report)],
    second: &[(K, Report)],
) -> Vec<(K, Report)> {
    let known: HashMap<&K, &Report> = first.iter().map(|(key, report)| (key, report)).collect();
    let others: HashMap<&K, &Report> = second.iter().map(|(key, report)| (key, report)).collect();
    let changed = first.iter().map(|(key, report)| (key.clone(), diff(report, others.get(key).copied())));
    let new = second.iter().filter(|(key, _)| !known.contains_key(key)).cloned();
    changed.chain(new).collect()
}
