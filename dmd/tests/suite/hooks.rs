//! The wrapper, in programs that interrupt threads, fork and end threads at any point.

use crate::support::{command, count, read_dump, succeed, victim};

/// If a handler allocates while DMD takes a stack, the handler's blocks belong to the program, and DMD records them. If
/// a handler interrupts the wrapped allocator itself, the handler's blocks count as parts of the interrupted block.
#[test]
fn blocks_of_a_handler_are_the_programs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    let output = succeed(command(victim("handled")).arg(&file));
    let made: u64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    let dump = read_dump(&file);
    let known = count(&dump, |block| block["req"] == 1001);
    assert!(known <= made && known * 2 > made, "{known} of {made}");
    assert!(count(&dump, |block| block["req"] == 4242) <= 1);
}

#[test]
fn every_block_of_a_crowd_of_threads_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let (file, childs_file) = (folder.path().join("dump.json"), folder.path().join("child.json"));
    for mode in ["live", "cumulative"] {
        let options = format!("--mode={mode} --stacks=full --quiet");
        succeed(command(victim("crowd")).env("DMD", options).arg(&file).arg(&childs_file));
        let dump = read_dump(&file);
        let with_stacks =
            |bytes: u64| count(&dump, |block| block["req"] == bytes && block.get("alloc").is_some());
        for thread in 0..4 {
            assert_eq!(with_stacks(50_001 + thread), 20, "{mode}");
        }
        assert_eq!(with_stacks(60_001), 16, "{mode}: at the ends of threads");
        assert_eq!(with_stacks(70_001), 16, "{mode}: in panics");
        assert_eq!(with_stacks(80_001), 0, "{mode}: of children");
        assert_eq!(dump["dropped"]["blocks"], 0, "{mode}");
        let childs = read_dump(&childs_file);
        assert_eq!(
            count(&childs, |block| block["req"] == 80_001 && block.get("alloc").is_some()),
            100,
            "{mode}"
        );
    }
}
