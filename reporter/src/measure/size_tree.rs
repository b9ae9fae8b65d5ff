//! The bytes of a value by field and type: a tree, from the same derive.
//!
//! ```standalone_crate
//! use memory_reporter::{MallocSizeOf, size_tree};
//!
//! #[derive(MallocSizeOf)]
//! struct Cache {
//!     names: Vec<String>,
//!     first: Option<Box<Entry>>,
//! }
//!
//! #[derive(MallocSizeOf)]
//! struct Entry {
//!     text: String,
//!     next: Option<Box<Entry>>,
//! }
//!
//! let last = Entry { text: "cd".into(), next: None };
//! let first = Entry { text: "ab".into(), next: Some(Box::new(last)) };
//! let cache = Cache { names: vec!["abc".into()], first: Some(Box::new(first)) };
//!
//! let tree = size_tree(&cache);
//! assert_eq!(tree.folded("cache").to_string(), "\
//! cache;first 64
//! cache;first;text 4
//! cache;names 24
//! cache;names;(elements) 3
//! ");
//! assert_eq!(tree.find("first/text").unwrap().count(), 2);
//! assert_eq!(tree.total().usable, memory_reporter::malloc_size_of(&cache));
//! ```
//!
//! # What is one node
//!
//! - Parts of the same type that the walk reaches from the same node by the same field (or as elements, keys or
//!   values) are one node. The node counts them.
//! - On the path from the root to a node, each type occurs only once: a part whose type already occurs on the path is
//!   merged with that ancestor. So a list of a million entries is one node, as above. A syntax tree has one node for
//!   each kind of field.
//! - A part that owns no heap has no node.
//! - There are at most 60 levels and 16,384 nodes. Further parts are merged with their parents.
//!
//! Merging moves bytes between nodes. The total stays the same.

mod by_field;
mod finish;
mod folded;
mod growth;
#[cfg(feature = "serde")]
mod json;
mod node;
mod paths;

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::thread;

use memory_report::{Kind, Report, ReportSet, SkippedPart, Units};

use crate::engine_abi::Marks;

use super::malloc_size_of::MallocSizeOf;
use super::ops::MallocSizeOfOps;
use super::reading::WalkObserver;
use super::size_summary::SizeSummary;
use super::walk_state::WalkState;

use by_field::ByField;
use finish::SizeNodeData;

pub use folded::FoldedStacks;
pub use node::SizeNode;

/// The bytes of a value by field and type; [`size_tree`] returns it.
///
/// It has three output forms: [`reports`](Self::reports) for about:memory, [`folded`](Self::folded) stacks for flame
/// graphs, and nested objects for serde, with `name`, `type`, `bytes`, `slop`, `blocks`, `count` and `children`.
/// In these objects, `bytes` are usable bytes and include the children's bytes.
#[derive(Clone, Debug)]
pub struct SizeTree {
    /// All nodes. Each node precedes its children.
    nodes: Vec<SizeNodeData>,
    usable_size_known: bool,
    skipped: Vec<SkippedPart>,
}

/// Walks `value` and returns its bytes by field and type.
///
/// The bytes are usable bytes if the program declares its allocator ([`global_allocator!`](crate::global_allocator)),
/// otherwise computed bytes. The total equals [`malloc_size_of`](crate::malloc_size_of()). Bytes that a manual impl
/// adds without naming a block belong to the root.
///
/// The module [`size_tree`](mod@crate::measure::size_tree) describes which parts become one node, with an example.
pub fn size_tree<T: MallocSizeOf + ?Sized>(value: &T) -> SizeTree {
    let reading = ByField::new(core::any::type_name::<T>, WalkState::default(), None);
    let (mut tree, state) = grow_by(reading, value);
    tree.skipped = state.into_parts().2;
    tree
}

/// Walks `value` and returns its requested bytes by field and type, computed from layouts. The function calls no
/// allocator.
///
/// Like [`size_tree`](size_tree()), but the total equals [`computed_size_of`](crate::computed_size_of()).
///
/// ```
/// let names = vec![String::from("ab"), String::from("cde")];
/// let tree = memory_reporter::measure::computed_size_tree(&names);
/// assert_eq!(tree.total().usable, memory_reporter::computed_size_of(&names));
/// ```
pub fn computed_size_tree<T: MallocSizeOf + ?Sized>(value: &T) -> SizeTree {
    let reading = ByField::computed(core::any::type_name::<T>);
    let (mut tree, state) = grow_by(reading, value);
    tree.skipped = state.into_parts().2;
    tree
}

