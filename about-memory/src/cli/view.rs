//! Options of the commands that show trees.

use about_memory::{ByteUnits, EntrySort, PathFilter, ReportText};
use clap::{Args, ValueEnum};

use super::Failure;

/// The percentage below which entries are grouped, if no option sets it.
const THRESHOLD: f64 = 1.0;

#[derive(Args, Clone, Debug)]
pub(crate) struct TreeView {
    /// Show everything in full. Amounts are exact, and small entries are shown, too. For a program with
    /// memory-reporter, `show` also prints the descriptions of reports.
    #[arg(long, short)]
    verbose: bool,
    /// Show only entries that contain this text. An entry is the path of a report; for dumps and recordings in `diff`,
    /// it is an allocation stack.
    #[arg(long, short, value_name = "TEXT")]
    filter: Option<String>,
    /// Treat the filter as a regular expression.
    #[arg(long, requires = "filter")]
    regex: bool,
    /// Show only processes whose name contains this text.
    #[arg(long, value_name = "NAME")]
    process: Option<String>,
    /// Show at most this many levels. The root of each tree is level 0.
    #[arg(long, value_name = "LEVELS")]
    depth: Option<usize>,
    /// Leave out entries below this percentage of their tree. A line `(N tiny)` shows their sum. [default: 1]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    threshold: Option<f64>,
    /// The order of entries. [default: amount]
    #[arg(long, value_name = "ORDER")]
    sort: Option<SortOrder>,
    /// The unit of bytes. [default: mb, or b with --verbose]
    #[arg(long, value_name = "UNITS")]
    units: Option<UnitsName>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum SortOrder {
    /// The largest first.
    #[default]
    Amount,
    /// By name.
    Name,
}

impl SortOrder {
    fn sort(self) -> EntrySort {
        match self {
            Self::Amount => EntrySort::Amount,
            Self::Name => EntrySort::Name,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UnitsName {
    /// Each amount in the largest of the units B, KiB, MiB and GiB that gives at least 1.
    Auto,
    /// MiB, called MB, as Firefox does.
    Mb,
    /// Bytes.
    B,
    /// 1024 bytes.
    Kib,
    /// 1024 KiB.
    Mib,
    /// 1024 MiB.
    Gib,
}

impl UnitsName {
    pub(crate) fn units(self) -> ByteUnits {
        match self {
            Self::Auto => ByteUnits::Auto,
            Self::Mb => ByteUnits::Mb,
            Self::B => ByteUnits::B,
            Self::Kib => ByteUnits::KiB,
            Self::Mib => ByteUnits::MiB,
            Self::Gib => ByteUnits::GiB,
        }
    }
}

/// Parses a percentage.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("not a percentage".to_owned()),
    }
}

impl TreeView {
    pub(crate) fn filter(&self) -> Result<Option<PathFilter>, Failure> {
        match &self.filter {
            Some(pattern) if self.regex => {
                PathFilter::regex(pattern).map(Some).map_err(|error| Failure::Usage(error.to_string()))
            }
            text => Ok(text.as_ref().map(PathFilter::substring)),
        }
    }

    pub(crate) fn apply<'a>(&self, text: ReportText<'a>, filter: Option<PathFilter>) -> ReportText<'a> {
        let mut text =
            text.verbose(self.verbose).threshold(self.threshold()).sort(self.sort.unwrap_or_default().sort());
        if let Some(levels) = self.depth {
            text = text.depth(u32::try_from(levels).unwrap_or(u32::MAX));
        }
        if let Some(process) = &self.process {
            text = text.process(process);
        }
        if let Some(units) = self.units {
            text = text.units(units.units());
        }
        match filter {
            Some(filter) => text.filter(filter),
            None => text,
        }
    }

    /// Returns the text of the filter.
    pub(crate) fn filter_text(&self) -> Option<&str> {
        self.filter.as_deref()
    }

    fn threshold(&self) -> f64 {
        self.threshold.unwrap_or(THRESHOLD)
    }

    /// Returns the names of the options that were given.
    pub(crate) fn used(&self) -> impl Iterator<Item = &'static str> + use<> {
        let used = [
            (self.verbose, "--verbose"),
            (self.filter.is_some(), "--filter"),
            (self.process.is_some(), "--process"),
            (self.depth.is_some(), "--depth"),
            (self.threshold.is_some(), "--threshold"),
            (self.sort.is_some(), "--sort"),
            (self.units.is_some(), "--units"),
            (self.regex, "--regex"),
        ];
        used.into_iter().filter_map(|(used, name)| used.then_some(name))
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    pub(crate) fn shows_process(&self, name: &str) -> bool {
        self.process.as_ref().is_none_or(|part| name.contains(part.as_str()))
    }
}
