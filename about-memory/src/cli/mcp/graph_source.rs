//! Heap graphs as tables: heap snapshots, and the types of core files, of dumps of scan mode and of processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use about_memory::serve::TypeTables;
use about_memory::session::{GroupBy, PendingAnswer, Query, QueryAnswer, Session, SnapshotId, SnapshotState};
use heap_graph::census::{CensusTree, CensusTreeName};
use heap_graph::dominators::SharedDominators;
use heap_graph::{Graph, NodeId, NodeIndex};

use super::super::dump_limits::DumpLimits;
use super::super::heap::{TypedHeapReader, saver};
use super::super::input::InputArgument;
use super::super::symbols::SymbolSearch;
use super::control::CallControl;
use super::table::{AmountRow, AmountTable, RowSource, RowSums, short};

/// The time between two looks at a computation.
const LOOK: Duration = Duration::from_millis(20);
/// A summary waits this long for the suspects of a graph of at most [`SMALL`] nodes. The summary of a larger graph
/// contains the suspects if they are known already.
const PATIENCE: Duration = Duration::from_secs(5);
const SMALL: i128 = 100_000;

/// The breakdown by type: the class of a node or, without a class, its type.
const TYPE: &str = r#"{"by":"objectClass","then":{"by":"count","count":true,"bytes":true},"other":{"by":"internalType","then":{"by":"count","count":true,"bytes":true}}}"#;

/// A heap graph in the session.
pub(super) struct GraphSource {
    session: Session,
    pub(super) id: SnapshotId,
    /// The tables of a typed heap.
    types: Option<TypeTables>,
    total: RowSums,
    /// The computation of the dominator tree and of the suspects, which starts when the graph is read.
    suspects: Option<PendingAnswer>,
}

impl Drop for GraphSource {
    fn drop(&mut self) {
        self.session.remove(self.id);
    }
}

impl GraphSource {
    pub(super) fn open(session: &Session, path: &Path, control: &CallControl) -> Result<Self, String> {
        let id = session.open(path).map_err(|error| error.to_string())?;
        Self::read(session, id, None, control)
    }

    /// Reads the types of a core file or of a dump of scan mode.
    pub(super) fn typed_file(
        session: &Session,
        path: &Path,
        limits: &DumpLimits,
        control: &CallControl,
    ) -> Result<Self, String> {
        let input = InputArgument::from(path.as_os_str().to_owned());
        Self::typed(session, input, limits, control)
    }

