//! `about-memory heap tasks`.

use clap::Args;
use dmd_analyze::program::Workspace;
use heap_graph::DominatorTree;
use serde_json::{Value, json};
use typed_heap::{AwaitedFuture, HeapTasks, TaskBranch, TaskRow};

use super::super::Failure;
use super::{AmountTable, HeapInput, LINE, NO_FIELDS, about, left_out, print, size, sums};

pub(crate) const EXAMPLES: &str = about!(
    "\
Examples:
  about-memory heap tasks 1234
  about-memory heap tasks core.1234 --limit 50
  about-memory heap tasks 1234 --verbose   # whole chains of awaits
  about-memory heap tasks scan.json.gz --json

A task is a future of an async function or block. It is on the heap, and no other future awaits it. A row has the tasks that
wait at the same await, and the chain of futures that they await. The bytes of a row are the bytes of its tasks, and of the
blocks that only these tasks keep alive."
);

#[derive(Args)]
pub(crate) struct TasksCommand {
    /// Show everything in full. Chains of awaits are whole.
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    heap: HeapInput,
}

impl TasksCommand {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.heap.with(|heap, memory, dump| {
            let graph = heap.graph(dump).map_err(|error| self.heap.failure(error.into()))?;
            let tasks = heap.tasks(memory, &DominatorTree::new(&graph));
            let is_known = heap.knows_fields();
            if self.heap.json {
                return print(&self.json(&tasks, is_known));
            }
            if !is_known {
                return print(&format!("The async tasks are {NO_FIELDS}\n"));
            }
            let all: u64 = heap.blocks().iter().map(|block| block.usable).sum();
            print(&self.text(&tasks, all, &Workspace::from_frames(dump.stacks().flatten())))
        })
    }

    fn text(&self, tasks: &HeapTasks, all: u64, workspace: &Workspace) -> String {
        let limit = self.heap.rows();
        let mut text = format!(
            "{} keep {} of {} alive, including {} of their own\n",
            counted(tasks.tasks),
            size(tasks.retained_bytes),
            size(all),
            size(tasks.bytes)
        );
        if !tasks.rows.is_empty() {
            let row = |row: &TaskRow| {
                let own = format!("{} of {}", counted(row.tasks), size(row.bytes));
                (row.retained_bytes, own, String::new())
            };
            let mut table = AmountTable::with_numbers(tasks.rows.iter().take(limit).map(row), all);
            let room =
                if self.verbose { usize::MAX } else { LINE.saturating_sub(table.columns_before_text()) };
            let mut is_whole = true;
            for ((_, last), row) in table.rows.iter_mut().zip(&tasks.rows) {
                let links = row_links(row, workspace);
                *last = shortened(&links, room);
                is_whole &= *last == links.join(ARROW);
            }
            text += &format!("\n{}{}", table.text(), left_out(tasks.rows.len(), limit));
            if !is_whole {
                text += "\nChains are shortened; --verbose shows whole chains.\n";
            }
        }
        text
    }

    fn json(&self, tasks: &HeapTasks, is_known: bool) -> String {
        let row = |row: &TaskRow| {
            json!({
                "awaits": row.awaits.iter().map(future_json).collect::<Vec<_>>(),
                "waitsFor": row.waits_for,
                "branches": row.branches.iter().map(branch_json).collect::<Vec<_>>(),
                "tasks": row.tasks,
                "bytes": row.bytes,
                "retainedBytes": row.retained_bytes,
            })
        };
        let rows: Vec<_> = tasks.rows.iter().take(self.heap.rows()).map(row).collect();
        let rest = tasks.rows.iter().skip(self.heap.rows());
        let (count, of_tasks, bytes) = sums(rest.map(|row| (row.tasks, row.bytes.into())));
        let all = json!({
            "version": 1,
            "rest": { "rows": count, "tasks": of_tasks, "bytes": bytes },
            "tasks": is_known.then_some(tasks.tasks),
            "bytes": is_known.then_some(tasks.bytes),
            "retainedBytes": is_known.then_some(tasks.retained_bytes),
            "rows": rows,
        });
        format!("{all:#}\n")
    }
}

fn counted(tasks: u64) -> String {
    format!("{tasks} {}", if tasks == 1 { "task" } else { "tasks" })
}

fn future_json(one: &AwaitedFuture) -> Value {
    json!({
        "future": one.future,
        "state": one.state,
        "file": one.place.as_ref().map(|(file, _)| file),
        "line": one.place.as_ref().map(|(_, line)| line),
    })
}

