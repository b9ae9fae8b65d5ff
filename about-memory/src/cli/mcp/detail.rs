//! The answers about one row: its parts, the paths to it, and its source lines.

use std::fmt::Write as _;
use std::sync::Arc;

use about_memory::session::{Query, QueryAnswer};
use dmd_analyze::program::bytes;
use heap_graph::NodeId;
use serde_json::{Value, json};

use super::argument::CheckedArguments;
use super::control::CallControl;
use super::graph_source::GraphSource;
use super::opened::{MemoryTools, limit, max_bytes};
use super::page::{self, PageStart, SCHEMA, ToolAnswer, cut, number, quoted};
use super::source::{OpenedSource, SourceData};
use super::stack_source;
use super::table::{AmountRow, AmountTable, RowChoice, TableView, short};

/// The paths and stacks of `why`, and the calls of `source`, by default.
const PATHS: u64 = 5;
const CALLS: u64 = 12;
/// A name in a path has at most this many bytes.
const PATH_NAME: usize = 80;
/// The lines before and after a call's line.
const LINES_AROUND: usize = 2;

type AnswerResult = Result<ToolAnswer, String>;

/// One row in detail.
pub(super) fn node(
    tools: &MemoryTools,
    arguments: &CheckedArguments<'_>,
    control: &CallControl,
) -> AnswerResult {
    let source = tools.find(arguments.required("handle"))?;
    let id = arguments.required("id");
    let edges = arguments.flag("edges");
    let key = format!("{}/node/{edges}/{id}", source.handle);
    let (heading, table) = match &source.data {
        SourceData::Reports(reports) => {
            let found = reports.node(id).ok_or("no report has this path; `rows` lists the paths")?;
            let (sums, description) = found;
            let description = if description.is_empty() { description } else { quoted(&description, 400) };
            let heading = format!("{}: {} {description}\n", quoted(id, 200), bytes(sums.bytes));
            (heading, tools.cache.table(&key, || reports.children(id, sums.bytes, control))?)
        }
        SourceData::Stacks(stacks) => {
            let stacks = stacks.stacks()?;
            let index = stacks.find(id).ok_or("no stack has this id; `rows` by stack lists the ids")?;
            let (of_bytes, blocks) = stacks.amounts(index);
            let labels: Vec<String> =
                stacks.labels(index).map(|(name, label)| format!("{name} {}", quoted(label, 160))).collect();
            let rows = stacks.frames(index).map(|frame| AmountRow {
                name: short(&stacks.name(&frame)),
                place: stack_source::place(&frame),
                bytes: of_bytes,
                count: blocks,
                ..AmountRow::default()
            });
            let table = AmountTable::new("call", "bytes of the whole stack", "blocks", rows.collect());
            let heading =
                format!("Stack {id}: {} in {blocks} blocks. {}\n", bytes(of_bytes), labels.join(", "));
            let table = table.overlapping().note("The innermost call is first.");
            (heading, tools.cache.table(&key, || Ok(table))?)
        }
        SourceData::Graph(graph) => {
            let (heading, table) = graph_node(graph, id, edges, control)?;
            (heading, tools.cache.table(&key, || Ok(table))?)
        }
    };
    tools.page(&key, &table, arguments, &heading)
}

fn node_id(id: &str) -> Result<u64, String> {
    id.parse().map_err(|_| "the id of a node is a number; `rows` by node lists the ids".to_owned())
}

fn graph_node(
    source: &GraphSource,
    id: &str,
    edges: bool,
    control: &CallControl,
) -> Result<(String, AmountTable), String> {
    let id = node_id(id)?;
    let graph = source.graph()?;
    let node = graph.find(NodeId(id)).ok_or("no node has this id; `rows` by node lists the ids")?;
    let tree = source.tree(control)?;
    let retained = tree.tree().retained_size(node.index());
    let retained = retained.map_or_else(
        || "it is unreachable".to_owned(),
        |retained| format!("it keeps {} alive", bytes(i128::try_from(retained).unwrap_or(i128::MAX))),
    );
    let heading = format!(
        "Node {id} {}: {} itself, {retained}, {} edges.\n",
        quoted(&node.title().to_string(), 200),
        bytes(node.shallow_size().into()),
        node.edges().len()
    );
    if !edges {
        return Ok((heading, source.dominated(id, control)?));
    }
    let rows = node.edges().map(|edge| AmountRow {
        id: edge.referent.id().0.to_string(),
        name: match edge.name {
            Some(name) => {
                format!("{}: {}", short(&name.to_string()), short(&edge.referent.title().to_string()))
            }
            None => short(&edge.referent.title().to_string()),
        },
        bytes: edge.referent.shallow_size().into(),
        count: 1,
        ..AmountRow::default()
    });
    let table = AmountTable::new("edge", "bytes of the referenced node itself", "edges", rows.collect());
    Ok((heading, table.overlapping()))
}

