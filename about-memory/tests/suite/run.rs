//! `about-memory run`: signals and exit status, names of dumps, and obstacles.

mod mapped;
mod resident;
mod tracked;
mod types;
mod unpacking;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Returns `libdmd.so`, built as users build it.
pub(crate) fn libdmd() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let program = Path::new(env!("CARGO_BIN_EXE_about-memory"));
        let target = program.parent().unwrap().parent().unwrap().join("libdmd");
        // `./test` has built the library.
        if std::env::var_os("PROGRAMS_ARE_BUILT").is_none() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--quiet", "--profile", "dist", "-p", "dmd-preload", "--target-dir"]);
            cargo.arg(&target).current_dir(env!("CARGO_MANIFEST_DIR"));
            assert!(cargo.status().unwrap().success());
        }
        target.join("dist/libdmd.so")
    })
}

/// Returns a command that runs in a folder, without a summary and without variables that change its behaviour.
/// `timeout` ends it if it hangs.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    with_summary(folder, &[&["--quiet"], arguments].concat())
}

/// [`command`] with a summary.
fn with_summary(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--foreground", "-s", "KILL", "120", env!("CARGO_BIN_EXE_about-memory"), "run"]);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env_remove("DMD").env_remove("LD_PRELOAD").env_remove("CARGO_TARGET_DIR");
    command
}

pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Output {
    let library = ["--library", libdmd().to_str().unwrap()];
    command(folder, &[&library, arguments].concat()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn dump(path: &Path) -> serde_json::Value {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(fs::File::open(path).unwrap()).read_to_end(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

pub(crate) fn compile(folder: &Path, name: &str, source: &str, arguments: &[&str]) {
    let file = folder.join(format!("{name}.c"));
    fs::write(&file, source).unwrap();
    let status = Command::new("cc").arg("-o").arg(folder.join(name)).arg(&file).args(arguments).status();
    assert!(status.unwrap().success());
    fs::remove_file(file).unwrap();
}

/// With a recording, a dump is written only if it is requested.
#[test]
fn a_recording_is_beside_a_dump_or_alone() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["--record", "r.dmdrec", "true"]);
    assert!(output.status.success());
    assert_eq!(files(folder.path()), ["r.dmdrec"]);
    let text = stderr(&output);
    assert!(text.contains("recorded r.dmdrec (") && !text.contains("no dump"), "{text}");
    assert!(fs::read(folder.path().join("r.dmdrec")).unwrap().starts_with(b"DMDREC\n"));

    run(folder.path(), &["--record", "s.dmdrec", "-o", "d.json.gz", "true"]);
    assert_eq!(files(folder.path()), ["d.json.gz", "r.dmdrec", "s.dmdrec"]);

    let text = stderr(&run(folder.path(), &["--record", "/nowhere/r.dmdrec", "true"]));
    assert!(text.contains("/nowhere/r.dmdrec: there is no folder /nowhere"), "{text}");
    let text = stderr(&run(folder.path(), &["--record", "r.dmdrec", "--sample-below", "64", "true"]));
    assert!(text.contains("cannot be used with"), "{text}");
}

/// The summary names the next commands for the recording.
#[test]
fn a_recording_has_next_steps() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    command.args(["run", "--library", libdmd().to_str().unwrap(), "--record", "r.dmdrec", "true"]);
    let output = command.current_dir(folder.path()).env_remove("DMD").output().unwrap();
    let text = stderr(&output);
    assert!(text.contains("Next: about-memory leaks r.dmdrec "), "{text}");
    assert!(text.contains("about-memory history r.dmdrec "), "{text}");
}

/// Allocates until it is killed.
const GROWER: &str = "
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void *grow(void) { return malloc(4321); }
int main(void) {
    printf(\"%d\\n\", getpid());
    fflush(stdout);
    while (grow()) usleep(500);
    return 1;
}
";

/// A running program writes a recording on request, and sends its log.
#[test]
fn a_waiting_program_is_recorded_and_logged() {
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "grower", GROWER, &["-O1", "-rdynamic"]);
    let mut command =
        command(folder.path(), &["--library", libdmd().to_str().unwrap(), "--wait-for-track", "./grower"]);
    let mut child = command.env("XDG_RUNTIME_DIR", folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut pid = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut pid).unwrap();
    let about = |arguments: &[&str]| {
        let mut about = Command::new(env!("CARGO_BIN_EXE_about-memory"));
        about.args(arguments).current_dir(folder.path()).env("XDG_RUNTIME_DIR", folder.path());
        let output = about.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    about(&["track", pid.trim(), "--record", "r.dmdrec", "--seconds", "1"]);
    let leaks = about(&["leaks", "r.dmdrec"]);
    assert!(leaks.contains("The recording began while the program ran."), "{leaks}");
    assert!(
        leaks.contains("grow") && about(&["leaks", "r.dmdrec", "--json"]).contains("\"beganLate\": true")
    );
    assert!(about(&["history", "r.dmdrec"]).contains("The recording began while the program ran."));
    let log = about(&["log", pid.trim(), "--seconds", "1"]);
    let entries: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let grown = |entry: &&serde_json::Value| {
        entry["requested"] == 4321 && entry["frame"][0]["functionDisplayName"] == "grow"
    };
    assert!(entries.iter().any(|entry| grown(&entry)), "{log}");
    let coverage = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .args(["coverage", "r.dmdrec"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(coverage.status.code(), Some(1));
    assert!(stderr(&coverage).contains("take a dump with: about-memory run --mode dark-matter"));
    kill_process(Pid::from_raw(pid.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    child.wait().unwrap();
}

/// Programs read their children's stderr, so DMD prints messages only with `--verbose`.
#[test]
fn verbose_lets_dmd_say_what_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let text = stderr(&run(folder.path(), &["--verbose", "-o", "x.json.gz", "true"]));
    assert!(text.contains("] DMD is enabled\n") && text.contains("] opened "), "{text}");
}

#[test]
fn a_program_runs_as_ever_and_its_dump_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--mode", "live", "--stacks=full", "--sample-below", "64", "--max-frames", "9", "-o"];
    let output =
        run(folder.path(), &[&arguments[..], &["x.json.gz", "bash", "-c", "echo out; exit 7"]].concat());
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(stderr(&output), "about-memory: wrote x.json.gz\n");
    assert_eq!(files(folder.path()), ["x.json.gz"]);
    let dump = dump(&folder.path().join("x.json.gz"));
    assert_eq!(dump["invocation"]["mode"], "live");
    let variable = dump["invocation"]["dmdEnvVar"].as_str().unwrap();
    for word in ["--stacks=full", "--sample-below=64", "--max-frames=9"] {
        assert!(variable.split(' ').any(|one| one == word), "{variable}");
    }
}

/// After a program has ended, the user reads which of its functions hold the memory, and the next commands.
#[test]
fn a_summary_names_what_holds_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let source = "#include <stdlib.h>\n\
                  void *kept[2];\n\
                  __attribute__((noinline)) void large(void) { kept[0] = malloc(3000000); }\n\
                  __attribute__((noinline)) void small(void) { kept[1] = malloc(1000); }\n\
                  int main(void) { large(); small(); return 7; }\n";
    compile(folder.path(), "keeps", source, &["-g", "-O0"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    command.args(["run", "--library", libdmd().to_str().unwrap(), "-o", "x.json.gz", "--", "./keeps"]);
    let output =
        command.current_dir(folder.path()).env_remove("DMD").env_remove("LD_PRELOAD").output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let text = stderr(&output);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let at = lines.iter().position(|line| line.ends_with(&["by", "site"])).expect(&text);
    assert_eq!(lines[at + 1][..4], ["2.86", "MiB", "99.97%", "large"], "{text}");
    assert!(text.contains("Next: about-memory dmd x.json.gz "), "{text}");
}

/// Returns the standard error of a run with its summary.
fn summary(folder: &Path, program: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    command.args(["run", "--library", libdmd().to_str().unwrap(), "-o", "x.json.gz", "--", program]);
    stderr(&command.current_dir(folder).env_remove("DMD").env_remove("LD_PRELOAD").output().unwrap())
}

/// A small heap in a large process looks like a complete result, although DMD has not seen most of the memory.
#[test]
fn a_summary_compares_the_heap_with_the_resident_memory() {
    let folder = tempfile::tempdir().unwrap();
    let map = "#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n\
               void *kept;\n\
               int main(void) { size_t size = 64 << 20; kept = malloc(1 << 20);\n\
               memset(mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, size);\n\
               return 0; }\n";
    compile(folder.path(), "maps", map, &[]);
    let text = summary(folder.path(), "./maps");
    let start = "At its peak the process had ";
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.starts_with(start)).expect(&text);
    let (size, rest) = lines[at][start.len()..].split_once(" MiB resident, ").expect(&text);
    assert!((64.0..96.0).contains(&size.parse::<f64>().unwrap()), "{text}");
    let (times, rest) = rest.split_once(" times the recorded heap. DMD's tables have ").expect(&text);
    assert!((60..96).contains(&times.parse::<u32>().unwrap()), "{text}");
    let others = "; mapped files, code, stacks and allocators that DMD does not see have the other bytes.";
    assert!(rest.ends_with(others), "{text}");
    assert!(lines[at + 1].starts_with("Peak: 1.00 MiB in 1 block, "), "{text}");

    // A program without blocks has no tables, but the line about its resident memory is still printed.
    compile(folder.path(), "only-maps", &map.replace("kept = malloc(1 << 20);", ""), &[]);
    let text = summary(folder.path(), "./only-maps");
    assert!(text.contains(" MiB resident, and no recorded heap. ") && !text.contains("by site"), "{text}");

    // The same memory from malloc, in large and in tiny blocks.
    let large = map
        .replace("mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)", "malloc(size)");
    let tiny = "#include <stdlib.h>\n\
                int main(void) { for (int i = 0; i < 2000000; i++) *(char volatile *)malloc(1) = 1;\n\
                return 0; }\n";
    for source in [&*large, tiny] {
        compile(folder.path(), "allocates", source, &["-O0"]);
        let text = summary(folder.path(), "./allocates");
        assert!(text.contains("Peak: ") && !text.contains(start), "{text}");
        assert!(
            text.contains("Resident memory of the process: ") && text.contains("  live blocks\n"),
            "{text}"
        );
    }
}

#[test]
fn dumps_are_for_this_user_only() {
    for mode in ["live", "dark-matter", "cumulative", "scan"] {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("old.json");
        fs::write(&old, "for all").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o644)).unwrap();
        for name in ["new.json", "old.json"] {
            run(folder.path(), &["--mode", mode, "-o", name, "--", "/bin/true"]);
            let permissions = fs::metadata(folder.path().join(name)).unwrap().permissions();
            assert_eq!(permissions.mode() & 0o777, 0o600, "{mode} {name}");
        }
    }
}

#[test]
fn a_dump_that_a_link_leads_to_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("kept")).unwrap();
    symlink("kept/dump.json", folder.path().join("link.json")).unwrap();
    // At first the link is dangling; then it points to an older dump.
    for _ in 0..2 {
        let output = run(folder.path(), &["-o", "link.json", "--", "/bin/true"]);
        assert_eq!(stderr(&output), "about-memory: wrote link.json\n");
    }
}

