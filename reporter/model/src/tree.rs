//! Builds the trees of each process from a flat list of reports, as Firefox's about:memory does.
//!
//! A tree is compressed: a chain of inner nodes with one child each is one node from the start. So there are at most
//! two nodes for each report, and a path with 100,000 components takes one node. No function here recurses. A view
//! sorts by collation, makes the `(N tiny)` nodes and writes all text.
//!
//! ```
//! use memory_report::{Kind, Report, ReportSet, Units, tree::Forest};
//!
//! let report = |path, kind, amount| Report {
//!     process: "Main Process (pid 1)", path, kind, units: Units::Bytes, amount, description: "",
//! };
//! let mut set = ReportSet::new();
//! set.push(report("explicit/cache/keys", Kind::Heap, 30));
//! set.push(report("explicit/cache/values", Kind::Heap, 50));
//! set.push(report("heap-allocated", Kind::Other, 100));
//!
//! let forest = Forest::new(&set);
//! assert_eq!(forest.amount("explicit/cache"), Some(80));
//! assert_eq!(forest.amount("explicit/heap-unclassified"), Some(20));
//! assert_eq!(forest.amount("explicit/no-such-thing"), None);
//! ```

mod build;
mod lookup;
mod node;
mod node_data;
mod path_order;
mod process;

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use crate::process_name::own_process_name;
use crate::report_set::ReportSet;
use crate::warning::Warning;

use build::TreeBuilder;

pub use node::{BY_AMOUNT, COUNTED_TWICE, FAKE_CHILD, ITSELF, Mark, TreeNode};
pub use process::ProcessTrees;

/// The trees of all processes of a [`ReportSet`].
#[derive(Debug)]
pub struct Forest<'a> {
    processes: Vec<ProcessTrees<'a>>,
    warnings: Vec<Warning>,
}

impl<'a> Forest<'a> {
    /// Builds the trees of every process. The trees leave out reports that break a rule of their tree, and
    /// [`warnings`](Self::warnings) lists these reports.
    pub fn new(set: &'a ReportSet) -> Self {
        Self::filtered(set, |_| true)
    }

    /// Builds trees from the reports whose path `keep` accepts, and adds up only these reports. Adds
    /// `heap-unclassified` only if `keep` accepts `heap-allocated`. The resident amounts of [`ProcessTrees`] come
    /// from all reports. A process without accepted reports stays in the forest and is empty.
    pub fn filtered(set: &'a ReportSet, mut keep: impl FnMut(&str) -> bool) -> Self {
        let mut builders: Vec<TreeBuilder<'a>> = Vec::new();
        let mut by_id: Vec<Option<usize>> = Vec::new();
        let mut unnamed: Option<usize> = None;
        for (row, (report, id)) in set.iter().zip(set.process_ids()).enumerate() {
            if id >= by_id.len() {
                by_id.resize(id + 1, None);
            }
            let index = *by_id[id].get_or_insert_with(|| {
                let name = named(report.process);
                // Different names are different processes, except that an empty name also means this process.
                let known = match name {
                    Cow::Owned(_) => builders.iter().position(|b| b.name() == name),
                    Cow::Borrowed(_) => unnamed.filter(|index| builders[*index].name() == name),
                };
                let index = known.unwrap_or(builders.len());
                if matches!(name, Cow::Owned(_)) {
                    unnamed = Some(index);
                }
                if known.is_none() {
                    builders.push(TreeBuilder::new(set, name));
                }
                index
            });
            let builder = &mut builders[index];
            builder.see(&report);
            if keep(report.path) {
                let row = u32::try_from(row).expect("a set has fewer than 2^32 reports");
                builder.add(row, &report);
            }
        }
        let mut forest = Self { processes: Vec::with_capacity(builders.len()), warnings: Vec::new() };
        for (process, warnings) in finish_all(builders, set.len()) {
            forest.processes.push(process);
            forest.warnings.extend(warnings);
        }
        forest
    }

    /// The processes, in the order in which the set first names them.
    pub fn processes(&self) -> &[ProcessTrees<'a>] {
        &self.processes
    }

    /// The amount at `path`, summed over all processes that have it; see [`ProcessTrees::amount`].
    pub fn amount(&self, path: &str) -> Option<i128> {
        self.processes.iter().filter_map(|p| p.amount(path)).reduce(|a, b| a + b)
    }

    /// The reports that the trees leave out, and why.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

/// The name of a process; an empty name means the process that runs this code.
fn named(process: &str) -> Cow<'_, str> {
    if process.is_empty() { Cow::Owned(own_process_name()) } else { Cow::Borrowed(process) }
}

/// With fewer reports for each thread, threads cost more than they save.
const REPORTS_A_THREAD: usize = 100_000;

/// The maximum number of threads. More threads do not help, since most sets have few processes. The number is a
/// constant, since a query for the number of processors allocates ten kilobytes.
const MOST_THREADS: usize = 4;

/// The trees of all processes, built on several threads if there are many reports; no thread outlives the call.
fn finish_all(builders: Vec<TreeBuilder<'_>>, reports: usize) -> Vec<(ProcessTrees<'_>, Vec<Warning>)> {
    let threads = MOST_THREADS.min(reports / REPORTS_A_THREAD).min(builders.len());
    if threads < 2 {
        return builders.into_iter().map(TreeBuilder::finish).collect();
    }
    let processes = builders.len();
    let left = Mutex::new(builders.into_iter().enumerate());
    let work = || {
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        std::iter::from_fn(next).map(|(i, builder)| (i, builder.finish())).collect::<Vec<_>>()
    };
    let done = std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, work);
        // If a thread cannot start, the other threads do its work.
        let helpers: Vec<_> = (1..threads).map_while(|i| spawn(i).ok()).collect();
        let mut done = work();
        for helper in helpers {
            done.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    let mut finished: Vec<_> = (0..processes).map(|_| None).collect();
    done.into_iter().for_each(|(i, tree)| finished[i] = Some(tree));
    finished.into_iter().flatten().collect()
}
