//! The program's own descriptions of its blocks: the class of an object in the program's own language.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::engine_abi;
use crate::process_lock::ProcessLock;

/// The name of a class. Clones share the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClassName(Arc<str>);

impl ClassName {
    /// A class with this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The program's description of one block.
#[derive(Clone, Debug)]
struct BlockNote {
    address: usize,
    tick: u64,
    class: ClassName,
}

/// The largest number of notes. A further note replaces the oldest note, so in a log with more described blocks, only
/// the newest blocks have classes.
const MOST_NOTES: usize = 1 << 14;

static NOTES: ProcessLock<VecDeque<BlockNote>> = ProcessLock::new(VecDeque::new());

/// The number of observers that track allocation sites.
static TRACKING: AtomicUsize = AtomicUsize::new(0);

/// Declares that the block around `block`, which this thread has just allocated, contains an object of this class of
/// the program's own language. Logs of allocations then contain that class instead of the Rust type.
///
/// Call it after the allocation and before the block is freed. While no observer tracks allocation sites, a call only
/// reads one flag. The library keeps the descriptions of the last 16,384 calls.
///
/// ```
/// use memory_reporter::watching::{ClassName, describe_block};
///
/// let point = ClassName::new("Point");
/// let object = Box::new([1.0, 2.0]);
/// describe_block(&raw const *object, &point);
/// ```
pub fn describe_block<T: ?Sized>(block: *const T, class: &ClassName) {
    if TRACKING.load(Ordering::Relaxed) == 0 {
        return;
    }
    let class = class.clone();
    let mut notes = NOTES.lock();
    if notes.capacity() == 0 {
        notes.reserve_exact(MOST_NOTES);
    }
    // Dropping the last owner of a class only frees memory; it does not run code of the program.
    let old = if notes.len() == MOST_NOTES { notes.pop_front() } else { None };
    notes.push_back(BlockNote { address: block.addr(), tick: engine_abi::ticks(), class });
    drop(notes);
    drop(old);
}

/// Keeps notes enabled while it lives.
#[derive(Debug)]
pub(super) struct KeepsNotes(());

impl KeepsNotes {
    pub(super) fn new() -> Self {
        TRACKING.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for KeepsNotes {
    fn drop(&mut self) {
        TRACKING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Finds the class of each allocation.
///
/// The finder processes allocations and notes in the order of their times, and records the last block at each address.
/// A note describes the last block at its address.
pub(super) struct ClassFinder {
    notes: Vec<BlockNote>,
    next: usize,
    /// The last block at each start address: its end and its number.
    blocks: BTreeMap<usize, (usize, usize)>,
    /// The class of each allocation, by number.
    classes: Vec<Option<ClassName>>,
}

impl ClassFinder {
    pub(super) fn new() -> Self {
        let notes = NOTES.lock();
        let notes = notes.iter().cloned().collect();
        Self { notes, next: 0, blocks: BTreeMap::new(), classes: Vec::new() }
    }

    /// Adds the next allocation.
    pub(super) fn add(&mut self, start: usize, end: usize, tick: u64) {
        let number = self.classes.len();
        self.classes.push(None);
        if self.notes.is_empty() {
            return;
        }
        self.read_notes(tick);
        // Older blocks at these addresses have been freed.
        while let Some((&at, &(before, _))) = self.blocks.range(..end).next_back()
            && before > start
        {
            self.blocks.remove(&at);
        }
        self.blocks.insert(start, (end, number));
    }

    /// Applies the notes before this time.
    fn read_notes(&mut self, until: u64) {
        while let Some(note) = self.notes.get(self.next)
            && note.tick < until
        {
            if let Some((_, &(end, number))) = self.blocks.range(..=note.address).next_back()
                && note.address < end
            {
                self.classes[number] = Some(note.class.clone());
            }
            self.next += 1;
        }
    }

    /// Returns the classes of all allocations.
    pub(super) fn finish(mut self) -> Vec<Option<ClassName>> {
        self.read_notes(u64::MAX);
        self.classes
    }
}
