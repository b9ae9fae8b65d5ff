//! The branches of tasks that await several futures at once. The source of the program contains the expected
//! positions.

use heap_graph::DominatorTree;
use typed_heap::{AwaitedFuture, ScanMemory, TaskBranch};

use crate::Victim;

const SOURCE: &str = include_str!("../victims/branches.rs");

/// A future as text, such as `receive RECEIVE`: its function, and the comment in the line of its `await`. If the
/// `await` is in a macro's file, the future has only the line where its function starts: then the text contains `START`
/// in place of the comment, such as `joins START`.
fn short(one: &AwaitedFuture) -> String {
    let own = |place: &&(String, u32)| place.0.ends_with("/tests/victims/branches.rs");
    let place = one.place.as_ref().filter(own).or(one.start.as_ref().filter(own));
    let (_, line) = place.unwrap_or_else(|| panic!("{one:?}"));
    let line = SOURCE.lines().nth(*line as usize - 1).unwrap();
    let name = one.future.trim_start_matches("typed_heap_branches::");
    let name = name.split_once('<').map_or(name, |(name, _)| name);
    let starts = line.contains(&format!("async fn {name}(")) || line.contains("async {");
    let word = line.rsplit_once("// ").map(|(_, word)| word);
    format!("{name} {}", word.or(starts.then_some("START")).unwrap_or(line))
}

/// A chain as text, such as `pair PAIR -> Join<..> (3 receive RECEIVE -> Pending<..> | 3 wait WAIT -> Pending<..>)`.
fn chain(awaits: &[AwaitedFuture], waits_for: Option<&str>, branches: &[TaskBranch]) -> String {
    let last = waits_for.map(|of| match of.split_once('<') {
        Some((name, _)) => format!("{}<..>", name.rsplit("::").next().unwrap()),
        None => of.rsplit("::").next().unwrap().to_owned(),
    });
    let mut text = awaits.iter().map(short).chain(last).collect::<Vec<_>>().join(" -> ");
    let mut all: Vec<_> = branches
        .iter()
        .map(|one| format!("{} {}", one.count, chain(&one.awaits, one.waits_for.as_deref(), &one.branches)))
        .collect();
    all.sort();
    if !all.is_empty() {
        text.push_str(&format!(" ({})", all.join(" | ")));
    }
    text
}

#[test]
fn branches_of_tasks_are_shown() {
    let victim = Victim::of("typed_heap_branches");
    let memory = ScanMemory::new(&victim.dump).unwrap();
    let heap = victim.heap(&memory);
    let graph = heap.graph(&victim.dump).unwrap();
    let tasks = heap.tasks(&memory, &DominatorTree::new(&graph));
    let text = |row: &typed_heap::TaskRow| {
        let chain = chain(&row.awaits, row.waits_for.as_deref(), &row.branches);
        format!("{} {chain}", row.tasks)
    };
    let mut rows: Vec<String> = tasks.rows.iter().map(text).collect();
    rows.sort();
    let (receive, wait) = ("receive RECEIVE -> Pending<..>", "wait WAIT -> Pending<..>");
    let nested = format!("nested::{{async_block#0}} START -> PollFn<..> (2 {receive} | 2 {wait})");
    let mut expected = [
        format!("6 joins START -> PollFn<..> (6 {receive} | 6 {wait})"),
        format!("4 selects START -> PollFn<..> (4 Never | 4 {receive} | 4 {wait})"),
        format!("2 almost START -> {wait}"),
        format!("3 pair PAIR -> Join<..> (3 {receive} | 3 {wait})"),
        format!("2 nested START -> PollFn<..> (2 {nested} | 2 {receive})"),
        // Each of the two tasks awaits five futures.
        format!("2 all ALL -> JoinAll<..> (10 {receive})"),
        // In each of the two tasks, three of four futures are unfinished.
        format!("2 boxed BOXED -> JoinAll<..> (6 {wait})"),
        // The tasks of each of these two rows share one future. The future of the first row is in a box.
        format!("2 shares SHARES -> {wait}"),
        format!("3 shares SHARES -> {receive}"),
        format!("1 unordered UNORDERED -> Next<..> (7 {receive})"),
    ];
    expected.sort();
    assert_eq!(rows, expected);
    // The futures of the branches are not separate tasks, although futures in a list or in boxes have their own blocks.
    assert_eq!(tasks.tasks, 6 + 4 + 2 + 3 + 2 + 2 + 2 + 1 + 2 + 3);
}
