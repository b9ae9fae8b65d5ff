//! Views of memory reports: Firefox's about:memory as text, for any Rust program.
//!
//! [`text`] shows a [`ReportSet`](memory_reporter::ReportSet): a collected one, one read from a file, or the
//! [`diff`](diff()) of two. [`assert_memory!`], [`assert_memory_diff!`] and [`assert_no_skipped!`] check one in a
//! test. The program `about-memory` shows files (`about-memory show memory-report.json.gz`) and, through [`live`],
//! running processes (`about-memory show PID`).
//!
//! Tests check that the text equals that of Firefox (ESR 153) byte for byte.
//!
//! [`changes`] lists each change with both amounts, and accepts more rules for names than [`diff`](diff()). A
//! [`Limit`] bounds an amount or its growth; a [`Budget`] is a file of limits; a [`Series`] shows amounts over time.
//!
//! [`html`](html()) makes one page of a set or a diff for any browser: the same text, to open, close and filter, and
//! a treemap.
//!
//! # Differences from Firefox
//!
//! - A report whose path is also an inner node keeps its amount, in a child called `(itself)`. Firefox loses the
//!   amount if there is one other child, and shows nothing at all if there are more.
//! - Reports and processes called `constructor`, `__proto__` and so on are shown. Firefox drops them.
//! - A process without an `explicit` tree does not pass its list of invalid values on to the next process. As in
//!   Firefox, it has no such list itself, but the values are marked.
//! - A fault in one report (kind, units, amount) costs that report, not the whole page: a block at the top names the
//!   report. The block also names reports whose units differ from the rest of their tree.
//! - Sums have 128 bits, and whole numbers above 2^53 are rounded exactly.
//! - Control characters, marks of text direction and characters without width in names are escaped, as `\u{1b}`.
//! - The text omits the spaces that Firefox's page adds when it is copied: four before each invalid path and one
//!   after the last. It keeps runs of spaces in the name of a process.
//! - A regular expression cannot contain look-around or back-references, and a bad one is an error. The page uses
//!   the browser's own regular expressions; there, as in Firefox, a bad one matches nothing.
//! - In a diff, a new or removed report keeps its mark if a chain of names was merged. A fault in one name (two
//!   units, two kinds) costs at most that name, and a warning at the top names it. The amount of a leaf that is also
//!   an inner node is always in `(fake child)`; Firefox loses it beside a single child.
//!
//! The `[N]` behind a name is Firefox's count of added reports, which omits reports added to a sum of 0.
//! [`Node::reports`](memory_reporter::tree::Node::reports) counts all.
#![forbid(unsafe_code)]

mod assert;
mod budget;
mod diff;
mod escape;
mod filter;
mod html;
mod layout;
mod limit;
mod normalize;
mod number;
mod platform;
mod series;
mod text;
mod view;

pub mod launch;
pub mod live;

pub use budget::{Budget, BudgetCheck, BudgetError, BudgetOptions};
pub use diff::{changes, check_limits, diff};
pub use escape::escape;
pub use filter::{Filter, FilterError};
pub use html::{HtmlOptions, html};
pub use limit::{Limit, LimitError, Verdict};
pub use normalize::{DiffOptions, NormalizeError, NormalizeNames, NormalizeRule};
pub use number::ByteUnits;
pub use series::{Series, SeriesOptions, SeriesRow, SeriesSort, SeriesText};
pub use text::{Text, text};
pub use view::Sort;

/// The functions that the macros call.
#[doc(hidden)]
pub mod __private {
    pub use crate::assert::{check, check_diff, check_no_skipped};
}
