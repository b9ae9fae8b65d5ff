//! Looks up many places, with several threads.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;

use super::binary::Binary;
use super::debug_file::{Calls, DebugFile, Maps, Sections};
use super::split::Storage;
use crate::analyze::texts::FrameId;

/// A file and the places asked for.
pub(super) struct Lookup {
    pub(super) file: String,
    pub(super) binary: Binary,
    pub(super) frames: Vec<(FrameId, u64)>,
}

impl Lookup {
    /// The texts of a place, innermost call first, none if nothing is known of it; and the file that was not
    /// found and may know more.
    fn texts(&self, file: &mut DebugFile<'_>, offset: u64) -> (Vec<String>, Option<String>) {
        let Calls { calls, missing } = file.calls(offset.wrapping_add(self.binary.base));
        let text = |call: super::debug_file::Call| {
            let function = call.function.as_deref().unwrap_or("???");
            match call.place {
                Some((file, Some(line))) => format!("#00: {function} ({file}:{line})"),
                Some((file, None)) => format!("#00: {function} ({file}:???)"),
                None => format!("#00: {function}[{} +0x{offset:x}]", self.file),
            }
        };
        (calls.into_iter().map(text).collect(), missing)
    }

    fn look_up(&self, file: &mut DebugFile<'_>, places: &[(FrameId, u64)]) -> Names {
        let mut names = Names::default();
        for (frame, offset) in places {
            let (texts, missing) = self.texts(file, *offset);
            names.frames.push((*frame, texts));
            if let Some(missing) = missing {
                names.lacking += 1;
                names.missing.insert(missing);
            }
        }
        names
    }
}

/// What was found of a file's frames.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) frames: Vec<(FrameId, Vec<String>)>,
    /// Files that were not found.
    pub(super) missing: BTreeSet<String>,
    /// So many frames may lack something because of these.
    pub(super) lacking: usize,
}

impl Names {
    fn append(&mut self, mut other: Self) {
        self.frames.append(&mut other.frames);
        self.missing.append(&mut other.missing);
        self.lacking += other.lacking;
    }
}

/// What was found for each file.
pub(super) type Found = Result<Names, String>;

/// Places of one file that a thread takes at a time: opening a file costs as much as many of them.
const PIECE: usize = 2000;

/// One result for each file.
pub(super) fn all(lookups: &[Lookup], threads: usize) -> Vec<Found> {
    let pieces: Vec<(usize, &[(FrameId, u64)])> = lookups
        .iter()
        .enumerate()
        .flat_map(|(index, lookup)| lookup.frames.chunks(PIECE).map(move |piece| (index, piece)))
        .collect();
    let threads = match threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let maps: Vec<OnceLock<Result<Maps, String>>> = lookups.iter().map(|_| OnceLock::new()).collect();
    let sections: Vec<OnceLock<Result<Sections<'_>, String>>> =
        lookups.iter().map(|_| OnceLock::new()).collect();
    let open = |index: usize| -> Result<&Sections<'_>, String> {
        let sections = sections[index].get_or_init(|| {
            let maps = maps[index].get_or_init(|| Maps::open(&lookups[index].binary));
            Sections::of(maps.as_ref().map_err(Clone::clone)?)
        });
        sections.as_ref().map_err(Clone::clone)
    };
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<Found>> = Mutex::new(lookups.iter().map(|_| Ok(Names::default())).collect());
    let work = || {
        let storage = Storage::default();
        let mut last = None;
        while let Some((index, piece)) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (_, file) = match last.take() {
                Some(same @ (of, _)) if of == *index => last.insert(same),
                _ => {
                    let places = &lookups[*index].binary.split;
                    let file = open(*index).and_then(|open| DebugFile::new(open, places, &storage));
                    last.insert((*index, file))
                }
            };
            let result = match file {
                Ok(file) => Ok(lookups[*index].look_up(file, piece)),
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
    thread::scope(|scope| {
        for _ in 1..threads.min(pieces.len()) {
            scope.spawn(work);
        }
        work();
    });
    found.into_inner().expect("no thread panics while it holds this")
}
