//! The trait [`MemoryReporter`] and the macros that define and register reporters.

use crate::reports::Reports;

/// A source of reports. One reporter may give any number of them.
///
/// A singleton can be its own reporter:
///
/// ```
/// use memory_reporter::{Collection, MallocSizeOf, MemoryReporter, Reports, collect_report};
///
/// #[derive(MallocSizeOf)]
/// struct Cache {
///     keys: Vec<String>,
///     values: Vec<u64>,
/// }
///
/// impl MemoryReporter for Cache {
///     fn collect_reports(&self, out: &mut Reports) {
///         collect_report!(out, "explicit/cache/keys", Heap, &self.keys, "Memory used by the cache's keys.");
///         collect_report!(out, "explicit/cache/values", Heap, &self.values, "Memory used by the cache's values.");
///         collect_report!(out, "cache-entries", Other, Count, self.keys.len(), "The number of cached entries.");
///     }
/// }
///
/// let cache = Cache { keys: vec!["a".into()], values: vec![1] };
/// let reports = Collection::new().with(&cache).collect();
/// assert_eq!(reports.len(), 3);
/// ```
///
/// Reports that break a rule become warnings carried with the result. A reporter that panics
/// loses its own reports and nothing else.
pub trait MemoryReporter {
    /// Who reports, for warnings and times; the type's name by default.
    ///
    /// Asked once: when the reporter is registered or, if it is linked, by the first collection. It must not
    /// collect reports; a reporter whose name panics is called after the panic, with a warning.
    fn name(&self) -> &str {
        core::any::type_name::<Self>()
    }

    /// Gives this reporter's reports. May be called on any thread if the reporter is registered
    /// globally, and at any time; must not collect reports itself, nor have another thread do so.
    fn collect_reports(&self, out: &mut Reports);
}

/// Gives one report to a [`Reports`], with the path's, kind's, units' and description's rules
/// checked while compiling wherever they are literals.
///
/// - `collect_report!(out, PATH, Heap, &VALUE, DESCRIPTION)` measures a value.
/// - `collect_report!(out, PATH, HeapTree, DEPTH, &VALUE, DESCRIPTION)` measures it field by field, as
///   [`Reports::heap_tree`] does.
/// - `collect_report!(out, PATH, KIND, UNITS, AMOUNT, DESCRIPTION)` gives an amount of any integer
///   type; `KIND` and `UNITS` are variants of [`Kind`](crate::Kind) and [`Units`](crate::Units).
///
/// `PATH` is a literal or any expression that gives text; the latter is checked at run time.
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
        // An item, since `cargo check` does not evaluate a const block.
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
}

/// Registers a reporter for the whole program while it is linked.
///
/// Takes a constant expression of a type that is `MemoryReporter + Send + Sync`. The linker may
/// drop a crate that is linked but that nothing names; then its reporters are missing. Name the
/// crate, for example by `use the_crate as _;`.
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

/// Defines and registers a reporter of one report. The arguments are those of
/// [`collect_report!`](crate::collect_report) without its first.
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
        // No item is defined here: its name could hide one that the arguments use.
        $crate::register_reporter!($crate::__private::OneReport::new($path, |out| {
            $crate::collect_report!(out, $path, $($rest)+);
        }));
    };
}

/// What [`define_reporter!`](crate::define_reporter) registers.
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

/// Any integer as an amount; what does not fit is cut to the nearest that does.
#[doc(hidden)]
pub fn amount<N: TryInto<i64> + Copy + PartialOrd + Default>(amount: N) -> i64 {
    amount.try_into().unwrap_or(if amount < N::default() { i64::MIN } else { i64::MAX })
}
