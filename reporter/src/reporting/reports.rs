//! [`Reports`], which receives the reports of a reporter.

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

/// Receives the reports of one reporter, and measures values for it.
///
/// [`collect_report!`](crate::collect_report) calls [`heap`](Self::heap) and [`report`](Self::report), after the
/// compiler has checked literals.
#[derive(Debug)]
pub struct Reports {
    reporter: String,
    process: String,
    anonymize: bool,
    /// The paths of the built-in reports of kind `Other`. Reports must not use them.
    taken: Arc<[String]>,
    set: ReportSet,
    /// The state of the walks for reports under `explicit/`. Across these reports, a shared block counts once.
    state: WalkState,
    /// The bytes that values stated of themselves in the last walk.
    stated: StatedAmounts,
    /// With DMD: the marker of this reporter.
    marker: Option<ReporterMarker>,
    /// With DMD: the bytes that the reports claim.
    claims: Option<ReporterClaims>,
    /// With DMD: whether the engine records every live block of the program's allocator.
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
        // The copied name is a block of the program's allocator (unless the name is empty), so it can test the engine.
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

    /// Removes the reporter's marks. Call it after a panic of the reporter, since its reports are left out.
    pub(crate) fn withdraw(&self) {
        if let (Some(marker), Some(claims)) = (self.marker, &self.claims) {
            marker.withdraw(claims.claimed());
        }
    }

    pub(crate) fn into_parts(self) -> (ReportSet, WalkState, Vec<ByAmount>) {
        (self.set, self.state, self.claims.map(ReporterClaims::into_by_amount).unwrap_or_default())
    }

    /// Whether the reporter must leave out private data (user names, file names, URLs, content) from paths and
    /// descriptions, and write `<anonymized-N>` instead.
    pub fn anonymize(&self) -> bool {
        self.anonymize
    }

    /// Measures `value` and reports its bytes: as [`Kind::Heap`] under `explicit/`, elsewhere as [`Kind::Other`].
    ///
    /// The bytes are usable bytes if the program declared its allocator, otherwise computed bytes. Under `explicit/`,
    /// a shared block counts 0 bytes if an earlier report of this collection has counted it.
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

    /// Like [`heap`](Self::heap), but reports the bytes that `walk` measures.
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

