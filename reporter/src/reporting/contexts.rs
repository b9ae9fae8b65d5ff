//! The numbers of tags: for paths, for scopes, and for paths and scopes inside of scopes.
//!
//! Paths get numbers from 1 upwards and keep them. Scopes and combinations get numbers from the other end. A
//! combination is made when a thread first enters it:
//!
//! ```text
//! scope s                          parent -, also -
//! scope s inside the scopes c      parent c, also s
//! the path t inside the scopes c   parent c, also the counted number of t, path t
//! a path t, if it or a path above  parent the number of the nearest path above it that counts,
//! it counts                        also the figures of t if t itself counts, path t
//! ```
//!
//! When a scope is dropped, no thread is inside it, so its number and its combinations are retired. A retired number is
//! free again when no block has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::allocator::tags::tallies::{self, RawFigures, TagLinks, TagRecord};
use crate::allocator::tags::{LAST_TAG, NO_TAG, TagNumber};
use crate::process_lock::ProcessLock;

use super::tag_names::{TagNames, TagPaths};
use super::tag_pause::TagPause;

/// The tags of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TagContext {
    /// The number of all scopes of the thread.
    scopes: TagNumber,
    /// The tag of a path.
    pub(super) path: TagNumber,
    /// The number that new blocks of the thread get.
    pub(super) number: TagNumber,
}

/// A tag or a scope that a thread is in.
#[derive(Clone)]
pub(super) enum EnteredTag {
    Path(TagNumber),
    Scope(Arc<ScopeNumber>),
}

impl EnteredTag {
    pub(super) fn is_scope(&self) -> bool {
        matches!(self, Self::Scope(_))
    }
}

/// The number of a scope. Dropping it retires the number.
pub(super) struct ScopeNumber(TagNumber);

impl ScopeNumber {
    /// A new number; `None` if all numbers are in use, or if the system has no memory.
    pub(super) fn new() -> Option<Self> {
        let _paused = TagPause::new();
        NUMBERS.lock().take(TagLinks::default()).map(Self)
    }

    pub(super) fn number(&self) -> TagNumber {
        self.0
    }
}

impl Drop for ScopeNumber {
    fn drop(&mut self) {
        let _paused = TagPause::new();
        if let Some(record) = tallies::record(self.0) {
            record.drop_sites();
        }
        NUMBERS.lock().retire(self.0);
    }
}

/// All numbers. Before locking them, the caller suspends this thread's tag. While they are locked, code of the program
/// does not run.
static NUMBERS: ProcessLock<TagNumbers> = ProcessLock::new(TagNumbers {
    names: TagNames::new(),
    lowest: LAST_TAG + 1,
    free: Vec::new(),
    retired: Vec::new(),
    look_at: LEAST_LOOK,
    combinations: BTreeMap::new(),
    above: BTreeMap::new(),
    keys: BTreeMap::new(),
    counting: BTreeMap::new(),
});

/// The smallest number of retired numbers to look at for free ones.
const LEAST_LOOK: usize = 64;

struct TagNumbers {
    names: TagNames,
    /// The lowest number of a scope or combination.
    lowest: TagNumber,
    free: Vec<TagNumber>,
    /// Numbers that no thread uses any more. Blocks may still have them.
    retired: Vec<TagNumber>,
    /// The number of retired numbers at which the next look for free ones happens.
    look_at: usize,
    /// The number of each combination of scopes with another scope or a path.
    combinations: BTreeMap<(TagNumber, TagNumber), TagNumber>,
    /// For each number, the combinations that contain it.
    above: BTreeMap<TagNumber, Vec<TagNumber>>,
    keys: BTreeMap<TagNumber, (TagNumber, TagNumber)>,
    /// For each path that counts: the number with the figures of the path.
    counting: BTreeMap<TagNumber, TagNumber>,
}

