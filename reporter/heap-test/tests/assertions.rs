//! `assert_heap!` and `assert_heap_baseline!` without DMD.

use std::fs;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;

use memory_heap_test::{Scope, assert_heap, assert_heap_baseline};

memory_heap_test::global_allocator!(std::alloc::System);

fn buffer(bytes: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(bytes))
}

/// The message of a panic.
fn failure(code: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(code)).expect_err("the assertion fails");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| Some((*panic.downcast_ref::<&str>()?).to_owned()))
        .expect("a text")
}

#[test]
fn every_figure_comparison_and_unit_works() {
    let (kept, scope) = Scope::measure(|| {
        let mut grown = buffer(100);
        grown.reserve_exact(1024);
        drop(buffer(2048));
        grown
    });
    let two = 2_usize;
    assert_heap!(scope, allocs == 2, allocs == (two), reallocs < 2, frees >= 1, bytes == 3172, bytes > 3 KiB);
    assert_heap!(scope, usable >= 3172 B, peak == 3 KiB, peak <= 1 MiB, peak < 1 GiB, retained == (two / 2) KiB);
    assert_heap!(scope, retained_blocks == 1, net == 1_024, net > -5,);
    drop(kept);
    assert_heap!(scope.scope(), retained == 0, retained_blocks == 0, net == 0);
}

#[test]
fn a_failure_has_each_figure_and_leaves_a_file() {
    let (kept, scope) = Scope::measure(|| (buffer(70_000), buffer(10_000)));
    let message = failure(|| assert_heap!(scope, allocs == 1, peak <= 64 KiB, frees == 0, retained == 0));
    let place = format!("the heap of `{}:", file!());
    assert!(message.starts_with(&place), "{message}");
    let expected = "\
  allocs: expected == 1, got 2 (+1)
  peak: expected <= 65,536 bytes, got 80,000 bytes (+14,464)
  retained: expected == 0 bytes, got 80,000 bytes (+80,000)
  all figures: allocs 2, reallocs 0, frees 0, bytes 80,000, usable ";
    assert!(message.contains(expected), "{message}");
    assert!(
        message.contains("no stacks: DMD did not record.") && message.contains("DMD=--stacks=full"),
        "{message}"
    );
    let path = message.rsplit_once("the whole text is in ").expect("a file").1;
    let text = fs::read_to_string(path).expect("the file");
    assert!(text.contains(expected) && text.starts_with(file!()), "{text}");
    assert!(Path::new(path).parent().is_some_and(|folder| folder.ends_with("target/heap-tests")), "{path}");
    fs::remove_file(path).expect("the file");
    drop(kept);
}

#[test]
fn a_negative_figure_is_compared_as_it_is() {
    let old = buffer(1000);
    let ((), scope) = Scope::measure(|| drop(old));
    assert_heap!(scope, net == -1000, net < 0, retained == 0);
    let message = failure(|| assert_heap!(scope, net >= 0));
    assert!(message.contains("net: expected >= 0 bytes, got -1,000 bytes (-1,000)"), "{message}");
}

/// The case of [`a_baseline_is_written_once_and_growth_fails`], run with a variable by that test.
#[test]
#[ignore = "another test runs it"]
fn baseline_case() {
    let path = std::env::var("BASELINE_CASE").expect("the path");
    let bytes = std::env::var("BASELINE_BYTES").expect("the bytes").parse().expect("a number");
    let [parse, other] = ["parse a text", "other"].map(Scope::named);
    let kept = parse.run(|| buffer(bytes));
    assert_heap_baseline!(Path::new(&path), parse, other);
    drop(kept);
}

/// Runs the case. Returns what it printed if it failed.
fn run_case(path: &Path, bytes: usize, update: bool) -> Result<(), String> {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["--ignored", "--exact", "baseline_case", "--nocapture"]);
    command.env("BASELINE_CASE", path).env("BASELINE_BYTES", bytes.to_string());
    if update {
        command.env("UPDATE_HEAP_BASELINE", "1");
    }
    let output = command.output().expect("the case runs");
    let text =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    if output.status.success() { Ok(()) } else { Err(text) }
}

