//! Census, tree, individuals and differences.

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use heap_graph::census::{CensusDifference, CensusTreeName, TreeOptions};
use heap_graph::dominators::MAX_INDIVIDUALS;
use heap_graph::{Breakdown, CensusReport, CensusTree, DominatorTree};

use super::super::Failure;
use super::input::{SnapshotInput, breakdown};
use super::table::{NumberTable, percent};

#[derive(Args)]
pub(super) struct CensusCommand {
    #[command(flatten)]
    input: SnapshotInput,
    /// Group the nodes by this breakdown: a name, or JSON.
    #[arg(long, short, value_name = "BREAKDOWN", default_value = "default")]
    breakdown: String,
    /// Write JSON instead of text.
    #[arg(long)]
    json: bool,
}

impl CensusCommand {
    pub(super) fn run(self) -> Result<String, Failure> {
        let (breakdown, _) = breakdown(&self.breakdown)?;
        let report = take(&self.input, &self.input.file, &breakdown)?;
        if self.json {
            // The text of stacks can be far larger than the stacks in memory, so it is written directly.
            let mut out = io::stdout().lock();
            report.write_json(&mut out).and_then(|()| out.write_all(b"\n")).map_err(Failure::Output)?;
            return Ok(String::new());
        }
        Ok(table(&CensusTree::new(&report, &TreeOptions::default()), usize::MAX))
    }
}

fn take(
    input: &SnapshotInput,
    file: &std::path::Path,
    breakdown: &Breakdown,
) -> Result<CensusReport, Failure> {
    let graph = input.read_file(file)?;
    heap_graph::census(&graph, breakdown)
        .map_err(|error| Failure::File(file.display().to_string(), error.into()))
}

/// Options of trees.
#[derive(Args)]
struct TreeShape {
    /// Put leaves at the top, and the entries that lead to them below.
    #[arg(long)]
    invert: bool,
    /// Show only entries that contain this text. An entry is the name of a group; the entries above it are shown, too.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Show at most this many levels.
    #[arg(long, value_name = "LEVELS")]
    depth: Option<usize>,
}

impl TreeShape {
    fn options(&self) -> TreeOptions {
        let options = TreeOptions::new().invert(self.invert);
        match &self.filter {
            Some(text) => options.filter(text),
            None => options,
        }
    }
}

#[derive(Args)]
pub(super) struct TreeCommand {
    #[command(flatten)]
    input: SnapshotInput,
    /// Group the nodes by this breakdown: a name, or JSON.
    #[arg(long, short, value_name = "BREAKDOWN", default_value = "type")]
    breakdown: String,
    #[command(flatten)]
    shape: TreeShape,
    /// Write JSON instead of text.
    #[arg(long)]
    json: bool,
}

impl TreeCommand {
    pub(super) fn run(self) -> Result<String, Failure> {
        let (breakdown, _) = breakdown(&self.breakdown)?;
        let report = take(&self.input, &self.input.file, &breakdown)?;
        let tree = CensusTree::new(&report, &self.shape.options());
        if self.json {
            return Ok(tree.to_json());
        }
        Ok(table(&tree, self.shape.depth.unwrap_or(usize::MAX)))
    }
}

fn table(tree: &CensusTree, depth: usize) -> String {
    let mut table =
        NumberTable::new(["bytes", "", "count", "", "total bytes", "", "total count", ""], "group");
    let root = tree.root();
    let mut stack = vec![(root, 0)];
    while let Some((node, level)) = stack.pop() {
        let part = |number: i128, whole| [number.to_string(), percent(number, whole)];
        let [bytes, bytes_part] = part(node.bytes, root.total_bytes);
        let [count, count_part] = part(node.count, root.total_count);
        let [total_bytes, total_bytes_part] = part(node.total_bytes, root.total_bytes);
        let [total_count, total_count_part] = part(node.total_count, root.total_count);
        let numbers = [
            bytes,
            bytes_part,
            count,
            count_part,
            total_bytes,
            total_bytes_part,
            total_count,
            total_count_part,
        ];
        table.row(numbers, level * 2, &CensusTreeName::title(node.name.as_ref()));
        if level < depth {
            let children: Vec<_> = tree.children(node).map(|child| (child, level + 1)).collect();
            stack.extend(children.into_iter().rev());
        }
    }
    table.to_text()
}

