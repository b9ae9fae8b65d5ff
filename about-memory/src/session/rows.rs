//! Rows: a sorted window of a tree or a list, with the rows that are open.
//!
//! A front end never gets the whole tree. It names the open rows, and requests the rows from an index on.

use core::iter;
use std::sync::Arc;

use heap_graph::census::{CensusTreeName, CensusTreeNode};
use heap_graph::dominators::FetchOptions;
use heap_graph::{CensusTree, DominatorTree, NodeIndex};

use super::answer::{QueryAnswer, SuspectClass, SuspectGroup};
use super::column::{RowColumn, RowSort};
use super::compute::TaskKey;
use super::error::SessionError;
use super::forest::{RowForest, RowPlace, flatten, sort_nodes};
use super::generations::Generations;
use super::group_id::group_id;
use super::query::Query;
use super::rows_options::RowsOptions;
use super::store::Session;
use super::suspect_rows::{SuspectForest, SuspectRow};

/// One request may ask for at most this many rows.
const MAX_ROWS: usize = 500;
/// One request may name at most this many open and closed rows.
const MAX_OPEN: usize = 10_000;

const CENSUS: &[RowColumn] =
    &[RowColumn::Bytes, RowColumn::Count, RowColumn::TotalBytes, RowColumn::TotalCount];
const NODES: &[RowColumn] = &[RowColumn::Retained, RowColumn::Shallow];
const CLASSES: &[RowColumn] = &[RowColumn::Retained, RowColumn::Shallow, RowColumn::Count];

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionRow {
    /// The id of the node. A row of a census or a group of suspects has a number below 2^53 that is computed from its
    /// names, so that the row stays open with another filter or order. A class has its index.
    pub id: u64,
    /// The depth, from 0.
    pub level: usize,
    /// The index of the parent row among all rows, from 0; `None` at the top.
    pub parent: Option<usize>,
    /// The parts of the row's name.
    pub name: Vec<String>,
    /// The numbers, one for each column.
    pub numbers: Vec<i128>,
    /// The number of rows below.
    pub children: usize,
    /// Whether the rows below are open.
    pub is_open: bool,
    /// Whether the row is a group with its own nodes, for [`Query::Individuals`].
    pub has_nodes: bool,
    /// Whether the row is a node. `id` is then the node's id.
    pub is_node: bool,
}

/// A window of rows, and the number of all rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowWindow {
    /// The columns of numbers.
    pub columns: Vec<RowColumn>,
    /// The amount that is 100 % of each column.
    pub whole: Vec<i128>,
    /// The number of all rows in all windows: the roots, and the rows below open rows.
    pub total: usize,
    /// The number of nodes that the query found, for a list of nodes and for a filtered dominator tree; otherwise
    /// `total`.
    pub found: usize,
    /// The requested rows.
    pub rows: Vec<SessionRow>,
}

impl Session {
    /// Returns rows of the answer to `query`.
    ///
    /// # Errors
    ///
    /// Returns [`SessionError::TooMuch`] if `options` requests more than 500 rows, or names more than 10,000 open and
    /// closed rows. Returns [`SessionError::Failed`] if the answer has no rows.
    pub fn rows(
        &self,
        query: &Query,
        answer: &Arc<QueryAnswer>,
        options: &RowsOptions,
    ) -> Result<RowWindow, SessionError> {
        if options.count > MAX_ROWS {
            return Err(SessionError::TooMuch("rows", MAX_ROWS));
        }
        if options.open.len() + options.open_below.len() + options.closed.len() > MAX_OPEN {
            return Err(SessionError::TooMuch("open rows", MAX_OPEN));
        }
        match &**answer {
            QueryAnswer::Tree(tree) => Ok(census_rows(tree, options)),
            QueryAnswer::Generations(generations) => Ok(generation_rows(generations, options)),
            QueryAnswer::Dominators(shared) => {
                let key = TaskKey::Query(query.clone());
                self.node_rows(&key, &shared.tree(), ShownNodes::All, options)
            }
            QueryAnswer::Part { tree, kept, found } => {
                let key = TaskKey::Query(query.clone());
                let mut rows = self.node_rows(&key, &tree.tree(), ShownNodes::Part(kept), options)?;
                rows.found = *found;
                Ok(rows)
            }
            QueryAnswer::Nodes { tree, nodes, found } => {
                let key = TaskKey::Query(query.clone());
                let mut rows = self.node_rows(&key, &tree.tree(), ShownNodes::List(nodes), options)?;
                rows.found = *found;
                Ok(rows)
            }
            QueryAnswer::Suspects { tree, groups } => suspect_rows(&tree.tree(), groups, options),
            QueryAnswer::Classes(classes) => Ok(class_rows(classes, options)),
            _ => Err(SessionError::Failed(format!("{} has no rows", query.kind()))),
        }
    }

