//! The view that adds up to `resident`: `explicit` as far as it is in memory, and what every mapping
//! of the process holds beside it.
//!
//! Invariant: the reports under `resident-map/` add up to the resident bytes of all mappings. No one
//! knows which of the program's anonymous memory an allocator's live blocks lie in, so what `explicit`
//! accounts for is taken from the sum of it, never from more than there is.

use std::collections::BTreeMap;

use crate::memory_reporter::{MemoryReporter, amount};
use crate::platform::{self, Mapping, MappingKind};
use crate::report::{Kind, Units};
use crate::report_set::ReportSet;
use crate::reports::{Reports, path_segment};

/// What a collection has reported under `explicit/`, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResidentMap {
    heap: u64,
    non_heap: u64,
    stacks: u64,
    /// The allocator's own, in no live block.
    overhead: u64,
}

const STACKS: &str = "explicit/threads/stacks/";

impl ResidentMap {
    /// Beside what these reports account for.
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
        let Some(mappings) = platform::mappings() else {
            return out.unavailable("the mappings of the process", "the system does not tell");
        };
        let anonymous = sum(&mappings, MappingKind::Anonymous, |mapping| mapping.resident);
        let stacks = sum(&mappings, MappingKind::Stack, |mapping| mapping.resident);
        let mut rest = anonymous;
        let mut take = |wanted: u64| {
            let taken = wanted.min(rest);
            rest -= taken;
            taken
        };
        let (heap, non_heap) = (take(self.heap), take(self.non_heap));
        let overhead = take(self.overhead);
        let thread_stacks = self.stacks.min(stacks);
        for (path, bytes, description) in [
            ("explicit/heap", heap, "Live blocks of the heap, as far as they can be resident."),
            (
                "explicit/non-heap",
                non_heap,
                "What reporters report outside of the heap, as far as it can be resident.",
            ),
            ("explicit/thread-stacks", thread_stacks, "Stacks that `explicit` accounts for."),
            (
                "anonymous/heap-overhead",
                overhead,
                "Memory of the allocator that is in no live block, as far as it can be resident.",
            ),
            (
                "anonymous/other",
                rest,
                "Memory without a file that neither `explicit` nor the allocator accounts for.",
            ),
            ("stacks", stacks - thread_stacks, "Stacks beyond what `explicit` accounts for."),
        ] {
            row(out, "resident-map", path, bytes, description);
        }
        let beside = mappings
            .iter()
            .filter(|mapping| !matches!(mapping.kind, MappingKind::Anonymous | MappingKind::Stack));
        by_mapping(
            out,
            "resident-map",
            beside,
            |mapping| mapping.resident,
            "Resident memory of a mapping, pages shared with other processes included.",
        );
        for (tree, bytes, description) in TREES {
            by_mapping(out, tree, mappings.iter(), bytes, description);
        }
        if let Some(bytes) = platform::page_tables() {
            let description = "Memory of the kernel for the page tables of this process; in no mapping.";
            out.report("page-tables", Kind::Other, Units::Bytes, amount(bytes), description);
        }
    }
}

/// A tree's name, the bytes of a mapping in it, and what they are.
type Tree = (&'static str, fn(&Mapping) -> u64, &'static str);

/// What else is told of each mapping. None of it is part of the sum.
const TREES: [Tree; 4] = [
    (
        "proportional-map",
        |mapping| mapping.proportional,
        "Resident memory of a mapping, each page divided by the number of processes that share it.",
    ),
    ("swap-map", |mapping| mapping.swapped, "Memory of a mapping that was swapped out; not resident."),
    ("huge-pages", |mapping| mapping.huge, "Resident memory of a mapping that is in huge pages."),
    (
        "hugetlb",
        |mapping| mapping.hugetlb,
        "Memory of a mapping in reserved huge pages, which the kernel does not count as resident.",
    ),
];

fn sum(mappings: &[Mapping], kind: MappingKind, bytes: impl Fn(&Mapping) -> u64) -> u64 {
    mappings.iter().filter(|mapping| mapping.kind == kind).map(bytes).sum()
}

/// A report for each kind and name.
fn by_mapping<'a>(
    out: &mut Reports,
    tree: &str,
    mappings: impl Iterator<Item = &'a Mapping>,
    bytes: impl Fn(&Mapping) -> u64,
    description: &str,
) {
    let mut rows = BTreeMap::<_, u64>::new();
    for mapping in mappings {
        *rows.entry((mapping.kind, mapping.name.as_str())).or_default() += bytes(mapping);
    }
    for ((kind, name), bytes) in rows {
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
            Self::Anonymous => "anonymous",
            Self::Stack => "stacks",
            Self::Kernel => "kernel",
        }
    }
}
