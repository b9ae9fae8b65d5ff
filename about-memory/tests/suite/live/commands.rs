//! `list`, `save` and `minimize`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use memory_reporter::file;

use super::herd::{Herd, drain, stderr};

#[test]
fn list_names_who_listens() {
    let mut herd = Herd::new();
    let pid = herd.start("a-name");
    let text = herd.shown(&["list"]);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["PID", "NAME", "UPTIME", "SOCKET"]);
    assert_eq!(lines[1][..2], [&*pid.to_string(), "a-name"]);
    assert!(lines[1][2].ends_with('s'), "{text}");
    assert!(lines[1][3].starts_with(herd.folder().to_str().unwrap()), "{text}");
    assert_eq!(lines.len(), 2);
}

#[test]
fn list_removes_what_the_dead_left_and_nothing_else() {
    let mut herd = Herd::new();
    let (dead, alive) = (herd.start("dead"), herd.start("alive"));
    herd.kill(dead);
    fs::write(herd.folder().join("notes.txt"), "").unwrap();
    fs::write(herd.folder().join("4200001-1.sock"), "not a socket").unwrap();
    let hung = herd.pretend(4_200_002, drain);
    assert_eq!(fs::read_dir(herd.folder()).unwrap().count(), 5);
    let text = herd.shown(&["list", "--timeout", "0.5"]);
    assert!(text.contains(&format!("{alive}  alive ")), "{text}");
    assert!(!text.contains(&dead.to_string()), "{text}");
    assert!(text.contains("4200001  (its socket's file is not a socket of this user) "), "{text}");
    assert!(text.contains("4200002  (did not answer within 500ms) "), "{text}");
    assert_eq!(fs::read_dir(herd.folder()).unwrap().count(), 4);
    assert!(hung.exists());
}

#[test]
fn list_removes_what_a_process_left_that_is_another_program_now() {
    let herd = Herd::new();
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap();
    let path = herd.folder().join(format!("{}-{start}.sock", std::process::id()));
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(herd.shown(&["list"]).contains(" (does not listen"));
    let old = std::process::Command::new("touch").args(["-d", "@1000000000"]).arg(&path).status().unwrap();
    assert!(old.success());
    assert_eq!(herd.shown(&["list"]), "");
    assert!(!path.exists());
}

