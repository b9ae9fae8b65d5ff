//! Assertions about memory for tests. The macros only build the text of a limit; the functions here check it.

use core::fmt::Write as _;

use memory_report::tree::Forest;
use memory_report::{ReportSet, Units};

use crate::limit::{Limit, LimitError};
use crate::normalize::DiffOptions;
use crate::number;

/// Asserts a limit on the amount at a path, summed over all processes. The path names a leaf or an inner node of a
/// tree, a report outside of trees, or `explicit/heap-unclassified`.
///
/// The comparison is one of `<`, `<=`, `>`, `>=` and `==`. The limit is a number with a unit of bytes, such as `KiB` or
/// `kB`; without a unit it is in the units of the report. The macro also accepts the text of a [`Limit`](crate::Limit).
///
/// ```
/// use memory_reporter::{Kind, Report, ReportSet, Units};
///
/// let mut set = ReportSet::new();
/// let (process, path, description) = ("Main Process (pid 1)", "explicit/cache/keys", "");
/// set.push(Report { process, path, kind: Kind::Heap, units: Units::Bytes, amount: 5000, description });
/// about_memory::assert_memory!(set, "explicit/cache" < 10 KiB);
/// about_memory::assert_memory!(set, "explicit/cache" == 5_000 B);
/// about_memory::assert_memory!(set, "[Main Process] explicit/cache < 0.5 MiB");
/// ```
///
/// # Panics
///
/// Panics if the comparison is false, if the set does not contain the path, or if the limit cannot be parsed or has
/// other units than the report. If the comparison is false, the message shows the amount and the text of the whole set.
#[macro_export]
macro_rules! assert_memory {
    ($set:expr, $limit:literal $(,)?) => {
        $crate::__private::check(&$set, $limit)
    };
    ($set:expr, $path:literal $compare:tt $limit:literal $($unit:ident)? $(,)?) => {
        $crate::__private::check(
            &$set,
            ::core::concat!(
                $path, " ", ::core::stringify!($compare), " ", ::core::stringify!($limit)
                $(, " ", ::core::stringify!($unit))?
            ),
        )
    };
}

/// Asserts limits on the changes between two sets, with the rules of [`diff`](crate::diff()) for names.
///
/// Each limit is the text of a [`Limit`](crate::Limit) on the growth or on the later amount.
///
/// ```
/// use memory_reporter::{Kind, Report, ReportSet, Units};
///
/// let set = |amount| {
///     let mut set = ReportSet::new();
///     let (process, path, description) = ("Main Process (pid 1)", "explicit/cache", "");
///     set.push(Report { process, path, kind: Kind::Heap, units: Units::Bytes, amount, description });
///     set
/// };
/// let (before, after) = (set(1000), set(1020));
/// about_memory::assert_memory_diff!(before, after, "explicit < +5%", "explicit/cache <= +64 B");
/// about_memory::assert_memory_diff!(before, after, "explicit < 4 KiB");
/// ```
///
/// # Panics
///
/// Panics if a limit does not hold or cannot be parsed, or neither set contains its path. The message lists these
/// limits and shows the text of the diff.
#[macro_export]
macro_rules! assert_memory_diff {
    ($before:expr, $after:expr, $($limit:expr),+ $(,)?) => {
        $crate::__private::check_diff(&$before, &$after, &[$($limit),+])
    };
}

/// Asserts that the collection skipped no value: no lock was held and no cell was borrowed.
///
/// ```
/// about_memory::assert_no_skipped!(memory_reporter::ReportSet::new());
/// ```
///
/// # Panics
///
/// Panics if the collection skipped values; the message lists them.
#[macro_export]
macro_rules! assert_no_skipped {
    ($set:expr) => {
        $crate::__private::check_no_skipped(&$set)
    };
}

/// Checks one limit for `assert_memory!`.
#[track_caller]
pub fn check(set: &ReportSet, limit: &str) {
    // This is not a closure, because a panic in a closure would name this file instead of the caller's file.
    let limit = match Limit::absolute(limit) {
        Ok(limit) => limit,
        Err(error) => panic!("{error}"),
    };
    let (path, expected) = (limit.path(), limit.condition());
    let verdict = match limit.check(None, &Forest::new(set)) {
        Ok(verdict) if verdict.holds => return,
        Ok(verdict) => verdict,
        Err(LimitError::NotReported(_)) => {
            panic!("no report has the path {path}, expected {expected}\n\n{}", crate::text(set))
        }
        Err(error) => panic!("{error}\n\n{}", crate::text(set)),
    };
    let amount = verdict.second.unwrap_or(0);
    let mut shown = String::new();
    number::push_amount(&mut shown, amount, verdict.units, true);
    if verdict.units == Units::Bytes {
        shown.push_str(" (");
        number::push_amount(&mut shown, amount, Units::Bytes, false);
        shown.push(')');
    }
    panic!("{path} is {shown}, expected {expected}\n\n{}", crate::text(set));
}

/// Checks limits for `assert_memory_diff!`.
#[track_caller]
pub fn check_diff(before: &ReportSet, after: &ReportSet, limits: &[&str]) {
    let limits: Vec<Limit> = match limits.iter().map(|limit| limit.parse()).collect() {
        Ok(limits) => limits,
        Err(error) => panic!("{error}"),
    };
    let verdicts = match crate::check_limits(before, after, &DiffOptions::new(), &limits) {
        Ok(verdicts) => verdicts,
        Err(error) => panic!("{error}"),
    };
    let mut wrong = String::new();
    for (limit, verdict) in limits.iter().zip(verdicts) {
        // Writing to a string does not fail.
        let _ = match verdict {
            Ok(verdict) if verdict.holds => continue,
            Ok(verdict) => write!(wrong, "\n  not {limit}: {verdict}"),
            Err(error) => write!(wrong, "\n  {error}"),
        };
    }
    let diff = || crate::diff(before, after);
    assert!(wrong.is_empty(), "memory has changed:{wrong}\n\n{}", crate::text(&diff()));
}

/// Checks a set for `assert_no_skipped!`.
#[track_caller]
pub fn check_no_skipped(set: &ReportSet) {
    let mut list = String::new();
    for skipped in set.skipped() {
        // Writing to a string does not fail.
        let _ = write!(list, "\n  {skipped}");
    }
    assert!(list.is_empty(), "some memory was not measured:{list}");
}
