//! Stacks, as data for a web page: a tree of frames, and rows. Each row has its frame in the tree, its site, its type
//! and its crate.
//!
//! A row represents all stacks that look equal in a view. The code that uses the rows defines the amounts of each row.

use memory_report::TextPool;
use rustc_hash::FxHashMap;

use super::ProgramOptions;
use super::holder::{BlockHolder, HolderFinder, HolderKey, names};
use super::stack_path::{PathFrame, StackPaths};
use crate::print::CleanText;
use crate::records::{Analysis, CutStackId, SMALL};

/// The keys of a row's holders, in this order.
const KEYS: [HolderKey; 3] = [HolderKey::Site, HolderKey::Type, HolderKey::Crate];

/// The default maximum number of rows. Smaller stacks share rows.
pub(super) const MOST_ROWS: usize = 3000;

/// The maximum number of frames, not counting the frames of small stacks.
const MOST_FRAMES: usize = 20_000;

/// The usual width of a holder's name, in characters.
const WIDTH: usize = 60;
/// The maximum width of a holder's name, for names that would otherwise look equal.
const ROOM: usize = 100;

/// The number of rows may be this many times the maximum, so that small stacks keep their sites, types and crates.
const SMALL_ROWS: usize = 4;

const ALL: &str = "all";

/// The stacks of a heap as rows.
#[derive(Clone, Debug)]
pub struct StackRows {
    names: Vec<String>,
    frames: Vec<RowFrame>,
    rows: Vec<StackRow>,
    merged: usize,
}

/// A frame of the tree of all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowFrame {
    /// The index of the frame's name in [`StackRows::names`].
    pub name: u32,
    /// The file and the line of the frame's largest stack: an index in [`StackRows::names`]. `None` if they are
    /// unknown.
    pub place: Option<u32>,
    /// The number of frames directly below this frame.
    pub children: u32,
}

/// Stacks that look equal in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackRow {
    /// The index of the innermost frame in [`StackRows::frames`].
    pub frame: u32,
    /// The indices of site, type and crate in [`StackRows::names`].
    pub holders: [u32; 3],
}

impl StackRows {
    /// The names of frames and holders. No name has characters that could deceive a reader.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The frames in preorder. The first frame is the root.
    pub fn frames(&self) -> &[RowFrame] {
        &self.frames
    }

    /// The rows: one for all stacks that look equal, or for a group of small stacks.
    pub fn rows(&self) -> &[StackRow] {
        &self.rows
    }

    /// The number of stacks without a frame of their own. Frames `(small)` represent these stacks. The tree contains only
    /// the outer frames of such a stack, and the frame `(small)` is below the innermost of these frames. The rows of
    /// small stacks keep their site, type and crate, up to four times the usual number of rows.
    pub fn merged(&self) -> usize {
        self.merged
    }
}

/// The stacks of one heap.
pub(super) struct HeapSide<'a> {
    pub(super) analysis: &'a Analysis,
    pub(super) has_modules: bool,
}

/// A stack of a side, and its weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackEntry {
    pub(super) side: usize,
    pub(super) stack: CutStackId,
    pub(super) weight: u128,
}

/// Makes at most `most` rows from stacks, not counting the rows of small stacks. Also returns the row of each entry.
pub(super) fn stack_rows(
    sides: &[HeapSide<'_>],
    entries: &[StackEntry],
    most: usize,
    options: &ProgramOptions,
) -> (StackRows, Vec<u32>) {
    let finders: Vec<(StackPaths<'_>, HolderFinder<'_>)> = sides
        .iter()
        .map(|side| {
            let paths = StackPaths::new(side.analysis, side.has_modules, options);
            (paths, HolderFinder::new(side.analysis, options))
        })
        .collect();
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|at| (core::cmp::Reverse(entries[*at].weight), *at));
    let mut rows = RowBuilder::new(most);
    let mut known: FxHashMap<(usize, CutStackId), u32> = FxHashMap::default();
    let mut of_entries = vec![0; entries.len()];
    for at in order {
        let StackEntry { side, stack, .. } = entries[at];
        let (paths, holders) = &finders[side];
        of_entries[at] = match known.get(&(side, stack)) {
            Some(row) => *row,
            None => {
                let place = |frame: &PathFrame| paths.place(frame);
                let row = rows.add(&paths.path(stack), place, || holders.find_for_stack(stack, &KEYS));
                known.insert((side, stack), row);
                row
            }
        };
    }
    (rows.finish(options), of_entries)
}

/// The holders under one key, each with its place.
#[derive(Default)]
struct HolderNumbers {
    numbers: FxHashMap<BlockHolder, u32>,
    all: Vec<(BlockHolder, String)>,
}

impl HolderNumbers {
    fn add(&mut self, holder: BlockHolder, place: String) -> u32 {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(holder.clone()).or_insert(next);
        if number == next {
            self.all.push((holder, place));
        }
        number
    }
}

/// A frame of the tree: its name, its place and the frame that called it.
struct BuiltFrame {
    name: u32,
    place: Option<u32>,
    caller: u32,
}

/// Collects rows. Stacks are added in descending order of size.
struct RowBuilder {
    names: TextPool,
    frames: Vec<BuiltFrame>,
    by_caller: FxHashMap<(u32, u32), u32>,
    held: [HolderNumbers; 3],
    rows: Vec<(u32, [u32; 3])>,
    by_place: FxHashMap<(u32, [u32; 3]), u32>,
    /// The number of rows, not counting the rows of small stacks. `most` is the maximum of this number.
    large: usize,
    most: usize,
    merged: usize,
}

