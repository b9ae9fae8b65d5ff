//! Signal handlers that interrupt the library.

use crate::support::{c_program, count, preloaded, read_dump, succeed, victim};

/// The dump contains each block of a handler, or counts it as lost.
#[test]
fn blocks_that_they_make_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "handler_counts");
    for stacks in ["full", "partial"] {
        let options =
            format!("--mode=cumulative --stacks={stacks} --quiet --dump-at-exit --output=dump.json");
        let output = succeed(preloaded(&program, &options).current_dir(folder.path()));
        let made: u64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        assert!(made > 8000, "{made}");
        let dump = read_dump(folder.path().join("dump.json"));
        let known = count(&dump, |block| block["req"] == 1000 || block["req"] == 1001);
        assert_eq!(dump["dropped"]["blocks"], 0, "{stacks}");
        assert_eq!(known + dump["dropped"]["freedBlocks"].as_u64().unwrap(), made, "{stacks}");
    }
}

/// Under all options, the dump contains the only block of the handler that is live at the end.
#[test]
fn blocks_that_they_make_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "handler_counts");
    for options in ["--mode=live --stacks=full", "--mode=dark-matter", "--mode=scan"] {
        let options = format!("{options} --quiet --dump-at-exit --output=dump.json");
        succeed(preloaded(&program, &options).current_dir(folder.path()));
        let dump = read_dump(folder.path().join("dump.json"));
        assert_eq!(count(&dump, |block| block["req"] == 1001), 1, "{options}");
        assert_eq!(count(&dump, |block| block["req"] == 1000), 0, "{options}");
        assert_eq!(dump["dropped"]["blocks"], 0, "{options}");
    }
}

#[test]
fn dumps_that_they_ask_for_do_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "handler_dumps");
    for mode in ["live", "cumulative", "dark-matter"] {
        let file = folder.path().join(format!("{mode}.json"));
        let options = format!("--mode={mode} --stacks=full --quiet");
        let output = succeed(preloaded(&program, &options).arg(&file));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "done\n", "{mode}");
        assert_eq!(count(&read_dump(&file), |block| block["req"] == 4242), 1, "{mode}");
    }
}

/// The reporters do not wait, although they allocate and the interrupted code may hold the C library's lock.
#[test]
fn reporters_that_they_ask_for_do_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    let output = succeed(preloaded(victim("interrupted"), "--stacks=full --quiet").arg(&file));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "done\n");
    assert_eq!(count(&read_dump(&file), |block| block["req"] == 4242), 1);
}
