//! Analyses on a thread of their own give the same answers as on the caller's.

use heap_graph::census::TreeOptions;
use heap_graph::dominators::FetchOptions;
use heap_graph::worker::{HeapAnalysesClient, HeapAnalysesWorker, SnapshotState, WorkerError};
use heap_graph::{
    Breakdown, CensusTree, DominatorTree, Graph, GraphBuilder, NodeId, NodeIndex, NodeParts, Progress,
    census, shortest_paths,
};

use crate::golden;

#[test]
fn a_client_is_answered_as_at_home() {
    let client = HeapAnalysesClient::start().unwrap();
    let (a, b) = (golden::path("small-a.fxsnapshot"), golden::path("small-b.fxsnapshot"));
    // The client sends all requests at once, and the worker answers them in order.
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
        progress.steps()
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
    let target = graph.nodes().last().unwrap();
    let paths = client.shortest_paths(&a, vec![target.id()], 5).wait().unwrap();
    assert_eq!(paths, shortest_paths(&graph, NodeIndex::ROOT, &[target.index()], 5));
    let nobody = client.shortest_paths(&a, vec![NodeId(3)], 5).wait();
    assert!(matches!(nobody, Err(WorkerError::NoNode(NodeId(3)))));
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
    // The request may be complete before the cancellation.
    assert!(matches!(first.wait(), Ok(_) | Err(WorkerError::Cancelled)));
}

/// A list of this number of nodes.
fn list(nodes: u64) -> Graph {
    let mut builder = GraphBuilder::new();
    let name = builder.text("Node").unwrap();
    for id in 1..=nodes {
        builder.node(NodeParts::new(NodeId(id), 8, name)).unwrap();
        if id < nodes {
            builder.edge(NodeId(id + 1), None).unwrap();
        }
    }
    builder.finish().unwrap()
}

type Run = fn(&mut HeapAnalysesWorker, &Progress) -> Option<WorkerError>;

#[test]
fn a_run_looks_whether_it_is_still_wanted() {
    let runs: [(&str, Run, u64); 7] = [
        (
            "census",
            |worker, progress| worker.take_census("l".as_ref(), &Breakdown::default(), progress).err(),
            1,
        ),
        (
            "diff",
            |worker, progress| {
                worker.take_census_diff("l".as_ref(), "l".as_ref(), &Breakdown::default(), progress).err()
            },
            2,
        ),
        (
            "paths",
            |worker, progress| worker.shortest_paths("l".as_ref(), &[NodeId(90_000)], 1, progress).err(),
            1,
        ),
        ("dominators", |worker, progress| worker.compute_dominator_tree("l".as_ref(), progress).err(), 2),
        (
            "individuals",
            |worker, progress| {
                worker.census_individuals("l".as_ref(), &Breakdown::default(), &[1], 1, progress).err()
            },
            1,
        ),
        // The worker has computed the dominators by now, but no list of dominated nodes.
        (
            "top of the tree",
            |worker, progress| worker.dominator_tree("l".as_ref(), &FetchOptions::new(), progress).err(),
            1,
        ),
        (
            "more of the tree",
            |worker, progress| {
                let options = FetchOptions::new();
                worker.immediately_dominated("l".as_ref(), NodeId(1), 0, 9, &options, progress).err()
            },
            0,
        ),
    ];
    let mut worker = HeapAnalysesWorker::new();
    worker.insert("l".as_ref(), list(100_000));
    for (name, run, rounds) in runs {
        let progress = Progress::new();
        progress.cancel();
        let error = run(&mut worker, &progress);
        assert_eq!(matches!(error, Some(WorkerError::Cancelled)), rounds > 0, "{name}: {error:?}");
        let (done, total) = progress.steps();
        assert!(done < 10_000, "{name}: {done} of {total}");

        let progress = Progress::new();
        assert!(run(&mut worker, &progress).is_none(), "{name}");
        let (done, total) = progress.steps();
        assert_eq!(total, rounds * 100_000, "{name}");
        // The analyses do not visit the root and the target each time.
        assert!(done <= total && total - done < 10_100, "{name}: {done} of {total}");
    }
}

#[test]
fn a_client_can_cancel_what_runs() {
    let client = HeapAnalysesClient::start().unwrap();
    client.insert("list", list(200_000)).wait().unwrap();
    // Some runs may be over before the cancellation, but not all.
    for _ in 0..1_000 {
        let pending = client.take_census("list", Breakdown::default());
        let progress = pending.progress().clone();
        while progress.steps().0 == 0 {
            std::thread::yield_now();
        }
        progress.cancel();
        if let Err(error) = pending.wait() {
            assert!(matches!(error, WorkerError::Cancelled), "{error}");
            let (done, total) = progress.steps();
            assert!(0 < done && done < total, "{done} of {total}");
            // The worker goes on with the next request.
            client.take_census("list", Breakdown::default()).wait().unwrap();
            return;
        }
    }
    panic!("never cancelled");
}

