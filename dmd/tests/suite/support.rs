//! Builds the programs of the tests, runs them with a time limit, and reads dumps.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use memory_reporter::{
    ReportSet,
    memory_report::{Warning, WarningKind},
};
use serde_json::Value;

use crate::format;

/// The folder in which this test was built, for example `target/debug`.
pub(crate) fn build_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().to_owned()
}

/// Whether `./test` has built all programs that tests run. Other ways to run the tests do not build them.
fn programs_are_built() -> bool {
    std::env::var_os("PROGRAMS_ARE_BUILT").is_some()
}

/// A program of `tests/victims`: an example of the package.
pub(crate) fn victim(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        if programs_are_built() {
            return;
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "-p", "memory-dmd", "--examples"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        if cfg!(feature = "portable-engine") {
            cargo.args(["--features", "portable-engine"]);
        }
        assert!(cargo.arg("--target-dir").arg(build_folder().parent().unwrap()).status().unwrap().success());
    });
    build_folder().join("examples").join(name)
}

/// The path of `libdmd.so`, built as users build it.
pub(crate) fn libdmd() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let target = build_folder().parent().unwrap().join("libdmd");
        if !programs_are_built() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--quiet", "--profile", "dist", "-p", "dmd-preload", "--target-dir"]);
            cargo.arg(&target).current_dir(env!("CARGO_MANIFEST_DIR"));
            assert!(cargo.status().unwrap().success());
        }
        target.join("dist/libdmd.so")
    })
}

/// Compiles a C program of `tests/torture`.
pub(crate) fn c_program(folder: &Path, name: &str) -> PathBuf {
    compile(folder, "cc", &format!("{name}.c"), name, &[])
}

/// The functions of C that programs call by the names of a linked allocator.
const RENAMED: [&str; 9] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "malloc_usable_size",
];

/// Whether C programs contain an allocator of their own.
pub(crate) fn has_linked_allocator() -> bool {
    std::env::var_os("LINKED_ALLOCATOR").is_some()
}

/// `$LINKED_ALLOCATOR` may name an allocator that C programs contain and call instead of the C library's:
/// `_rjem_:/folder/libjemalloc_pic.a`, with the prefix of its functions. Returns the flags of the compiler.
fn linked_allocator() -> Vec<String> {
    let Ok(allocator) = std::env::var("LINKED_ALLOCATOR") else { return Vec::new() };
    let (prefix, archive) = allocator.split_once(':').expect("PREFIX:ARCHIVE");
    let renamed = RENAMED.iter().map(|name| format!("-D{name}={prefix}{name}"));
    renamed.chain([archive.to_owned(), "-lm".to_owned()]).collect()
}

/// Standard error without the lines that give the reason for a missing dump. DMD prints them in quiet mode, too.
pub(crate) fn without_reasons(stderr: &[u8]) -> Vec<u8> {
    let is_reason = |line: &&[u8]| {
        let line = String::from_utf8_lossy(line);
        line.starts_with("DMD[") && (line.contains("  can't write ") || line.contains("] no dump: "))
    };
    stderr.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_reason(line)).flatten().copied().collect()
}

/// Compiles a source of `tests/torture`.
pub(crate) fn compile(folder: &Path, compiler: &str, source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join(name);
    let allocator = if flags.contains(&"-shared") { Vec::new() } else { linked_allocator() };
    let status = Command::new(compiler)
        .args(["-w", "-O1", "-g", "-pthread", "-I"])
        .arg(package.join("include"))
        .arg("-o")
        .arg(&program)
        .arg(package.join("tests/torture").join(source))
        .args(flags)
        .args(allocator)
        .arg("-ldl")
        .status()
        .unwrap();
    assert!(status.success());
    program
}

/// A command without the variables that affect DMD. If the tests are built for another processor, `$PROGRAM_RUNNER`
/// contains the command of an emulator.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let runner = std::env::var("PROGRAM_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let mut command = match words.next() {
        Some(emulator) => {
            let mut command = Command::new(emulator);
            command.args(words).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.env_remove("DMD").env_remove("LD_PRELOAD");
    command
}

/// A command under `libdmd.so`.
pub(crate) fn preloaded(program: impl AsRef<OsStr>, options: &str) -> Command {
    let mut command = command(program);
    command.env("DMD", options).env("LD_PRELOAD", libdmd());
    command
}

/// Runs a command. If the command hangs, kills it and fails the test.
pub(crate) fn run(command: &mut Command) -> Output {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read_all = |stream: &mut dyn Read| {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    };
    let stdout = thread::spawn(move || read_all(&mut stdout));
    let stderr = thread::spawn(move || read_all(&mut stderr));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > Duration::from_secs(240) {
            child.kill().unwrap();
            panic!("{command:?} hangs");
        }
        thread::sleep(Duration::from_millis(5));
    };
    Output { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

/// Like [`run`], but the command must succeed.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = run(command);
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

pub(crate) fn read_dump(path: impl AsRef<Path>) -> Value {
    let path = path.as_ref();
    let mut bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension() == Some(OsStr::new("gz")) {
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut text).unwrap();
        bytes = text;
    }
    let text = String::from_utf8(bytes).unwrap();
    let dump = serde_json::from_str(&text).unwrap();
    format::check(&text, &dump);
    dump
}

/// The number of blocks in a dump that satisfy a condition.
pub(crate) fn count(dump: &Value, condition: impl Fn(&Value) -> bool) -> u64 {
    let blocks = dump["blockList"].as_array().unwrap();
    blocks.iter().filter(|block| condition(block)).map(number_of).sum()
}

pub(crate) fn number_of(block: &Value) -> u64 {
    block.get("num").map_or(1, |number| number.as_u64().unwrap())
}

/// The texts of a stack, innermost first.
pub(crate) fn frames(dump: &Value, trace: &Value) -> Vec<String> {
    let keys = dump["traceTable"][trace.as_str().unwrap()].as_array().unwrap();
    keys.iter().map(|key| dump["frameTable"][key.as_str().unwrap()].as_str().unwrap().to_owned()).collect()
}

/// The warnings of a collection, except warnings about slow reporters: on a busy machine, every reporter may be slow.
pub(crate) fn warnings(set: &ReportSet) -> Vec<&Warning> {
    set.warnings().iter().filter(|warning| warning.kind != WarningKind::Slow).collect()
}

/// Compares a text with a file beside the test; `UPDATE_GOLDEN=1` writes the file.
pub(crate) fn golden(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; UPDATE_GOLDEN=1 writes it", path.display()));
    assert_eq!(actual, expected, "{}", path.display());
}