#[test]
fn one_file_a_process() {
    let folder = tempfile::tempdir().unwrap();
    // A dump that existed before is not reported.
    fs::write(folder.path().join("dmd-1.json.gz"), "").unwrap();
    let output = run(folder.path(), &["--", "bash", "-c", "bash -c 'true; true'; ls / >/dev/null; true"]);
    assert!(output.status.success());
    let mut expected = files(folder.path());
    assert_eq!(expected.len(), 4, "{expected:?}");
    expected.retain(|name| name != "dmd-1.json.gz");
    let lines: String = expected.iter().map(|name| format!("about-memory: wrote {name}\n")).collect();
    assert_eq!(stderr(&output), lines);
    for name in expected {
        let pid = dump(&folder.path().join(&name))["process"]["pid"].as_u64().unwrap();
        assert_eq!(name, format!("dmd-{pid}.json.gz"));
    }
}

#[test]
fn without_the_number_children_get_it_before_the_extension() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["-o", "a.json", "--", "bash", "-c", "ls / >/dev/null; true"]);
    let names = files(folder.path());
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[0].starts_with("a-") && names[1] == "a.json", "{names:?}");
    assert_eq!(stderr(&output).lines().count(), 2);
}

/// A dump may already exist with the id of a process, for example from another namespace. The name of the new dump then
/// gets a second number.
#[test]
fn a_name_that_is_taken_gets_a_second_number() {
    let folder = tempfile::tempdir().unwrap();
    let taken = |name: &str| format!("echo other > {name}; (true); true");
    for (output, name) in [("dmd-%p.json", "dmd-$$.json"), ("a.b-%p", "a.b-$$"), ("%p-%p", "$$-$$")] {
        let output = run(folder.path(), &["-o", output, "--", "bash", "-c", &taken(name)]);
        let text = stderr(&output);
        let named: Vec<_> =
            text.lines().map(|line| line.strip_prefix("about-memory: wrote ").unwrap()).collect();
        assert_eq!(named.len(), 3, "{text}");
        let dumps = named.iter().filter(|name| fs::read(folder.path().join(name)).unwrap() != b"other\n");
        assert_eq!(dumps.count(), 2, "{text}");
        for name in named {
            fs::remove_file(folder.path().join(name)).unwrap();
        }
        assert_eq!(files(folder.path()), [""; 0]);
    }
}