#[test]
fn a_snapshot_goes_through_its_states() {
    let client = HeapAnalysesClient::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (saved, imported) =
        (folder.path().join("saved.fxsnapshot"), folder.path().join("imported.fxsnapshot"));
    assert_eq!(client.state(&saved), None);
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let saving = client.save_heap_snapshot(&saved, move |roots| {
        // Only the first call waits: the sender is gone before the second one.
        let _ = wait.lock().unwrap().recv();
        roots.add("names", &vec!["a name".to_owned()]);
    });
    assert_eq!(client.state(&saved), Some(SnapshotState::Saving));
    let importing = client.import_heap_snapshot(&saved, &imported);
    assert_eq!(client.state(&imported), Some(SnapshotState::Importing));
    drop(go);
    assert_eq!(saving.wait().unwrap().nodes, 4);
    assert_eq!(client.state(&saved), Some(SnapshotState::Saved));
    assert_eq!(importing.wait().unwrap().nodes, 4);
    assert_eq!(client.state(&imported), Some(SnapshotState::Read));
    let reading = client.read_heap_snapshot(&saved);
    reading.wait().unwrap();
    assert_eq!(client.state(&saved), Some(SnapshotState::Read));

    let nowhere = folder.path().join("no/such/folder");
    let errors = [
        client.save_heap_snapshot(&nowhere, |_| ()).wait().unwrap_err().to_string(),
        client.import_heap_snapshot(&saved, &nowhere).wait().unwrap_err().to_string(),
    ];
    for error in errors {
        assert!(error.starts_with("cannot be written: "), "{error}");
        assert_eq!(client.state(&nowhere), Some(SnapshotState::Error(error)));
    }
}

#[test]
fn a_bad_file_is_an_error_with_its_reason() {
    let client = HeapAnalysesClient::start().unwrap();
    let path = golden::path("handmade/coarse-5.fxsnapshot");
    let error = client.read_heap_snapshot(&path).wait().unwrap_err().to_string();
    assert!(error.contains("coarseType"), "{error}");
    assert_eq!(client.state(&path), Some(SnapshotState::Error(error)));
}

#[test]
fn a_state_is_not_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::copy(golden::path("small-a.fxsnapshot"), path("there")).unwrap();
    let client = HeapAnalysesClient::start().unwrap();
    // The worker is busy until this is dropped.
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let busy = client.save_heap_snapshot(path("busy"), move |_| {
        let _ = wait.lock().unwrap().recv();
    });
    let reading = client.read_heap_snapshot(path("there"));
    let saving = client.save_heap_snapshot(path("saved"), |_| ());
    let importing = client.import_heap_snapshot(path("there"), path("imported"));
    for progress in [reading.progress(), saving.progress(), importing.progress()] {
        progress.cancel();
    }
    drop(go);
    busy.wait().unwrap();
    assert!(matches!(reading.wait(), Err(WorkerError::Cancelled)));
    assert!(matches!(saving.wait(), Err(WorkerError::Cancelled)));
    assert!(matches!(importing.wait(), Err(WorkerError::Cancelled)));
    assert_eq!(client.state(path("there")), Some(SnapshotState::Saved));
    assert_eq!(client.state(path("saved")), None);
    assert_eq!(client.state(path("imported")), None);

    // The snapshot that the worker has read before still answers.
    client.read_heap_snapshot(path("there")).wait().unwrap();
    std::fs::write(path("there"), "no snapshot").unwrap();
    client.read_heap_snapshot(path("there")).wait().unwrap_err();
    assert_eq!(client.state(path("there")), Some(SnapshotState::Read));
    client.creation_time(path("there")).wait().unwrap();
}

#[test]
fn a_save_can_be_cancelled_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heap.fxsnapshot");
    let client = HeapAnalysesClient::start().unwrap();
    let (send, receive) = std::sync::mpsc::channel::<Progress>();
    let receive = std::sync::Mutex::new(receive);
    let saving = client.save_heap_snapshot(&path, move |roots| {
        if let Ok(progress) = receive.lock().unwrap().recv() {
            progress.cancel();
        }
        roots.add("value", &vec!["text".to_owned()]);
    });
    send.send(saving.progress().clone()).unwrap();
    drop(send);
    assert!(matches!(saving.wait(), Err(WorkerError::Cancelled)));
    assert_eq!(client.state(&path), None);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_import_never_harms_what_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("heap"), folder.path().join("link"));
    std::fs::copy(golden::path("small-a.fxsnapshot"), &path).unwrap();
    std::fs::hard_link(&path, &link).unwrap();
    let client = HeapAnalysesClient::start().unwrap();
    for to in [&path, &link] {
        let error = client.import_heap_snapshot(&path, to).wait().unwrap_err();
        assert_eq!(error.to_string(), "cannot be written: it is the imported file itself");
    }
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(golden::path("small-a.fxsnapshot")).unwrap());
    let to = folder.path().join("copy");
    client.import_heap_snapshot(&path, &to).wait().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(to).unwrap());
}

#[test]
fn a_panic_costs_only_its_request() {
    struct PanicsAgain;
    impl Drop for PanicsAgain {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("and again");
            }
        }
    }
    let client = HeapAnalysesClient::start().unwrap();
    client.insert("list", list(10)).wait().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved.fxsnapshot");
    let error = client.save_heap_snapshot(&path, |_| panic!("number {}", 7)).wait().unwrap_err();
    assert_eq!(error.to_string(), "panicked: number 7");
    assert_eq!(client.state(&path), Some(SnapshotState::Error("panicked: number 7".into())));
    let error = client.save_heap_snapshot(&path, |_| std::panic::panic_any(PanicsAgain)).wait().unwrap_err();
    assert_eq!(error.to_string(), "panicked: a panic without a text");
    // The value is dropped after the walk, or without one if the cancellation comes in time.
    let bomb = PanicsAgain;
    let cancelled = client.save_heap_snapshot(&path, move |_| {
        let _ = &bomb;
    });
    cancelled.progress().cancel();
    assert_eq!(cancelled.wait().unwrap_err().to_string(), "panicked: and again");
    client.take_census("list", Breakdown::default()).wait().unwrap();
    assert!(std::fs::read_dir(folder.path()).unwrap().all(|entry| entry.unwrap().path() == path));
}
