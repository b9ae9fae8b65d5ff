//! The macros that make reports, and that define and register reporters.

use super::memory_reporter::MemoryReporter;
use super::reports::Reports;

/// Adds one report to a [`Reports`]. If path, kind, units and description are literals, the compiler checks their
/// rules.
///
/// - `collect_report!(out, PATH, Heap, &VALUE, DESCRIPTION)` measures a value.
/// - `collect_report!(out, PATH, HeapTree, DEPTH, &VALUE, DESCRIPTION)` measures a value field by field, as
///   [`Reports::heap_tree`] does.
/// - `collect_report!(out, PATH, KIND, UNITS, AMOUNT, DESCRIPTION)` adds an amount of any integer type. `KIND` and
///   `UNITS` are variants of [`Kind`](crate::Kind) and [`Units`](crate::Units).
///
/// `PATH` is a literal, or any expression that returns text. Such a text is checked at run time.
///
/// ```
/// use memory_reporter::{MemoryReporter, Reports, collect_report};
///
/// struct Sessions(Vec<(u32, String)>);
///
/// impl MemoryReporter for Sessions {
///     fn collect_reports(&self, out: &mut Reports) {
///         for (id, text) in &self.0 {
///             let path = format!("explicit/sessions/session(id={id})");
///             collect_report!(out, path, Heap, text, "Memory used by a session's text.");
///         }
///         collect_report!(out, "session-count", Other, Count, self.0.len(), "The number of sessions.");
///     }
/// }
/// ```
#[macro_export]
macro_rules! collect_report {
    ($out:expr, $path:literal, Heap, $value:expr, $description:literal $(,)?) => {{
        // The check is an item, since `cargo check` does not evaluate a const block.
        const _: () = {
            $crate::__private::assert_path($path);
            $crate::__private::assert_description($description);
        };
        $crate::Reports::heap($out, $path, $value, $description);
    }};
    ($out:expr, $path:literal, HeapTree, $depth:expr, $value:expr, $description:literal $(,)?) => {{
        const _: () = {
            $crate::__private::assert_path($path);
            $crate::__private::assert_description($description);
        };
        $crate::Reports::heap_tree($out, $path, $value, $depth, $description);
    }};
    ($out:expr, $path:literal, $kind:ident, $units:ident, $amount:expr, $description:literal $(,)?) => {{
        const _: () = {
            $crate::__private::assert_path($path);
            $crate::__private::assert_kind($path, $crate::Kind::$kind, $crate::Units::$units);
            $crate::__private::assert_description($description);
        };
        $crate::Reports::report(
            $out,
            $path,
            $crate::Kind::$kind,
            $crate::Units::$units,
            $crate::__private::amount($amount),
            $description,
        );
    }};
    ($out:expr, $path:expr, Heap, $value:expr, $description:literal $(,)?) => {{
        const _: () = $crate::__private::assert_description($description);
        $crate::Reports::heap($out, $path, $value, $description);
    }};
    ($out:expr, $path:expr, HeapTree, $depth:expr, $value:expr, $description:literal $(,)?) => {{
        const _: () = $crate::__private::assert_description($description);
        $crate::Reports::heap_tree($out, $path, $value, $depth, $description);
    }};
    ($out:expr, $path:expr, $kind:ident, $units:ident, $amount:expr, $description:literal $(,)?) => {{
        const _: () = {
            $crate::__private::assert_kind("", $crate::Kind::$kind, $crate::Units::$units);
            $crate::__private::assert_description($description);
        };
        $crate::Reports::report(
            $out,
            $path,
            $crate::Kind::$kind,
            $crate::Units::$units,
            $crate::__private::amount($amount),
            $description,
        );
    }};
    ($out:expr, $path:expr, HeapTree, $value:expr, $description:literal $(,)?) => {
        ::core::compile_error!("`HeapTree` takes a depth and a value: `HeapTree, DEPTH, &VALUE`")
    };
    ($out:expr, $path:expr, $kind:ident, $value:expr, $description:literal $(,)?) => {
        ::core::compile_error!(::core::concat!(
            "`",
            ::core::stringify!($kind),
            "` takes units and an amount: `",
            ::core::stringify!($kind),
            ", Bytes, AMOUNT`; only `Heap` and `HeapTree` measure a value"
        ))
    };
}

/// Registers a reporter for the whole program at link time.
///
/// The argument is a constant expression, or a static of a type that is `MemoryReporter + Send + Sync`, such as a
/// static `Mutex` around a reporter. The linker may drop a crate that no code uses; its reporters are then missing.
/// Use the crate, for example by `use the_crate as _;`.
///
/// ```
/// use memory_reporter::{MemoryReporter, Reports, register_reporter};
///
/// struct Fonts;
///
/// impl MemoryReporter for Fonts {
///     fn collect_reports(&self, out: &mut Reports) {
///         # let _ = out;
///         // ...
///     }
/// }
///
/// register_reporter!(Fonts);
/// ```
#[macro_export]
macro_rules! register_reporter {
    ($reporter:expr) => {
        $crate::__private::inventory::submit! {
            $crate::__private::StaticReporter::new(&$reporter)
        }
    };
}

/// Defines and registers a reporter with one report. The arguments are the arguments of
/// [`collect_report!`](crate::collect_report) without `out`.
///
/// ```
/// use std::sync::Mutex;
///
/// static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());
///
/// memory_reporter::define_reporter!("explicit/names", Heap, &NAMES, "Memory used by the names.");
///
/// NAMES.lock().unwrap().push("a name".into());
/// let reports = memory_reporter::collect_reports(&Default::default());
/// let names = reports.iter().find(|report| report.path == "explicit/names").unwrap();
/// assert!(names.amount >= 24 + 6);
/// ```
#[macro_export]
macro_rules! define_reporter {
    ($path:literal, $($rest:tt)+) => {
        // The macro defines no item, since the item's name could hide a name in the arguments.
        $crate::register_reporter!($crate::__private::OneReport::new($path, |out| {
            $crate::collect_report!(out, $path, $($rest)+);
        }));
    };
}

/// The reporter that [`define_reporter!`](crate::define_reporter) registers.
#[doc(hidden)]
#[derive(Debug)]
pub struct OneReport {
    path: &'static str,
    collect: fn(&mut Reports),
}

impl OneReport {
    pub const fn new(path: &'static str, collect: fn(&mut Reports)) -> Self {
        Self { path, collect }
    }
}

impl MemoryReporter for OneReport {
    fn name(&self) -> &str {
        self.path
    }

    fn collect_reports(&self, out: &mut Reports) {
        (self.collect)(out);
    }
}
