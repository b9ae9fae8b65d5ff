//! Small charts made of block characters.

use super::line::bytes;
use super::overview::seconds;

/// Bars with heights from one eighth of a line to a whole line.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Merges neighboring amounts into at most `most` columns. A column has the maximum of its amounts.
fn columns(amounts: &[u64], most: usize) -> Vec<u64> {
    let count = amounts.len().min(most);
    let start = |column: usize| column * amounts.len() / count.max(1);
    (0..count)
        .map(|column| amounts[start(column)..start(column + 1)].iter().copied().max().unwrap_or_default())
        .collect()
}

/// The height of an amount in eighths of a line, in a chart of `lines` lines. At least 1 if the amount is not 0.
fn eighths(amount: u64, highest: u64, lines: usize) -> usize {
    let all = 8 * lines as u128;
    let part = (u128::from(amount) * all).div_ceil(u128::from(highest).max(1));
    part.min(all) as usize
}

/// Amounts as one line of bars, from 0 to the highest amount. A space means 0.
pub(super) fn bars(amounts: &[u64], most: usize) -> String {
    let columns = columns(amounts, most);
    let highest = columns.iter().copied().max().unwrap_or_default();
    let bar = |amount: &u64| match eighths(*amount, highest, 1) {
        0 => ' ',
        eighths => BARS[eighths - 1],
    };
    columns.iter().map(bar).collect()
}

/// Bytes over time as lines of a chart, with both axes. `length` is the time in seconds.
pub(super) fn chart(amounts: &[u64], lines: usize, width: usize, length: f64) -> Vec<String> {
    const LABEL: usize = 11;
    let columns = columns(amounts, width.saturating_sub(LABEL + 2));
    let highest = columns.iter().copied().max().unwrap_or_default();
    let line = |line: usize| {
        // Lines count from the top.
        let below = 8 * (lines - 1 - line);
        let label = if line == 0 { bytes(highest.into()) } else { String::new() };
        let cell = |amount: &u64| match eighths(*amount, highest, lines).saturating_sub(below).min(8) {
            0 => ' ',
            eighths => BARS[eighths - 1],
        };
        let cells: String = columns.iter().map(cell).collect();
        format!("{label:>LABEL$} ┤{}", cells.trim_end())
    };
    let mut all: Vec<String> = (0..lines).map(line).collect();
    all.push(format!("{:>LABEL$} └{}", bytes(0), "─".repeat(columns.len())));
    let end = seconds(length);
    let gap = columns.len().saturating_sub("0 s".len() + end.len());
    all.push(format!("{:LABEL$}  0 s{:gap$}{end}", "", ""));
    all
}
