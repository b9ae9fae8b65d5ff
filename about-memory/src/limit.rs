//! Limits of amounts: `explicit < 64 MiB`, `explicit/cache > +5%`.
//!
//! One grammar for the command line, for budgets and for tests. All comparisons are of whole numbers,
//! so nothing is rounded.

mod parse;

use core::cmp::Ordering;
use core::fmt;

use memory_report::Units;
use memory_report::tree::{Forest, Process};

use crate::number::{self, ByteUnits};

/// A comparison of the amount at a path, summed over processes, with a limit.
///
/// Written `[PROCESS] PATH COMPARISON LIMIT`:
///
/// - `[PROCESS]`, which may be missing: only processes whose name contains this count.
/// - `PATH`: as in the reports; a leaf, an inner node, `explicit/heap-unclassified`, or a line.
/// - `COMPARISON`: `<`, `<=`, `>`, `>=` or `==`.
/// - `LIMIT`: a number, which may have decimals, `_` or `,`; then `B`, `KiB`, `MiB` or `GiB`, or nothing
///   for bytes or whatever is counted; `%` where the report itself is a percentage. With a sign it is how
///   much the amount has grown since another report: `+64 KiB`, or `+5%` of what it was.
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
    comparison: Comparison,
    bound: Bound,
    /// Comparison and bound as written.
    condition: String,
}

/// An amount and its units.
pub(crate) type Amount = (i128, Units);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
}

impl Comparison {
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
struct Bound {
    number: Decimal,
    unit: Unit,
    growth: bool,
}

/// `mantissa` divided by ten to the power of `decimals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    mantissa: i128,
    decimals: u32,
}

impl Decimal {
    /// How `amount` compares with this number times `factor`.
    fn compare(self, amount: i128, factor: i128) -> Ordering {
        let amount = amount.saturating_mul(10_i128.saturating_pow(self.decimals));
        amount.cmp(&self.mantissa.saturating_mul(factor))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Whatever the report counts.
    None,
    /// This many bytes.
    Bytes(u32),
    Percent,
}

/// What a [`Limit`] says of one report, or of two.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether the comparison is true.
    pub holds: bool,
    /// The amount in the earlier report, if there is one and it has the path.
    pub first: Option<i128>,
    /// The amount, if the path is reported.
    pub second: Option<i128>,
    /// The units of both.
    pub units: Units,
    has_first: bool,
}

impl Limit {
    /// Whether the limit is on growth, so that it takes two reports to check it.
    pub fn is_relative(&self) -> bool {
        self.bound.growth
    }

    /// The path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What the name of a process must contain to count, if not all do.
    pub fn process(&self) -> Option<&str> {
        self.process.as_deref()
    }

    /// The comparison and what it compares with, as written: `< 64 MiB`.
    pub fn condition(&self) -> &str {
        &self.condition
    }

    /// Whether an amount of 0 is within the limit.
    pub(crate) fn holds_for_nothing(&self) -> bool {
        self.comparison.holds(self.bound.number.compare(0, 1))
    }

    /// The same limit for names in which something was replaced.
    pub(crate) fn renamed(mut self, path: impl FnOnce(&str) -> String) -> Self {
        self.path = path(&self.path);
        self
    }

    /// Checks the limit against a report, and against an earlier one if the limit is on growth. A path
    /// that only one of them has is 0 in the other.
    ///
    /// # Errors
    ///
    /// If nothing is reported at the path in either, if the limit's units are not the report's, or if
    /// the limit is on growth and there is no earlier report.
    pub fn check(&self, first: Option<&Forest<'_>>, second: &Forest<'_>) -> Result<Verdict, LimitError> {
        self.judge(first.map(|forest| self.amount(forest)), self.amount(second))
    }

    /// As [`check`](Self::check), with the amounts.
    pub(crate) fn judge(
        &self,
        first: Option<Option<Amount>>,
        second: Option<Amount>,
    ) -> Result<Verdict, LimitError> {
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
        Ok(Verdict { holds, first: before, second: after, units, has_first: first.is_some() })
    }

    /// How the amount, or its growth, compares with the bound.
    fn compare(&self, before: i128, after: i128, units: Units) -> Result<Ordering, LimitError> {
        let Bound { number, unit, growth } = self.bound;
        let amount = if growth { after - before } else { after };
        let factor = match (unit, units) {
            (Unit::Percent, _) if growth => {
                // Any growth from nothing is more than any percentage of it.
                return Ok(match (before, amount) {
                    (0, 0) => number.compare(0, 1),
                    (0, amount) => amount.cmp(&0),
                    _ => number.compare(amount.saturating_mul(100), before.saturating_abs()),
                });
            }
            (Unit::Percent | Unit::None, Units::Percentage) => 100,
            (Unit::None, _) => 1,
            (Unit::Bytes(bytes), Units::Bytes) => i128::from(bytes),
            _ => return Err(LimitError::Units(self.to_string(), units)),
        };
        Ok(number.compare(amount, factor))
    }

    /// The amount at the path, summed over the processes that count and have the first one's units.
    pub(crate) fn amount(&self, forest: &Forest<'_>) -> Option<Amount> {
        let part = self.process.as_deref().unwrap_or("");
        let counts = |process: &&Process<'_>| process.name().contains(part);
        let nodes = forest.processes().iter().filter(counts).filter_map(|process| process.node(&self.path));
        let amounts = nodes.map(|node| (node.amount(), node.units()));
        // Amounts in other units than the first have no sum with it.
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

/// The amounts: `100.00 MiB to 105.00 MiB (+5.00 MiB, +5.00%)`, or one if there is no earlier report.
impl fmt::Display for Verdict {
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

/// Why a limit cannot be used, or not on these reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// The text is no limit; and what is wrong with it.
    Syntax(String, &'static str),
    /// Nothing is reported at the limit's path.
    NotReported(String),
    /// The limit's units are not those of the report.
    Units(String, Units),
    /// The limit is on growth, but there is nothing it could have grown from.
    NothingBefore(String),
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(limit, wrong) => write!(f, "not a limit: {limit}: {wrong}"),
            Self::NotReported(limit) => write!(f, "{limit}: nothing is reported there"),
            Self::Units(limit, units) => write!(f, "{limit}: what is reported there is in units of {units}"),
            Self::NothingBefore(limit) => write!(f, "{limit}: a limit on growth needs two reports"),
        }
    }
}

impl std::error::Error for LimitError {}
