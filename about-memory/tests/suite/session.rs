//! The session: states and their transitions, shared computations, budget, cancellation, events, rows.

mod answers;
mod sharing;
mod states;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use about_memory::session::{EventSubject, GroupBy, Query, QueryAnswer, Session, SessionOptions, SnapshotId};
use heap_graph::{Graph, GraphBuilder, NodeId, NodeParts};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/tests/golden").join(name)
}

fn by(name: &str) -> GroupBy {
    GroupBy::new(name).unwrap()
}

fn census(snapshot: SnapshotId, name: &str) -> Query {
    Query::Census { snapshot, by: by(name), invert: false, filter: String::new() }
}

fn dominators(snapshot: SnapshotId) -> Query {
    Query::Dominators { snapshot, filter: String::new() }
}

fn individuals(snapshot: SnapshotId, name: &str, group: u64) -> Query {
    Query::Individuals { snapshot, by: by(name), invert: false, group, filter: String::new() }
}

/// A session with Firefox's first snapshot.
fn with_small() -> (Session, SnapshotId) {
    let session = Session::new(SessionOptions::new());
    let id = session.open(&golden("small-a.fxsnapshot")).unwrap();
    session.wait_until_read(id);
    (session, id)
}

fn ask(session: &Session, query: Query) -> Arc<QueryAnswer> {
    session.ask(query).unwrap().join().unwrap()
}

/// Returns the states of all computations of a kind, in order, with their messages.
fn states(session: &Session, kind: &str) -> Vec<(&'static str, String)> {
    let events = session.events().since(0).unwrap();
    events.into_iter().filter(|event| event.kind == kind).map(|event| (event.state, event.message)).collect()
}

fn names(session: &Session, kind: &str) -> Vec<&'static str> {
    states(session, kind).into_iter().map(|(state, _)| state).collect()
}

/// Returns the states of a snapshot.
fn of_snapshot(session: &Session, id: SnapshotId) -> Vec<&'static str> {
    let events = session.events().since(0).unwrap();
    let own = events.into_iter().filter(|event| event.subject == EventSubject::Snapshot(id));
    own.map(|event| event.state).collect()
}

/// A chain of nodes below a root that also points to each node. The ids start with 1, and each size is 8.
pub(crate) fn chain(nodes: u64) -> Graph {
    let mut builder = GraphBuilder::new();
    let names = ["Root", "Link"].map(|name| builder.text(name).unwrap());
    builder.node(NodeParts::new(NodeId(1), 8, names[0])).unwrap();
    builder.edge(NodeId(2), None).unwrap();
    for id in 2..=nodes {
        builder.node(NodeParts::new(NodeId(id), 8, names[1])).unwrap();
        if id < nodes {
            builder.edge(NodeId(id + 1), None).unwrap();
        }
    }
    builder.finish().unwrap()
}
