//! The changes between two sets of reports, by Firefox's rules.
//!
//! [`Diff`] matches reports by process and path after renaming. The caller passes the functions that rename, because
//! each view decides which numbers in names (process ids, addresses) change from run to run. If a set has several
//! reports with the same name, [`Diff`] adds them up in 128 bits. The result is a list of changes. [`Diff::to_set`]
//! makes a [`ReportSet`] of the changes. Every view of sets can show this set.

use core::hash::BuildHasher;
use std::borrow::Cow;
use std::collections::HashMap;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::process_name::own_process_name;
use crate::report::{Kind, Report, Units};
use crate::report_set::ReportSet;
use crate::warning::{Warning, WarningKind};

pub use crate::presence::Presence;

/// The largest number of warnings in a diff. The diff counts further warnings, but does not keep them.
const MAX_WARNINGS: usize = 1000;

/// All reports with one name, in both sets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReportChange<'a> {
    /// The path after renaming.
    pub path: Cow<'a, str>,
    /// The origin of the memory; a name with two kinds has two entries.
    pub kind: Kind,
    /// The unit of the amounts.
    pub units: Units,
    /// The description in the first set that contains the name.
    pub description: &'a str,
    first: ChangeSide,
    second: ChangeSide,
    process: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct ChangeSide {
    amount: i128,
    reports: u32,
}

impl ReportChange<'_> {
    /// The sum in the first set; `None` if that set lacks the name.
    pub fn first(&self) -> Option<i128> {
        (self.first.reports > 0).then_some(self.first.amount)
    }

    /// The sum in the second set; `None` if that set lacks the name.
    pub fn second(&self) -> Option<i128> {
        (self.second.reports > 0).then_some(self.second.amount)
    }

    /// The sum in the second set minus the sum in the first set.
    pub fn amount(&self) -> i128 {
        self.second.amount - self.first.amount
    }

    /// The sets that contain the name.
    pub fn presence(&self) -> Presence {
        match (self.first.reports, self.second.reports) {
            (_, 0) => Presence::FirstOnly,
            (0, _) => Presence::SecondOnly,
            _ => Presence::Both,
        }
    }
}

/// Every name of two sets, with its amount in each set.
///
/// ```
/// use memory_report::diff::Diff;
/// use memory_report::{Kind, Report, ReportSet, Units};
///
/// let set = |amount| {
///     let mut set = ReportSet::new();
///     let (process, path, description) = ("Main Process (pid 1)", "explicit/cache", "Memory of the cache.");
///     set.push(Report { process, path, kind: Kind::Heap, units: Units::Bytes, amount, description });
///     set
/// };
/// let (first, second) = (set(50), set(80));
/// let diff = Diff::new(&first, &second, |path| path.into(), |process| process.to_owned());
/// assert_eq!(diff.changes().next().map(|change| change.amount()), Some(30));
/// ```
#[derive(Debug)]
pub struct Diff<'a> {
    changes: Vec<ReportChange<'a>>,
    processes: Vec<String>,
    warnings: Vec<Warning>,
    more_warnings: usize,
    usable_size_known: bool,
    is_partial: bool,
}

impl<'a> Diff<'a> {
    /// Matches the reports of two sets by their names after renaming. The names of the first set come first, in its
    /// order. The names that only the second set contains follow.
    ///
    /// If the units of a name differ, the diff leaves the name out, with a warning. If its kinds differ, the diff
    /// keeps the name as two changes, with a warning.
    pub fn new(
        first: &'a ReportSet,
        second: &'a ReportSet,
        path_name: impl Fn(&'a str) -> Cow<'a, str>,
        process_name: impl Fn(&str) -> String,
    ) -> Self {
        let mut matching = DiffBuilder {
            diff: Self {
                changes: Vec::with_capacity(first.len()),
                processes: Vec::new(),
                warnings: first.warnings().iter().chain(second.warnings()).cloned().collect(),
                more_warnings: 0,
                usable_size_known: first.usable_size_known() && second.usable_size_known(),
                is_partial: first.is_partial() && second.is_partial(),
            },
            processes: HashMap::new(),
            misfits: Vec::new(),
            places: HashTable::with_capacity(first.len() + second.len()),
            hasher: DefaultHashBuilder::default(),
        };
        if first.usable_size_known() != second.usable_size_known() {
            let message = "true in one set only: sizes are not comparable";
            matching.diff.warn(warning(WarningKind::Unavailable, "hasMozMallocUsableSize", message));
        }
        matching.add(first, &path_name, &process_name, |change| &mut change.first);
        matching.add(second, &path_name, &process_name, |change| &mut change.second);
        for place in matching.misfits {
            let change = &mut matching.diff.changes[place];
            (change.first, change.second) = (ChangeSide::default(), ChangeSide::default());
        }
        matching.diff
    }

    /// All names, changed or not.
    pub fn changes(&self) -> impl Iterator<Item = &ReportChange<'a>> + Clone {
        self.changes.iter().filter(|change| change.first.reports > 0 || change.second.reports > 0)
    }

    /// The warnings of both sets, and the warnings about names that do not match.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The process of a change after renaming; never empty.
    pub fn process(&self, change: &ReportChange<'_>) -> &str {
        &self.processes[change.process as usize]
    }

