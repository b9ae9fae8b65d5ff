//! The trait [`MemoryReporter`]: a source of reports.

use super::reports::Reports;

/// A source of reports. One reporter may make any number of reports.
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
/// A pointer to a reporter is itself a reporter, and so are cells and locks around a reporter: `&T`, `Box`, `Rc`,
/// `Arc`, `Option`, `RefCell`, `OnceCell`, `LazyCell`, `Mutex`, `RwLock`, `OnceLock`, `LazyLock`. With the features
/// of these crates, the types of `once_cell`, `parking_lot` and `tokio` are reporters, too. A collection never waits
/// for a lock and never initializes a value. It warns about a mutably borrowed or locked value, reads through a
/// poisoned lock, and reports nothing for a cell without a value. (Before Rust 1.94, std does not show whether a
/// `LazyLock` or `LazyCell` has a value: a collection warns about each of them.) A pointer has the name of its
/// reporter. A cell or lock has the name of the type inside.
///
/// ```
/// use std::sync::{Mutex, OnceLock};
/// # use memory_reporter::{MallocSizeOf, MemoryReporter, Reports, collect_report};
/// # #[derive(MallocSizeOf)]
/// # struct Cache(Vec<u8>);
/// # impl MemoryReporter for Cache {
/// #     fn collect_reports(&self, out: &mut Reports) {
/// #         collect_report!(out, "explicit/cache", Heap, self, "Memory used by the cache.");
/// #     }
/// # }
///
/// static CACHE: OnceLock<Mutex<Cache>> = OnceLock::new();
/// memory_reporter::register_reporter!(CACHE);
/// # CACHE.get_or_init(|| Mutex::new(Cache(vec![0; 100])));
/// # let set = memory_reporter::collect_reports(&Default::default());
/// # assert!(set.iter().any(|report| report.path == "explicit/cache" && report.amount >= 100));
/// ```
///
/// If a report breaks a rule, the result contains a warning. If a reporter panics, only its own reports are lost.
pub trait MemoryReporter {
    /// The reporter's name in warnings and times; by default the name of the type.
    /// For a registered reporter, the method is called once: at registration or, for a linked reporter, in the first
    /// collection. It must not start a collection. If it panics, the text of the panic becomes the name, with a
    /// warning.
    fn name(&self) -> &str {
        core::any::type_name::<Self>()
    }

    /// Adds this reporter's reports to `out`. A collection may call the method at any time and, if the reporter is
    /// registered globally, on any thread. The method must not start a collection, nor let another thread start one.
    fn collect_reports(&self, out: &mut Reports);
}
