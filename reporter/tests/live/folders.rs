//! The folder of the socket, and the folders that are refused.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use super::Victim;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn only_the_user_can_look_into_the_folder() {
    let victim = Victim::start("listen");
    assert_eq!(mode(&victim.folder()), 0o700);
    assert_eq!(mode(&victim.socket()), 0o600);
    let name = victim.socket().file_name().unwrap().to_str().unwrap().to_owned();
    let (pid, start) = name.strip_suffix(".sock").unwrap().split_once('-').unwrap();
    assert_eq!(pid, victim.pid().to_string());
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    assert_eq!(stat.rsplit_once(") ").unwrap().1.split(' ').nth(19), Some(start));
}

#[test]
fn the_socket_is_removed_at_the_end() {
    let mut victim = Victim::start("listen");
    let folder = victim.folder();
    assert_eq!(victim.sockets().len(), 1);
    assert!(victim.stop().0.success());
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
}

/// The error of a program that finds the result of `make` in place of its folder.
fn error(make: impl FnOnce(&Path)) -> String {
    let (_, mut told) = Victim::told("fails", |_, runtime| make(&runtime.join("about-memory")));
    told.pop().unwrap()
}

#[test]
fn an_open_folder_is_refused() {
    for bits in [0o755, 0o770, 0o701, 0o720] {
        let error = error(|folder| {
            fs::create_dir(folder).unwrap();
            fs::set_permissions(folder, Permissions::from_mode(bits)).unwrap();
        });
        assert!(
            error.ends_with(&format!(
                "about-memory: is open to other users (mode {bits:03o}): restrict its mode"
            )),
            "{error}"
        );
    }
}

#[test]
fn a_symbolic_link_is_refused() {
    let elsewhere = tempfile::tempdir().unwrap();
    let error = error(|folder| symlink(elsewhere.path(), folder).unwrap());
    assert!(error.ends_with("about-memory: not a folder"), "{error}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_file_is_refused() {
    let error = error(|folder| fs::write(folder, "").unwrap());
    assert!(error.ends_with("about-memory: not a folder"), "{error}");
}

#[test]
fn a_folder_that_others_can_exchange_is_refused() {
    let error = error(|folder| {
        fs::set_permissions(folder.parent().unwrap(), Permissions::from_mode(0o777)).unwrap();
    });
    assert!(error.contains(": is open to other users (mode 777)"), "{error}");
}

#[test]
fn the_variable_s_trouble_is_one_line_and_the_program_goes_on() {
    let victim = Victim::start_with("rest", |command, runtime| {
        command.env("ABOUT_MEMORY", "listen");
        fs::write(runtime.join("about-memory"), "").unwrap();
    });
    let folder = victim.folder().display().to_string();
    let (status, stderr) = victim.end();
    assert!(status.success());
    assert_eq!(stderr, format!("memory-reporter: ABOUT_MEMORY: \"listen\": {folder}: not a folder\n"));
}