impl TagNumbers {
    /// Makes a number count.
    fn take(&mut self, links: TagLinks) -> Option<TagNumber> {
        // Looking at twice as many numbers as stayed in use the last time costs little for each number, and leaves
        // room for paths.
        let is_full = usize::from(self.lowest) <= self.names.len() + 1;
        if self.free.is_empty() && (is_full || self.retired.len() >= self.look_at) {
            let is_free =
                |number: &TagNumber| tallies::record(*number).is_none_or(|record| record.live_blocks() == 0);
            let (free, retired) = self.retired.drain(..).partition(is_free);
            (self.free, self.retired) = (free, retired);
            self.look_at = LEAST_LOOK.max(2 * self.retired.len());
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None if usize::from(self.lowest) > self.names.len() + 1 => {
                self.lowest -= 1;
                self.lowest
            }
            None => return None,
        };
        if tallies::start(number, links) {
            Some(number)
        } else {
            self.free.push(number);
            None
        }
    }

    fn combine(&mut self, scopes: TagNumber, other: TagNumber, links: TagLinks) -> Option<TagNumber> {
        if let Some(number) = self.combinations.get(&(scopes, other)) {
            return Some(*number);
        }
        let number = self.take(links)?;
        self.combinations.insert((scopes, other), number);
        self.keys.insert(number, (scopes, other));
        for part in [scopes, other] {
            self.above.entry(part).or_default().push(number);
        }
        Some(number)
    }

    /// Retires a scope, and all combinations that contain it.
    fn retire(&mut self, scope: TagNumber) {
        let mut numbers = vec![scope];
        let mut found = BTreeSet::from([scope]);
        let mut index = 0;
        while let Some(number) = numbers.get(index).copied() {
            for above in self.above.remove(&number).unwrap_or_default() {
                if found.insert(above) {
                    numbers.push(above);
                }
            }
            index += 1;
        }
        for number in numbers {
            if let Some(key) = self.keys.remove(&number) {
                if self.combinations.get(&key) == Some(&number) {
                    self.combinations.remove(&key);
                }
                for part in [key.0, key.1] {
                    if let Some(above) = self.above.get_mut(&part) {
                        above.retain(|other| *other != number);
                        if above.is_empty() {
                            self.above.remove(&part);
                        }
                    }
                }
            }
            let is_free = tallies::record(number).is_none_or(|record| record.live_blocks() == 0);
            if is_free { &mut self.free } else { &mut self.retired }.push(number);
        }
    }

    /// Makes a path count. Returns the number with its figures; `None` if all numbers are in use.
    fn count(&mut self, path: TagNumber) -> Option<TagNumber> {
        if let Some(figures) = self.counting.get(&path) {
            return Some(*figures);
        }
        let figures = self.take(TagLinks { path, ..TagLinks::default() })?;
        self.counting.insert(path, figures);
        let name = self.names.path(path).unwrap_or_default().to_owned();
        let mut changed = self.names.below(&name);
        changed.push(path);
        // A path above another path sorts before it, so its number is made first.
        changed.sort_by(|a, b| self.names.path(*a).cmp(&self.names.path(*b)));
        for path in &changed {
            self.link(*path);
        }
        // Threads that enter these paths inside scopes make new combinations, which have the new figures.
        self.combinations.retain(|(_, other), _| !changed.contains(other));
        Some(figures)
    }

    /// Gives new blocks of a path a number whose chain has the figures of the path and of all paths above it.
    fn link(&mut self, path: TagNumber) {
        let parent = self.names.above(path).map(counted_number).find(|number| *number != NO_TAG);
        let number = match (self.counting.get(&path), parent) {
            (None, None) => return,
            (Some(figures), None) => Some(*figures),
            (also, Some(parent)) => {
                let also = also.copied().unwrap_or(NO_TAG);
                self.take(TagLinks { parent, also, path })
            }
        };
        // Without a number, the path's blocks do not count in the paths above it.
        if let Some((number, record)) = number.zip(tallies::record_or_new(path)) {
            record.count_as(number);
        }
    }

