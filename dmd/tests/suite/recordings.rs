//! Recordings, when replayed, agree with dumps and with a counting allocator.

pub(crate) mod replay;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{c_program, command, compile, libdmd, preloaded, read_dump, run, succeed, victim};
use replay::{Recording, State, kinds_of_dump};

const EXACT: &str = "--mode=live --stacks=full --quiet";

/// The last output of a victim: for each name, the numbers after it.
fn told(stdout: &[u8]) -> BTreeMap<String, Vec<i64>> {
    let lines = std::str::from_utf8(stdout).unwrap().lines();
    let parsed = lines.map(|line| {
        let (name, numbers) = line.split_once(' ').unwrap_or((line, ""));
        (name.to_owned(), numbers.split(' ').filter_map(|number| number.parse().ok()).collect())
    });
    parsed.collect()
}

/// The files in a folder whose names end with this text.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    files.sort();
    files
}

/// Runs a story with the wrapper or the preloaded library, with a recording and a dump at the end.
fn story(folder: &Path, name: &str, by_preload: bool) -> Command {
    let options = format!("{EXACT} --record=r.dmdrec --dump-at-exit --output=d.json");
    let mut command =
        if by_preload { preloaded(victim("recorded"), &options) } else { command(victim("recorded")) };
    command.env("DMD", options).arg(name).current_dir(folder);
    command
}

/// Checks that the recording is complete, and contains the blocks of the dump.
fn agrees(recording: &Recording, dump: &Path) -> State {
    let state = recording.replay();
    let end = recording.end.expect("an end");
    let what = dump.display();
    assert_eq!((end.lost_events, end.dropped_blocks, state.faults), (0, 0, 0), "{what}");
    let dump = read_dump(dump);
    let (ours, theirs) = (recording.kinds(&state, 24), kinds_of_dump(&dump));
    for (kind, number) in &theirs {
        assert_eq!(ours.get(kind), Some(number), "{what}: {kind:?}");
    }
    for (kind, number) in &ours {
        assert_eq!(theirs.get(kind), Some(number), "{what}: {kind:?}");
    }
    let statistics = &dump["statistics"];
    let number = |name: &str| statistics[name].as_u64().unwrap();
    let is_forked = recording.about.forked_from != 0;
    if !is_forked {
        let begun = state.begun + state.at_start as u64;
        assert_eq!(begun - state.moved, number("allocations"), "{what}");
        assert_eq!(state.ended, number("frees"), "{what}");
        assert_eq!(state.moved, number("reallocations"), "{what}");
    }
    assert_eq!((end.allocations, end.frees), (number("allocations"), number("frees")), "{what}");
    // The engine checks for a peak from time to time; the recording's state checks after every event. A child inherits
    // its parent's peak. With one thread, the engine's peak is a state that the heap really had. With several threads,
    // the engine's peak may be higher, because a thread may count the end of a block later.
    let most =
        if recording.events.len() > 1 { state.peak_at_most + end.peak_within } else { state.usable_peak };
    assert!(is_forked || most >= end.peak_bytes, "{what}: {most} {end:?}");
    let peak = state.usable_peak;
    assert!(is_forked || peak <= end.peak_bytes + end.peak_within, "{what}: {peak} {end:?}");
    state
}

fn check(name: &str, by_preload: bool) {
    let folder = tempfile::tempdir().unwrap();
    let output = succeed(&mut story(folder.path(), name, by_preload));
    let told = told(&output.stdout);
    let recording = Recording::read(folder.path().join("r.dmdrec"));
    let state = agrees(&recording, &folder.path().join("d.json"));
    let (live, [least, most]) = (told["live"][0], [told["peak"][0], told["peak"][1]]);
    let (bytes, what) = (state.bytes as i64, format!("{name} {by_preload}"));
    // The preloaded library also records blocks of the C library. The counting allocator around the wrapper also
    // counts blocks that the engine allocates for itself.
    let others = 80 << 10;
    assert!((bytes - live).abs() <= others, "{what}: {bytes} {live}");
    let peak = state.peak as i64;
    assert!(peak + others >= least, "{what}: {peak} {least}");
    assert!(peak <= most + if by_preload { others } else { 0 }, "{what}: {peak} {most}");
}

#[test]
fn one_thread_by_the_wrapper() {
    check("churn", false);
}

#[test]
fn one_thread_by_the_preloaded_library() {
    check("churn", true);
}

#[test]
fn eight_threads_by_the_wrapper() {
    check("threads", false);
}

