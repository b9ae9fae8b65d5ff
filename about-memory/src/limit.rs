//! Limits on amounts: `explicit < 64 MiB`, `explicit/cache > +5%`.
//!
//! The command line, budgets and tests share one grammar. All comparisons are between whole numbers, so no value is
//! rounded.

mod parse;

use core::cmp::Ordering;
use core::fmt;

use memory_report::Units;
use memory_report::tree::{Forest, ProcessTrees};
use thiserror::Error;

use crate::number::{self, ByteUnits};

/// A comparison of the amount at a path, summed over processes, with a limit.
///
/// The text of a limit is `[PROCESS] PATH COMPARISON LIMIT`:
///
/// - `[PROCESS]`, optional: counts only processes whose name contains this text.
/// - `PATH`: a path as in the reports. It names a leaf or an inner node of a tree, a report outside of trees, or
///   `explicit/heap-unclassified`.
/// - `COMPARISON`: `<`, `<=`, `>`, `>=` or `==`.
/// - `LIMIT`: a number, which may contain decimals, `_` and `,`, and a unit: `B`; `KiB`, `MiB` or `GiB` (powers of
///   1,024); `kB`, `KB`, `MB` or `GB` (powers of 1,000); `%` if the report is a percentage; or no unit for the units of
///   the report. With a sign, the limit is on the growth since an earlier report: `+64 KiB`, or `+5%` of the earlier
///   amount.
///
/// ```
/// use about_memory::Limit;
///
/// let limit: Limit = "[Main Process] explicit/cache > +12.5%".parse()?;
/// assert_eq!((limit.process(), limit.path()), (Some("Main Process"), "explicit/cache"));
/// assert!(limit.is_relative());
/// # Ok::<(), about_memory::LimitError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    process: Option<String>,
    path: String,
    comparison: LimitComparison,
    bound: LimitBound,
    /// The comparison and the bound as written.
    condition: String,
}

/// An amount and its units.
pub(crate) type ReportedAmount = (i128, Units);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitComparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
}

impl LimitComparison {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::Equal => ordering.is_eq(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LimitBound {
    number: DecimalNumber,
    unit: LimitUnit,
    growth: bool,
}

/// A decimal number: `mantissa` divided by ten to the power of `decimals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DecimalNumber {
    mantissa: i128,
    decimals: u32,
}

impl DecimalNumber {
    /// Compares `amount` with this number times `factor`.
    fn compare(self, amount: i128, factor: i128) -> Ordering {
        let amount = amount.saturating_mul(10_i128.saturating_pow(self.decimals));
        amount.cmp(&self.mantissa.saturating_mul(factor))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitUnit {
    /// The units of the report.
    None,
    /// This many bytes.
    Bytes(u32),
    Percent,
}

/// The outcome of a [`Limit`] on one report or on two.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitOutcome {
    /// Whether the comparison is true.
    pub holds: bool,
    /// The amount in the earlier report. `None` if there is no earlier report, or if that report does not contain the
    /// path.
    pub first: Option<i128>,
    /// The amount in the later or only report. `None` if the report does not contain the path.
    pub second: Option<i128>,
    /// The units of both amounts.
    pub units: Units,
    has_first: bool,
}

impl Limit {
    /// Whether the limit is on growth, so its check needs two reports.
    pub fn is_relative(&self) -> bool {
        self.bound.growth
    }

    /// The path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the text that the name of a process must contain to be counted; `None` if all processes are counted.
    pub fn process(&self) -> Option<&str> {
        self.process.as_deref()
    }

    /// The comparison and the limit as written: `< 64 MiB`.
    pub fn condition(&self) -> &str {
        &self.condition
    }

    /// Whether an amount of 0 meets the limit.
    #[cfg(feature = "budget")]
    pub(crate) fn holds_for_nothing(&self) -> bool {
        self.comparison.holds(self.bound.number.compare(0, 1))
    }

    /// Returns the same limit with its path normalized.
    pub(crate) fn renamed(mut self, path: impl FnOnce(&str) -> String) -> Self {
        self.path = path(&self.path);
        self
    }

    /// Checks the limit on a report. A limit on growth also needs an earlier report. If only one report contains the
    /// path, the amount in the other report is 0.
    ///
    /// # Errors
    ///
    /// Returns an error if neither report contains the path, if the units of limit and report differ, or if the limit
    /// is on growth and there is no earlier report.
    pub fn check(&self, first: Option<&Forest<'_>>, second: &Forest<'_>) -> Result<LimitOutcome, LimitError> {
        self.judge(first.map(|forest| self.amount(forest)), self.amount(second))
    }

