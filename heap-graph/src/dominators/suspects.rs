//! Leak suspects, as in Eclipse's Memory Analyzer: nodes that alone retain a large part of the heap, and the points
//! below them at which the bytes accumulate.

use core::fmt::Write as _;

use indexmap::IndexMap;

use super::DominatorTree;
use super::NOT_CANCELLED;
use super::retained::retained_by_groups_watched;
use crate::graph::{GraphText, GraphTextId, HeapNode, NodeId, NodeIndex};
use crate::json::list;
use crate::progress::{AnalysisProgress, CancelledError};

/// The limits for suspects.
#[derive(Clone, Debug)]
pub struct SuspectOptions {
    pub(crate) percent: f64,
    pub(crate) drop_ratio: f64,
}

impl Default for SuspectOptions {
    fn default() -> Self {
        Self { percent: 10.0, drop_ratio: 0.7 }
    }
}

impl SuspectOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the minimum percentage of the heap that a suspect retains. Default: 10.
    pub fn percent(mut self, percent: f64) -> Self {
        self.percent = percent;
        self
    }

    /// Sets when the path to the accumulation point continues: a node's largest child must retain at least this part
    /// of the node's retained size. Default: 0.7.
    pub fn drop_ratio(mut self, ratio: f64) -> Self {
        self.drop_ratio = ratio;
        self
    }
}

/// A node or a class of nodes that may be a leak.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Suspect {
    /// The class of the node or nodes, or the type of nodes without a class.
    pub class: GraphText<'static>,
    /// A single node, or all nodes of the class directly below the root that do not retain enough alone.
    pub nodes: Vec<NodeId>,
    /// The bytes that the nodes retain together.
    pub retained_size: u128,
    /// The retained size as a percentage of the heap.
    pub percent: f64,
    /// The path from the node down to the accumulation point, the last step. No child of the accumulation point retains
    /// the part of its bytes that [`SuspectOptions::drop_ratio`] demands. The path is empty for the nodes of a class.
    pub path: Vec<AccumulationStep>,
}

impl Suspect {
    /// The suspect as JSON in one line.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{\"class\":");
        self.class.write_json(&mut out);
        out.push_str(",\"nodes\":");
        list(&mut out, &self.nodes, |out, node| {
            let _ = write!(out, "{node}");
        });
        let (size, percent) = (self.retained_size, self.percent);
        let _ = write!(out, ",\"retainedSize\":{size},\"percent\":{percent:.2},\"path\":");
        list(&mut out, &self.path, |out, step| {
            let _ = write!(out, "{{\"nodeId\":{},\"class\":", step.node);
            step.class.write_json(out);
            let (size, children) = (step.retained_size, step.children);
            let _ = write!(out, ",\"retainedSize\":{size},\"children\":{children}}}");
        });
        out.push('}');
        out
    }
}

/// A step on the path to an accumulation point.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AccumulationStep {
    /// The node.
    pub node: NodeId,
    /// The node's class; without a class, its type.
    pub class: GraphText<'static>,
    /// The bytes that the node retains.
    pub retained_size: u128,
    /// The number of nodes that it immediately dominates.
    pub children: usize,
}

/// Finds nodes directly below the root of the dominator tree that retain a large part of the heap, and classes whose
/// nodes directly below the root together retain a large part. The largest suspect is first.
pub fn suspects(tree: &DominatorTree<'_>, options: &SuspectOptions) -> Vec<Suspect> {
    suspects_watched(tree, options, &AnalysisProgress::new()).expect(NOT_CANCELLED)
}

/// [`suspects`] with an [`AnalysisProgress`], which shows the progress and can cancel the analysis.
///
/// # Errors
///
/// Returns a [`CancelledError`] if the analysis was cancelled.
pub fn suspects_watched(
    tree: &DominatorTree<'_>,
    options: &SuspectOptions,
    progress: &AnalysisProgress,
) -> Result<Vec<Suspect>, CancelledError> {
    let total = tree.retained_size(NodeIndex::ROOT).unwrap_or_default();
    let percent = |size: u128| if total == 0 { 0.0 } else { size as f64 * 100.0 / total as f64 };
    let mut suspects = Vec::new();
    let mut groups: IndexMap<GraphTextId, Vec<NodeIndex>> = IndexMap::new();
    for node in tree.immediately_dominated(NodeIndex::ROOT) {
        let size = tree.retained_size(node.index()).unwrap_or_default();
        if total > 0 && percent(size) >= options.percent {
            suspects.push(Suspect {
                class: class(node).into_owned(),
                nodes: vec![node.id()],
                retained_size: size,
                percent: percent(size),
                path: path(tree, node, options.drop_ratio),
            });
        } else {
            groups.entry(node.class_id()).or_default().push(node.index());
        }
    }
    let members = groups.values().enumerate();
    let members = members.flat_map(|(group, nodes)| nodes.iter().map(move |node| (*node, group as u32)));
    let sizes = retained_by_groups_watched(tree, groups.len(), members.collect(), progress)?;
    for ((class, nodes), size) in groups.into_iter().zip(sizes) {
        if total > 0 && percent(size) >= options.percent {
            let class = tree.graph().text(class).into_owned();
            suspects.push(Suspect {
                class,
                nodes: nodes.into_iter().map(|node| tree.graph().node(node).id()).collect(),
                retained_size: size,
                percent: percent(size),
                path: Vec::new(),
            });
        }
    }
    suspects.sort_by_key(|suspect| core::cmp::Reverse(suspect.retained_size));
    Ok(suspects)
}

fn path(tree: &DominatorTree<'_>, start: HeapNode<'_>, drop_ratio: f64) -> Vec<AccumulationStep> {
    let mut path = Vec::new();
    let mut next = Some(start.index());
    while let Some(index) = next {
        let node = tree.graph().node(index);
        let size = tree.retained_size(index).unwrap_or_default();
        let mut children = tree.immediately_dominated(index);
        path.push(AccumulationStep {
            node: node.id(),
            class: class(node).into_owned(),
            retained_size: size,
            children: children.len(),
        });
        next = children.next().map(HeapNode::index).filter(|child| {
            let child = tree.retained_size(*child).unwrap_or_default();
            child as f64 >= size as f64 * drop_ratio
        });
    }
    path
}

fn class(node: HeapNode<'_>) -> GraphText<'_> {
    node.graph().text(node.class_id())
}
