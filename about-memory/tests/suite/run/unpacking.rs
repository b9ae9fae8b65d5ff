//! The library inside the program is written to a folder that no other user can change.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use about_memory::launch::unpack_library;

const NAME: &str = "libdmd.so";

fn unpack(contents: &[u8], folders: &[&Path]) -> std::io::Result<PathBuf> {
    let folders: Vec<PathBuf> = folders.iter().map(|folder| folder.to_path_buf()).collect();
    unpack_library(NAME, contents, Some(&folders))
}

#[test]
fn a_library_is_written_once_for_its_contents() {
    let folder = tempfile::tempdir().unwrap();
    let above = folder.path().join("cache");
    let first = unpack(b"first", &[&above]).unwrap();
    assert_eq!(fs::read(&first).unwrap(), b"first");
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
    // A program of root may continue as another user, who must be able to read the file.
    let (of_folder, of_file) =
        if rustix::process::geteuid().is_root() { (0o755, 0o644) } else { (0o700, 0o600) };
    assert_eq!(mode(&above), of_folder);
    assert_eq!(mode(first.parent().unwrap()), of_folder);
    assert_eq!(mode(&first), of_file);
    let number = |path: &Path| path.metadata().unwrap().ino();
    let before = number(&first);
    assert_eq!(unpack(b"first", &[&above]).unwrap(), first);
    assert_eq!(number(&first), before, "programs may have this file mapped");
    let second = unpack(b"second", &[&above]).unwrap();
    assert_ne!(second, first);
    assert_eq!(fs::read(&first).unwrap(), b"first");
}

#[test]
fn a_damaged_library_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = unpack(b"library", &[folder.path()]).unwrap();
    fs::write(&path, b"lib").unwrap();
    assert_eq!(unpack(b"library", &[folder.path()]).unwrap(), path);
    assert_eq!(fs::read(&path).unwrap(), b"library");
}

#[test]
fn a_folder_that_others_can_change_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    let linked = folder.path().join("linked");
    symlink(&shared, &linked).unwrap();
    let spaced = folder.path().join("a b");
    let good = folder.path().join("good");
    for bad in [&shared, &linked, &spaced] {
        let error = unpack(b"library", &[bad]).unwrap_err().to_string();
        assert!(error.starts_with(&bad.display().to_string()), "{error}");
        assert_eq!(fs::read_dir(&shared).unwrap().count(), 0);
        assert!(unpack(b"library", &[bad, &good]).unwrap().starts_with(&good));
    }
}

#[test]
fn a_file_of_another_user_is_replaced() {
    // Only root can create a file of another user.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = unpack(b"library", &[folder.path()]).unwrap();
    std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
    assert_eq!(unpack(b"library", &[folder.path()]).unwrap(), path);
    assert_eq!(path.metadata().unwrap().uid(), 0);
}