#[derive(Args)]
pub(super) struct IndividualsCommand {
    #[command(flatten)]
    input: SnapshotInput,
    /// Group the nodes by this breakdown: a name, or JSON.
    #[arg(long, short, value_name = "BREAKDOWN", default_value = "type")]
    breakdown: String,
    /// A leaf of the census, by its `reportLeafIndex` in the tree. Repeatable.
    #[arg(long = "leaf", value_name = "INDEX")]
    leaves: Vec<u64>,
    /// All leaves below the entry with this name. Repeatable.
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// Show at most this many rows of each table.
    #[arg(long, alias = "max", value_name = "N", default_value_t = MAX_INDIVIDUALS)]
    limit: usize,
    /// Write JSON instead of text.
    #[arg(long)]
    json: bool,
}

impl IndividualsCommand {
    pub(super) fn run(self) -> Result<String, Failure> {
        if self.leaves.is_empty() && self.names.is_empty() {
            return Err(Failure::Usage("no nodes chosen; give --leaf INDEX or --name NAME".to_owned()));
        }
        let (breakdown, _) = breakdown(&self.breakdown)?;
        let graph = self.input.read()?;
        let mut leaves: HashSet<u64> = self.leaves.iter().copied().collect();
        if !self.names.is_empty() {
            let report = heap_graph::census(&graph, &breakdown).map_err(|error| self.input.failure(error))?;
            let tree = CensusTree::new(&report, &TreeOptions::default());
            let mut stack = vec![(tree.root(), false)];
            while let Some((node, is_below)) = stack.pop() {
                let is_wanted = is_below || self.names.contains(&CensusTreeName::title(node.name.as_ref()));
                if is_wanted {
                    leaves.extend(&node.leaves);
                }
                stack.extend(tree.children(node).map(|child| (child, is_wanted)));
            }
        }
        let tree = DominatorTree::new(&graph);
        let nodes =
            heap_graph::dominators::individuals(&tree, &breakdown, |leaf| leaves.contains(&leaf), self.limit)
                .map_err(|error| self.input.failure(error))?;
        let retained = |node: heap_graph::HeapNode<'_>| tree.retained_size(node.index()).unwrap_or_default();
        if self.json {
            let nodes: Vec<_> = nodes
                .iter()
                .map(|node| {
                    let (id, shallow, retained) = (node.id(), node.shallow_size(), retained(*node));
                    format!("{{\"nodeId\":{id},\"shallowSize\":{shallow},\"retainedSize\":{retained}}}")
                })
                .collect();
            return Ok(format!("[{}]", nodes.join(",")));
        }
        let mut table = NumberTable::new(["retained", "shallow", "id"], "node");
        for node in nodes {
            let numbers =
                [retained(node).to_string(), node.shallow_size().to_string(), node.id().to_string()];
            table.row(numbers, 0, &super::dominators::title(node));
        }
        Ok(table.to_text())
    }
}

#[derive(Args)]
pub(super) struct SnapshotDiffCommand {
    #[command(flatten)]
    first: SnapshotInput,
    /// The later snapshot.
    second: PathBuf,
    /// Group the nodes by this breakdown: a name, or JSON.
    #[arg(long, short, value_name = "BREAKDOWN", default_value = "type")]
    breakdown: String,
    #[command(flatten)]
    shape: TreeShape,
    /// Write JSON instead of text. The JSON contains the difference and its trees.
    #[arg(long)]
    json: bool,
}

impl SnapshotDiffCommand {
    pub(super) fn run(self) -> Result<String, Failure> {
        let (breakdown, json) = breakdown(&self.breakdown)?;
        let first = take(&self.first, &self.first.file, &breakdown)?;
        let second = take(&self.first, &self.second, &breakdown)?;
        let difference = CensusDifference::new(&first, &second);
        if !self.json {
            let tree = CensusTree::from_difference(&difference, &self.shape.options());
            return Ok(table(&tree, self.shape.depth.unwrap_or(usize::MAX)));
        }
        let tree =
            |invert| CensusTree::from_difference(&difference, &self.shape.options().invert(invert)).to_json();
        Ok(format!(
            "{{\"breakdown\":{json},\"delta\":{},\"basisTotalBytes\":{},\"basisTotalCount\":{},\"tree\":{},\"inverted\":{}}}",
            difference.delta.to_json(),
            difference.basis_total_bytes,
            difference.basis_total_count,
            tree(false),
            tree(true),
        ))
    }
}
