//! The changes between two sets of reports.

use memory_report::ReportSet;
use memory_report::diff::Diff;
use memory_report::tree::Forest;

use crate::limit::{Limit, LimitError, LimitOutcome};
use crate::normalize::{DiffOptions, NormalizeError, Normalizer};

/// Returns the changes from `first` to `second` as a set, for [`text`](crate::text()) and the other views. Before the
/// comparison, parts of names are replaced by Firefox's rules and by the rules that the sets contain.
///
/// ```
/// use memory_reporter::{Kind, Report, ReportSet, Units};
///
/// let set = |pid: u32, mb: i64| {
///     let mut set = ReportSet::new();
///     let process = &format!("Main Process (pid {pid})");
///     let (path, units, description) = ("explicit/cache", Units::Bytes, "Memory used by the cache.");
///     set.push(Report { process, path, kind: Kind::Heap, units, amount: mb << 20, description });
///     set
/// };
/// let diff = about_memory::diff(&set(7, 10), &set(8, 12));
/// assert!(about_memory::text(&diff).to_string().contains("2.00 MB (100.0%) ── cache\n"));
/// ```
pub fn diff(first: &ReportSet, second: &ReportSet) -> ReportSet {
    let changes = changes(first, second, &DiffOptions::new());
    changes.expect("the rules of Firefox are regular expressions").to_set()
}

/// Returns the changes from `first` to `second`, each with both amounts, by the rules of `options` and of the sets.
///
/// ```
/// # let (first, second) = (memory_reporter::ReportSet::new(), memory_reporter::ReportSet::new());
/// use about_memory::{DiffOptions, NormalizeRule};
///
/// let rule = NormalizeRule::new("session [0-9]+", "session N");
/// let changes = about_memory::changes(&first, &second, &DiffOptions::new().normalize(rule))?;
/// for change in changes.changes() {
///     println!("{}: {:?} to {:?}", change.path, change.first(), change.second());
/// }
/// println!("{}", about_memory::text(&changes.to_set()));
/// # Ok::<(), about_memory::NormalizeError>(())
/// ```
///
/// # Errors
///
/// Returns an error if a rule of `options` is not a regular expression. (A bad rule in a set is skipped, with a
/// warning.)
pub fn changes<'a>(
    first: &'a ReportSet,
    second: &'a ReportSet,
    options: &DiffOptions,
) -> Result<Diff<'a>, NormalizeError> {
    let normalizer = Normalizer::new(options, &[first, second])?;
    Ok(normalizer.changes(first, second))
}

impl Normalizer {
    pub(crate) fn changes<'a>(&self, first: &'a ReportSet, second: &'a ReportSet) -> Diff<'a> {
        let mut diff = Diff::new(first, second, |p| self.path(p), |p| self.process(p).into_owned());
        self.warnings().iter().for_each(|warning| diff.warn(warning.clone()));
        diff
    }
}

/// Checks limits on two sets. The names in the sets and the paths of the limits are normalized as for a diff.
///
/// The amounts are the amounts of the whole sets: `explicit` is the amount that [`text`](crate::text()) shows for each
/// set. The sum of the differences can differ from the difference of these amounts: as in Firefox, the sum lacks
/// `heap-unclassified` if `heap-allocated` has not changed.
///
/// # Errors
///
/// Returns an error if a rule of `options` is not a regular expression. The result for each limit contains the errors
/// of [`Limit::check`].
pub fn check_limits(
    first: &ReportSet,
    second: &ReportSet,
    options: &DiffOptions,
    limits: &[Limit],
) -> Result<Vec<Result<LimitOutcome, LimitError>>, NormalizeError> {
    let normalizer = Normalizer::new(options, &[first, second])?;
    let renamed = |limit: &Limit| limit.clone().renamed(|path| normalizer.path(path).into_owned());
    let limits: Vec<_> = limits.iter().map(renamed).collect();
    let amounts = |set| {
        let set = normalizer.normalized(set);
        let forest = Forest::new(&set);
        limits.iter().map(|limit| limit.amount(&forest)).collect::<Vec<_>>()
    };
    let amounts = amounts(first).into_iter().zip(amounts(second));
    Ok(limits.iter().zip(amounts).map(|(limit, (first, second))| limit.judge(Some(first), second)).collect())
}
