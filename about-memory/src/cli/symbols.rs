//! Options of the commands that look symbols of a dump up.

use std::env;
use std::path::PathBuf;

use clap::Args;
use dmd::analyze::{Dump, ReadOptions};
use dmd::symbolize::SymbolOptions;

use super::say;

/// Files whose symbols something is said of.
const MAX_NOTES: usize = 10;

#[derive(Args)]
pub(crate) struct Symbols {
    /// Do not look up functions and lines of frames that only name a library and an offset.
    #[arg(long)]
    no_fix_stacks: bool,
    /// A folder with files named by build id (as /usr/lib/debug or debuginfod's cache) or by name, such
    /// as .debug, .dwo and .dwp, to look functions and lines up in. Repeatable; these two folders always
    /// count.
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_fix_stacks")]
    symbols: Vec<PathBuf>,
}

impl Symbols {
    /// Looks frames up, and says what could not be.
    ///
    /// `limits` are those that the dump was read by.
    pub(super) fn fix(&self, dump: &mut Dump, limits: &ReadOptions) {
        if self.no_fix_stacks {
            return;
        }
        let mut options = SymbolOptions::new().max_bytes(limits.max_bytes);
        options.folders = self.symbols.iter().cloned().chain(usual_folders()).collect();
        let notes = dump.symbolize(&options);
        for note in notes.iter().take(MAX_NOTES) {
            say(&note.to_string());
        }
        if notes.len() > MAX_NOTES {
            say(&format!("and as much of {} other files", notes.len() - MAX_NOTES));
        }
    }
}

/// Where systems and debuginfod keep debug files.
fn usual_folders() -> impl Iterator<Item = PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("DEBUGINFOD_CACHE_PATH").or_else(|| {
        let caches = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))?;
        Some(caches.join("debuginfod_client"))
    });
    [PathBuf::from("/usr/lib/debug")].into_iter().chain(cache)
}
