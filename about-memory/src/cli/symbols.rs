//! Options of the commands that symbolize a dump.

use std::env;
use std::path::{Path, PathBuf};

use clap::Args;
use dmd_analyze::symbolize::SymbolOptions;
use dmd_analyze::{Dump, DumpReadOptions};

use super::{linked_allocators, say};

/// At most this many notes about symbol files are printed.
const MAX_NOTES: usize = 10;

#[derive(Args, Clone, Default)]
pub(crate) struct SymbolSearch {
    /// Do not look up functions and lines. Frames without a function show their library and offset.
    #[arg(long)]
    no_fix_stacks: bool,
    /// Search this folder for debug files (.debug, .dwo, .dwp), by build id and by file name. Repeatable. The folder
    /// /usr/lib/debug and the cache of debuginfod are always searched.
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_fix_stacks")]
    symbols: Vec<PathBuf>,
}

impl SymbolSearch {
    /// Adds one more folder of debug files.
    pub(super) fn with_folder(mut self, folder: &Path) -> Self {
        self.symbols.push(folder.to_owned());
        self
    }

    /// Symbolizes the frames of a dump unless --no-fix-stacks is given, and prints notes about files without symbols.
    /// First prints the allocators whose blocks the dump lacks. `limits` are the limits for reading the dump.
    pub(super) fn fix(&self, dump: &mut Dump, limits: &DumpReadOptions) {
        self.fix_by(dump, &self.all_options(limits));
    }

    /// Like `fix`, but frames also keep the linker's names of functions.
    pub(super) fn fix_with_system_names(&self, dump: &mut Dump, limits: &DumpReadOptions) {
        self.fix_by(dump, &self.all_options(limits).system_names(true));
    }

    fn fix_by(&self, dump: &mut Dump, options: &SymbolOptions) {
        linked_allocators::gap_lines(dump).iter().for_each(|line| say(line));
        if self.no_fix_stacks {
            return;
        }
        let mut notes = dump.symbolize(options);
        notes.retain(|note| !note.is_of_engine());
        for note in notes.iter().take(MAX_NOTES) {
            say(&note.to_string());
        }
        if notes.len() > MAX_NOTES {
            say(&format!("and {} more notes about symbol files", notes.len() - MAX_NOTES));
        }
    }

    /// Like `fix`, but prints nothing, and ignores --no-fix-stacks.
    pub(super) fn fix_quietly(&self, dump: &mut Dump, limits: &DumpReadOptions) {
        dump.symbolize(&self.all_options(limits));
    }

    /// Returns the options for looking up symbols; `None` with --no-fix-stacks.
    pub(super) fn options(&self, limits: &DumpReadOptions) -> Option<SymbolOptions> {
        (!self.no_fix_stacks).then(|| self.all_options(limits))
    }

    /// Returns the options for finding debug files, even with --no-fix-stacks.
    pub(super) fn all_options(&self, limits: &DumpReadOptions) -> SymbolOptions {
        let options = SymbolOptions::new().max_bytes(limits.byte_limit());
        self.symbols.iter().cloned().chain(usual_folders()).fold(options, SymbolOptions::folder)
    }
}

/// Returns the folders in which systems and debuginfod keep debug files.
fn usual_folders() -> impl Iterator<Item = PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("DEBUGINFOD_CACHE_PATH").or_else(|| {
        let caches = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))?;
        Some(caches.join("debuginfod_client"))
    });
    [PathBuf::from("/usr/lib/debug")].into_iter().chain(cache)
}
