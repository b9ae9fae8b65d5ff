//! Finds `libdmd.so`.

use std::borrow::Cow;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::Failure;

const NAME: &str = "libdmd.so";

/// The contents of the library. An optimized build of this program contains the library.
#[cfg(contains_libdmd)]
const CONTENTS: Option<&[u8]> = Some(include_bytes!(env!("LIBDMD")));
#[cfg(not(contains_libdmd))]
const CONTENTS: Option<&[u8]> = None;

/// Returns the library that the user named; else the library in this program; else the library that was built or
/// installed with this program.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let (None, Some(contents)) = (named, CONTENTS) {
        return about_memory::launch::unpack_library(NAME, contents, None).map_err(|error| {
            Failure::File(NAME.to_owned(), anyhow::anyhow!("cannot be unpacked into a folder: {error}"))
        });
    }
    let found = match named {
        Some(path) if path.is_file() => path.to_owned(),
        Some(path) => {
            let error = anyhow::anyhow!(
                "the library was not found; build it with: cargo build --release -p dmd-preload"
            );
            return Err(Failure::File(path.display().to_string(), error));
        }
        None => places().into_iter().find(|path| path.is_file()).ok_or_else(|| {
            let error = anyhow::anyhow!(
                "is neither beside this program, nor in ../lib, nor in the target folder; \
                 build it with: cargo build --release -p dmd-preload"
            );
            Failure::File(NAME.to_owned(), error)
        })?,
    };
    // The path must be absolute because the program may change its current folder.
    let failure = |error: anyhow::Error| Failure::File(found.display().to_string(), error);
    let path = found.canonicalize().map_err(|error| failure(error.into()))?;
    if path.to_str().is_none_or(|path| path.contains([' ', ':', '\t', '\n'])) {
        return Err(failure(anyhow::anyhow!(
            "LD_PRELOAD cannot contain a path with spaces or colons; move the library"
        )));
    }
    Ok(path)
}

/// Returns the contents of the library that the user named, or that [`find`] finds.
pub(in crate::cli) fn contents(named: Option<&Path>) -> Result<Cow<'static, [u8]>, Failure> {
    if let (None, Some(contents)) = (named, CONTENTS) {
        return Ok(Cow::Borrowed(contents));
    }
    let path = find(named)?;
    let contents =
        fs::read(&path).map_err(|error| Failure::File(path.display().to_string(), error.into()))?;
    Ok(Cow::Owned(contents))
}

fn places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Ok(program) = env::current_exe()
        && let Some(folder) = program.parent()
    {
        places.push(folder.join(NAME));
        if let Some(above) = folder.parent() {
            places.push(above.join("lib").join(NAME));
            places.extend(["release", "debug"].map(|profile| above.join(profile).join(NAME)));
        }
    }
    if let Some(target) = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from) {
        places.extend(["release", "debug"].map(|profile| target.join(profile).join(NAME)));
    }
    places
}
