//! The rules of a report, each with its message. The macros check literals at compile time; [`Reports`](crate::Reports)
//! checks everything else at run time.
//!
//! Source: the interface text of Firefox's `nsIMemoryReporter.idl` and "Memory reporting" on MDN.

use memory_report::{Kind, Units};

/// The fault of `path`; `None` if the path keeps all rules.
pub(crate) const fn path_fault(path: &str) -> Option<&'static str> {
    let bytes = path.as_bytes();
    if bytes.is_empty() {
        return Some("the path is empty");
    }
    let mut segment = 0;
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'/' if segment == 0 => {
                return Some(if i == 0 {
                    "the path starts with `/`"
                } else {
                    "the path has an empty segment: `//`"
                });
            }
            b'/' => segment = 0,
            0..0x20 | 0x7f => return Some("the path has a control character"),
            _ => segment += 1,
        }
        i += 1;
    }
    if segment == 0 {
        return Some("the path ends with `/`");
    }
    if bytes.len() == EXPLICIT.len() && starts_with(bytes, EXPLICIT) {
        return Some(
            "`explicit` is the tree, not a report: write the path of a part, as in `explicit/cache`",
        );
    }
    if is_or_is_below(bytes, b"explicit/heap-unclassified") {
        return Some(
            "`explicit/heap-unclassified` is the memory that no reporter claims: report another path",
        );
    }
    None
}

/// The fault of a path that looks like a path of the tree `explicit`, but is not. A collection keeps such a report.
pub(crate) const fn look_alike_fault(path: &str) -> Option<&'static str> {
    let bytes = path.as_bytes();
    let is_cut = bytes.len() == EXPLICIT.len()
        || bytes.len() > EXPLICIT.len() && matches!(bytes[EXPLICIT.len()], b'/' | b'\\');
    if !is_cut || is_explicit(path) {
        return None;
    }
    let mut i = 0;
    while i < EXPLICIT.len() {
        if bytes[i].to_ascii_lowercase() != EXPLICIT[i] {
            return None;
        }
        i += 1;
    }
    Some(
        "the path looks like a path of the tree `explicit`, but is not: write `explicit/`, in lower case and with `/`",
    )
}

/// The fault of a kind at a path outside of `explicit/`. A collection keeps such a report.
pub(crate) const fn outside_kind_fault(path: &str, kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Heap | Kind::NonHeap if !is_explicit(path) => Some(
            "a report outside of `explicit/` must be of kind Other: only that tree adds up heap and mappings",
        ),
        _ => None,
    }
}

/// The fault of kind and units at this path; `None` if they keep all rules.
pub(crate) const fn kind_fault(path: &str, kind: Kind, units: Units) -> Option<&'static str> {
    if is_explicit(path) {
        if matches!(kind, Kind::Other) {
            return Some("a report under `explicit/` must be of kind Heap or NonHeap");
        }
        if !matches!(units, Units::Bytes) {
            return Some("a report under `explicit/` must be in units of Bytes");
        }
    }
    match (kind, units) {
        (Kind::Heap, Units::Count | Units::CountCumulative | Units::Percentage) => {
            Some("a report of kind Heap must be in units of Bytes")
        }
        (Kind::NonHeap, Units::Count | Units::CountCumulative | Units::Percentage) => {
            Some("a report of kind NonHeap must be in units of Bytes")
        }
        _ => None,
    }
}

/// The fault of `description`; `None` if it keeps all rules.
pub(crate) const fn description_fault(description: &str) -> Option<&'static str> {
    let bytes = description.as_bytes();
    if bytes.is_empty() {
        return Some("the description is empty: say in a full sentence what is measured");
    }
    if bytes[bytes.len() - 1] != b'.' {
        return Some("the description does not end in a full stop: write full sentences");
    }
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b' ' {
            return None;
        }
        i += 1;
    }
    Some("the description is one word: say in a full sentence what is measured")
}

/// Whether `path` is in the tree `explicit`.
pub(crate) const fn is_explicit(path: &str) -> bool {
    starts_with(path.as_bytes(), b"explicit/")
}

const EXPLICIT: &[u8] = b"explicit";

/// Compares whole segments, so `a/bc` is not below `a/b`.
const fn is_or_is_below(path: &[u8], root: &[u8]) -> bool {
    starts_with(path, root) && (path.len() == root.len() || path[root.len()] == b'/')
}

const fn starts_with(bytes: &[u8], start: &[u8]) -> bool {
    if bytes.len() < start.len() {
        return false;
    }
    let mut i = 0;
    while i < start.len() {
        if bytes[i] != start[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Stops the compilation if the path breaks a rule, with the rule as the message.
pub const fn assert_path(path: &str) {
    stop_at(path_fault(path));
    stop_at(look_alike_fault(path));
}

/// Stops the compilation if kind and units break a rule, with the rule as the message. `path` is empty if it is known
/// only at run time.
pub const fn assert_kind(path: &str, kind: Kind, units: Units) {
    stop_at(kind_fault(path, kind, units));
    if !path.is_empty() {
        stop_at(outside_kind_fault(path, kind));
    }
}

/// Stops the compilation if the description breaks a rule, with the rule as the message.
pub const fn assert_description(description: &str) {
    stop_at(description_fault(description));
}

const fn stop_at(fault: Option<&'static str>) {
    if let Some(fault) = fault {
        panic!("{}", fault);
    }
}

/// An integer that can be the amount of a report.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an amount",
    label = "not an integer",
    note = "an amount is an integer; a percentage is in hundredths of a percent",
    note = "to measure a value, leave the units out: `Heap, &VALUE`"
)]
pub trait IntegerAmount {
    fn amount(self) -> i64;
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl IntegerAmount for $integer {
            #[inline]
            fn amount(self) -> i64 {
                memory_report::amount(self)
            }
        }
    )*};
}
integers!(bool u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

/// Converts an integer into the amount of a report. An integer outside of the range of `i64` becomes the nearest `i64`.
pub fn amount(amount: impl IntegerAmount) -> i64 {
    amount.amount()
}
