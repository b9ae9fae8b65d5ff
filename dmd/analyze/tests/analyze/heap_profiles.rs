//! Heap profiles of jemalloc and gperftools: amounts as jeprof computes them, symbols, and files with faults.

use dmd_analyze::program::HeapOverview;
use dmd_analyze::symbolize::{SymbolOptions, SymbolProblem};
use dmd_analyze::{Analysis, AnalyzeError, AnalyzeOptions, Dump, RecordKind};
use proptest::prelude::*;

use super::read;

/// A profile of a program with tikv-jemallocator 0.7 (jemalloc 5.3) and `lg_prof_sample:14`.
const JEMALLOC: &str = include_str!("../inputs/jemalloc.heap");

/// The bytes and the objects of each stack in `jemalloc.heap`, from `jeprof --collapsed --show_bytes` and
/// `--inuse_objects`.
const JEPROF: [(i128, i128); 7] = [
    (16_473_337, 92_364),
    (8_388_608, 1),
    (6_303_751, 98_496),
    (2_516_556, 19_660),
    (1_835_008, 1),
    (131_136, 8_196),
    (98_328, 12_291),
];

fn amounts(dump: Dump) -> (i128, i128) {
    let sums = Analysis::new(dump, &AnalyzeOptions::new()).sums(RecordKind::Live);
    (sums.req, sums.num)
}

/// The bytes and the number of the blocks of each stack, the largest first.
fn stacks(dump: Dump) -> Vec<(i128, i128)> {
    let options = AnalyzeOptions::new().max_frames(usize::MAX).limit(usize::MAX);
    let json = Analysis::new(dump, &options).json().to_string();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let records = json["kinds"][0]["shown"].as_array().unwrap();
    let number = |value: &serde_json::Value| i128::from(value.as_i64().unwrap());
    records.iter().map(|record| (number(&record["requested"]), number(&record["blocks"]))).collect()
}

#[test]
fn each_stack_has_the_amounts_of_jeprof() {
    let dump = read(JEMALLOC).unwrap();
    let sample = *dump.sample().unwrap();
    assert_eq!((sample.mean, sample.recorded), (16_384, 1553));
    let found = stacks(dump);
    assert_eq!(found.len(), JEPROF.len());
    for ((bytes, objects), expected) in found.into_iter().zip(JEPROF) {
        // jeprof rounds down.
        assert!((bytes - expected.0).abs() <= 2 && (objects - expected.1).abs() <= 1, "{bytes} {expected:?}");
    }
    let (bytes, _) = amounts(read(JEMALLOC).unwrap());
    assert!((bytes - 35_746_726).abs() <= 7, "{bytes}");
}

/// The stacks are in a program that does not exist here. The note says so, and the amounts stay.
#[test]
fn a_missing_program_leaves_addresses() {
    let mut dump = read(JEMALLOC).unwrap();
    let notes = dump.symbolize(&SymbolOptions::new());
    let program = notes.iter().find(|note| note.module == "/home/user/leaky/target/release/leaky").unwrap();
    assert_eq!(program.problem, SymbolProblem::Missing);
    let frames: Vec<_> = dump.stack(1).collect();
    assert_eq!(frames[0].module, Some("/home/user/leaky/target/release/leaky"));
    // 0x55914ddf7b23 minus the start of the program, and minus 1 because it is a return address.
    assert_eq!(frames[0].offset, Some(0x92b22));
}

#[inline(never)]
fn function_in_a_profile() -> u32 {
    std::hint::black_box(17)
}

/// A profile of this process, whose only stack has a function of this test.
#[test]
#[cfg(target_os = "linux")]
fn addresses_become_functions_and_lines() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let address = function_in_a_profile as fn() -> u32 as usize + 2;
    assert_eq!(function_in_a_profile(), 17);
    let text = format!(
        "heap_v2/524288\n  t*: 1: 1000000 [0: 0]\n  t3: 1: 1000000 [0: 0] cache worker\n@ {address:#x}\n  \
         t*: 1: 1000000 [0: 0]\n  t3: 1: 1000000 [0: 0]\n\nMAPPED_LIBRARIES:\n{maps}"
    );
    let mut dump = read(text).unwrap();
    let notes = dump.symbolize(&SymbolOptions::new());
    assert!(notes.iter().all(|note| note.problem == SymbolProblem::NotChecked), "{notes:?}");
    let frames: Vec<_> = dump.stack(0).collect();
    let frame = frames.iter().find(|frame| frame.name().ends_with("function_in_a_profile")).unwrap();
    assert!(frame.file.unwrap().ends_with("heap_profiles.rs"), "{frames:?}");
}

#[test]
fn all_headers_of_gperftools() {
    let profile = |kind: &str| {
        format!(
            "heap profile:     3:     3072 [   10:    90000] @ {kind}\n     2:     2048 [     9:    80000] @ 0x10 \
             0x20\n     1:     1024 [     1:    10000] @ 0x30\n\nMAPPED_LIBRARIES:\n"
        )
    };
    let of = |kind| amounts(read(profile(kind)).unwrap());
    assert_eq!(of("heapprofile"), (3072, 3));
    assert_eq!(of("growthz"), (3072, 3));
    // Objects below half of the rate count as objects of this size: 1024 bytes count 4 times.
    assert_eq!(of("heap/8192"), (4 * 3072, 12));
    let weight = 1.0 / (1.0 - (-1024.0_f64 / 8192.0).exp());
    let (bytes, objects) = of("heap_v2/8192");
    assert!((bytes as f64 - weight * 3072.0).abs() <= 2.0, "{bytes}");
    assert!((objects as f64 - weight * 3.0).abs() <= 1.5, "{objects}");
    // A rate of 0 means that all objects were recorded.
    assert_eq!(of("heap_v2/0"), (3072, 3));
    assert!(read(profile("heapprofile")).unwrap().sample().is_none());
}

