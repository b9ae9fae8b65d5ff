//! The text of one process.

use core::fmt::{self, Write as _};

use memory_report::tree::{Mark, ProcessTrees, TreeNode};

use crate::collation::Collator;
use crate::escape::{escape, push_name, push_text};
use crate::layout::{LayoutEntry, TreeLayout, is_out_of_range};
use crate::number;
use crate::text::sorted;
use crate::view::TextOptions;

const NOTHING_KNOWN: &str = "WARNING: the 'heap-allocated' memory reporter and the moz_malloc_usable_size() \
function do not work for this platform and/or configuration. This means that 'heap-unclassified' is not \
shown and the 'explicit' tree shows much less memory than it should.\n";
const NO_HEAP_ALLOCATED: &str = "WARNING: the 'heap-allocated' memory reporter does not work for this \
platform and/or configuration. This means that 'heap-unclassified' is not shown and the 'explicit' tree \
shows less memory than it should.\n";
const NO_USABLE_SIZE: &str = "WARNING: the moz_malloc_usable_size() function does not work for this \
platform and/or configuration. This means that much of the heap-allocated memory is not measured by \
individual memory reporters and so will fall under 'heap-unclassified'.\n";
/// Replaces the first two warnings above for a program with memory-reporter, because the cause is that the program
/// declares no allocator.
const NOT_DECLARED: &str = "WARNING: the program declares no allocator. This means that amounts are the bytes that \
the program requested, that 'heap-unclassified' is not shown and that the 'explicit' tree shows less memory than \
it should.\n";
const INVALID: &str = "WARNING: the following values are negative or unreasonably large.\n";
const INVALID_MEANS: &str = "This indicates a defect in one or more memory reporters. The invalid values \
are highlighted.\n";

pub(super) struct ProcessText<'p, 'a> {
    pub(super) process: &'p ProcessTrees<'a>,
    pub(super) view: &'p TextOptions,
    /// Whether the text shows all reports of the process. Only then a missing row causes a warning.
    pub(super) is_whole: bool,
    pub(super) usable_size_known: bool,
    /// Whether a warning reports that the program declares no allocator.
    pub(super) is_undeclared: bool,
    pub(super) collator: &'p Collator,
}