const BASELINE: &str = "\
memory-heap-test 1
allocs 0 other
reallocs 0 other
bytes 0 other
peak 0 other
retained_blocks 0 other
retained 0 other
allocs 1 parse a text
reallocs 0 parse a text
bytes 500 parse a text
peak 500 parse a text
retained_blocks 1 parse a text
retained 500 parse a text
";

#[test]
fn a_baseline_is_written_once_and_growth_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("heap/parse.txt");
    let error = run_case(&path, 500, false).unwrap_err();
    assert!(error.contains("there is no baseline") && error.contains("UPDATE_HEAP_BASELINE=1"), "{error}");
    run_case(&path, 500, true).expect("the update");
    assert_eq!(fs::read_to_string(&path).expect("the file"), BASELINE);
    run_case(&path, 500, false).expect("the same figures");
    run_case(&path, 400, false).expect("smaller figures");
    let error = run_case(&path, 501, false).unwrap_err();
    for line in [
        "the heap of `parse a text` is not as expected",
        "  bytes: expected at most 500 bytes, got 501 bytes (+1)",
        "to accept the growth, run the test with UPDATE_HEAP_BASELINE=1",
    ] {
        assert!(error.contains(line), "{error}");
    }
    assert!(!error.contains("`other`"), "{error}");
    run_case(&path, 501, true).expect("the update");
    run_case(&path, 501, false).expect("the new figures");
    fs::write(&path, BASELINE.replace("parse a text", "another")).expect("the file");
    let error = run_case(&path, 1, false).unwrap_err();
    assert!(error.contains("has no scope `parse a text`"), "{error}");
    // Lines of other scopes stay.
    run_case(&path, 500, true).expect("the update");
    let text = fs::read_to_string(&path).expect("the file");
    assert!(text.contains("bytes 500 another\n") && text.contains("bytes 500 parse a text\n"), "{text}");
}

#[test]
fn a_faulty_baseline_is_rejected_by_line_and_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("faulty.txt");
    let line = |from: &str, to: &str| BASELINE.replacen(from, to, 1);
    for (text, fault) in [
        (String::new(), "line 1: the file is empty"),
        (line("test 1", "test 2"), "line 1: unknown version `2`"),
        (line("memory-heap-test 1\n", ""), "line 1: the first line is `allocs 0 other`"),
        (format!("\u{feff}{BASELINE}"), "line 1: the file starts with a byte order mark"),
        (line("bytes 500", "bytes -1"), "line 10: `-1` is not a number"),
        (line("bytes 500", "bytes 1e3"), "line 10: `1e3` is not a number"),
        (line("bytes 500", "bytes 18446744073709551616"), "line 10: `18446744073709551616` exceeds 64 bits"),
        (line("bytes 500", "peak 500"), "line 11: `peak` of `parse a text` occurs twice"),
        (line("bytes 500 parse a text\n", ""), "line 12: `bytes` of `parse a text` is missing"),
        (line("bytes 500 parse a text", "bytes 500"), "line 10: `bytes 500` is not a figure"),
        (BASELINE.replace('\n', "\r\n"), "line 1: the line ends with CR LF"),
        (line("bytes 500", "<<<<<<< HEAD\nbytes 500"), "line 10: this is a merge conflict"),
        (BASELINE.trim_end().to_owned(), "line 13: the line does not end with a line feed"),
        (format!("{BASELINE}allocs 3 \n"), ""),
    ] {
        fs::write(&path, &text).expect("the file");
        match run_case(&path, 500, false) {
            Err(error) if !fault.is_empty() => assert!(error.contains(fault), "{fault}: {error}"),
            Err(error) => assert!(error.contains("of `` is missing"), "{error}"),
            Ok(()) => panic!("{fault}: {text}"),
        }
    }
    // A figure of a later version.
    fs::write(&path, format!("{BASELINE}colour 3 parse a text\n")).expect("the file");
    run_case(&path, 500, false).expect("unknown figures are ignored");
}