    /// Whether the scopes of a context include this scope.
    fn includes(&self, mut scopes: TagNumber, scope: TagNumber) -> bool {
        while scopes != scope {
            let Some(&(outer, inner)) = self.keys.get(&scopes) else { return false };
            if inner == scope {
                return true;
            }
            scopes = outer;
        }
        true
    }
}

/// The context of a thread without scopes.
pub(super) fn path_context(path: TagNumber) -> TagContext {
    TagContext { scopes: NO_TAG, path, number: counted(path) }
}

/// The number under which new blocks of a path count, or the path itself.
fn counted(path: TagNumber) -> TagNumber {
    match counted_number(path) {
        NO_TAG => path,
        number => number,
    }
}

fn counted_number(path: TagNumber) -> TagNumber {
    tallies::record(path).map_or(NO_TAG, TagRecord::counted_as)
}

/// The context inside a tag or scope that a thread enters in the context `outer`. If all numbers are in use, the
/// context does not change.
pub(super) fn inside(outer: TagContext, entered: &EnteredTag) -> TagContext {
    let (scopes, path) = match entered {
        EnteredTag::Path(path) => (outer.scopes, *path),
        EnteredTag::Scope(scope) if outer.scopes == NO_TAG => (scope.0, outer.path),
        EnteredTag::Scope(scope) => {
            let mut numbers = NUMBERS.lock();
            if numbers.includes(outer.scopes, scope.0) {
                return outer;
            }
            let links = TagLinks { parent: outer.scopes, also: scope.0, path: NO_TAG };
            match numbers.combine(outer.scopes, scope.0, links) {
                Some(scopes) => (scopes, outer.path),
                None => return missed(outer, scope),
            }
        }
    };
    if scopes == NO_TAG {
        return path_context(path);
    }
    let number = match path {
        NO_TAG => scopes,
        path => {
            let also = Some(counted(path)).filter(|number| *number != path).unwrap_or(NO_TAG);
            let links = TagLinks { parent: scopes, also, path };
            // Without a number, the blocks count in the scopes only.
            NUMBERS.lock().combine(scopes, path, links).unwrap_or(scopes)
        }
    };
    TagContext { scopes, path, number }
}

/// All numbers are in use: the scope cannot count.
#[cold]
fn missed(outer: TagContext, scope: &ScopeNumber) -> TagContext {
    if let Some(record) = tallies::record(scope.0) {
        record.miss();
    }
    outer
}

/// The tag of a path; [`NO_TAG`] if the path has a fault, or if all numbers are in use.
pub(super) fn number_of_path(path: &str) -> TagNumber {
    let _paused = TagPause::new();
    let mut numbers = NUMBERS.lock();
    let (last, before) = (numbers.lowest - 1, numbers.names.len());
    let number = numbers.names.number(path, last);
    if numbers.names.len() > before && !numbers.counting.is_empty() {
        numbers.link(number);
    }
    number
}

/// Makes the path of a tag count. Returns the number with its figures; `None` if all numbers are in use.
pub(super) fn count(path: TagNumber) -> Option<TagNumber> {
    let _paused = TagPause::new();
    NUMBERS.lock().count(path)
}

/// A path that counts.
pub(crate) struct CountingTag {
    pub(crate) path: TagNumber,
    number: TagNumber,
}

impl CountingTag {
    pub(crate) fn figures(&self) -> RawFigures {
        tallies::record(self.number).map(TagRecord::figures).unwrap_or_default()
    }
}

/// The paths that count, in the order of their tags.
pub(crate) fn counting_tags() -> Vec<CountingTag> {
    let _paused = TagPause::new();
    let tag = |(path, number): (&TagNumber, &TagNumber)| CountingTag { path: *path, number: *number };
    NUMBERS.lock().counting.iter().map(tag).collect()
}

/// The path of a tag.
pub(super) fn path(number: TagNumber) -> Option<String> {
    let _paused = TagPause::new();
    NUMBERS.lock().names.path(number).map(str::to_owned)
}

pub(crate) fn tag_paths() -> TagPaths {
    let _paused = TagPause::new();
    NUMBERS.lock().names.all()
}
