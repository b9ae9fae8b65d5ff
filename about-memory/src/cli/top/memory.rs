//! The screen of heap snapshots: aggregate, dominators, suspects, the nodes of a group, and paths. The session computes
//! all answers, as it does for `serve`.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use about_memory::session::{
    GroupBy, PendingAnswer, Query, QueryAnswer, RowsOptions, Session, SessionRow, SnapshotId, SnapshotInfo,
};
use dmd_analyze::program::bytes;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::super::line::line as text;
use super::cursor::{RowCursor, count, head, share};
use super::types::OfType;

/// A way to group nodes.
struct NodeGrouping {
    title: &'static str,
    breakdown: &'static str,
    /// Whether a tree of these groups is inverted at first.
    inverted: bool,
}

impl NodeGrouping {
    const fn preset(name: &'static str, inverted: bool) -> Self {
        Self { title: name, breakdown: name, inverted }
    }
}

/// The groupings that the key `g` selects, one after the other.
const GROUPS: [NodeGrouping; 6] = [
    NodeGrouping::preset("type", true),
    NodeGrouping::preset("objectClass", false),
    NodeGrouping::preset("stack", false),
    NodeGrouping::preset("internalType", false),
    NodeGrouping::preset("filename", false),
    NodeGrouping {
        title: "type and stack",
        breakdown: r#"{"by":"internalType","then":{"by":"allocationStack"}}"#,
        inverted: false,
    },
];
/// The grouping that shows the blocks of a type, and the stacks that allocated them.
const TYPE_AND_STACK: usize = GROUPS.len() - 1;
const MOST_PATHS: usize = 10;
/// The levels of dominators that are open at first, as on the page of `serve`.
const DEPTH: usize = 2;
/// One request may ask for at most this many rows.
const MOST_ROWS: u16 = 500;

#[derive(Clone, Debug, PartialEq, Eq)]
enum SnapshotView {
    Aggregate,
    Dominators,
    Suspects,
    /// The nodes of a group.
    Individuals(u64),
    Paths(u64),
}

pub(super) struct SnapshotScreen {
    session: Session,
    /// The index of the shown snapshot in the list.
    at: usize,
    view: SnapshotView,
    /// The earlier views. Backspace returns to them.
    before: Vec<SnapshotView>,
    group: usize,
    inverted: bool,
    /// Only groups whose names contain this text are shown.
    filter: String,
    asked: Option<(Query, PendingAnswer)>,
    answer: Option<(Query, Arc<QueryAnswer>)>,
    failure: Option<(Query, String)>,
    open: HashSet<u64>,
    /// The rows that the user has closed although they open by themselves.
    closed: HashSet<u64>,
    /// The number of the first visible row, and the visible rows.
    rows: (usize, Vec<SessionRow>),
    total: usize,
    cursor: RowCursor,
}

impl SnapshotScreen {
    pub(super) const KEYS: &'static str =
        "Tab view, g group, i invert, u nodes, p paths, [ ] file, Backspace, S snapshot";

    pub(super) fn new(session: Session) -> Self {
        Self {
            session,
            at: 0,
            view: SnapshotView::Aggregate,
            before: Vec::new(),
            group: 0,
            inverted: GROUPS[0].inverted,
            filter: String::new(),
            asked: None,
            answer: None,
            failure: None,
            open: HashSet::new(),
            closed: HashSet::new(),
            rows: (0, Vec::new()),
            total: 0,
            cursor: RowCursor::default(),
        }
    }

    fn snapshot(&self) -> Option<SnapshotInfo> {
        let mut all = self.session.snapshots();
        let at = self.at.min(all.len().checked_sub(1)?);
        Some(all.swap_remove(at))
    }

    fn query(&self, snapshot: SnapshotId) -> Query {
        let by = || GroupBy::new(GROUPS[self.group].breakdown).expect("a test checks each breakdown");
        match &self.view {
            SnapshotView::Aggregate => {
                Query::Census { snapshot, by: by(), invert: self.inverted, filter: self.filter.clone() }
            }
            SnapshotView::Dominators => Query::Dominators { snapshot, filter: String::new() },
            SnapshotView::Suspects => Query::Suspects { snapshot },
            SnapshotView::Individuals(group) => Query::Individuals {
                snapshot,
                by: by(),
                invert: self.inverted,
                group: *group,
                filter: String::new(),
            },
            SnapshotView::Paths(node) => Query::Paths { snapshot, node: *node, max: MOST_PATHS },
        }
    }

    /// Sends the query of the view, and stores the answer when it arrives. Returns whether the view has an answer or a
    /// failure.
    pub(super) fn poll(&mut self) -> bool {
        let Some(info) = self.snapshot().filter(|info| info.state.name() == "read") else {
            return false;
        };
        let query = self.query(info.id);
        let is_of = |of: &Query| *of == query;
        if self.answer.as_ref().is_some_and(|(of, _)| is_of(of)) {
            return true;
        }
        if self.failure.as_ref().is_some_and(|(of, _)| is_of(of)) {
            return true;
        }
        match &self.asked {
            Some((of, pending)) if is_of(of) => match pending.wait(Duration::ZERO) {
                None => false,
                Some(outcome) => {
                    self.asked = None;
                    match outcome {
                        Ok(answer) => self.answer = Some((query, answer)),
                        Err(error) => self.failure = Some((query, error.to_string())),
                    }
                    true
                }
            },
            // Dropping the previous request cancels it.
            _ => match self.session.ask(query.clone()) {
                Ok(pending) => {
                    self.asked = Some((query, pending));
                    false
                }
                Err(error) => {
                    self.failure = Some((query, error.to_string()));
                    true
                }
            },
        }
    }

