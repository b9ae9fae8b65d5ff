//! Which nodes of a tree are shown, in which order: sorting, `(N tiny)`, what is open.
//!
//! Shown nodes lie in one vector, parents before children, the children of one in a row. A collapsed
//! sub-tree is laid out only if something in the tree is invalid: then Firefox opens the way to it.

use std::cmp::Ordering;

use icu_collator::CollatorBorrowed;
use memory_reporter::tree::Node;

/// A tree as shown; the root is the first.
pub(crate) struct Layout<'f, 'a> {
    pub(crate) shown: Vec<Shown<'f, 'a>>,
}

/// One entry of the text.
pub(crate) struct Shown<'f, 'a> {
    /// The node, or of `(N tiny)` the parent.
    pub(crate) node: Node<'f, 'a>,
    /// For `(N tiny)`, the N.
    pub(crate) tiny: Option<u32>,
    pub(crate) amount: i128,
    pub(crate) children: core::ops::Range<u32>,
    pub(crate) has_children: bool,
    /// Collapsed, unless something invalid is below.
    collapsed: bool,
    pub(crate) invalid: bool,
    invalid_below: bool,
}

impl Shown<'_, '_> {
    /// Whether the children are in the text.
    pub(crate) fn is_open(&self) -> bool {
        self.has_children && (!self.collapsed || self.invalid_below)
    }

    /// The mark before the name. An invalid node looks open even when its children are not shown.
    pub(crate) fn separator(&self) -> &'static str {
        if !self.has_children {
            " ── "
        } else if self.is_open() || self.invalid {
            " -- "
        } else {
            " ++ "
        }
    }

    /// How many reports were added up, as Firefox counts them.
    pub(crate) fn merged(&self) -> u32 {
        if self.tiny.is_some() { 0 } else { self.node.merged() }
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

impl<'f, 'a> Layout<'f, 'a> {
    pub(crate) fn new(root: Node<'f, 'a>, verbose: bool, collator: &CollatorBorrowed<'_>) -> Self {
        let mut layout = Self { shown: Vec::new() };
        let total = root.amount();
        layout.push(root, total);
        let all = verbose || any_invalid(root);
        let mut at = 0;
        while at < layout.shown.len() {
            let parent = &layout.shown[at];
            // The children of `(N tiny)` were laid out with it.
            if parent.tiny.is_none() && parent.has_children {
                layout.children(at, total, verbose, all, collator);
            }
            at += 1;
        }
        layout.tell_parents();
        layout
    }

    fn push(&mut self, node: Node<'f, 'a>, total: i128) {
        let amount = node.amount();
        self.shown.push(Shown {
            node,
            tiny: None,
            amount,
            children: 0..0,
            has_children: !node.is_leaf(),
            collapsed: false,
            invalid: is_invalid(amount, total),
            invalid_below: false,
        });
    }

    fn children(&mut self, at: usize, total: i128, verbose: bool, all: bool, by: &CollatorBorrowed<'_>) {
        let parent = self.shown[at].node;
        let mut nodes: Vec<_> = parent.children().collect();
        nodes.sort_unstable_by(|a, b| {
            let key = |n: &Node<'_, '_>| (n.amount(), n.first_report());
            let ((a_amount, a_row), (b_amount, b_row)) = (key(a), key(b));
            b_amount.cmp(&a_amount).then_with(|| by.compare(a.name(), b.name())).then(a_row.cmp(&b_row))
        });
        let tiny = |node: &Node<'_, '_>| !verbose && is_tiny(node.amount(), total);
        if nodes.first().is_some_and(tiny) {
            self.shown[at].collapsed = true;
            if !all {
                return;
            }
        }
        let collapsed = self.shown[at].collapsed;
        // A single tiny one at the end is shown as it is.
        let cut = nodes.iter().position(tiny).filter(|i| !collapsed && i + 1 < nodes.len());
        let start = self.end();
        let (large, rest) = nodes.split_at(cut.unwrap_or(nodes.len()));
        for node in large {
            self.push(*node, total);
        }
        if cut.is_none() {
            self.shown[at].children = start..self.end();
            return;
        }
        let amount = rest.iter().map(|node| node.amount()).sum();
        self.shown.push(Shown {
            node: parent,
            tiny: Some(u32::try_from(rest.len()).expect("a set has fewer than 2^32 reports")),
            amount,
            children: 0..0,
            has_children: true,
            collapsed: true,
            invalid: is_invalid(amount, total),
            invalid_below: false,
        });
        let end = self.end();
        self.shown[at].children = start..end;
        let level = &mut self.shown[start as usize..];
        level.sort_by(|a, b| compare(a, b, by));
        if all {
            let place = level.iter().position(|shown| shown.tiny.is_some());
            for node in rest {
                self.push(*node, total);
            }
            let below = end..self.end();
            if let Some(place) = place {
                self.shown[start as usize + place].children = below;
            }
        }
    }

    /// Children come after their parents, so one pass from the end sees every node after all that is
    /// below it.
    fn tell_parents(&mut self) {
        for at in (0..self.shown.len()).rev() {
            let children = self.shown[at].children.clone();
            let below = &self.shown[children.start as usize..children.end as usize];
            self.shown[at].invalid_below = below.iter().any(|child| child.invalid || child.invalid_below);
        }
    }

    fn end(&self) -> u32 {
        u32::try_from(self.shown.len()).expect("a set has fewer than 2^31 reports")
    }
}

/// Largest first, then by name.
fn compare(a: &Shown<'_, '_>, b: &Shown<'_, '_>, by: &CollatorBorrowed<'_>) -> Ordering {
    b.amount.cmp(&a.amount).then_with(|| by.compare(&a.name(), &b.name()))
}

/// Below 1 % of the root. In floats, as there: a root of 0 gives no number or infinity, and what is
/// then shown depends on the sign.
fn is_tiny(amount: i128, total: i128) -> bool {
    100.0 * amount as f64 / (total as f64) < 1.0
}

pub(crate) fn is_invalid(amount: i128, total: i128) -> bool {
    !(0 <= amount && amount <= total)
}

fn any_invalid(root: Node<'_, '_>) -> bool {
    let total = root.amount();
    let mut left = vec![root];
    while let Some(node) = left.pop() {
        if is_invalid(node.amount(), total) {
            return true;
        }
        left.extend(node.children());
    }
    false
}
