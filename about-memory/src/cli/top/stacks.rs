//! The screen of a dump's stacks: holders of memory, all stacks as a tree, or functions with their callers and callees.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use dmd_analyze::program::{HeapBlocks, bytes};
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::super::line::line;
use super::cursor::{RowCursor, count, head, share};

const HOLDERS: [&str; 3] = ["site", "type", "crate"];
/// The length of the bar of a frame that holds all bytes.
const BAR: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
enum StackLayout {
    /// A table of the holders of memory, by site, type or crate.
    Table(usize),
    /// All stacks as a tree.
    Flame,
    /// All functions.
    Functions,
    /// The callers and callees of a function.
    Around(String),
}

/// A line of the screen, and the target of the key Enter on this line.
struct StackLine {
    bytes: i128,
    blocks: Option<i128>,
    text: String,
    /// A frame that opens, or a function to go to.
    to: Option<LineTarget>,
}

enum LineTarget {
    Frame(usize),
    Function(String),
}

/// Sums of frames. Callers are before their callees.
struct FrameTree {
    caller: Vec<Option<usize>>,
    called: Vec<Vec<usize>>,
    bytes: Vec<i128>,
    blocks: Vec<i128>,
    name: Vec<String>,
}

pub(super) struct StackScreen {
    title: String,
    blocks: Option<HeapBlocks>,
    /// The index of the shown kind of blocks; the number of kinds if the blocks of all kinds are shown.
    kind: usize,
    view: StackLayout,
    before: Vec<StackLayout>,
    open: HashSet<usize>,
    lines: Vec<StackLine>,
    whole: i128,
    cursor: RowCursor,
}

impl Default for StackScreen {
    fn default() -> Self {
        Self {
            title: String::new(),
            blocks: None,
            kind: 0,
            view: StackLayout::Table(0),
            before: Vec::new(),
            open: HashSet::from([0]),
            lines: Vec::new(),
            whole: 0,
            cursor: RowCursor::default(),
        }
    }
}

impl StackScreen {
    pub(super) const KEYS: &'static str =
        "k kind, t site/type/crate, f flame, e functions, Enter open, Backspace back";

    pub(super) fn told(&mut self, title: String, blocks: HeapBlocks) {
        let kind = blocks.kinds().len();
        *self = Self { title, blocks: Some(blocks), kind, ..Self::default() };
        self.arrange();
    }

    pub(super) fn press(&mut self, key: KeyCode) -> Result<(), String> {
        if self.cursor.press(key, self.lines.len()) {
            return Ok(());
        }
        let Some(blocks) = &self.blocks else { return Ok(()) };
        match key {
            KeyCode::Char('k') => self.kind = (self.kind + 1) % (blocks.kinds().len() + 1),
            KeyCode::Char('t') => {
                let next =
                    if let StackLayout::Table(key) = self.view { (key + 1) % HOLDERS.len() } else { 0 };
                self.show(StackLayout::Table(next));
            }
            KeyCode::Char('f') => self.show(StackLayout::Flame),
            KeyCode::Char('e') => self.show(StackLayout::Functions),
            KeyCode::Backspace => {
                if let Some(before) = self.before.pop() {
                    self.view = before;
                    self.cursor = RowCursor::default();
                }
            }
            KeyCode::Enter | KeyCode::Right | KeyCode::Left => match self.lines.get(self.cursor.at) {
                Some(StackLine { to: Some(LineTarget::Frame(frame)), .. }) => {
                    let is_open = self.open.contains(frame);
                    match (key, is_open) {
                        (KeyCode::Right, false) | (KeyCode::Enter, false) => drop(self.open.insert(*frame)),
                        (KeyCode::Left, true) | (KeyCode::Enter, true) => drop(self.open.remove(frame)),
                        _ => {}
                    }
                }
                Some(StackLine { to: Some(LineTarget::Function(name)), .. }) if key == KeyCode::Enter => {
                    let next = StackLayout::Around(name.clone());
                    self.before.push(std::mem::replace(&mut self.view, next));
                    self.cursor = RowCursor::default();
                }
                _ => {}
            },
            _ => return Ok(()),
        }
        self.arrange();
        Ok(())
    }

    fn show(&mut self, view: StackLayout) {
        self.view = view;
        self.before.clear();
        self.cursor = RowCursor::default();
    }

