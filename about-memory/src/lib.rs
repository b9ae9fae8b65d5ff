//! Views of memory reports: Firefox's about:memory as text, for any Rust program.
//!
//! [`text`] shows a [`ReportSet`](memory_report::ReportSet): a collected set, a set from a file, or the
//! [`diff`](diff()) of two sets. [`assert_memory!`], [`assert_memory_diff!`] and [`assert_no_skipped!`] check a set in
//! a test, and [`assert_coverage!`] checks a dump of DMD. The program `about-memory` shows files (`about-memory show
//! memory-report.json.gz`) and, through `live`, running processes (`about-memory show PID`).
//!
//! Tests check that the text equals Firefox's text (ESR 153) byte for byte.
//!
//! [`changes`] lists each change with both amounts, and accepts more rules for names than [`diff`](diff()). A
//! [`Limit`] bounds an amount or its growth; a [`Series`] shows amounts over time.
//!
//! # Features
//!
//! No feature is on by default. Without features, the crate contains everything above except the program and the module
//! `live`, and adds four crates to a program with `memory-reporter`.
//!
//! - `budget`: `Budget`, a file of limits.
//! - `collation`: names in Unicode's order. Without this feature, ASCII and accented Latin letters have the same order;
//!   other characters are sorted by code point.
//! - `export`: [`Series`] as counters for the trace events of `memory-export`.
//! - `html`: the function `html`. It makes one page of a set or a diff for any browser: the same text to open, close
//!   and filter, and a treemap.
//! - `live`: the module `live`. It asks running processes.
//! - `regex`: the crate `regex` evaluates regular expressions. Without this feature, `regex-lite` evaluates them: it is
//!   slower, and its classes contain only ASCII.
//! - `serve`: the module `serve`, a page in the browser for running processes and heap snapshots.
//! - `session`: the module `session`, the contents of a front end for heap snapshots, without HTTP.
//! - `symbols`: a failing [`assert_coverage!`] names crates, not only files.
//! - `program`: all of these features, and the program.
//!
//! # Differences from Firefox
//!
//! - A report whose path is also an inner node keeps its amount, in a child called `(itself)`. Firefox loses the amount
//!   if the node has one other child, and shows nothing if the node has more children.
//! - Reports and processes called `constructor`, `__proto__` and so on are shown. Firefox drops them.
//! - A process without an `explicit` tree does not pass its list of invalid values on to the next process. As in
//!   Firefox, the process itself shows no such list, but the values are marked.
//! - An error in one report (kind, units, amount) affects only that report, not the whole page. A block at the top
//!   names the report. The block also names reports whose units differ from the units of their tree.
//! - Sums have 128 bits, and whole numbers above 2^53 are rounded exactly.
//! - Control characters, marks of text direction and zero-width characters in names are escaped, as `\u{1b}`.
//! - The text omits the spaces that Firefox's page adds when it is copied: four before each invalid path and one after
//!   the last path. It keeps runs of spaces in the name of a process.
//! - A regular expression cannot contain look-around or back-references. An invalid expression is an error. The page
//!   uses the browser's own regular expressions. There, as in Firefox, an invalid expression matches nothing.
//! - In a diff, a new or removed report keeps its mark if a chain of names was merged. An error in one name (two units,
//!   two kinds) affects at most that name, and a warning at the top contains the name. The amount of a leaf that is
//!   also an inner node is always in `(fake child)`; Firefox loses the amount if the node has a single other child.
//!
//! The `[N]` behind a name is Firefox's count of added reports. It omits reports that were added to a sum of 0.
//! [`TreeNode::reports`](memory_report::tree::TreeNode::reports) counts all reports.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod assert;
#[cfg(feature = "budget")]
mod budget;
mod collation;
mod diff;
mod escape;
mod filter;
#[cfg(feature = "html")]
mod html;
mod layout;
mod limit;
#[cfg(feature = "budget")]
mod nearest_name;
mod normalize;
mod number;
mod pattern;
#[cfg(feature = "live")]
mod platform;
mod series;
mod text;
mod view;

#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "program")]
pub mod launch;
#[cfg(feature = "live")]
pub mod live;
#[cfg(feature = "serve")]
pub mod serve;
#[cfg(feature = "session")]
pub mod session;
#[cfg(any(feature = "live", feature = "session"))]
pub mod temporary;

#[cfg(feature = "budget")]
pub use budget::{Budget, BudgetCheck, BudgetError, BudgetOptions};
pub use diff::{changes, check_limits, diff};
pub use dmd_analyze::assert_coverage;
pub use escape::escape;
pub use filter::{FilterError, PathFilter};
#[cfg(feature = "html")]
pub use html::{HeapFacts, HtmlOptions, html};
pub use limit::{Limit, LimitError, LimitOutcome};
#[cfg(feature = "program")]
pub use nearest_name::nearest_name;
pub use normalize::{DiffOptions, NormalizeError, NormalizeNames, NormalizeRule};
pub use number::ByteUnits;
pub use series::{Series, SeriesOptions, SeriesRow, SeriesSort, SeriesText};
pub use text::{ReportText, text};
pub use view::EntrySort;

/// The functions that the macros call.
#[doc(hidden)]
pub mod __private {
    pub use crate::assert::{check, check_diff, check_no_skipped};
}
