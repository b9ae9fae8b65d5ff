//! Finds the faults that only the whole set shows: one path reported with two kinds or two units.

use core::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};
use memory_report::{ReportSet, Warning, WarningKind};

/// The maximum number of warnings. More warnings would add no information.
const MOST_WARNINGS: usize = 20;

pub(crate) fn check(set: &mut ReportSet) {
    let mut firsts: HashTable<u32> = HashTable::with_capacity(set.len());
    let hasher = DefaultHashBuilder::default();
    let mut warnings = Vec::new();
    let at = |index: u32| set.get(index as usize).expect("the table contains only indices of this set");
    for (index, report) in set.iter().enumerate() {
        let hash = hasher.hash_one(report.path);
        let same = |&first: &u32| {
            let first = at(first);
            first.path == report.path && first.process == report.process
        };
        let Some(&first) = firsts.find(hash, same) else {
            // The index fits into 32 bits: a set of 2^32 reports would take more than 128 GiB.
            firsts.insert_unique(hash, index as u32, |&i| hasher.hash_one(at(i).path));
            continue;
        };
        let first = at(first);
        let message = if first.kind != report.kind {
            format!("reported as {} and as {}", first.kind, report.kind)
        } else if first.units != report.units {
            format!("reported in {} and in {}", first.units, report.units)
        } else {
            continue;
        };
        warnings.push(Warning::new(WarningKind::ReportKept, report.path, message));
        if warnings.len() == MOST_WARNINGS {
            break;
        }
    }
    for warning in warnings {
        set.warn(warning);
    }
}
