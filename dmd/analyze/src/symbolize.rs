//! Looks up the functions, lines and inlined calls of a dump's frames in the programs and libraries that contain
//! the frames' code.
//!
//! The look-up uses a file only if its build id shows that it is the loaded file. Dumps of Firefox have no build ids.
//! For them, a [`SymbolNote`] reports that the file was not checked. A frame that the look-up does not find stays
//! unchanged.

mod allocator_calls;
mod allowance;
mod binary;
mod bounds;
mod debug_file;
mod lookup;
#[allow(unsafe_code, reason = "maps files")]
mod map;
mod name;
mod path_text;
mod resolved;
mod scopes;
mod source_names;
mod split;
mod unit_crates;

use core::fmt;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::dump::{CallId, CallTable, Dump, LoadedModule};
use binary::BinaryFiles;
use debug_file::InlineCall;
use lookup::FileLookup;

pub use map::MappedFile;
pub use resolved::ResolvedFrames;

/// Additional places in which the look-up searches for symbols, and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolOptions {
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) threads: usize,
    pub(crate) max_bytes: u64,
    pub(crate) system_names: bool,
    pub(crate) sources: bool,
}

impl Default for SymbolOptions {
    fn default() -> Self {
        Self { folders: Vec::new(), threads: 0, max_bytes: 1 << 30, system_names: false, sources: true }
    }
}

impl SymbolOptions {
    /// The defaults: no folders, all processors, 1 GiB, no system names, sources.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder with debug files. The look-up finds a file there by the file's name or build id, in the layouts of
    /// Linux systems (`.build-id/ab/cdef.debug`) and of debuginfod (`abcdef/debuginfo`, `buildid/abcdef/executable`).
    /// The folder may also contain files to which a program links (`.gnu_debuglink`), and split debug information
    /// (`.dwo`, `.dwp`). The look-up also searches for such files beside the program, and at the paths to which the
    /// compiler wrote the files. Default: none.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.push(folder.into());
        self
    }

    /// Sets the number of threads. 0 means one for each processor; 1 means the calling thread. Default: 0.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets two limits in bytes: for unpacked debug information of all files together, and for all names together.
    /// Debug information that is not compressed has no limit. Default: 1 GiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets whether frames keep the mangled names of functions beside the readable names. Default: no.
    #[must_use]
    pub fn system_names(mut self, keep: bool) -> Self {
        self.system_names = keep;
        self
    }

    /// Sets whether the look-up reads source files of Rust, to complete names. If debug information has only lines, the
    /// names of inlined functions lack their paths, and all async functions of a file have the same name. The look-up
    /// never reads a source that is newer than the program. Default: yes.
    #[must_use]
    pub fn sources(mut self, read: bool) -> Self {
        self.sources = read;
        self
    }
}

/// Finds the file with the debug information of a program or library: the file itself, or the file to which its build
/// id or its link (`.gnu_debuglink`) leads. The search uses the same places as the look-up of frames. `build_id` is the
/// build that ran; if it is empty, every build matches. `None` if there is no file of that build.
pub fn debug_file(program: &Path, build_id: &str, options: &SymbolOptions) -> Option<PathBuf> {
    BinaryFiles::debug_of(program, build_id, options)
}

/// The reason why frames of a file have no symbols, or why their symbols may be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SymbolNote {
    /// The path of the file in the dump.
    pub module: String,
    /// The number of different frames with the problem.
    pub frames: usize,
    /// The reason.
    pub problem: SymbolProblem,
}

impl SymbolNote {
    /// Whether the file is the engine's library. Views fold its frames, so missing symbols change no view.
    pub fn is_of_engine(&self) -> bool {
        self.module.rsplit('/').next() == Some("libdmd.so")
    }
}

