//! The text of a set of reports, as copied from Firefox's about:memory.

mod process;

use core::cell::OnceCell;
use core::fmt;

use memory_report::tree::{Forest, ProcessTrees, TreeNode};
use memory_report::{ReportSet, Units, Warning};

use crate::collation::Collator;
use crate::escape;
use crate::filter::PathFilter;
use crate::number::ByteUnits;
use crate::view::{EntrySort, TextOptions};

use process::ProcessText;

/// The name of a program's first process. All of its resident memory counts in the total.
const MAIN_PROCESS: &str = "Main Process";
/// At most this many warnings are shown unless the text is verbose.
const SOME_WARNINGS: usize = 20;

/// Returns the text of `set`: all processes, with their trees and other measurements.
///
/// ```
/// use memory_reporter::{Kind, Report, ReportSet, Units};
///
/// let mut set = ReportSet::new();
/// for (path, kind, amount) in [
///     ("explicit/cache/keys", Kind::Heap, 3 << 20),
///     ("explicit/cache/values", Kind::Heap, 5 << 20),
///     ("heap-allocated", Kind::Other, 10 << 20),
/// ] {
///     let (process, units, description) = ("Main Process (pid 1)", Units::Bytes, "");
///     set.push(Report { process, path, kind, units, amount, description });
/// }
/// assert!(about_memory::text(&set).to_string().contains("
/// 10.00 MB (100.0%) -- explicit
/// ├───8.00 MB (80.00%) -- cache
/// │   ├──5.00 MB (50.00%) ── values
/// │   └──3.00 MB (30.00%) ── keys
/// └───2.00 MB (20.00%) ── heap-unclassified
/// "));
/// ```
pub fn text(set: &ReportSet) -> ReportText<'_> {
    ReportText { set, view: TextOptions::default(), filter: None, forest: OnceCell::new() }
}

/// The text of a set, with its options, made by [`text`]. Its [`Display`](fmt::Display) writes the text.
#[derive(Debug)]
pub struct ReportText<'a> {
    set: &'a ReportSet,
    view: TextOptions,
    filter: Option<PathFilter>,
    forest: OnceCell<Forest<'a>>,
}

impl<'a> ReportText<'a> {
    /// Whether to show bytes instead of MB, and all entries, however small. Default: no.
    #[must_use]
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.view.verbose = verbose;
        self
    }

    /// Whether to show the description of each report behind its name. Firefox shows the description when the mouse is
    /// over the name. Default: no.
    ///
    /// ```
    /// use memory_reporter::{Kind, Report, ReportSet, Units};
    ///
    /// let mut set = ReportSet::new();
    /// let (process, path, description) = ("", "cached-pages", "Pages that the cache holds.");
    /// set.push(Report { process, path, kind: Kind::Other, units: Units::Count, amount: 7, description });
    /// let text = about_memory::text(&set).descriptions(true).to_string();
    /// assert!(text.contains("\n7 ── cached-pages: Pages that the cache holds.\n"));
    /// ```
    #[must_use]
    pub fn descriptions(mut self, descriptions: bool) -> Self {
        self.view.descriptions = descriptions;
        self
    }

    /// Sets the threshold: entries below this percentage of the root of their tree become `(N tiny)`. Default: 1.
    #[must_use]
    pub fn threshold(mut self, percent: f64) -> Self {
        self.view.threshold = percent;
        self
    }

    /// Sets the maximum number of levels below the root of each tree. Default: all levels.
    #[must_use]
    pub fn depth(mut self, levels: u32) -> Self {
        self.view.depth = Some(levels);
        self
    }

    /// Sets the order of the entries below an entry. Default: the largest first.
    #[must_use]
    pub fn sort(mut self, sort: EntrySort) -> Self {
        self.view.sort = sort;
        self
    }

    /// Sets the unit of bytes. Default: MB, or B if verbose.
    #[must_use]
    pub fn units(mut self, units: ByteUnits) -> Self {
        self.view.bytes = Some(units);
        self
    }

    /// Shows only processes whose name contains `part`, and their total in the first line. Default: all processes.
    #[must_use]
    pub fn process(mut self, part: impl Into<String>) -> Self {
        self.view.process = Some(part.into());
        self
    }

    /// Shows only reports whose path the filter accepts, and their sums. The total in the first line still counts all
    /// reports.
    #[must_use]
    pub fn filter(self, filter: PathFilter) -> Self {
        Self { filter: Some(filter), forest: OnceCell::new(), ..self }
    }

    /// Returns the trees that are shown.
    pub fn forest(&self) -> &Forest<'a> {
        self.forest.get_or_init(|| match &self.filter {
            Some(filter) if !filter.is_empty() => Forest::filtered(self.set, |path| filter.accepts(path)),
            _ => Forest::new(self.set),
        })
    }

    /// Returns the warnings of the set and of its trees.
    pub fn warnings(&self) -> impl Iterator<Item = &Warning> {
        self.set.warnings().iter().chain(self.forest().warnings())
    }

    #[cfg(feature = "live")]
    pub(crate) fn view(&self) -> &TextOptions {
        &self.view
    }

    fn is_filtered(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| !filter.is_empty())
    }

    fn push_warnings(&self, to: &mut String) {
        let count = self.warnings().count();
        if count == 0 {
            return;
        }
        let shown = if self.view.verbose { count } else { SOME_WARNINGS };
        to.push_str("WARNING: the reports below are incomplete or doubtful.\n\n");
        for warning in self.warnings().take(shown) {
            escape::push_name(to, &warning.subject);
            to.push_str(": ");
            escape::push_text(to, &warning.message);
            to.push('\n');
        }
        if count > shown {
            to.push_str(&format!("({} more)\n", count - shown));
        }
        to.push('\n');
    }
}

