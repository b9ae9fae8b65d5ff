//! Finds the crate of a frame, and the frames that only measure or report memory for a reporter.

use std::borrow::Cow;

use super::source_path::{library, package};
use crate::dump::CallFrame;

impl<'t> CallFrame<'t> {
    /// The crate of the function: from the path of the source file if the path contains a package's name, or else from
    /// the function's name. If neither contains a crate, returns the name of the source file or module.
    pub fn crate_name(&self) -> Cow<'t, str> {
        if let Some((name, _)) = self.file.and_then(|file| library(file).or_else(|| package(file))) {
            return name.replace('-', "_").into();
        }
        let function = self.name();
        let name = function.trim_start_matches(['<', '&', '[', '(', '*']);
        let name = ["mut ", "const ", "dyn ", "impl "]
            .iter()
            .fold(name, |n, word| n.strip_prefix(word).unwrap_or(n));
        if let Some((first, _)) = name.split_once("::")
            && !first.is_empty()
            && first.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return first.into();
        }
        let Some(file) = self.place() else { return function.into() };
        file.rsplit('/').next().unwrap_or(file).into()
    }

    /// The crate's name for a summary. C has no crates: for C, the folder of the sources.
    pub(crate) fn project(&self) -> Cow<'t, str> {
        let name = self.crate_name();
        let is_file = |file: &str| file.rsplit('/').next() == Some(&*name);
        match self.file.filter(|file| is_file(file)).and_then(folder_of_c) {
            Some(folder) => folder.into(),
            None => name,
        }
    }

    /// Whether the function only measures or reports memory for a reporter: a function of the engine, of
    /// memory-reporter or of Rust's libraries, or an unknown function.
    pub(crate) fn is_measuring(&self) -> bool {
        let function = self.name();
        let owner = function.trim_start_matches(['<', '&', '[', '(']);
        [
            "dmd::",
            "dmd_format::",
            "dmd_unwind::",
            "mozilla::dmd::",
            "memory_reporter::",
            "memory_report::",
            "core::",
            "alloc::",
            "std::",
            "hashbrown::",
            "???",
        ]
        .iter()
        .any(|name| owner.starts_with(name))
            || function.contains(" as memory_reporter::")
    }
}

/// The folder of a project of C or C++, from the absolute path of a source file.
fn folder_of_c(file: &str) -> Option<&str> {
    if file.ends_with(".rs") || !file.starts_with('/') {
        return None;
    }
    let mut folders = file.rsplit('/').skip(1);
    folders.find(|folder| !matches!(*folder, "src" | "source" | "sources" | "lib" | "include" | ""))
}
