//! The module that a source file is, by where it lies.
//!
//! Where debug information has lines only, functions that were inlined have a name, but no path.

/// Folders of crates, with the names of these.
#[derive(Debug, Default)]
pub(crate) struct Crates(Vec<(String, String)>);

impl Crates {
    /// From the names of compilation units and the folders they were compiled in, as rustc gives them:
    /// `ROOT.rs/@/CRATE.HASH-cgu.N`.
    pub(crate) fn of_units<'u>(units: impl Iterator<Item = (&'u str, &'u str)>) -> Self {
        let mut crates: Vec<(String, String)> = units
            .filter_map(|(name, folder)| {
                let (root, object) = name.split_once("/@/")?;
                let below = root.rsplit_once('/').map_or("", |(below, _)| below);
                let root =
                    if below.starts_with('/') { below.to_owned() } else { format!("{folder}/{below}") };
                Some((format!("{}/", root.trim_end_matches('/')), object.split('.').next()?.to_owned()))
            })
            .collect();
        // The folder nearest to a file tells its crate.
        crates.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
        crates.dedup();
        Self(crates)
    }

    /// `app::cache` for `/home/me/app/src/cache.rs`. A crate without debug information of its own, whose
    /// functions were inlined elsewhere, goes by its folder.
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

/// `alloc` and `vec/mod.rs` of `/rustc/HASH/library/alloc/src/vec/mod.rs`.
pub(crate) fn library(file: &str) -> Option<(&str, &str)> {
    let inside = file.starts_with("/rustc/") || file.contains("/rustlib/src/rust/");
    let (_, path) = file.split_once("/library/").filter(|_| inside)?;
    path.split_once("/src/")
}

/// `hashbrown` and `raw.rs` of `/home/me/.cargo/registry/src/INDEX/hashbrown-0.17.0/src/raw.rs`.
pub(crate) fn package(file: &str) -> Option<(&str, &str)> {
    let (_, path) = file.split_once("/registry/src/")?;
    let (_, path) = path.split_once('/')?;
    let (package, below) = path.split_once("/src/")?;
    let version = package.match_indices('-').map(|(at, _)| at);
    let end = version.rev().find(|at| package[at + 1..].starts_with(|c: char| c.is_ascii_digit()))?;
    Some((&package[..end], below))
}

/// `app` and `cache.rs` of `/home/me/app/src/cache.rs`, which is how cargo lays packages out.
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