    /// Returns rows of the nodes that answer `key`.
    fn node_rows(
        &self,
        key: &TaskKey,
        tree: &DominatorTree<'_>,
        shown: ShownNodes<'_>,
        options: &RowsOptions,
    ) -> Result<RowWindow, SessionError> {
        let mut forest = NodeForest { tree, shown, sorted: None };
        if let Some(sort) = options.sort {
            let sorted = self.engine.orders.get(key, sort, || {
                let mut roots = forest.roots();
                sort_nodes(&forest, &mut roots, sort);
                roots
            });
            forest.sorted = Some(sorted);
        }
        node_rows(&forest, options)
    }
}

impl<'a> RowForest for &'a CensusTree {
    type Node = &'a CensusTreeNode;

    fn roots(&self) -> Vec<Self::Node> {
        self.children(self.root()).collect()
    }

    fn below(&self, node: Self::Node) -> Vec<Self::Node> {
        self.children(node).collect()
    }

    fn id(&self, node: Self::Node, parent: u64) -> u64 {
        group_id(node.name.as_ref(), parent)
    }

    fn number(&self, node: Self::Node, column: RowColumn) -> i128 {
        match column {
            RowColumn::Count => node.count,
            RowColumn::TotalBytes => node.total_bytes,
            RowColumn::TotalCount => node.total_count,
            _ => node.bytes,
        }
    }

    fn name(&self, node: Self::Node) -> String {
        CensusTreeName::title(node.name.as_ref())
    }
}

fn census_rows(tree: &CensusTree, options: &RowsOptions) -> RowWindow {
    let (places, total) = flatten(&tree, options);
    let rows = places.into_iter().map(|RowPlace { node, level, parent, id, is_open }| SessionRow {
        id,
        level,
        parent,
        name: vec![CensusTreeName::title(node.name.as_ref())],
        numbers: CENSUS.iter().map(|column| (&tree).number(node, *column)).collect(),
        children: tree.child_count(node),
        is_open,
        has_nodes: !node.leaves.is_empty(),
        is_node: false,
    });
    let root = tree.root();
    let whole = vec![root.total_bytes, root.total_count, root.total_bytes, root.total_count];
    RowWindow { columns: CENSUS.to_vec(), whole, total, found: total, rows: rows.collect() }
}

impl RowForest for Generations {
    type Node = usize;

    fn roots(&self) -> Vec<usize> {
        self.below(0)
    }

    fn below(&self, node: usize) -> Vec<usize> {
        self.groups_below(node).to_vec()
    }

    fn id(&self, node: usize, parent: u64) -> u64 {
        group_id(self.group(node).name.as_ref(), parent)
    }

    fn number(&self, node: usize, column: RowColumn) -> i128 {
        let group = self.group(node);
        match column {
            RowColumn::In(place) => group.amounts.get(usize::from(place)).copied().unwrap_or_default(),
            _ => group.growth(),
        }
    }