#[test]
fn signals_go_through_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.02; done";
    let without_trap = "echo ready; while :; do sleep 0.02; done";
    for (script, code, signal) in [(script, Some(5), None), (without_trap, None, Some(15))] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_about-memory"))
            .args(["run", "-o", "s.json", "--library"])
            .arg(libdmd())
            .args(["--", "bash", "-c", script])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::TERM).unwrap();
        let (done, watched) = std::sync::mpsc::channel::<()>();
        let watchdog = thread::spawn(move || {
            if watched.recv_timeout(Duration::from_secs(60)).is_err() {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        let status = child.wait().unwrap();
        let _ = done.send(());
        watchdog.join().unwrap();
        assert_eq!((status.code(), status.signal()), (code, signal));
        // A signal ends the program only after its dump is written.
        assert!(folder.path().join("s.json").exists());
        fs::remove_file(folder.path().join("s.json")).unwrap();
    }
}

/// Sets a folder for sockets of this test alone.
fn own_sockets(command: &mut Command, folder: &Path) {
    command.env("XDG_RUNTIME_DIR", folder).env_remove("ABOUT_MEMORY");
}

#[test]
fn a_program_that_never_heard_of_it_answers_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_about-memory");
    // Bash would run the last command in its own process, and this test sends requests to that process. So the last
    // command of the script is a built-in command.
    let script = format!(
        "{program} list; {program} show $$ | grep -a -E 'heap-allocated|heap-unclassified$'; {program} dump $$ asked.json.gz; :"
    );
    let library = libdmd().to_str().unwrap();
    // The children that send requests are programs of the run, too.
    let arguments =
        ["--library", library, "--mode=live", "--listen", "-o", "end.json.gz", "--", "bash", "-c", &script];
    for variable in [None, Some("listen")] {
        let mut command = command(folder.path(), &arguments);
        own_sockets(&mut command, folder.path());
        if let Some(variable) = variable {
            command.env("ABOUT_MEMORY", variable);
        }
        let output = command.output().unwrap();
        let (text, errors) = (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output));
        let names: Vec<_> = text.lines().filter(|line| line.ends_with(".sock")).collect();
        let names: Vec<_> = names.iter().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
        assert_eq!(names, ["bash"], "`run` hands the variable on: {text} {errors}");
        assert!(text.contains("heap-allocated"), "{text} {errors}");
        assert!(errors.contains("wrote asked.json.gz; next: "), "{errors}");
        let asked = dump(&folder.path().join("asked.json.gz"));
        assert_eq!(asked["process"]["pid"], dump(&folder.path().join("end.json.gz"))["process"]["pid"]);
        fs::remove_file(folder.path().join("asked.json.gz")).unwrap();
    }
}