impl fmt::Display for ReportText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut head = String::new();
        self.push_warnings(&mut head);
        let mut processes: Vec<_> = self.forest().processes().iter().collect();
        processes.retain(|process| self.view.shows(process.name()));
        head.push_str("Total resident memory (approximate) -- ");
        let total = processes.iter().map(|process| resident_share(process)).sum();
        self.view.push_amount(&mut head, total, Units::Bytes);
        head.push('\n');
        f.write_str(&head)?;
        processes.sort_by(|a, b| compare(a, b));
        processes.retain(|process| !process.is_empty());
        if processes.is_empty() {
            return f.write_str("No results found.\n");
        }
        let collator = Collator::new();
        for process in processes {
            // If a set has several processes, each warning names its process.
            let own = format!("{}: heap-allocated", process.name());
            let is_undeclared = |subject: &str| subject == "heap-allocated" || subject == own;
            let text = ProcessText {
                process,
                view: &self.view,
                is_whole: !self.is_filtered() && !self.set.is_partial(),
                usable_size_known: self.set.usable_size_known(),
                is_undeclared: self.set.warnings().iter().any(|known| is_undeclared(&known.subject)),
                collator: &collator,
            };
            text.write(f)?;
        }
        Ok(())
    }
}

/// Returns the amount that a process adds to the total. The main process adds all of its resident memory. Another
/// process adds its unshared memory, or all resident memory if the unshared memory is unknown.
pub(crate) fn resident_share(process: &ProcessTrees<'_>) -> i128 {
    let all = process.resident().unwrap_or(0);
    let own = process.resident_unique().unwrap_or(0);
    let share = if own == 0 || process.name().starts_with(MAIN_PROCESS) { all } else { own };
    i128::from(share)
}

/// Orders main processes first, in the order of the set. Then orders by resident memory, the largest first, then by
/// name in UTF-16.
pub(crate) fn compare(a: &ProcessTrees<'_>, b: &ProcessTrees<'_>) -> core::cmp::Ordering {
    let is_main = |p: &ProcessTrees<'_>| p.name().starts_with(MAIN_PROCESS);
    let resident = |p: &ProcessTrees<'_>| p.resident().filter(|amount| *amount != 0).unwrap_or(-1);
    match (is_main(a), is_main(b)) {
        (true, true) => core::cmp::Ordering::Equal,
        (false, false) => {
            resident(b).cmp(&resident(a)).then_with(|| a.name().encode_utf16().cmp(b.name().encode_utf16()))
        }
        (a, b) => b.cmp(&a),
    }
}

/// Sorts trees or lines by name. Equal names keep the order of the set.
pub(crate) fn sorted<'p, 'a>(
    nodes: impl Iterator<Item = TreeNode<'p, 'a>>,
    by: &Collator,
) -> Vec<TreeNode<'p, 'a>> {
    let mut nodes: Vec<_> = nodes.collect();
    let order = |node: &TreeNode<'_, '_>| node.first_report();
    nodes.sort_by(|a, b| by.compare(a.path(), b.path()).then(order(a).cmp(&order(b))));
    nodes
}
