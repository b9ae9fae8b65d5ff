//! The dominator tree.

use std::fmt::Write as _;

use clap::Args;
use heap_graph::dominators::{DominatorTreeNode, FetchOptions};
use heap_graph::{DominatorTree, HeapNode, NodeIndex};

use super::super::Failure;
use super::input::{SnapshotInput, breakdown};
use super::table::{NumberTable, percent};

#[derive(Args)]
pub(super) struct DominatorsCommand {
    #[command(flatten)]
    input: SnapshotInput,
    /// Print a line for each node that the root reaches, except the root: id, immediate dominator, retained size.
    #[arg(long, group = "form")]
    tsv: bool,
    /// Write JSON instead of text.
    #[arg(long, group = "form")]
    json: bool,
    /// Print retained sizes by class.
    #[arg(long, group = "form")]
    by_class: bool,
    /// Print the memory that each field keeps alive. A field is all edges with the same name from nodes of one class.
    #[arg(long, group = "form")]
    by_field: bool,
    /// Start from this node instead of the root.
    #[arg(long, value_name = "ID")]
    start: Option<u64>,
    /// Show at most this many levels.
    #[arg(long, value_name = "LEVELS", default_value_t = 4, value_parser = levels)]
    depth: usize,
    /// Print at most this many children of each node.
    #[arg(long, value_name = "COUNT", default_value_t = 15)]
    siblings: usize,
    /// Label the nodes by this breakdown: a name, or JSON.
    #[arg(long, value_name = "BREAKDOWN", default_value = "label")]
    label: String,
}

fn levels(text: &str) -> Result<usize, String> {
    let depth = text.parse().map_err(|_| "not a number".to_owned())?;
    match depth {
        1..=FetchOptions::MAX_DEPTH => Ok(depth),
        _ => Err(format!("must be between 1 and {}", FetchOptions::MAX_DEPTH)),
    }
}

impl DominatorsCommand {
    pub(super) fn run(self) -> Result<String, Failure> {
        let (label, _) = breakdown(&self.label)?;
        let graph = self.input.read()?;
        let tree = DominatorTree::new(&graph);
        if self.tsv {
            return Ok(tsv(&tree));
        }
        if self.by_class {
            return Ok(by_class(&tree, usize::MAX));
        }
        if self.by_field {
            return Ok(by_field(&tree));
        }
        let start = match self.start {
            Some(id) => {
                let start = self.input.find(&graph, id)?.index();
                if !tree.is_reachable(start) {
                    let unreachable = anyhow::anyhow!("the root does not reach node {id}");
                    return Err(self.input.failure(unreachable));
                }
                start
            }
            None => NodeIndex::ROOT,
        };
        let options = FetchOptions::new().depth(self.depth).siblings(self.siblings).label(label);
        let top = tree.partial(start, &options).map_err(|error| self.input.failure(error))?;
        if self.json {
            return Ok(top.to_json());
        }
        let whole = tree.retained_size(NodeIndex::ROOT).unwrap_or_default();
        let mut table = NumberTable::new(["retained", "", "shallow", "id"], "dominator");
        rows(&top, 0, i128::try_from(whole).unwrap_or(i128::MAX), &mut table);
        Ok(table.to_text())
    }
}

/// Returns a heading, and one line for each node that the root reaches, except the root, in the order of the file.
fn tsv(tree: &DominatorTree<'_>) -> String {
    let mut text = String::from("#id\timmediate_dominator\tretained_size\n");
    for node in tree.graph().nodes() {
        if let Some(dominator) = tree.immediate_dominator(node.index()) {
            let retained = tree.retained_size(node.index()).unwrap_or_default();
            let _ = writeln!(text, "{}\t{}\t{retained}", node.id(), dominator.id());
        }
    }
    text
}

/// Returns the retained sizes of at most `limit` classes, the largest first, as a text.
pub(super) fn by_class(tree: &DominatorTree<'_>, limit: usize) -> String {
    let sizes = heap_graph::dominators::sizes_by_class(tree).into_iter().take(limit);
    table(tree, "class", sizes.map(|of| (of.retained_size, of.shallow_size, of.count, of.class.to_string())))
}

fn by_field(tree: &DominatorTree<'_>) -> String {
    let sizes = heap_graph::dominators::sizes_by_field(tree).into_iter();
    table(tree, "field", sizes.map(|of| (of.retained_size, of.shallow_size, of.count, of.name())))
}

/// Returns a line for each group of nodes: its retained and shallow size, its count and its name.
fn table(
    tree: &DominatorTree<'_>,
    kind: &'static str,
    groups: impl Iterator<Item = (u128, u128, u64, String)>,
) -> String {
    let whole = tree.retained_size(NodeIndex::ROOT).unwrap_or_default();
    let whole = i128::try_from(whole).unwrap_or(i128::MAX);
    let mut table = NumberTable::new(["retained", "", "shallow", "count"], kind);
    for (retained, shallow, count, name) in groups {
        let part = percent(i128::try_from(retained).unwrap_or(i128::MAX), whole);
        table.row([retained.to_string(), part, shallow.to_string(), count.to_string()], 0, &name);
    }
    table.to_text()
}

fn rows(node: &DominatorTreeNode, level: usize, whole: i128, table: &mut NumberTable<4>) {
    let label: Vec<_> = node.label.iter().map(ToString::to_string).collect();
    let part = percent(i128::try_from(node.retained_size).unwrap_or(i128::MAX), whole);
    let numbers =
        [node.retained_size.to_string(), part, node.shallow_size.to_string(), node.node_id.to_string()];
    table.row(numbers, level * 2, &label.join(" > "));
    for child in &node.children {
        rows(child, level + 1, whole, table);
    }
    if node.more_children_available && !node.children.is_empty() {
        table.row(Default::default(), level * 2 + 2, "...");
    }
}

/// Returns the title of a node: its type, and its class, descriptive type and script if known.
pub(super) fn title(node: HeapNode<'_>) -> String {
    let mut title = node.type_name().to_string();
    for more in
        [node.class_name(), node.descriptive_type_name(), node.script_file_name()].into_iter().flatten()
    {
        title += &format!(" {more}");
    }
    title
}
