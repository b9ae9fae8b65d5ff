//! Rows: a part of a tree or a list as a front end shows it, sorted, with what is open.
//!
//! A front end never has the whole tree. It names what is open and asks for the rows from one place on.

use core::cmp::Reverse;
use core::hash::{Hash as _, Hasher as _};
use core::iter;
use std::collections::HashSet;
use std::hash::DefaultHasher;
use std::sync::Arc;

use heap_graph::census::{CensusTreeName, CensusTreeNode};
use heap_graph::dominators::FetchOptions;
use heap_graph::{CensusTree, DominatorTree, NodeIndex};
use serde::Deserialize;

use super::answer::Answer;
use super::compute::Key;
use super::error::SessionError;
use super::generations::{Generations, census_name};
use super::query::{GroupBy, Query};
use super::store::Session;

/// The most rows of one request.
const MAX_ROWS: usize = 500;
/// The most open rows of one request.
const MAX_OPEN: usize = 10_000;
/// A row of a census has its leaves if there are at most this many.
const MAX_LEAVES: usize = 100;
/// Browsers hold whole numbers below this exactly.
const EXACT: u64 = 1 << 53;

/// A column of numbers. In JSON it is its [`name`](Self::name).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
#[allow(clippy::exhaustive_enums, reason = "a front end shows each of them")]
pub enum Column {
    /// Bytes of the group itself.
    Bytes,
    /// The nodes of the group itself.
    Count,
    /// Bytes of the group and all below.
    TotalBytes,
    /// The nodes of the group and all below.
    TotalCount,
    /// Bytes that a node alone keeps alive, itself included.
    Retained,
    /// Bytes of the node itself.
    Shallow,
    /// How much the group grew from the first to the last of several snapshots.
    Growth,
    /// Bytes of the group in one of several snapshots, by its place.
    In(u8),
    /// The name, not a number.
    Name,
}

/// The columns that are not of one of several snapshots, with their names.
const COLUMNS: [(Column, &str); 8] = [
    (Column::Bytes, "bytes"),
    (Column::Count, "count"),
    (Column::TotalBytes, "total-bytes"),
    (Column::TotalCount, "total-count"),
    (Column::Retained, "retained"),
    (Column::Shallow, "shallow"),
    (Column::Growth, "growth"),
    (Column::Name, "name"),
];

impl Column {
    /// Its name: `total-bytes`, `in-0`.
    pub fn name(self) -> String {
        match self {
            Self::In(place) => format!("in-{place}"),
            other => {
                COLUMNS.iter().find(|(column, _)| *column == other).map_or("", |(_, name)| name).to_owned()
            }
        }
    }
}

impl TryFrom<String> for Column {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let of_snapshot = || name.strip_prefix("in-")?.parse().ok().map(Self::In);
        let known = COLUMNS.iter().find(|(_, known)| *known == name).map(|(column, _)| *column);
        known.or_else(of_snapshot).ok_or_else(|| format!("no column has the name {name}"))
    }
}

const CENSUS: &[Column] = &[Column::Bytes, Column::Count, Column::TotalBytes, Column::TotalCount];
const NODES: &[Column] = &[Column::Retained, Column::Shallow];

/// An order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[allow(clippy::exhaustive_structs, reason = "a column and a direction")]
pub struct Sort {
    /// The column.
    pub column: Column,
    /// Whether the least comes first.
    #[serde(default)]
    pub ascending: bool,
}

/// Which rows to take.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RowsOptions {
    /// The first row, from 0.
    pub start: usize,
    /// The number of rows; at most 500.
    pub count: usize,
    /// The rows that are open, by [`Row::id`].
    pub open: HashSet<u64>,
    /// The order. By default the rows have the order of the tree: most bytes first.
    pub sort: Option<Sort>,
    /// The breakdown that names nodes; the preset `label` by default.
    pub label: Option<GroupBy>,
}

impl RowsOptions {
    /// The first `count` rows, with nothing open.
    pub fn first(count: usize) -> Self {
        Self { count, ..Self::default() }
    }

    /// Sets [`start`](Self::start).
    #[must_use]
    pub fn start(self, start: usize) -> Self {
        Self { start, ..self }
    }

    /// Opens a row.
    #[must_use]
    pub fn open(mut self, id: u64) -> Self {
        self.open.insert(id);
        self
    }