    /// Measures `value` and reports its bytes field by field, `depth` levels deep: `explicit/cache` results in reports
    /// such as `explicit/cache/entries/(elements)`. The reporter needs no code for each field. The kind is as for
    /// [`heap`](Self::heap).
    ///
    /// A report of the last level includes all deeper levels. The report `(itself)` contains the bytes of an inner
    /// node's own blocks. So the reports add up to the amount of [`heap`](Self::heap), and no report is below
    /// another report. At depth 0 there is one report, the same as from [`heap`](Self::heap). Shared blocks count as in
    /// [`heap`](Self::heap), names are as in [`SizeTree`](crate::measure::SizeTree), and parts without bytes have no
    /// report.
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
                // Bytes of a node's own blocks are never stated.
                let stated = if bytes == node.total().usable { node.stated() } else { StatedAmounts::new() };
                let bytes = memory_report::amount(bytes);
                let kind = measured_kind(path, Kind::Heap);
                self.push(path, kind, Units::Bytes, bytes, &with_stated(description, &stated));
            });
        }
    }

    /// Measures `value` into several numbers. The reporter reports each number under `explicit/` as [`Kind::Heap`]. A
    /// shared block counts 0 bytes if an earlier report of this collection has counted it.
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
    #[must_use = "the measured bytes count as reported"]
    pub fn split<S: Default, T: AddSizeOf<S> + ?Sized>(&mut self, value: &T) -> S {
        let mut sizes = S::default();
        // The engine marks blocks with the reporter's name, since the paths are unknown here.
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

    /// Limits measured bytes to the largest size that a process can have, with a warning.
    fn believable(&mut self, path: &str, bytes: usize) -> usize {
        if bytes >= MOST_BYTES {
            let fault =
                "an impl of `MallocSizeOf` returns more bytes than a process can have; the amount is cut off";
            self.warn(WarningKind::ReportKept, path, fault);
        }
        bytes.min(MOST_BYTES)
    }

    /// Takes the state of earlier reports, for the walk of the next report.
    fn begin_walk(&mut self) -> WalkState {
        self.state.begin_report();
        mem::take(&mut self.state)
    }

    /// Stores the state after a walk. A panic of the walk continues here. If the reporter catches it, other reports
    /// count shared blocks as if this walk had not run.
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

    /// Whether a report of heap bytes must be left out; adds a warning if so. Call it before the walk: if the report
    /// were left out after the walk, the blocks that it counted would be missing from the next report.
    fn refuses(&mut self, path: &str) -> bool {
        let fault = path_fault(path);
        if let Some(fault) = fault {
            self.warn(WarningKind::ReportDropped, path, fault);
        }
        fault.is_some()
    }

    /// Reports the resident bytes of a mapping: a file that `memmap2` maps, an arena, or code of a JIT compiler that
    /// the program maps itself. The kind is [`Kind::NonHeap`] under `explicit/`, elsewhere [`Kind::Other`]. The
    /// mapping is not read.
    ///
    /// The amount is [`amounts::resident_of`](crate::amounts::resident_of). If the system does not provide it, the
    /// result contains a warning instead of a report.
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
            None => self.unavailable(path, "the system does not provide the resident pages"),
        }
    }

    /// Reports any amount. The collection leaves out a report with a bad path, kind or units, and a report with the
    /// path of a built-in report, such as `resident`. It keeps a report with a bad description or a negative amount,
    /// and a report of kind Heap or `NonHeap` outside of `explicit/`. Each fault becomes a warning in the result.
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

    /// With DMD: the marks for a path.
    pub(crate) fn marks_of(&self, path: &str) -> Option<Marks> {
        // Pass `false`, not `records_all`: another thread may free a block between two calls about the block, and this
        // is not a fault.
        self.marker.and_then(|_| Marks::for_path(path, false))
    }

    /// Reports the bytes of a tag. `marked` is the number of these bytes whose blocks are marked for the path.
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

    /// Reports bytes that a walk measured. Adds to the description the bytes that values stated of themselves.
    fn push_measured(&mut self, path: &str, bytes: i64, description: &str) {
        let stated = with_stated(description, &mem::take(&mut self.stated));
        // If the program's own description has a fault, the sentence about stated bytes must not hide the fault.
        let description = if description_fault(description).is_some() { description } else { &stated };
        self.push(path, measured_kind(path, Kind::Heap), Units::Bytes, bytes, description);
    }

    fn push(&mut self, path: &str, kind: Kind, units: Units, amount: i64, description: &str) {
        if let Some(fault) = path_fault(path).or(kind_fault(path, kind, units)) {
            return self.warn(WarningKind::ReportDropped, path, fault);
        }
        if self.taken.iter().any(|taken| taken == path) {
            let fault = "the process already has a row of this name, and the amount would be added to it: choose another path";
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

    /// Records a part that this reporter could not access.
    pub(super) fn skip<T: ?Sized>(&mut self, reason: SkipReason) {
        self.state.skip(reason, core::any::type_name::<T>());
    }

    /// With DMD: warns about pointers of the last walk that do not belong to a block.
    fn warn_of_faults(&mut self, what: &str) {
        for FaultyPointers { fault, type_name, times } in self.state.take_faults() {
            let why = match fault {
                PointerFault::NotHeap => "is outside of all blocks that DMD records (not-heap)",
                PointerFault::Interior => "is inside a heap block, not at its start (interior)",
                PointerFault::Freed => "points to a freed heap block (freed)",
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

/// The kind of measured bytes at this path: `kind` under `explicit/`, otherwise `Other`.
fn measured_kind(path: &str, kind: Kind) -> Kind {
    if is_explicit(path) { kind } else { Kind::Other }
}

/// The bytes of a walk, or its panic; and the state of the walk.
type WalkResult = (thread::Result<usize>, WalkState);

/// Runs a walk with a [`MeasuredReading`]. The function is not generic, so that it is compiled only once, not for each
/// reported type.
fn finish(
    state: WalkState,
    marks: Option<Marks>,
    walk: &mut dyn FnMut(&mut MallocSizeOfOps<MeasuredReading>) -> usize,
) -> WalkResult {
    let mut ops = MallocSizeOfOps::new(MeasuredReading::best(marks, state));
    let bytes = catch_unwind(AssertUnwindSafe(|| walk(&mut ops)));
    (bytes, mem::take(ops.into_reading().state()))
}
