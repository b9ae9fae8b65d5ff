//! Looks up many places, with several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;

use super::binary::Binary;
use super::debug_file::{DebugFile, Maps, Sections};
use crate::analyze::texts::FrameId;

/// A file and the places asked for.
pub(super) struct Lookup {
    pub(super) file: String,
    pub(super) binary: Binary,
    pub(super) frames: Vec<(FrameId, u64)>,
}

impl Lookup {
    /// The texts of a place, innermost call first; none if nothing is known of it.
    fn texts(&self, file: &mut DebugFile<'_>, offset: u64) -> Vec<String> {
        let calls = file.calls(offset.wrapping_add(self.binary.base)).into_iter();
        let text = |call: super::debug_file::Call| {
            let function = call.function.as_deref().unwrap_or("???");
            match call.place {
                Some((file, Some(line))) => format!("#00: {function} ({file}:{line})"),
                Some((file, None)) => format!("#00: {function} ({file}:???)"),
                None => format!("#00: {function}[{} +0x{offset:x}]", self.file),
            }
        };
        calls.map(text).collect()
    }
}

/// What was found for each frame.
pub(super) type Found = Result<Vec<(FrameId, Vec<String>)>, String>;

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
    let open = |index: usize| -> Result<DebugFile<'_>, String> {
        let sections = sections[index].get_or_init(|| {
            let maps = maps[index].get_or_init(|| Maps::open(&lookups[index].binary));
            Sections::of(maps.as_ref().map_err(Clone::clone)?)
        });
        DebugFile::new(sections.as_ref().map_err(Clone::clone)?)
    };
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<Found>> = Mutex::new(lookups.iter().map(|_| Ok(Vec::new())).collect());
    let work = || {
        let mut last = None;
        while let Some((index, piece)) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (_, file) = match last.take() {
                Some(same @ (of, _)) if of == *index => last.insert(same),
                _ => last.insert((*index, open(*index))),
            };
            let result = match file {
                Ok(file) => {
                    let lookup = &lookups[*index];
                    Ok(piece.iter().map(|(frame, at)| (*frame, lookup.texts(file, *at))).collect())
                }
                Err(error) => Err(error.clone()),
            };
            let mut found = found.lock().expect("no thread panics while it holds this");
            let whole = &mut found[*index];
            match (whole.as_mut(), result) {
                (Ok(whole), Ok(mut piece)) => whole.append(&mut piece),
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