    fn arrange(&mut self) {
        let Some(blocks) = &self.blocks else { return };
        // The bytes and blocks of each row.
        let mut sums = vec![(0, 0); blocks.rows().rows().len()];
        for (kind, of_kind) in blocks.kinds().iter().enumerate() {
            if self.kind == kind || self.kind == blocks.kinds().len() {
                for (sum, own) in sums.iter_mut().zip(&of_kind.sums) {
                    *sum = (sum.0 + own.usable(), sum.1 + own.num);
                }
            }
        }
        self.whole = sums.iter().map(|sum| sum.0).sum();
        self.lines = match &self.view {
            StackLayout::Table(key) => table(blocks, &sums, *key),
            StackLayout::Flame => flame(&FrameTree::new(blocks, &sums), &self.open),
            StackLayout::Functions => functions(&FrameTree::new(blocks, &sums)),
            StackLayout::Around(name) => around(&FrameTree::new(blocks, &sums), name),
        };
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let [titles, heads, rows] =
            Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(1)]).areas(area);
        let Some(blocks) = &self.blocks else {
            return frame.render_widget(
                head("No stacks: press d on a process that DMD records, or open a dump or a recording"),
                titles,
            );
        };
        let kind = blocks.kinds().get(self.kind).map_or("All", |kind| kind.kind.name());
        let view = match &self.view {
            StackLayout::Table(key) => format!("by {}", HOLDERS[*key]),
            StackLayout::Flame => "all stacks".to_owned(),
            StackLayout::Functions => "functions".to_owned(),
            StackLayout::Around(name) => format!("around {name}"),
        };
        let about = if blocks.is_estimated() { "~" } else { "" };
        let whole = bytes(self.whole);
        frame.render_widget(head(format!("{}, {kind} ({about}{whole}): {view}", self.title)), titles);
        frame.render_widget(head(format!("{:>12} {:>7} {:>10} NAME", "BYTES", "", "BLOCKS")), heads);
        let window = self.cursor.window(rows.height, self.lines.len());
        let lines: Vec<_> = self.lines[window].iter().map(|shown| self.line(shown)).collect();
        self.cursor.draw(frame, rows, lines);
    }

    fn line(&self, shown: &StackLine) -> Line<'static> {
        if shown.blocks.is_none() && shown.to.is_none() {
            return head(shown.text.clone());
        }
        let blocks = shown.blocks.map(count).unwrap_or_default();
        let (amount, part) = (bytes(shown.bytes), share(shown.bytes, self.whole));
        line(&format!("{amount:>12} {part:>7} {blocks:>10} {}", shown.text))
    }
}

/// Sorts lines by size, the largest first. Lines of equal size are sorted by name.
fn sorted(mut lines: Vec<StackLine>) -> Vec<StackLine> {
    lines.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.text.cmp(&b.text)));
    lines
}

fn table(blocks: &HeapBlocks, sums: &[(i128, i128)], key: usize) -> Vec<StackLine> {
    let mut by_holder: BTreeMap<u32, (i128, i128)> = BTreeMap::new();
    for (row, sum) in blocks.rows().rows().iter().zip(sums) {
        let of = by_holder.entry(row.holders[key]).or_default();
        *of = (of.0 + sum.0, of.1 + sum.1);
    }
    let lines = by_holder.into_iter().filter(|(_, sum)| *sum != (0, 0)).map(|(name, (bytes, count))| {
        StackLine { bytes, blocks: Some(count), text: blocks.rows().names()[name as usize].clone(), to: None }
    });
    sorted(lines.collect())
}

impl FrameTree {
    fn new(blocks: &HeapBlocks, sums: &[(i128, i128)]) -> Self {
        let rows = blocks.rows();
        let all = rows.frames().len();
        let mut frames = Self {
            caller: vec![None; all],
            called: vec![Vec::new(); all],
            bytes: vec![0; all],
            blocks: vec![0; all],
            name: rows.frames().iter().map(|frame| rows.names()[frame.name as usize].clone()).collect(),
        };
        // The frames from the root to the last visited frame, each with the number of its callees that are not visited
        // yet.
        let mut open: Vec<(usize, u32)> = Vec::new();
        for (at, frame) in rows.frames().iter().enumerate() {
            while open.last().is_some_and(|(_, left)| *left == 0) {
                open.pop();
            }
            if let Some((caller, left)) = open.last_mut() {
                *left -= 1;
                frames.caller[at] = Some(*caller);
                frames.called[*caller].push(at);
            }
            open.push((at, frame.children));
        }
        for (row, sum) in rows.rows().iter().zip(sums) {
            frames.bytes[row.frame as usize] += sum.0;
            frames.blocks[row.frame as usize] += sum.1;
        }
        for at in (1..all).rev() {
            if let Some(caller) = frames.caller[at] {
                frames.bytes[caller] += frames.bytes[at];
                frames.blocks[caller] += frames.blocks[at];
            }
        }
        frames
    }

