//! [`Reports`]: where a reporter puts its reports.

use core::mem;
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use memory_report::{Kind, Report, ReportSet, SkipReason, Units, Warning, WarningKind};

use crate::engine_abi::{self, Marks, PointerFault, ReporterMarker};
use crate::measure::{
    AddSizeOf, Addresses, ErasedReading, FaultyPointers, MOST_BYTES, MallocSizeOf, MallocSizeOfOps,
    MeasuredReading, WalkObserver as _, WalkState, size_tree,
};

use super::amounts;
use super::claims::{ByAmount, ReporterClaims};
use super::conventions::{
    description_fault, is_explicit, kind_fault, look_alike_fault, outside_kind_fault, path_fault,
};
use super::stated::{StatedAmounts, with_stated};

/// Takes the reports of one reporter, and measures values for it.
///
/// [`collect_report!`](crate::collect_report) calls [`heap`](Self::heap) and
/// [`report`](Self::report) with literals checked while compiling.
#[derive(Debug)]
pub struct Reports {
    reporter: String,
    process: String,
    anonymize: bool,
    /// Paths that the process's own rows have.
    taken: Arc<[String]>,
    set: ReportSet,
    /// The state of the reports under `explicit/`: only these count shared blocks once.
    state: WalkState,
    /// The bytes that values state of themselves in the walk that ended last.
    stated: StatedAmounts,
    /// With DMD.
    marker: Option<ReporterMarker>,
    /// With DMD: what the reports claim.
    claims: Option<ReporterClaims>,
    /// With DMD: whether it has every live block of the program's allocator.
    records_all: bool,
}

impl Reports {
    pub(crate) fn new(
        reporter: &str,
        process: &str,
        anonymize: bool,
        taken: &Arc<[String]>,
        counted: &Arc<Addresses>,
        marker: Option<ReporterMarker>,
    ) -> Self {
        // The name of the reporter is a block of the program's allocator, unless it is empty.
        let reporter = reporter.to_owned();
        let records_all = engine_abi::records(reporter.as_ptr());
        Self {
            reporter,
            process: process.to_owned(),
            anonymize,
            taken: Arc::clone(taken),
            set: ReportSet::new(),
            state: WalkState::after(counted),
            stated: StatedAmounts::new(),
            marker,
            claims: marker.map(|_| ReporterClaims::begin()),
            records_all,
        }
    }

    /// The reporter has panicked: removes its marks, since its reports are left out.
    pub(crate) fn withdraw(&self) {
        if let (Some(marker), Some(claims)) = (self.marker, &self.claims) {
            marker.withdraw(claims.claimed());
        }
    }

    pub(crate) fn into_parts(self) -> (ReportSet, WalkState, Vec<ByAmount>) {
        (self.set, self.state, self.claims.map(ReporterClaims::into_by_amount).unwrap_or_default())
    }

    /// Whether the reporter must leave private data (user names, file names, URLs, content) out of paths and
    /// descriptions, and write `<anonymized-N>` in its place.
    pub fn anonymize(&self) -> bool {
        self.anonymize
    }

    /// Measures `value` and reports its bytes: as [`Kind::Heap`] under `explicit/`, elsewhere as [`Kind::Other`].
    ///
    /// The bytes are usable ones if the program declared its allocator, otherwise computed. Under `explicit/` a shared
    /// block that an earlier report of this collection counted adds nothing.
    pub fn heap<T: MallocSizeOf + ?Sized>(&mut self, path: impl AsRef<str>, value: &T, description: &str) {
        let path = path.as_ref();
        if self.refuses(path) {
            return;
        }
        let bytes = self.measured(path, &mut |state, marks| {
            finish(state, marks, &mut |ops| value.size_of_excluding_this(ops))
        });
        self.push_measured(path, bytes, description);
    }

