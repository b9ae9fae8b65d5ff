//! The screen of running processes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dmd_analyze::program::bytes;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::super::line::line;
use super::ask::{ListedProcess, ScreenRequest};
use super::cursor::{RowCursor, head};

/// A sparkline shows this many of the latest amounts.
const LATEST: usize = 16;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const NOBODY: [&str; 3] = [
    "No process listens.",
    "Start a program with ABOUT_MEMORY=listen, or call memory_reporter::listen() in it.",
    "Or open a file: about-memory top FILE",
];

#[derive(Debug, Default)]
pub(super) struct ProcessScreen {
    rows: Vec<ListedProcess>,
    latest: BTreeMap<u32, VecDeque<u64>>,
    marked: BTreeSet<u32>,
    cursor: RowCursor,
}

impl ProcessScreen {
    pub(super) const KEYS: &'static str =
        "Enter open, Space mark, D diff, m minimize, s save, d stacks, S heap, t types";

    pub(super) fn told(&mut self, rows: Vec<ListedProcess>) {
        let is_there = |pid: &u32| rows.iter().any(|row| row.pid == *pid);
        self.latest.retain(|pid, _| is_there(pid));
        self.marked.retain(is_there);
        for row in &rows {
            let latest = self.latest.entry(row.pid).or_default();
            latest.extend(row.resident);
            if latest.len() > LATEST {
                latest.pop_front();
            }
        }
        self.rows = rows;
    }

    /// Returns the request of a key, or an error text if the request is not possible.
    pub(super) fn press(&mut self, key: KeyCode) -> Result<Option<ScreenRequest>, String> {
        if self.cursor.press(key, self.rows.len()) {
            return Ok(None);
        }
        let Some(row) = self.rows.get(self.cursor.at) else { return Ok(None) };
        let can = |request: &str| match row.requests.iter().any(|known| known == request) {
            true => Ok(()),
            false => Err(format!("process {} does not answer the request {request}", row.pid)),
        };
        Ok(match key {
            KeyCode::Enter if self.marked.is_empty() => Some(ScreenRequest::Measure(vec![row.pid])),
            KeyCode::Enter => Some(ScreenRequest::Measure(self.marked.iter().copied().collect())),
            // Every listening process answers `minimize`, so it is not listed as a request.
            KeyCode::Char('m') => Some(ScreenRequest::Minimize(row.pid)),
            KeyCode::Char('s') => Some(ScreenRequest::Save(row.pid)),
            KeyCode::Char('d') => can("dmd-dump").map(|()| Some(ScreenRequest::Stacks(row.pid)))?,
            KeyCode::Char('S') => {
                can("heap-snapshot").map(|()| Some(ScreenRequest::Snapshot(row.pid, row.name.clone())))?
            }
            KeyCode::Char('t') => {
                can("dmd-copy").map(|()| Some(ScreenRequest::Types(row.pid, row.name.clone())))?
            }
            KeyCode::Char(' ') => {
                if !self.marked.remove(&row.pid) {
                    self.marked.insert(row.pid);
                }
                None
            }
            KeyCode::Char('D') => {
                let marked: Vec<u32> = self.marked.iter().copied().collect();
                match marked.as_slice() {
                    [first, second] => Some(ScreenRequest::Diff([*first, *second])),
                    _ => return Err("mark two processes with Space first".to_owned()),
                }
            }
            _ => None,
        })
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let [heads, rows] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
        frame.render_widget(
            head(format!("  {:>8} {:>10} {:>10} {LATELY:<LATEST$} PROCESS", "PID", "RESIDENT", "HEAP")),
            heads,
        );
        if self.rows.is_empty() {
            let lines: Vec<_> = NOBODY.into_iter().map(line).collect();
            return frame.render_widget(ratatui::widgets::Paragraph::new(lines), rows);
        }
        let window = self.cursor.window(rows.height, self.rows.len());
        let lines: Vec<_> = self.rows[window].iter().map(|row| self.line(row)).collect();
        self.cursor.draw(frame, rows, lines);
    }

    fn line(&self, row: &ListedProcess) -> Line<'static> {
        let amount = |amount: Option<u64>| amount.map(|amount| bytes(amount.into())).unwrap_or_default();
        let mark = if self.marked.contains(&row.pid) { '*' } else { ' ' };
        let name = row.error.as_ref().unwrap_or(&row.name);
        let (resident, heap) = (amount(row.resident), amount(row.heap));
        let lately = self.latest.get(&row.pid).map(sparkline).unwrap_or_default();
        line(&format!("{mark} {:>8} {resident:>10} {heap:>10} {lately:>LATEST$} {name}", row.pid))
    }
}

const LATELY: &str = "LATELY";

/// Draws the amounts as bars relative to the largest amount.
fn sparkline(latest: &VecDeque<u64>) -> String {
    let most = latest.iter().copied().max().unwrap_or_default().max(1);
    let bar = |amount: &u64| BARS[usize::try_from(amount.saturating_mul(7) / most).unwrap_or(7)];
    latest.iter().map(bar).collect()
}
