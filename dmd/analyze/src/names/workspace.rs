//! Short paths of source files: `tantivy-0.22.1/src/indexer/mod.rs` in another package, `std/thread/mod.rs` in Rust's
//! library, and a path relative to the workspace for the program's own files.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::framework::FrameworkSources;
use super::source_path::{is_own, library, package_folder};
use crate::dump::CallFrame;

/// The program's own sources.
#[derive(Debug, Default)]
pub struct Workspace {
    /// The folder that contains all own sources.
    root: Option<String>,
    /// The package of `main`, if all files are in folders of other packages: cargo installed the program from a
    /// registry.
    package: Option<String>,
    /// The framework's sources. A program may contain them in a folder that looks like its own.
    framework: FrameworkSources,
}

impl Workspace {
    /// Finds the innermost folder that contains the packages of all own files.
    pub fn from_frames<'t>(frames: impl Iterator<Item = CallFrame<'t>>) -> Self {
        let mut framework = FrameworkSources::default();
        // The program's own files by package: one file for each source folder.
        let mut own: BTreeMap<(&str, &str), &str> = BTreeMap::new();
        let mut has_own = false;
        // The packages whose root function `main` is in `src/main.rs` or `src/bin`, and the packages whose root
        // function `main` is in another file.
        let (mut packages, mut others) = (BTreeSet::new(), BTreeSet::new());
        for frame in frames {
            let Some(file) = frame.file else { continue };
            if !is_own(file) {
                let below = package_folder(file).filter(|_| frame.function.is_some_and(is_main));
                if let Some((package, below)) = below.and_then(|path| path.split_once('/')) {
                    let is_program = below == "src/main.rs" || below.starts_with("src/bin/");
                    if is_program { &mut packages } else { &mut others }.insert(package);
                }
                continue;
            }
            framework.learn(&frame);
            if !file.starts_with('/') {
                has_own = true;
                continue;
            }
            let package = ["/src/", "/examples/", "/tests/", "/benches/"]
                .iter()
                .filter_map(|folder| file.find(folder))
                .min()
                .unwrap_or_else(|| file.rfind('/').unwrap_or(0));
            let sources = file.rfind("/src/").map_or(package, |at| at + "/src/".len());
            let sources = &file[..sources];
            own.entry((&file[..package], sources)).or_insert(file);
        }
        own.retain(|_, file| !framework.has_file(file));
        has_own |= !own.is_empty();
        let root = own.into_keys().map(|(package, _)| package).reduce(common);
        let root = root.filter(|root| !root.is_empty()).map(|root| format!("{root}/"));
        let mut packages = if packages.is_empty() { others } else { packages };
        let package = packages.pop_first().filter(|_| !has_own && packages.is_empty());
        Self { root, package: package.map(str::to_owned), framework }
    }

    /// Whether the function belongs to the program, and not to another package or a library.
    pub fn owns(&self, frame: &CallFrame<'_>) -> bool {
        let package = |file| package_folder(file).and_then(|path| path.split('/').next());
        frame.file.is_some_and(|file| {
            is_own(file) && !self.framework.has_file(file)
                || (self.package.is_some() && package(file) == self.package.as_deref())
        })
    }

    /// The short path of a file: relative to the workspace for the program's own files, `tantivy-0.22.1/src/a.rs` in
    /// another package, `std/thread/mod.rs` in Rust's library. Any other absolute path keeps its last three parts.
    pub fn short<'f>(&self, file: &'f str) -> Cow<'f, str> {
        if let Some((name, below)) = library(file) {
            return format!("{name}/{below}").into();
        }
        if let Some(below) = package_folder(file) {
            return below.into();
        }
        if let Some((_, checkout)) = file.split_once("/git/checkouts/") {
            let mut parts = checkout.splitn(3, '/');
            if let (Some(repository), Some(_), Some(below)) = (parts.next(), parts.next(), parts.next()) {
                let name = repository.rsplit_once('-').map_or(repository, |(name, _)| name);
                return format!("{name}/{below}").into();
            }
        }
        if let Some(below) = self.root.as_deref().and_then(|root| file.strip_prefix(root)) {
            return below.into();
        }
        match file.starts_with('/').then(|| file.rmatch_indices('/').nth(2)).flatten() {
            Some((at, _)) if at > 0 => format!("…{}", &file[at..]).into(),
            _ => file.into(),
        }
    }
}

