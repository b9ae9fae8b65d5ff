//! Views of memory reports: Firefox's about:memory as text, for any Rust program.
//!
//! [`text`] shows a [`ReportSet`](memory_reporter::ReportSet), whether it was just collected, read from a
//! file, or is the [`diff`](diff()) of two; [`assert_memory!`], [`assert_memory_diff!`] and
//! [`assert_no_skipped!`] turn one into a test. The program `about-memory` shows files:
//! `about-memory show memory-report.json.gz`; and processes, which [`live`] asks: `about-memory show PID`.
//!
//! The text is that of Firefox (ESR 153) byte for byte, checked against Firefox itself.
//!
//! [`changes`] tells more than [`diff`](diff()), and takes rules for what in names means nothing. [`Limit`]s say
//! how large an amount may be, or how much it may grow; a [`Budget`] is a file of them, and a [`Series`] shows
//! amounts over time.
//!
//! [`html`](html()) makes one page of a set or a diff, for any browser: the same text to open, close and filter,
//! and a treemap.
//!
//! # Where it differs on purpose
//!
//! - A report whose path is also an inner node keeps its amount, in a child called `(itself)`. Firefox
//!   loses it where there is one other child, and shows nothing at all where there are more.
//! - Reports and processes called `constructor`, `__proto__` and so on are shown; there they vanish.
//! - A process without `explicit` tree does not hand its list of invalid values on to the next process.
//!   (As there it shows no such list itself; the values are marked all the same.)
//! - What is wrong with a single report (kind, units, amount) costs that report, not the whole page: it
//!   is named in a block at the top, and so is one whose units differ from the rest of its tree.
//! - Sums are of 128 bits and whole numbers are rounded exactly, also above 2^53.
//! - Control characters, marks of text direction and characters without width are escaped in names, as
//!   `\u{1b}`.
//! - Blanks that are there only because a page was copied are not: four before each invalid path and
//!   one after the last. Several blanks in a process's name are kept.
//! - A regular expression cannot look around or refer back, and a bad one is an error. (In the page it is the
//!   browser's own, and a bad one matches nothing, as there.)
//! - In a diff, a new or vanished report keeps its mark where a chain of names was merged. What is wrong
//!   with a single name (two units, two kinds) costs that name at most, and is told at the top. The amount of
//!   a leaf that is an inner node too is always in `(fake child)`; Firefox loses it beside a single child.
//!
//! Where reports are added up, the `[N]` behind the name is Firefox's, which does not count a report
//! that is added to a sum of 0. [`Node::reports`](memory_reporter::tree::Node::reports) counts all.
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

/// What the macros call.
#[doc(hidden)]
pub mod __private {
    pub use crate::assert::{check, check_diff, check_no_skipped};
}
