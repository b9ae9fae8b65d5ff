//! Unpacks a file of this program into a folder that only this user can change.
//!
//! A program that root starts may continue as another user and start more programs. Therefore all users can read root's
//! file.

use std::fs::{self, DirBuilder, Permissions};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use memory_report::new_file::{NewFile, Readers};
use rustix::fs::StatVfsMountFlags;

/// Returns the folders for unpacked files, the best first. Root does not use `$HOME`: it may belong to another user,
/// who could rename folders in it.
pub(crate) fn folders_for_unpacked() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let user = rustix::process::geteuid();
    let cache = match user.is_root() {
        true => Some(PathBuf::from("/var/cache")),
        false => variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache"))),
    };
    let cache = cache.map(|cache| cache.join("about-memory"));
    let temporary = std::env::temp_dir().join(format!("about-memory-{}", user.as_raw()));
    cache.into_iter().chain([temporary]).collect()
}

/// Returns the modes of folders and files. Only the user can change files. Other users can read a file only if it is
/// root's.
fn modes() -> (u32, u32) {
    if rustix::process::geteuid().is_root() { (0o755, 0o644) } else { (0o700, 0o600) }
}

/// Writes the file to the first folder that this user can use, below a name derived from its contents. A file from an
/// earlier call stays if it has the same contents.
pub(crate) fn unpack(name: &str, contents: &[u8], folders: &[PathBuf]) -> io::Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    hasher.write(contents);
    let key = format!("{name}-{:016x}", hasher.finish());
    let mut reasons = Vec::new();
    for folder in folders {
        match unpack_into(&folder.join(&key), folder, name, contents) {
            Ok(path) => return Ok(path),
            Err(error) => reasons.push(format!("{}: {error}", folder.display())),
        }
    }
    Err(io::Error::other(reasons.join("; ")))
}

fn unpack_into(folder: &Path, above: &Path, name: &str, contents: &[u8]) -> io::Result<PathBuf> {
    if above.to_str().is_none_or(|path| path.contains([' ', ':', '\t', '\n'])) {
        return Err(io::Error::other("the loader accepts no paths with spaces or colons"));
    }
    if let Some(parent) = above.parent() {
        fs::create_dir_all(parent)?;
    }
    make_private(above)?;
    make_private(folder)?;
    if rustix::fs::statvfs(folder)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(io::Error::other("its file system runs no programs (noexec)"));
    }
    let path = folder.join(name);
    if !is_unchanged(&path, contents) {
        let mut file = NewFile::create(&path, Readers::User)?;
        file.file().write_all(contents)?;
        file.file().set_permissions(Permissions::from_mode(modes().1))?;
        file.finish()?;
    }
    Ok(path)
}

/// Creates the folder, or checks that no other user can change it.
fn make_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
        // The umask may have removed rights.
        Ok(()) => return fs::set_permissions(folder, Permissions::from_mode(modes().0)),
    }
    let about = fs::symlink_metadata(folder)?;
    if !about.is_dir() || about.uid() != rustix::process::geteuid().as_raw() || about.mode() & 0o022 != 0 {
        return Err(io::Error::other(format!("others can change {}", folder.display())));
    }
    Ok(())
}

fn is_unchanged(path: &Path, contents: &[u8]) -> bool {
    let is_own_file = fs::symlink_metadata(path).is_ok_and(|about| {
        about.is_file()
            && about.uid() == rustix::process::geteuid().as_raw()
            && about.mode() & 0o022 == 0
            && about.len() == contents.len() as u64
    });
    is_own_file && fs::read(path).is_ok_and(|found| found == contents)
}
