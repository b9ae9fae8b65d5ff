//! Equal requests share one computation, results have a budget, and a computation without a waiting front end ends.

use std::thread;
use std::time::Duration;

use about_memory::session::{GroupBy, Query, Session, SessionError, SessionOptions};

use super::{ask, by, census, chain, names, with_small};

#[test]
fn equal_requests_share_one_computation() {
    let (session, snapshot) = with_small();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| ask(&session, census(snapshot, "type")));
        }
    });
    assert_eq!(names(&session, "census"), ["computing", "computed"]);
    // An inverted tree and a tree map of the same groups need no second count of the nodes.
    let inverted = Query::Census { snapshot, by: by("type"), invert: true, filter: "Function".to_owned() };
    ask(&session, inverted);
    ask(&session, Query::TreeMap { snapshot, by: by("type"), filter: String::new() });
    assert_eq!(names(&session, "report"), ["computing", "computed"]);
}

#[test]
fn an_answer_in_the_cache_needs_no_job() {
    let (session, snapshot) = with_small();
    let first = session.ask(census(snapshot, "type")).unwrap();
    let answer = first.join().unwrap();
    let second = session.ask(census(snapshot, "type")).unwrap();
    assert_eq!(second.job(), None);
    assert!(std::sync::Arc::ptr_eq(&answer, &second.join().unwrap()));
    assert!(session.memory() > 0);
}

#[test]
fn results_stay_under_the_budget() {
    let session = Session::new(SessionOptions::new().budget(1));
    let id = session.insert("chain", chain(100)).unwrap();
    ask(&session, census(id, "type"));
    ask(&session, census(id, "coarseType"));
    // The first result has left the cache, so it is computed again.
    ask(&session, census(id, "type"));
    assert_eq!(names(&session, "census"), ["computing", "computed"].repeat(3));
    let large = Session::new(SessionOptions::new());
    let id = large.insert("chain", chain(100)).unwrap();
    for _ in 0..2 {
        ask(&large, census(id, "type"));
        ask(&large, census(id, "coarseType"));
    }
    assert_eq!(names(&large, "census"), ["computing", "computed"].repeat(2));
    let before = large.memory();
    assert!(before > session.memory());
    large.remove(id);
    assert_eq!(large.memory(), 0, "results are removed with their snapshot");
}

/// With the default budget, the session keeps the tree and the walk of any snapshot, so that the next request for them
/// is answered at once. This snapshot needs more than the smallest budget.
#[test]
fn the_budget_grows_with_the_largest_snapshot() {
    let session = Session::new(SessionOptions::new());
    let id = session.insert("chain", chain(3_000_000)).unwrap();
    let tree = Query::Dominators { snapshot: id, filter: String::new() };
    let first = ask(&session, tree.clone());
    ask(&session, Query::Paths { snapshot: id, node: 5, max: 1 });
    assert!(session.memory() > 64 << 20, "{}", session.memory());
    assert!(std::sync::Arc::ptr_eq(&ask(&session, tree), &first), "the tree stays in the cache");
}

/// The walk is for paths that are not requested yet, so it must not remove an answer from the cache.
#[test]
fn a_walk_is_prepared_only_beside_its_tree() {
    let tree = |snapshot| Query::Dominators { snapshot, filter: String::new() };
    let small = Session::new(SessionOptions::new().budget(20 * 1000));
    let id = small.insert("chain", chain(1000)).unwrap();
    let first = ask(&small, tree(id));
    for _ in 0..3 {
        assert!(std::sync::Arc::ptr_eq(&ask(&small, tree(id)), &first), "the tree stays in the cache");
    }
    assert!(names(&small, "walk").is_empty());
    let large = Session::new(SessionOptions::new());
    let id = large.insert("chain", chain(1000)).unwrap();
    ask(&large, tree(id));
    assert!(!names(&large, "walk").is_empty());
}

/// The speed of a computation is unknown: it may end before it is cancelled. Then the test asks another query.
#[test]
fn a_computation_that_nobody_waits_for_is_cancelled() {
    let session = Session::new(SessionOptions::new());
    let id = session.insert("chain", chain(200_000)).unwrap();
    let is_cancelled = (0..1_000).any(|number| {
        match session.ask(Query::Search { snapshot: id, text: format!("no such name {number}") }) {
            Ok(pending) => drop(pending),
            // A cancelled computation needs a moment to notice this.
            Err(error) => {
                assert!(matches!(error, SessionError::Busy(_)));
                let seq = session.events().last();
                session.events().wait(seq, Duration::from_millis(100));
            }
        }
        names(&session, "search").contains(&"cancelled")
            || names(&session, "dominators").contains(&"cancelled")
    });
    assert!(is_cancelled);
    while !session.jobs().is_empty() {
        thread::yield_now();
    }
    // The session still answers.
    ask(&session, census(id, "type"));
}

#[test]
fn a_reader_cancels_a_computation_by_its_number() {
    let session = Session::new(SessionOptions::new());
    let id = session.insert("chain", chain(200_000)).unwrap();
    let is_cancelled = (0..1_000).any(|number| {
        let query = Query::Search { snapshot: id, text: format!("no such name {number}") };
        let Ok(pending) = session.ask(query) else { return false };
        session.cancel(pending.job().unwrap());
        pending.join().err() == Some(SessionError::Cancelled)
    });
    assert!(is_cancelled);
    assert!(!session.cancel(about_memory::session::JobId(u64::MAX)));
}

#[test]
fn too_many_computations_and_snapshots_are_refused() {
    let session = Session::new(SessionOptions::new().max_jobs(0).max_snapshots(1));
    let id = session.insert("chain", chain(3)).unwrap();
    assert_eq!(session.ask(census(id, "type")).unwrap_err(), SessionError::Busy(0));
    assert_eq!(session.insert("chain", chain(3)).unwrap_err(), SessionError::Full(1));
    assert!(session.jobs().is_empty());
}

#[test]
fn queries_have_bounds() {
    let session = Session::new(SessionOptions::new());
    let id = session.insert("chain", chain(3)).unwrap();
    let long = "x".repeat(5000);
    let bad = [
        Query::Census { snapshot: id, by: by("type"), invert: false, filter: long.clone() },
        Query::Search { snapshot: id, text: long.clone() },
        Query::Paths { snapshot: id, node: 1, max: 101 },
        Query::Dominators { snapshot: id, filter: long.clone() },
    ];
    for query in bad {
        assert!(matches!(session.ask(query).unwrap_err(), SessionError::TooMuch(..)));
    }
    assert!(GroupBy::new(&long).is_err());
    assert!(GroupBy::new("{").is_err());
    let missing = session.ask(Query::Paths { snapshot: id, node: 99, max: 1 }).unwrap().join();
    assert_eq!(missing.unwrap_err(), SessionError::NoNode(99));
}

/// Firefox computes both censuses again for each difference.
#[test]
fn a_difference_takes_no_census_anew() {
    let (session, first) = with_small();
    let second = session.insert("chain", chain(100)).unwrap();
    ask(&session, census(first, "type"));
    ask(&session, census(second, "type"));
    for (baseline, comparison) in [(first, second), (second, first)] {
        let (by, filter) = (by("type"), String::new());
        ask(&session, Query::Diff { baseline, comparison, by, invert: false, filter });
    }
    let snapshots = vec![first, second];
    ask(&session, Query::Generations { snapshots, by: by("type"), invert: true, filter: String::new() });
    assert_eq!(names(&session, "report"), ["computing", "computed"].repeat(2));
}
