//! All stacks merged into one tree, as a flame graph shows them.

use std::collections::HashMap;

use super::folded::names;
use super::records::{Analysis, Sums};

/// What stands for frames that are too small to be shown one by one.
const SMALL: &str = "(small)";

/// Where frames do not matter: the root.
const ALL: &str = "all";

/// The stacks of an analysis as one tree, outermost frames first.
///
/// Below the root are, of a dump of dark-matter mode, the kinds of records, and then, of reported ones, who
/// reported them. Records with no bytes, or in a difference fewer than before, are left out.
#[derive(Clone, Debug)]
pub struct FlameGraph {
    names: Vec<Box<str>>,
    frames: Vec<Frame>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    name: u32,
    children: u32,
    amount: Amount,
}

/// What a frame and all below it have.
#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    sums: Sums,
    estimated: bool,
}

impl Amount {
    fn add(&mut self, other: Self) {
        self.sums.add(other.sums);
        self.estimated |= other.estimated;
    }
}

/// One frame of a [`FlameGraph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlameFrame<'a> {
    /// The function, or what else is known of the place.
    pub name: &'a str,
    /// How many frames it called.
    pub children: usize,
    /// Blocks and bytes of this frame and all below it.
    pub sums: Sums,
    /// The sums are estimates.
    pub estimated: bool,
}

impl Analysis {
    /// The records shown, merged into a tree of about as many frames as `most`: the largest ones. What is left
    /// out below a frame is one frame called `(small)`, so that all sums are exact.
    ///
    /// For all records, set [`limit`](super::AnalyzeOptions::limit) and
    /// [`max_frames`](super::AnalyzeOptions::max_frames) high.
    pub fn flame_graph(&self, most: usize) -> FlameGraph {
        let mut tree = Tree::default();
        let mut stack: Vec<u32> = Vec::new();
        for section in &self.sections {
            for record in section.records.iter().filter(|record| record.sums.usable() > 0) {
                stack.clear();
                names(self, section, record, |name| stack.push(tree.name(name)));
                tree.add(&stack, Amount { sums: record.sums, estimated: record.estimated });
            }
            // Estimates move blocks between stacks: what all stacks of a kind have together is known.
            if self.sections.len() > 1
                && let Some(kind) = stack.first().and_then(|name| tree.by_call.get(&(0, *name)))
            {
                tree.nodes[*kind as usize].amount.estimated = section.estimated;
            }
            stack.clear();
        }
        tree.nodes[0].amount.estimated = self.estimated;
        tree.prune(most)
    }
}

impl FlameGraph {
    /// All frames, in preorder: each is followed by those it called and all below these, `(small)` and then
    /// the largest first. The first of all is the root, which has everything.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = FlameFrame<'_>> {
        self.frames.iter().map(|frame| FlameFrame {
            name: &self.names[frame.name as usize],
            children: frame.children as usize,
            sums: frame.amount.sums,
            estimated: frame.amount.estimated,
        })
    }
}

/// The whole tree, each frame after the one that called it.
struct Tree {
    names: Vec<Box<str>>,
    by_name: HashMap<Box<str>, u32>,
    nodes: Vec<Node>,
    /// By the calling frame and the name of the called one. Whoever made a dump cannot foresee hashes.
    by_call: HashMap<(u32, u32), u32>,
}

struct Node {
    name: u32,
    caller: u32,
    amount: Amount,
}

impl Default for Tree {
    fn default() -> Self {
        let mut tree =
            Self { names: Vec::new(), by_name: HashMap::new(), nodes: Vec::new(), by_call: HashMap::new() };
        let name = tree.name(ALL);
        tree.nodes.push(Node { name, caller: 0, amount: Amount::default() });
        tree
    }
}

impl Tree {
    fn name(&mut self, name: &str) -> u32 {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        let next = self.names.len() as u32;
        self.names.push(name.into());
        self.by_name.insert(name.into(), next);
        next
    }

    fn add(&mut self, stack: &[u32], amount: Amount) {
        let mut at = 0;
        self.nodes[0].amount.add(amount);
        for &name in stack {
            let next = self.nodes.len() as u32;
            let node = *self.by_call.entry((at, name)).or_insert(next);
            if node == next {
                self.nodes.push(Node { name, caller: at, amount: Amount::default() });
            }
            self.nodes[node as usize].amount.add(amount);
            at = node;
        }
    }

    fn prune(mut self, most: usize) -> FlameGraph {
        let small = self.name(SMALL);
        let least = self.least(most);
        // The called frames of each, in order; what is too small is added up beside.
        let mut called: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        let mut rest: HashMap<u32, Amount> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            let amount = self.nodes[node.caller as usize].amount;
            if node.amount.sums.usable() >= least {
                called[node.caller as usize].push(index as u32);
            } else if amount.sums.usable() >= least || node.caller == 0 {
                rest.entry(node.caller).or_default().add(node.amount);
            }
        }
        let mut frames = Vec::new();
        let mut open = vec![0_u32];
        while let Some(at) = open.pop() {
            let node = &self.nodes[at as usize];
            let children = &mut called[at as usize];
            // Last in, first out: the largest comes last.
            children.sort_by_cached_key(|child| {
                let Node { name, amount, .. } = &self.nodes[*child as usize];
                (amount.sums.usable(), core::cmp::Reverse(&self.names[*name as usize]))
            });
            let rest = rest.get(&at);
            let count = children.len() + usize::from(rest.is_some());
            frames.push(Frame { name: node.name, children: count as u32, amount: node.amount });
            if let Some(amount) = rest {
                // It has nothing below it, so it may come before its brothers.
                frames.push(Frame { name: small, children: 0, amount: *amount });
            }
            open.extend(children.iter());
        }
        FlameGraph { names: self.names, frames }
    }

    /// The fewest bytes that a frame is shown with.
    fn least(&self, most: usize) -> i128 {
        let mut bytes: Vec<i128> = self.nodes.iter().skip(1).map(|node| node.amount.sums.usable()).collect();
        if bytes.len() <= most {
            return 0;
        }
        let (_, cut, _) = bytes.select_nth_unstable_by(most, |a, b| b.cmp(a));
        *cut + 1
    }
}
