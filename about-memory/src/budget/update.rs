//! Makes a budget from a report, or updates a budget and keeps the budget's comments and order.

use memory_report::tree::{Forest, TreeNode};
use memory_report::{ReportSet, Units};
use toml_edit::{DocumentMut, Item, Table, Value};

use crate::limit::Limit;
use crate::normalize::{DiffOptions, Normalizer};

use super::{Budget, BudgetError};

const HEAD: &str = "\
# A value is the maximum of the path's sum over all processes, or a comparison such as \">= 1 MiB\". Limits on the
# processes of one program go into a table such as [process.\"Main Process\"].
";

/// The largest headroom, in percent. Larger values are clamped.
const MAX_HEADROOM: f64 = 1_000_000.0;

/// Options for making a budget from a report.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BudgetOptions {
    pub(crate) headroom: f64,
    pub(crate) paths: Vec<String>,
}

impl Default for BudgetOptions {
    fn default() -> Self {
        Self { headroom: 10.0, paths: Vec::new() }
    }
}

impl BudgetOptions {
    /// Options with a headroom of ten percent and without added paths.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the headroom of maxima above the reported amounts, in percent, at most 1,000,000. Default: 10.
    #[must_use]
    pub fn headroom(mut self, percent: f64) -> Self {
        self.headroom = percent;
        self
    }

    /// Adds a path that gets a limit. A path that already has a limit does not get another limit. By default, no path
    /// is added. Without added paths, an empty budget gets limits on `explicit`, and on each of its children that holds
    /// at least 1 % of it.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.paths.push(path.into());
        self
    }

    /// Returns the added paths that `set` does not contain. These paths get no maximum.
    pub fn missing(&self, set: &ReportSet) -> Vec<&str> {
        let forest = Forest::new(set);
        let reported = |path: &str| forest.processes().iter().any(|process| process.node(path).is_some());
        self.paths.iter().map(String::as_str).filter(|path| !reported(path)).collect()
    }
}

impl Budget {
    /// Updates the text of a budget for `set`. The text may be empty. Each limit without a comparison or with `<=`
    /// becomes the reported amount plus headroom. Limits with another comparison, and limits on paths that `set` does
    /// not contain, do not change.
    ///
    /// # Errors
    ///
    /// Returns an error if `text` is not a budget.
    pub fn update(text: &str, set: &ReportSet, options: &BudgetOptions) -> Result<String, BudgetError> {
        Self::parse(text)?;
        let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| BudgetError {
            line: super::line(text, error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
        })?;
        let normalizer = Normalizer::new(&DiffOptions::new(), &[set])
            .expect("the rules of Firefox are regular expressions");
        let set = normalizer.normalized(set);
        let maker = BudgetWriter { forest: Forest::new(&set), headroom: options.headroom };
        if let Some(table) = document.get_mut("budget") {
            maker.update(None, table);
        }
        if let Some(processes) = document.get_mut("process").and_then(Item::as_table_like_mut) {
            for (process, table) in processes.iter_mut() {
                maker.update(Some(process.get()), table);
            }
        }
        let mut paths = options.paths.clone();
        if document.is_empty() && paths.is_empty() {
            paths = maker.default_paths();
        }
        maker.add(&mut document, &paths);
        Ok(document.to_string())
    }
}

struct BudgetWriter<'s> {
    forest: Forest<'s>,
    headroom: f64,
}