fn branch_json(branch: &TaskBranch) -> Value {
    json!({
        "awaits": branch.awaits.iter().map(future_json).collect::<Vec<_>>(),
        "waitsFor": branch.waits_for,
        "branches": branch.branches.iter().map(branch_json).collect::<Vec<_>>(),
        "count": branch.count,
    })
}

/// Returns the chain of futures, starting with the future of the task: `handle at src/main.rs:40 -> recv at
/// tokio-1.0.0/src/sync/mpsc.rs:10`. Futures that one future awaits at the same time are in parentheses: `join at
/// src/main.rs:50 -> (recv at .. | 3 wait at ..)`.
pub(super) fn chain(row: &TaskRow, workspace: &Workspace) -> String {
    row_links(row, workspace).join(ARROW)
}

/// The text between a future and the future that it awaits.
const ARROW: &str = " -> ";

/// Returns the links of a chain that fit into `room` characters: the first links and, if possible, the last link. A
/// count replaces the omitted links.
fn shortened(links: &[String], room: usize) -> String {
    let whole = links.join(ARROW);
    let is_fitting = |text: &String| text.chars().count() <= room;
    let [first, others @ .., last] = links else { return cut(&whole, room) };
    let more = |more: usize| (more > 0).then(|| format!("({more} more)"));
    let with_last = (0..=others.len()).rev().map(|kept| {
        let kept_links = others[..kept].iter().cloned();
        [first.clone()].into_iter().chain(kept_links).chain(more(others.len() - kept)).chain([last.clone()])
    });
    let mut texts = with_last.map(|parts| parts.collect::<Vec<_>>().join(ARROW));
    let without_last = || format!("{first}{ARROW}({} more)", others.len() + 1);
    texts
        .find(is_fitting)
        .or_else(|| Some(without_last()).filter(is_fitting))
        .unwrap_or_else(|| cut(&whole, room))
}

/// The start of a text, in at most `room` characters.
fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let start: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{start}…")
}

fn row_links(row: &TaskRow, workspace: &Workspace) -> Vec<String> {
    links(&row.awaits, row.waits_for.as_deref(), &row.branches, row.tasks, workspace)
}

fn links(
    awaits: &[AwaitedFuture],
    waits_for: Option<&str>,
    branches: &[TaskBranch],
    count: u64,
    workspace: &Workspace,
) -> Vec<String> {
    // Leaves out a `PollFn`: its closure belongs to the function in the previous link.
    let last = waits_for.filter(|of| !of.starts_with("PollFn<")).map(str::to_owned);
    let all: Vec<_> = branches
        .iter()
        .map(|branch| {
            let TaskBranch { awaits, waits_for, branches, count: number, .. } = branch;
            let links = links(awaits, waits_for.as_deref(), branches, *number, workspace).join(ARROW);
            if *number == count { links } else { format!("{number} {links}") }
        })
        .collect();
    let all = (!all.is_empty()).then(|| format!("({})", all.join(" | ")));
    let futures = awaits.iter().map(|one| future(one, workspace));
    futures.chain(last).chain(all).collect()
}

fn future(one: &AwaitedFuture, workspace: &Workspace) -> String {
    let text = |(file, line): &(String, u32)| format!("{}:{line}", workspace.short(file));
    let AwaitedFuture { future, state, place, start, .. } = one;
    match (&**state, place) {
        ("Unresumed", _) => format!("{future}, not started"),
        ("Returned", _) => format!("{future}, returned"),
        ("Panicked", _) => format!("{future}, panicked"),
        (_, Some(place)) => match start.as_ref().filter(|start| start.0 != place.0) {
            // The line is in a macro, outside of the function, so the text also names the function's line.
            Some(start) => format!("{future} of {} at {}", text(start), text(place)),
            None => format!("{future} at {}", text(place)),
        },
        (state, None) => format!("{future} at {state}"),
    }
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn chains_fit_into_a_line() {
        let links = ["handle at a.rs:1", "read at b.rs:2", "next at c.rs:3", "Sleep"].map(str::to_owned);
        for (room, text) in [
            (61, "handle at a.rs:1 -> read at b.rs:2 -> next at c.rs:3 -> Sleep"),
            (60, "handle at a.rs:1 -> read at b.rs:2 -> (1 more) -> Sleep"),
            (54, "handle at a.rs:1 -> (2 more) -> Sleep"),
            (36, "handle at a.rs:1 -> (3 more)"),
            (20, "handle at a.rs:1 ->…"),
        ] {
            assert_eq!(shortened(&links, room), text, "{room}");
        }
        assert_eq!(shortened(&links[..1], 16), "handle at a.rs:1");
        assert_eq!(shortened(&links[..1], 9), "handle a…");
        assert_eq!(shortened(&[], 9), "");
    }
}