    fn name(&self, node: usize) -> String {
        CensusTreeName::title(self.group(node).name.as_ref())
    }
}

fn generation_rows(all: &Generations, options: &RowsOptions) -> RowWindow {
    let (places, total) = flatten(all, options);
    let columns: Vec<RowColumn> =
        iter::once(RowColumn::Growth).chain((0..all.count() as u8).map(RowColumn::In)).collect();
    let numbers = |node| columns.iter().map(|column| all.number(node, *column)).collect::<Vec<_>>();
    let rows = places.into_iter().map(|RowPlace { node, level, parent, id, is_open }| SessionRow {
        id,
        level,
        parent,
        name: vec![all.name(node)],
        numbers: numbers(node),
        children: all.groups_below(node).len(),
        is_open,
        has_nodes: all.group(node).has_nodes,
        is_node: false,
    });
    let rows = rows.collect();
    // Growth is a share of the amount in the first snapshot.
    let mut whole = numbers(0);
    whole[0] = whole.get(1).copied().unwrap_or_default();
    RowWindow { columns, whole, total, found: total, rows }
}

impl RowForest for &[SuspectClass] {
    type Node = usize;

    fn roots(&self) -> Vec<usize> {
        (0..self.len()).collect()
    }

    fn below(&self, _: usize) -> Vec<usize> {
        Vec::new()
    }

    fn id(&self, node: usize, _: u64) -> u64 {
        node as u64
    }

    fn number(&self, node: usize, column: RowColumn) -> i128 {
        let class = &self[node];
        match column {
            RowColumn::Count => class.count.into(),
            RowColumn::Shallow => signed(class.shallow),
            _ => signed(class.retained),
        }
    }

    fn name(&self, node: usize) -> String {
        self[node].name.clone()
    }
}

fn class_rows(classes: &[SuspectClass], options: &RowsOptions) -> RowWindow {
    let (places, total) = flatten(&classes, options);
    let numbers = |node| CLASSES.iter().map(|column| (&classes).number(node, *column)).collect();
    let rows = places.into_iter().map(|RowPlace { node, level, parent, id, .. }| SessionRow {
        id,
        level,
        parent,
        name: vec![classes[node].name.clone()],
        numbers: numbers(node),
        children: 0,
        is_open: false,
        has_nodes: false,
        is_node: false,
    });
    let sum = |of: fn(&SuspectClass) -> i128| classes.iter().map(of).sum();
    // Several classes may retain the same bytes. So 100 % of the retained sizes is the sum of the shallow sizes.
    let shallow = sum(|class| signed(class.shallow));
    let whole = vec![shallow, shallow, sum(|class| class.count.into())];
    RowWindow { columns: CLASSES.to_vec(), whole, total, found: total, rows: rows.collect() }
}

/// The nodes of a dominator tree that become rows.
#[derive(Clone, Copy)]
enum ShownNodes<'a> {
    /// All nodes, as a tree.
    All,
    /// The nodes with a bit set, as an open tree.
    Part(&'a [u64]),
    /// A list of nodes.
    List(&'a [NodeIndex]),
}

struct NodeForest<'a> {
    tree: &'a DominatorTree<'a>,
    shown: ShownNodes<'a>,
    /// The roots in the order that the front end requested.
    sorted: Option<Arc<Vec<NodeIndex>>>,
}