    /// Whether an outer frame has the same name as this frame.
    fn is_inner(&self, at: usize) -> bool {
        let outer = std::iter::successors(self.caller[at], |caller| self.caller[*caller]);
        outer.into_iter().any(|outer| self.name[outer] == self.name[at])
    }

    fn own(&self, at: usize) -> i128 {
        self.bytes[at] - self.called[at].iter().map(|called| self.bytes[*called]).sum::<i128>()
    }
}

fn flame(frames: &FrameTree, open: &HashSet<usize>) -> Vec<StackLine> {
    let mut lines = Vec::new();
    let mut left = vec![(0, 0)];
    while let Some((at, depth)) = left.pop() {
        let is_open = open.contains(&at);
        let branch = match (frames.called[at].is_empty(), is_open) {
            (true, _) => ' ',
            (false, true) => '▾',
            (false, false) => '▸',
        };
        let part = frames.bytes[at].max(0) as f64 / frames.bytes[0].max(1) as f64;
        let bar = "█".repeat((part * BAR as f64).round() as usize);
        lines.push(StackLine {
            bytes: frames.bytes[at],
            blocks: Some(frames.blocks[at]),
            text: format!("{bar:<BAR$} {}{branch} {}", "  ".repeat(depth), frames.name[at]),
            to: Some(LineTarget::Frame(at)),
        });
        if is_open {
            let mut called: Vec<_> =
                frames.called[at].iter().copied().filter(|called| frames.blocks[*called] != 0).collect();
            called.sort_by_key(|called| (frames.bytes[*called], Reverse(*called)));
            left.extend(called.into_iter().map(|called| (called, depth + 1)));
        }
    }
    lines
}

/// Returns all functions, each with the bytes that the function and its callees allocated. In a recursion, a function
/// counts once.
fn functions(frames: &FrameTree) -> Vec<StackLine> {
    let mut by_name: BTreeMap<&str, (i128, i128)> = BTreeMap::new();
    for at in (1..frames.name.len()).filter(|at| !frames.is_inner(*at)) {
        let of = by_name.entry(&frames.name[at]).or_default();
        *of = (of.0 + frames.bytes[at], of.1 + frames.blocks[at]);
    }
    let lines = by_name.into_iter().filter(|(_, sum)| sum.1 != 0).map(|(name, (bytes, count))| StackLine {
        bytes,
        blocks: Some(count),
        text: name.to_owned(),
        to: Some(LineTarget::Function(name.to_owned())),
    });
    sorted(lines.collect())
}

fn around(frames: &FrameTree, name: &str) -> Vec<StackLine> {
    let mut callers: BTreeMap<&str, (i128, i128)> = BTreeMap::new();
    let mut callees = callers.clone();
    let (mut own, mut whole) = (0, 0);
    let all = (1..frames.name.len()).filter(|at| frames.name[*at] == name);
    for at in all {
        own += frames.own(at);
        for called in &frames.called[at] {
            let of = callees.entry(&frames.name[*called]).or_default();
            *of = (of.0 + frames.bytes[*called], of.1 + frames.blocks[*called]);
        }
        if frames.is_inner(at) {
            continue;
        }
        whole += frames.bytes[at];
        if let Some(caller) = frames.caller[at].filter(|caller| *caller != 0) {
            let of = callers.entry(&frames.name[caller]).or_default();
            *of = (of.0 + frames.bytes[at], of.1 + frames.blocks[at]);
        }
    }
    let title = |text: String| StackLine { bytes: 0, blocks: None, text, to: None };
    let part = |of: BTreeMap<&str, (i128, i128)>| {
        let lines = of.into_iter().filter(|(_, sum)| sum.1 != 0).map(|(name, (bytes, count))| StackLine {
            bytes,
            blocks: Some(count),
            text: format!("  {name}"),
            to: Some(LineTarget::Function(name.to_owned())),
        });
        sorted(lines.collect())
    };
    let mut lines = vec![title("called by".to_owned())];
    lines.extend(part(callers));
    lines.push(title(format!("{name}: {}, {} of its own", bytes(whole), bytes(own))));
    lines.push(title("calls".to_owned()));
    lines.extend(part(callees));
    lines
}