    /// Reads the types of a file or of a process.
    pub(super) fn typed(
        session: &Session,
        input: InputArgument,
        limits: &DumpLimits,
        control: &CallControl,
    ) -> Result<Self, String> {
        let title = input.name();
        let save = saver(TypedHeapReader::new(SymbolSearch::default(), limits.clone()), input);
        let tables = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&tables);
        let take = move |path: &Path| {
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(save(path)?);
            Ok(())
        };
        let id = session.take(&title, take).map_err(|error| error.to_string())?;
        Self::read(session, id, Some(tables), control)
    }

    fn read(
        session: &Session,
        id: SnapshotId,
        tables: Option<Arc<Mutex<Option<TypeTables>>>>,
        control: &CallControl,
    ) -> Result<Self, String> {
        let info = loop {
            let found = session.snapshots().into_iter().find(|info| info.id == id);
            let info = found.ok_or("the snapshot was removed while it was read")?;
            match &info.state {
                SnapshotState::Read => break info,
                SnapshotState::Error(reason) => {
                    let reason = reason.clone();
                    session.remove(id);
                    return Err(reason);
                }
                state if control.is_cancelled() => {
                    let state = state.name();
                    session.remove(id);
                    return Err(format!("cancelled while {state}"));
                }
                state => control.say(state.name()),
            }
            std::thread::sleep(LOOK);
        };
        let types = tables.and_then(|tables| tables.lock().unwrap_or_else(PoisonError::into_inner).take());
        let bytes = i128::try_from(info.bytes).unwrap_or(i128::MAX);
        let total = RowSums { rows: 0, bytes, count: info.nodes as i128 };
        let suspects = session.ask(Query::Suspects { snapshot: id }).ok();
        Ok(Self { session: session.clone(), id, types, total, suspects })
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.types.iter().map(|types| types.summary.clone()).collect()
    }

    pub(super) fn total(&self) -> RowSums {
        self.total
    }

    pub(super) fn units(&self) -> [&'static str; 2] {
        match self.types {
            Some(_) => ["usable bytes", "blocks"],
            None => ["bytes of nodes", "nodes"],
        }
    }

    pub(super) fn groups(&self) -> Vec<String> {
        let known = ["type", "retained-type", "node", "suspect", "stack", "file"];
        let of_types = self.types.iter().flat_map(|types| &types.tables);
        let further = of_types.map(|table| table.name.clone()).filter(|name| name != "type");
        known.map(str::to_owned).into_iter().chain(further).collect()
    }

    pub(super) fn graph(&self) -> Result<Arc<Graph>, String> {
        self.session.graph(self.id).map_err(|error| error.to_string())
    }

    /// Asks the session, and cancels the computation with the call.
    pub(super) fn ask(&self, query: Query, control: &CallControl) -> Result<Arc<QueryAnswer>, String> {
        let kind = query.kind();
        let pending = self.session.ask(query).map_err(|error| error.to_string())?;
        loop {
            if let Some(answer) = pending.wait(LOOK) {
                return answer.map_err(|error| error.to_string());
            }
            if control.is_cancelled() {
                return Err("cancelled".to_owned());
            }
            control.say(format!("computing {kind}"));
        }
    }

    fn census(&self, by: &str, control: &CallControl) -> Result<Vec<AmountRow>, String> {
        let by = GroupBy::new(by).map_err(|error| error.to_string())?;
        let query = Query::Census { snapshot: self.id, by, invert: false, filter: String::new() };
        match &*self.ask(query, control)? {
            QueryAnswer::Tree(tree) => Ok(leaves(tree)),
            _ => Err("a census has rows".to_owned()),
        }
    }

    /// The difference to a later graph, by a key of a census.
    pub(super) fn census_changes(
        &self,
        after: &Self,
        group: &str,
        control: &CallControl,
    ) -> Result<AmountTable, String> {
        let by = GroupBy::new(breakdown(group)).map_err(|error| error.to_string())?;
        let query =
            Query::Diff { baseline: self.id, comparison: after.id, by, invert: false, filter: String::new() };
        match &*self.ask(query, control)? {
            QueryAnswer::Tree(tree) => {
                let rows = leaves(tree).into_iter().filter(|row| row.bytes != 0 || row.count != 0).collect();
                Ok(AmountTable::new(group, "change of the nodes' bytes", "nodes", rows))
            }
            _ => Err("a difference has rows".to_owned()),
        }
    }

    /// Whether the suspects are known, or known soon.
    pub(super) fn has_suspects_soon(&self) -> bool {
        let patience = if self.total.count <= SMALL { PATIENCE } else { Duration::ZERO };
        self.suspects.as_ref().is_some_and(|pending| pending.wait(patience).is_some())
    }

    pub(super) fn table(&self, group: &str, control: &CallControl) -> Result<AmountTable, String> {
        Ok(self.table_by(group, control)?.share_of(self.total.bytes))
    }

    fn table_by(&self, group: &str, control: &CallControl) -> Result<AmountTable, String> {
        let [_, counts] = self.units();
        match group {
            "type" => Ok(AmountTable::new("type", "bytes of the nodes", counts, self.census(TYPE, control)?)),
            "stack" | "file" => {
                let rows = self.census(breakdown(group), control)?;
                Ok(AmountTable::new(group, "bytes of the nodes", counts, rows))
            }
            "retained-type" => self.retained_types(control),
            "suspect" => self.suspects(control),
            "node" => {
                let tree = self.tree(control)?;
                Ok(node_table("node", &tree, NodeIndex::ROOT))
            }
            _ => {
                let tables = self.types.iter().flat_map(|types| &types.tables);
                let table = tables.into_iter().find(|table| table.name == group);
                let table = table.ok_or_else(|| format!("there is no group {group}"))?;
                Ok(typed_table(table))
            }
        }
    }

    pub(super) fn tree(&self, control: &CallControl) -> Result<SharedDominators, String> {
        let query = Query::Dominators { snapshot: self.id, filter: String::new() };
        match &*self.ask(query, control)? {
            QueryAnswer::Dominators(tree) => Ok(tree.clone()),
            _ => Err("the answer is a tree".to_owned()),
        }
    }

    fn retained_types(&self, control: &CallControl) -> Result<AmountTable, String> {
        let answer = self.ask(Query::Classes { snapshot: self.id, filter: String::new() }, control)?;
        let QueryAnswer::Classes(classes) = &*answer else { return Err("classes have rows".to_owned()) };
        let rows = classes.iter().map(|class| AmountRow {
            name: short(&class.name),
            bytes: signed(class.retained),
            count: class.count.into(),
            more: vec![("shallow", signed(class.shallow))],
            ..AmountRow::default()
        });
        let bytes = "bytes that would be freed with all nodes of the type";
        Ok(AmountTable::new("retained-type", bytes, "nodes", rows.collect()).overlapping())
    }

    fn suspects(&self, control: &CallControl) -> Result<AmountTable, String> {
        let answer = self.ask(Query::Suspects { snapshot: self.id }, control)?;
        let QueryAnswer::Suspects { tree, groups } = &*answer else {
            return Err("suspects have rows".to_owned());
        };
        let rows = groups.iter().map(|group| AmountRow {
            id: match *group.nodes {
                [node, ..] => tree.graph().node(node).id().0.to_string(),
                [] => String::new(),
            },
            name: short(&group.class),
            bytes: signed(group.retained),
            count: group.count as i128,
            more: vec![("shallow", signed(group.shallow))],
            ..AmountRow::default()
        });
        let bytes = "bytes that would be freed with the nodes";
        let table = AmountTable::new("suspect", bytes, "nodes", rows.collect()).overlapping();
        Ok(table
            .note("A suspect keeps a large part of the heap alive. Its id is the node that keeps the most."))
    }

    /// The nodes that a node alone keeps alive, directly below it.
    pub(super) fn dominated(&self, node: u64, control: &CallControl) -> Result<AmountTable, String> {
        let tree = self.tree(control)?;
        let index = tree.graph().find(NodeId(node)).ok_or("no node has this id")?.index();
        Ok(node_table("dominated", &tree, index))
    }

    /// The id of the node that retains the most among the nodes whose name contains the text, and their number.
    pub(super) fn largest(&self, text: &str, control: &CallControl) -> Result<(u64, usize), String> {
        let query = Query::Search { snapshot: self.id, text: text.to_owned() };
        match &*self.ask(query, control)? {
            QueryAnswer::Nodes { nodes, found, tree } => match nodes.first() {
                Some(node) => Ok((tree.graph().node(*node).id().0, *found)),
                None => Err("no node has this name".to_owned()),
            },
            _ => Err("a search has nodes".to_owned()),
        }
    }
}

