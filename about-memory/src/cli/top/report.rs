//! The screen of a report: trees to open and close, of a live process or of a file. It can also show the changes since
//! a mark.

use std::cmp::Reverse;
use std::collections::HashSet;

use dmd_analyze::program::bytes;
use memory_report::tree::{Forest, TreeNode};
use memory_report::{ReportSet, Units};
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use super::super::line::styled;
use super::ask::ScreenRequest;
use super::cursor::{RowCursor, count, head, share};

/// A line: a process, or an entry of one of its trees.
#[derive(Debug)]
struct TreeRow {
    depth: usize,
    name: String,
    /// Identifies the entry, so that the entry stays open after an update.
    key: String,
    /// `None` for a process.
    amount: Option<(i128, Units)>,
    /// The amount of the tree's root.
    whole: i128,
    has_children: bool,
}

#[derive(Debug, Default)]
pub(super) struct ReportScreen {
    /// The processes that the user requested last; empty for a difference. Answers to earlier requests are ignored.
    /// `None` accepts every answer.
    wanted: Option<Vec<u32>>,
    /// The processes that are measured repeatedly; empty for a file or a difference.
    pids: Vec<u32>,
    title: String,
    set: Option<ReportSet>,
    /// The report at the mark. Changes since this report are shown.
    mark: Option<ReportSet>,
    /// The entries that the user opened or closed. Without a filter, processes and roots of trees start open, and all
    /// other entries start closed. With a filter, all entries start open.
    toggled: HashSet<String>,
    filter: String,
    is_typing: bool,
    by_name: bool,
    verbose: bool,
    is_paused: bool,
    rows: Vec<TreeRow>,
    cursor: RowCursor,
}

impl ReportScreen {
    pub(super) const KEYS: &'static str =
        "←→ close, open, / filter, n N next, t sort, v bytes, Space pause, b mark, x save";

    /// Stores the user's request for these processes. An empty list means a difference.
    pub(super) fn want(&mut self, pids: Vec<u32>) {
        self.wanted = Some(pids);
    }

    /// Handles the failure of a request for these processes; without processes, for a difference. If the user waits
    /// for this request, the visible report is updated again.
    pub(super) fn told_failure(&mut self, pids: &[u32]) {
        if self.wants(pids) {
            self.wanted = None;
        }
    }

    fn wants(&self, pids: &[u32]) -> bool {
        self.wanted.as_deref().is_none_or(|wanted| wanted == pids)
    }

    /// Shows another report.
    pub(super) fn open(&mut self, title: String, set: ReportSet, pids: Vec<u32>) {
        let wanted = self.wanted.take();
        *self = Self { wanted, title, set: Some(set), pids, ..Self::default() };
        self.arrange();
    }

    /// Shows a difference, if the user still waits for it.
    pub(super) fn told_difference(&mut self, title: String, set: ReportSet) {
        if self.wants(&[]) {
            self.open(title, set, Vec::new());
        }
    }

    /// Shows a measurement. A measurement of other processes opens another report.
    pub(super) fn told(&mut self, pids: Vec<u32>, set: ReportSet) {
        if !self.wants(&pids) {
            return;
        }
        if self.pids != pids {
            let list: Vec<_> = pids.iter().map(u32::to_string).collect();
            return self.open(format!("process {}", list.join(", ")), set, pids);
        }
        self.set = Some(set);
        self.arrange();
    }

    /// Returns the request that repeats the measurement. `None` if the user has paused, or if the report is a file or
    /// a difference.
    pub(super) fn again(&self) -> Option<ScreenRequest> {
        (!self.is_paused && !self.pids.is_empty()).then(|| ScreenRequest::Measure(self.pids.clone()))
    }

    pub(super) fn is_typing(&self) -> bool {
        self.is_typing
    }