/// A problem with a file's symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SymbolProblem {
    /// The file does not exist.
    Missing,
    /// The file comes from another build. The value is the build id of the file, or `None` if the file has no build id.
    Changed(Option<String>),
    /// The dump does not contain the build id of the loaded file. The look-up used the present file.
    NotChecked,
    /// The file is newer than the dump, and the dump does not contain the build id of the loaded file.
    Newer,
    /// The file is not a readable program or library. The value is the reason.
    Unreadable(String),
    /// Some frames are not in any function of the file's symbols.
    NoSymbols,
    /// The file with the debug information comes from another build, so the look-up did not use the file. The value is
    /// its path.
    OtherDebugFile(PathBuf),
    /// The compiler split off debug information of some frames into `.dwo` files. The look-up found neither these files
    /// nor a package (`.dwp`) of the same build. The values are the first missing file, and the number of other missing
    /// files.
    NotFoundSplit(String, usize),
    /// The debug information exceeds a limit of the look-up. Frames may lack names, lines or inlined calls.
    Bounded(SymbolBound),
}

/// A limit of the look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SymbolBound {
    /// The maximum number of bytes of unpacked debug information ([`max_bytes`](SymbolOptions::max_bytes)).
    Unpacked(u64),
    /// The maximum number of bytes of all names ([`max_bytes`](SymbolOptions::max_bytes)).
    Text(u64),
    /// The maximum depth of entries in debug information: some thousands.
    Nesting,
    /// The maximum number of reads of debug information. This number is enough to read the whole file a few times.
    Work,
    /// The maximum number of inlined calls at one place: 256.
    InlinedCalls,
    /// The maximum length of a name: 64 KiB.
    NameLength,
}

impl fmt::Display for SymbolBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unpacked(most) => {
                write!(f, "unpacked debug information exceeds {most} bytes")
            }
            Self::Text(most) => write!(f, "the names exceed {most} bytes"),
            Self::Nesting => f.write_str("debug information is nested too deeply"),
            Self::Work => f.write_str("debug information needs too many reads"),
            Self::InlinedCalls => f.write_str("more than 256 inlined calls at a place"),
            Self::NameLength => f.write_str("a name has more than 65536 bytes"),
        }
    }
}

impl fmt::Display for SymbolNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { module, frames, problem } = self;
        let plural = if *frames == 1 { "" } else { "s" };
        let left = format!("{frames} frame{plural} without symbols");
        match problem {
            SymbolProblem::Missing => write!(f, "{module}: not found: {left}"),
            SymbolProblem::Changed(Some(id)) => {
                write!(f, "{module}: changed since the dump (now build {id}): {left}")
            }
            SymbolProblem::Changed(None) => {
                write!(f, "{module}: changed since the dump (now without build id): {left}")
            }
            SymbolProblem::NotChecked => {
                write!(
                    f,
                    "{module}: {frames} frame{plural} looked up in the present file: the dump has no build id"
                )
            }
            SymbolProblem::Newer => {
                write!(f, "{module}: newer than the dump, and the dump has no build id: {left}")
            }
            SymbolProblem::Unreadable(why) => write!(f, "{module}: {why}: {left}"),
            SymbolProblem::NoSymbols => write!(f, "{module}: {left}"),
            SymbolProblem::OtherDebugFile(path) => {
                let path = path.display();
                write!(f, "{module}: {path} comes from another build: {frames} frame{plural} without lines")
            }
            SymbolProblem::NotFoundSplit(path, more) => {
                write!(f, "{module}: {path}")?;
                if *more > 0 {
                    write!(f, " and {more} more")?;
                }
                write!(f, " not found or changed: {frames} frame{plural} without inlined calls")
            }
            SymbolProblem::Bounded(bound @ SymbolBound::Text(_)) => write!(f, "{module}: {bound}: {left}"),
            SymbolProblem::Bounded(bound) => {
                write!(f, "{module}: {bound}: {frames} frame{plural} may lack names, lines or inlined calls")
            }
        }
    }
}

/// Places by the file of their module. Each place is its number and its offset.
type ModulePlaces = BTreeMap<String, Vec<(u32, u64)>>;

