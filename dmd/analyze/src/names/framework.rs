//! The frames of the framework itself: frames of `memory-reporter` and of the engine.
//!
//! Each report passes through the framework, so these frames say nothing about the reporter. A program may contain the
//! framework in one of its own folders (`path = "../memory"`). Then the path of a file does not show that the file
//! belongs to the framework, but the names of some functions show this. All files below the `src` folder of such a
//! function belong to the framework.

use std::collections::BTreeSet;

use super::source_path::package;
use crate::dump::CallFrame;

/// The crates of the framework.
const CRATES: [&str; 6] =
    ["memory_reporter::", "memory_report::", "dmd::", "dmd_unwind::", "dmd_analyze::", "dmd_format::"];

/// The same crates, as packages of a registry.
const PACKAGES: [&str; 6] =
    ["memory-reporter", "memory-report", "memory-dmd", "dmd-unwind", "dmd-analyze", "dmd-format"];

/// The folders of the framework's sources.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameworkSources {
    folders: BTreeSet<String>,
}

impl FrameworkSources {
    /// Finds the framework's folders: the source folders of functions whose names show that they are the framework's.
    pub(crate) fn from_frames<'t>(frames: impl Iterator<Item = CallFrame<'t>>) -> Self {
        let mut framework = Self::default();
        frames.for_each(|frame| framework.learn(&frame));
        framework
    }

    /// Adds the folder of a function whose name is the framework's.
    pub(crate) fn learn(&mut self, frame: &CallFrame<'_>) {
        let file = frame.file.filter(|file| file.starts_with('/') && file.ends_with(".rs"));
        // A method's trait may be the program's, even if its type is the framework's.
        let is_method = frame.function.is_some_and(|function| function.starts_with('<'));
        if let Some(folder) = file.and_then(source_folder)
            && is_named(frame)
            && !is_method
            && !self.folders.contains(folder)
        {
            self.folders.insert(folder.to_owned());
        }
    }

    /// Whether a function is the framework's.
    pub(crate) fn has(&self, frame: &CallFrame<'_>) -> bool {
        match frame.file {
            Some(file) if file.ends_with(".rs") => {
                self.has_file(file) || package(file).is_some_and(|(name, _)| PACKAGES.contains(&name))
            }
            _ => is_named(frame),
        }
    }

    /// Whether a source file is in one of the folders.
    pub(crate) fn has_file(&self, file: &str) -> bool {
        source_folder(file).is_some_and(|folder| self.folders.contains(folder))
    }
}

/// The innermost folder `src` around a file.
fn source_folder(file: &str) -> Option<&str> {
    file.rfind("/src/").map(|at| &file[..at + "/src/".len()])
}

fn is_named(frame: &CallFrame<'_>) -> bool {
    let function = frame.function.unwrap_or_default();
    let owner = function.trim_start_matches(['<', '&', '[', '(', '*']);
    let owner = owner.strip_prefix("mut ").unwrap_or(owner);
    CRATES.iter().any(|name| owner.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame<'t>(function: &'t str, file: &'t str) -> CallFrame<'t> {
        CallFrame { function: Some(function), file: Some(file), ..CallFrame::default() }
    }

    #[test]
    fn the_files_beside_named_functions_are_the_frameworks() {
        let named = frame(
            "memory_reporter::collect::driver::collect_reports",
            "/home/me/memory/reporter/src/collect.rs",
        );
        let walk =
            frame("<alloc::vec::Vec<T> as X>::size_of", "/home/me/memory/reporter/src/measure/impls.rs");
        let user = frame("<app::Cache as memory_reporter::MallocSizeOf>::size", "/home/me/app/src/cache.rs");
        let extended =
            frame("<memory_reporter::Reports as app::Extension>::more", "/home/me/app/src/extension.rs");
        let nested = frame("app::src", "/home/me/memory/reporter/src/examples/src/main.rs");
        let framework = FrameworkSources::from_frames([named, walk, user, extended].into_iter());
        assert_eq!(
            [named, walk, user, extended, nested].map(|frame| framework.has(&frame)),
            [true, true, false, false, false]
        );
        let installed =
            frame("f", "/home/me/.cargo/registry/src/index-1/memory-reporter-1.0.0/src/measure.rs");
        assert!(FrameworkSources::default().has(&installed));
    }
}
