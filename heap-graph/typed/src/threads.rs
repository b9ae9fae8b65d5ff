//! The blocks that threads hold: by words on their stacks, in their registers, and in their libraries' thread-locals.
//!
//! A word of a thread counts only if it leads into a block that no static and no other block holds. A stack may
//! borrow memory that statics or blocks own, and may contain stale words.

use dmd_analyze::image::StoppedThread;
use dmd_analyze::program::FoldRules;
use dmd_analyze::symbolize::{ResolvedFrames, SymbolOptions};
use dmd_analyze::{Dump, short_type_name};
use hashbrown::{HashMap, HashSet};

use crate::blocks::{BlockIndex, HeapBlock};
use crate::memory::{MemoryReader, MemorySource};
use crate::unwind::{StackFrame, Unwinder};

/// The largest number of bytes that are read of one stack.
const MOST: u64 = 64 << 20;

/// The largest number of bytes that are read of all stacks. In a damaged core file, many threads may have the same
/// stack.
const MOST_OF_ALL: u64 = 4 * MOST;

/// The number of frames that are asked for a function of the program, in each direction.
const NEAR: usize = 16;

/// The number of bytes before the thread pointer that contain libraries' thread-locals.
const BEFORE: u64 = 4096;
/// The number of bytes after the thread pointer that contain the C library's data about the thread.
const BEHIND: u64 = 4096;

/// A thread, and an address in the code of one of its frames; `None` if the frame is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ThreadPlace {
    thread: u32,
    code: Option<u64>,
}

/// The blocks to which words of threads lead.
#[derive(Debug, Default)]
pub(crate) struct ThreadWords {
    /// For each block, the outermost frame with a word that leads to the block. Inner frames borrow the block from this
    /// frame.
    by_block: HashMap<u32, ThreadPlace>,
    threads: Vec<StoppedThread>,
    /// For each thread, addresses in the code of its frames, the innermost first.
    frames: Vec<Vec<u64>>,
    texts: HashMap<ThreadPlace, String>,
}

impl ThreadWords {
    /// Reads the words of threads.
    pub(crate) fn read(
        dump: &Dump,
        memory: &dyn MemorySource,
        reader: &mut MemoryReader<'_>,
        (index, blocks): (&BlockIndex, &[HeapBlock]),
        mut threads: Vec<StoppedThread>,
    ) -> Self {
        // The system numbers threads in the order of their start. Threads without a number are last.
        threads.sort_by_key(|thread| thread.number.unwrap_or(u64::MAX));
        let unwinder = Unwinder::new(dump.modules());
        let mut words = Self::default();
        let mut left = MOST_OF_ALL;
        for (number, thread) in threads.iter().enumerate() {
            let place = |code| ThreadPlace { thread: number as u32, code };
            let mut note = |word: u64, place: ThreadPlace| {
                if let Some(block) = index.find(blocks, word) {
                    words.by_block.insert(block as u32, place);
                }
            };
            let own =
                thread.thread_pointer.map(|own| (own.saturating_sub(BEFORE), own.saturating_add(BEHIND)));
            let (start, end) = thread.stack_pointer.map_or((0, 0), |start| {
                let most = start.saturating_add(MOST.min(left));
                let end = memory.end_of(start).unwrap_or(start).min(most);
                // The end of a thread's stack contains its thread-locals.
                (start, own.map_or(end, |own| if own.1 > start { end.min(own.1) } else { end }))
            });
            if let Some(own) = own.filter(|own| !(start..end).contains(&own.0)) {
                for word in words_of(reader.read(own.0, own.1 - own.0)) {
                    note(word, place(None));
                }
            }
            let stack: Vec<u64> = words_of(reader.read(start, end.saturating_sub(start))).collect();
            left = left.saturating_sub(8 * stack.len() as u64);
            let read = |address: u64| {
                let at = address.checked_sub(start).filter(|at| at % 8 == 0)?;
                stack.get(usize::try_from(at / 8).ok()?).copied()
            };
            let frames = unwinder.frames(thread, &read);
            words.frames.push(frames.iter().filter_map(|frame| frame.code).collect());
            for (_, value) in &thread.registers {
                note(*value, place(frames.first().and_then(|frame| frame.code)));
            }
            let mut frames = frames.iter().peekable();
            for (at, word) in stack.iter().enumerate() {
                let address = start + 8 * at as u64;
                while frames.next_if(|frame: &&StackFrame| frame.end <= address).is_some() {}
                note(*word, place(frames.peek().and_then(|frame| frame.code)));
            }
        }
        words.threads = threads;
        words
    }

