//! Stacks that overflow, stacks next to other stacks, and stacks with large frames.

use serde_json::Value;

use crate::support::{c_program, command, count, frames, preloaded, read_dump, run, succeed};

const OPTIONS: &str = "--mode=live --stacks=full --quiet --dump-at-exit --output=dump.json";

/// DMD continues to record a program that recovers from stack overflows, no matter where in the library the stack
/// ends. The dump counts the lost blocks.
#[test]
fn that_overflow() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "overflow");
    let overflows = if std::env::var_os("THOROUGH").is_some() { "100" } else { "25" };
    for mode in ["live", "cumulative"] {
        for way in ["0", "1", "2", "3"] {
            let options = OPTIONS.replace("live", mode);
            let arguments = [way, overflows];
            let output = succeed(preloaded(&program, &options).args(arguments).current_dir(folder.path()));
            let text = String::from_utf8(output.stdout).unwrap();
            assert_eq!(text, format!("{overflows} overflows\n"), "{mode} {way}");
            let dump = read_dump(folder.path().join("dump.json"));
            let with_stack = |block: &Value| block["req"] == 777 && block.get("alloc").is_some();
            assert_eq!(count(&dump, with_stack), 1000, "{mode} {way}");
            assert_ne!(dump["dropped"]["blocks"], 0, "{mode} {way}");
        }
    }
}

#[test]
fn that_lie_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "neighbours");
    for _ in 0..8 {
        let output = run(preloaded(&program, OPTIONS).current_dir(folder.path()));
        assert_eq!(output.stdout, b"ok\n", "{output:?}");
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn with_large_frames() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "big_frames");
    if run(&mut command(&program)).stdout != b"ok\n" {
        // The limit of the stack is too small on this system.
        return;
    }
    succeed(preloaded(&program, OPTIONS).current_dir(folder.path()));
    let dump = read_dump(folder.path().join("dump.json"));
    let blocks = dump["blockList"].as_array().unwrap();
    for (first, outermost) in [(4000, 1), (5000, 2)] {
        // The inner frames are `leaf`, `big` and `outer`. Then `in_thread` follows, or `main` and `_start`.
        for (size, inner) in [(first, 3), (first + 1, 2), (first + 2, 2)] {
            let number = if size == first { 1000 } else { 1 };
            assert_eq!(count(&dump, |block| block["req"] == size), number, "{size}");
            let block = blocks.iter().find(|block| block["req"] == size).unwrap();
            let frames = frames(&dump, &block["alloc"]);
            let of_program = frames.iter().filter(|frame| frame.contains("/big_frames +")).count();
            assert_eq!(of_program, inner + outermost, "{size}: {frames:#?}");
        }
    }
}
