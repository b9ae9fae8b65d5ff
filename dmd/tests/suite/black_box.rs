//! The black box: dumps before the limit of the memory. The limit is that of the address space: not every machine allows
//! memory groups. `tests/boxed/check` lets the kernel kill programs in a group.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dmd::analyze::{Dump, read};
use dmd::{BlackBox, Options};
use serde_json::Value;

use crate::support::{command, libdmd, read_dump, run, victim};

/// The limit of the address space in KiB. The tables of `libdmd.so` take a part of it.
const LIMIT: u64 = 700 << 10;
const BLOCK: u64 = 64 << 10;

/// The victim in a limited address space.
fn limited(preloaded: bool, options: &str, folder: &Path, arguments: &str) -> Command {
    let mut command = command("sh");
    let program = victim("boxed");
    // The limit must not hit the shell, and `LD_PRELOAD` neither.
    let preload = if preloaded { format!("LD_PRELOAD={}", libdmd().display()) } else { String::new() };
    let script = format!("ulimit -v {LIMIT}; exec env {preload} {} {arguments}", program.display());
    command.arg("-c").arg(script).current_dir(folder);
    command.env("DMD", format!("--mode=live {options}"));
    command
}

/// The whole dumps. The abort of the program may leave a partial one.
fn dumps(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_dump = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("dmd.") && (name.starts_with("dmd.000") || !name.ends_with(".partial"))
    };
    let mut dumps: Vec<_> = entries.filter(is_dump).collect();
    dumps.sort();
    dumps
}

/// The bytes of the victim's blocks.
fn held(dump: &Value) -> u64 {
    let blocks = dump["blockList"].as_array().unwrap().iter();
    let num = blocks.filter(|block| block["req"] == BLOCK).map(|block| block["num"].as_u64().unwrap_or(1));
    num.sum::<u64>() * BLOCK
}

fn ramp(preloaded: bool, options: &str, folder: &Path) -> Output {
    grow(preloaded, options, folder, "ramp 400 progress")
}

fn grow(preloaded: bool, options: &str, folder: &Path, arguments: &str) -> Output {
    let output = run(&mut limited(preloaded, options, folder, arguments));
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    output
}

#[test]
fn a_program_without_memory_leaves_a_dump_and_ends_by_its_own_abort() {
    for preloaded in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let options = "--quiet --dump-near-limit=80%,keep=3,dir=kept";
        grow(preloaded, options, folder.path(), "seen 400 progress kept");
        let kept = folder.path().join("kept");
        let files = dumps(&kept);
        assert!((2..=3).contains(&files.len()), "{files:?}");
        let last = files.last().unwrap();
        assert!(last.to_str().unwrap().ends_with(".no-memory.json.gz"), "{files:?}");
        assert_eq!(fs::metadata(last).unwrap().permissions().mode() & 0o777, 0o600);
        let dump = read_dump(last);
        let facts = &dump["blackBox"];
        assert_eq!((&facts["reason"], &facts["bound"]), (&"no-memory".into(), &"address-space".into()));
        assert_eq!(facts["limit"], LIMIT << 10);
        let progress = fs::read(folder.path().join("progress")).unwrap();
        let peak = u64::from_le_bytes(progress.try_into().unwrap());
        assert!(held(&dump) >= peak && peak > 100 << 20, "{} of {peak}", held(&dump));
        let first = read_dump(&files[0]);
        assert!(held(&first) < held(&dump));
        // The dump says what it is, and how long the process lived after it.
        let text = |path: &Path| format!("{}", read(path).unwrap().black_box().unwrap());
        assert!(text(last).contains("because the allocator had no memory"), "{}", text(last));
        assert!(text(last).contains(" s before the last sign of life"), "{}", text(last));
        assert!(text(&files[0]).contains(" s before the last sign of life"), "{}", text(&files[0]));
        assert!(text(&files[0]).contains("address space)"), "{}", text(&files[0]));
    }
}

#[test]
fn a_sample_has_dumps_near_the_limit_too() {
    let folder = tempfile::tempdir().unwrap();
    let options = "--quiet --sample-bytes=256KiB --dump-near-limit=50%";
    grow(true, options, folder.path(), "seen 400 progress .");
    let files = dumps(folder.path());
    assert!(files.len() >= 2 && files.len() <= 5, "{files:?}");
    assert!(files.iter().all(|path| held(&read_dump(path)) > 0));
}

#[test]
fn a_dump_does_not_call_the_allocator() {
    let folder = tempfile::tempdir().unwrap();
    let options = "--quiet --dump-near-limit=20%,dir=kept";
    let output = run(&mut limited(false, options, folder.path(), "counted 300"));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n", "{output:?}");
    assert!(!dumps(&folder.path().join("kept")).is_empty());
}