#[test]
fn an_update_of_a_faulty_baseline_keeps_the_lines_of_other_scopes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("conflict.txt");
    let conflict = BASELINE.replacen("bytes 500", "<<<<<<< HEAD\nbytes 500", 1);
    fs::write(&path, &conflict).expect("the file");
    let error = run_case(&path, 9999, true).unwrap_err();
    assert!(error.contains("conflict.txt: not updated: line 10: this is a merge conflict"), "{error}");
    assert_eq!(fs::read_to_string(&path).expect("the file"), conflict);
    fs::write(&path, "").expect("the file");
    run_case(&path, 500, true).expect("the update of an empty file");
    assert_eq!(fs::read_to_string(&path).expect("the file"), BASELINE);
}

#[test]
#[cfg(unix)]
fn outside_of_a_target_folder_only_this_user_can_read_the_text() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let [program, baseline] = ["moved", "parse.txt"].map(|name| folder.path().join(name));
    fs::copy(std::env::current_exe().expect("a path"), &program).expect("a copy");
    fs::write(&baseline, BASELINE).expect("the file");
    let mut command = Command::new(program);
    command.args(["--ignored", "--exact", "baseline_case"]).env("TMPDIR", folder.path());
    command.env("BASELINE_CASE", baseline).env("BASELINE_BYTES", "501").env_remove("UPDATE_HEAP_BASELINE");
    assert!(!command.output().expect("the case runs").status.success());
    let files = fs::read_dir(folder.path()).expect("the folder").map(|entry| entry.expect("an entry"));
    let texts: Vec<_> =
        files.filter(|file| file.file_name().to_string_lossy().starts_with("heap-test-moved-")).collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert_eq!(texts[0].metadata().expect("the file").permissions().mode() & 0o777, 0o600);
}

/// A case of [`processes_that_update_one_baseline_lose_no_lines`].
#[test]
#[ignore = "another test runs it"]
fn baseline_of_many_scopes() {
    let path = std::env::var("BASELINE_CASE").expect("the path");
    let name = std::env::var("BASELINE_SCOPE").expect("the name");
    for number in 0..25 {
        let scope = Scope::named(format!("{name} {number}"));
        assert_heap_baseline!(Path::new(&path), scope);
    }
}

#[test]
#[cfg(unix)]
fn processes_that_update_one_baseline_lose_no_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("shared.txt");
    let processes: Vec<_> = ["a", "b", "c", "d"]
        .map(|name| {
            let mut command = Command::new(std::env::current_exe().expect("a path"));
            command.args(["--ignored", "--exact", "baseline_of_many_scopes"]);
            command.env("BASELINE_CASE", &path).env("BASELINE_SCOPE", name).env("UPDATE_HEAP_BASELINE", "1");
            command.stdout(std::process::Stdio::null());
            command.spawn().expect("the case starts")
        })
        .into();
    for mut process in processes {
        assert!(process.wait().expect("the case ends").success());
    }
    let text = fs::read_to_string(&path).expect("the file");
    for name in ["a", "b", "c", "d"] {
        for number in 0..25 {
            assert!(text.contains(&format!("peak 0 {name} {number}\n")), "{name} {number}: {text}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1, "the lock leaves no file");
}

#[test]
#[cfg(unix)]
fn an_update_in_a_read_only_folder_fails_and_keeps_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("parse.txt");
    fs::write(&path, BASELINE).expect("the file");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).expect("the mode");
    let result = run_case(&path, 9999, true);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("the mode");
    // The superuser may write to any folder.
    if let Err(error) = result {
        assert!(error.contains("parse.txt: not updated:"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("the file"), BASELINE);
    }
}
