//! The entries of a tree in the order of display: sorting, `(N tiny)`, and the choice of open entries.
//!
//! The entries are in one vector: parents before children, and the children of an entry in sequence. A collapsed
//! sub-tree is laid out only if the tree contains an invalid value, because Firefox then opens the path to that value.

use memory_report::tree::{Mark, TreeNode};

use crate::collation::Collator;
use crate::view::{EntrySort, TextOptions};

/// The entries of a tree. The first entry is the root.
pub(crate) struct TreeLayout<'f, 'a> {
    pub(crate) shown: Vec<LayoutEntry<'f, 'a>>,
}

/// One entry of the text.
pub(crate) struct LayoutEntry<'f, 'a> {
    /// The node; for `(N tiny)`, the parent.
    pub(crate) node: TreeNode<'f, 'a>,
    /// The number N of an entry `(N tiny)`; `None` for other entries.
    pub(crate) tiny: Option<u32>,
    pub(crate) amount: i128,
    /// The sort key. The comparison of this key with the root's amount decides whether the entry is tiny.
    weight: i128,
    depth: u32,
    pub(crate) children: core::ops::Range<u32>,
    pub(crate) has_children: bool,
    /// Whether the entry is closed. A closed entry is shown open if there is an invalid value below it.
    collapsed: bool,
    /// Whether the children were not laid out because they are below the depth limit.
    too_deep: bool,
    pub(crate) invalid: bool,
    invalid_below: bool,
}

impl LayoutEntry<'_, '_> {
    /// Whether the children are in the text.
    pub(crate) fn is_open(&self) -> bool {
        self.has_children && !self.too_deep && (!self.collapsed || self.invalid_below)
    }

    /// Returns the separator before the name. An invalid entry looks open even if its children are not in the text.
    pub(crate) fn separator(&self) -> &'static str {
        if !self.has_children {
            " ── "
        } else if self.is_open() || self.invalid {
            " -- "
        } else {
            " ++ "
        }
    }

    /// Returns the number of added reports, as Firefox counts them.
    pub(crate) fn merged(&self) -> u32 {
        if self.tiny.is_some() { 0 } else { self.node.merged() }
    }

    /// Returns the mark of a diff.
    pub(crate) fn mark(&self) -> Option<Mark> {
        if self.tiny.is_some() { None } else { self.node.mark() }
    }

    pub(crate) fn invalid_below(&self) -> bool {
        self.invalid_below
    }

    fn name(&self) -> std::borrow::Cow<'_, str> {
        match self.tiny {
            Some(n) => format!("({n} tiny)").into(),
            None => self.node.name().into(),
        }
    }
}

impl<'f, 'a> TreeLayout<'f, 'a> {
    pub(crate) fn new(root: TreeNode<'f, 'a>, view: &TextOptions, collator: &Collator) -> Self {
        let is_diff = root.is_diff();
        let total = if is_diff { root.amount().abs() } else { root.amount() };
        let all = view.verbose || (!is_diff && any_invalid(root));
        let mut level = LayoutLevel { shown: Vec::new(), view, total, is_diff, all, by: collator };
        level.push(root, 0);
        let mut at = 0;
        while at < level.shown.len() {
            let parent = &mut level.shown[at];
            // The children of `(N tiny)` were laid out together with that entry.
            if parent.tiny.is_none() && parent.has_children {
                if view.depth.is_some_and(|depth| parent.depth >= depth) {
                    parent.too_deep = true;
                } else {
                    level.children(at);
                }
            }
            at += 1;
        }
        let mut layout = Self { shown: level.shown };
        layout.mark_parents();
        layout
    }

    /// Sets `invalid_below`. Children are after their parents, so one pass from the end visits each entry after all
    /// entries below it.
    fn mark_parents(&mut self) {
        for at in (0..self.shown.len()).rev() {
            let children = self.shown[at].children.clone();
            let below = &self.shown[children.start as usize..children.end as usize];
            self.shown[at].invalid_below = below.iter().any(|child| child.invalid || child.invalid_below);
        }
    }
}

/// A layout that is built level by level.
struct LayoutLevel<'v, 'f, 'a> {
    shown: Vec<LayoutEntry<'f, 'a>>,
    view: &'v TextOptions,
    /// The amount of the root; in a diff, the magnitude of that amount.
    total: i128,
    is_diff: bool,
    /// Whether to lay out collapsed sub-trees.
    all: bool,
    by: &'v Collator,
}

