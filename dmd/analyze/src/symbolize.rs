//! Looks up the functions and lines of a dump's frames, with inlined calls, from the files they lie in.
//!
//! A file is used only if it is the one that was loaded: by its build id, or, where a dump knows none
//! (Firefox's do not), with a [`SymbolNote`] that says so. What cannot be looked up stays as it is.

mod allowance;
mod binary;
mod bounds;
mod debug_file;
mod lookup;
#[allow(unsafe_code, reason = "maps files")]
mod map;
mod name;
mod resolved;
mod scopes;
mod split;

use core::fmt;
use std::collections::BTreeMap;
use std::path::PathBuf;

use binary::Binary;
use debug_file::Call;
use lookup::Lookup;

use crate::dump::{Dump, Module};
use crate::frames::{FrameId, Frames};

pub use resolved::ResolvedFrames;

/// Where symbols are looked for, besides the files themselves, and how far.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SymbolOptions {
    /// Folders with files named by build id, as Linux systems (`.build-id/ab/cdef.debug`), debuginfod
    /// (`abcdef/debuginfo`, `buildid/abcdef/executable`) have them, or by their name; also files that a
    /// program links to (`.gnu_debuglink`) or that were split off it (`.dwo`, `.dwp`), which are looked for
    /// where they were made and beside the program, too. Default: none.
    pub folders: Vec<PathBuf>,
    /// Threads to look up with; 0 is as many as there are processors, 1 is the thread that asks. Default: 0.
    pub threads: usize,
    /// The most bytes that compressed debug information may take once it is unpacked, all files together; and
    /// the most bytes of names. Debug information that is not compressed is not bounded. Default: 1 GiB.
    pub max_bytes: u64,
}

impl Default for SymbolOptions {
    fn default() -> Self {
        Self { folders: Vec::new(), threads: 0, max_bytes: 1 << 30 }
    }
}

impl SymbolOptions {
    /// No folders; all processors; 1 GiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds to [`folders`](Self::folders).
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.push(folder.into());
        self
    }

    /// Sets [`threads`](Self::threads).
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets [`max_bytes`](Self::max_bytes).
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }
}

/// Why frames of a file have no symbols, or how far those they have can be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SymbolNote {
    /// The file, as the dump names it.
    pub module: String,
    /// How many different frames it is about.
    pub frames: usize,
    /// What there is to say.
    pub problem: SymbolProblem,
}

/// What there is to say of a file's symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SymbolProblem {
    /// It is not there.
    Missing,
    /// What is there is another build; its build id, or none.
    Changed(Option<String>),
    /// The dump does not say which build was loaded; what is there now was used.
    NotChecked,
    /// It is newer than the dump, which does not say which build was loaded.
    Newer,
    /// It cannot be read as a program or library, and why.
    Unreadable(String),
    /// Some frames are in no function that its symbols name.
    NoSymbols,
    /// Its debug information is in this file, which is of another build and was not used.
    OtherDebugFile(PathBuf),
    /// Debug information of some frames was split off into files (`.dwo`) that are not there or are of another
    /// build, and in no package of these (`.dwp`): the first of them, and how many more.
    NotFoundSplit(String, usize),
    /// Its debug information is larger than look-up goes; frames may lack something because of that.
    Bounded(SymbolBound),
}

/// How far look-up goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SymbolBound {
    /// Compressed debug information may take so many bytes once it is unpacked
    /// ([`max_bytes`](SymbolOptions::max_bytes)).
    Unpacked(u64),
    /// All names may take so many bytes ([`max_bytes`](SymbolOptions::max_bytes)).
    Text(u64),
    /// Entries of debug information are read to a depth of some thousands.
    Nesting,
    /// Debug information is read a few times over, but not more often.
    Work,
    /// Of a place 256 inlined calls are kept.
    InlinedCalls,
    /// Of a name 64 KiB are kept.
    NameLength,
}

impl fmt::Display for SymbolBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unpacked(most) => {
                write!(f, "debug information takes more than {most} bytes once it is unpacked")
            }
            Self::Text(most) => write!(f, "names take more than {most} bytes"),
            Self::Nesting => f.write_str("debug information is nested too deeply"),
            Self::Work => f.write_str("debug information refers to its parts too often"),
            Self::InlinedCalls => f.write_str("more than 256 inlined calls at a place"),
            Self::NameLength => f.write_str("a name has more than 65536 bytes"),
        }
    }
}

impl fmt::Display for SymbolNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { module, frames, problem } = self;
        let plural = if *frames == 1 { "" } else { "s" };
        let left = format!("{frames} frame{plural} left as they are");
        match problem {
            SymbolProblem::Missing => write!(f, "{module}: not found: {left}"),
            SymbolProblem::Changed(Some(id)) => write!(f, "{module}: changed since (now build {id}): {left}"),
            SymbolProblem::Changed(None) => {
                write!(f, "{module}: changed since (now without build id): {left}")
            }
            SymbolProblem::NotChecked => {
                write!(
                    f,
                    "{module}: {frames} frame{plural} looked up in what is there now, as the dump names no build"
                )
            }
            SymbolProblem::Newer => write!(f, "{module}: newer than the dump, which names no build: {left}"),
            SymbolProblem::Unreadable(why) => write!(f, "{module}: {why}: {left}"),
            SymbolProblem::NoSymbols => write!(f, "{module}: no symbols for some: {left}"),
            SymbolProblem::OtherDebugFile(path) => {
                let path = path.display();
                write!(f, "{module}: {path} is of another build: {frames} frame{plural} without lines")
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

/// Places in modules: by the module's file, the number of a place and its offset.
type Places = BTreeMap<String, Vec<(u32, u64)>>;

/// Looks up places, and gives the calls at each, innermost first; none where nothing is known of it.
fn look_up(
    places: Places,
    count: usize,
    modules: Option<&[Module]>,
    time: Option<u64>,
    options: &SymbolOptions,
) -> (Vec<Vec<Call>>, Vec<SymbolNote>) {
    let mut notes = Vec::new();
    let mut lookups = Vec::new();
    for (file, places) in places {
        let mut note = |problem, frames| notes.push(SymbolNote { module: file.clone(), frames, problem });
        let module = modules.into_iter().flatten().find(|module| module.path == file);
        match Binary::find(&file, module, time, options) {
            Err(problem) => note(problem, places.len()),
            Ok(binary) => {
                if !binary.checked {
                    note(SymbolProblem::NotChecked, places.len());
                }
                lookups.push(Lookup { file, binary, places });
            }
        }
    }
    let found = lookup::all(&lookups, options);
    let mut calls: Vec<Vec<Call>> = (0..count).map(|_| Vec::new()).collect();
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
    /// Looks up the frames that only name a module and an offset. A frame becomes several where calls
    /// were inlined.
    ///
    /// What is said of each file is sorted by its name; a file whose frames all were looked up is not
    /// among them.
    pub fn symbolize(&mut self, options: &SymbolOptions) -> Vec<SymbolNote> {
        let old = core::mem::take(&mut self.frames);
        let mut places = Places::new();
        for (number, id) in old.ids().enumerate() {
            if let Some((module, offset)) = old.text(id).code() {
                places.entry(module.to_owned()).or_default().push((number as u32, offset));
            }
        }
        let (calls, notes) = look_up(places, old.len(), self.modules.as_deref(), self.time, options);
        let mut frames = Frames::default();
        let new: Vec<Vec<FrameId>> = old
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