#[test]
fn old_dumps_go_only_after_a_new_one_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let old = "dmd.0000000000001.5.7.limit.json.gz";
    // A process that was killed, a file of the future, and files of others.
    let partial = "dmd.0000000000002.5.7.growth.json.gz.partial";
    let future = "dmd.9000000000000.5.7.limit.json.gz";
    for name in [old, partial, future, "dmd-7.json.gz", "dmd.1.2.3.other.json.gz", "notes"] {
        fs::write(file(name), "x".repeat(1000)).unwrap();
    }
    // There is no room for a new dump, and the newest one stays.
    let output = ramp(true, "--dump-near-limit=60%,max-disk=1KiB", folder.path());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("black box: can't write a dump:") && text.contains("max-disk leaves no room"),
        "{text}"
    );
    assert_eq!(dumps(folder.path()), [file("dmd.1.2.3.other.json.gz"), file(future)]);
    for name in [old, partial] {
        fs::write(file(name), "x").unwrap();
    }
    ramp(true, "--quiet --dump-near-limit=60%,keep=2", folder.path());
    let names = dumps(folder.path());
    // Two dumps, and the file of another program. The new names sort after the one of the future.
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names[1..].iter().all(|path| path.to_str().unwrap().contains("dmd.90000000000")), "{names:?}");
    assert!(file("notes").exists() && file("dmd-7.json.gz").exists());
}

#[test]
fn a_folder_that_cannot_be_used_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for (place, reason) in [("file", "Not a directory"), ("no/such", "No such file")] {
        let output = ramp(true, &format!("--dump-near-limit=80%,dir={place}"), folder.path());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("black box: can't write dumps to") && text.contains(reason), "{text}");
    }
    assert!(dumps(folder.path()).is_empty());
}

#[test]
fn a_partial_dump_is_readable_wherever_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    ramp(false, "--quiet --dump-near-limit=80%", folder.path());
    let whole = dumps(folder.path()).pop().unwrap();
    let bytes = fs::read(&whole).unwrap();
    let cut = folder.path().join("cut.json.gz.partial");
    let blocks = |dump: &Dump| format!("{:?}", dump.black_box().map(|facts| facts.is_partial));
    assert_eq!(blocks(&read(&whole).unwrap()), "Some(false)");
    let mut partial = 0;
    for end in 0..bytes.len() {
        fs::write(&cut, &bytes[..end]).unwrap();
        if let Ok(dump) = read(&cut) {
            // The last bytes are the checksum.
            partial += usize::from(blocks(&dump) == "Some(true)");
            assert!(format!("{}", dump.black_box().unwrap()).contains("The dump is not complete"), "{end}");
        }
    }
    assert!(partial > bytes.len() / 4, "{partial} of {}", bytes.len());
}

#[test]
fn the_last_dump_of_an_earlier_process_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let previous = |expected: &str| {
        for preloaded in [false, true] {
            let output = run(&mut limited(preloaded, "--quiet --dump-near-limit", folder.path(), "previous"));
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
        }
    };
    previous("none\n");
    for name in ["dmd.0000000000009.5.7.limit.json.gz", "dmd.0000000000010.6.8.growth.json.gz.partial"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    previous("dmd.0000000000010.6.8.growth.json.gz.partial 6 8 growth true\n");
}

#[test]
fn an_earlier_process_may_have_the_same_number() {
    for preloaded in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let output = run(&mut limited(preloaded, "--quiet --dump-near-limit=20%", folder.path(), "twin"));
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{output:?}");
        assert!(lines[0].ends_with(" limit false") && lines[0].contains(".json.gz 5 "), "{text}");
        // The own dump is newer.
        assert_eq!(lines[0], lines[1]);
        assert!(dumps(folder.path()).len() >= 2);
    }
}

#[test]
fn large_blocks_that_fit_cost_no_look_at_the_limits() {
    for preloaded in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = command(victim("boxed"));
        if preloaded {
            command.env("LD_PRELOAD", libdmd());
        }
        command.env("DMD", "--mode=live --quiet --dump-near-limit").args(["buffers", "1000", "32"]);
        let output = run(command.current_dir(folder.path()));
        // A look reads some thousands of bytes.
        let bytes: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        assert!(bytes < 2000, "{bytes}");
    }
}

#[test]
fn the_words_of_the_box_are_checked() {
    let parsed =
        |text: &'static str| Options::parse(text.as_bytes()).map(|options| options.black_box.unwrap());
    assert_eq!(parsed("--dump-near-limit"), Ok(BlackBox::new()));
    let all = BlackBox::new().near_limit(75).keep(2).folder("/a/b c").max_disk(3 << 20);
    let text: &'static str = "--dump-near-limit=75%,keep=2,dir=/a/b,max-disk=3MiB";
    assert_eq!(parsed(text), Ok(all.folder("/a/b")));
    for bad in [
        "--dump-near-limit=",
        "--dump-near-limit=90",
        "--dump-near-limit=0%",
        "--dump-near-limit=100%",
        "--dump-near-limit=-5%",
        "--dump-near-limit=keep",
        "--dump-near-limit=90%,keep=0",
        "--dump-near-limit=90%,keep=1001",
        "--dump-near-limit=90%,dir=",
        "--dump-near-limit=90%,max-disk=0",
        "--dump-near-limit=90%,max-disk=1TB",
        "--dump-near-limit=90%,80%",
    ] {
        let error = Options::parse(bad.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("--dump-near-limit takes a share such as 90%"), "{bad}: {error}");
    }
    let both = Options::parse(b"--dump-near-limit --wait-for-track").unwrap_err();
    assert_eq!(both.word, b"--dump-near-limit with --wait-for-track");
    assert_eq!(
        BlackBox::new().near_limit(0).keep(0).max_disk(0),
        BlackBox::new().near_limit(1).keep(1).max_disk(1)
    );
}