#[test]
fn eight_threads_by_the_preloaded_library() {
    check("threads", true);
}

/// A library that is loaded before DMD counts after every call of the program and of the C library: no event is
/// missing, and the heap has the same peak.
#[test]
fn a_recording_has_what_a_counting_library_counts() {
    let folder = tempfile::tempdir().unwrap();
    let counter = compile(folder.path(), "cc", "counted.c", "counted.so", &["-shared", "-fPIC"]);
    let options = format!("{EXACT} --record=r.dmdrec --dump-at-exit --output=d.json");
    let mut command = preloaded(c_program(folder.path(), "passed_on"), &options);
    command.env("LD_PRELOAD", format!("{} {}", counter.display(), libdmd().display()));
    command.env("COUNTED", folder.path().join("counts"));
    succeed(command.current_dir(folder.path()));
    let counts = std::fs::read_to_string(folder.path().join("counts")).unwrap();
    let counts: Vec<u64> = counts.split_whitespace().map(|count| count.parse().unwrap()).collect();
    let state = agrees(&Recording::read(folder.path().join("r.dmdrec")), &folder.path().join("d.json"));
    let ours = [state.usable, state.blocks.len() as u64, state.usable_peak, state.begun];
    // The loader allocates before DMD starts, and the counting library ends before DMD does.
    let most = [4096, 8, counts[2] / 100, 8];
    for ((ours, counted), most) in ours.iter().zip(&counts).zip(most) {
        assert!(ours.abs_diff(*counted) <= most, "{ours} of {counted} in {counts:?}");
    }
}

#[test]
fn threads_have_names() {
    let folder = tempfile::tempdir().unwrap();
    succeed(&mut story(folder.path(), "threads", true));
    let recording = Recording::read(folder.path().join("r.dmdrec"));
    let names = &recording.names;
    assert!(names.values().any(|name| name == "recorded"), "{names:?}");
    assert!((0..8).all(|n| names.values().any(|name| *name == format!("worker {n}"))), "{names:?}");
    assert!(recording.events.keys().filter(|thread| **thread != 0).count() >= 9);
}

/// A child starts with the blocks of its parent, and has its own file.
#[test]
fn forks_have_their_own_files() {
    for by_preload in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        succeed(&mut story(folder.path(), "fork", by_preload));
        let (recordings, dumps) = (files(folder.path(), ".dmdrec"), files(folder.path(), ".json"));
        assert_eq!((recordings.len(), dumps.len()), (2, 2));
        for (recording, dump) in recordings.iter().zip(&dumps) {
            let recording = Recording::read(recording);
            let state = agrees(&recording, dump);
            let is_child = recording.about.forked_from != 0;
            assert_eq!(state.at_start > 1000, is_child);
            assert!(state.bytes > if is_child { 500_000 } else { 100_000 });
        }
    }
}

/// Events that a parent lost are missing only in the parent's file.
#[test]
fn a_child_counts_its_own_lost_events() {
    let folder = tempfile::tempdir().unwrap();
    succeed(&mut story(folder.path(), "lost", true));
    let files = files(folder.path(), ".dmdrec");
    let recordings: Vec<_> = files.iter().map(Recording::read).collect();
    assert_eq!(recordings.len(), 2);
    for recording in recordings {
        let lost = recording.end.expect("an end").lost_events;
        assert_eq!(lost == 0, recording.about.forked_from != 0, "{lost}");
    }
}

/// The file of a killed process lacks the last tenth of a second, and is valid otherwise.
#[test]
fn a_killed_process_leaves_what_it_had() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&mut story(folder.path(), "killed", true));
    assert!(!output.status.success());
    let recording = Recording::read(folder.path().join("r.dmdrec"));
    assert!(recording.end.is_none() && recording.fault.is_none());
    let state = recording.replay();
    let known = recording.kinds(&state, 24).into_iter().filter(|((frames, bytes, _), _)| {
        *bytes == 100 && frames.iter().any(|frame| frame.contains("recorded +0x"))
    });
    let known: u64 = known.map(|(_, number)| number).sum();
    assert!((1000..=1001).contains(&known), "{known}");
}