    /// Reports the bytes that `walk` measures; otherwise as [`heap`](Self::heap).
    pub fn heap_with(
        &mut self,
        path: impl AsRef<str>,
        walk: impl FnOnce(&mut MallocSizeOfOps<ErasedReading<'_>>) -> usize,
        description: &str,
    ) {
        let path = path.as_ref();
        if self.refuses(path) {
            return;
        }
        let mut walk = Some(walk);
        let bytes = self.measured(path, &mut |state, marks| {
            finish(state, marks, &mut |ops| walk.take().map_or(0, |walk| ops.erased(walk)))
        });
        self.push_measured(path, bytes, description);
    }

    /// Measures `value` and reports its bytes field by field, `depth` levels deep, without code for each field:
    /// `explicit/cache` gives `explicit/cache/entries/(elements)`. The kind is that of [`heap`](Self::heap).
    ///
    /// The report of the last level includes all deeper levels; the report `(itself)` has the bytes of an inner node's
    /// own blocks. So the reports add up to the one of [`heap`](Self::heap), and none lies below another. At depth 0
    /// there is only that report. Shared blocks count as there, names are those of [`SizeTree`](crate::measure::SizeTree), and
    /// parts without bytes have no report.
    ///
    /// ```standalone_crate
    /// use memory_reporter::{Collection, MallocSizeOf, MemoryReporter, Reports};
    ///
    /// #[derive(MallocSizeOf)]
    /// struct Cache {
    ///     names: Vec<String>,
    ///     bytes: Vec<u8>,
    /// }
    ///
    /// impl MemoryReporter for Cache {
    ///     fn collect_reports(&self, out: &mut Reports) {
    ///         out.heap_tree("explicit/cache", self, 1, "Memory used by the cache.");
    ///     }
    /// }
    ///
    /// let cache = Cache { names: vec!["ab".into()], bytes: vec![0; 10] };
    /// let set = Collection::new().with(&cache).collect();
    /// let reports: Vec<_> = set.iter().map(|report| (report.path, report.amount)).collect();
    /// assert_eq!(reports, [("explicit/cache/names", 24 + 2), ("explicit/cache/bytes", 10)]);
    /// ```
    pub fn heap_tree<T: MallocSizeOf + ?Sized>(
        &mut self,
        path: impl AsRef<str>,
        value: &T,
        depth: usize,
        description: &str,
    ) {
        let path = path.as_ref();
        if self.refuses(path) {
            return;
        }
        let mut tree = None;
        self.measured(path, &mut |state, marks| {
            let (grown, state) = size_tree::grow(value, state, marks);
            (grown.map(|grown| tree.insert(grown).total().usable), state)
        });
        if let Some(tree) = tree {
            tree.for_each_path(path, depth, |path, node, bytes| {
                // No value states the bytes of a node's own blocks.
                let stated = if bytes == node.total().usable { node.stated() } else { StatedAmounts::new() };
                let bytes = memory_report::amount(bytes);
                let kind = measured_kind(path, Kind::Heap);
                self.push(path, kind, Units::Bytes, bytes, &with_stated(description, &stated));
            });
        }
    }

    /// Measures `value` into several numbers, to be reported one by one under `explicit/` as
    /// [`Kind::Heap`]; a shared block that an earlier report of this collection counted adds nothing.
    ///
    /// ```
    /// use memory_reporter::{MallocSizeOf, MemoryReporter, Reports, collect_report};
    ///
    /// #[derive(Default)]
    /// struct Sizes {
    ///     keys: usize,
    ///     values: usize,
    /// }
    ///
    /// #[derive(MallocSizeOf)]
    /// #[malloc_size_of(sizes = Sizes)]
    /// struct Cache {
    ///     #[malloc_size_of(add_to = keys)]
    ///     keys: Vec<String>,
    ///     #[malloc_size_of(add_to = values)]
    ///     values: Vec<u64>,
    /// }
    ///
    /// impl MemoryReporter for Cache {
    ///     fn collect_reports(&self, out: &mut Reports) {
    ///         let sizes: Sizes = out.split(self);
    ///         collect_report!(out, "explicit/cache/keys", Heap, Bytes, sizes.keys, "Memory used by keys.");
    ///         collect_report!(out, "explicit/cache/values", Heap, Bytes, sizes.values, "Memory used by values.");
    ///     }
    /// }
    /// ```
    #[must_use = "what is measured counts as reported"]
    pub fn split<S: Default, T: AddSizeOf<S> + ?Sized>(&mut self, value: &T) -> S {
        let mut sizes = S::default();
        // The engine marks blocks for the reporter, since the paths are not known here.
        let marks = Marks::for_path(&self.reporter, self.records_all);
        let state = self.begin_walk();
        let walked = finish(state, marks, &mut |ops| {
            value.add_size_of_excluding_this(ops, &mut sizes);
            0
        });
        self.end_walk(marks, walked);
        self.warn_of_faults("what `split` measures");
        if let Some(claims) = &mut self.claims {
            claims.add_measured(marks, memory_report::amount(self.state.named()));
        }
        sizes
    }

    fn measured(
        &mut self,
        path: &str,
        measure: &mut dyn FnMut(WalkState, Option<Marks>) -> WalkResult,
    ) -> i64 {
        if !is_explicit(path) {
            let (bytes, mut state) = measure(WalkState::default(), None);
            self.stated = state.take_stated();
            self.state.add_skipped(state);
            let bytes = bytes.unwrap_or_else(|panic| resume_unwind(panic));
            return memory_report::amount(self.believable(path, bytes));
        }
        let marks = Marks::for_path(path, self.records_all);
        let state = self.begin_walk();
        let bytes = self.end_walk(marks, measure(state, marks));
        self.warn_of_faults(&format!("`{}`", path.escape_debug()));
        self.stated = self.state.take_stated();
        let bytes = memory_report::amount(self.believable(path, bytes));
        if let Some(claims) = &mut self.claims {
            claims.claim_measured(path, marks, bytes, memory_report::amount(self.state.named()));
        }
        bytes
    }

    /// The bytes that a report claims of measured ones: at most as many as a process can have.
    fn believable(&mut self, path: &str, bytes: usize) -> usize {
        if bytes >= MOST_BYTES {
            let fault =
                "an impl of `MallocSizeOf` returns more bytes than a process can have; the amount is cut off";
            self.warn(WarningKind::ReportKept, path, fault);
        }
        bytes.min(MOST_BYTES)
    }

    /// The state of earlier reports, for the walk of another one.
    fn begin_walk(&mut self) -> WalkState {
        self.state.begin_report();
        mem::take(&mut self.state)
    }

    /// Takes the state back after a walk. A panic continues, but the reporter may catch it; then the reports before
    /// and after it count shared blocks as if there had been no such walk.
    fn end_walk(&mut self, marks: Option<Marks>, (bytes, state): WalkResult) -> usize {
        self.state = state;
        bytes.unwrap_or_else(|panic| {
            self.state.forget_report();
            if let (Some(marker), Some(marks)) = (self.marker, marks) {
                marker.withdraw_report(marks);
            }
            resume_unwind(panic)
        })
    }

    /// Whether a report of heap bytes must be left out; warns if so. The answer must come before the walk: the blocks
    /// that a left-out report counted would be missing from the next report.
    fn refuses(&mut self, path: &str) -> bool {
        let fault = path_fault(path);
        if let Some(fault) = fault {
            self.warn(WarningKind::ReportDropped, path, fault);
        }
        fault.is_some()
    }

    /// Reports the resident bytes of a mapping: a file that `memmap2` maps, an arena or the code of a JIT compiler that the
    /// program maps itself. The kind is [`Kind::NonHeap`] under `explicit/`, elsewhere [`Kind::Other`]. It never reads the
    /// mapping.
    ///
    /// The amount is [`amounts::resident_of`](crate::amounts::resident_of). Where the system does not know it, there is
    /// no report but a warning.
    ///
    /// ```
    /// use memory_reporter::{Collection, Kind, MemoryReporter, Reports};
    ///
    /// struct Index {
    ///     file: &'static [u8], // or a `memmap2::Mmap`
    /// }
    ///
    /// impl MemoryReporter for Index {
    ///     fn collect_reports(&self, out: &mut Reports) {
    ///         out.mapped("explicit/index/mapped", self.file, "Resident part of the index's file.");
    ///     }
    /// }
    ///
    /// let set = Collection::new().with(&Index { file: b"bytes of the program's own file" }).collect();
    /// assert!(set.iter().all(|report| report.kind == Kind::NonHeap));
    /// ```
    pub fn mapped<T>(&mut self, path: impl AsRef<str>, mapping: &[T], description: &str) {
        let path = path.as_ref();
        match amounts::resident_of(mapping) {
            Some(bytes) => {
                let kind = measured_kind(path, Kind::NonHeap);
                self.push(path, kind, Units::Bytes, memory_report::amount(bytes), description);
            }
            None => self.unavailable(path, "the system does not tell which pages are in memory"),
        }
    }

    /// Reports any amount. The collection leaves out a report with a bad path, kind or units, or with the path of a row of
    /// the process, such as `resident`. It keeps a report with a bad description or a negative amount, and one of kind
    /// Heap or `NonHeap` outside of `explicit/`. Each fault becomes a warning in the result.
    pub fn report(
        &mut self,
        path: impl AsRef<str>,
        kind: Kind,
        units: Units,
        amount: i64,
        description: &str,
    ) {
        let path = path.as_ref();
        if let Some(claims) = &mut self.claims
            && kind == Kind::Heap
            && is_explicit(path)
            && path_fault(path).or(kind_fault(path, kind, units)).is_none()
        {
            claims.claim_amount(path, amount);
        }
        self.push(path, kind, units, amount, description);
    }

    /// With DMD: what marks blocks for a path.
    pub(crate) fn marks_of(&self, path: &str) -> Option<Marks> {
        // Another thread may free a block between two questions about it.
        self.marker.and_then(|_| Marks::for_path(path, false))
    }

    /// Reports the bytes of a tag. Blocks of `marked` of these bytes are marked for its path.
    pub(crate) fn heap_of_tag(
        &mut self,
        path: &str,
        marks: Option<Marks>,
        bytes: i64,
        marked: i64,
        description: &str,
    ) {
        if let Some(claims) = &mut self.claims {
            claims.claim_measured(path, marks, bytes, marked);
        }
        self.push(path, Kind::Heap, Units::Bytes, bytes, description);
    }

    /// Reports bytes that a walk measured. The description also gives the bytes that values state of themselves.
    fn push_measured(&mut self, path: &str, bytes: i64, description: &str) {
        let stated = with_stated(description, &mem::take(&mut self.stated));
        // A fault in the program's own part must not hide behind the sentence about stated bytes.
        let description = if description_fault(description).is_some() { description } else { &stated };
        self.push(path, measured_kind(path, Kind::Heap), Units::Bytes, bytes, description);
    }

    fn push(&mut self, path: &str, kind: Kind, units: Units, amount: i64, description: &str) {
        if let Some(fault) = path_fault(path).or(kind_fault(path, kind, units)) {
            return self.warn(WarningKind::ReportDropped, path, fault);
        }
        if self.taken.iter().any(|taken| taken == path) {
            let fault = "the process has a row of this name already, to which the amount would be added: choose another path";
            return self.warn(WarningKind::ReportDropped, path, fault);
        }
        if let Some(fault) = look_alike_fault(path).or(outside_kind_fault(path, kind)) {
            self.warn(WarningKind::ReportKept, path, fault);
        }
        if let Some(fault) = description_fault(description) {
            self.warn(WarningKind::ReportKept, path, fault);
        }
        if amount < 0 {
            self.warn(WarningKind::ReportKept, path, "the amount is negative");
        }
        self.set.push(Report { process: &self.process, path, kind, units, amount, description });
    }

    /// Records a part that this reporter could not look at.
    pub(super) fn skip<T: ?Sized>(&mut self, reason: SkipReason) {
        self.state.skip(reason, core::any::type_name::<T>());
    }

    /// With DMD: warns of the pointers of the walk that ended last that are not those of blocks.
    fn warn_of_faults(&mut self, what: &str) {
        for FaultyPointers { fault, type_name, times } in self.state.take_faults() {
            let why = match fault {
                PointerFault::NotHeap => "is in no heap block that DMD knows (not-heap)",
                PointerFault::Interior => "is inside a heap block, not at its start (interior)",
                PointerFault::Freed => "is to a heap block that was freed (freed)",
            };
            let again = if times == 1 { String::new() } else { format!("; {times} such pointers") };
            let message = format!("{what}: the pointer to `{type_name}` {why}, and counts as 0 bytes{again}");
            self.set.warn(Warning::new(WarningKind::ReportKept, self.reporter.clone(), message));
        }
    }

    fn warn(&mut self, kind: WarningKind, path: &str, fault: &str) {
        let message = format!("`{}`: {fault}", path.escape_debug());
        self.set.warn(Warning::new(kind, self.reporter.clone(), message));
    }

    /// Warns that something could not be measured.
    pub fn unavailable(&mut self, what: &str, why: &str) {
        let message = format!("{what}: {why}");
        self.set.warn(Warning::new(WarningKind::Unavailable, self.reporter.clone(), message));
    }
}

/// The kind of measured bytes at this path; `kind` is that under `explicit/`.
fn measured_kind(path: &str, kind: Kind) -> Kind {
    if is_explicit(path) { kind } else { Kind::Other }
}

/// The bytes of a walk, unless it panicked, and its state.
type WalkResult = (thread::Result<usize>, WalkState);

/// Walks by the reading of reports. It is not generic: it would be compiled again for each reported type.
fn finish(
    state: WalkState,
    marks: Option<Marks>,
    walk: &mut dyn FnMut(&mut MallocSizeOfOps<MeasuredReading>) -> usize,
) -> WalkResult {
    let mut ops = MallocSizeOfOps::new(MeasuredReading::best(marks, state));
    let bytes = catch_unwind(AssertUnwindSafe(|| walk(&mut ops)));
    (bytes, mem::take(ops.into_reading().state()))
}
