//! Sets of reports: a program may keep sets, and must be able to measure them.

use core::alloc::Layout;
use core::ptr::null;

use memory_report::ReportSet;

use crate::measure::block::Edge;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

impl MallocSizeOf for ReportSet {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let parts = self.parts();
        let mut bytes = ops.part_with(Edge::Field("rows"), parts.rows, Vec::shallow_size_of_excluding_this)
            + ops.field("chunks", parts.chunks);
        for pool in parts.texts {
            let (texts, ends, numbers) = pool.parts();
            let layout =
                Layout::from_size_align(numbers.allocation_size(), 16).unwrap_or(Layout::new::<()>());
            let inside = numbers.iter().next().map_or(null(), |number| &raw const *number);
            bytes += ops.field("texts", texts) + ops.field("ends", ends) + ops.enclosing(inside, layout);
        }
        bytes
            + ops.part_with(Edge::Field("warnings"), parts.warnings, |warnings, ops| {
                warnings.size_of_each(ops, |warning, ops| {
                    ops.field("subject", &warning.subject) + ops.field("message", &warning.message)
                })
            })
            + ops.part_with(Edge::Field("name_patterns"), parts.name_patterns, |patterns, ops| {
                patterns.size_of_each(ops, |pattern, ops| {
                    ops.field("pattern", &pattern.pattern) + ops.field("replacement", &pattern.replacement)
                })
            })
            + ops.part_with(Edge::Field("runs"), parts.runs, |runs, ops| {
                runs.size_of_each(ops, |run, ops| {
                    ops.field("reporter", &run.reporter) + run.skipped.shallow_size_of_excluding_this(ops)
                })
            })
    }
}