impl<'f, 'a> LayoutLevel<'_, 'f, 'a> {
    fn push(&mut self, node: TreeNode<'f, 'a>, depth: u32) {
        let amount = node.amount();
        self.shown.push(LayoutEntry {
            node,
            tiny: None,
            amount,
            weight: self.weight(&node),
            depth,
            children: 0..0,
            has_children: !node.is_leaf(),
            collapsed: false,
            too_deep: false,
            invalid: !self.is_diff && is_invalid(&node, self.total),
            invalid_below: false,
        });
    }

    fn weight(&self, node: &TreeNode<'_, '_>) -> i128 {
        let by_magnitude = self.is_diff || node.is_correction();
        if by_magnitude { signed(node.largest_change()) } else { node.amount() }
    }

    fn children(&mut self, at: usize) {
        let (parent, depth) = (self.shown[at].node, self.shown[at].depth + 1);
        let mut nodes: Vec<_> = parent.children().map(|node| (self.weight(&node), node)).collect();
        nodes.sort_unstable_by(|(a_weight, a), (b_weight, b)| {
            let names = || self.by.compare(a.name(), b.name());
            b_weight.cmp(a_weight).then_with(names).then(a.first_report().cmp(&b.first_report()))
        });
        let tiny = |(weight, _): &(i128, TreeNode<'_, '_>)| self.view.is_tiny(*weight, self.total);
        if nodes.first().is_some_and(tiny) {
            self.shown[at].collapsed = true;
            if !self.all {
                return;
            }
        }
        let collapsed = self.shown[at].collapsed;
        // If only the last entry is tiny, it is not grouped.
        let cut = nodes.iter().position(tiny).filter(|i| !collapsed && i + 1 < nodes.len());
        let start = self.end();
        let (large, rest) = nodes.split_at(cut.unwrap_or(nodes.len()));
        for (_, node) in large {
            self.push(*node, depth);
        }
        if cut.is_some() {
            self.push_tiny(parent, depth, rest);
        }
        let end = self.end();
        self.shown[at].children = start..end;
        let level = &mut self.shown[start as usize..];
        match self.view.sort {
            EntrySort::Amount if cut.is_none() => {}
            EntrySort::Amount => {
                level.sort_by(|a, b| {
                    b.weight.cmp(&a.weight).then_with(|| self.by.compare(&a.name(), &b.name()))
                });
            }
            EntrySort::Name => level.sort_by(|a, b| {
                let tiny_last = a.tiny.is_some().cmp(&b.tiny.is_some());
                tiny_last.then_with(|| self.by.compare(&a.name(), &b.name()))
            }),
        }
        if self.all && cut.is_some() {
            let place = level.iter().position(|shown| shown.tiny.is_some());
            for (_, node) in rest {
                self.push(*node, depth + 1);
            }
            let below = end..self.end();
            if let Some(place) = place {
                self.shown[start as usize + place].children = below;
            }
        }
    }

    /// Adds one entry for all tiny entries.
    fn push_tiny(&mut self, parent: TreeNode<'f, 'a>, depth: u32, rest: &[(i128, TreeNode<'f, 'a>)]) {
        let amount: i128 = rest.iter().map(|(_, node)| node.amount()).sum();
        let largest = rest.iter().map(|(weight, _)| *weight).max().unwrap_or(0);
        self.shown.push(LayoutEntry {
            node: parent,
            tiny: Some(u32::try_from(rest.len()).expect("a set has fewer than 2^32 reports")),
            amount,
            weight: if self.is_diff { largest.max(amount.abs()) } else { amount },
            depth,
            children: 0..0,
            has_children: true,
            collapsed: true,
            too_deep: false,
            invalid: !self.is_diff && is_out_of_range(amount, self.total),
            invalid_below: false,
        });
    }

    fn end(&self) -> u32 {
        u32::try_from(self.shown.len()).expect("a set has fewer than 2^31 reports")
    }
}

/// Converts a sum. Sums of 64-bit amounts need far less than 127 bits.
fn signed(amount: u128) -> i128 {
    i128::try_from(amount).unwrap_or(i128::MAX)
}

pub(crate) fn is_out_of_range(amount: i128, total: i128) -> bool {
    !(0 <= amount && amount <= total)
}

fn is_invalid(node: &TreeNode<'_, '_>, total: i128) -> bool {
    is_out_of_range(node.amount(), total) && !node.is_correction()
}

fn any_invalid(root: TreeNode<'_, '_>) -> bool {
    let total = root.amount();
    let mut left = vec![root];
    while let Some(node) = left.pop() {
        if is_invalid(&node, total) {
            return true;
        }
        left.extend(node.children());
    }
    false
}