/// Threads' parts of the sums, stacks without live objects and lines of later versions add nothing.
#[test]
fn other_lines_are_ignored() {
    let text = "heap_v2/1\n  t*: 5: 500 [9: 900]\n  t0: 2: 200 [0: 0] main thread\n  t7: 3: 300 [0: 0]\n@ 0x1 0x2\n  \
                t*: 5: 500 [0: 0]\n  t0: 2: 200 [0: 0]\n@ 0x3\n  t*: 0: 0 [4: 400]\n% a later version\n\n";
    let found = stacks(read(text).unwrap());
    assert_eq!(found, [(500, 5)]);
}

#[test]
fn mappings_of_all_forms() {
    let maps = "00400000-00500000 r-xp 00000000 08:01 42 /opt/a b/linked at an address\n\
                7f0000000000-7f0000001000 r--p 00000000 08:01 43                 /opt/lib.so (deleted)\n\
                7f0000001000-7f0000002000 r-xp 00001000 08:01 43                 /opt/lib.so (deleted)\n\
                7f1000000000-7f1000001000 rw-p 00000000 00:00 0 \n\
                7f1000002000-7f1000001000 rw-p 00000000 00:00 0 /backwards\n\
                7ffcf8bdf000-7ffcf8c00000 rw-p 00000000 00:00 0                          [stack]\nnot a mapping\n";
    let text = format!(
        "heap_v2/1\n t*: 1: 8 [0: 0]\n@ 0x400011 0x7f0000001101 0x7f1000000010 0x7f1000002000 0x99\n t*: 1: 8 [0: 0]\n\
         MAPPED_LIBRARIES:\n{maps}"
    );
    let dump = read(text).unwrap();
    let frames: Vec<_> = dump.stack(0).map(|frame| (frame.name(), frame.module, frame.offset)).collect();
    assert_eq!(
        frames,
        [
            ("???", Some("/opt/a b/linked at an address"), Some(0x40_0010)),
            ("???", Some("/opt/lib.so (deleted)"), Some(0x1100)),
            ("0x7f100000000f", None, None),
            ("0x7f1000001fff", None, None),
            ("0x98", None, None),
        ]
    );
}

#[test]
fn faults_name_their_lines() {
    let fault = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(fault("heap_v2/x\n"), "line 1: the rate 'x' is not a number");
    assert_eq!(fault("heap profile: many\n"), "line 1: not `OBJECTS: BYTES`");
    let stack = |sums: &str| format!("heap_v2/512\n t*: 1: 8 [0: 0]\n@ 0x1\n t*: {sums}\n");
    assert_eq!(fault(&stack("-1: 8 [0: 0]")), "line 4: '-1' is not a number below 2^64");
    assert_eq!(
        fault(&stack("1: 18446744073709551616 [0: 0]")),
        "line 4: '18446744073709551616' is not a number below 2^64"
    );
    assert_eq!(fault("heap_v2/512\n@ 0x1 12\n t*: 1: 8 [0: 0]\n"), "line 2: '12' is not an address");
    let deep = format!("heap_v2/512\n@{}\n t*: 1: 8 [0: 0]\n", " 0x1".repeat(1001));
    assert_eq!(fault(&deep), "line 2: more than 1000 frames");
    assert!(matches!(read("hello\n"), Err(AnalyzeError::NotADump)));
    // The largest numbers are no fault.
    let largest = format!("{0}: {0} [0: 0]", u64::MAX);
    assert!(amounts(read(stack(&largest)).unwrap()).1 > 0);
}

/// A file that was cut at any place keeps all whole stacks.
#[test]
fn a_cut_file_keeps_its_whole_stacks() {
    let all = stacks(read(JEMALLOC).unwrap());
    let start = JEMALLOC.find("\n@").unwrap() + 1;
    for end in (start..JEMALLOC.len()).filter(|end| JEMALLOC.is_char_boundary(*end)) {
        let cut = read(&JEMALLOC[..end]).unwrap();
        let whole = cut.stacks().len();
        let overview = HeapOverview::new(&cut, None).to_string();
        let has_map = JEMALLOC[..end].contains("MAPPED_LIBRARIES:\n");
        assert_eq!(overview.starts_with("The file is cut"), !has_map, "{end}: {overview}");
        let found = stacks(cut);
        assert!(found.len() == whole && found.iter().all(|of_stack| all.contains(of_stack)), "{end}");
    }
}

proptest! {
    #[test]
    fn no_change_of_bytes_panics(
        changes in prop::collection::vec((0..5828_usize, any::<u8>()), 1..20),
    ) {
        let mut bytes = JEMALLOC.as_bytes().to_vec();
        for (at, byte) in changes {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        if let Ok(mut dump) = read(&bytes) {
            dump.symbolize(&SymbolOptions::new());
            let (bytes, objects) = amounts(dump);
            prop_assert!(bytes >= 0 && objects >= 0);
        }
    }
}
