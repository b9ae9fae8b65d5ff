//! Rules for names that change from run to run (process ids, addresses, counts). The rules replace the changing parts
//! before two reports are compared.
//!
//! A rule is data: a pattern and a replacement. Firefox's rules are the default. A program adds its own rules with
//! [`normalize_names!`](memory_reporter::normalize_names), and files of its reports contain these rules. The caller of
//! a comparison can add more.

use std::borrow::Cow;

use memory_report::{Report, ReportSet, Warning, WarningKind};
use thiserror::Error;

use crate::pattern::{self, PatternSet, Regex, RegexBuilder};

/// A compiled pattern may use at most this many bytes, because patterns in files are not trusted.
const MAX_PATTERN_MEMORY: usize = 1 << 20;

/// The names that a rule applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NormalizeNames {
    /// Names of processes, and paths.
    #[default]
    All,
    /// Paths only.
    Paths,
    /// Names of processes, if exactly one of the two sets contains a match.
    OneSidedProcesses,
}

/// One rule: a regular expression, and the replacement of its matches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NormalizeRule {
    /// The pattern, in the syntax of the crate `regex`.
    pub pattern: Cow<'static, str>,
    /// The replacement. `$1` and `${name}` insert the match of a group, `$$` inserts a dollar sign.
    pub replacement: Cow<'static, str>,
    /// The names that the rule applies to. Default: all.
    pub names: NormalizeNames,
    /// The rule applies only to names that start with this text. Default: empty.
    pub within: Cow<'static, str>,
    /// Whether the rule replaces all matches (default), or only the first match in a name.
    pub every: bool,
}

impl NormalizeRule {
    /// Creates a rule that replaces all matches in all names.
    pub fn new(pattern: impl Into<Cow<'static, str>>, replacement: impl Into<Cow<'static, str>>) -> Self {
        let (pattern, replacement) = (pattern.into(), replacement.into());
        let (names, within) = (NormalizeNames::All, Cow::Borrowed(""));
        Self { pattern, replacement, names, within, every: true }
    }

    /// Parses `REGEX=>REPLACEMENT`.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no `=>`, or the text before it is not a regular expression.
    pub fn parse(text: &str) -> Result<Self, NormalizeError> {
        let (pattern, replacement) =
            text.split_once("=>").ok_or_else(|| NormalizeError { rule: text.to_owned(), source: None })?;
        let rule = Self::new(pattern.to_owned(), replacement.to_owned());
        CompiledRule::new(&rule).map(|_| rule)
    }
}

/// Firefox's rules, in its order.
fn firefox_rules() -> Vec<NormalizeRule> {
    use NormalizeNames::{All, OneSidedProcesses, Paths};
    vec![
        firefox(r"pid([ =]|: )[0-9]+", "pid${1}NNN", All, true),
        firefox(r"^(?s:webIsolated.*)$", "web (pid NNN)", OneSidedProcesses, false),
        firefox(r"\(tid=[0-9]+\)", "(tid=NNN)", Paths, false),
        firefox(r"#[0-9]+ \(tid=NNN\)", "#N (tid=NNN)", Paths, false),
        firefox(r"zone\(0x[0-9A-Fa-f]+\)/", "zone(0xNNN)/", Paths, false),
        firefox(r"/worker\((.+), 0x[0-9A-Fa-f]+\)/", "/worker(${1}, 0xNNN)/", Paths, false),
        firefox(
            r"^((?:explicit|event-counts)/window-objects/top\(.*, id=)[0-9]+\)",
            "${1}NNN)",
            Paths,
            false,
        ),
        firefox(
            r"moz-nullprincipal:\{.{8}-.{4}-.{4}-.{4}-.{12}\}",
            "moz-nullprincipal:{NNNNNNNN-NNNN-NNNN-NNNN-NNNNNNNNNNNN}",
            Paths,
            true,
        ),
        NormalizeRule {
            within: "address-space".into(),
            ..firefox(r"\(segments=[0-9]+\)", "(segments=NNNN)", Paths, true)
        },
        firefox(r"jar:file:\\\\\\.+\\omni.ja!", r"jar:file:\\\...\omni.ja!", Paths, false),
        firefox(r"source\(scripts=[0-9]+, ", "source(scripts=NNN, ", Paths, false),
    ]
}

fn firefox(
    pattern: &'static str,
    replacement: &'static str,
    names: NormalizeNames,
    every: bool,
) -> NormalizeRule {
    NormalizeRule { names, every, ..NormalizeRule::new(pattern, replacement) }
}

/// Options for comparing two sets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffOptions {
    /// The rules for names, in order. Default: Firefox's rules. The rules that the sets contain
    /// ([`ReportSet::name_patterns`]) are always applied after these rules.
    pub normalize: Vec<NormalizeRule>,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { normalize: firefox_rules() }
    }
}

impl DiffOptions {
    /// Options with Firefox's rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a rule.
    #[must_use]
    pub fn normalize(mut self, rule: NormalizeRule) -> Self {
        self.normalize.push(rule);
        self
    }
}

