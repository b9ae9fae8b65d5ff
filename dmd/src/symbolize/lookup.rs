//! Looks up many places, with several threads.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use addr2line::{Loader, demangle_auto};

use super::binary::Binary;
use crate::analyze::texts::FrameId;

/// A file and the places asked for.
pub(super) struct Lookup {
    pub(super) file: String,
    pub(super) binary: Binary,
    pub(super) frames: Vec<(FrameId, u64)>,
}

/// What was found for each frame, innermost call first; nothing if nothing is known.
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
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<Found>> = Mutex::new(lookups.iter().map(|_| Ok(Vec::new())).collect());
    let work = || {
        let mut open: Option<(usize, Result<Symbols<'_>, String>)> = None;
        while let Some((index, piece)) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (_, symbols) = match open.take() {
                Some(last) if last.0 == *index => open.insert(last),
                _ => open.insert((*index, Symbols::open(&lookups[*index].binary, &lookups[*index].file))),
            };
            let result = match symbols {
                Ok(symbols) => Ok(piece.iter().map(|(frame, at)| (*frame, symbols.find(*at))).collect()),
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

/// The open files of one library or program.
struct Symbols<'b> {
    debug: Loader,
    symbols: Option<Loader>,
    binary: &'b Binary,
    file: &'b str,
}

impl<'b> Symbols<'b> {
    fn open(binary: &'b Binary, file: &'b str) -> Result<Self, String> {
        let open = |path: &Path, supplement: Option<&Path>| {
            Loader::new_with_sup(path, supplement).map_err(|error| error.to_string())
        };
        Ok(Self {
            debug: open(&binary.debug, binary.supplement.as_deref())?,
            symbols: binary.symbols.as_deref().map(|path| open(path, None)).transpose()?,
            binary,
            file,
        })
    }

    fn find(&self, offset: u64) -> Vec<String> {
        let address = offset.wrapping_add(self.binary.base);
        let mut found = Vec::new();
        // Damaged debug information is as good as none.
        if let Ok(mut frames) = self.debug.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let function =
                    frame.function.as_ref().and_then(|function| Some(function.demangle().ok()?.into_owned()));
                let function = function.or_else(|| self.symbol(address));
                let place =
                    frame.location.and_then(|location| Some((location.file?.to_owned(), location.line)));
                match (function, place) {
                    (None, None) => {}
                    (Some(function), None) => found.push(self.without_line(&function, offset)),
                    (function, Some((file, line))) => {
                        let function = function.as_deref().unwrap_or("???");
                        let line = line.map_or("???".to_owned(), |line| line.to_string());
                        found.push(format!("#00: {function} ({file}:{line})"));
                    }
                }
            }
        }
        if found.is_empty()
            && let Some(function) = self.symbol(address)
        {
            found.push(self.without_line(&function, offset));
        }
        found
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let name = self
            .debug
            .find_symbol(address)
            .or_else(|| self.symbols.as_ref().and_then(|symbols| symbols.find_symbol(address)))?;
        Some(demangle_auto(name.into(), None).into_owned())
    }

    fn without_line(&self, function: &str, offset: u64) -> String {
        format!("#00: {function}[{} +0x{offset:x}]", self.file)
    }
}
