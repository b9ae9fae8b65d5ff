//! With DMD: `heap-unclassified` by module, type and function, and the tree `twice-reported`.
//!
//! Invariant: the reports under `explicit/heap-unclassified/` add up to `heap-allocated` minus all other HEAP reports
//! under `explicit/`, to the byte. A view without these reports would compute the same sum.

use memory_report::tree::{BY_AMOUNT, COUNTED_TWICE};
use memory_report::{Kind, Report, ReportSet, Units, path_segment};

use crate::engine_abi::{DarkMatterCollection, DarkMatterRow, RowsOutcome};
use crate::reporting::{ByAmount, amounts, is_explicit};
use crate::small_sort::sort_by;

const UNCLASSIFIED: &str = "explicit/heap-unclassified";
const TWICE: &str = "twice-reported";
/// The crates that allocate memory for the collection itself, named as the engine names crates.
const OURS: [&str; 2] = ["memory_reporter", "memory_report"];
/// A view hides nodes with less than this fraction (1 / `TINY`) of their tree.
const TINY: i64 = 100;
/// A difference of at most this many bytes is attributed to other threads, which allocate while the collection runs.
const NOISE: i64 = 16 << 10;
/// The description of memory that was reported by amount lists at most this many paths.
const NAMED: usize = 5;

/// Ends the collection, and adds the rows of the engine to its reports. `by_amount` contains the claims without
/// blocks. Returns false if the engine cannot attribute memory: another collection ran or a dump was written at the
/// same time.
pub(crate) fn add(
    set: &mut ReportSet,
    process: &str,
    collecting: DarkMatterCollection,
    by_amount: &[ByAmount],
) -> bool {
    let now = amounts::heap_allocated().map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    let (told, rows) = collecting.end();
    if told != RowsOutcome::Told {
        return told == RowsOutcome::None;
    }
    let (twice, unreported): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.twice);
    let mut sums = HeapSums::new(set);
    let twice = ModuleRows::new(twice);
    let counted_twice = twice.total();
    if let Some(allocated) = sums.allocated {
        let mut modules = ModuleRows::new(unreported);
        let own = now.saturating_sub(allocated);
        let own = OURS.iter().fold(own, |own, module| modules.take_from(module, own));
        let by_amount = ClaimedAmounts::new(by_amount);
        let whole = i128::from(sums.unclassified()) - i128::from(modules.total());
        let whole = whole + i128::from(counted_twice) + i128::from(by_amount.total());
        let mut rest = i64::try_from(whole.clamp(i64::MIN.into(), i64::MAX.into())).unwrap_or_default();
        // A small negative rest has a harmless cause: other threads and the collection itself have allocated blocks
        // after `heap-allocated` was read, and in a program without symbols the crates of these blocks are unknown.
        if rest < 0 && -rest <= (modules.total() / TINY).max(NOISE).saturating_add(own.max(0)) {
            rest = -modules.take_from_largest(-rest);
        }
        let mut tree = RowTree { set, process, root: UNCLASSIFIED, kind: Kind::Heap, least: sums.tiny() };
        tree.report(&modules);
        let mut row = |path: &str, amount: i64, description: &str| {
            tree.push(path, amount, description);
        };
        if counted_twice > 0 {
            row(
                COUNTED_TWICE,
                -counted_twice,
                "Minus the memory in `twice-reported`, which was counted twice.",
            );
        }
        if by_amount.total() > 0 {
            row(BY_AMOUNT, -by_amount.total(), &by_amount.describe());
        }
        row(
            "explicit/heap-unclassified/(rest)",
            rest,
            "Memory in heap-allocated that no reporter claims and that DMD has not recorded. Negative if DMD has \
             recorded blocks that heap-allocated does not count, or if other threads allocated meanwhile.",
        );
    }
    sums.explicit = counted_twice;
    RowTree { set, process, root: TWICE, kind: Kind::Other, least: sums.tiny() }.report(&twice);
    true
}

/// The sums of a collection's reports, in bytes.
#[derive(Default)]
struct HeapSums {
    allocated: Option<i64>,
    heap: i64,
    explicit: i64,
}

