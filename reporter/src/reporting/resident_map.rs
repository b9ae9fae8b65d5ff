//! The tree that adds up to `resident`: the resident part of `explicit`, and the other resident bytes of every
//! mapping.
//!
//! Invariant: the reports under `resident-map/` add up to the resident bytes of all mappings. The mapping of a live
//! block is unknown. So the bytes of `explicit` are subtracted first from mappings of the kind `Heap` and then from
//! mappings of the kind `Anonymous`, at most down to 0. Thread stacks in `explicit` are subtracted from the mappings of
//! stacks.

use memory_report::{Kind, ReportSet, Units, amount, path_segment};

use crate::allocator;
use crate::platform::{self, Mapping, MappingKind};
use crate::small_sort::sort_by;

use super::memory_reporter::MemoryReporter;
use super::reports::Reports;

/// The amounts that the tree subtracts from mappings, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResidentMap {
    heap: u64,
    non_heap: u64,
    stacks: u64,
    /// The allocator's overhead: committed bytes outside of live blocks.
    overhead: u64,
}

/// The kinds of mapping that contain an allocator's blocks, in the order of subtraction.
const MEMORY: &[MappingKind] = &[MappingKind::Heap, MappingKind::Anonymous];

const STACKS: &str = "explicit/threads/stacks/";

impl ResidentMap {
    /// The map for a set of reports. It divides the resident bytes into the part that these reports include and the
    /// rest of each mapping.
    pub(crate) fn beside(set: &ReportSet) -> Self {
        let (mut reported, mut allocated, mut overhead) = (0_i128, None, 0);
        let (mut non_heap, mut stacks) = (0_i128, 0_i128);
        for report in set.iter() {
            let amount = i128::from(report.amount);
            match report.kind {
                Kind::Other if report.path == "heap-allocated" => allocated = Some(amount),
                Kind::Other if report.path == "heap-overhead" => overhead = amount,
                Kind::Heap if report.path.starts_with("explicit/") => reported += amount,
                Kind::NonHeap if report.path.starts_with(STACKS) => stacks += amount,
                Kind::NonHeap if report.path.starts_with("explicit/") => non_heap += amount,
                _ => {}
            }
        }
        let bytes = |sum: i128| u64::try_from(sum.max(0)).unwrap_or(u64::MAX);
        Self {
            heap: bytes(allocated.unwrap_or(reported)),
            non_heap: bytes(non_heap),
            stacks: bytes(stacks),
            overhead: bytes(overhead),
        }
    }
}

impl MemoryReporter for ResidentMap {
    fn name(&self) -> &str {
        "resident-map"
    }

    fn collect_reports(&self, out: &mut Reports) {
        let Some(mappings) = platform::mappings(&allocator::noted_stacks()) else {
            return out.unavailable("the mappings of the process", "the system does not provide them");
        };
        let mut left: Vec<u64> = mappings.iter().map(|mapping| mapping.resident).collect();
        let mut take = |kinds: &[MappingKind], wanted: u64| {
            let mut missing = wanted;
            for kind in kinds {
                for (_, left) in mappings.iter().zip(&mut left).filter(|(mapping, _)| mapping.kind == *kind) {
                    let taken = missing.min(*left);
                    *left -= taken;
                    missing -= taken;
                }
            }
            wanted - missing
        };
        for (path, kinds, wanted, description) in [
            ("explicit/heap", MEMORY, self.heap, "Live blocks of the heap, limited to resident memory."),
            (
                "explicit/non-heap",
                MEMORY,
                self.non_heap,
                "Non-heap memory from reporters, limited to resident memory.",
            ),
            (
                "explicit/thread-stacks",
                &[MappingKind::Stack],
                self.stacks,
                "Stacks that `explicit` includes.",
            ),
            (
                "heap-overhead",
                MEMORY,
                self.overhead,
                "Memory of the allocator outside of live blocks, limited to resident memory.",
            ),
        ] {
            row(out, "resident-map", path, take(kinds, wanted), description);
        }
        let mut rows: Vec<MapRow<'_>> = mappings.iter().zip(left).collect();
        sort_by(&mut rows, |(a, _), (b, _)| a.kind.cmp(&b.kind).then_with(|| a.name.cmp(&b.name)));
        by_mapping(
            out,
            "resident-map",
            &rows,
            &|(_, left)| *left,
            "Resident memory of a mapping, without the memory of the reports above; with shared pages.",
        );
        for (tree, bytes, description) in TREES {
            by_mapping(out, tree, &rows, &|(mapping, _)| bytes(mapping), description);
        }
        if let Some(bytes) = platform::page_tables() {
            let description =
                "Memory of the kernel for the page tables of this process; outside of mappings.";
            out.report("page-tables", Kind::Other, Units::Bytes, amount(bytes), description);
        }
    }
}

/// A tree: its name, the bytes of a mapping in it, and the description.
type MapTree = (&'static str, fn(&Mapping) -> u64, &'static str);

/// The trees beside `resident-map`. They are not part of its sum.
const TREES: [MapTree; 4] = [
    (
        "proportional-map",
        |mapping| mapping.proportional,
        "Resident memory of a mapping, each page divided by the number of processes that share it.",
    ),
    ("swap-map", |mapping| mapping.swapped, "Memory of a mapping that was swapped out; not resident."),
    ("huge-pages", |mapping| mapping.huge, "The part of a mapping's resident memory that is in huge pages."),
    (
        "hugetlb",
        |mapping| mapping.hugetlb,
        "Memory of a mapping in reserved huge pages, which the kernel does not count as resident.",
    ),
];

/// A mapping, and its resident bytes that remain after the subtractions.
type MapRow<'a> = (&'a Mapping, u64);

/// Adds one report for each kind and name of mapping, sorted by kind and name.
fn by_mapping(
    out: &mut Reports,
    tree: &str,
    rows: &[MapRow<'_>],
    bytes: &dyn Fn(&MapRow<'_>) -> u64,
    description: &str,
) {
    for alike in rows.chunk_by(|(a, _), (b, _)| a.kind == b.kind && a.name == b.name) {
        let Mapping { kind, name, .. } = alike[0].0;
        let bytes = alike.iter().map(bytes).sum();
        let name = if out.anonymize() && !name.starts_with('[') {
            "<anonymized>".into()
        } else {
            path_segment(name)
        };
        row(out, tree, &format!("{}/{name}", kind.path()), bytes, description);
    }
}

fn row(out: &mut Reports, tree: &str, path: &str, bytes: u64, description: &str) {
    if bytes > 0 {
        out.report(format!("{tree}/{path}"), Kind::Other, Units::Bytes, amount(bytes), description);
    }
}

impl MappingKind {
    fn path(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::File => "files",
            Self::Shared => "shared",
            Self::Heap => "heap",
            Self::Anonymous => "anonymous",
            Self::Stack => "stacks",
            Self::Kernel => "kernel",
        }
    }
}
