//! One report for each tag: the blocks that carry the tag and that no reporter has measured in this collection.

use memory_report::{Kind, Units, amount};

use crate::allocator::{self, tags};
use crate::engine_abi::{Marks, PointerAnswer};
use crate::measure::TaggedBytes;
use crate::reporting::{CountingTag, MemoryReporter, Reports, TagPaths, counting_tags, tag_paths};

/// The reporter for tags. It runs after all other reporters.
pub(super) struct TagRows<'a> {
    known: TagPaths,
    counted: &'a TaggedBytes,
}

impl<'a> TagRows<'a> {
    /// `counted` contains the blocks that the reports of the collection have counted. `None` if the program uses no
    /// tags.
    pub(super) fn beside(counted: &'a TaggedBytes) -> Option<Self> {
        let known = tag_paths();
        let uses_tags = !known.paths.is_empty() || !known.faults.is_empty();
        uses_tags.then_some(Self { known, counted })
    }
}

/// The bytes of a tag.
#[derive(Clone, Copy, Default)]
struct TagSum {
    bytes: usize,
    /// With DMD: marks blocks as reported under the tag's path.
    marks: Option<Marks>,
    /// The bytes of the blocks that this collection marked for the tag.
    marked: usize,
}

impl MemoryReporter for TagRows<'_> {
    fn name(&self) -> &str {
        "tags"
    }

    fn collect_reports(&self, out: &mut Reports) {
        let known = &self.known;
        for fault in &known.faults {
            let path = if out.anonymize() { "<anonymized>" } else { &fault.path };
            out.unavailable(&format!("the tag `{}`", path.escape_debug()), fault.why);
        }
        if known.beyond > 0 {
            let why = "a process can have tags for at most 65,534 paths";
            out.unavailable(&format!("tags for {} more paths", known.beyond), why);
        }
        if known.paths.is_empty() {
            return;
        }
        if allocator::declared().is_none() {
            let why =
                "no allocator is declared; add `memory_reporter::global_allocator!(std::alloc::System);`";
            return out.unavailable("the memory of tags", why);
        }
        let mut sums = vec![TagSum::default(); known.paths.len()];
        for (sum, path) in sums.iter_mut().zip(&known.paths) {
            sum.marks = out.marks_of(path);
        }
        tags::for_each(|block| {
            // A tag that is newer than the list of paths is first reported by the next collection.
            // The blocks of a scope have no path, unless the scope is inside a tag.
            let path = tags::tallies::path_of(block.tag);
            let Some(sum) = usize::from(path).checked_sub(1).and_then(|path| sums.get_mut(path)) else {
                return;
            };
            sum.bytes = sum.bytes.saturating_add(block.bytes);
            let start = core::ptr::without_provenance(block.start);
            if let Some(marks) = sum.marks
                && marks.is_unreported(start)
                && let PointerAnswer::Block(bytes) = marks.block(start)
            {
                sum.marked = sum.marked.saturating_add(bytes);
            }
        });
        for (tag, (path, sum)) in (1..=tags::LAST_TAG).zip(known.paths.iter().zip(&sums)) {
            let bytes = amount(sum.bytes.saturating_sub(self.counted.bytes_with(tag)));
            if bytes > 0 {
                let description =
                    format!("Memory allocated under the tag `{path}` that no reporter measures.");
                out.heap_of_tag(path, sum.marks, bytes, amount(sum.marked), &description);
            }
        }
        for counted in counting_tags() {
            let Some(path) = known.paths.get(usize::from(counted.path) - 1) else { continue };
            report_figures(path, &counted, out);
        }
        let description = "Memory used by the table of blocks with a tag.";
        let table = amount(tags::table_bytes());
        out.report("explicit/memory-reporter/tags", Kind::NonHeap, Units::Bytes, table, description);
    }
}

/// Reports the peak and the number of allocations of a tag that counts.
fn report_figures(path: &str, counted: &CountingTag, out: &mut Reports) {
    let figures = counted.figures();
    let below = path.strip_prefix("explicit/").unwrap_or(path);
    let description =
        format!("The largest sum of the requested bytes of the live blocks of the tag `{path}`.");
    out.report(format!("tag-peaks/{below}"), Kind::Other, Units::Bytes, amount(figures.peak), &description);
    let description = format!("The number of blocks allocated under the tag `{path}`.");
    let units = Units::CountCumulative;
    let path = format!("tag-allocations/{below}");
    out.report(path, Kind::Other, units, amount(figures.allocations), &description);
}
