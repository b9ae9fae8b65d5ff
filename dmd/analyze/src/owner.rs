//! Which crate a frame belongs to, and which function is to be named for a stack of reports.

use std::borrow::Cow;

use crate::frame::Frame;
use crate::source_path::{library, package};

impl<'t> Frame<'t> {
    /// The crate of the function, by its name or else by where its source lies; else the name of the file that it
    /// lies in.
    pub fn crate_name(&self) -> Cow<'t, str> {
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
        match library(file).or_else(|| package(file)) {
            Some((name, _)) => name.replace('-', "_").into(),
            None => file.rsplit('/').next().unwrap_or(file).into(),
        }
    }

    /// Whether the function only carries out what a reporter asked for.
    pub(crate) fn is_measuring(&self) -> bool {
        let function = self.name();
        let owner = function.trim_start_matches(['<', '&', '[', '(']);
        [
            "dmd::",
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