/// Looks up places. Returns the calls at each place, innermost first; an empty list for an unknown place.
fn look_up(
    places: ModulePlaces,
    count: usize,
    modules: Option<&[LoadedModule]>,
    time: Option<u64>,
    options: &SymbolOptions,
) -> (Vec<Vec<InlineCall>>, Vec<SymbolNote>) {
    let mut notes = Vec::new();
    let mut lookups = Vec::new();
    for (file, places) in places {
        let mut note = |problem, frames| notes.push(SymbolNote { module: file.clone(), frames, problem });
        let module = modules.into_iter().flatten().find(|module| module.path == file);
        match BinaryFiles::find(&file, module, time, options) {
            Err(problem) => note(problem, places.len()),
            Ok(binary) => {
                if !binary.checked {
                    note(SymbolProblem::NotChecked, places.len());
                }
                lookups.push(FileLookup { file, binary, places });
            }
        }
    }
    let found = lookup::all(&lookups, options);
    let mut calls: Vec<Vec<InlineCall>> = (0..count).map(|_| Vec::new()).collect();
    for (lookup, found) in lookups.iter().zip(found) {
        let mut note =
            |problem, frames| notes.push(SymbolNote { module: lookup.file.clone(), frames, problem });
        match found {
            Err(why) => note(SymbolProblem::Unreadable(why), lookup.places.len()),
            Ok(found) => {
                if let Some(other) = &lookup.binary.other {
                    note(SymbolProblem::OtherDebugFile(other.clone()), found.calls.len());
                }
                if let Some(first) = found.missing.first() {
                    let problem = SymbolProblem::NotFoundSplit(first.clone(), found.missing.len() - 1);
                    note(problem, found.lacking);
                }
                let unnamed = found.bounded.keys().filter(|bound| matches!(bound, SymbolBound::Text(_)));
                let unnamed: usize = unnamed.map(|bound| found.bounded[bound]).sum();
                for (bound, frames) in found.bounded {
                    note(SymbolProblem::Bounded(bound), frames);
                }
                let without = found.calls.iter().filter(|(_, calls)| calls.is_empty()).count() - unnamed;
                if without > 0 {
                    note(SymbolProblem::NoSymbols, without);
                }
                for (place, found) in found.calls {
                    calls[place as usize] = found;
                }
            }
        }
    }
    notes.sort_by(|a, b| a.module.cmp(&b.module));
    (calls, notes)
}

impl Dump {
    /// Looks up the frames that have only a module and an offset. A frame with inlined calls becomes several frames.
    ///
    /// Returns the problems, sorted by the file's name. Files without a problem have no note.
    pub fn symbolize(&mut self, options: &SymbolOptions) -> Vec<SymbolNote> {
        let old = core::mem::take(&mut self.frames);
        let mut places = ModulePlaces::new();
        for (number, id) in old.ids().enumerate() {
            if let Some((module, offset)) = old.text(id).code() {
                places.entry(module.to_owned()).or_default().push((number as u32, offset));
            }
        }
        if places.is_empty() {
            self.frames = old;
            return Vec::new();
        }
        let (calls, notes) = look_up(places, old.len(), self.modules.as_deref(), self.time, options);
        let mut frames = CallTable::default();
        let new: Vec<Vec<CallId>> = old
            .ids()
            .zip(&calls)
            .map(|(id, calls)| match (&calls[..], old.text(id).code()) {
                (calls @ [_, ..], Some((module, offset))) => {
                    calls.iter().map(|call| frames.add(&call.frame(module, offset))).collect()
                }
                _ => vec![frames.copy(&old, id)],
            })
            .collect();
        let mut all = Vec::with_capacity(self.calls.len());
        for range in &mut self.traces {
            let start = all.len() as u32;
            for frame in &self.calls[range.start as usize..range.end as usize] {
                all.extend_from_slice(&new[frame.index()]);
            }
            *range = start..all.len() as u32;
        }
        self.calls = all;
        self.frames = frames;
        notes
    }
}