impl BudgetWriter<'_> {
    /// Sets each limit of a table without a comparison or with `<=` to the reported amount plus headroom. `process` is
    /// the table's name; `None` for all processes.
    fn update(&self, process: Option<&str>, table: &mut Item) {
        let Some(table) = table.as_table_like_mut() else { return };
        for (path, item) in table.iter_mut() {
            let path = path.get().to_owned();
            match item {
                Item::Value(Value::Array(values)) => {
                    values.iter_mut().for_each(|value| self.update_value(process, &path, value));
                }
                Item::Value(value) => self.update_value(process, &path, value),
                _ => {}
            }
        }
    }

    fn update_value(&self, process: Option<&str>, path: &str, value: &mut Value) {
        let comparison = match &*value {
            Value::String(text) if text.value().trim_start().starts_with("<=") => "<= ",
            Value::String(text) if text.value().trim_start().starts_with(['<', '>', '=']) => return,
            _ => "",
        };
        let Some((amount, units)) = self.amount(process, path) else { return };
        let new = self.value(amount, units, comparison);
        let decor = value.decor().clone();
        *value = new;
        *value.decor_mut() = decor;
    }

    fn add(&self, document: &mut DocumentMut, paths: &[String]) {
        let missing: Vec<_> =
            paths.iter().filter_map(|path| Some((path, self.amount(None, path)?))).collect();
        if missing.is_empty() {
            return;
        }
        if !document.contains_key("budget") {
            let mut table = Table::new();
            if document.is_empty() {
                table.decor_mut().set_prefix(HEAD);
            }
            document.insert("budget", Item::Table(table));
        }
        let Some(table) = document.get_mut("budget").and_then(Item::as_table_like_mut) else { return };
        for (path, (amount, units)) in missing {
            if !table.contains_key(path) {
                table.insert(path, Item::Value(self.value(amount, units, "")));
            }
        }
    }

    fn amount(&self, process: Option<&str>, path: &str) -> Option<(i128, Units)> {
        Limit::on_path(process, path, "0").ok()?.amount(&self.forest)
    }

    /// Returns `explicit`, and each child that holds at least 1 % of it in any process.
    fn default_paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for process in self.forest.processes() {
            let Some(root) = process.node("explicit").filter(|root| !root.is_leaf()) else { continue };
            let large = |node: &TreeNode<'_, '_>| node.amount().saturating_mul(100) >= root.amount();
            paths.extend(root.children().filter(large).map(|node| first_two(node.path()).to_owned()));
            paths.push(root.path().to_owned());
        }
        paths.sort();
        paths.dedup();
        paths
    }

    /// Returns the limit for an amount: the amount plus headroom, rounded up to a few digits.
    fn value(&self, amount: i128, units: Units, comparison: &str) -> Value {
        let share = (self.headroom.clamp(0.0, MAX_HEADROOM) * 10_000.0).round() as i128;
        // At least 0, because the text of a limit with a sign means a limit on growth.
        let most = ceil(amount.saturating_mul(1_000_000 + share), 1_000_000).max(0);
        let text = match units {
            Units::Bytes => bytes(most),
            Units::Percentage => decimal(ceil(most, 10), 1) + "%",
            Units::Count | Units::CountCumulative if comparison.is_empty() => {
                return Value::from(i64::try_from(most).unwrap_or(i64::MAX));
            }
            Units::Count | Units::CountCumulative => most.to_string(),
        };
        Value::from(format!("{comparison}{text}"))
    }
}

/// Bytes in the largest unit that gives at least 1, rounded up to three digits or whole units.
fn bytes(amount: i128) -> String {
    let (unit, name) = match amount {
        0..0x400 => return format!("{amount} B"),
        0x400..0x10_0000 => (1 << 10, "KiB"),
        0x10_0000..0x4000_0000 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    let (decimals, scale) = match amount / unit {
        0..10 => (2, 100),
        10..100 => (1, 10),
        _ => (0, 1),
    };
    format!("{} {name}", decimal(ceil(amount.saturating_mul(scale), unit), decimals))
}

/// Inserts a decimal point before the last `decimals` digits of a number that is not negative.
fn decimal(number: i128, decimals: usize) -> String {
    let mut digits = format!("{number:0>width$}", width = decimals + 1);
    if decimals > 0 {
        digits.insert(digits.len() - decimals, '.');
    }
    digits
}

fn ceil(number: i128, divisor: i128) -> i128 {
    number.div_euclid(divisor) + i128::from(number.rem_euclid(divisor) > 0)
}

/// Returns the first two segments of a path. A child's path may be longer, because chains of nodes are merged.
fn first_two(path: &str) -> &str {
    path.match_indices('/').nth(1).map_or(path, |(end, _)| &path[..end])
}