impl RowForest for NodeForest<'_> {
    type Node = NodeIndex;

    fn roots(&self) -> Vec<NodeIndex> {
        match self.shown {
            ShownNodes::List(list) => list.to_vec(),
            ShownNodes::All | ShownNodes::Part(_) => self.below(NodeIndex::ROOT),
        }
    }

    fn below(&self, node: NodeIndex) -> Vec<NodeIndex> {
        let below = self.tree.immediately_dominated(node).map(|node| node.index());
        match self.shown {
            ShownNodes::Part(kept) => {
                below.filter(|node| kept[node.get() / 64] >> (node.get() % 64) & 1 == 1).collect()
            }
            ShownNodes::All | ShownNodes::List(_) => below.collect(),
        }
    }

    fn id(&self, node: NodeIndex, _: u64) -> u64 {
        self.tree.graph().node(node).id().0
    }

    fn number(&self, node: NodeIndex, column: RowColumn) -> i128 {
        match column {
            RowColumn::Shallow => self.tree.graph().node(node).shallow_size().into(),
            _ => signed(self.tree.retained_size(node).unwrap_or_default()),
        }
    }

    fn name(&self, node: NodeIndex) -> String {
        self.tree.graph().node(node).title().to_string()
    }

    fn sorted_roots(&self, _: RowSort) -> Option<Vec<NodeIndex>> {
        self.sorted.as_deref().cloned()
    }

    fn is_open(&self) -> bool {
        matches!(self.shown, ShownNodes::Part(_))
    }
}

fn signed(size: u128) -> i128 {
    i128::try_from(size).unwrap_or(i128::MAX)
}

fn node_rows(forest: &NodeForest<'_>, options: &RowsOptions) -> Result<RowWindow, SessionError> {
    let NodeForest { tree, shown, .. } = *forest;
    let (places, total) = flatten(forest, options);
    let names = names(options);
    let rows = places.into_iter().map(|RowPlace { node, level, parent, id, is_open }| {
        Ok(SessionRow {
            id,
            level,
            parent,
            name: name_of(tree, node, &names)?,
            numbers: NODES.iter().map(|column| forest.number(node, *column)).collect(),
            children: match shown {
                ShownNodes::Part(_) => forest.below(node).len(),
                ShownNodes::All | ShownNodes::List(_) => tree.immediately_dominated(node).len(),
            },
            is_open,
            has_nodes: false,
            is_node: true,
        })
    });
    let rows = rows.collect::<Result<Vec<_>, SessionError>>()?;
    Ok(rows_of_nodes(tree, rows, total))
}

fn rows_of_nodes(tree: &DominatorTree<'_>, rows: Vec<SessionRow>, total: usize) -> RowWindow {
    let whole = signed(tree.retained_size(NodeIndex::ROOT).unwrap_or_default());
    RowWindow { columns: NODES.to_vec(), whole: vec![whole; NODES.len()], total, found: total, rows }
}

/// Returns the options for naming nodes.
fn names(options: &RowsOptions) -> FetchOptions {
    let fetch = FetchOptions::new().depth(1).siblings(0);
    match &options.label {
        Some(label) => fetch.label(label.breakdown()),
        None => fetch,
    }
}

fn name_of(
    tree: &DominatorTree<'_>,
    node: NodeIndex,
    names: &FetchOptions,
) -> Result<Vec<String>, SessionError> {
    Ok(tree.partial(node, names)?.label.iter().map(ToString::to_string).collect())
}

fn suspect_rows(
    tree: &DominatorTree<'_>,
    groups: &[SuspectGroup],
    options: &RowsOptions,
) -> Result<RowWindow, SessionError> {
    let forest = SuspectForest { tree, groups };
    let (places, total) = flatten(&forest, options);
    let names = names(options);
    let rows = places.into_iter().map(|RowPlace { node, level, parent, id, is_open }| {
        let (name, children, is_node) = match node {
            SuspectRow::Group(place) => (vec![forest.name(node)], groups[place].nodes.len(), false),
            SuspectRow::Node(node) => (name_of(tree, node, &names)?, 0, true),
        };
        let numbers = NODES.iter().map(|column| forest.number(node, *column)).collect();
        Ok(SessionRow { id, level, parent, name, numbers, children, is_open, has_nodes: false, is_node })
    });
    let rows = rows.collect::<Result<Vec<_>, SessionError>>()?;
    Ok(rows_of_nodes(tree, rows, total))
}