impl HeapSums {
    fn new(set: &ReportSet) -> Self {
        let mut sums = Self::default();
        for report in set.iter() {
            match report.kind {
                Kind::Other if report.path == "heap-allocated" => sums.allocated = Some(report.amount),
                Kind::Heap if is_explicit(report.path) => sums.heap = sums.heap.saturating_add(report.amount),
                Kind::NonHeap if is_explicit(report.path) => {
                    sums.explicit = sums.explicit.saturating_add(report.amount);
                }
                _ => {}
            }
        }
        sums.explicit = sums.explicit.saturating_add(sums.allocated.unwrap_or(sums.heap));
        sums
    }

    fn unclassified(&self) -> i64 {
        self.allocated.unwrap_or_default().saturating_sub(self.heap)
    }

    /// A function or type with at least this many bytes has its own report. Smaller ones are reported together.
    fn tiny(&self) -> i64 {
        self.explicit / TINY
    }
}

/// The bytes that reporters claimed by amount, without naming blocks; by path.
struct ClaimedAmounts<'a>(Vec<(&'a str, i64)>);

impl<'a> ClaimedAmounts<'a> {
    fn new(claims: &'a [ByAmount]) -> Self {
        let mut amounts: Vec<(&str, i64)> = claims.iter().map(|claim| (&*claim.path, claim.bytes)).collect();
        sort_by(&mut amounts, |(a, _), (b, _)| a.cmp(b));
        amounts.dedup_by(|(path, bytes), (known, sum)| {
            let is_known = path == known;
            if is_known {
                *sum = sum.saturating_add(*bytes);
            }
            is_known
        });
        Self(amounts)
    }

    fn total(&self) -> i64 {
        self.0.iter().fold(0, |total, (_, bytes)| total.saturating_add(*bytes))
    }

    fn describe(&self) -> String {
        let mut largest = self.0.clone();
        sort_by(&mut largest, |(_, a), (_, b)| b.cmp(a));
        let mut paths = String::new();
        for (path, bytes) in largest.iter().take(NAMED) {
            let comma = if paths.is_empty() { "" } else { ", " };
            paths.push_str(&format!("{comma}`{path}` ({bytes} bytes)"));
        }
        if let Some(others @ 1..) = largest.len().checked_sub(NAMED) {
            paths.push_str(&format!(", {others} more"));
        }
        format!(
            "Reporters computed these amounts and named no blocks, so that the blocks are still listed here by \
             crate: {paths}."
        )
    }
}

/// Functions, sorted by module, type and name. Functions whose blocks have an unknown type are first in their module,
/// with an empty type.
struct ModuleRows(Vec<DarkMatterRow>);

impl ModuleRows {
    fn new(mut rows: Vec<DarkMatterRow>) -> Self {
        sort_by(&mut rows, |a, b| a.key().cmp(&b.key()));
        // If a function has several rows, the last row counts.
        rows.dedup_by(|later, earlier| {
            let is_same = later.key() == earlier.key();
            if is_same {
                core::mem::swap(later, earlier);
            }
            is_same
        });
        Self(rows)
    }

    fn total(&self) -> i64 {
        total(&self.0)
    }

    /// Subtracts up to `bytes` from the functions of a module. Returns the bytes that could not be subtracted.
    fn take_from(&mut self, module: &str, mut bytes: i64) -> i64 {
        for function in self.0.iter_mut().filter(|function| function.module == module) {
            let taken = bytes.clamp(0, function.bytes.max(0));
            function.bytes -= taken;
            bytes -= taken;
        }
        bytes
    }

    /// Subtracts up to `bytes` from the largest functions. Returns the bytes that could not be subtracted.
    fn take_from_largest(&mut self, mut bytes: i64) -> i64 {
        while bytes > 0
            && let Some(largest) = self.0.iter_mut().max_by_key(|function| function.bytes)
            && largest.bytes > 0
        {
            let taken = bytes.min(largest.bytes);
            largest.bytes -= taken;
            largest.estimated = true;
            bytes -= taken;
        }
        bytes
    }
}

fn total(functions: &[DarkMatterRow]) -> i64 {
    functions.iter().map(|function| function.bytes).sum()
}

