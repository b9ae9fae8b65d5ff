//! The trait [`MemoryReporter`]: a source of reports.

use super::reports::Reports;

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
/// Pointers to a reporter and cells and locks around one are reporters themselves: `&T`, `Box`, `Rc`, `Arc`, `Option`,
/// `RefCell`, `OnceCell`, `LazyCell`, `Mutex`, `RwLock`, `OnceLock`, `LazyLock`, and with the features of their names
/// those of `once_cell`, `parking_lot` and `tokio`. A collection never waits for a lock and initializes nothing: it
/// warns of a value that is borrowed or locked, reads through a poisoned lock, and gets no report of a cell without a
/// value. (Before Rust 1.94, std does not show whether a `LazyLock` or `LazyCell` has one: a collection warns of each.)
/// A pointer has the name of its reporter; a cell or lock is named by the type inside.
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
/// A report that breaks a rule becomes a warning in the result. A reporter that panics loses its own reports and
/// nothing else.
pub trait MemoryReporter {
    /// The reporter's name in warnings and times; by default the name of the type.
    ///
    /// It is asked once: at registration or, for a linked reporter, in the first collection. It must not collect
    /// reports. If it panics, the text of the panic becomes the name, with a warning.
    fn name(&self) -> &str {
        core::any::type_name::<Self>()
    }

    /// Gives this reporter's reports. A collection may call it at any time and, if the reporter is registered globally,
    /// on any thread. It must not collect reports itself, nor let another thread do so.
    fn collect_reports(&self, out: &mut Reports);
}
