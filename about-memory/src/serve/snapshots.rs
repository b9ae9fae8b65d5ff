//! The page's requests about snapshots.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::net::TcpStream;

use heap_graph::snapshot::SnapshotWriteOptions;
use memory_export::{ProfileFormat, pprof, snapshot};
use serde::Deserialize;

use super::answers;
use super::downloads::{PendingDownloads, stacks_format};
use crate::http::{HttpRefusal, HttpResponse};
use crate::session::{Query, QueryAnswer, RowsOptions, Session, SnapshotId, SuspectClass};

/// A query, and the rows that the answer must contain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotRequest {
    query: Query,
    #[serde(default)]
    rows: Option<RowsOptions>,
}

impl SnapshotRequest {
    pub(super) fn answer(&self, session: &Session, stream: &TcpStream) -> Result<HttpResponse, HttpRefusal> {
        let pending = session.ask(self.query.clone()).map_err(answers::refusal)?;
        let answer = answers::wait(&pending, stream)?;
        let value = match &*answer {
            QueryAnswer::TreeMap(root) => answers::tree_map(root),
            QueryAnswer::Paths(paths) => answers::paths(paths),
            _ => {
                let first = RowsOptions::first(100);
                let options = self.rows.as_ref().unwrap_or(&first);
                let rows = session.rows(&self.query, &answer, options).map_err(answers::refusal)?;
                answers::rows(&rows, options.start)
            }
        };
        Ok(HttpResponse::json(&value))
    }
}

/// An answer or a snapshot in a format for other tools.
#[derive(Debug, Deserialize)]
#[serde(tag = "format", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum SnapshotExport {
    /// The snapshot as Firefox's file.
    Fxsnapshot { snapshot: SnapshotId },
    /// The snapshot as V8's file.
    Heapsnapshot { snapshot: SnapshotId },
    /// A census, a difference, several censuses side by side, a tree map or paths, as JSON.
    Json { query: Query },
    /// The nodes of the snapshot, by allocation stack.
    Stacks {
        snapshot: SnapshotId,
        #[serde(deserialize_with = "stacks_format")]
        of: ProfileFormat,
    },
    /// A table: a line for each node with its immediate dominator and sizes, or a line for each class.
    Tsv { query: Query },
}

impl SnapshotExport {
    pub(super) fn run(
        self,
        downloads: &PendingDownloads,
        session: &Session,
        stream: &TcpStream,
    ) -> Result<HttpResponse, HttpRefusal> {
        let ask = |query: Query| {
            let pending = session.ask(query).map_err(answers::refusal)?;
            answers::wait(&pending, stream)
        };
        match self {
            Self::Fxsnapshot { snapshot } => {
                let name = format!("heap-{snapshot}.fxsnapshot");
                if let Ok(path) = session.file(snapshot) {
                    let mut file = File::open(path).map_err(|error| {
                        HttpRefusal::new(409, format!("the file cannot be opened: {error}"))
                    })?;
                    return Ok(HttpResponse::download(name, move |out| io::copy(&mut file, out).map(drop)));
                }
                let graph = session.graph(snapshot).map_err(answers::refusal)?;
                Ok(HttpResponse::download(name, move |out| {
                    heap_graph::snapshot::write(&graph, out, &SnapshotWriteOptions::new()).map(drop)
                }))
            }
            Self::Heapsnapshot { snapshot } => {
                let graph = session.graph(snapshot).map_err(answers::refusal)?;
                Ok(HttpResponse::download(format!("heap-{snapshot}.heapsnapshot"), move |out| {
                    heap_graph::export::write_v8(&graph, out)
                }))
            }
            Self::Stacks { snapshot, of } => {
                let graph = session.graph(snapshot).map_err(answers::refusal)?;
                let name = format!("heap-{snapshot}.{}", of.extension());
                downloads.answer(name, session, stream, |out| {
                    let stacks = snapshot::stacks(&graph).map_err(|error| error.to_string())?;
                    let written = of.write(&stacks, &pprof::PprofOptions::new(), out);
                    written.map(drop).map_err(|error| error.to_string())
                })
            }
            Self::Json { query } => {
                let name = format!("{}.json", query.kind());
                let answer = ask(query)?;
                let text = match &*answer {
                    QueryAnswer::Tree(tree) => tree.to_json(),
                    QueryAnswer::Generations(generations) => generations.to_json().to_string(),
                    QueryAnswer::TreeMap(root) => answers::tree_map(root).to_string(),
                    QueryAnswer::Paths(paths) => answers::paths(paths).to_string(),
                    _ => return Err(HttpRefusal::new(400, "this view has no JSON; ask for tsv")),
                };
                Ok(HttpResponse::download(name, move |out| out.write_all(text.as_bytes())))
            }
            Self::Tsv { query } => {
                let name = format!("{}.tsv", query.kind());
                let answer = ask(query)?;
                if !matches!(
                    &*answer,
                    QueryAnswer::Dominators(_)
                        | QueryAnswer::Part { .. }
                        | QueryAnswer::Nodes { .. }
                        | QueryAnswer::Suspects { .. }
                        | QueryAnswer::Classes(_)
                ) {
                    return Err(HttpRefusal::new(400, "this view has no table; ask for json"));
                }
                Ok(HttpResponse::download(name, move |out| table(&answer, out)))
            }
        }
    }
}

/// Writes a heading, and a line for each node except the root (id, immediate dominator, retained size, shallow size) or
/// for each class.
fn table(answer: &QueryAnswer, out: &mut dyn io::Write) -> io::Result<()> {
    let in_groups: Vec<_>;
    let (shared, list, kept) = match answer {
        QueryAnswer::Dominators(shared) => (shared, None, None),
        QueryAnswer::Part { tree, kept, .. } => (tree, None, Some(kept)),
        QueryAnswer::Nodes { tree, nodes, .. } => (tree, Some(nodes), None),
        QueryAnswer::Suspects { tree, groups } => {
            in_groups = groups.iter().flat_map(|group| group.nodes.iter().copied()).collect();
            (tree, Some(&in_groups), None)
        }
        QueryAnswer::Classes(classes) => return class_table(classes, out),
        _ => return Ok(()),
    };
    let tree = shared.tree();
    writeln!(out, "#id\timmediate_dominator\tretained_size\tshallow_size")?;
    let mut line = String::new();
    let mut write = |node: heap_graph::HeapNode<'_>| {
        let Some(dominator) = tree.immediate_dominator(node.index()) else { return Ok(()) };
        let at = node.index().get();
        if kept.is_some_and(|kept| kept[at / 64] >> (at % 64) & 1 == 0) {
            return Ok(());
        }
        let retained = tree.retained_size(node.index()).unwrap_or_default();
        line.clear();
        let _ = writeln!(line, "{}\t{}\t{retained}\t{}", node.id(), dominator.id(), node.shallow_size());
        out.write_all(line.as_bytes())
    };
    match list {
        Some(list) => list.iter().try_for_each(|node| write(tree.graph().node(*node))),
        None => tree.graph().nodes().try_for_each(write),
    }
}

fn class_table(classes: &[SuspectClass], out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "#class\tretained_size\tshallow_size\tnodes")?;
    classes.iter().try_for_each(|class| {
        let name = class.name.replace(['\t', '\n', '\r'], " ");
        writeln!(out, "{name}\t{}\t{}\t{}", class.retained, class.shallow, class.count)
    })
}
