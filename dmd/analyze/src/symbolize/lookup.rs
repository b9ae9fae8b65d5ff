//! Looks up many places with several threads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;

use super::allowance::ByteAllowance;
use super::binary::BinaryFiles;
use super::bounds::ReadingStack;
use super::debug_file::{CallsAt, DebugFile, InlineCall, MappedFiles, SymbolSections};
use super::source_names::SourceNames;
use super::split::SplitStorage;
use super::{SymbolBound, SymbolOptions};

/// A file and the places to look up in it.
pub(super) struct FileLookup {
    pub(super) file: String,
    pub(super) binary: BinaryFiles,
    /// The places: the number and the offset of each.
    pub(super) places: Vec<(u32, u64)>,
}

impl FileLookup {
    fn look_up(&self, file: &mut DebugFile<'_>, places: &[(u32, u64)], text: &ByteAllowance) -> LookupResult {
        let mut names = LookupResult::default();
        for (place, offset) in places {
            let CallsAt { mut calls, missing, mut bound } = file.calls(offset.wrapping_add(self.binary.base));
            let len = |call: &InlineCall| {
                let frame = call.frame(&self.file, *offset);
                (frame.to_string().len() + frame.system_name.map_or(0, str::len)) as u64
            };
            if !text.take(calls.iter().map(len).sum()) {
                calls.clear();
                bound = Some(SymbolBound::Text(text.most()));
            }
            names.calls.push((*place, calls));
            if let Some(missing) = missing {
                names.lacking += 1;
                names.missing.insert(missing);
            }
            if let Some(bound) = bound {
                *names.bounded.entry(bound).or_default() += 1;
            }
        }
        names
    }
}

/// The results for the frames of one file.
#[derive(Debug, Default)]
pub(super) struct LookupResult {
    /// The number of each place, with its calls, innermost first. Empty for an unknown place.
    pub(super) calls: Vec<(u32, Vec<InlineCall>)>,
    /// The split debug files that were not found.
    pub(super) missing: BTreeSet<String>,
    /// The number of frames that may lack calls because of missing files.
    pub(super) lacking: usize,
    /// The exceeded limits, each with the number of affected frames.
    pub(super) bounded: BTreeMap<SymbolBound, usize>,
}

impl LookupResult {
    fn append(&mut self, mut other: Self) {
        self.calls.append(&mut other.calls);
        self.missing.append(&mut other.missing);
        self.lacking += other.lacking;
        for (bound, frames) in other.bounded {
            *self.bounded.entry(bound).or_default() += frames;
        }
    }
}

/// The result for a file, or the reason why it cannot be read.
pub(super) type LookupOutcome = Result<LookupResult, String>;

/// The number of places of one file that a thread takes at a time. Opening a file takes as long as many look-ups.
const PIECE: usize = 2000;

/// The size of the stack of a look-up thread, in bytes. Reading may use a part of it.
const STACK: usize = 16 << 20;
const STACK_TO_READ: usize = 15 << 20;

/// The bytes of stack that reading may use on a thread whose stack size is unknown.
const FOREIGN_STACK_TO_READ: usize = 512 << 10;

/// Looks up all places. Returns one result for each file.
pub(super) fn all(lookups: &[FileLookup], options: &SymbolOptions) -> Vec<LookupOutcome> {
    let pieces: Vec<(usize, &[(u32, u64)])> = lookups
        .iter()
        .enumerate()
        .flat_map(|(index, lookup)| lookup.places.chunks(PIECE).map(move |piece| (index, piece)))
        .collect();
    let threads = match options.threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let unpacking = ByteAllowance::new(options.max_bytes);
    let text = ByteAllowance::new(options.max_bytes);
    // Opens one file after another, so that the order of threads does not decide which files exceed the limit.
    let maps: Vec<Result<MappedFiles, String>> =
        lookups.iter().map(|lookup| MappedFiles::open(&lookup.binary, &unpacking)).collect();
    let sections: Vec<OnceLock<Result<SymbolSections<'_>, String>>> =
        lookups.iter().map(|_| OnceLock::new()).collect();
    let open = |index: usize| -> Result<&SymbolSections<'_>, String> {
        let sections =
            sections[index].get_or_init(|| SymbolSections::read(maps[index].as_ref().map_err(Clone::clone)?));
        sections.as_ref().map_err(Clone::clone)
    };
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<LookupOutcome>> =
        Mutex::new(lookups.iter().map(|_| Ok(LookupResult::default())).collect());
    let work = |stack: ReadingStack| {
        let storage = SplitStorage::default();
        let mut last = None;
        while let Some((index, piece)) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (_, file) = match last.take() {
                Some(same @ (of, _)) if of == *index => last.insert(same),
                _ => {
                    let places = &lookups[*index].binary.split;
                    let file = open(*index)
                        .and_then(|open| DebugFile::new(open, places, &storage, &unpacking, stack))
                        .map(|file| {
                            let program = &*lookups[*index].binary.debug;
                            let sources = SourceNames::new(Some(program).filter(|_| options.sources));
                            file.with_names(options.system_names, sources)
                        });
                    last.insert((*index, file))
                }
            };
            let result = match file {
                Ok(file) => Ok(lookups[*index].look_up(file, piece, &text)),
                Err(error) => Err(error.clone()),
            };
            let mut found = found.lock().expect("no thread panics while it holds this");
            let whole = &mut found[*index];
            match (whole.as_mut(), result) {
                (Ok(whole), Ok(piece)) => whole.append(piece),
                (_, Err(error)) => *whole = Err(error),
                (Err(_), Ok(_)) => {}
            }
        }
    };
    if threads == 1 {
        work(ReadingStack::with_bytes(FOREIGN_STACK_TO_READ));
    } else {
        thread::scope(|scope| {
            let start = |_| {
                let thread = thread::Builder::new().stack_size(STACK);
                thread.spawn_scoped(scope, || work(ReadingStack::with_bytes(STACK_TO_READ)))
            };
            let started = (0..threads.min(pieces.len())).map(start).filter(Result::is_ok).count();
            if started == 0 {
                work(ReadingStack::with_bytes(FOREIGN_STACK_TO_READ));
            }
        });
    }
    found.into_inner().expect("no thread panics while it holds this")
}
