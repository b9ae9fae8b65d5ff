//! The blocks that are alive at the end: in recordings, in dumps, and between dumps.

use dmd_analyze::program::{LeakOptions, Leaks, OneTime, ProgramOptions};
use dmd_format::recording::{LiveBlock, RecordedBlock};
use serde_json::Value;

use super::history::server;
use super::script::Script;
use crate::views::golden;
use crate::{document, read};

fn leaks(script: &Script, options: &LeakOptions) -> Leaks {
    Leaks::new(&mut script.recording(), options, |_| ()).unwrap()
}

#[test]
fn the_text_tells_growth_from_what_is_allocated_once() {
    let mut script = server();
    let block = RecordedBlock { requested: 300, slop: 4, stack: 1 };
    script.older.push(LiveBlock { address: 0x40, block });
    let leaks = leaks(&script, &LeakOptions::new().ignore(|frame| frame.contains("+0x100")));
    assert_eq!((leaks.blocks(), leaks.bytes()), (11, 65536 + 40_000));
    let text = leaks.text(5, &ProgramOptions::new()).to_string();
    golden("leaks.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 100 && line == line.trim_end()), "{text}");
}

#[test]
fn the_json_has_the_same_figures() {
    let json = leaks(&server(), &LeakOptions::new()).json(usize::MAX).to_string();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["blocks"].as_u64(), json["bytes"].as_u64()), (Some(11), Some(105_536)));
    let again = &json["leaks"][0];
    assert_eq!(again["growth"], "again");
    assert_eq!((again["blocks"].as_u64(), again["allocations"].as_u64()), (Some(10), Some(10)));
    assert_eq!(again["sizes"], serde_json::json!([[4000, 10]]));
    assert_eq!(again["times"].as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>(), 10);
    assert_eq!(again["allocatedAt"].as_array().unwrap().len(), 2);
    let once = &json["leaks"][1];
    assert_eq!(once["growth"], "once");
    assert_eq!((once["blocks"].as_u64(), once["allocations"].as_u64()), (Some(1), Some(11)));
}

/// Checks the kind of a stack's blocks; `None` means leaks. `frames` are innermost first.
fn check(expected: Option<OneTime>, frames: &[&str]) {
    let keys: Vec<String> = (0..frames.len()).map(|n| format!("\"F{n}\"")).collect();
    let table: Vec<String> =
        frames.iter().enumerate().map(|(n, text)| format!("\"F{n}\": \"#00: {text}\"")).collect();
    let tables = format!(
        r#""traceTable": {{"A": [{}]}}, "frameTable": {{{}}}, "modules": []"#,
        keys.join(", "),
        table.join(", ")
    );
    let block = r#"{"req": 5, "slop": 3, "num": 2, "alloc": "A"}"#;
    let dump = || read(document("live", block, &tables)).unwrap();
    let leaks = Leaks::from_dump(dump(), &LeakOptions::new()).unwrap();
    let text = leaks.text(5, &ProgramOptions::new()).to_string();
    assert_eq!(leaks.blocks(), if expected.is_some() { 0 } else { 2 }, "{frames:?}: {text}");
    if let Some(expected) = expected {
        assert!(text.contains(&format!("made once: {expected}")), "{text}");
    }
    let all = Leaks::from_dump(dump(), &LeakOptions::new().known(true)).unwrap();
    assert_eq!((all.blocks(), all.bytes()), (2, 16));
}

const STD: &str = "/rustc/1/library/std/src";
const MAIN: [&str; 2] = ["app::main (/app/src/main.rs:3)", "main[/app/app +0x10]"];

#[test]
fn what_libraries_make_once_is_no_leak() {
    let with_main = |inner: &[&str], expected| {
        let frames: Vec<&str> = inner.iter().copied().chain(MAIN).collect();
        check(expected, &frames);
    };
    let malloc = "malloc[/usr/lib/libdmd.so +0x1]";
    with_main(
        &[
            malloc,
            &format!("std::io::stdio::stdout::{{closure#0}} ({STD}/io/stdio.rs:7)"),
            &format!("std::io::stdio::_print ({STD}/io/stdio.rs:9)"),
        ],
        Some(OneTime::Stdio),
    );
    with_main(
        &[malloc, "_IO_file_doallocate (./libio/filedoalloc.c:101)", "puts (./libio/ioputs.c:35)"],
        Some(OneTime::Stdio),
    );
    with_main(
        &[malloc, "__new_exitfn (./stdlib/cxa_atexit.c:100)", "__cxa_atexit[/lib/libc.so.6 +0x3]"],
        Some(OneTime::AtExit),
    );
    with_main(
        &[
            malloc,
            &format!(
                "std::sys::thread_local::destructors::list::register ({STD}/sys/thread_local/destructors/list.rs:1)"
            ),
        ],
        Some(OneTime::ThreadLocals),
    );
    with_main(
        &[malloc, "_dl_new_object[/lib64/ld-linux-x86-64.so.2 +0x3]", "dlopen[/lib/libc.so.6 +0x1]"],
        Some(OneTime::Loader),
    );
    with_main(&[malloc, "setlocale (./locale/setlocale.c:3)"], Some(OneTime::Locale));
    check(
        Some(OneTime::Start),
        &[
            malloc,
            &format!("std::rt::init ({STD}/rt.rs:1)"),
            "main[/app/app +0x10]",
            "__libc_start_main[/lib/libc.so.6 +0x1]",
        ],
    );
}

#[test]
fn what_the_program_makes_is_a_leak() {
    let malloc = "malloc[/usr/lib/libdmd.so +0x1]";
    let vec = "alloc::vec::Vec<u8>::with_capacity (/rustc/1/library/alloc/src/vec/mod.rs:1)";
    let start = format!("std::rt::lang_start ({STD}/rt.rs:1)");
    let main: Vec<&str> = [malloc, vec].into_iter().chain(MAIN).chain([&*start]).collect();
    check(None, &main);
    // A library from the table calls back into the program.
    check(None, &[malloc, MAIN[0], &format!("std::io::stdio::print_to ({STD}/io/stdio.rs:7)"), MAIN[1]]);
    // Functions without names may belong to the program.
    check(None, &["???[/app/app +0x10]", "???[/app/app +0x20]"]);
    check(None, &["??? (???:???)"]);
}

#[test]
fn a_dump_has_leaks_without_times() {
    let tables = r##""traceTable": {"A": ["B"]}, "frameTable": {"B": "#00: app::f (/app/src/f.rs:1)"}, "modules": []"##;
    let dump = |mode: &str, blocks: &str| read(document(mode, blocks, tables)).unwrap();
    let block = r#"{"req": 64, "slop": 8, "num": 3, "alloc": "A"}, {"req": 5}"#;
    let leaks = Leaks::from_dump(dump("dark-matter", block), &LeakOptions::new()).unwrap();
    let text = leaks.text(5, &ProgramOptions::new()).to_string();
    assert!(
        text.starts_with("Leaked: 221 B in 4 blocks.\n\nNot freed: 221 B in 4 blocks\n\n1. 216 B"),
        "{text}"
    );
    let error = Leaks::from_dump(dump("cumulative", block), &LeakOptions::new()).unwrap_err();
    assert_eq!(error.to_string(), "taken in mode cumulative: the dump also contains freed blocks");
    let before = r#"{"req": 64, "slop": 8, "num": 1, "alloc": "A"}, {"req": 7, "num": 4}"#;
    let difference =
        Leaks::from_difference(dump("live", before), dump("live", block), &LeakOptions::new()).unwrap();
    assert_eq!((difference.blocks(), difference.bytes()), (2, 144));
}