/// Paths to a node, or the stacks that contain a name.
pub(super) fn why(
    tools: &MemoryTools,
    arguments: &CheckedArguments<'_>,
    control: &CallControl,
) -> AnswerResult {
    let source = tools.find(arguments.required("handle"))?;
    let (id, name) = (arguments.text("id"), arguments.text("name"));
    let graph = match &source.data {
        SourceData::Graph(graph) => graph,
        SourceData::Stacks(_) => return stacks_with(tools, &source, name.or(id), arguments, control),
        SourceData::Reports(_) => {
            return Err("reports have no paths: `node` shows the description of a report".to_owned());
        }
    };
    let (node, found) = match (id, name) {
        (Some(id), None) => (node_id(id)?, 1),
        (None, Some(name)) => graph.largest(name, control)?,
        _ => return Err("name either `id` or `name`".to_owned()),
    };
    let most = limit(arguments, PATHS);
    let answer = graph.ask(Query::Paths { snapshot: graph.id, node, max: most }, control)?;
    let QueryAnswer::Paths(paths) = &*answer else { return Err("the answer has paths".to_owned()) };
    let heading = match found {
        1 => String::new(),
        found => format!("{found} nodes have this name; node {node} keeps the most alive.\n"),
    };
    Ok(page::fit(paths.len(), max_bytes(arguments), |count| {
        let mut text = format!("{heading}{} paths to node {node}:\n", paths.len());
        let mut listed = Vec::new();
        for path in paths.iter().take(count) {
            let left_out = path.len().saturating_sub(PATH_STEPS);
            let kept = path.iter().enumerate().filter(|(place, _)| {
                left_out == 0 || *place < PATH_STEPS / 2 || *place >= PATH_STEPS / 2 + left_out
            });
            let mut steps = Vec::new();
            for (place, step) in kept {
                if left_out > 0 && place == PATH_STEPS / 2 + left_out {
                    let _ = write!(text, "... {left_out} nodes ... > ");
                }
                let edge = step.edge.as_deref().unwrap_or_default();
                let _ = write!(text, "{} [id {}]", quoted(&step.name, PATH_NAME), step.node);
                if place + 1 < path.len() {
                    let _ = write!(text, " .{} > ", quoted(edge, PATH_NAME));
                }
                steps.push(json!({
                    "id": step.node.to_string(), "name": cut(&step.name, PATH_NAME), "edge": cut(edge, PATH_NAME),
                }));
            }
            text.push('\n');
            listed.push(json!({ "steps": steps, "leftOut": left_out }));
        }
        let structured = json!({
            "schema": SCHEMA,
            "handle": source.handle,
            "notes": [],
            "node": node.to_string(),
            "found": found,
            "total": { "paths": paths.len() },
            "shown": { "paths": listed.len() },
            "rest": { "paths": paths.len() - listed.len() },
            "cursor": null,
            "paths": listed,
        });
        ToolAnswer { structured, text }
    }))
}

/// A path shows at most this many nodes: those next to the root and next to the node.
const PATH_STEPS: usize = 8;

/// The stacks that contain a name.
fn stacks_with(
    tools: &MemoryTools,
    source: &Arc<OpenedSource>,
    name: Option<&str>,
    arguments: &CheckedArguments<'_>,
    control: &CallControl,
) -> AnswerResult {
    let Some(name) = name else { return Err("name a function, a file or a type with `name`".to_owned()) };
    let SourceData::Stacks(stacks) = &source.data else { return Err("the source has no stacks".to_owned()) };
    let table = tools.table(source, "stack", control)?;
    let stacks = stacks.stacks()?;
    let choice = RowChoice { filter: name.to_owned(), ..RowChoice::default() };
    // The id of a stack is more exact than a name.
    let choice = if stacks.find(name).is_some() { RowChoice::default() } else { choice };
    let key = format!("{}/why/{name}", source.handle);
    let start = PageStart::new(&(&*key, &choice), arguments.text("cursor"))?;
    let view = match stacks.find(name) {
        Some(index) => {
            let row = table.rows.row(index);
            let one = AmountTable::new("stack", table.bytes, table.counts, vec![row]);
            Arc::new(TableView::new(&Arc::new(one), &choice))
        }
        None => tools.cache.view(&key, &table, &choice),
    };
    let whole = source.data.total();
    let left = view.len().saturating_sub(start.first);
    Ok(page::fit(limit(arguments, PATHS).min(left), max_bytes(arguments), |count| {
        let (mut object, mut text) = page::part(&view, &start, count);
        let mut paths = Vec::new();
        for place in start.first..(start.first + count).min(view.len()) {
            let row = view.row(place);
            let Some(index) = stacks.find(&row.id) else { continue };
            let calls: Vec<String> = stacks
                .frames(index)
                .take(CALLS as usize)
                .map(|frame| format!("{} at {}", short(&stacks.name(&frame)), stack_source::place(&frame)))
                .map(|call| cut(&call, 160))
                .collect();
            let _ = writeln!(text, "Stack {}:", row.id);
            calls.iter().for_each(|call| text += &format!("  {}\n", quoted(call, 160)));
            paths.push(
                json!({ "id": row.id, "calls": calls, "leftOut": stacks.frames(index).len() - calls.len() }),
            );
        }
        object.insert("schema".to_owned(), json!(SCHEMA));
        object.insert("handle".to_owned(), json!(source.handle));
        object.insert("notes".to_owned(), json!([]));
        object.insert(
            "whole".to_owned(),
            json!({ "bytes": number(whole.bytes), "count": number(whole.count) }),
        );
        object.insert("paths".to_owned(), json!(paths));
        ToolAnswer { structured: Value::Object(object), text }
    }))
}