    pub(super) fn press(&mut self, key: KeyCode) -> Result<Option<ScreenRequest>, String> {
        if self.is_typing {
            match key {
                KeyCode::Enter => self.is_typing = false,
                KeyCode::Esc => {
                    self.is_typing = false;
                    self.filter.clear();
                }
                KeyCode::Backspace => drop(self.filter.pop()),
                KeyCode::Char(character) => self.filter.push(character),
                _ => {}
            }
            self.arrange();
            return Ok(None);
        }
        if self.cursor.press(key, self.rows.len()) {
            return Ok(None);
        }
        match key {
            KeyCode::Left => match self.rows.get(self.cursor.at) {
                Some(row) if row.has_children && self.is_open(row.depth, &row.key) => self.toggle(),
                Some(row) => {
                    let above = self.rows[..self.cursor.at].iter().rposition(|other| other.depth < row.depth);
                    self.cursor.at = above.unwrap_or(self.cursor.at);
                }
                None => {}
            },
            KeyCode::Right => match self.rows.get(self.cursor.at) {
                Some(row) if row.has_children && !self.is_open(row.depth, &row.key) => self.toggle(),
                _ => drop(self.cursor.press(KeyCode::Down, self.rows.len())),
            },
            KeyCode::Enter => self.toggle(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('n') => self.next(true),
            KeyCode::Char('N') => self.next(false),
            KeyCode::Char('t') => self.by_name = !self.by_name,
            KeyCode::Char('v') => self.verbose = !self.verbose,
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('b') => {
                if self.pids.is_empty() {
                    return Err("a file does not change; only running processes can have a mark".to_owned());
                }
                self.mark = if self.mark.is_some() { None } else { self.set.clone() };
            }
            KeyCode::Char('x') => {
                return Ok(self.set.clone().map(|set| ScreenRequest::Export(Box::new(set))));
            }
            _ => return Ok(None),
        }
        self.arrange();
        Ok(None)
    }

    fn toggle(&mut self) {
        let Some(row) = self.rows.get(self.cursor.at).filter(|row| row.has_children) else { return };
        let key = row.key.clone();
        if !self.toggled.remove(&key) {
            self.toggled.insert(key);
        }
        self.arrange();
    }

    /// Moves to the next or previous entry whose own name contains the text of the filter.
    fn next(&mut self, forward: bool) {
        let found = |row: &TreeRow| !self.filter.is_empty() && row.name.contains(&self.filter);
        let at = self.cursor.at;
        let next = if forward {
            self.rows.iter().enumerate().skip(at + 1).find(|(_, row)| found(row)).map(|(at, _)| at)
        } else {
            self.rows[..at.min(self.rows.len())].iter().rposition(found)
        };
        self.cursor.at = next.unwrap_or(at);
    }

    fn is_open(&self, depth: usize, key: &str) -> bool {
        (depth <= 1 || !self.filter.is_empty()) != self.toggled.contains(key)
    }

    /// Makes the rows of the report, or of the changes since the mark.
    fn arrange(&mut self) {
        let mut rows = Vec::new();
        if let Some(set) = &self.set {
            let since = self.mark.as_ref().map(|mark| about_memory::diff(mark, set));
            let set = since.as_ref().unwrap_or(set);
            let forest = Forest::filtered(set, |path| path.contains(&self.filter));
            for process in forest.processes() {
                if process.is_empty() {
                    continue;
                }
                let name = about_memory::escape(process.name());
                let heading = TreeRow {
                    depth: 0,
                    key: name.clone(),
                    name: name.clone(),
                    amount: None,
                    whole: 0,
                    has_children: true,
                };
                let is_open = self.is_open(0, &heading.key);
                rows.push(heading);
                if !is_open {
                    continue;
                }
                let mut trees: Vec<_> = process.trees().collect();
                trees.sort_by_key(|tree| (tree.name() != "explicit", tree.name()));
                for tree in trees {
                    self.push(&mut rows, tree, &name);
                }
                let mut lines: Vec<_> = process.lines().collect();
                lines.sort_by_key(|line| line.name());
                for line in lines {
                    self.push(&mut rows, line, &name);
                }
            }
        }
        self.rows = rows;
    }

    /// Adds an entry and all open entries below it.
    fn push(&self, rows: &mut Vec<TreeRow>, root: TreeNode<'_, '_>, process: &str) {
        let mut left = vec![(root, 1, false)];
        while let Some((node, depth, is_itself)) = left.pop() {
            let key = format!("{process}\0{}\0{is_itself}", node.path());
            let name = about_memory::escape(node.name());
            let mut below: Vec<_> = node.children().collect();
            let is_open = self.is_open(depth, &key);
            rows.push(TreeRow {
                depth,
                name,
                key,
                amount: Some((node.amount(), node.units())),
                whole: root.amount(),
                has_children: !below.is_empty(),
            });
            if !is_open {
                continue;
            }
            if self.by_name {
                below.sort_by_key(|child| Reverse(child.name()));
            } else {
                below.sort_by_key(|child| child.amount().unsigned_abs());
            }
            left.extend(below.into_iter().map(|child| {
                let is_itself = child.path().len() == node.path().len();
                (child, depth + 1, is_itself)
            }));
        }
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let [heads, rows] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
        let mut title = if self.set.is_none() {
            "No report: press Enter on a process of the first screen".to_owned()
        } else {
            self.title.clone()
        };
        if self.mark.is_some() {
            title.push_str(" since the mark");
        }
        if self.is_paused {
            title.push_str(", paused");
        }
        if self.is_typing || !self.filter.is_empty() {
            title.push_str(&format!("  filter: {}{}", self.filter, if self.is_typing { "_" } else { "" }));
        }
        frame.render_widget(head(title), heads);
        let window = self.cursor.window(rows.height, self.rows.len());
        let lines: Vec<_> = self.rows[window].iter().map(|row| self.line(row)).collect();
        self.cursor.draw(frame, rows, lines);
    }

    fn line(&self, row: &TreeRow) -> Line<'static> {
        let is_diff = self.mark.is_some();
        let indent = "  ".repeat(row.depth.saturating_sub(1));
        let branch = match (row.has_children, self.is_open(row.depth, &row.key)) {
            (false, _) => ' ',
            (true, true) => '▾',
            (true, false) => '▸',
        };
        let Some((amount, units)) = row.amount else {
            return styled(&format!("{branch} {}", row.name), Style::new().add_modifier(Modifier::BOLD));
        };
        let sign = if is_diff && amount > 0 { "+" } else { "" };
        let text = match units {
            Units::Bytes if self.verbose => count(amount),
            Units::Bytes => bytes(amount),
            Units::Percentage => format!("{:.2}%", amount as f64 / 100.0),
            _ => count(amount),
        };
        let part = if row.depth > 0 && row.whole != 0 { share(amount, row.whole) } else { String::new() };
        let style = match (is_diff, amount) {
            (true, 1..) => Style::new().fg(Color::Red),
            (true, ..=-1) => Style::new().fg(Color::Green),
            _ => Style::new(),
        };
        styled(&format!("{:>14} {part:>7} {indent}{branch} {}", format!("{sign}{text}"), row.name), style)
    }
}
