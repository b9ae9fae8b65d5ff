//! Fetches parts of the dominator tree for a front end: first some levels, then more on request.

use core::fmt::Write as _;

use super::DominatorTree;
use crate::census::{Breakdown, CensusError, CensusKey, CensusReport, describe_node};
use crate::graph::{GraphText, HeapNode, NodeId, NodeIndex};
use crate::json::list;

/// The limits and labels of a request.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    pub(crate) depth: usize,
    pub(crate) siblings: usize,
    pub(crate) label: Breakdown,
}

impl Default for FetchOptions {
    fn default() -> Self {
        let label = Breakdown::preset("label").expect("the preset `label` exists");
        Self { depth: 4, siblings: 15, label }
    }
}

impl FetchOptions {
    /// The largest number of levels of one request.
    pub const MAX_DEPTH: usize = 200;

    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of levels, including the root's. Default: 4. At most [`MAX_DEPTH`](Self::MAX_DEPTH).
    pub fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets the largest number of children of each node. Default: 15.
    pub fn siblings(mut self, siblings: usize) -> Self {
        self.siblings = siblings;
        self
    }

    /// Sets the breakdown that names nodes. Default: the preset `label`.
    pub fn label(mut self, breakdown: Breakdown) -> Self {
        self.label = breakdown;
        self
    }
}

/// A node of the dominator tree, for display.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DominatorTreeNode {
    /// The id of the node.
    pub node_id: NodeId,
    /// The keys under which the label breakdown counts the node.
    pub label: Vec<GraphText<'static>>,
    /// The bytes of the node itself.
    pub shallow_size: u64,
    /// The bytes of the node and of all nodes that it dominates.
    pub retained_size: u128,
    /// The node's immediate dominator; `None` for the root.
    pub parent_id: Option<NodeId>,
    /// The fetched children: nodes that this node immediately dominates.
    pub children: Vec<DominatorTreeNode>,
    /// Whether the node has more children than `children` contains.
    pub more_children_available: bool,
}

/// Further children of a node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FetchedChildren {
    /// The children.
    pub nodes: Vec<DominatorTreeNode>,
    /// Whether the parent has more children after `nodes`.
    pub more_children_available: bool,
    /// The nodes from the root to the parent of the children.
    pub path: Vec<NodeId>,
}

impl DominatorTree<'_> {
    /// Returns some levels of the tree, from `start` downwards.
    ///
    /// # Errors
    ///
    /// Returns a [`CensusError`] if the label breakdown fails on a node.
    pub fn partial(
        &self,
        start: NodeIndex,
        options: &FetchOptions,
    ) -> Result<DominatorTreeNode, CensusError> {
        self.partial_at(start, 1, options)
    }

    fn partial_at(
        &self,
        start: NodeIndex,
        level: usize,
        options: &FetchOptions,
    ) -> Result<DominatorTreeNode, CensusError> {
        let mut node = self.displayed(self.graph.node(start), options)?;
        let children = self.immediately_dominated(start);
        let siblings = if level < options.depth.min(FetchOptions::MAX_DEPTH) { options.siblings } else { 0 };
        node.more_children_available = children.len() > siblings;
        for child in children.take(siblings) {
            node.children.push(self.partial_at(child.index(), level + 1, options)?);
        }
        Ok(node)
    }

    /// Returns at most `count` children of a node, from index `start`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`partial`](Self::partial).
    pub fn fetch(
        &self,
        node: NodeIndex,
        start: usize,
        count: usize,
        options: &FetchOptions,
    ) -> Result<FetchedChildren, CensusError> {
        let children = self.immediately_dominated(node);
        let more_children_available = children.len() > start.saturating_add(count);
        let mut nodes = Vec::new();
        for child in children.skip(start).take(count) {
            let mut shown = self.displayed(child, options)?;
            shown.more_children_available = self.immediately_dominated(child.index()).len() > 0;
            nodes.push(shown);
        }
        let mut path: Vec<_> = self.dominators_of(node).map(HeapNode::id).collect();
        path.reverse();
        Ok(FetchedChildren { nodes, more_children_available, path })
    }

    fn displayed(
        &self,
        node: HeapNode<'_>,
        options: &FetchOptions,
    ) -> Result<DominatorTreeNode, CensusError> {
        Ok(DominatorTreeNode {
            node_id: node.id(),
            label: label(node, &options.label)?,
            shallow_size: node.shallow_size(),
            retained_size: self.retained_size(node.index()).unwrap_or_default(),
            parent_id: self.immediate_dominator(node.index()).map(HeapNode::id),
            children: Vec::new(),
            more_children_available: false,
        })
    }
}

/// The keys under which a breakdown counts the node, without empty keys.
pub(crate) fn label(
    node: HeapNode<'_>,
    breakdown: &Breakdown,
) -> Result<Vec<GraphText<'static>>, CensusError> {
    let report = describe_node(node, breakdown)?;
    let mut path = Vec::new();
    find(&report, &mut path);
    path.retain(|key| *key != "");
    Ok(path)
}

fn find(report: &CensusReport, path: &mut Vec<GraphText<'static>>) -> bool {
    match report {
        CensusReport::Count(count) => {
            count.count.is_some_and(|n| n != 0) || count.bytes.is_some_and(|n| n != 0)
        }
        CensusReport::Bucket(ids) => !ids.is_empty(),
        _ => report.children().into_iter().any(|(key, below)| {
            path.push(match key {
                CensusKey::Text(text) => text,
                CensusKey::Stack(stack) => stack.frame.to_string().into(),
                CensusKey::Place(place) => place.to_string().into(),
            });
            find(below, path) || {
                path.pop();
                false
            }
        }),
    }
}

impl DominatorTreeNode {
    /// The node as JSON in one line, in the format that Firefox's front end uses.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        let _ = write!(out, "{{\"nodeId\":{},\"label\":", self.node_id);
        list(out, &self.label, |out, text| text.write_json(out));
        let (shallow, retained) = (self.shallow_size, self.retained_size);
        let _ = write!(out, ",\"shallowSize\":{shallow},\"retainedSize\":{retained}");
        if let Some(parent) = self.parent_id {
            let _ = write!(out, ",\"parentId\":{parent}");
        }
        if !self.children.is_empty() {
            out.push_str(",\"children\":");
            list(out, &self.children, |out, child| child.write_json(out));
        }
        let _ = write!(out, ",\"moreChildrenAvailable\":{}}}", self.more_children_available);
    }
}