/// The error for an invalid rule.
#[derive(Debug, Error)]
#[error("not {}: {rule}", if .source.is_some() { "a regular expression" } else { "REGEX=>REPLACEMENT" })]
#[non_exhaustive]
pub struct NormalizeError {
    /// The rule, or its pattern.
    pub rule: String,
    source: Option<Box<pattern::Error>>,
}

/// The compiled rules for one set, or for two sets that are compared.
#[derive(Debug)]
pub(crate) struct Normalizer {
    paths: RuleSequence,
    processes: RuleSequence,
    /// Warnings about rules of the sets that are not regular expressions.
    warnings: Vec<Warning>,
}

impl Normalizer {
    /// Compiles the rules of `options`, then the rules of the sets.
    pub(crate) fn new(options: &DiffOptions, sets: &[&ReportSet]) -> Result<Self, NormalizeError> {
        let (mut paths, mut processes, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        for rule in &options.normalize {
            let compiled = CompiledRule::new(rule)?;
            match rule.names {
                NormalizeNames::All => {
                    paths.push(compiled.clone());
                    processes.push(compiled);
                }
                NormalizeNames::Paths => paths.push(compiled),
                NormalizeNames::OneSidedProcesses => {
                    let has = |set: &&&ReportSet| set.processes().any(|name| compiled.regex.is_match(name));
                    let some = sets.iter().filter(has).count();
                    if 0 < some && some < sets.len() {
                        processes.push(compiled);
                    }
                }
            }
        }
        let mut carried: Vec<_> = sets.iter().flat_map(|set| set.name_patterns()).collect();
        carried.sort();
        carried.dedup();
        for pattern in carried {
            match CompiledRule::new(&NormalizeRule::new(pattern.pattern.clone(), pattern.replacement.clone()))
            {
                Ok(compiled) => {
                    paths.push(compiled.clone());
                    processes.push(compiled);
                }
                Err(error) => {
                    warnings.push(Warning::new(
                        WarningKind::Unavailable,
                        "normalizeNames",
                        error.to_string(),
                    ));
                }
            }
        }
        Ok(Self { paths: RuleSequence::new(paths), processes: RuleSequence::new(processes), warnings })
    }

    pub(crate) fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    pub(crate) fn path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        self.paths.apply(path)
    }

    pub(crate) fn process<'p>(&self, process: &'p str) -> Cow<'p, str> {
        self.processes.apply(process)
    }

    /// Returns the same reports with normalized names.
    pub(crate) fn normalized(&self, set: &ReportSet) -> ReportSet {
        let mut to = ReportSet::new();
        to.set_usable_size_known(set.usable_size_known());
        to.set_partial(set.is_partial());
        for report in set.iter() {
            let (process, path) = (self.process(report.process), self.path(report.path));
            to.push(Report { process: &process, path: &path, ..report });
        }
        to
    }
}

#[derive(Clone, Debug)]
struct CompiledRule {
    regex: Regex,
    replacement: String,
    within: String,
    every: bool,
}

impl CompiledRule {
    fn new(rule: &NormalizeRule) -> Result<Self, NormalizeError> {
        let source = |error| Some(Box::new(error));
        let regex = RegexBuilder::new(&rule.pattern)
            .size_limit(MAX_PATTERN_MEMORY)
            .build()
            .map_err(|error| NormalizeError { rule: rule.pattern.clone().into(), source: source(error) })?;
        let (replacement, within) = (rule.replacement.clone().into(), rule.within.clone().into());
        Ok(Self { regex, replacement, within, every: rule.every })
    }

    /// Returns an upper bound of the length of a name after the replacement, in bytes.
    fn most_bytes(&self, name: &str) -> usize {
        let matches = if self.every { name.len() + 1 } else { 1 };
        let references = self.replacement.matches('$').count();
        let replaced = matches.saturating_mul(self.replacement.len());
        name.len().saturating_mul(references + 1).saturating_add(replaced)
    }
}

/// Rules that are applied in sequence.
#[derive(Debug)]
struct RuleSequence {
    rules: Vec<CompiledRule>,
    /// All patterns in one set, for speed: most names match no pattern, and one test of the set shows this.
    any: PatternSet,
}

/// A name may grow to at most four times its length plus this many bytes. A rule that exceeds this limit is skipped,
/// because rules in files are not trusted.
const MAX_GROWTH: usize = 256;
/// A replacement that could need more bytes than this is skipped.
const MAX_NAME: usize = 16 << 20;

impl RuleSequence {
    fn new(rules: Vec<CompiledRule>) -> Self {
        let any = PatternSet::new(rules.iter().map(|rule| &rule.regex));
        Self { rules, any }
    }

    fn apply<'n>(&self, name: &'n str) -> Cow<'n, str> {
        let mut name = Cow::Borrowed(name);
        if !self.any.may_match(&name) {
            return name;
        }
        let most_bytes = 4 * name.len() + MAX_GROWTH;
        for rule in &self.rules {
            if name.starts_with(&rule.within) && rule.most_bytes(&name) <= MAX_NAME {
                let most = if rule.every { 0 } else { 1 };
                match rule.regex.replacen(&name, most, &rule.replacement) {
                    Cow::Owned(new) if new.len() <= most_bytes => name = Cow::Owned(new),
                    _ => {}
                }
            }
        }
        name
    }
}