    fn row(&self) -> Option<&SessionRow> {
        self.rows.1.get(self.cursor.at.checked_sub(self.rows.0)?)
    }

    fn show(&mut self, view: SnapshotView) {
        self.view = view;
        self.open.clear();
        self.closed.clear();
        self.cursor = RowCursor::default();
    }

    fn close(&mut self, row: u64) {
        self.open.remove(&row);
        self.closed.insert(row);
    }

    fn follow(&mut self, view: SnapshotView) {
        self.before.push(self.view.clone());
        self.show(view);
    }

    pub(super) fn press(&mut self, key: KeyCode) -> Result<(), String> {
        if self.cursor.press(key, self.total) {
            return Ok(());
        }
        match key {
            KeyCode::Tab => {
                let next = match self.view {
                    SnapshotView::Aggregate => SnapshotView::Dominators,
                    SnapshotView::Dominators => SnapshotView::Suspects,
                    _ => SnapshotView::Aggregate,
                };
                self.before.clear();
                self.filter.clear();
                self.show(next);
            }
            KeyCode::Char('g') => {
                self.group = (self.group + 1) % GROUPS.len();
                self.inverted = GROUPS[self.group].inverted;
                self.filter.clear();
                self.before.clear();
                self.show(SnapshotView::Aggregate);
            }
            KeyCode::Char('i') if self.view == SnapshotView::Aggregate => {
                self.inverted = !self.inverted;
                self.show(SnapshotView::Aggregate);
            }
            KeyCode::Char('u') => match self.row() {
                Some(row) if self.view == SnapshotView::Aggregate && row.has_nodes => {
                    let group = row.id;
                    self.follow(SnapshotView::Individuals(group));
                }
                _ => return Err("select a row of the aggregate that has nodes of its own".to_owned()),
            },
            KeyCode::Char('p') => match (&self.view, self.row()) {
                (
                    SnapshotView::Dominators | SnapshotView::Suspects | SnapshotView::Individuals(_),
                    Some(row),
                ) if row.is_node => {
                    let node = row.id;
                    self.follow(SnapshotView::Paths(node));
                }
                _ => return Err("select a node in dominators, suspects, or the nodes of a group".to_owned()),
            },
            KeyCode::Backspace => match self.before.pop() {
                Some(before) => self.show(before),
                None => self.filter.clear(),
            },
            KeyCode::Char('[') => self.go(self.at.saturating_sub(1)),
            KeyCode::Char(']') => self.go(self.at + 1),
            KeyCode::Right | KeyCode::Enter => match self.row() {
                Some(row) if row.children > 0 && !row.is_open => {
                    let id = row.id;
                    self.open.insert(id);
                    self.closed.remove(&id);
                }
                Some(row) if key == KeyCode::Enter && row.is_open => {
                    let id = row.id;
                    self.close(id);
                }
                _ => drop(self.cursor.press(KeyCode::Down, self.total)),
            },
            KeyCode::Left => match self.row() {
                Some(row) if row.is_open => {
                    let id = row.id;
                    self.close(id);
                }
                // The parent row may be above the visible rows.
                Some(row) => self.cursor.at = row.parent.unwrap_or(self.cursor.at),
                None => {}
            },
            _ => {}
        }
        Ok(())
    }

    /// Shows the blocks of a type, with the stacks that allocated them below.
    pub(super) fn show_type(&mut self, of: &OfType) {
        let place = self.session.snapshots().iter().position(|info| info.id == of.snapshot);
        self.go(place.unwrap_or(self.at));
        (self.group, self.inverted) = (TYPE_AND_STACK, false);
        self.filter = of.name.clone();
        self.show(SnapshotView::Aggregate);
    }