    /// A set of the changes, process by process; amounts are the differences. It leaves out names whose amounts are
    /// equal.
    ///
    /// As in Firefox, a name occurs as often as in the set that contains it more often. The first report has the
    /// difference, and the others have the amount 0.
    pub fn to_set(&self) -> ReportSet {
        let mut set = ReportSet::new();
        set.set_diff();
        set.set_usable_size_known(self.usable_size_known);
        set.set_partial(self.is_partial);
        for change in self.by_process() {
            let mut left = change.amount();
            if left == 0 {
                continue;
            }
            let mut report = Report {
                process: self.process(change),
                path: &change.path,
                kind: change.kind,
                units: change.units,
                amount: 0,
                description: change.description,
            };
            let mut rows = 0;
            while left != 0 {
                // The loop runs more than once only for a difference that does not fit into 64 bits.
                report.amount = clamped(left);
                left -= i128::from(report.amount);
                set.push_change(report, change.presence());
                rows += 1;
            }
            report.amount = 0;
            for _ in rows..change.first.reports.max(change.second.reports) {
                set.push_change(report, change.presence());
            }
        }
        self.warnings.iter().for_each(|warning| set.warn(warning.clone()));
        if self.more_warnings > 0 {
            set.warn(Warning::new(
                WarningKind::ReportDropped,
                "diff",
                format!("{} more names do not match", self.more_warnings),
            ));
        }
        set
    }

    /// All changes, process by process, so that the reports of one tree are next to each other in memory.
    fn by_process(&self) -> impl Iterator<Item = &ReportChange<'a>> {
        let mut ends = vec![0_u32; self.processes.len() + 1];
        self.changes.iter().for_each(|change| ends[change.process as usize + 1] += 1);
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        let mut order = vec![0; self.changes.len()];
        for (place, change) in self.changes.iter().enumerate() {
            let end = &mut ends[change.process as usize];
            order[*end as usize] = place;
            *end += 1;
        }
        order.into_iter().map(|place| &self.changes[place])
    }

    /// Adds a warning. If the diff already has 1000 warnings, only counts it.
    pub fn warn(&mut self, warning: Warning) {
        if self.warnings.len() >= MAX_WARNINGS {
            self.more_warnings += 1;
        } else {
            self.warnings.push(warning);
        }
    }
}

fn warning(kind: WarningKind, subject: &str, message: impl Into<String>) -> Warning {
    Warning::new(kind, subject, message)
}

fn clamped(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

/// A diff under construction.
struct DiffBuilder<'a> {
    diff: Diff<'a>,
    processes: HashMap<String, u32>,
    /// The indices of changes whose reports have two different units.
    misfits: Vec<usize>,
    places: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<'a> DiffBuilder<'a> {
    fn add(
        &mut self,
        set: &'a ReportSet,
        path_name: &impl Fn(&'a str) -> Cow<'a, str>,
        process_name: &impl Fn(&str) -> String,
        side: impl for<'c> Fn(&'c mut ReportChange<'a>) -> &'c mut ChangeSide,
    ) {
        let mut process_of: Vec<u32> = Vec::new();
        for process in set.processes() {
            let name = match process {
                "" => process_name(&own_process_name()),
                process => process_name(process),
            };
            let known = self.processes.get(&name).copied();
            process_of.push(known.unwrap_or_else(|| {
                let id = small(self.diff.processes.len());
                self.diff.processes.push(name.clone());
                self.processes.insert(name, id);
                id
            }));
        }
        for (report, process) in set.iter().zip(set.process_ids()) {
            let Some(place) = self.place(process_of[process], path_name(report.path), &report) else {
                continue;
            };
            let side = side(&mut self.diff.changes[place]);
            side.amount += i128::from(report.amount);
            side.reports = side.reports.saturating_add(1);
        }
    }

    /// Returns the index of the change with this name, kind and units, and adds a change if there is none. `None` if
    /// the units differ.
    fn place(&mut self, process: u32, path: Cow<'a, str>, report: &Report<'a>) -> Option<usize> {
        let hash = self.hasher.hash_one((process, &*path));
        let find = |kind: Option<Kind>| {
            let found = self.places.find(hash, |place| {
                let change = &self.diff.changes[*place as usize];
                change.process == process
                    && kind.is_none_or(|kind| kind == change.kind)
                    && change.path == path
            });
            found.map(|place| *place as usize)
        };
        if let Some(place) = find(None) {
            let ReportChange { kind, units, .. } = self.diff.changes[place];
            if (kind, units) == (report.kind, report.units) {
                return Some(place);
            }
            if units != report.units {
                self.misfits.push(place);
                let message = format!("reported in {units} and in {}", report.units);
                self.diff.warn(warning(WarningKind::ReportDropped, &path, message));
                return None;
            }
            if let Some(place) = find(Some(report.kind)) {
                return Some(place);
            }
            let message = format!("reported as {kind} and as {}", report.kind);
            self.diff.warn(warning(WarningKind::ReportKept, &path, message));
        }
        let place = self.diff.changes.len();
        let (kind, units, description) = (report.kind, report.units, report.description);
        let (first, second) = (ChangeSide::default(), ChangeSide::default());
        self.diff.changes.push(ReportChange { path, kind, units, description, first, second, process });
        let (changes, hasher) = (&self.diff.changes, &self.hasher);
        self.places.insert_unique(hash, small(place), |place| {
            let change = &changes[*place as usize];
            hasher.hash_one((change.process, &*change.path))
        });
        Some(place)
    }
}

fn small(n: usize) -> u32 {
    u32::try_from(n).expect("two sets have fewer than 2^32 reports")
}
