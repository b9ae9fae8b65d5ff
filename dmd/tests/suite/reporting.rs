//! A program that only links `memory-reporter`, under `libdmd.so`.

use serde_json::Value;

use crate::support::{command, count, frames, libdmd, preloaded, read_dump, succeed, victim};

#[test]
fn its_reporters_run_and_mark() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    succeed(preloaded(victim("reporting"), "--stacks=full --quiet").arg(&file));
    check(&read_dump(&file));
}

#[test]
fn its_reporters_run_at_the_end_too() {
    let folder = tempfile::tempdir().unwrap();
    let options = "--stacks=full --quiet --dump-at-exit --output=end.json";
    let output = succeed(preloaded(victim("reporting"), options).current_dir(folder.path()));
    assert!(output.stderr.is_empty(), "{output:?}");
    check(&read_dump(folder.path().join("end.json")));
}

fn check(dump: &Value) {
    assert_eq!(dump["invocation"]["mode"], "dark-matter");

    let reports = |block: &Value| block.get("reps").map_or(0, |reports| reports.as_array().unwrap().len());
    assert_eq!(count(dump, |block| block["req"] == 1000 && reports(block) == 1), 10);
    assert_eq!(count(dump, |block| block["req"] == 5000 && reports(block) == 0), 1);
    assert_eq!(count(dump, |block| reports(block) == 2), 0, "nothing is reported twice");
    // The hash table, of which only the inside is seen.
    let table = |block: &Value| block["req"].as_u64().unwrap() > 16 * 1024 && reports(block) == 1;
    assert_eq!(count(dump, table), 1);

    let paths = dump["reportPaths"].as_array().unwrap();
    let path = |name: &str| paths.iter().find(|path| path["path"] == name).unwrap();
    let names = path("explicit/names");
    assert_eq!(names["claimed"], names["marked"]);
    assert_eq!(path("explicit/table")["claimed"], path("explicit/table")["marked"]);
    assert_eq!(path("explicit/guess")["claimed"], 12_345);
    assert_eq!(path("explicit/guess")["marked"], 0);
    let block = dump["blockList"].as_array().unwrap().iter().find(|block| block["req"] == 1000).unwrap();
    let place = block["repPaths"][0].as_u64().unwrap() as usize;
    assert_eq!(paths[place]["path"], "explicit/names");

    let faults: u64 = dump["reportFaultCounts"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(faults, 0, "{}", dump["reportFaults"]);

    // The innermost frame is malloc's own.
    let stack = frames(dump, &block["alloc"]);
    assert!(stack[0].starts_with(&format!("#00: ???[{} +0x", libdmd().display())), "{stack:?}");
    assert!(stack[1].contains("examples/reporting"), "{stack:?}");
    assert!(stack.len() > 3 && stack.len() <= 24, "{stack:?}");
}

#[test]
fn the_wrapper_may_be_the_declared_allocator() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    let off = succeed(command(victim("declared")).arg(&file));
    assert_eq!(off.stdout, b"off\n");
    let options = "--stacks=full --quiet";
    for output in [
        succeed(command(victim("declared")).arg(&file).env("DMD", options)),
        succeed(preloaded(victim("declared"), options).arg(&file)),
    ] {
        assert_eq!(output.stdout, b"on\n");
        let dump = read_dump(&file);
        let reports =
            |block: &Value| block.get("reps").map_or(0, |reports| reports.as_array().unwrap().len());
        assert_eq!(count(&dump, |block| block["req"] == 10_000 && reports(block) == 1), 100);
        assert_eq!(count(&dump, |block| reports(block) == 2), 0);
    }
}