fn signed(size: u128) -> i128 {
    i128::try_from(size).unwrap_or(i128::MAX)
}

fn breakdown(group: &str) -> &str {
    match group {
        "stack" => "stack",
        "file" => "filename",
        _ => TYPE,
    }
}

/// The groups of a census that count nodes themselves. Groups with equal names are one row.
fn leaves(tree: &CensusTree) -> Vec<AmountRow> {
    let mut rows: BTreeMap<String, AmountRow> = BTreeMap::new();
    let mut left = vec![tree.root()];
    while let Some(node) = left.pop() {
        left.extend(tree.children(node));
        if node.bytes == 0 && node.count == 0 {
            continue;
        }
        let name = short(&CensusTreeName::title(node.name.as_ref()));
        let row = rows.entry(name.clone()).or_insert_with(|| AmountRow { name, ..AmountRow::default() });
        row.bytes += node.bytes;
        row.count += node.count;
    }
    rows.into_values().collect()
}

fn typed_table(table: &about_memory::serve::TypeTable) -> AmountTable {
    let rows = table.rows.iter().map(|row| AmountRow {
        name: short(&row.text),
        bytes: row.bytes.into(),
        count: row.blocks.into(),
        ..AmountRow::default()
    });
    let (bytes, is_part) = match &*table.name {
        "field" => ("bytes that the field keeps alive", false),
        "waste" => ("bytes that are allocated and not used", true),
        "task" => ("bytes that the tasks keep alive", false),
        _ => ("bytes of the blocks", false),
    };
    let made = AmountTable::new(table.name.clone(), bytes, "blocks", rows.collect());
    let made = if is_part { made } else { made.overlapping() };
    match table.left_out {
        0 => made,
        left_out => made.note(format!("{left_out} smaller rows are not in this table")),
    }
}

/// The nodes directly below a node of the dominator tree.
fn node_table(group: &str, tree: &SharedDominators, above: NodeIndex) -> AmountTable {
    let nodes: Vec<NodeIndex> = tree.tree().immediately_dominated(above).map(|node| node.index()).collect();
    let rows = NodeRows { tree: tree.clone(), nodes };
    let bytes = "bytes that would be freed with the node";
    AmountTable { rows: Box::new(rows), ..AmountTable::new(group, bytes, "nodes", Vec::new()) }
}

struct NodeRows {
    tree: SharedDominators,
    nodes: Vec<NodeIndex>,
}

impl RowSource for NodeRows {
    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn amounts(&self, index: usize) -> (i128, i128) {
        (signed(self.tree.tree().retained_size(self.nodes[index]).unwrap_or_default()), 1)
    }

    fn row(&self, index: usize) -> AmountRow {
        let node = self.tree.graph().node(self.nodes[index]);
        let (bytes, count) = self.amounts(index);
        AmountRow {
            id: node.id().0.to_string(),
            name: short(&node.title().to_string()),
            place: String::new(),
            bytes,
            count,
            more: vec![("shallow", node.shallow_size().into())],
        }
    }

    fn contains(&self, index: usize, text: &str) -> bool {
        self.tree.graph().node(self.nodes[index]).title().contains(text)
    }
}
