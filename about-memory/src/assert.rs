//! Assertions about memory for tests. The macros only spell a comparison; the work is done here.

use core::cmp::Ordering;
use core::fmt::Write as _;

use memory_reporter::tree::Forest;
use memory_reporter::{ReportSet, Units};

use crate::number;

/// Asserts how large the amount at a path is, of all processes together: a leaf, an inner node, a
/// line, or `explicit/heap-unclassified`.
///
/// The comparison is one of `<`, `<=`, `>`, `>=` and `==`; the limit a whole number, of `B`, `KiB`,
/// `MiB` or `GiB`, or of what the report counts if there is no unit.
///
/// ```
/// use memory_reporter::{Kind, Report, ReportSet, Units};
///
/// let mut set = ReportSet::new();
/// let (process, path, description) = ("Main Process (pid 1)", "explicit/cache/keys", "");
/// set.push(Report { process, path, kind: Kind::Heap, units: Units::Bytes, amount: 5000, description });
/// about_memory::assert_memory!(set, "explicit/cache" < 10 KiB);
/// about_memory::assert_memory!(set, "explicit/cache" == 5_000 B);
/// ```
///
/// # Panics
///
/// If the comparison fails, or nothing is reported at the path. The message shows the amount and the
/// text of the whole set.
#[macro_export]
macro_rules! assert_memory {
    (@holds $ordering:ident <) => { $ordering.is_lt() };
    (@holds $ordering:ident <=) => { $ordering.is_le() };
    (@holds $ordering:ident >) => { $ordering.is_gt() };
    (@holds $ordering:ident >=) => { $ordering.is_ge() };
    (@holds $ordering:ident ==) => { $ordering.is_eq() };
    ($set:expr, $path:literal $compare:tt $limit:literal) => {
        $crate::assert_memory!(@check $set, $path, $compare, $limit, 1, "")
    };
    ($set:expr, $path:literal $compare:tt $limit:literal B) => {
        $crate::assert_memory!(@check $set, $path, $compare, $limit, 1, " B")
    };
    ($set:expr, $path:literal $compare:tt $limit:literal KiB) => {
        $crate::assert_memory!(@check $set, $path, $compare, $limit, 1 << 10, " KiB")
    };
    ($set:expr, $path:literal $compare:tt $limit:literal MiB) => {
        $crate::assert_memory!(@check $set, $path, $compare, $limit, 1 << 20, " MiB")
    };
    ($set:expr, $path:literal $compare:tt $limit:literal GiB) => {
        $crate::assert_memory!(@check $set, $path, $compare, $limit, 1 << 30, " GiB")
    };
    (@check $set:expr, $path:literal, $compare:tt, $limit:literal, $unit:expr, $name:literal) => {
        $crate::__private::check(
            &$set,
            $path,
            |ordering| $crate::assert_memory!(@holds ordering $compare),
            ($limit as i128) * $unit,
            concat!(stringify!($compare), " ", stringify!($limit), $name),
        )
    };
}

/// Asserts that the collection could look at everything: no lock was held, nothing was borrowed.
///
/// ```
/// about_memory::assert_no_skipped!(memory_reporter::ReportSet::new());
/// ```
///
/// # Panics
///
/// If something was skipped; the message lists it.
#[macro_export]
macro_rules! assert_no_skipped {
    ($set:expr) => {
        $crate::__private::check_no_skipped(&$set)
    };
}

/// What `assert_memory!` does.
#[track_caller]
pub fn check(set: &ReportSet, path: &str, holds: impl FnOnce(Ordering) -> bool, limit: i128, expected: &str) {
    let forest = Forest::new(set);
    let node = forest.processes().iter().find_map(|process| process.node(path));
    let Some((amount, node)) = forest.amount(path).zip(node) else {
        panic!("nothing is reported at {path}, expected {expected}\n\n{}", crate::text(set));
    };
    if holds(amount.cmp(&limit)) {
        return;
    }
    let mut shown = String::new();
    number::push_amount(&mut shown, amount, node.units(), true);
    if node.units() == Units::Bytes {
        shown.push_str(" (");
        number::push_amount(&mut shown, amount, Units::Bytes, false);
        shown.push(')');
    }
    panic!("{path} is {shown}, expected {expected}\n\n{}", crate::text(set));
}

/// What `assert_no_skipped!` does.
#[track_caller]
pub fn check_no_skipped(set: &ReportSet) {
    let mut list = String::new();
    for skipped in set.skipped() {
        // Writing to a string does not fail.
        let _ = write!(list, "\n  {skipped}");
    }
    assert!(list.is_empty(), "some memory was not measured:{list}");
}