/// A call of a stack: its function, file and line.
struct SourceCall {
    function: String,
    file: String,
    line: Option<u32>,
}

/// The name of a file to open. No file has a name that is longer than a path can be.
fn file_name(name: &str) -> String {
    const MAX_PATH: usize = 4096;
    if name.len() <= MAX_PATH { name.to_owned() } else { short(name) }
}

/// The source lines of a stack.
pub(super) fn source(tools: &MemoryTools, arguments: &CheckedArguments<'_>, _: &CallControl) -> AnswerResult {
    let source = tools.find(arguments.required("handle"))?;
    let id = arguments.required("id");
    let shown = limit(arguments, CALLS);
    let (whole, calls): (usize, Vec<SourceCall>) = match &source.data {
        SourceData::Reports(_) => return Err("reports have no stacks".to_owned()),
        SourceData::Stacks(stacks) => {
            let stacks = stacks.stacks()?;
            let index = stacks.find(id).ok_or("no stack has this id; `rows` by stack lists the ids")?;
            let call = |frame: memory_export::ProfileFrame<'_>| SourceCall {
                function: short(&stacks.name(&frame)),
                file: frame.file.map(file_name).unwrap_or_default(),
                line: frame.line,
            };
            let frames = stacks.frames(index);
            (frames.len(), frames.take(shown).map(call).collect())
        }
        SourceData::Graph(graph) => {
            let graph = graph.graph()?;
            let node = graph.find(NodeId(node_id(id)?)).ok_or("no node has this id")?;
            let stack = node.allocation_stack().ok_or("the node has no allocation stack")?;
            let calls = stack.frames().map(|frame| SourceCall {
                function: frame.function().map(|function| short(&function.to_string())).unwrap_or_default(),
                file: file_name(&frame.source().to_string()),
                line: Some(frame.line()),
            });
            (stack.frames().count(), calls.take(shown).collect())
        }
    };
    let lines: Vec<Vec<String>> = calls.iter().map(|call| lines_of(tools, call)).collect();
    Ok(page::fit(calls.len(), max_bytes(arguments), |count| {
        let mut text = format!("{whole} calls, the innermost first:\n");
        let mut listed = Vec::new();
        for (call, lines) in calls.iter().zip(&lines).take(count) {
            let place = match call.line {
                Some(line) => format!("{}:{line}", call.file),
                None => call.file.clone(),
            };
            let _ = writeln!(text, "{} at {}", quoted(&call.function, 160), quoted(&place, 200));
            lines.iter().for_each(|line| text += &format!("    {}\n", quoted(line, 140)));
            listed.push(json!({
                "function": cut(&call.function, 160),
                "file": cut(&call.file, 200),
                "line": call.line,
                "lines": lines,
            }));
        }
        let rest = whole - listed.len();
        if rest > 0 {
            let _ = writeln!(text, "{rest} more calls.");
        }
        let structured = json!({
            "schema": SCHEMA,
            "handle": source.handle,
            "notes": [],
            "total": { "calls": whole },
            "shown": { "calls": listed.len() },
            "rest": { "calls": rest },
            "cursor": null,
            "calls": listed,
        });
        ToolAnswer { structured, text }
    }))
}

/// The lines around a call, with their numbers. Empty if the file is not below an allowed folder.
fn lines_of(tools: &MemoryTools, call: &SourceCall) -> Vec<String> {
    let Some(line) = call.line.filter(|line| *line > 0) else { return Vec::new() };
    let Some(text) = tools.places.source(&call.file) else { return Vec::new() };
    let line = line as usize;
    let first = line.saturating_sub(LINES_AROUND).max(1);
    let lines = text.lines().enumerate().skip(first - 1).take(line + LINES_AROUND + 1 - first);
    lines.map(|(index, text)| format!("{}: {}", index + 1, cut(text, 120))).collect()
}
