//! Compares recordings with heaptrack, which counts the same run of the same program. `./test` installs Debian's
//! package heaptrack.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::run::{compile, run};

const PRELOADED: [&str; 2] = [
    "/usr/lib/heaptrack/libheaptrack_preload.so",
    "/usr/lib/x86_64-linux-gnu/heaptrack/libheaptrack_preload.so",
];

/// Leaks blocks of two functions, and allocates 16 MB between them.
const LEAKY: &str = r#"
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) void *lose_small(int n) { return memset(malloc(24), n, 24); }
__attribute__((noinline)) void *lose_large(int n) { return memset(realloc(malloc(10), 5000 + n), n, 5000); }
int main(void) {
    void *volatile kept;
    for (int n = 0; n < 1000; n++) {
        kept = lose_small(n);
        if (n % 100 == 0) kept = lose_large(n);
        free(calloc(n + 1, 3));
    }
    void *blocks[1000];
    for (int n = 0; n < 1000; n++) blocks[n] = memset(malloc(16000), n, 16000);
    for (int n = 0; n < 1000; n++) free(blocks[n]);
    return kept == 0;
}
"#;

/// The bytes and the number of leaked blocks of one stack, and the known functions on the stack.
type Leak = (u64, u64, Vec<&'static str>);

/// Names that distinguish the stacks of [`LEAKY`].
const FUNCTIONS: [&str; 2] = ["lose_small", "lose_large"];

#[derive(Debug)]
struct Counted {
    /// The number of allocations and reallocations.
    calls: u64,
    peak: u64,
    leaks: Vec<Leak>,
}

/// Runs the program under heaptrack. Returns heaptrack's counts and its file for other programs; `None` without
/// heaptrack.
fn by_heaptrack(folder: &Path, program: &[&str]) -> Option<(Counted, PathBuf)> {
    let Some(library) = PRELOADED.into_iter().find(|path| Path::new(path).exists()) else {
        assert!(std::env::var_os("PROGRAMS_ARE_BUILT").is_none(), "./test installs heaptrack");
        return None;
    };
    let raw = folder.join("raw.heaptrack");
    // heaptrack overwrites an older file without shortening it.
    let _ = fs::remove_file(&raw);
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    command.env_remove("DMD").env("LD_PRELOAD", library).env("DUMP_HEAPTRACK_OUTPUT", &raw);
    assert!(command.status().unwrap().success(), "{program:?}");
    let file = folder.join("interpreted.heaptrack");
    let interpreter = Path::new(library).with_file_name("libexec").join("heaptrack_interpret");
    let mut interpreter = Command::new(interpreter);
    interpreter.stdin(File::open(&raw).unwrap()).stdout(File::create(&file).unwrap()).stderr(Stdio::null());
    assert!(interpreter.status().unwrap().success());
    Some((read(&String::from_utf8_lossy(&fs::read(&file).unwrap())), file))
}

/// Reads heaptrack's format: strings, instruction pointers, traces, kinds of allocations, and events.
fn read(text: &str) -> Counted {
    let (mut strings, mut functions, mut traces, mut kinds) =
        (vec![""], vec![vec![]], vec![(0, 0)], Vec::new());
    let (mut live, mut bytes) = (HashMap::<u64, i64>::new(), 0);
    let mut counted = Counted { calls: 0, peak: 0, leaks: Vec::new() };
    for line in text.lines() {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let numbers = || rest.split(' ').map(|word| u64::from_str_radix(word, 16).unwrap_or_default());
        let mut words = numbers();
        let mut next = || words.next().unwrap_or_default();
        match kind {
            "s" => strings.push(rest.split_once(' ').map_or("", |(_, text)| text)),
            // The address, the module, and for each inlined call: the function, the file and the line.
            "i" => functions.push(numbers().skip(2).step_by(3).collect()),
            "t" => traces.push((next(), next())),
            "a" => kinds.push((next(), next())),
            "+" | "-" => {
                let kind = next();
                let change = if line.starts_with('+') { 1 } else { -1 };
                counted.calls += u64::from(change == 1);
                *live.entry(kind).or_default() += change;
                bytes += change * kinds[kind as usize].0 as i64;
                counted.peak = counted.peak.max(bytes as u64);
            }
            _ => {}
        }
    }
    let mut leaks: HashMap<u64, (u64, u64)> = HashMap::new();
    for (number, (size, trace)) in (0..).zip(&kinds) {
        let blocks = live.get(&number).copied().unwrap_or_default() as u64;
        let leak = leaks.entry(*trace).or_default();
        *leak = (leak.0 + blocks * size, leak.1 + blocks);
    }
    let names = |mut trace: u64| {
        let mut names = Vec::new();
        while trace != 0 {
            let (pointer, parent) = traces[trace as usize];
            names.extend(functions[pointer as usize].iter().map(|name| strings[*name as usize]));
            trace = parent;
        }
        FUNCTIONS.into_iter().filter(|name| names.contains(name)).collect()
    };
    let leaks = leaks.into_iter().filter(|(_, (_, blocks))| *blocks > 0);
    counted.leaks = leaks.map(|(trace, (bytes, blocks))| (bytes, blocks, names(trace))).collect();
    counted.leaks.sort();
    counted
}

/// Runs the program with `--record`. Returns the counts of the recording.
fn by_recording(folder: &Path, program: &[&str]) -> Counted {
    let output = run(folder, &[&["--record", "r.dmdrec"], program].concat());
    assert!(output.status.success(), "{output:?}");
    let json = |command: &str| -> Value {
        let mut about = Command::new(env!("CARGO_BIN_EXE_about-memory"));
        let output = about.args([command, "--json", "r.dmdrec"]).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let (history, leaks) = (json("history"), json("leaks"));
    let number = |value: &Value| value.as_u64().unwrap();
    let leak = |leak: &Value| {
        let frames: Vec<&str> = leak["allocatedAt"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|frame| frame.as_str().unwrap())
            .collect();
        let is_in = |name: &&str| frames.iter().any(|frame| frame.starts_with(name));
        (number(&leak["requested"]), number(&leak["blocks"]), FUNCTIONS.into_iter().filter(is_in).collect())
    };
    // heaptrack also counts the buffers of standard output, and lets libraries free their own blocks at the end.
    let is_counted = |apart: &&Value| apart["what"] == "buffers of standard input and output";
    let buffers = leaks["apart"].as_array().unwrap().iter().filter(is_counted);
    let all = leaks["leaks"].as_array().unwrap().iter().chain(buffers);
    let mut leaks: Vec<Leak> = all.map(leak).collect();
    leaks.sort();
    let calls = number(&history["allocations"]) + number(&history["reallocations"]);
    let counted = Counted { calls, peak: number(&history["peak"]["requested"]), leaks };
    let exported = exported(folder);
    assert_eq!(exported.calls, counted.calls);
    // The history's peak is the time with the most usable bytes. At another time there may be more requested bytes.
    assert!(exported.peak.abs_diff(counted.peak) * 100 <= exported.peak, "{exported:?} {counted:?}");
    let lost = exported.leaks.iter().map(|(bytes, ..)| bytes).sum::<u64>();
    assert_eq!(lost, number(&history["end"]["requested"]));
    counted
}

/// Returns the whole history of the recording, from an export in heaptrack's format. heaptrack's own program prints the
/// same counts.
fn exported(folder: &Path) -> Counted {
    let mut export = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    export.args(["export", "--requested", "r.dmdrec", "-o", "r.heaptrack"]).current_dir(folder);
    assert!(export.status().unwrap().success());
    let counted = read(&fs::read_to_string(folder.join("r.heaptrack")).unwrap());
    let printed = Command::new("heaptrack_print").args(["-f", "r.heaptrack"]).current_dir(folder).output();
    let printed = String::from_utf8_lossy(&printed.unwrap().stdout).into_owned();
    let calls = format!("calls to allocation functions: {} ", counted.calls);
    assert!(printed.contains(&calls), "{calls}: {printed}");
    counted
}

/// Asserts that the numbers of allocations agree, that the peaks differ by at most 1 %, and that the leaks of each
/// stack are equal. `own` is the number of allocations that heaptrack adds to the program's.
fn assert_agreement(recorded: &Counted, heaptrack: &Counted, own: u64) {
    assert_eq!(recorded.calls + own, heaptrack.calls, "{recorded:?} {heaptrack:?}");
    assert!(recorded.peak.abs_diff(heaptrack.peak) * 100 <= heaptrack.peak, "{recorded:?} {heaptrack:?}");
    assert_eq!(recorded.leaks, heaptrack.leaks);
}

#[test]
fn recordings_agree_with_heaptrack() {
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "leaky", LEAKY, &["-O1", "-g", "-fno-builtin", "-rdynamic"]);
    let Some((heaptrack, file)) = by_heaptrack(folder.path(), &["./leaky"]) else { return };
    let recorded = by_recording(folder.path(), &["./leaky"]);
    assert_eq!(recorded.leaks.len(), 2);
    // heaptrack loads C++'s library, which allocates a reserve for exceptions.
    assert_agreement(&recorded, &heaptrack, 1);
    // A real program. It loads C++'s library itself, so heaptrack adds no allocation.
    let kept = folder.path().join("input.heaptrack");
    fs::rename(file, &kept).unwrap();
    let program = ["heaptrack_print", "-f", kept.to_str().unwrap()];
    let (heaptrack, _) = by_heaptrack(folder.path(), &program).unwrap();
    assert!(heaptrack.calls > 400, "{heaptrack:?}");
    assert_agreement(&by_recording(folder.path(), &program), &heaptrack, 0);
}
