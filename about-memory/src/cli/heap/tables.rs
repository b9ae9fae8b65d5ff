//! A typed heap for the served page: a heap snapshot, and the tables of the heap.

use std::io;
use std::path::Path;
use std::time::Duration;

use about_memory::serve::{TypeTable, TypeTableRow, TypeTables};
use dmd_analyze::Dump;
use dmd_analyze::program::Workspace;
use heap_graph::dominators::sizes_by_field;
use heap_graph::snapshot::SnapshotWriteOptions;
use heap_graph::{DominatorTree, Graph, NodeIndex};
use typed_heap::{TypedHeap, WasteKind};

use super::super::input::InputArgument;
use super::super::{Failure, new_file};
use super::{NO_FIELDS, TYPED, TypedHeapReader, counted, size, tasks, types, waste};

/// The page gets at most this many rows of a table.
const ROWS: usize = 1000;

/// Saves a typed heap as a heap snapshot. Returns the graph.
pub(crate) fn save_graph(
    heap: &TypedHeap<'_>,
    dump: &Dump,
    source: &str,
    path: &Path,
) -> Result<Graph, Failure> {
    let graph = heap.graph(dump).map_err(|error| Failure::File(source.to_owned(), error.into()))?;
    // The file is private because it contains names of types, fields and functions.
    let written = new_file::write(path, true, |out| -> io::Result<()> {
        heap_graph::snapshot::write(&graph, out, &SnapshotWriteOptions::new()).map(drop)
    });
    written.map_err(|error| {
        Failure::File(path.display().to_string(), anyhow::anyhow!("cannot be written: {error}"))
    })?;
    Ok(graph)
}

/// Returns a function that can run on another thread. The function saves the typed heap of a source as a heap snapshot
/// and returns the tables of the heap. An error of the function is a sentence for the user.
pub(crate) fn saver(
    reading: TypedHeapReader,
    source: InputArgument,
) -> impl FnOnce(&Path) -> Result<TypeTables, String> + Send + 'static {
    move |path| save(&reading, &source, None, path).map_err(|failure| failure.lines(TYPED).join("; "))
}

/// Saves the typed heap of a source as a heap snapshot. Returns the tables of the heap.
fn save(
    reading: &TypedHeapReader,
    source: &InputArgument,
    timeout: Option<Duration>,
    path: &Path,
) -> Result<TypeTables, Failure> {
    let mut tables = TypeTables::default();
    reading.with(source, timeout, |heap, memory, dump| {
        let graph = save_graph(heap, dump, &source.name(), path)?;
        let census = heap.census();
        let rows = census.rows.iter().map(|row| TypeTableRow {
            bytes: row.bytes,
            blocks: row.blocks,
            text: row.name.clone(),
            of_type: Some(row.name.clone()),
        });
        let by_type = TypeTable::new("type", "By type", census.bytes, rows.collect(), ROWS);

        let tree = DominatorTree::new(&graph);
        let amount = |amount: u128| u64::try_from(amount).unwrap_or(u64::MAX);
        let fields = sizes_by_field(&tree);
        let rows = fields.iter().map(|field| TypeTableRow {
            bytes: amount(field.retained_size),
            blocks: field.count,
            text: types::name(field),
            of_type: None,
        });
        let all = amount(tree.retained_size(NodeIndex::ROOT).unwrap_or_default());
        let by_field = TypeTable::new("field", "By field that keeps them alive", all, rows.collect(), ROWS);

        let tasks = heap.tasks(memory, &tree);
        let workspace = Workspace::from_frames(dump.stacks().flatten());
        let rows = tasks.rows.iter().map(|row| TypeTableRow {
            bytes: row.retained_bytes,
            blocks: row.tasks,
            text: tasks::chain(row, &workspace),
            of_type: None,
        });
        let by_await = TypeTable::new("task", "Async tasks by await", census.bytes, rows.collect(), ROWS);

        let is_known = heap.knows_fields();
        let waste = heap.waste(memory);
        let rows = waste.rows.iter().map(|row| TypeTableRow {
            bytes: row.unused_bytes,
            blocks: row.blocks,
            text: waste::unused(row),
            // A row of an enum does not lead to blocks: the enum's values are inside blocks of other types.
            of_type: (row.unused != WasteKind::Variants).then(|| row.name.clone()),
        });
        let unused = TypeTable::new("waste", "Not used", census.bytes, rows.collect(), ROWS);

        let percent = 100.0 * census.typed_bytes as f64 / census.bytes.max(1) as f64;
        let agreement = heap.agreement();
        let mut summary = format!(
            "{} in {}; {percent:.2}% has a type. {} of {} pointers agree with the allocation stack about the type of their block.",
            size(census.bytes),
            counted(census.blocks),
            agreement.agree,
            agreement.agree + agreement.disagree
        );
        for (count, text) in [
            (agreement.disagree, "Pointers that contradict the stack"),
            (agreement.same_layout, "Pointers that contradict the stack because the compiler merged functions"),
            (agreement.owners_disagree, "Pointers that contradict other pointers to the same block"),
            (agreement.outweighed, "Overruled pointers, whose blocks keep the types of the stacks"),
        ] {
            if count > 0 {
                summary += &format!(" {text}: {count}.");
            }
        }
        if agreement.without_layout > 0 {
            summary += &format!(" Without a layout: {}.", counted(agreement.without_layout));
        }
        if !is_known {
            summary += &format!(" Fields, unused memory and async tasks are {NO_FIELDS}");
        }
        let said = |why: &'static str| {
            move |(stack, owner, pointers): (&str, &str, u64)| TypeTableRow {
                bytes: 0,
                blocks: pointers,
                text: format!("{owner}, and the stack names {stack}{why}"),
                of_type: Some(owner.to_owned()),
            }
        };
        let rows = types::sorted(agreement.disagreements()).into_iter().map(said(""));
        let merged = types::sorted(agreement.merged()).into_iter().map(said(": the compiler merged functions"));
        let rows = rows.chain(merged).collect();
        let disagreements = TypeTable::by_pointers("disagreement", "Disagreements", rows, ROWS);
        let mut all = vec![by_type];
        if is_known {
            all.extend([by_field, unused]);
        }
        all.extend([by_await, disagreements].into_iter().filter(|table| !table.rows.is_empty()));
        tables = TypeTables::new(summary, all);
        Ok(())
    })?;
    Ok(tables)
}
