//! The key `normalizeNames`: an array of pairs. Each pair is a pattern of names and its replacement. Firefox ignores
//! this key.

use crate::name_pattern::NamePattern;
use crate::report_set::ReportSet;
use crate::warning::{Warning, WarningKind};

use crate::reader::{ScanStop, TextScan};

pub(super) const KEY: &str = "normalizeNames";
/// The maximum number of patterns in a file, and the maximum length of a pattern or replacement in bytes. The limits
/// bound the work of a diff, which tries each pattern on each name.
const MAX_COUNT: usize = 100;
const MAX_LEN: usize = 1000;

/// The patterns of a file.
#[derive(Default)]
pub(super) struct NamePatterns {
    good: Vec<NamePattern>,
    bad: usize,
}

impl NamePatterns {
    /// Adds an element of the array; `None` is an element that is not a pattern.
    pub(super) fn add(&mut self, element: Option<NamePattern>) {
        match element {
            Some(pattern) if self.good.len() < MAX_COUNT => self.good.push(pattern),
            _ => self.bad += 1,
        }
    }

    pub(super) fn add_to(self, set: &mut ReportSet) {
        set.add_name_patterns(self.good);
        if self.bad > 0 {
            set.warn(Warning::new(
                WarningKind::Unavailable,
                KEY,
                format!("{} patterns are ignored: wrong, too long or too many", self.bad),
            ));
        }
    }
}

/// Parses one pair of strings; `None` for any other value.
pub(super) fn element(scan: &mut TextScan<'_>, depth: u32) -> Result<Option<NamePattern>, ScanStop> {
    if scan.peek()? != b'[' {
        scan.skip(depth)?;
        return Ok(None);
    }
    scan.expect(b'[', "`[`")?;
    let mut texts = Vec::new();
    let mut good = true;
    if !scan.eat(b']')? {
        loop {
            if scan.peek()? == b'"' {
                let text = scan.string()?;
                good &= text.len() <= MAX_LEN && texts.len() < 2;
                if good {
                    texts.push(text.into_owned());
                }
            } else {
                scan.skip(depth + 1)?;
                good = false;
            }
            if !scan.eat(b',')? {
                scan.expect(b']', "`,` or `]`")?;
                break;
            }
        }
    }
    Ok(<[String; 2]>::try_from(texts)
        .ok()
        .filter(|_| good)
        .map(|[pattern, replacement]| NamePattern { pattern, replacement }))
}
