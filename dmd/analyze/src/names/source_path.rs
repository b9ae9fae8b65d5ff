//! Finds the module of a source file from its path.
//!
//! If debug information has only lines, the name of an inlined function contains no module. The source file shows it.

/// The root folders of crates, each with the crate's name.
#[derive(Debug, Default)]
pub(crate) struct CrateFolders(Vec<(String, String)>);

/// A compilation unit's name in rustc's form: `ROOT.rs/@/CRATE.HASH-cgu.N`, or `ROOT.rs/@/HASH` from an incremental
/// compilation.
#[derive(Debug)]
pub(crate) struct UnitName {
    /// The folder of the crate's root file, with a slash at its end.
    pub(crate) root: String,
    /// The crate; `None` if the name does not contain it.
    pub(crate) of_crate: Option<String>,
}

impl UnitName {
    /// Parses the name of a unit that was compiled in `folder`. `None` if the name has another form.
    pub(crate) fn parse(name: &str, folder: &str) -> Option<Self> {
        let (root, object) = name.split_once("/@/")?;
        let below = root.rsplit_once('/').map_or("", |(below, _)| below);
        let root = if below.starts_with('/') { below.to_owned() } else { format!("{folder}/{below}") };
        let of_crate = object.split_once('.').map(|(of_crate, _)| of_crate.to_owned());
        Some(Self { root: format!("{}/", root.trim_end_matches('/')), of_crate })
    }
}

impl CrateFolders {
    /// Stores the root folders of crates, each with the crate's name.
    pub(crate) fn new(mut crates: Vec<(String, String)>) -> Self {
        // The innermost folder that contains a file decides the file's crate.
        crates.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
        crates.dedup();
        Self(crates)
    }

    /// The module of a source file: `app::cache` for `/home/me/app/src/cache.rs`. If all functions of a crate were
    /// inlined into other crates, the crate has no debug information of its own. Then the module starts with the name
    /// of the crate's folder.
    pub(crate) fn module(&self, file: &str) -> Option<String> {
        let known = self.0.iter().find_map(|(root, name)| Some((&**name, file.strip_prefix(&**root)?)));
        let (name, below) = library(file).or_else(|| package(file)).or(known).or_else(|| folder(file))?;
        let name = name.replace('-', "_");
        let below = below.strip_suffix(".rs")?;
        let modules = below.split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main" | ""));
        let path: Vec<&str> = core::iter::once(&*name).chain(modules).collect();
        let is_name = |part: &&str| {
            part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && !part.starts_with(|c: char| c.is_ascii_digit())
        };
        path.iter().all(is_name).then(|| path.join("::"))
    }
}

/// The parts `alloc` and `vec/mod.rs` of `/rustc/HASH/library/alloc/src/vec/mod.rs`.
pub(crate) fn library(file: &str) -> Option<(&str, &str)> {
    let inside = file.starts_with("/rustc/") || file.contains("/rustlib/src/rust/");
    let (_, path) = file.split_once("/library/").filter(|_| inside)?;
    path.split_once("/src/")
}

/// The part `hashbrown-0.17.0/src/raw.rs` of `/home/me/.cargo/registry/src/INDEX/hashbrown-0.17.0/src/raw.rs`.
pub(crate) fn package_folder(file: &str) -> Option<&str> {
    if let Some((_, path)) = file.split_once("/rust/deps/") {
        // The folder `/rust/deps/` contains the packages that Rust's library uses.
        return Some(path);
    }
    let (_, path) = file.split_once("/registry/src/")?;
    path.split_once('/').map(|(_, path)| path)
}

/// The parts `hashbrown` and `raw.rs` of `/home/me/.cargo/registry/src/INDEX/hashbrown-0.17.0/src/raw.rs`. For a file
/// that a build script wrote, the package of the build script.
pub(crate) fn package(file: &str) -> Option<(&str, &str)> {
    let Some(path) = package_folder(file) else { return built_package(file) };
    let (package, below) = path.split_once("/src/")?;
    let version = package.match_indices('-').map(|(at, _)| at);
    let end = version.rev().find(|at| package[at + 1..].starts_with(|c: char| c.is_ascii_digit()))?;
    Some((&package[..end], below))
}

/// The parts `tikv-jemalloc-sys` and `build/src/jemalloc.c` of
/// `/home/me/app/target/release/build/tikv-jemalloc-sys-0123456789abcdef/out/build/src/jemalloc.c`.
fn built_package(file: &str) -> Option<(&str, &str)> {
    let (above, below) = file.split_once("/out/")?;
    let (_, folder) = above.rsplit_once("/build/")?;
    let (package, hash) = folder.rsplit_once('-')?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hash && !package.contains('/')).then_some((package, below))
}

/// The parts `app` and `cache.rs` of `/home/me/app/src/cache.rs`, for packages in cargo's layout.
fn folder(file: &str) -> Option<(&str, &str)> {
    let (above, below) = file.rsplit_once("/src/")?;
    // `/home/me/.cargo/git/checkouts/app-0123456789abcdef/0123456/src/cache.rs`
    if let Some((_, checkout)) = above.split_once("/git/checkouts/")
        && let Some((repository, rest)) = checkout.split_once('/')
        && !rest.contains('/')
    {
        return Some((repository.rsplit_once('-')?.0, below));
    }
    Some((above.rsplit_once('/')?.1, below)).filter(|(name, _)| !name.is_empty())
}

/// Parts of paths that show a foreign source file.
const FOREIGN: &[&str] =
    &["/registry/src/", "/git/checkouts/", "/vendor/", "/rustlib/src/", "/rust/deps/", "/.cargo/"];

/// Whether the file belongs to the program's own workspace, by its path.
pub(crate) fn is_own(file: &str) -> bool {
    file.ends_with(".rs")
        && !file.starts_with("/rustc/")
        && !file.starts_with("./library/")
        && !FOREIGN.iter().any(|folder| file.contains(folder))
}
