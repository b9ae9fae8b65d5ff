//! The data of the page: the whole forest, unfiltered, in columns.
//!
//! The page sums, sorts and filters, so only leaves have amounts here. Nodes are in preorder: for each process its
//! trees, then its lines, in the order of display. The children of a node are in the order of their reports; this order
//! breaks ties when the page sorts. `heap-unclassified` depends on the filter, so the page computes it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use dmd_analyze::{FlameGraph, ReportFault};
use memory_report::diff::Presence;
use memory_report::tree::{Forest, ProcessTrees, TreeNode};
use memory_report::{Kind, ReportSet, Units, Warning};
use serde::Serialize;

use super::columns::{NumberColumn, TextColumn};
use super::facts::HeapFacts;
use super::flame::{self, FlameHeader};
use super::heap::{self, HeapHeader, HeapPage};
use crate::collation::Collator;
use crate::text::{compare, resident_share, sorted};

/// The version of the format. The page and the data must have the same version.
const VERSION: u32 = 1;

// Bits of a node's flags. The two lowest bits contain the units.
const ITSELF_BIT: u8 = 1 << 2;
const HEAP_SHIFT: u8 = 3;
const MERGED_BIT: u8 = 1 << 5;
const PRESENCE_SHIFT: u8 = 6;

/// The columns that change if the same reports are measured again.
const AMOUNTS: [&str; 2] = ["amounts", "heaps"];

/// The page's floats represent all sums exactly if the sum of all magnitudes is below this.
const EXACT: u128 = 1 << 52;

#[derive(Serialize)]
struct PageHeader<'a> {
    version: u32,
    is_diff: bool,
    usable_size_known: bool,
    /// Whether floats represent all sums exactly.
    exact: bool,
    nodes: usize,
    processes: Vec<ProcessHeader<'a>>,
    set_warnings: Vec<WarningHeader<'a>>,
    tree_warnings: Vec<WarningHeader<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flame: Option<FlameHeader>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heap: Option<HeapHeader<'a>>,
    /// The tag of the shape. A reader with the same shape needs only the amounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<String>,
    columns: Vec<(&'static str, usize)>,
}

/// The header of a later measurement of the same reports. The reader already has all other data.
#[derive(Serialize)]
struct LaterHeader {
    version: u32,
    /// The `resident` of each process.
    residents: Vec<String>,
    columns: Vec<(&'static str, usize)>,
}

#[derive(Serialize)]
struct ProcessHeader<'a> {
    name: &'a str,
    /// The amount that the process adds to the total, as a decimal number.
    resident: String,
    trees: usize,
    lines: usize,
}

#[derive(Hash, Serialize)]
struct WarningHeader<'a> {
    subject: &'a str,
    message: Cow<'a, str>,
}

impl<'a> From<&'a Warning> for WarningHeader<'a> {
    fn from(warning: &'a Warning) -> Self {
        Self { subject: &warning.subject, message: Cow::Borrowed(&warning.message) }
    }
}

/// A fault is shown as a warning, also on a page without reports.
impl<'a> From<&'a ReportFault> for WarningHeader<'a> {
    fn from(fault: &'a ReportFault) -> Self {
        Self { subject: fault.subject(), message: Cow::Owned(fault.message()) }
    }
}

/// Returns the length of the header (32 bits, little-endian), the header in JSON, then the columns.
pub(super) fn payload(
    set: &ReportSet,
    flame: Option<&FlameGraph>,
    heap: Option<&HeapPage>,
    facts: Option<&HeapFacts>,
) -> Vec<u8> {
    let forest = Forest::new(set);
    let (header, columns) = parts(&forest, set, flame, heap, facts);
    written(&header, &columns)
}

/// Returns the data of [`payload`] with its shape, for a reader who follows the reports. If the reports have the shape
/// `known`, the data contains only their amounts.
#[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "only the page that is served follows reports"))]
pub(super) fn followed(set: &ReportSet, known: &str) -> Vec<u8> {
    let forest = Forest::new(set);
    let (mut header, mut columns) = parts(&forest, set, None, None, None);
    let shape = header.shape(&columns);
    if shape != known {
        header.shape = Some(shape);
        return written(&header, &columns);
    }
    columns.retain(|(name, _)| AMOUNTS.contains(name));
    let residents = header.processes.into_iter().map(|process| process.resident).collect();
    written(&LaterHeader { version: VERSION, residents, columns: lengths(&columns) }, &columns)
}