/// The tree of the heap that `value` owns, without the shared blocks that `state` has counted. `Err` contains the
/// panic that ended the walk.
pub(crate) fn grow<T: MallocSizeOf + ?Sized>(
    value: &T,
    state: WalkState,
    marks: Option<Marks>,
) -> (thread::Result<SizeTree>, WalkState) {
    let mut ops = MallocSizeOfOps::new(ByField::new(core::any::type_name::<T>, state, marks));
    let bytes = catch_unwind(AssertUnwindSafe(|| value.size_of_excluding_this(&mut ops)));
    let mut reading = ops.into_reading();
    match bytes {
        Ok(bytes) => {
            let (tree, state) = finished(reading, bytes);
            (Ok(tree), state)
        }
        Err(panic) => (Err(panic), core::mem::take(reading.state())),
    }
}

fn grow_by<T: MallocSizeOf + ?Sized>(reading: ByField, value: &T) -> (SizeTree, WalkState) {
    let mut ops = MallocSizeOfOps::new(reading);
    let bytes = value.size_of_excluding_this(&mut ops);
    finished(ops.into_reading(), bytes)
}

fn finished(reading: ByField, bytes: usize) -> (SizeTree, WalkState) {
    let usable_size_known = reading.usable_size_known();
    let ByField { growth, sizes, .. } = reading;
    let nodes = finish::finish(growth.into_nodes(), bytes);
    (SizeTree { nodes, usable_size_known, skipped: Vec::new() }, sizes.state)
}

impl SizeTree {
    /// The node of the value itself.
    pub fn root(&self) -> SizeNode<'_> {
        SizeNode { tree: self, id: 0 }
    }

    /// The sum of all nodes.
    pub fn total(&self) -> SizeSummary {
        self.root().total()
    }

    /// The number of nodes, including the root.
    #[allow(clippy::len_without_is_empty, reason = "there is always a root")]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All nodes. Each node precedes its children.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = SizeNode<'_>> {
        (0..self.nodes.len()).map(|id| SizeNode { tree: self, id })
    }

    /// The node with this path of names from the root, separated by `/`; the root for `""`. `None` if there is no
    /// such node.
    pub fn find(&self, names: &str) -> Option<SizeNode<'_>> {
        let mut names = names.split('/').filter(|name| !name.is_empty());
        names.try_fold(self.root(), |node, name| node.children().find(|child| child.name() == name))
    }

    /// The parts that could not be measured. They count as 0 bytes.
    pub fn skipped(&self) -> &[SkippedPart] {
        &self.skipped
    }

    /// Whether sizes include the bytes that the allocator adds by rounding up.
    pub fn usable_size_known(&self) -> bool {
        self.usable_size_known
    }

    /// A set for the views of about:memory, with `path` (for example `explicit/cache`) as the root. It contains one
    /// report for each node without children, and a report `(itself)` for the own blocks of each inner node.
    ///
    /// ```standalone_crate
    /// let names = vec![String::from("ab"), String::from("cde")];
    /// let set = memory_reporter::size_tree(&names).reports("explicit/names");
    /// let paths: Vec<_> = set.iter().map(|report| (report.path, report.amount)).collect();
    /// assert_eq!(paths, [("explicit/names/(itself)", 48), ("explicit/names/(elements)", 5)]);
    /// ```
    pub fn reports(&self, path: &str) -> ReportSet {
        let mut set = ReportSet::new();
        set.set_usable_size_known(self.usable_size_known);
        set.set_partial(true);
        self.for_each_path(path, usize::MAX, |path, node, bytes| {
            let description = format!("Memory used by {} of type {}.", node.name(), node.type_name());
            let amount = memory_report::amount(bytes);
            let (kind, units) = (Kind::Heap, Units::Bytes);
            set.push(Report { process: "", path, kind, units, amount, description: &description });
        });
        set
    }

    /// The tree as folded stacks, the input of flame graphs: `root;field;field bytes`, one line for each node that
    /// has its own blocks. Bytes are usable bytes.
    pub fn folded<'a>(&'a self, root: &'a str) -> FoldedStacks<'a> {
        FoldedStacks { tree: self, root }
    }
}