    /// Sets [`sort`](Self::sort).
    #[must_use]
    pub fn sort(self, column: Column, ascending: bool) -> Self {
        Self { sort: Some(Sort { column, ascending }), ..self }
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The id of the node. For a row of a census, a number below 2^53 that follows from its names, so that
    /// another filter or order keeps it open.
    pub id: u64,
    /// The depth, from 0.
    pub level: usize,
    /// The parts of its name.
    pub name: Vec<String>,
    /// The numbers, one for each column.
    pub numbers: Vec<i128>,
    /// The number of rows below.
    pub children: usize,
    /// Whether they are open.
    pub is_open: bool,
    /// The leaves of the census that it counts, for [`Query::Individuals`]; empty if there are more than 100.
    pub leaves: Vec<u64>,
}

/// Rows, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rows {
    /// The columns of numbers.
    pub columns: Vec<Column>,
    /// The 100 % of each column.
    pub whole: Vec<i128>,
    /// The number of all rows with what is open.
    pub total: usize,
    /// The number of nodes found, if a list has not all of them; else `total`.
    pub found: usize,
    /// The rows asked for.
    pub rows: Vec<Row>,
}

impl Session {
    /// Rows of the answer to `query`.
    ///
    /// # Errors
    ///
    /// [`SessionError::TooMuch`] for more than 500 rows or 10,000 open ones; [`SessionError::Failed`] for an answer without
    /// rows.
    pub fn rows(
        &self,
        query: &Query,
        answer: &Arc<Answer>,
        options: &RowsOptions,
    ) -> Result<Rows, SessionError> {
        if options.count > MAX_ROWS {
            return Err(SessionError::TooMuch("rows", MAX_ROWS));
        }
        if options.open.len() > MAX_OPEN {
            return Err(SessionError::TooMuch("open rows", MAX_OPEN));
        }
        match &**answer {
            Answer::Tree(tree) => Ok(census_rows(tree, options)),
            Answer::Generations(generations) => Ok(generation_rows(generations, options)),
            Answer::Dominators(shared) => {
                let key = Key::Query(query.clone());
                self.engine.begin_rows(&key);
                let rows = node_rows(&shared.tree(), None, options);
                self.engine.end_rows(&key);
                rows
            }
            Answer::Nodes { tree, nodes, found } => {
                let mut rows = node_rows(&tree.tree(), Some(nodes), options)?;
                rows.found = *found;
                Ok(rows)
            }
            _ => Err(SessionError::Failed(format!("{} has no rows", query.kind()))),
        }
    }
}

/// Something with rows below rows.
trait Forest {
    type Node: Copy;
    fn roots(&self) -> Vec<Self::Node>;
    fn below(&self, node: Self::Node) -> Vec<Self::Node>;
    fn id(&self, node: Self::Node, parent: u64) -> u64;
    fn number(&self, node: Self::Node, column: Column) -> i128;
    fn name(&self, node: Self::Node) -> String;
}

/// A row before it has a name and numbers.
struct Place<N> {
    node: N,
    level: usize,
    id: u64,
}

/// The rows in sight, and the number of all.
fn flatten<F: Forest>(forest: &F, options: &RowsOptions) -> (Vec<Place<F::Node>>, usize) {
    let sorted = |mut nodes: Vec<F::Node>| {
        match options.sort {
            None => {}
            Some(Sort { column: Column::Name, ascending }) => {
                nodes.sort_by_cached_key(|node| forest.name(*node));
                if !ascending {
                    nodes.reverse();
                }
            }
            Some(Sort { column, ascending: true }) => {
                nodes.sort_by_cached_key(|node| forest.number(*node, column));
            }
            Some(Sort { column, ascending: false }) => {
                nodes.sort_by_cached_key(|node| Reverse(forest.number(*node, column)));
            }
        }
        nodes.into_iter()
    };
    let range = options.start..options.start.saturating_add(options.count);
    let (mut rows, mut total) = (Vec::new(), 0);
    let mut stack = vec![(sorted(forest.roots()), 0)];
    while let Some((level, (nodes, parent))) = stack.len().checked_sub(1).zip(stack.last_mut()) {
        let Some(node) = nodes.next() else {
            stack.pop();
            continue;
        };
        let is_shown = range.contains(&total);
        total += 1;
        if options.open.is_empty() && !is_shown {
            continue;
        }
        let id = forest.id(node, *parent);
        if is_shown {
            rows.push(Place { node, level, id });
        }
        if options.open.contains(&id) {
            stack.push((sorted(forest.below(node)), id));
        }
    }
    (rows, total)
}

/// The id of a group below another one.
fn group_id(name: Option<&CensusTreeName>, parent: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (parent, name).hash(&mut hasher);
    hasher.finish() % EXACT
}

impl<'a> Forest for &'a CensusTree {
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

    fn number(&self, node: Self::Node, column: Column) -> i128 {
        match column {
            Column::Count => node.count,
            Column::TotalBytes => node.total_bytes,
            Column::TotalCount => node.total_count,
            _ => node.bytes,
        }
    }