#[test]
fn nobody_is_no_error_for_list_and_one_for_show() {
    let herd = Herd::new();
    let output = herd.about_memory(&["list"]);
    assert!(output.status.success());
    assert!(output.stdout.is_empty());
    assert!(stderr(&output).starts_with("about-memory: no process listens: "));
    let output = herd.about_memory(&["show", "--all"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("about-memory: no process listens: "), "{}", stderr(&output));
}

/// Each message says what to do next.
#[test]
fn a_process_that_gives_no_answer_is_explained() {
    let herd = Herd::new();
    let hung = herd.pretend(4_200_002, drain);
    let own = std::process::id().to_string();
    for (arguments, process, expected) in [
        (
            &["show", "4200001"][..],
            "4200001",
            "does not listen: no process has this id; `about-memory list` shows",
        ),
        (&["heap", "types", "4200001"], "4200001", "no process has this id; `about-memory list` shows"),
        (
            &["show", &own],
            &own,
            "does not listen: start it with `about-memory run --listen` or ABOUT_MEMORY=listen",
        ),
        (
            &["show", "4200002", "--timeout", "0.5"],
            "4200002",
            "did not answer within 500ms: it is busy or stopped; wait longer with --timeout 60, or continue a stopped \
             process with kill -CONT 4200002",
        ),
    ] {
        let output = herd.about_memory(arguments);
        assert_eq!(output.status.code(), Some(1));
        let text = stderr(&output);
        assert!(text.starts_with(&format!("about-memory: process {process}: {expected}")), "{text}");
    }
    assert!(hung.exists());
    assert!(herd.shown(&["list", "--help"]).contains("about-memory run --listen"));
}

#[test]
fn a_folder_that_others_can_look_into_is_not_used() {
    let herd = Herd::new();
    fs::set_permissions(herd.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    let output = herd.about_memory(&["list"]);
    assert_eq!(output.status.code(), Some(1));
    let folder = herd.folder().display().to_string();
    assert_eq!(
        stderr(&output),
        format!(
            "about-memory: cannot list processes: {folder}: is open to other users (mode 755): restrict its mode\n"
        )
    );
    fs::remove_dir(herd.folder()).unwrap();
    symlink("/", herd.folder()).unwrap();
    let output = herd.about_memory(&["list"]);
    assert!(stderr(&output).ends_with("about-memory: not a folder\n"), "{}", stderr(&output));
}

#[test]
fn save_writes_what_show_shows() {
    let mut herd = Herd::new();
    let pid = herd.start("one").to_string();
    assert_eq!(herd.shown(&["save", &pid, "plain.json"]), "");
    let file = herd.path().join("plain.json");
    assert!(fs::read_to_string(&file).unwrap().starts_with("{\n \"version\": 1,\n"));
    assert!(file::read(&file).unwrap().iter().any(|report| report.path == "names/secret"));
    assert!(herd.shown(&["show", "plain.json"]).contains(&format!("Main Process (pid {pid})")));

    herd.shown(&["save", &pid, "packed.json.gz", "--anonymize", "--minimize"]);
    let file = herd.path().join("packed.json.gz");
    assert!(fs::read(&file).unwrap().starts_with(&[0x1f, 0x8b]));
    let set = file::read(&file).unwrap();
    assert!(set.iter().all(|report| !report.path.contains("secret")));
    let size = set.iter().find(|report| report.path == "explicit/cache/data").unwrap().amount;
    assert_eq!(size, 1 << 20);

    assert_eq!(herd.shown(&["save", "-o", "by-option.json", &pid]), "");
    let file = herd.path().join("by-option.json");
    assert!(file::read(&file).unwrap().iter().any(|report| report.path == "names/secret"));
    let printed = herd.shown(&["save", &pid, "--output=-"]);
    assert!(printed.starts_with("{\n \"version\": 1,\n") && printed.contains("names/secret"));

    let output = herd.about_memory(&["save", &pid, "no/such/folder/file.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("about-memory: no/such/folder/file.json: cannot be written: "));
}

#[test]
fn save_all_makes_numbered_folders() {
    let mut herd = Herd::new();
    let (plain, dmd, bad) = (herd.start("one"), herd.start("two dmd"), herd.start("three bad-dmd"));
    assert_eq!(herd.shown(&["save", "--all", "-o", "out"]), "out/about-memory-1\n");
    let output = herd.about_memory(&["save", "--all", "out"]);
    assert_eq!(output.stdout, b"out/about-memory-2\n");
    let told = stderr(&output);
    assert!(told.contains(&format!("three (pid {bad}): no DMD dump: refused: not today")), "{told}");
    let folder = herd.path().join("out/about-memory-2");
    let mut names: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, [format!("dmd-{dmd}.json.gz"), "memory-report.json.gz".to_owned()]);
    assert_eq!(fs::read(folder.join(&names[0])).unwrap(), b"\x1f\x8bdump");
    let set = file::read(folder.join("memory-report.json.gz")).unwrap();
    for (name, pid) in [("one", plain), ("two", dmd), ("three", bad)] {
        assert!(set.iter().any(|report| report.process == format!("{name} (pid {pid})")), "{name}");
    }
    assert!(set.warnings().iter().any(|warning| warning.message == "no DMD dump: refused: not today"));
}

#[test]
fn what_is_saved_of_processes_is_for_this_user_only() {
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let mut herd = Herd::new();
    let (dmd, heap) = (herd.start("two dmd"), herd.start("name heap").to_string());
    for name in ["old.json", "old.fxsnapshot"] {
        fs::write(herd.path().join(name), "for all").unwrap();
        fs::set_permissions(herd.path().join(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    // A reader with an open handle of an old file must not see the new contents.
    let mut old = ["old.json", "old.fxsnapshot"].map(|name| fs::File::open(herd.path().join(name)).unwrap());
    for name in ["new.json", "old.json"] {
        herd.shown(&["save", &heap, name]);
        assert_eq!(mode(herd.path().join(name)), 0o600, "{name}");
    }
    for name in ["new.fxsnapshot", "old.fxsnapshot"] {
        herd.shown(&["snapshot", "save", &heap, name]);
        assert_eq!(mode(herd.path().join(name)), 0o600, "{name}");
    }
    for old in &mut old {
        let mut seen = String::new();
        std::io::Read::read_to_string(old, &mut seen).unwrap();
        assert_eq!(seen, "for all");
    }
    herd.shown(&["save", "--all", "out"]);
    let folder = herd.path().join("out/about-memory-1");
    assert_eq!(mode(folder.join("memory-report.json.gz")), 0o600);
    assert_eq!(mode(folder.join(format!("dmd-{dmd}.json.gz"))), 0o600);
    assert_eq!(mode(folder), 0o700);
    // The page of a process contains private reports, so it is private. The page of a private file is also private.
    herd.shown(&["html", &heap, "-o", "live.html"]);
    assert_eq!(mode(herd.path().join("live.html")), 0o600);
    herd.shown(&["html", "new.json", "-o", "private.html"]);
    assert_eq!(mode(herd.path().join("private.html")), 0o600);
    fs::set_permissions(herd.path().join("new.json"), fs::Permissions::from_mode(0o644)).unwrap();
    herd.shown(&["html", "new.json", "-o", "file.html"]);
    let usual = herd.path().join("usual");
    fs::write(&usual, "").unwrap();
    assert_eq!(mode(herd.path().join("file.html")), mode(usual));
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let mut herd = Herd::new();
    herd.start("one");
    fs::write(herd.path().join("file"), "").unwrap();
    let output = herd.about_memory(&["save", "--all", "file/reports"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).starts_with("about-memory: file/reports: cannot be written: "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn minimize_runs_the_hooks() {
    let mut herd = Herd::new();
    let pid = herd.start("one").to_string();
    let text = herd.shown(&["minimize", &pid]);
    assert!(text.starts_with("resident: ") && text.ends_with(" now\n"), "{text}");
    assert!(herd.shown(&["show", &pid, "--verbose"]).contains("1,048,576 B "));
}

#[test]
fn a_process_is_compared_with_a_file_and_checked() {
    let mut herd = Herd::new();
    let pid = herd.start("one");
    let number = pid.to_string();
    herd.shown(&["save", &number, "before.json"]);
    herd.nudge(pid);
    let text = crate::live::herd::until(|| {
        let text = herd.shown(&["diff", "before.json", &number, "--filter", "cache"]);
        Some(text).filter(|text| text.contains("1.00 MB (100.0%) -- explicit"))
    });
    assert!(text.contains(" cache/data"), "{text}");
    let backwards = herd.shown(&["diff", &number, "before.json", "--filter", "cache"]);
    assert!(backwards.contains("-1.00 MB (100.0%) -- explicit"), "{backwards}");
    let output =
        herd.about_memory(&["diff", "before.json", &number, "--fail-if", "explicit/cache/data > +0%"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let output = herd.about_memory(&["diff", "before.json", "4200001"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("about-memory: process 4200001: does not listen: "));
}

#[test]
fn wrong_usage_is_status_2() {
    let herd = Herd::new();
    fs::write(herd.path().join("123"), crate::document("")).unwrap();
    for arguments in [
        &["save"][..],
        &["save", "file"],
        &["save", "x", "file"],
        &["save", "--all", "1", "folder"],
        &["save", "--all"],
        &["save", "--all", "-o", "-"],
        &["save", "-o", "file"],
        &["save", "x", "-o", "file"],
        &["snapshot", "save", "1"],
        &["snapshot", "save", "1", "file", "-o", "file"],
        &["dump", "1", "file", "-o", "file"],
        &["show", "--all", "1"],
        &["show", "1", "file"],
        &["show", "--tree", "123"],
        &["show", "--tree", "--all"],
        &["watch"],
        &["watch", "file"],
        &["watch", "1", "--count", "0"],
        &["watch", "1", "--interval", "-1"],
        &["list", "--timeout", "x"],
        &["minimize", "x"],
    ] {
        let output = herd.about_memory(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
    }
    // If a file has a number as its name, `show` with this number reads the file, not the process.
    assert!(herd.shown(&["show", "123"]).contains("No results found."));
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_resident_is_shown_and_saved_where_it_is_asked_for() {
    let mut herd = Herd::new();
    let pid = herd.start("one").to_string();
    let text = herd.shown(&["show", &pid, "--resident"]);
    for tree in ["resident-map", "proportional-map", "explicit"] {
        assert!(
            text.lines().any(|line| line.ends_with(&format!("── {tree}")) || line.ends_with(tree)),
            "{text}"
        );
    }
    assert!(!text.contains("names"), "{text}");
    let plain = herd.shown(&["show", &pid]);
    assert!(!plain.contains("resident-map"), "{plain}");

    herd.shown(&["save", &pid, "with.json", "--resident"]);
    assert!(herd.shown(&["show", "with.json", "--resident"]).contains("resident-map"));
    herd.shown(&["save", &pid, "without.json"]);
    let output = herd.about_memory(&["show", "without.json", "--resident"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "about-memory: without.json: has no resident-map; save it with: about-memory save PID FILE --resident\n"
    );
}

#[test]
fn names_work_where_process_ids_do() {
    let mut herd = Herd::new();
    herd.start("one");
    let text = herd.shown(&["show", "one"]);
    assert!(text.contains("explicit"), "{text}");
    herd.shown(&["save", "one", "saved.json.gz"]);
    assert!(!file::read(herd.path().join("saved.json.gz")).unwrap().is_empty());
    herd.shown(&["watch", "one", "--count", "1"]);
    herd.shown(&["minimize", "one"]);

    // A file with the name of a process has priority over the process, as with a process id.
    fs::write(herd.path().join("one"), "no report").unwrap();
    assert!(!herd.about_memory(&["show", "one"]).status.success());
    fs::remove_file(herd.path().join("one")).unwrap();

    let other = herd.start("one");
    let output = herd.about_memory(&["show", "one"]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.starts_with("about-memory: one: several processes have this name: "), "{text}");
    assert!(text.contains(&other.to_string()) && text.ends_with("; use a process id\n"), "{text}");
    let output = herd.about_memory(&["minimize", "two"]);
    assert_eq!(
        stderr(&output),
        "about-memory: two: no running process has this id or name; list the processes with: about-memory list\n"
    );
    assert!(stderr(&herd.about_memory(&["show", "two"])).starts_with("about-memory: two: "));
}

#[test]
fn dump_saves_a_whole_dump_or_nothing() {
    let mut herd = Herd::new();
    herd.start("recorded dmd");
    let bad = herd.start("bad bad-dmd");
    herd.start("plain");
    // The answer of this process is not a complete file.
    assert_eq!(herd.about_memory(&["dump", "recorded"]).status.code(), Some(1));
    let output = herd.about_memory(&["dump", "bad"]);
    assert_eq!(stderr(&output), format!("about-memory: process {bad}: refused: not today\n"));
    let text = stderr(&herd.about_memory(&["dump", "plain"]));
    assert!(text.contains(": DMD does not record it: start it with `about-memory run`"), "{text}");
    let left = fs::read_dir(herd.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["about-memory"]);
}