impl RowBuilder {
    fn new(most: usize) -> Self {
        let mut rows = Self {
            names: TextPool::default(),
            frames: Vec::new(),
            by_caller: FxHashMap::default(),
            held: Default::default(),
            rows: Vec::new(),
            by_place: FxHashMap::default(),
            large: 0,
            most,
            merged: 0,
        };
        let all = rows.name(ALL);
        rows.frames.push(BuiltFrame { name: all, place: None, caller: 0 });
        rows
    }

    fn name(&mut self, name: &str) -> u32 {
        self.names.intern(name).expect("a recording has fewer than 2^32 names")
    }

    /// The row of a stack.
    fn add(
        &mut self,
        path: &[PathFrame],
        place: impl Fn(&PathFrame) -> String,
        holders: impl FnOnce() -> Vec<(BlockHolder, String)>,
    ) -> u32 {
        let mut frame = 0;
        let mut rest = path;
        while let Some((first, further)) = rest.split_first()
            && let Some(name) = self.names.find(&first.name)
            && let Some(next) = self.by_caller.get(&(frame, name))
        {
            (frame, rest) = (*next, further);
        }
        let is_full = self.large >= self.most || self.frames.len() + rest.len() > MOST_FRAMES;
        let is_small = is_full && !rest.is_empty();
        if is_small && self.rows.len() >= self.most.saturating_mul(SMALL_ROWS) {
            return self.unnamed(frame);
        }
        let mut numbers = [0; 3];
        for ((number, held), (holder, place)) in numbers.iter_mut().zip(&mut self.held).zip(holders()) {
            *number = held.add(holder, place);
        }
        if is_small {
            return self.small(frame, numbers);
        }
        for of_path in rest {
            let name = self.name(&of_path.name);
            frame = self.called(frame, name, || place(of_path));
        }
        match self.by_place.get(&(frame, numbers)) {
            Some(row) => *row,
            None if is_full => self.small(frame, numbers),
            None => {
                self.large += 1;
                self.row(frame, numbers)
            }
        }
    }

    /// The row of the small stacks below a frame that have the same holders. The sums of sites, types and crates stay
    /// exact.
    fn small(&mut self, frame: u32, numbers: [u32; 3]) -> u32 {
        self.merged += 1;
        let name = self.name(SMALL);
        let frame = self.called(frame, name, String::new);
        self.row(frame, numbers)
    }

    /// The row of the small stacks below a frame whose holders have no rows.
    fn unnamed(&mut self, frame: u32) -> u32 {
        let mut numbers = [0; 3];
        for (number, held) in numbers.iter_mut().zip(&mut self.held) {
            *number = held.add(BlockHolder::plain(SMALL), String::new());
        }
        self.small(frame, numbers)
    }

    fn called(&mut self, caller: u32, name: u32, place: impl FnOnce() -> String) -> u32 {
        if let Some(frame) = self.by_caller.get(&(caller, name)) {
            return *frame;
        }
        let frame = self.frames.len() as u32;
        self.by_caller.insert((caller, name), frame);
        let place = place();
        let place = (!place.is_empty()).then(|| self.name(&place));
        self.frames.push(BuiltFrame { name, place, caller });
        frame
    }

    fn row(&mut self, frame: u32, holders: [u32; 3]) -> u32 {
        let next = self.rows.len() as u32;
        let row = *self.by_place.entry((frame, holders)).or_insert(next);
        if row == next {
            self.rows.push((frame, holders));
        }
        row
    }

    fn finish(mut self, options: &ProgramOptions) -> StackRows {
        let mut texts: Vec<String> = self.names.iter().map(|name| CleanText(name).to_string()).collect();
        // The names of holders come last. Two holders have two names, even if the names look equal.
        let mut first = [0; 3];
        for (first, held) in first.iter_mut().zip(core::mem::take(&mut self.held)) {
            *first = texts.len() as u32;
            let holders: Vec<&BlockHolder> = held.all.iter().map(|(holder, _)| holder).collect();
            let names = names(&holders, WIDTH, ROOM, options);
            texts.extend(names.into_iter().zip(&held.all).map(|(name, (_, place))| match place.as_str() {
                "" => name,
                place => format!("{name} ({})", CleanText(place)),
            }));
        }
        let mut called: Vec<Vec<u32>> = vec![Vec::new(); self.frames.len()];
        for (frame, built) in self.frames.iter().enumerate().skip(1) {
            called[built.caller as usize].push(frame as u32);
        }
        let mut places = vec![0; self.frames.len()];
        let mut frames = Vec::with_capacity(self.frames.len());
        let mut open = vec![0_u32];
        while let Some(frame) = open.pop() {
            places[frame as usize] = frames.len() as u32;
            let children = &called[frame as usize];
            let BuiltFrame { name, place, .. } = self.frames[frame as usize];
            frames.push(RowFrame { name, place, children: children.len() as u32 });
            open.extend(children.iter().rev());
        }
        let rows = self.rows.iter().map(|(frame, holders)| {
            let mut numbers = first;
            numbers.iter_mut().zip(holders).for_each(|(number, holder)| *number += holder);
            StackRow { frame: places[*frame as usize], holders: numbers }
        });
        StackRows { rows: rows.collect(), names: texts, frames, merged: self.merged }
    }
}