    /// Like [`check`](Self::check), for known amounts.
    pub(crate) fn judge(
        &self,
        first: Option<Option<ReportedAmount>>,
        second: Option<ReportedAmount>,
    ) -> Result<LimitOutcome, LimitError> {
        if self.is_relative() && first.is_none() {
            return Err(LimitError::NothingBefore(self.to_string()));
        }
        let (before, after) = (first.flatten(), second);
        let Some((_, units)) = after.or(before) else {
            return Err(LimitError::NotReported(self.to_string()));
        };
        if before.is_some_and(|(_, other)| other != units) {
            return Err(LimitError::Units(self.to_string(), units));
        }
        let (before, after) = (before.map(|(amount, _)| amount), after.map(|(amount, _)| amount));
        let ordering = self.compare(before.unwrap_or(0), after.unwrap_or(0), units)?;
        let holds = self.comparison.holds(ordering);
        Ok(LimitOutcome { holds, first: before, second: after, units, has_first: first.is_some() })
    }

    /// Compares the amount, or its growth, with the bound.
    fn compare(&self, before: i128, after: i128, units: Units) -> Result<Ordering, LimitError> {
        let LimitBound { number, unit, growth } = self.bound;
        let amount = if growth { after - before } else { after };
        let factor = match (unit, units) {
            (LimitUnit::Percent, _) if growth => {
                // Growth from 0 exceeds any percentage.
                return Ok(match (before, amount) {
                    (0, 0) => number.compare(0, 1),
                    (0, amount) => amount.cmp(&0),
                    _ => number.compare(amount.saturating_mul(100), before.saturating_abs()),
                });
            }
            (LimitUnit::Percent | LimitUnit::None, Units::Percentage) => 100,
            (LimitUnit::None, _) => 1,
            (LimitUnit::Bytes(bytes), Units::Bytes) => i128::from(bytes),
            _ => return Err(LimitError::Units(self.to_string(), units)),
        };
        Ok(number.compare(amount, factor))
    }

    /// Returns the amount at the path, summed over the chosen processes. A process whose units differ from the first
    /// process's units is omitted.
    pub(crate) fn amount(&self, forest: &Forest<'_>) -> Option<ReportedAmount> {
        let part = self.process.as_deref().unwrap_or("");
        let counts = |process: &&ProcessTrees<'_>| process.name().contains(part);
        let nodes = forest.processes().iter().filter(counts).filter_map(|process| process.node(&self.path));
        let amounts = nodes.map(|node| (node.amount(), node.units()));
        // Amounts in different units have no sum.
        amounts.reduce(|(a, units), (b, other)| (if units == other { a + b } else { a }, units))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(process) = &self.process {
            write!(f, "[{process}] ")?;
        }
        write!(f, "{} {}", self.path, self.condition)
    }
}

/// Shows the amounts: `100.00 MiB to 105.00 MiB (+5.00 MiB, +5.00%)`, or one amount without an earlier report.
impl fmt::Display for LimitOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = |amount: Option<i128>| match amount {
            Some(amount) => shown(amount, self.units),
            None => "nothing".to_owned(),
        };
        if !self.has_first {
            return f.write_str(&amount(self.second));
        }
        let (first, second) = (self.first.unwrap_or(0), self.second.unwrap_or(0));
        write!(f, "{} to {}", amount(self.first), amount(self.second))?;
        let change = second - first;
        if change == 0 {
            return Ok(());
        }
        let sign = |number: i128| if number > 0 { "+" } else { "" };
        write!(f, " ({}{}", sign(change), shown(change, self.units))?;
        if first != 0 {
            let mut percent = String::new();
            number::push_ratio(&mut percent, change, first.saturating_abs());
            write!(f, ", {}{percent}", sign(change))?;
        }
        f.write_str(")")
    }
}

fn shown(amount: i128, units: Units) -> String {
    let mut text = String::new();
    number::push_amount_in(&mut text, amount, units, ByteUnits::Auto);
    text
}

/// The reason why a limit is invalid or cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitError {
    /// The text is not a limit: the text, and the error in it.
    #[error("not a limit: {0}: {1}")]
    Syntax(String, &'static str),
    /// No report contains the path of this limit.
    #[error("{0}: no report has this path")]
    NotReported(String),
    /// The units of this limit differ from the report's units.
    #[error("{0}: the units of the report are {1}")]
    Units(String, Units),
    /// This limit is on growth, but there is no earlier report.
    #[error("{0}: a limit on growth needs two reports")]
    NothingBefore(String),
}