#[test]
fn a_program_answers_nothing_unless_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let script = "ls $XDG_RUNTIME_DIR";
    let library = libdmd().to_str().unwrap();
    let arguments = ["--library", library, "-o", "x.json", "--", "bash", "-c", script];
    let sockets = tempfile::tempdir().unwrap();
    let mut command = command(folder.path(), &arguments);
    own_sockets(&mut command, sockets.path());
    let output = command.output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b""[..]), "{output:?}");
}

#[test]
fn dumps_are_written_while_the_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    let library = libdmd().to_str().unwrap();
    let arguments = ["--library", library, "--every", "200ms", "-o", "x.json", "--", "sleep", "2"];
    let mut command = command(folder.path(), &arguments);
    own_sockets(&mut command, folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = stderr(&output);
    assert!(text.contains("about-memory: wrote x.1.json.gz\nabout-memory: wrote x.2.json.gz\n"), "{text}");
    assert!(text.ends_with("about-memory: wrote x.json\n"), "{text}");
    let first = dump(&folder.path().join("x.1.json.gz"));
    assert_eq!(first["invocation"]["mode"], "dark-matter");
    assert!(!text.contains("meanwhile"), "{text}");
}

/// The program runs on while it writes the contents of its blocks.
#[test]
fn a_dump_with_contents_may_be_of_a_later_moment() {
    let folder = tempfile::tempdir().unwrap();
    let library = libdmd().to_str().unwrap();
    let arguments =
        ["--library", library, "--mode", "scan", "--every", "300ms", "-o", "x.json", "--", "sleep", "1"];
    let mut command = command(folder.path(), &arguments);
    own_sockets(&mut command, folder.path());
    let text = stderr(&command.output().unwrap());
    let first = text.lines().find(|line| line.contains("x.1.json.gz")).unwrap_or_else(|| panic!("{text}"));
    let note = " s; the program ran on meanwhile, so contents may be newer than its blocks";
    assert!(first.starts_with("about-memory: wrote x.1.json.gz in ") && first.ends_with(note), "{text}");
    // The program waits for the last dump.
    assert!(text.ends_with("about-memory: wrote x.json\n"), "{text}");
}

/// The program grows in steps of two seconds, so the condition changes from false to true exactly one time.
#[test]
fn a_dump_is_written_when_an_amount_passes_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let source = "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
        int main(void) { for (int i = 0; i < 3; i++) { memset(malloc(20 << 20), 1, 20 << 20); sleep(2); } }\n";
    compile(folder.path(), "grows", source, &[]);
    let library = libdmd().to_str().unwrap();
    let arguments = ["--library", library, "--when", "heap > 30 MiB", "-o", "y-%p.json", "--", "./grows"];
    let mut command = command(folder.path(), &arguments);
    own_sockets(&mut command, folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let written: Vec<_> = files(folder.path()).into_iter().filter(|name| name.ends_with(".gz")).collect();
    let [written] = &written[..] else { panic!("{written:?} {}", stderr(&output)) };
    let bytes: u64 = dump(&folder.path().join(written))["blockList"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["req"].as_u64().unwrap() * block["num"].as_u64().unwrap_or(1))
        .sum();
    assert!((40 << 20..50 << 20).contains(&bytes), "{bytes}");
}

/// A sample does not contain the heap's bytes, so `run` cannot check the condition, and prints the reason.
#[test]
fn an_amount_that_the_process_does_not_know_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let library = libdmd().to_str().unwrap();
    let arguments =
        ["--library", library, "--sample-below", "4096", "--when", "heap > 1 GiB", "-o", "z-%p.json"];
    let mut command = command(folder.path(), &[&arguments[..], &["--", "sleep", "2"]].concat());
    own_sockets(&mut command, folder.path());
    let text = stderr(&command.output().unwrap());
    assert_eq!(text.matches("cannot count heap").count(), 1, "{text}");
}