type ReportColumns = Vec<(&'static str, Vec<u8>)>;

fn lengths(columns: &ReportColumns) -> Vec<(&'static str, usize)> {
    columns.iter().map(|(name, bytes)| (*name, bytes.len())).collect()
}

fn written(header: &impl Serialize, columns: &ReportColumns) -> Vec<u8> {
    let header = serde_json::to_vec(header).expect("texts and numbers are JSON");
    let length = u32::try_from(header.len()).expect("a header is shorter than 4 GiB");
    let mut payload = length.to_le_bytes().to_vec();
    payload.extend(header);
    for (_, bytes) in columns {
        payload.extend(bytes);
    }
    payload
}

impl PageHeader<'_> {
    /// Returns a tag that is equal for reports that differ only in amounts.
    fn shape(&self, columns: &ReportColumns) -> String {
        let mut hasher = DefaultHasher::new();
        (self.is_diff, self.usable_size_known, self.exact, self.nodes).hash(&mut hasher);
        for ProcessHeader { name, trees, lines, .. } in &self.processes {
            (name, trees, lines).hash(&mut hasher);
        }
        (&self.set_warnings, &self.tree_warnings).hash(&mut hasher);
        for column in columns.iter().filter(|(name, _)| !AMOUNTS.contains(name)) {
            column.hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }
}

fn parts<'a>(
    forest: &'a Forest<'a>,
    set: &'a ReportSet,
    flame: Option<&'a FlameGraph>,
    heap: Option<&'a HeapPage>,
    facts: Option<&'a HeapFacts>,
) -> (PageHeader<'a>, ReportColumns) {
    let mut processes: Vec<_> = forest.processes().iter().collect();
    processes.sort_by(|a, b| compare(a, b));
    let mut nodes = NodeColumns::new(set, &processes);
    let mut headers = Vec::with_capacity(processes.len());
    let by_name = Collator::new();
    for (index, process) in processes.iter().enumerate() {
        let trees = sorted(process.trees(), &by_name);
        let lines = sorted(process.lines(), &by_name);
        for root in trees.iter().chain(&lines) {
            nodes.push_tree(*root, index);
        }
        headers.push(ProcessHeader {
            name: process.name(),
            resident: resident_share(process).to_string(),
            trees: trees.len(),
            lines: lines.len(),
        });
    }
    let (count, exact) = (nodes.count, nodes.total < EXACT);
    let mut columns = nodes.into_columns();
    let mut set_warnings: Vec<WarningHeader<'_>> = set.warnings().iter().map(Into::into).collect();
    let of_flame = flame.map(FlameGraph::faults).unwrap_or_default();
    let of_heap = heap.map(HeapPage::faults).unwrap_or_default();
    set_warnings.extend(of_flame.iter().chain(of_heap).map(Into::into));
    let flame = flame.map(|graph| {
        let (header, more) = flame::columns(graph);
        columns.extend(more);
        header
    });
    let heap = heap.map(|heap| {
        let (header, more) = heap::columns(heap, facts);
        columns.extend(more);
        header
    });
    let header = PageHeader {
        version: VERSION,
        is_diff: set.is_diff(),
        usable_size_known: set.usable_size_known(),
        exact,
        nodes: count,
        processes: headers,
        set_warnings,
        tree_warnings: forest.warnings().iter().map(Into::into).collect(),
        flame,
        heap,
        shape: None,
        columns: lengths(&columns),
    };
    (header, columns)
}

struct NodeColumns<'a> {
    set: &'a ReportSet,
    count: usize,
    /// The sum of the magnitudes of all amounts.
    total: u128,
    children: NumberColumn,
    names: TextColumn,
    flags: Vec<u8>,
    amounts: NumberColumn,
    merged: NumberColumn,
    heaps: NumberColumn,
    description_of: NumberColumn,
    descriptions: TextColumn,
    /// The index of each text in `descriptions`.
    known: HashMap<&'a str, usize>,
    /// The HEAP bytes of leaves that have several reports, by process and path.
    heap: HashMap<(usize, &'a str), i128>,
}

