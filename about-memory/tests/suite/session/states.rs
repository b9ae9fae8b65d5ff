//! The states of snapshots, the events of computations, and the cases that Firefox's panel handles wrongly.

use std::sync::mpsc::channel;

use about_memory::session::{Query, Session, SessionError, SessionOptions, SnapshotState};

use super::{ask, by, census, chain, golden, individuals, names, of_snapshot, states, with_small};

#[test]
fn a_file_is_saved_then_read() {
    let (session, id) = with_small();
    assert_eq!(of_snapshot(&session, id), ["saved", "reading", "read"]);
    let info = &session.snapshots()[0];
    assert_eq!((info.id, info.title.as_str(), info.is_imported), (id, "small-a", false));
    assert!(info.nodes > 1000 && info.edges > info.nodes && info.bytes > 0 && info.creation_time.is_some());
}

#[test]
fn a_snapshot_that_is_taken_is_saving_until_its_file_is_whole() {
    let session = Session::new(SessionOptions::new());
    let (go, wait) = channel::<()>();
    let save = move |path: &std::path::Path| {
        wait.recv().unwrap();
        std::fs::copy(golden("small-a.fxsnapshot"), path).map(drop).map_err(|error| error.to_string())
    };
    let id = session.take("process (pid 7)", save).unwrap();
    assert_eq!(session.snapshots()[0].state, SnapshotState::Saving);
    assert_eq!(session.ask(census(id, "type")).unwrap_err(), SessionError::NotRead(id, "saving"));
    go.send(()).unwrap();
    session.wait_until_read(id);
    assert_eq!(of_snapshot(&session, id), ["saving", "saved", "reading", "read"]);
    let file = session.file(id).unwrap();
    assert!(file.exists());
    assert!(session.remove(id));
    assert!(!file.exists(), "the session's file is removed with the snapshot");
}

/// After a panic on its thread, a snapshot must reach a final state.
#[test]
fn a_snapshot_whose_thread_panics_has_failed() {
    let session = Session::new(SessionOptions::new());
    let id = session.take("process", |_| panic!("a defect")).unwrap();
    session.wait_until_read(id);
    assert_eq!(of_snapshot(&session, id), ["saving", "error"]);
    let state = session.snapshots()[0].state.clone();
    assert!(state.error().unwrap().contains("panicked"), "{state:?}");
    assert!(session.jobs().is_empty() && session.remove(id));
}

/// Threads of a server may hold a session when its program ends.
#[test]
fn a_session_that_ends_removes_its_files() {
    let session = Session::new(SessionOptions::new());
    let bytes = std::fs::read(golden("small-a.fxsnapshot")).unwrap();
    let id = session.import("sent", &mut bytes.as_slice()).unwrap();
    session.wait_until_read(id);
    let file = session.file(id).unwrap();
    let other = session.clone();
    let (send, path) = channel();
    let (go, wait) = channel::<()>();
    let save = move |path: &std::path::Path| {
        send.send(path.to_owned()).unwrap();
        wait.recv().map_err(|error| error.to_string())
    };
    let id = session.take("slow", save).unwrap();
    let partial = path.recv().unwrap();
    assert!(file.exists() && partial.exists());
    session.end();
    assert!(!file.exists() && !partial.exists() && !file.parent().unwrap().exists());
    // A later result fails with a message, and writes no file.
    go.send(()).unwrap();
    other.wait_until_read(id);
    assert_eq!(of_snapshot(&other, id).last(), Some(&"error"));
    assert!(other.import("late", &mut bytes.as_slice()).is_err());
}

#[test]
fn an_import_is_copied_then_read() {
    let session = Session::new(SessionOptions::new());
    let bytes = std::fs::read(golden("small-a.fxsnapshot")).unwrap();
    let id = session.import("sent", &mut bytes.as_slice()).unwrap();
    session.wait_until_read(id);
    assert_eq!(of_snapshot(&session, id), ["importing", "reading", "read"]);
    assert!(session.snapshots()[0].is_imported);
}

/// If a snapshot is removed during its upload, the front end need not send the remaining data.
#[test]
fn an_import_ends_when_its_snapshot_is_removed() {
    struct Endless(Session, usize);
    impl std::io::Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.1 += 1;
            assert!(self.1 < 10, "the copy continues");
            if self.1 == 3 {
                assert!(self.0.remove(self.0.snapshots()[0].id));
            }
            Ok(into.len())
        }
    }
    let session = Session::new(SessionOptions::new());
    let error = session.import("sent", &mut Endless(session.clone(), 0)).unwrap_err();
    assert!(error.to_string().contains("it was removed"), "{error}");
    assert!(session.snapshots().is_empty());
}

