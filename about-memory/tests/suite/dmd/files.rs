//! Damaged dumps and unreadable files: a one-line error, and exit status 1.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::folder;

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// Runs all commands that read a dump. Returns their common error.
fn refused(path: &Path, more: &[&str]) -> String {
    let path = path.to_str().unwrap();
    let commands: [&[&str]; 6] = [
        &["dmd", path],
        &["dmd", "--suggest", path],
        &["dmd", "--clamp-contents", path],
        &["dmd", path, path],
        &["coverage", path],
        &["block", path, "10"],
    ];
    let mut said = None;
    for command in commands {
        let mut run = Command::new(env!("CARGO_BIN_EXE_about-memory"));
        let output = run.args(command).args(more).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command:?}: {text}");
        assert!(output.stdout.is_empty(), "{command:?}");
        let line = text.strip_suffix('\n').unwrap();
        assert!(line.len() <= 300 && !line.chars().any(char::is_control), "{line}");
        let reason =
            line.strip_prefix(&format!("about-memory: {path}: ")).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(said.get_or_insert(reason.to_owned()), reason, "{command:?}");
    }
    said.unwrap()
}

#[test]
fn damaged_files_are_refused_in_one_line() {
    let temporary = tempfile::tempdir().unwrap();
    let sound = fs::read(folder().join("live-basic.json")).unwrap();
    let packed = pack(&sound);
    let mut bad_sum = packed.clone();
    let sum = bad_sum.len() - 8;
    bad_sum[sum] ^= 1;
    let mut bad_length = packed.clone();
    let length = bad_length.len() - 1;
    bad_length[length] ^= 1;
    let text = String::from_utf8(sound.clone()).unwrap();
    for (name, bytes, expected) in [
        ("empty.json", Vec::new(), "is empty"),
        ("header.json.gz", packed[..10].to_vec(), "truncated after 0 bytes"),
        ("half.json.gz", packed[..packed.len() / 2].to_vec(), "truncated after "),
        ("sum.json.gz", bad_sum, "checksum mismatch"),
        ("length.json.gz", bad_length, "checksum mismatch"),
        ("more.json.gz", [&packed[..], b"more"].concat(), "trailing garbage"),
        ("half.json", sound[..sound.len() / 2].to_vec(), "truncated after "),
        ("latin1.json", [&sound[..20], b"\xe9"].concat(), "invalid UTF-8 at byte 20"),
        ("nul.json", [&sound[..], b"\0"].concat(), "not JSON"),
        ("nan.json", text.replacen("\"req\": ", "\"req\": NaN", 1).into_bytes(), "at byte "),
        ("\u{1b}[31m.json", b"{}".to_vec(), ""),
    ] {
        let path = temporary.path().join(name);
        fs::write(&path, bytes).unwrap();
        if name.starts_with('\u{1b}') {
            let output =
                Command::new(env!("CARGO_BIN_EXE_about-memory")).arg("dmd").arg(&path).output().unwrap();
            assert!(
                String::from_utf8(output.stderr).unwrap().contains("\\u{1b}[31m.json: version is missing\n")
            );
            continue;
        }
        let reason = refused(&path, &[]);
        assert!(reason.contains(expected), "{name}: {reason}");
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 1, "no temporary file is left");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn the_first_bytes_tell_what_is_compressed() {
    let temporary = tempfile::tempdir().unwrap();
    let sound = fs::read(folder().join("live-basic.json")).unwrap();
    let text = |name: &str, bytes: &[u8]| {
        let path = temporary.path().join(name);
        fs::write(&path, bytes).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_about-memory")).arg("dmd").arg(&path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        super::without_echo(&String::from_utf8(output.stdout).unwrap())
    };
    let plain = text("a.json", &sound);
    assert_eq!(text("b.json.gz", &sound), plain);
    assert_eq!(text("c.json", &pack(&sound)), plain);
    // A file of several gzip members is one text.
    let (first, second) = sound.split_at(sound.len() / 3);
    assert_eq!(text("d.json.gz", &[pack(first), pack(second)].concat()), plain);
}

#[test]
fn what_expands_without_end_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let start = br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "live"}, "blockList": ["##;
    for (name, start, piece) in [
        ("zeros", &b""[..], &b"\0"[..]),
        ("spaces", b"", b" "),
        ("blocks", start, br#"{"req": 1},"#),
        ("members", b"{", br#""x": 1,"#),
    ] {
        let path = temporary.path().join(name);
        let mut text = start.to_vec();
        while text.len() < 3_000_000 {
            text.extend_from_slice(piece);
        }
        fs::write(&path, pack(&text)).unwrap();
        let reason = refused(&path, &["--max-bytes", "1000000"]);
        let zeros = name == "zeros" && reason.starts_with("not JSON");
        assert!(zeros || reason.contains("1000000") || reason.contains("1,000,000"), "{name}: {reason}");
    }
    let path = temporary.path().join("entries");
    let mut text = start.to_vec();
    text.extend_from_slice(&br#"{"req": 1},"#.repeat(5000));
    fs::write(&path, text).unwrap();
    let reason = refused(&path, &["--max-entries", "1000"]);
    assert!(reason.contains("1000") || reason.contains("1,000"), "{reason}");
}

#[test]
fn long_texts_and_lists_are_bounded() {
    let temporary = tempfile::tempdir().unwrap();
    let document = |blocks: &str, text: &str| {
        format!(
            "{{\"version\": 5, \"invocation\": {{\"dmdEnvVar\": null, \"mode\": \"dark-matter\"}}, \
             \"blockList\": [{blocks}], \"traceTable\": {{\"A\": [\"B\"]}}, \"frameTable\": {{\"B\": \"#00: {text}\"}}}}"
        )
    };
    let path = temporary.path().join("reps.json");
    let reps = vec!["\"A\""; 10_000].join(",");
    fs::write(&path, document(&format!("{{\"req\": 1, \"reps\": [{reps}]}}"), "")).unwrap();
    assert_eq!(refused(&path, &[]), "blockList[0].reps: more than two");

    let path = temporary.path().join("frame.json");
    fs::write(&path, document(r#"{"req": 1, "alloc": "A"}"#, &"x".repeat(10_000_000))).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_about-memory")).arg("dmd").arg(&path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    // The reader's limit decides whether the text is shown or the file is refused.
    assert!(
        text.len() > 10_000_000 || (said.lines().count() == 1 && output.status.code() == Some(1)),
        "{said}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_no_file_is_not_waited_for() {
    let temporary = tempfile::tempdir().unwrap();
    let fifo = temporary.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let circle = temporary.path().join("circle");
    std::os::unix::fs::symlink(&circle, &circle).unwrap();
    for path in [&fifo, &circle, temporary.path(), Path::new("/dev/zero"), &temporary.path().join("absent")] {
        assert!(!refused(path, &[]).is_empty());
    }
}

/// The error names the kind of the file and the command that reads it.
#[test]
fn a_file_of_another_kind_is_named() {
    let dump = folder().join("dark-matter-mixed.json");
    let report = folder().with_file_name("firefox").join("units.json");
    let temporary = tempfile::tempdir().unwrap();
    let page = temporary.path().join("page.json");
    fs::write(&page, "<!DOCTYPE html>\n<html></html>").unwrap();
    let packed = temporary.path().join("packed");
    fs::write(&packed, pack(&fs::read(&report).unwrap())).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_about-memory"));
    let of_report = "it is a memory report; read it with: about-memory show";
    for (command, file, kind) in [
        ("dmd", &*report, of_report),
        ("coverage", &*packed, of_report),
        ("show", &*page, "it is an HTML page; open it in a browser"),
        ("dmd", program, "it is a program or a library; run it with: about-memory run -- PROGRAM"),
        ("show", program, "it is a program or a library; run it with: about-memory run -- PROGRAM"),
    ] {
        let output = Command::new(program).arg(command).arg(file).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command}: {text}");
        assert!(text.ends_with(&format!(": {kind}\n")), "{command}: {text}");
    }
    // For a damaged file of the right kind, the error describes the damage, not the kind.
    let damaged = temporary.path().join("damaged.json");
    fs::write(&damaged, fs::read_to_string(&dump).unwrap().replace("\"version\": 5", "\"version\": 4"))
        .unwrap();
    let output = Command::new(program).arg("dmd").arg(&damaged).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.ends_with("version 4 is not supported (expected 5)\n"), "{text}");
}

#[test]
fn a_difference_of_equal_files_says_so() {
    let dump = folder().join("dark-matter-mixed.json");
    let report = folder().with_file_name("firefox").join("units.json");
    let diff = |first: &Path, second: &Path| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_about-memory"));
        let output = run.arg("diff").arg(first).arg(second).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let name = report.display();
    assert!(diff(&report, &report).contains(&format!("{name} and {name} have the same reports")));
    let name = dump.display();
    assert!(diff(&dump, &dump).contains(&format!("{name} and {name} have the same blocks")));
    let other = folder().join("diff-dark-1.json");
    assert!(!diff(&dump, &other).contains("the same"));
}