/// Whether a function is the `main` at the root of its crate.
fn is_main(name: &str) -> bool {
    name.split_once("::").is_some_and(|(_, function)| function == "main")
}

/// The innermost folder that contains both paths.
fn common<'p>(a: &'p str, b: &'p str) -> &'p str {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let ends = |path: &str| matches!(path.as_bytes().get(same), None | Some(b'/'));
    if ends(a) && ends(b) {
        return &a[..same];
    }
    &a[..a.as_bytes()[..same].iter().rposition(|byte| *byte == b'/').unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_say_whose_file_it_is() {
        let file = |file| CallFrame { file: Some(file), ..CallFrame::default() };
        let own = ["/home/me/ws/app/src/main.rs", "/home/me/ws/core/src/a/b.rs", "/home/me/ws/app/build.rs"];
        let workspace = Workspace::from_frames(own.into_iter().map(file));
        for (file, short) in [
            ("/home/me/ws/app/src/main.rs", "app/src/main.rs"),
            ("/home/me/.cargo/registry/src/index-1/tantivy-0.22.1/src/a/b.rs", "tantivy-0.22.1/src/a/b.rs"),
            ("/home/me/.cargo/git/checkouts/app-0123/45/src/a.rs", "app/src/a.rs"),
            ("/rustc/0123/library/std/src/thread/mod.rs", "std/thread/mod.rs"),
            ("/rustc/0123/library/alloc/src/vec/mod.rs", "alloc/vec/mod.rs"),
            ("/build/a/b/c/d.c", "…/b/c/d.c"),
            ("./csu/libc-start.c", "./csu/libc-start.c"),
            ("a.c", "a.c"),
        ] {
            assert_eq!(workspace.short(file), short);
        }
        let function =
            |function, file| CallFrame { function: Some(function), file: Some(file), ..CallFrame::default() };
        let tool = function("tool::walk", "/home/me/.cargo/registry/src/index-1/tool-1.2.0/src/walk.rs");
        let main = function("tool::main", "/home/me/.cargo/registry/src/index-1/tool-1.2.0/src/main.rs");
        let other = function("rayon::join", "/home/me/.cargo/registry/src/index-1/rayon-1.0.0/src/join.rs");
        let installed = Workspace::from_frames([tool, main, other].into_iter());
        assert_eq!([tool, main, other].map(|frame| installed.owns(&frame)), [true, true, false]);
        // Libraries also have functions named `main`.
        let nested =
            function("rayon::test::main", "/home/me/.cargo/registry/src/index-1/rayon-1.0.0/src/test.rs");
        let library = function("wild::main", "/home/me/.cargo/registry/src/index-1/wild-1.0.0/src/lib.rs");
        let installed = Workspace::from_frames([nested, library, tool, main].into_iter());
        assert_eq!(
            [tool, main, nested, library].map(|frame| installed.owns(&frame)),
            [true, true, false, false]
        );
        let built =
            Workspace::from_frames([tool, main, other, file("/home/me/ws/app/src/main.rs")].into_iter());
        assert!(!built.owns(&main));
        let one = Workspace::from_frames(core::iter::once(file("/home/me/app/src/main.rs")));
        assert_eq!(one.short("/home/me/app/src/main.rs"), "src/main.rs");
        let framework = function("memory_reporter::collect", "/home/me/memory/reporter/src/collect.rs");
        let app = function("app::main", "/home/me/app/src/main.rs");
        let beside = Workspace::from_frames([framework, app].into_iter());
        assert_eq!([framework, app].map(|frame| beside.owns(&frame)), [false, true]);
        assert_eq!(beside.short("/home/me/app/src/main.rs"), "src/main.rs");
        let test = function("test::main", "/home/me/memory/reporter/tests/a.rs");
        let own_tests = Workspace::from_frames([framework, test].into_iter());
        assert_eq!(own_tests.short("/home/me/memory/reporter/tests/a.rs"), "tests/a.rs");
        assert_eq!(Workspace::from_frames([file("/a/src/b.rs"), file("/c/src/d.rs")].into_iter()).root, None);
    }
}