    fn go(&mut self, at: usize) {
        self.filter.clear();
        self.at = at.min(self.session.snapshots().len().saturating_sub(1));
        self.before.clear();
        self.show(if let SnapshotView::Individuals(_) | SnapshotView::Paths(_) = self.view {
            SnapshotView::Aggregate
        } else {
            self.view.clone()
        });
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let [titles, heads, rows] =
            Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(1)]).areas(area);
        let Some(info) = self.snapshot() else {
            return frame.render_widget(
                head("No heap snapshot: press S on a process to take one, or open a .fxsnapshot file"),
                titles,
            );
        };
        let view = match &self.view {
            SnapshotView::Aggregate if !self.filter.is_empty() => self.filter.clone(),
            SnapshotView::Aggregate => {
                let inverted = if self.inverted { ", inverted" } else { "" };
                format!("aggregate by {}{inverted}", GROUPS[self.group].title)
            }
            SnapshotView::Dominators => "dominators".to_owned(),
            SnapshotView::Suspects => "suspects".to_owned(),
            SnapshotView::Individuals(_) => "nodes of the group".to_owned(),
            SnapshotView::Paths(node) => format!("paths to @ 0x{node:x}"),
        };
        let all = self.session.snapshots().len();
        let place = format!("{} of {all}", self.at.min(all - 1) + 1);
        let title = &info.title;
        frame
            .render_widget(head(format!("{title} ({place}, {}): {view}", bytes(signed(info.bytes)))), titles);
        let is_there = self.poll();
        if let Some(reason) = info.state.error() {
            return frame.render_widget(text(reason), heads);
        }
        if !is_there {
            let steps = self.session.jobs().first().map(|job| (job.kind, job.steps));
            let progress = steps.map_or_else(
                || format!("{} …", info.state.name()),
                |(kind, (done, of))| format!("{kind} … {}", share(done.into(), of.into())),
            );
            return frame.render_widget(text(&progress), heads);
        }
        let query = self.query(info.id);
        if let Some((_, reason)) = self.failure.as_ref().filter(|(of, _)| *of == query) {
            return frame.render_widget(text(reason), heads);
        }
        let Some((_, answer)) = self.answer.clone() else { return };
        if let QueryAnswer::Paths(paths) = &*answer {
            return self.draw_paths(frame, rows, paths);
        }
        self.draw_rows(frame, heads, rows, &query, &answer);
    }

    fn draw_rows(
        &mut self,
        frame: &mut Frame<'_>,
        heads: Rect,
        area: Rect,
        query: &Query,
        answer: &Arc<QueryAnswer>,
    ) {
        let height = area.height.min(MOST_ROWS);
        // The number of rows depends on the open rows, so the first window may be after the end.
        let mut window = self.cursor.window(height, self.total.max(1));
        let depth = if self.view == SnapshotView::Dominators { DEPTH } else { 0 };
        let rows = loop {
            let mut options = RowsOptions::first(usize::from(height)).start(window.start).depth(depth);
            (options.open, options.closed) = (self.open.clone(), self.closed.clone());
            let Ok(rows) = self.session.rows(query, answer, &options) else { return };
            let again = self.cursor.window(height, rows.total);
            self.total = rows.total;
            if again.start == window.start {
                break rows;
            }
            window = again;
        };
        let is_of_nodes = rows.columns.len() == 2;
        let titles = if is_of_nodes {
            format!("{:>12} {:>7} {:>12} NODE", "RETAINED", "", "SHALLOW")
        } else {
            format!("{:>12} {:>7} {:>10} {:>12} GROUP", "BYTES", "", "COUNT", "TOTAL")
        };
        frame.render_widget(head(titles), heads);
        let lines: Vec<_> = rows.rows.iter().map(|row| line(row, &rows.whole, is_of_nodes)).collect();
        self.rows = (window.start, rows.rows);
        if lines.is_empty() {
            return frame.render_widget(text("Nothing."), area);
        }
        self.cursor.draw(frame, area, lines);
    }

    fn draw_paths(
        &mut self,
        frame: &mut Frame<'_>,
        area: Rect,
        paths: &[Vec<about_memory::session::PathStep>],
    ) {
        let mut lines = Vec::new();
        for path in paths {
            for (depth, step) in path.iter().enumerate() {
                let name = if step.name.is_empty() { "(root)" } else { &step.name };
                let edge = match (&step.edge, depth + 1 == path.len()) {
                    (_, true) => String::new(),
                    (Some(edge), _) => format!(" .{edge} →"),
                    (None, _) => " →".to_owned(),
                };
                let indent = "  ".repeat(depth);
                lines.push(text(&format!("{indent}{name} @ 0x{:x}{edge}", step.node)));
            }
            lines.push(Line::default());
        }
        self.total = lines.len();
        let window = self.cursor.window(area.height, self.total);
        self.cursor.draw(frame, area, lines.drain(window));
    }
}

fn signed(size: u128) -> i128 {
    i128::try_from(size).unwrap_or(i128::MAX)
}

fn line(row: &SessionRow, whole: &[i128], is_of_nodes: bool) -> Line<'static> {
    let branch = match (row.children, row.is_open) {
        (0, _) => ' ',
        (_, true) => '▾',
        (_, false) => '▸',
    };
    let indent = "  ".repeat(row.level);
    let name = row.name.join(" › ");
    let number = |column: usize| row.numbers.get(column).copied().unwrap_or_default();
    let part = share(number(0), whole.first().copied().unwrap_or_default());
    text(&if is_of_nodes {
        let (retained, shallow) = (bytes(number(0)), bytes(number(1)));
        let address = if row.is_node { format!(" @ 0x{:x}", row.id) } else { String::new() };
        format!("{retained:>12} {part:>7} {shallow:>12} {indent}{branch} {name}{address}")
    } else {
        let (own, nodes, total) = (bytes(number(0)), count(number(1)), bytes(number(2)));
        format!("{own:>12} {part:>7} {nodes:>10} {total:>12} {indent}{branch} {name}")
    })
}
