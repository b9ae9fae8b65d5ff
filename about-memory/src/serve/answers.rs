//! Converts answers of the session to JSON.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::HttpRefusal;
use crate::session::{
    PathStep, PendingAnswer, QueryAnswer, RowWindow, SessionError, SnapshotInfo, TreeMapBox,
};

/// How often a waiting connection checks whether the page still waits.
const LOOK: Duration = Duration::from_millis(20);

pub(super) fn refusal(error: SessionError) -> HttpRefusal {
    let status = match &error {
        SessionError::NoSnapshot(_) | SessionError::NoNode(_) => 404,
        SessionError::Busy(_) | SessionError::Full(_) => 429,
        SessionError::TooMuch(..) => 400,
        _ => 409,
    };
    HttpRefusal::new(status, error.to_string())
}

/// Waits for an answer. If the page closes its connection, the wait ends. The computation is then cancelled unless
/// another connection waits for it.
pub(super) fn wait(pending: &PendingAnswer, stream: &TcpStream) -> Result<Arc<QueryAnswer>, HttpRefusal> {
    loop {
        if let Some(answer) = pending.wait(LOOK) {
            return answer.map_err(refusal);
        }
        if has_gone(stream) {
            return Err(HttpRefusal::gone());
        }
    }
}

pub(super) fn has_gone(stream: &TcpStream) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let peeked = stream.peek(&mut [0]);
    let is_blocking = stream.set_nonblocking(false).is_ok();
    let is_alive = match peeked {
        Ok(read) => read > 0,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    };
    !(is_alive && is_blocking)
}

pub(super) fn snapshot(info: &SnapshotInfo, pid: Option<u32>) -> Value {
    json!({
        "id": info.id.0, "title": info.title, "pid": pid, "state": info.state.name(), "imported": info.is_imported,
        "error": info.state.error(), "time": info.creation_time, "nodes": info.nodes, "edges": info.edges,
        "bytes": number(i128::try_from(info.bytes).unwrap_or(i128::MAX)),
    })
}

/// Converts a number to JSON. The browser rounds a number that floats cannot represent exactly.
pub(super) fn number(number: i128) -> Value {
    match i64::try_from(number) {
        Ok(number) => json!(number),
        Err(_) => json!(number as f64),
    }
}

pub(super) fn rows(rows: &RowWindow, start: usize) -> Value {
    let list = rows.rows.iter().map(|row| {
        json!({
            "id": row.id, "level": row.level, "parent": row.parent, "name": row.name, "children": row.children, "open": row.is_open,
            "numbers": row.numbers.iter().map(|value| number(*value)).collect::<Vec<_>>(), "behind": row.has_nodes,
            "node": row.is_node,
        })
    });
    json!({
        "columns": rows.columns.iter().map(|column| column.name()).collect::<Vec<_>>(),
        "whole": rows.whole.iter().map(|value| number(*value)).collect::<Vec<_>>(),
        "total": rows.total, "found": rows.found, "start": start, "rows": list.collect::<Vec<_>>(),
    })
}

pub(super) fn tree_map(of: &TreeMapBox) -> Value {
    json!({
        "name": of.name, "bytes": number(of.bytes), "count": number(of.count), "leftOut": of.left_out,
        "leftOutBytes": number(of.left_out_bytes),
        "inside": of.inside.iter().map(tree_map).collect::<Vec<_>>(),
    })
}

pub(super) fn paths(paths: &[Vec<PathStep>]) -> Value {
    let step = |step: &PathStep| json!({ "node": step.node, "name": step.name, "edge": step.edge });
    let path = |path: &Vec<PathStep>| path.iter().map(step).collect::<Vec<_>>();
    json!({ "paths": paths.iter().map(path).collect::<Vec<_>>() })
}