/// Each program that a process runs has its own file.
#[test]
fn a_program_that_replaces_itself_starts_another_file() {
    for by_preload in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        succeed(&mut story(folder.path(), "replaced", by_preload));
        let recordings: Vec<_> = files(folder.path(), ".dmdrec").iter().map(Recording::read).collect();
        assert_eq!(recordings.len(), 2);
        let (whole, cut): (Vec<_>, Vec<_>) = recordings.into_iter().partition(|one| one.end.is_some());
        assert!(cut[0].replay().blocks.values().filter(|block| block.requested == 100).count() >= 1000);
        assert_eq!(whole[0].about.process, cut[0].about.process);
        agrees(&whole[0], &folder.path().join("d.json"));
    }
}

#[test]
fn a_program_that_closes_all_files_keeps_its_recording() {
    check("closed", true);
    check("closed", false);
}

#[test]
fn a_signal_that_ends_the_program_ends_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&mut story(folder.path(), "terminated", true));
    assert!(!output.status.success());
    agrees(&Recording::read(folder.path().join("r.dmdrec")), &folder.path().join("d.json"));
    // The same without a dump.
    let options = format!("{EXACT} --record=alone.dmdrec");
    run(preloaded(victim("recorded"), &options).arg("terminated").current_dir(folder.path()));
    assert!(Recording::read(folder.path().join("alone.dmdrec")).end.is_some());
}

/// The program continues, and the contents of the file are valid.
#[test]
fn a_full_disk_ends_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let options = format!("{EXACT} --record=r.dmdrec");
    let mut command = preloaded(victim("recorded"), &options);
    let output = succeed(command.arg("limited").current_dir(folder.path()));
    assert!(String::from_utf8_lossy(&output.stdout).contains("alive"));
    let said = String::from_utf8(output.stderr).unwrap();
    let file = folder.path().canonicalize().unwrap().join("r.dmdrec");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(&format!("] the recording {} ends here: ", file.display())), "{said}");
    let recording = Recording::read(file);
    assert!(recording.fault.is_none() && recording.end.is_none());
    assert!(recording.number_of_events() > 10_000);
    recording.replay();
}

#[test]
fn a_file_that_cannot_be_made_is_said() {
    let options = format!("{EXACT} --record=/nowhere/r.dmdrec");
    let output = succeed(preloaded("/bin/true", &options).env_remove("ABOUT_MEMORY"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("] no recording: /nowhere/r.dmdrec: No such file or directory"), "{said}");
}

/// A destructor of thread-specific data runs after the engine's own destructor, and all its events belong to its
/// thread.
#[test]
fn a_thread_s_last_events_are_its_own() {
    const BLOCKS: usize = 20_000;
    const THREADS: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "key_ends");
    let options = format!("{EXACT} --record=r.dmdrec --dump-at-exit --output=d.json");
    let arguments = [BLOCKS.to_string(), THREADS.to_string()];
    succeed(preloaded(&program, &options).args(&arguments).current_dir(folder.path()));
    let recording = Recording::read(folder.path().join("r.dmdrec"));
    let state = agrees(&recording, &folder.path().join("d.json"));
    assert!(!state.blocks.values().any(|block| block.requested == 48));
    let of_threads: Vec<_> = recording.events.iter().filter(|(thread, _)| **thread != 0).collect();
    // The main thread, the thread with the blocks, and the other threads.
    assert_eq!(of_threads.len(), THREADS + 2);
    let most = of_threads.iter().map(|(_, events)| events.len()).max().unwrap();
    assert!((2 * BLOCKS..2 * BLOCKS + 20).contains(&most), "{most}");
    // Each of the other threads allocates in 4 rounds.
    let events = 2 * (1 + 4 * 19);
    let whole = of_threads.iter().filter(|(_, of)| (events..events + 20).contains(&of.len())).count();
    assert_eq!(whole, THREADS);
}

/// Programs with handlers that interrupt the engine, with thousands of threads, or with unusual or large blocks.
#[test]
fn c_programs_keep_all_their_events() {
    let folder = tempfile::tempdir().unwrap();
    let signals = if std::env::var_os("THOROUGH").is_some() { "5000" } else { "200" };
    for (name, arguments) in [
        ("handler_counts", &[signals][..]),
        ("handler_frees", &[signals]),
        ("churn", &[]),
        ("edges", &[]),
        ("large", &[]),
    ] {
        let program = c_program(folder.path(), name);
        let folder = tempfile::tempdir().unwrap();
        let options = format!("{EXACT} --record=r.dmdrec --dump-at-exit --output=d.json");
        // Some programs end with a status other than 0.
        run(preloaded(&program, &options).args(arguments).current_dir(folder.path()));
        let recording = Recording::read(folder.path().join("r.dmdrec"));
        agrees(&recording, &folder.path().join("d.json"));
    }
}
