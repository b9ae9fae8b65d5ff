//! Analyses on a thread of their own give what they give at home.

use heap_graph::{
    Breakdown, CensusTree, DominatorTree, FetchOptions, HeapAnalysesClient, NodeIndex, SnapshotState,
    TreeOptions, WorkerError, census,
};

use crate::golden;

#[test]
fn a_client_is_answered_as_at_home() {
    let client = HeapAnalysesClient::start().unwrap();
    let (a, b) = (golden::path("small-a.fxsnapshot"), golden::path("small-b.fxsnapshot"));
    // Asked at once, answered in order.
    let reading = client.read_heap_snapshot(&a);
    client.read_heap_snapshot(&b);
    let breakdown = Breakdown::preset("type").unwrap();
    let report = client.take_census(&a, breakdown.clone());
    let tree = client.take_census_tree(&a, breakdown.clone(), TreeOptions::new().invert(true));
    let difference = client.take_census_diff(&a, &b, breakdown.clone());
    let top = client.dominator_tree(&a, FetchOptions::new());
    let (done, total) = {
        let progress = reading.progress().clone();
        assert!(reading.wait().unwrap().nodes > 4_000);
        progress.bytes()
    };
    assert_eq!((done, total), (total, std::fs::metadata(&a).unwrap().len()));
    assert_eq!(client.state(&a), Some(SnapshotState::Read));

    let graph = golden::snapshot("small-a");
    let expected = census(&graph, &breakdown).unwrap();
    assert_eq!(report.wait().unwrap(), expected);
    let shape = CensusTree::new(&expected, &TreeOptions::new().invert(true));
    assert_eq!(tree.wait().unwrap().to_json(), shape.to_json());
    assert_eq!(difference.wait().unwrap().basis_total_count, 4_883);
    let expected = DominatorTree::new(&graph).partial(NodeIndex::ROOT, &FetchOptions::new()).unwrap();
    assert_eq!(top.wait().unwrap(), expected);

    let root = graph.root().id();
    let more = client.immediately_dominated(&a, root, 15, 50, FetchOptions::new()).wait().unwrap();
    assert_eq!((more.nodes.len(), more.more_children_available), (50, true));
    let functions = client.census_individuals(&a, breakdown.clone(), vec![2, 3], 5).wait().unwrap();
    assert_eq!(functions.len(), 5);
    assert_eq!(client.creation_time(&a).wait().unwrap(), graph.creation_time());
    assert!(client.delete_heap_snapshot(&a).wait().unwrap());
    assert!(
        matches!(client.take_census(&a, breakdown).wait(), Err(WorkerError::NoSnapshot(path)) if path == a)
    );
    assert_eq!(client.state(&a), None);
}

#[test]
fn a_cancelled_request_is_not_answered() {
    let client = HeapAnalysesClient::start().unwrap();
    let first = client.read_heap_snapshot(golden::path("medium.fxsnapshot"));
    let second = client.read_heap_snapshot(golden::path("small-a.fxsnapshot"));
    second.progress().cancel();
    first.progress().cancel();
    assert!(matches!(second.wait(), Err(WorkerError::Cancelled)));
    // It may have been done before it was cancelled.
    assert!(matches!(first.wait(), Ok(_) | Err(WorkerError::Cancelled)));
}

#[test]
fn a_bad_file_is_an_error_with_its_reason() {
    let client = HeapAnalysesClient::start().unwrap();
    let path = golden::path("handmade/coarse-5.fxsnapshot");
    let error = client.read_heap_snapshot(&path).wait().unwrap_err().to_string();
    assert!(error.contains("coarseType"), "{error}");
    assert_eq!(client.state(&path), Some(SnapshotState::Error(error)));
}