#[test]
fn a_hostile_import_fails_in_words() {
    let session = Session::new(SessionOptions::new());
    let id = session.import("sent", &mut b"no snapshot".as_slice()).unwrap();
    session.wait_until_read(id);
    assert_eq!(of_snapshot(&session, id), ["importing", "reading", "error"]);
    let state = session.snapshots()[0].state.clone();
    assert!(state.error().unwrap().contains("gzip"), "{state:?}");
}

/// Firefox's panel keeps failed snapshots when it clears the list, and has no button to remove a failed save.
#[test]
fn every_snapshot_can_be_removed() {
    let session = Session::new(SessionOptions::new());
    let failed = session.take("process", |_| Err("the process has ended".to_owned())).unwrap();
    let missing = session.open(&golden("no-such-file.fxsnapshot")).unwrap();
    let (go, wait) = channel::<()>();
    let saving = session
        .take("slow", move |_| {
            wait.recv().unwrap();
            Ok(())
        })
        .unwrap();
    session.wait_until_read(failed);
    session.wait_until_read(missing);
    assert_eq!(of_snapshot(&session, failed), ["saving", "error"]);
    for id in [failed, missing, saving] {
        assert!(session.remove(id));
        assert!(!session.remove(id));
        assert_eq!(of_snapshot(&session, id).last(), Some(&"removed"));
    }
    assert!(session.snapshots().is_empty());
    // A later result of a removed snapshot makes no event.
    go.send(()).unwrap();
    assert_eq!(session.ask(census(saving, "type")).unwrap_err(), SessionError::NoSnapshot(saving));
    assert_eq!(of_snapshot(&session, saving), ["saving", "removed"]);
}

/// Firefox's panel compares the wrong values, and never shows why a census or a tree map failed.
#[test]
fn a_failed_census_has_its_reason_in_the_state() {
    let (session, snapshot) = with_small();
    // Most nodes have no descriptive name, so this census fails.
    let groups = by(r#"{"by":"descriptiveType"}"#);
    let query = Query::Census { snapshot, by: groups.clone(), invert: false, filter: String::new() };
    let reason = session.ask(query.clone()).unwrap().join().unwrap_err().to_string();
    assert_eq!(states(&session, "census"), [("computing", String::new()), ("error", reason)]);
    assert!(
        session.ask(Query::TreeMap { snapshot, by: groups, filter: String::new() }).unwrap().join().is_err()
    );
    assert_eq!(names(&session, "tree-map"), ["computing", "error"]);
    // Another try starts a new computation.
    assert!(session.ask(query).unwrap().join().is_err());
    assert_eq!(names(&session, "census"), ["computing", "error", "computing", "error"]);
}

/// Firefox's panel drops both snapshots when their difference fails.
#[test]
fn a_failed_difference_can_be_tried_again() {
    let (session, snapshot) = with_small();
    let other = session.insert("chain", chain(4)).unwrap();
    let diff = |name: &str| Query::Diff {
        baseline: snapshot,
        comparison: other,
        by: by(name),
        invert: false,
        filter: String::new(),
    };
    let failing = diff(r#"{"by":"descriptiveType"}"#);
    for _ in 0..2 {
        assert!(session.ask(failing.clone()).unwrap().join().is_err());
    }
    let once = ["computing", "error"];
    assert_eq!(names(&session, "diff"), [once, once].concat());
    ask(&session, diff("type"));
    assert_eq!(names(&session, "diff")[4..], ["computing", "computed"]);
}

#[test]
fn individuals_wait_for_the_dominator_tree() {
    let (session, snapshot) = with_small();
    let query = census(snapshot, "objectClass");
    let groups = ask(&session, query.clone());
    let rows = session.rows(&query, &groups, &about_memory::session::RowsOptions::first(1)).unwrap();
    let nodes = ask(&session, individuals(snapshot, "objectClass", rows.rows[0].id));
    let about_memory::session::QueryAnswer::Nodes { found, .. } = &*nodes else { panic!("{nodes:?}") };
    assert!(*found > 0);
    assert_eq!(names(&session, "individuals"), ["computing", "computed"]);
    assert_eq!(names(&session, "dominators"), ["computing", "computed"]);
}

#[test]
fn events_have_numbers_without_gaps_and_a_late_reader_learns_of_a_loss() {
    let session = Session::new(SessionOptions::new().max_events(4));
    assert_eq!(session.events().since(0), Some(Vec::new()));
    let id = session.insert("chain", chain(3)).unwrap();
    assert_eq!(session.events().last(), 2);
    ask(&session, census(id, "type"));
    let last = session.events().last();
    let seqs: Vec<_> = session.events().since(last - 4).unwrap().iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (last - 3..=last).collect::<Vec<_>>());
    assert_eq!(session.events().since(last - 5), None, "dropped");
    assert_eq!(session.events().since(last + 1), None, "not made yet");
    assert_eq!(session.events().since(last), Some(Vec::new()));
}