#[test]
fn no_dump_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["--", "bash", "-c", "kill -9 $$"]);
    // `timeout` reports the signal as a shell does.
    assert!(output.status.signal() == Some(9) || output.status.code() == Some(137), "{output:?}");
    assert_eq!(
        stderr(&output),
        "about-memory: no dump: signal 9 ended the program before it could write one\n"
    );
    assert!(files(folder.path()).is_empty());
}

/// Runs a program that cannot be recorded. Returns the reason.
fn refused(folder: &Path, program: &str) -> String {
    let output = run(folder, &["--", program]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(output.stdout, b"");
    let text = stderr(&output);
    text.strip_prefix(&format!("about-memory: {program}: ")).unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn what_cannot_work_is_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let print = "#include <stdio.h>\nint main(void) { puts(\"started\"); return 0; }\n";
    compile(folder, "static", print, &["-static"]);
    assert!(refused(folder, "./static").starts_with("is statically linked, "));

    let own = "#include <stddef.h>\nvoid *malloc(size_t n) { static char m[1 << 20]; static size_t a;\n\
               a += (n + 15) & ~(size_t)15; return m + a; }\nvoid free(void *p) { (void)p; }\nint main(void) { return 0; }\n";
    compile(folder, "own", own, &["-rdynamic"]);
    assert!(refused(folder, "./own").starts_with("contains its own malloc, "));

    compile(folder, "plain", print, &[]);
    assert!(run(folder, &["./plain"]).status.success());
    if rustix::process::geteuid().is_root() {
        chown(folder.join("plain"), Some(65_534), None).unwrap();
        fs::set_permissions(folder.join("plain"), fs::Permissions::from_mode(0o4755)).unwrap();
        assert!(refused(folder, "./plain").starts_with("is setuid, setgid or has capabilities, "));
    }

    // A program counts as built with a sanitizer if it has the names of the sanitizer's functions. So the test needs no
    // compiler with sanitizers.
    compile(
        folder,
        "static-asan",
        "void *malloc(unsigned long n) { return (void *)n; } void __asan_init(void) {}\n\
        int main(void) { return 0; }\n",
        &["-rdynamic"],
    );
    assert!(
        refused(folder, "./static-asan").starts_with("is built with AddressSanitizer, whose library must ")
    );
    for (flag, name) in [("address", "Address"), ("thread", "Thread"), ("leak", "Leak")] {
        fs::write(folder.join("sanitized.c"), print).unwrap();
        let flag = format!("-fsanitize={flag}");
        let compiled =
            Command::new("cc").args([&flag, "-o", "sanitized", "sanitized.c"]).current_dir(folder).output();
        if compiled.is_ok_and(|output| output.status.success()) {
            let text = refused(folder, "./sanitized");
            assert_eq!(
                text,
                format!(
                    "is built with {name}Sanitizer, whose library must be loaded before libdmd.so; \
                     build without {name}Sanitizer\n"
                )
            );
        }
    }

    // A program with another C library, if that library's compiler is installed.
    fs::write(folder.join("musl.c"), print).unwrap();
    let compiled = Command::new("musl-gcc").args(["-o", "musl", "musl.c"]).current_dir(folder).status();
    if compiled.is_ok_and(|status| status.success()) {
        let text = refused(folder, "./musl");
        assert!(text.starts_with("uses the loader /lib/ld-musl-"), "{text}");
        assert!(text.ends_with(", which does not belong to the GNU C library\n"), "{text}");
    }

    fs::write(folder.join("script"), "#!./static -x\n").unwrap();
    fs::set_permissions(folder.join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(refused(folder, "./script").starts_with("is a script, and ./static is statically linked, "));
    fs::write(folder.join("text"), "no program\n").unwrap();
    assert_eq!(refused(folder, "./text"), "is neither an executable of this system nor a script\n");
    assert_eq!(refused(folder, "no-such-program"), "the program was not found\n");
}

/// A line before the program starts describes each allocator inside of it. The program's blocks are in the dump, or
/// commands that read the dump print why not.
#[test]
fn a_program_with_its_own_allocator_is_hooked_or_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let run = |name: &str, source: &str, arguments: &[&str]| {
        compile(folder, name, source, arguments);
        let output = run(folder, &["-o", "x.json", "--", &format!("./{name}")]);
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        let text = stderr(&output);
        text.strip_suffix("about-memory: wrote x.json\n").unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let file = folder.join("x.json");
    let recorded = || {
        let dump: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let blocks = dump["blockList"].as_array().unwrap();
        blocks
            .iter()
            .filter(|block| block["req"] == 777)
            .map(|block| block["num"].as_u64().unwrap_or(1))
            .sum::<u64>()
    };
    let leaks = || {
        let leaks = crate::html::about_memory(&["leaks", "--fail-above", "1B", file.to_str().unwrap()]);
        stderr(&leaks)
    };
    let own = |allocate: &str, free: &str, more: &str| {
        format!(
            "static char all[9000]; static int used;
             void _mi_page(void) {{}} void _rjem_je_arena(void) {{}} void je_arena_new(void) {{}} void tc_version(void) {{}}
             void _ZN8snmalloc(void) {{}} void rpmalloc_initialize(void) {{}} void TCMallocInternalCalloc(void) {{}}
             __attribute__((noinline)) void *{allocate}(unsigned long n) {{ return all + (used += n) - n; }}
             __attribute__((noinline)) void {free}(void *block) {{ used += !block; }}
             __attribute__((noinline)) void mi_heap_destroy(void *heap) {{ used += !heap; }}
             int main(void) {{ for (int i = 0; i < 5; i++) {{ void *block = {allocate}(777); if (i < 2) {{ {more} }} }} return 7; }}\n"
        )
    };
    for (name, allocate, free) in [
        ("jemalloc", "_rjem_malloc", "_rjem_sdallocx"),
        ("jemalloc", "je_mallocx", "je_free"),
        ("mimalloc", "mi_malloc_aligned", "mi_free"),
        ("mimalloc", "mi_malloc", "mi_free_size"),
        ("snmalloc", "sn_malloc", "sn_rust_dealloc"),
        ("rpmalloc", "rpmalloc", "rpfree"),
        ("tcmalloc", "tc_malloc", "tc_free"),
        ("tcmalloc", "TCMallocInternalMalloc", "TCMallocInternalFree"),
    ] {
        let source = own(allocate, free, &format!("{free}(block);"));
        let found = "its blocks are recorded, too (2 functions, 2 references)";
        let line = format!("about-memory: {name} inside the program: {found}\n");
        assert_eq!(run("its-own", &source, &[]), line);
        assert_eq!(recorded(), 3, "{name}");
        assert!(!leaks().contains("inside the program"), "{}", leaks());
    }

    // The allocator is in a library of its own: the program's calls do not pass `libdmd.so`.
    compile(
        folder,
        "libmi.so",
        "void *mi_malloc(unsigned long n) { static char all[9000]; return all + n; }\n",
        &["-shared", "-fPIC"],
    );
    let source = "void *mi_malloc(unsigned long); int main(void) { return mi_malloc(777) ? 7 : 8; }\n";
    let text = run("imports", source, &[folder.join("libmi.so").to_str().unwrap()]);
    let line = "about-memory: mimalloc inside a library: its blocks are not recorded: the program calls mi_malloc of a library; \
                link the allocator into the program\n";
    assert_eq!(text, line);
    assert!(leaks().starts_with(line), "{}", leaks());

    let refused = |source: &str, arguments: &[&str], reason: &str| {
        let text = run("refused", source, arguments);
        let line =
            format!("about-memory: mimalloc inside the program: its blocks are not recorded: {reason}\n");
        assert!(line.len() <= 300, "a longer line loses its middle: {line}");
        assert_eq!(text, line);
        // `leaks` prints the same warning. Without the warning, a check of this file would pass silently.
        assert!(leaks().starts_with(&line), "{}", leaks());
        assert_eq!(recorded(), 0);
    };
    let freed = own("mi_malloc", "mi_free", "mi_free(block);");
    let stripped = format!("const char *volatile text = \"mimalloc: warning: \"; {freed}");
    refused(
        &stripped,
        &["-s"],
        "the program has no symbol table; build it without strip = \"symbols\", or install its debug file",
    );
    let destroyed = own("mi_malloc", "mi_free", "mi_free(block); mi_heap_destroy(block);");
    refused(
        &destroyed,
        &[],
        "the program calls mi_heap_destroy, whose effect on blocks is unknown; wrap the allocator in dmd::Dmd",
    );
    // The program frees no block, so only its allocations have references.
    let found = "its blocks are recorded, too (1 function, 1 reference)";
    let line = format!("about-memory: mimalloc inside the program: {found}\n");
    assert_eq!(run("its-own", &own("mi_malloc", "mi_free", ""), &[]), line);
    assert_eq!(recorded(), 5);

    assert_eq!(
        run("ordinary", "void *my_malloc(void *p) { return p; } int main(void) { return 7; }", &[]),
        ""
    );
    // A program that contains the wrapper records its blocks itself.
    let mark = std::str::from_utf8(dmd_format::LINKED_MARK).unwrap().replace('\0', "\\0");
    let wrapped = format!("const char mark[] = \"{mark}\"; {freed}");
    assert_eq!(run("wrapped", &wrapped, &[]), "");
}

#[test]
fn the_library_is_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (bin, lib) = (folder.path().join("bin"), folder.path().join("lib"));
    fs::create_dir(&bin).unwrap();
    let program = bin.join("about-memory");
    fs::copy(env!("CARGO_BIN_EXE_about-memory"), &program).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "120"]).arg(&program).args(["run", "--quiet"]).args(arguments);
        command.args(["-o", "x.json", "--", "ls", "/"]).current_dir(folder.path());
        command.env_remove("DMD").env_remove("LD_PRELOAD").env_remove("CARGO_TARGET_DIR").output().unwrap()
    };
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "about-memory: libdmd.so: is neither beside this program, nor in ../lib, nor in the target folder; \
                    build it with: cargo build --release -p dmd-preload\n";
    assert_eq!(stderr(&output), expected);

    fs::create_dir(&lib).unwrap();
    fs::copy(libdmd(), lib.join("libdmd.so")).unwrap();
    assert_eq!(stderr(&run(&[])), "about-memory: wrote x.json\n");
    fs::rename(lib.join("libdmd.so"), bin.join("libdmd.so")).unwrap();
    fs::remove_file(folder.path().join("x.json")).unwrap();
    assert_eq!(stderr(&run(&[])), "about-memory: wrote x.json\n");

    let output = run(&["--library", "nowhere.so"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).starts_with("about-memory: nowhere.so: the library was not found; build it with: ")
    );
}

#[test]
fn wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["--mode", "dead", "--", "ls"][..],
        &["--max-frames", "0", "--", "ls"],
        &["-o", "a b.json", "--", "ls"],
        &["-o", "%p/x.json", "--", "ls"],
        &["--every", "fast", "--", "ls"],
        &["--every", "1ms", "--", "ls"],
        &["--when", "explicit > 1 GiB", "--", "ls"],
        &["--when", "heap > +5%", "--", "ls"],
        &["--when", "heap > 5%", "--", "ls"],
        &["--when", "heap", "--", "ls"],
        &["--"],
    ] {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    }
    let output = run(folder.path(), &["-o", "no/x.json", "--", "ls"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "about-memory: no/x.json: there is no folder no\n");
    // The program and its options may be any words, so the parser accepts an unknown option as the program's name.
    for (option, advice) in [
        ("--recrod", "did you mean --record?"),
        ("--every5=1s", "did you mean --every?"),
        ("--unheard-of", "see about-memory run --help"),
    ] {
        let output = run(folder.path(), &[option, "x", "--", "ls"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let name = option.split('=').next().unwrap();
        let expected = format!("about-memory: {name}: no option of run has this name; {advice}\n");
        assert_eq!(stderr(&output), expected);
    }
}
