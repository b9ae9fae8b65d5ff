//! Parses the document around the reports: version, `hasMozMallocUsableSize`, the crash-dump wrapper.
//!
//! As with `JSON.parse`, the last of several equal keys wins, and keys may come in any order.

use std::io::Read;

use crate::error::ReadError;
use crate::reader::{ScanStop, TextScan, TextSource, TextWindow, ValueSkip};
use crate::report_set::ReportSet;
use crate::warning::{Warning, WarningKind};

use super::ReadOptions;
use super::name_patterns::{self, NamePatterns};
use super::report;
use super::warning;

/// At most this many dropped reports have their own warnings, and at most this many faulty reports that are kept. One
/// warning counts all other dropped reports, and one warning all other kept reports.
const MAX_WARNINGS: usize = 1000;
/// The error shows an unsupported version as written, up to this many characters.
const MAX_VERSION: usize = 40;

pub(super) fn document<R: Read>(
    source: TextSource<R>,
    options: &ReadOptions,
) -> Result<ReportSet, ReadError> {
    let window = TextWindow::new(source, options.max_bytes);
    let mut reader = DocumentReader { window, options, reports_seen: 0 };
    let found = reader.top()?;
    found.check()
}

/// The members that the reader has found in the document, or in the document inside `memory_report`.
#[derive(Default)]
struct DocumentMembers {
    version: Option<String>,
    usable_size: Option<Option<bool>>,
    reports: Option<Option<ReportSet>>,
    warnings: Vec<Warning>,
    name_patterns: NamePatterns,
}

impl DocumentMembers {
    fn check(self) -> Result<ReportSet, ReadError> {
        let version = self.version.ok_or(ReadError::Missing("version"))?;
        if version.parse::<f64>() != Ok(1.0) {
            return Err(ReadError::Version(version));
        }
        const USABLE_SIZE: &str = "hasMozMallocUsableSize";
        let usable_size = self
            .usable_size
            .ok_or(ReadError::Missing(USABLE_SIZE))?
            .ok_or(ReadError::WrongType(USABLE_SIZE, "true or false"))?;
        let mut set = self
            .reports
            .ok_or(ReadError::Missing("reports"))?
            .ok_or(ReadError::WrongType("reports", "an array"))?;
        set.set_usable_size_known(usable_size);
        for warning in self.warnings {
            set.warn(warning);
        }
        self.name_patterns.add_to(&mut set);
        Ok(set)
    }
}

/// The value of `memory_report`, if the document has that key.
enum WrappedDocument {
    No,
    Object(Box<DocumentMembers>),
    Other,
}

struct DocumentReader<'o, R: Read> {
    window: TextWindow<R>,
    options: &'o ReadOptions,
    reports_seen: usize,
}