impl DarkMatterRow {
    fn key(&self) -> (&str, &str, &str) {
        (&self.module, self.type_name(), &self.function)
    }

    /// The type of the blocks; empty if it is unknown.
    fn type_name(&self) -> &str {
        if self.twice { "" } else { &self.detail }
    }

    fn mark(&self) -> &'static str {
        mark(self.estimated)
    }

    fn describe(&self) -> String {
        let estimate = if self.estimated { " An estimate from the blocks with a stack." } else { "" };
        // For blocks that were reported twice, the detail is the names of the reporters.
        match &*self.detail {
            reporters if self.twice && !reporters.is_empty() => {
                format!(
                    "Memory that the function allocated and that was reported twice, by {reporters}.{estimate}"
                )
            }
            _ => format!("Memory that the function allocated and that no reporter claims.{estimate}"),
        }
    }
}

/// The prefix of the name of an estimate.
fn mark(estimated: bool) -> &'static str {
    if estimated { "~" } else { "" }
}

/// Adds the rows as reports to a set, as one tree.
struct RowTree<'a> {
    set: &'a mut ReportSet,
    process: &'a str,
    root: &'static str,
    kind: Kind,
    /// A function or type with at least this many bytes has its own report. Smaller ones are reported together.
    least: i64,
}

/// The functions of one node that are reported together.
#[derive(Default)]
struct RestRow {
    bytes: i64,
    functions: usize,
    estimated: bool,
}

impl RowTree<'_> {
    fn report(&mut self, modules: &ModuleRows) {
        for module in modules.0.chunk_by(|a, b| a.module == b.module) {
            let path = format!("{}/{}", self.root, path_segment(&module[0].module));
            let (mut rest, mut shown) = (RestRow::default(), 0);
            for functions in module.chunk_by(|a, b| a.type_name() == b.type_name()) {
                let type_name = functions[0].type_name();
                if type_name.is_empty() {
                    shown += self.report_each(functions, &path, &mut rest);
                } else if total(functions) < self.least {
                    functions.iter().for_each(|function| rest.add(function));
                } else {
                    shown += 1;
                    let path = format!("{path}/{}", path_segment(type_name));
                    let mut rest = RestRow::default();
                    let shown = self.report_each(functions, &path, &mut rest);
                    self.report_rest(&rest, &path, shown);
                }
            }
            self.report_rest(&rest, &path, shown);
        }
    }

    /// Reports the large functions of a node, and returns their number. Adds the other functions to `rest`.
    fn report_each(&mut self, functions: &[DarkMatterRow], path: &str, rest: &mut RestRow) -> usize {
        let mut shown = 0;
        for function in functions {
            if function.bytes < self.least {
                rest.add(function);
                continue;
            }
            shown += 1;
            let path = format!("{path}/{}{}", function.mark(), path_segment(&function.function));
            self.push(&path, function.bytes, &function.describe());
        }
        shown
    }

    /// Reports the other functions of a node, as `(others)`. If the node has no large functions, reports them as the
    /// node itself.
    fn report_rest(&mut self, rest: &RestRow, path: &str, shown: usize) {
        if rest.bytes == 0 {
            return;
        }
        let mark = mark(rest.estimated);
        let path = match path.rsplit_once('/') {
            Some((parent, name)) if shown == 0 => format!("{parent}/{mark}{name}"),
            _ => format!("{path}/{mark}(others)"),
        };
        let plural = if rest.functions == 1 { "" } else { "s" };
        let what =
            if self.kind == Kind::Heap { "that no reporter claims" } else { "that was reported twice" };
        let number = rest.functions;
        let description = format!("Memory that {number} function{plural} allocated and {what}.");
        self.push(&path, rest.bytes, &description);
    }

    fn push(&mut self, path: &str, amount: i64, description: &str) {
        let (process, kind, units) = (self.process, self.kind, Units::Bytes);
        self.set.push(Report { process, path, kind, units, amount, description });
    }
}

impl RestRow {
    fn add(&mut self, function: &DarkMatterRow) {
        self.bytes += function.bytes;
        self.functions += 1;
        self.estimated |= function.estimated;
    }
}