impl<'p, 'a> ProcessText<'p, 'a> {
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = escape(self.process.name());
        writeln!(f, "{name}")?;
        let lines = self.lines();
        let mut explicit = None;
        let mut others = Vec::new();
        for root in sorted(self.process.trees(), self.collator) {
            let layout = TreeLayout::new(root, self.view, self.collator);
            if root.path() == "explicit" {
                explicit = Some(layout);
            } else {
                others.push(layout);
            }
        }
        if let Some(explicit) = &explicit {
            self.write_warnings(f, explicit, &others, &lines)?;
            f.write_str("Explicit Allocations\n\n")?;
            self.write_tree(f, explicit)?;
            f.write_char('\n')?;
        }
        if !others.is_empty() || !lines.is_empty() {
            f.write_str("Other Measurements\n\n")?;
        }
        for tree in &others {
            self.write_tree(f, tree)?;
            f.write_char('\n')?;
        }
        if !lines.is_empty() {
            self.write_lines(f, &lines)?;
            f.write_char('\n')?;
        }
        writeln!(f, "End of {name}")
    }

    fn lines(&self) -> Vec<TreeNode<'p, 'a>> {
        sorted(self.process.lines(), self.collator)
    }

    fn write_warnings(
        &self,
        f: &mut fmt::Formatter<'_>,
        explicit: &TreeLayout<'_, '_>,
        others: &[TreeLayout<'_, '_>],
        lines: &[TreeNode<'_, '_>],
    ) -> fmt::Result {
        let heap_known = self.process.line("heap-allocated").is_some();
        let missing = match (heap_known, self.usable_size_known) {
            _ if !self.is_whole => None,
            (false, _) if self.is_undeclared => Some(NOT_DECLARED),
            (false, false) => Some(NOTHING_KNOWN),
            (false, true) => Some(NO_HEAP_ALLOCATED),
            (true, false) => Some(NO_USABLE_SIZE),
            (true, true) => None,
        };
        if let Some(missing) = missing {
            write!(f, "\n{missing}")?;
        }
        let mut invalid = String::new();
        for tree in core::iter::once(explicit).chain(others) {
            push_invalid(&mut invalid, tree);
        }
        for line in lines.iter().filter(|line| is_invalid_line(line)) {
            push_name(&mut invalid, line.path());
            invalid.push('\n');
        }
        if !invalid.is_empty() {
            write!(f, "\n{INVALID}\n{invalid}\n{INVALID_MEANS}")?;
        }
        Ok(())
    }

    fn write_lines(&self, f: &mut fmt::Formatter<'_>, lines: &[TreeNode<'_, '_>]) -> fmt::Result {
        let mut values = String::new();
        let mut ends = Vec::with_capacity(lines.len());
        for line in lines {
            self.view.push_amount(&mut values, line.amount(), line.units());
            ends.push(values.len());
        }
        let starts = || core::iter::once(0).chain(ends.iter().copied());
        let width = starts().zip(&ends).map(|(start, end)| end - start).max().unwrap_or(0);
        let mut text = String::new();
        for ((line, start), &end) in lines.iter().zip(starts()).zip(&ends) {
            text.clear();
            text.extend(core::iter::repeat_n(' ', width - (end - start)));
            text.push_str(&values[start..end]);
            text.push_str(" ── ");
            push_name(&mut text, line.path());
            push_notes(&mut text, is_invalid_line(line), line.merged(), line.mark());
            self.end_line(&mut text, line.description());
            f.write_str(&text)?;
        }
        Ok(())
    }

    fn end_line(&self, text: &mut String, description: Option<&str>) {
        if let Some(description) = description.filter(|text| self.view.descriptions && !text.is_empty()) {
            text.push_str(": ");
            push_text(text, description);
        }
        text.push('\n');
    }

    fn write_tree(&self, f: &mut fmt::Formatter<'_>, tree: &TreeLayout<'_, '_>) -> fmt::Result {
        let root = &tree.shown[0];
        let mut text = String::new();
        let mut value = String::new();
        // `before` is the text before the children of the innermost open node. For each open node, `open` contains the
        // length of that text, the number of remaining children, and the width of the value.
        let mut before = String::new();
        let mut open = vec![OpenTree { before: 0, children: 0..1, width: 0, root: true }];
        while let Some(level) = open.last_mut() {
            let Some(at) = level.children.next() else {
                open.pop();
                continue;
            };
            let shown = &tree.shown[at as usize];
            let last = level.children.is_empty();
            let (is_root, width) = (level.root, level.width);
            before.truncate(level.before);
            value.clear();
            self.view.push_amount(&mut value, shown.amount, root.node.units());
            let longer = width.saturating_sub(value.len());
            text.clear();
            text.push_str(&before);
            if !is_root {
                text.push_str(if last { "└──" } else { "├──" });
            }
            text.extend(core::iter::repeat_n('─', longer));
            text.push_str(&value);
            text.push_str(" (");
            number::push_fraction(&mut text, shown.amount, root.amount);
            text.push(')');
            text.push_str(shown.separator());
            push_shown_name(&mut text, shown);
            push_notes(&mut text, shown.invalid, shown.merged(), shown.mark());
            let description = if shown.tiny.is_some() { None } else { shown.node.description() };
            self.end_line(&mut text, description);
            f.write_str(&text)?;
            if shown.is_open() {
                if !is_root {
                    before.push_str(if last { "   " } else { "│  " });
                }
                before.extend(core::iter::repeat_n(' ', longer));
                open.push(OpenTree {
                    before: before.len(),
                    children: shown.children.clone(),
                    width: value.len(),
                    root: false,
                });
            }
        }
        Ok(())
    }
}

struct OpenTree {
    before: usize,
    children: core::ops::Range<u32>,
    width: usize,
    root: bool,
}

fn is_invalid_line(line: &TreeNode<'_, '_>) -> bool {
    !line.is_diff() && is_out_of_range(line.amount(), line.amount())
}

fn push_shown_name(to: &mut String, shown: &LayoutEntry<'_, '_>) {
    match shown.tiny {
        // Writing to a string does not fail.
        Some(n) => drop(write!(to, "({n} tiny)")),
        None => push_name(to, shown.node.name()),
    }
}

fn push_notes(to: &mut String, invalid: bool, merged: u32, mark: Option<Mark>) {
    if invalid {
        to.push_str(" [?!]");
    }
    if merged > 0 {
        // Writing to a string does not fail.
        let _ = write!(to, " [{merged}]");
    }
    if let Some(mark) = mark {
        let _ = write!(to, " [{mark}]");
    }
}

/// Appends the paths of all invalid entries of a tree, open or closed, in the order of the text.
fn push_invalid(to: &mut String, tree: &TreeLayout<'_, '_>) {
    let mut path = String::new();
    let mut open = vec![(0, 0..1)];
    while let Some((before, children)) = open.last_mut() {
        path.truncate(*before);
        let Some(at) = children.next() else {
            open.pop();
            continue;
        };
        let shown = &tree.shown[at as usize];
        if !path.is_empty() || at != 0 {
            path.push('/');
        }
        push_shown_name(&mut path, shown);
        if shown.invalid {
            to.push_str(&path);
            to.push('\n');
        }
        if shown.invalid_below() {
            open.push((path.len(), shown.children.clone()));
        }
    }
}