impl<R: Read> DocumentReader<'_, R> {
    fn top(&mut self) -> Result<DocumentMembers, ReadError> {
        self.blanks()?;
        let mut wrapped = WrappedDocument::No;
        if !self.window.take(|scan| Ok(scan.peek()? == b'{'))? {
            self.skip(0)?;
            self.end()?;
            return Err(ReadError::NotAnObject);
        }
        let found = self.object(1, &mut |reader| {
            wrapped = if reader.window.take(|scan| Ok(scan.peek()? == b'{'))? {
                WrappedDocument::Object(Box::new(reader.object(2, &mut |reader| reader.skip(2))?))
            } else {
                reader.skip(1)?;
                WrappedDocument::Other
            };
            Ok(())
        })?;
        self.end()?;
        match wrapped {
            WrappedDocument::No => Ok(found),
            WrappedDocument::Object(found) => Ok(*found),
            WrappedDocument::Other => Err(ReadError::WrongType("memory_report", "an object")),
        }
    }

    /// Parses the document, or the document inside `memory_report`; its members are `depth` levels deep.
    fn object(
        &mut self,
        depth: u32,
        memory_report: &mut dyn FnMut(&mut Self) -> Result<(), ReadError>,
    ) -> Result<DocumentMembers, ReadError> {
        let mut found = DocumentMembers::default();
        self.window.take(|scan| scan.expect(b'{', "`{`"))?;
        if self.blanks_then(b'}')? {
            return Ok(found);
        }
        loop {
            self.blanks()?;
            let key = self.window.take(|scan| {
                let key = scan.string()?;
                scan.expect(b':', "`:`")?;
                Ok(DocumentKey::named(&key))
            })?;
            self.blanks()?;
            match key {
                DocumentKey::Version => found.version = Some(self.written(depth)?),
                DocumentKey::UsableSize => {
                    found.usable_size = Some(match &*self.written(depth)? {
                        "true" => Some(true),
                        "false" => Some(false),
                        _ => None,
                    });
                }
                DocumentKey::Reports => {
                    found.reports = None;
                    found.reports = Some(self.reports(depth)?);
                }
                DocumentKey::Warnings => found.warnings = self.warnings(depth)?,
                DocumentKey::NamePatterns => found.name_patterns = self.name_patterns(depth)?,
                DocumentKey::MemoryReport => memory_report(self)?,
                DocumentKey::Unknown => self.skip(depth)?,
            }
            if !self.blanks_then(b',')? {
                self.window.take(|scan| scan.expect(b'}', "`,` or `}`"))?;
                return Ok(found);
            }
        }
    }

    /// Returns the text of a small value, as written.
    fn written(&mut self, depth: u32) -> Result<String, ReadError> {
        self.window.take(|scan| {
            scan.peek()?;
            let start = scan.at();
            scan.skip(depth)?;
            Ok(scan.since(start).chars().take(MAX_VERSION).collect())
        })
    }

    /// Parses the array of reports; `None` for a value of another type.
    fn reports(&mut self, depth: u32) -> Result<Option<ReportSet>, ReadError> {
        if !self.window.take(|scan| Ok(scan.peek()? == b'['))? {
            self.skip(depth)?;
            return Ok(None);
        }
        self.window.take(|scan| scan.expect(b'[', "`[`"))?;
        let mut set = ReportSet::new();
        // The number of faulty reports that are kept, and the number of dropped reports.
        let mut bad = [0; 2];
        if self.blanks_then(b']')? {
            return Ok(Some(set));
        }
        for index in 0.. {
            self.blanks()?;
            self.reports_seen += 1;
            if self.reports_seen > self.options.max_reports {
                return Err(ReadError::TooManyReports(self.options.max_reports));
            }
            self.window.take(|scan| {
                report::element(scan, depth + 1, &mut |report, fault| {
                    if let Some((field, message)) = fault {
                        let kept = report.is_some();
                        let bad = &mut bad[usize::from(!kept)];
                        *bad += 1;
                        if *bad <= MAX_WARNINGS {
                            let dot = if field.is_empty() { "" } else { "." };
                            set.warn(Warning::new(
                                if kept { WarningKind::ReportKept } else { WarningKind::ReportDropped },
                                format!("reports[{index}]{dot}{field}"),
                                message.into_owned(),
                            ));
                        }
                    }
                    if let Some(report) = report {
                        set.push(report);
                    }
                })
            })?;
            if !self.blanks_then(b',')? {
                self.window.take(|scan| scan.expect(b']', "`,` or `]`"))?;
                break;
            }
        }
        let [kept, dropped] = bad.map(|bad| bad.saturating_sub(MAX_WARNINGS));
        for (kind, more, what) in [
            (WarningKind::ReportDropped, dropped, "are wrong"),
            (WarningKind::ReportKept, kept, "are kept with faults"),
        ] {
            if more > 0 {
                let message = format!("{more} more {what}");
                set.warn(Warning::new(kind, "reports", message));
            }
        }
        Ok(Some(set))
    }

    /// Parses the warnings in the file and keeps at most [`MAX_WARNINGS`]. Ignores an element that is not a warning.
    fn warnings(&mut self, depth: u32) -> Result<Vec<Warning>, ReadError> {
        let mut warnings = Vec::new();
        self.array(depth, warning::element, |warning| {
            if warnings.len() < MAX_WARNINGS {
                warnings.extend(warning);
            }
        })?;
        Ok(warnings)
    }

    /// Skips any number of blanks.
    fn blanks(&mut self) -> Result<(), ReadError> {
        self.window.stream(|scan| scan.at_end().map(drop))
    }

    /// Parses the array of name patterns and their replacements.
    fn name_patterns(&mut self, depth: u32) -> Result<NamePatterns, ReadError> {
        let mut found = NamePatterns::default();
        if !self.array(depth, name_patterns::element, |pattern| found.add(pattern))? {
            found.add(None);
        }
        Ok(found)
    }

    /// Passes each element of an array to `add`. Skips a value of another type, and returns `false`.
    fn array<T>(
        &mut self,
        depth: u32,
        element: fn(&mut TextScan<'_>, u32) -> Result<T, ScanStop>,
        mut add: impl FnMut(T),
    ) -> Result<bool, ReadError> {
        if !self.window.take(|scan| Ok(scan.peek()? == b'['))? {
            self.skip(depth)?;
            return Ok(false);
        }
        self.window.take(|scan| scan.expect(b'[', "`[`"))?;
        if self.blanks_then(b']')? {
            return Ok(true);
        }
        loop {
            self.blanks()?;
            add(self.window.take(|scan| element(scan, depth + 1))?);
            if !self.blanks_then(b',')? {
                self.window.take(|scan| scan.expect(b']', "`,` or `]`"))?;
                return Ok(true);
            }
        }
    }

    /// Skips blanks, and then `byte` if it is next. Returns whether it skipped `byte`.
    fn blanks_then(&mut self, byte: u8) -> Result<bool, ReadError> {
        self.blanks()?;
        self.window.take(|scan| scan.eat(byte))
    }

    /// Skips a value of any size.
    fn skip(&mut self, depth: u32) -> Result<(), ReadError> {
        let mut skip = ValueSkip::new(depth);
        self.window.stream(|scan| skip.run(scan))
    }

    fn end(&mut self) -> Result<(), ReadError> {
        self.blanks()?;
        self.window.take(|scan| if scan.at_end()? { Ok(()) } else { scan.expected("the end") })
    }
}

enum DocumentKey {
    Version,
    UsableSize,
    Reports,
    NamePatterns,
    MemoryReport,
    Warnings,
    Unknown,
}

impl DocumentKey {
    fn named(name: &str) -> Self {
        match name {
            "version" => Self::Version,
            "hasMozMallocUsableSize" => Self::UsableSize,
            "reports" => Self::Reports,
            name_patterns::KEY => Self::NamePatterns,
            "memory_report" => Self::MemoryReport,
            warning::KEY => Self::Warnings,
            _ => Self::Unknown,
        }
    }
}
