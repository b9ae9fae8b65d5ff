//! The largest parts of a process in a measurement.

use memory_report::ReportSet;
use memory_report::tree::{Forest, TreeNode};

/// A part is divided until there are this many parts, the largest first.
const PARTS: usize = 8;
/// At most this many parts are kept.
const MOST: usize = 3;

/// The sums of a measurement, and its largest parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MeasuredParts {
    /// The amount of `explicit`, in bytes.
    pub(super) explicit: i128,
    /// The amount of `heap-unclassified`, in bytes; `None` if the measurement does not have it.
    pub(super) unclassified: Option<i128>,
    /// The paths of the largest parts below `explicit`, each with its bytes, the largest first.
    pub(super) largest: Vec<(String, i128)>,
}

impl MeasuredParts {
    /// Returns `None` if the reports have no `explicit`.
    pub(super) fn new(set: &ReportSet) -> Option<Self> {
        let forest = Forest::new(set);
        let processes = forest.processes();
        let (process, explicit) =
            processes.iter().find_map(|process| Some((process, process.node("explicit")?)))?;
        let mut parts: Vec<TreeNode<'_, '_>> = explicit.children().collect();
        loop {
            parts.sort_by(|a, b| b.amount().cmp(&a.amount()).then_with(|| a.path().cmp(b.path())));
            let divided = parts.iter().take(MOST).position(|part| !part.is_leaf());
            let Some(place) = divided.filter(|_| parts.len() < PARTS) else { break };
            let part = parts.remove(place);
            parts.extend(part.children());
        }
        let path = |part: &TreeNode<'_, '_>| {
            let path = part.path();
            path.strip_prefix("explicit/").unwrap_or(path).to_owned()
        };
        Some(Self {
            explicit: explicit.amount(),
            unclassified: process.node("explicit/heap-unclassified").map(|node| node.amount()),
            largest: parts.iter().take(MOST).map(|part| (path(part), part.amount())).collect(),
        })
    }
}
