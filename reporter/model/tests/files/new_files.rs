//! Files that get their final name when they are complete.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use memory_report::new_file::{self, Destination, INCOMPLETE, NewFile, Readers};

/// Names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    new_file::write(path, Readers::User, |file| file.write_all(text.as_bytes()))
}

#[test]
fn a_file_has_its_name_once_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump.json.gz");
    fs::write(&path, "old").unwrap();
    let written = new_file::write(&path, Readers::User, |file| -> io::Result<u8> {
        file.write_all(b"ne")?;
        assert_eq!(fs::read(&path)?, b"old");
        let names = names(folder.path());
        assert!(names[1].starts_with(INCOMPLETE) && names[1].ends_with(".json.gz"), "{names:?}");
        file.write_all(b"w")?;
        Ok(7)
    });
    assert_eq!(written.unwrap(), 7);
    assert_eq!(
        (fs::read(&path).unwrap(), names(folder.path())),
        (b"new".to_vec(), vec!["dump.json.gz".into()])
    );
}

#[test]
fn a_failure_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    write(&path, "old").unwrap();
    let failed = new_file::write(&path, Readers::User, |file| {
        file.write_all(b"half")?;
        Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull))
    });
    assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"old".to_vec(), vec!["a".to_owned()]));
    assert!(write(&folder.path().join("nowhere/a"), "").is_err() && write(Path::new("/"), "").is_err());
}

#[test]
fn a_new_name_takes_no_other_file_s_place() {
    let folder = tempfile::tempdir().unwrap();
    let name = |number: u32| folder.path().join(format!("a-{number}"));
    fs::write(name(1), "other").unwrap();
    let mut new = NewFile::create(&name(1), Readers::User).unwrap();
    new.file().write_all(b"mine").unwrap();
    assert_eq!(new.finish_new(&name(1)).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    new.finish_new(&name(2)).unwrap();
    drop(new);
    assert_eq!(names(folder.path()), ["a-1", "a-2"]);
    assert_eq!(
        (fs::read(name(1)).unwrap(), fs::read(name(2)).unwrap()),
        (b"other".to_vec(), b"mine".to_vec())
    );
}

/// A process that opened the old file earlier does not see the new content.
#[cfg(unix)]
#[test]
fn a_file_from_before_is_not_written_into() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let mut there = File::open(&path).unwrap();
    write(&path, "private").unwrap();
    let mut seen = String::new();
    there.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, "old");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    new_file::write(&path, Readers::Umask, |_| Ok::<_, io::Error>(())).unwrap();
    fs::write(folder.path().join("usual"), "").unwrap();
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("a"), mode("usual"));
}

#[cfg(unix)]
#[test]
fn links_lead_to_files_and_streams() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("kept")).unwrap();
    symlink("kept/a", at("link")).unwrap();
    // At first the target of the link is missing.
    for text in ["first", "second"] {
        write(&at("link"), text).unwrap();
        assert_eq!(fs::read_to_string(at("kept/a")).unwrap(), text);
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    }
    symlink("loop", at("loop")).unwrap();
    assert!(Destination::at_path(&at("loop")).is_err());

    let null = Destination::at_path(Path::new("/dev/null")).unwrap();
    assert_eq!(null, Destination::Stream("/dev/null".into()));
    write(Path::new("/dev/null"), "nothing").unwrap();
    // An open file is written in place, not replaced.
    if cfg!(target_os = "linux") {
        let open = File::create(at("open")).unwrap();
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
        symlink(&link, at("output")).unwrap();
        write(&at("output"), "here").unwrap();
        assert_eq!(open.metadata().unwrap().len(), 4);
        assert_eq!(names(folder.path()), ["kept", "link", "loop", "open", "output"]);
    }
}

/// Uses a folder in which all users may create files, but may replace only their own files. Only root can create files
/// of other users.
#[cfg(target_os = "linux")]
#[test]
fn nothing_is_written_to_what_another_user_made() {
    use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};

    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(at("precious"), "precious").unwrap();
    symlink(at("precious"), at("trap")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
    const OTHER: u32 = 54321;
    if lchown(at("trap"), Some(OTHER), None).is_err() {
        return;
    }
    chown(at("pipe"), Some(OTHER), None).unwrap();
    assert!(pipe.success());
    write(&at("trap"), "private").unwrap();
    assert_eq!(fs::read(at("precious")).unwrap(), b"precious");
    assert!(fs::symlink_metadata(at("trap")).unwrap().is_file());
    assert_eq!(write(&at("pipe"), "private").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
}