impl<'a> NodeColumns<'a> {
    fn new(set: &'a ReportSet, processes: &[&ProcessTrees<'a>]) -> Self {
        Self {
            set,
            count: 0,
            total: 0,
            children: NumberColumn::default(),
            names: TextColumn::default(),
            flags: Vec::new(),
            amounts: NumberColumn::default(),
            merged: NumberColumn::default(),
            heaps: NumberColumn::default(),
            description_of: NumberColumn::default(),
            descriptions: TextColumn::default(),
            known: HashMap::new(),
            heap: heap_of_duplicates(set, processes),
        }
    }

    fn push_tree(&mut self, root: TreeNode<'_, 'a>, process: usize) {
        let mut left = vec![(root, false)];
        while let Some((node, itself)) = left.pop() {
            let at = left.len();
            let children = node.children().filter(|child| !is_heap_unclassified(*child));
            // A child with the path of its parent holds the parent's own amount. The child's name is no evidence: a
            // report may be called `(itself)`.
            left.extend(children.map(|child| (child, child.path().len() == node.path().len())));
            left[at..].sort_unstable_by_key(|(child, _)| core::cmp::Reverse(child.first_report()));
            self.push(node, itself, left.len() - at, process);
        }
    }

    fn push(&mut self, node: TreeNode<'_, 'a>, itself: bool, children: usize, process: usize) {
        self.count += 1;
        self.children.push(children as u64);
        self.names.push(node.name());
        let mut flags = match node.units() {
            Units::Bytes => 0,
            Units::Count => 1,
            Units::CountCumulative => 2,
            Units::Percentage => 3,
        };
        if itself {
            flags |= ITSELF_BIT;
        }
        if node.merged() > 0 {
            flags |= MERGED_BIT;
            self.merged.push(node.merged());
        }
        if children == 0 {
            let presence = match self.set.presence(node.first_report() as usize) {
                Some(Presence::Both) | None => 0,
                Some(Presence::FirstOnly) => 1,
                Some(Presence::SecondOnly) => 2,
            };
            // A leaf of several reports may be in both sets even if its first report is in one set only.
            let presence = if node.mark().is_none() { 0 } else { presence };
            flags |= presence << PRESENCE_SHIFT;
            flags |= self.heap(node, process) << HEAP_SHIFT;
            self.total = self.total.saturating_add(node.amount().unsigned_abs());
            self.amounts.push_signed(node.amount());
            let text = node.description().unwrap_or("");
            let next = self.known.len();
            let description = *self.known.entry(text).or_insert_with(|| {
                self.descriptions.push(text);
                next
            });
            self.description_of.push(description as u64);
        }
        self.flags.push(flags);
    }

    /// Returns how much of a leaf is HEAP: 0 for no bytes, 1 for all bytes, 2 for the amount in the column `heaps`.
    fn heap(&mut self, node: TreeNode<'_, 'a>, process: usize) -> u8 {
        if !node.path().starts_with("explicit/") {
            return 0;
        }
        let report = self.set.get(node.first_report() as usize);
        let heap = match node.reports() {
            1 if report.is_some_and(|report| report.kind == Kind::Heap) => node.amount(),
            1 => 0,
            _ => self.heap.get(&(process, node.path())).copied().unwrap_or(0),
        };
        if heap == 0 {
            0
        } else if heap == node.amount() {
            1
        } else {
            self.total = self.total.saturating_add(heap.unsigned_abs());
            self.heaps.push_signed(heap);
            2
        }
    }

    fn into_columns(self) -> Vec<(&'static str, Vec<u8>)> {
        let (name_lengths, names) = self.names.into_bytes();
        let (description_lengths, descriptions) = self.descriptions.into_bytes();
        vec![
            ("children", self.children.into_bytes()),
            ("nameLengths", name_lengths),
            ("names", names),
            ("flags", self.flags),
            ("amounts", self.amounts.into_bytes()),
            ("merged", self.merged.into_bytes()),
            ("heaps", self.heaps.into_bytes()),
            ("descriptionOf", self.description_of.into_bytes()),
            ("descriptionLengths", description_lengths),
            ("descriptions", descriptions),
        ]
    }
}

fn is_heap_unclassified(node: TreeNode<'_, '_>) -> bool {
    node.is_leaf() && node.reports() == 0 && node.path() == "explicit/heap-unclassified"
}

fn heap_of_duplicates<'a>(
    set: &'a ReportSet,
    processes: &[&ProcessTrees<'a>],
) -> HashMap<(usize, &'a str), i128> {
    let mut heap = HashMap::new();
    // The index of each process, by its name in the reports. The name may be empty.
    let mut spelled: HashMap<&str, usize> = HashMap::new();
    for (index, process) in processes.iter().enumerate() {
        let mut left: Vec<_> = process.trees().filter(|root| root.path() == "explicit").collect();
        if let Some(report) = left.first().and_then(|root| set.get(root.first_report() as usize)) {
            spelled.insert(report.process, index);
        }
        while let Some(node) = left.pop() {
            if node.reports() > 1 {
                heap.insert((index, node.path()), 0);
            }
            left.extend(node.children());
        }
    }
    if heap.is_empty() {
        return heap;
    }
    let named: HashMap<&str, usize> = processes.iter().enumerate().map(|(i, p)| (p.name(), i)).collect();
    for report in set.iter().filter(|report| report.kind == Kind::Heap && report.units == Units::Bytes) {
        let process = spelled.get(report.process).or_else(|| named.get(report.process));
        if let Some(sum) = process.and_then(|process| heap.get_mut(&(*process, report.path))) {
            *sum += i128::from(report.amount);
        }
    }
    heap
}
