//! The text of a baseline: read with the place of each fault, and written.

use core::fmt;
use std::collections::BTreeMap;

use crate::figure::HeapFigure;

/// The first line of a file.
const HEAD: &str = "memory-heap-test 1";

/// The figures that a file contains for each scope. Frees follow from the others; usable bytes depend on the allocator.
pub(crate) const FIGURES: [HeapFigure; 6] = [
    HeapFigure::Allocs,
    HeapFigure::Reallocs,
    HeapFigure::Bytes,
    HeapFigure::Peak,
    HeapFigure::RetainedBlocks,
    HeapFigure::Retained,
];

/// The figures of scopes by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BaselineText(pub(crate) BTreeMap<String, BTreeMap<HeapFigure, u64>>);

/// A fault of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaselineFault {
    /// From 1.
    line: usize,
    reason: String,
}

impl fmt::Display for BaselineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl BaselineText {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BaselineFault> {
        let mut baseline = Self::default();
        let mut lines = 0;
        for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            lines = index + 1;
            let parsed = baseline.read_line(index, line);
            parsed.map_err(|reason| BaselineFault { line: lines, reason })?;
        }
        if lines == 0 {
            return Err(BaselineFault {
                line: 1,
                reason: format!("the file is empty; it starts with `{HEAD}`"),
            });
        }
        for (scope, figures) in &baseline.0 {
            if let Some(missing) = FIGURES.iter().find(|figure| !figures.contains_key(figure)) {
                let reason = format!("`{}` of `{scope}` is missing", missing.name());
                return Err(BaselineFault { line: lines, reason });
            }
        }
        Ok(baseline)
    }

    fn read_line(&mut self, index: usize, line: &[u8]) -> Result<(), String> {
        if index == 0 && line.starts_with(b"\xef\xbb\xbf") {
            return Err("the file starts with a byte order mark; save it as UTF-8 without a mark".to_owned());
        }
        if ["<<<<<<<", "=======", ">>>>>>>", "|||||||"].iter().any(|mark| line.starts_with(mark.as_bytes())) {
            return Err("this is a merge conflict; resolve it".to_owned());
        }
        if line.ends_with(b"\r\n") {
            return Err(
                "the line ends with CR LF; save the file with LF (in .gitattributes: `*.txt eol=lf`)"
                    .to_owned(),
            );
        }
        let Some(line) = line.strip_suffix(b"\n") else {
            // A cut number could not be detected otherwise.
            return Err("the line does not end with a line feed, so it may be cut".to_owned());
        };
        let line = str::from_utf8(line).map_err(|_| "the line is not UTF-8".to_owned())?;
        if index == 0 {
            return match line.strip_prefix("memory-heap-test ") {
                Some(_) if line == HEAD => Ok(()),
                Some(version) => Err(format!("unknown version `{version}`; this version reads `{HEAD}`")),
                None => Err(format!("the first line is `{line}` instead of `{HEAD}`")),
            };
        }
        let mut words = line.splitn(3, ' ');
        let (Some(name), Some(number), Some(scope)) = (words.next(), words.next(), words.next()) else {
            return Err(format!("`{line}` is not a figure, a number and the name of a scope"));
        };
        let Some(figure) = HeapFigure::ALL.into_iter().find(|figure| figure.name() == name) else {
            // A later version may have more figures.
            return Ok(());
        };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("`{number}` is not a number of decimal digits"));
        }
        let amount = number.parse().map_err(|_| format!("`{number}` exceeds 64 bits"))?;
        match self.0.entry(scope.to_owned()).or_default().insert(figure, amount) {
            None => Ok(()),
            Some(_) => Err(format!("`{name}` of `{scope}` occurs twice")),
        }
    }
}

impl fmt::Display for BaselineText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}")?;
        for (scope, figures) in &self.0 {
            for (figure, amount) in figures {
                writeln!(f, "{} {amount} {scope}", figure.name())?;
            }
        }
        Ok(())
    }
}