    /// Whether a word of a thread leads into the block.
    pub(crate) fn hold(&self, block: usize) -> bool {
        self.by_block.contains_key(&(block as u32))
    }

    /// Forgets all blocks except `blocks`, and looks up the functions that hold these blocks.
    pub(crate) fn keep(&mut self, blocks: &[usize], dump: &Dump) {
        let kept = blocks.iter().filter_map(|block| {
            let block = *block as u32;
            self.by_block.get(&block).map(|place| (block, *place))
        });
        self.by_block = kept.collect();
        let unwinder = Unwinder::new(dump.modules());
        let places: HashSet<ThreadPlace> = self.by_block.values().copied().collect();
        let mut wanted: Vec<u64> = places.iter().flat_map(|place| self.frames_near(*place)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let index_of = |module: &dmd_analyze::LoadedModule| {
            dump.modules().iter().position(|other| core::ptr::eq(other, module))
        };
        let addresses: Vec<_> = wanted
            .iter()
            .map(|code| {
                let place = unwinder.module(*code);
                // The look-up expects a return address and uses the address before it. `at` is already inside the
                // call, so the look-up gets the address after `at`.
                let place = place.and_then(|(module, at)| Some((index_of(module)?, at.wrapping_add(1))));
                (*code as usize, place)
            })
            .collect();
        let mut frames = ResolvedFrames::default();
        if !addresses.is_empty() {
            frames.look_up(&addresses, dump.modules(), &SymbolOptions::new());
        }
        let folds = FoldRules::new();
        self.texts = places
            .into_iter()
            .map(|place| {
                let thread = &self.threads[place.thread as usize];
                let mut text = match thread.number {
                    // Debuggers and `about-memory history` show the same number.
                    Some(number) => format!("thread {number}"),
                    None => "a thread".to_owned(),
                };
                if !thread.name.is_empty() {
                    text.push_str(&format!(" ({})", thread.name));
                }
                // A value that a function of the program passes to std is in a frame of std.
                let near = || self.frames_near(place).flat_map(|code| frames.get(code as usize));
                let own = near().find(|frame| folds.reason(frame).is_none());
                if let Some(function) = own.or_else(|| near().next()).and_then(|frame| frame.function) {
                    text.push_str(": ");
                    text.push_str(&short_type_name(function));
                }
                (place, text)
            })
            .collect();
    }

    /// Addresses in the code of the frames that may name a place: its own frame, the frames around it from the inside to
    /// the outside, and then the frames in it from the outside to the inside.
    fn frames_near(&self, place: ThreadPlace) -> impl Iterator<Item = u64> {
        let frames = place.code.map_or(&[][..], |_| &self.frames[place.thread as usize]);
        let at = frames.iter().position(|code| Some(*code) == place.code).unwrap_or(0);
        let (inside, outside) = frames.split_at(at);
        outside.iter().take(NEAR).chain(inside.iter().rev().take(NEAR)).copied()
    }

    /// The thread that holds a block, for display: `thread 3 (worker): app::serve`.
    pub(crate) fn text(&self, block: usize) -> Option<&str> {
        let place = self.by_block.get(&(block as u32))?;
        self.texts.get(place).map(String::as_str)
    }
}

fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}
