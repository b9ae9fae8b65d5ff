//! Tables: columns of numbers, then a name.

use std::fmt::Write as _;

/// The most spaces before a name. Without this limit, the text of a deep tree would be mostly spaces.
const MAX_INDENT: usize = 400;

/// Rows of right-aligned numbers and a name, under headings.
pub(super) struct NumberTable<const N: usize> {
    headings: [&'static str; N],
    last: &'static str,
    rows: Vec<([String; N], String)>,
}

impl<const N: usize> NumberTable<N> {
    pub(super) fn new(headings: [&'static str; N], last: &'static str) -> Self {
        Self { headings, last, rows: Vec::new() }
    }

    /// Adds a row. Escapes the name, so that it can neither break the line nor control the terminal.
    pub(super) fn row(&mut self, numbers: [String; N], indent: usize, name: &str) {
        let indent = indent.min(MAX_INDENT);
        self.rows.push((numbers, format!("{:indent$}{}", "", about_memory::escape(name))));
    }

    pub(super) fn to_text(&self) -> String {
        let mut widths = self.headings.map(str::len);
        for (numbers, _) in &self.rows {
            for (width, number) in widths.iter_mut().zip(numbers) {
                *width = number.len().max(*width);
            }
        }
        let mut text = String::new();
        let headings = (&self.headings.map(str::to_owned), self.last);
        for (numbers, name) in
            std::iter::once(headings).chain(self.rows.iter().map(|(numbers, name)| (numbers, name.as_str())))
        {
            for (number, width) in numbers.iter().zip(widths) {
                let _ = write!(text, "{number:>width$}  ");
            }
            text.push_str(name);
            text.push('\n');
        }
        text
    }
}

/// Formats a part of a whole in percent, with one decimal.
pub(super) fn percent(part: i128, whole: i128) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => format!("{:.1}%", part as f64 * 100.0 / whole as f64),
    }
}