    fn name(&self, node: Self::Node) -> String {
        census_name(node.name.as_ref())
    }
}

fn census_rows(tree: &CensusTree, options: &RowsOptions) -> Rows {
    let (places, total) = flatten(&tree, options);
    let rows = places.into_iter().map(|Place { node, level, id }| Row {
        id,
        level,
        name: vec![census_name(node.name.as_ref())],
        numbers: CENSUS.iter().map(|column| (&tree).number(node, *column)).collect(),
        children: tree.child_count(node),
        is_open: options.open.contains(&id),
        leaves: if node.leaves.len() > MAX_LEAVES {
            Vec::new()
        } else {
            node.leaves.iter().copied().collect()
        },
    });
    let root = tree.root();
    let whole = vec![root.total_bytes, root.total_count, root.total_bytes, root.total_count];
    Rows { columns: CENSUS.to_vec(), whole, total, found: total, rows: rows.collect() }
}

impl Forest for Generations {
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

    fn number(&self, node: usize, column: Column) -> i128 {
        let group = self.group(node);
        match column {
            Column::In(place) => group.amounts.get(usize::from(place)).copied().unwrap_or_default(),
            _ => group.growth(),
        }
    }

    fn name(&self, node: usize) -> String {
        census_name(self.group(node).name.as_ref())
    }
}

fn generation_rows(all: &Generations, options: &RowsOptions) -> Rows {
    let (places, total) = flatten(all, options);
    let columns: Vec<Column> =
        iter::once(Column::Growth).chain((0..all.count() as u8).map(Column::In)).collect();
    let numbers = |node| columns.iter().map(|column| all.number(node, *column)).collect::<Vec<_>>();
    let rows = places.into_iter().map(|Place { node, level, id }| Row {
        id,
        level,
        name: vec![all.name(node)],
        numbers: numbers(node),
        children: all.groups_below(node).len(),
        is_open: options.open.contains(&id),
        leaves: Vec::new(),
    });
    let rows = rows.collect();
    // Growth is a share of what was there at first.
    let mut whole = numbers(0);
    whole[0] = whole.get(1).copied().unwrap_or_default();
    Rows { columns, whole, total, found: total, rows }
}

/// A dominator tree, or a list of its nodes.
struct Nodes<'a> {
    tree: &'a DominatorTree<'a>,
    list: Option<&'a [NodeIndex]>,
}

impl Forest for Nodes<'_> {
    type Node = NodeIndex;

    fn roots(&self) -> Vec<NodeIndex> {
        match self.list {
            Some(list) => list.to_vec(),
            None => self.below(NodeIndex::ROOT),
        }
    }

    fn below(&self, node: NodeIndex) -> Vec<NodeIndex> {
        self.tree.immediately_dominated(node).map(|node| node.index()).collect()
    }

    fn id(&self, node: NodeIndex, _: u64) -> u64 {
        self.tree.graph().node(node).id().0
    }

    fn number(&self, node: NodeIndex, column: Column) -> i128 {
        match column {
            Column::Shallow => self.tree.graph().node(node).shallow_size().into(),
            _ => signed(self.tree.retained_size(node)),
        }
    }

    fn name(&self, node: NodeIndex) -> String {
        self.tree.graph().node(node).title().to_string()
    }
}

fn signed(size: Option<u128>) -> i128 {
    i128::try_from(size.unwrap_or_default()).unwrap_or(i128::MAX)
}

fn node_rows(
    tree: &DominatorTree<'_>,
    list: Option<&[NodeIndex]>,
    options: &RowsOptions,
) -> Result<Rows, SessionError> {
    let forest = Nodes { tree, list };
    let (places, total) = flatten(&forest, options);
    let mut fetch = FetchOptions::new().depth(1).siblings(0);
    if let Some(label) = &options.label {
        fetch = fetch.label(label.breakdown());
    }
    let rows = places.into_iter().map(|Place { node, level, id }| {
        let shown = tree.partial(node, &fetch)?;
        Ok(Row {
            id,
            level,
            name: shown.label.iter().map(ToString::to_string).collect(),
            numbers: NODES.iter().map(|column| forest.number(node, *column)).collect(),
            children: tree.immediately_dominated(node).len(),
            is_open: options.open.contains(&id),
            leaves: Vec::new(),
        })
    });
    let rows = rows.collect::<Result<Vec<_>, SessionError>>()?;
    let whole = vec![signed(tree.retained_size(NodeIndex::ROOT)); NODES.len()];
    Ok(Rows { columns: NODES.to_vec(), whole, total, found: total, rows })
}
