//! Resident, swapped and untouched bytes of blocks, and the memory of the process by owner.

use dmd_analyze::program::{ProgramOptions, ResidentMemory, ResidentOwner};
use dmd_analyze::{Analysis, AnalyzeOptions, DumpTime, RecordKind, RecordOrder};

use super::{document, read};

const STACKS: &str = r##""traceTable": {"A": ["B"], "M": ["N"], "J": ["K", "N"]},
    "frameTable": {"B": "#00: app::reserve (/home/ann/app/src/main.rs:7)",
                   "N": "#00: app::open (/home/ann/app/src/map.rs:9)",
                   "K": "#00: _rjem_je_pages_map (pages.c:1)"}"##;

const BLOCKS: &str = r#"
    {"req": 536870912, "slop": 4096, "alloc": "A", "untouched": 533729280},
    {"req": 90, "slop": 10, "alloc": "M", "num": 10, "swapped": 200, "untouched": 100},
    {"req": 1000, "alloc": "A"}"#;

/// The text of the tables in a dump of a process with pages of 16 KiB. `list` contains the areas of its memory.
fn tables(list: &str) -> String {
    format!(r#"{STACKS}, "mappings": {{"pageSize": 16384, "resident": 9000000, "list": [{list}]}}"#)
}

const LIST: &str = r#"
    {"start": "1000", "bytes": 8192, "access": "r-xp", "owner": "binary", "name": "/bin/app", "resident": 8192},
    {"start": "10000", "bytes": 4000000, "access": "rw-p", "owner": "heap", "name": "[heap]", "resident": 1000000,
     "swapped": 300, "lazyFree": 5000, "blocks": 11, "live": 2000, "liveResident": 1700, "liveSwapped": 200},
    {"start": "7f0000000000", "bytes": 600000000, "access": "rw-p", "owner": "chunk", "resident": 3200000,
     "blocks": 1, "live": 536875008, "liveResident": 3145728},
    {"start": "7f1000000000", "bytes": 8388608, "access": "rw-p", "owner": "stack", "name": "worker", "resident": 70000},
    {"start": "7f1100000000", "bytes": 8388608, "access": "rw-p", "owner": "stack", "name": "main", "resident": 30000},
    {"start": "7f2000000000", "bytes": 2000000, "access": "rw-p", "owner": "mapping", "alloc": "M", "resident": 1500000},
    {"start": "7f3000000000", "bytes": 2000000, "access": "r--p", "owner": "mapping", "alloc": "M", "name": "/data/x.db",
     "resident": 1200000},
    {"start": "7f4000000000", "bytes": 2000000, "access": "rw-p", "owner": "mapping", "alloc": "J", "resident": 900000,
     "blocks": 1, "live": 800, "liveResident": 800},
    {"start": "7f5000000000", "bytes": 2000000, "access": "rw-p", "owner": "dmd", "resident": 400000},
    {"start": "7f6000000000", "bytes": 2000000, "access": "rw-p", "owner": "of a later version", "resident": 600000},
    {"start": "7f7000000000", "bytes": 4096, "access": "r-xp", "owner": "kernel", "name": "[vdso]", "resident": 4096}"#;

#[test]
fn the_memory_of_a_process_adds_up() {
    let dump = read(document("live", BLOCKS, &tables(LIST))).unwrap();
    let memory = ResidentMemory::new(&dump, &ProgramOptions::new()).unwrap();
    let text = memory.to_string();
    let expected = "\
Resident memory of the process: 8.58 MiB
     resident        swapped    share  owner
     3.00 MiB          200 B   34.98%  live blocks
     1.43 MiB            0 B   16.67%  app::open                              src/map.rs:9
     1.14 MiB            0 B   13.33%  file /data/x.db                        app::open src/map.rs:9
     1.00 MiB          100 B   11.70%  rest of the C library's heap: free memory and own data
   878.12 KiB            0 B    9.99%  rest of jemalloc: free memory and own data
   585.94 KiB            0 B    6.67%  anonymous memory without a known owner
   390.62 KiB            0 B    4.44%  DMD itself
    97.66 KiB            0 B    1.11%  stacks of 2 threads
     8.00 KiB            0 B    0.09%  code and data of the program
     4.00 KiB            0 B    0.05%  pages of the kernel
    85.66 KiB            0 B    0.97%  changed while the dump read it
The program gave back 4.88 KiB of this memory with MADV_FREE; the system takes it when memory is short.
`app::reserve` (src/main.rs:7): 512.00 MiB in 2 blocks, 3.00 MiB touched.
";
    assert_eq!(text, expected);
    let sum = memory.rows.iter().map(|row| row.resident).sum::<i128>();
    assert_eq!(sum, i128::from(memory.resident));
    assert_eq!(memory.page_size, 16384);
    let json: serde_json::Value = serde_json::from_str(&memory.json()).unwrap();
    assert_eq!((json["rows"].as_array().unwrap().len(), &json["resident"]), (11, &9_000_000.into()));
}

#[test]
fn a_change_has_the_growth_of_each_owner() {
    let one = |list: &str| {
        let dump = read(document("live", BLOCKS, &tables(list))).unwrap();
        ResidentMemory::new(&dump, &ProgramOptions::new()).unwrap()
    };
    let grown = LIST.replace("\"resident\": 1500000", "\"resident\": 1501024");
    let change = one(&grown).since(&one(LIST));
    let [row, difference] = &*change.rows else { panic!("{:?}", change.rows) };
    assert_eq!((&*row.name, row.resident, row.owner), ("app::open", 1024, ResidentOwner::Mapping));
    assert_eq!((difference.owner, difference.resident), (ResidentOwner::Difference, -1024));
    assert!(change.to_string().contains("    +1.00 KiB           app::open"), "{change}");
}

#[test]
fn sums_have_resident_bytes() {
    let dump = || read(document("live", BLOCKS, &tables(LIST))).unwrap();
    let options = AnalyzeOptions::new().sort_by(RecordOrder::Swapped);
    let analysis = Analysis::new(dump(), &options);
    let sums = analysis.sums(RecordKind::Live);
    assert_eq!((sums.swapped, sums.untouched), (200, 533_729_280 + 100));
    assert_eq!(sums.resident(), sums.usable() - 200 - 533_729_380);
    let view = ProgramOptions::new().resident(true);
    let text = analysis.program_text(10, &view).to_string();
    let record = "\n1. 1000 B  0.00% (0.00% so far)  in 10 blocks: 100 B x 10\n    700 B resident, 200 B swapped, 100 B untouched\n";
    assert!(text.contains(record), "{text}");
    let heading = "        bytes       resident        swapped      untouched    share  by site";
    assert!(text.starts_with(heading), "{text}");
    // Without the option, texts do not change.
    let plain =
        Analysis::new(dump(), &AnalyzeOptions::new()).program_text(10, &ProgramOptions::new()).to_string();
    assert!(!plain.contains("resident"), "{plain}");
    let memory = ResidentMemory::new(&dump(), &view).unwrap();
    let json: serde_json::Value =
        serde_json::from_str(&analysis.json().resident(memory.json()).to_string()).unwrap();
    assert_eq!(json["total"]["swapped"], 200);
    assert_eq!(json["memory"]["rows"][0]["owner"], "live blocks");
    assert!(!analysis.json().to_string().contains("swapped"));
    // Two equal dumps have no difference, although some of their bytes are swapped out.
    let change = Analysis::difference(dump(), dump(), &options).unwrap();
    assert!(change.is_empty());
}

#[test]
fn blocks_that_are_touched_later_are_a_change() {
    let dump = |blocks: &str| read(document("live", blocks, &tables(LIST))).unwrap();
    let touched = BLOCKS.replace("\"untouched\": 533729280", "\"untouched\": 500174848");
    let difference =
        |options: &AnalyzeOptions| Analysis::difference(dump(BLOCKS), dump(&touched), options).unwrap();
    assert!(difference(&AnalyzeOptions::new()).is_empty());
    let options = AnalyzeOptions::new().resident(true);
    let change = difference(&options);
    let text = change.program_text(10, &ProgramOptions::new().resident(true)).to_string();
    let expected = "        bytes       resident      untouched    share  by site
          0 B      32.00 MiB     -32.00 MiB    0.00%  app::reserve  src/main.rs:7

        bytes       resident      untouched    share  by crate
          0 B      32.00 MiB     -32.00 MiB    0.00%  app

Live heap: 0 B in 0 blocks

1. 0 B  0.00% (0.00% so far)  in 0 blocks
    32.00 MiB resident, -32.00 MiB untouched
  > app::reserve  src/main.rs:7
";
    assert_eq!(text, expected);
    assert!(Analysis::difference(dump(BLOCKS), dump(BLOCKS), &options).unwrap().is_empty());
}

#[test]
fn mappings_beyond_the_table_are_counted() {
    let tables = tables(LIST).replace("\"list\"", "\"lost\": 1234, \"list\"");
    let dump = read(document("live", BLOCKS, &tables)).unwrap();
    let text = ResidentMemory::new(&dump, &ProgramOptions::new()).unwrap().to_string();
    let line = "\nDMD has no room for 1,234 mappings of the program: they have no known owner.\n";
    assert!(text.contains(line), "{text}");
}

/// Only the direct caller of the hook can be an allocator's function, or functions that are inlined into it.
#[test]
fn allocators_are_known_by_the_caller_of_the_hook() {
    let check = |frames: &[&str], expected: &str| {
        let text = |(at, frame): (usize, &&str)| format!(r##""F{at}": "#00: {frame} (a.c:1)""##);
        let table: Vec<String> = frames.iter().enumerate().map(text).collect();
        let keys: Vec<String> = (0..frames.len()).map(|at| format!("\"F{at}\"")).collect();
        let area = r#"{"start": "1000", "bytes": 4096, "access": "rw-p", "owner": "mapping", "alloc": "A", "resident": 4096}"#;
        let tables = format!(
            r#""traceTable": {{"A": [{}]}}, "frameTable": {{{}}},
               "mappings": {{"pageSize": 4096, "resident": 4096, "list": [{area}]}}"#,
            keys.join(", "),
            table.join(", ")
        );
        let dump = read(document("live", "", &tables)).unwrap();
        let memory = ResidentMemory::new(&dump, &ProgramOptions::new()).unwrap();
        let [row] = &*memory.rows else { panic!("{:?}", memory.rows) };
        assert_eq!(row.name.starts_with("rest of "), !expected.is_empty(), "{frames:?}");
        assert!(row.name.contains(expected), "{frames:?}: {}", row.name);
    };
    check(&["mmap", "os_pages_map", "app::f"], "jemalloc");
    check(&["mmap64", "_mi_prim_alloc", "app::f"], "mimalloc");
    check(&["mmap", "mi_dynmap_file", "app::f"], "");
    check(&["mmap", "sn_open", "app::f"], "");
    // The program maps memory in a function that an allocator calls.
    check(&["mmap", "app::map", "_rjem_je_arena"], "");
}

#[test]
fn a_dump_without_pages_says_why() {
    let check = |mode: &str, tables: &str, expected: &str| {
        let dump = read(document(mode, BLOCKS, tables)).unwrap();
        let error = dump.check_resident().unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    check("live", STACKS, "the dump has no resident bytes: only dumps that");
    let unreadable = format!(r#"{STACKS}, "mappings": {{"unreadable": "/proc/self/pagemap: no"}}"#);
    check(
        "live",
        &unreadable,
        "the dump has no resident bytes, because the process could not read its own memory map (/proc/self/pagemap: no)",
    );
    check("cumulative", &tables(LIST), "taken in mode cumulative");
    let peak = r#""peak": {"measure": "usable", "bytes": 8, "blocks": 1, "within": 0, "seconds": 1,
        "stacks": [{"alloc": "A", "bytes": 8}]}"#;
    let at_peak = read(document("live", BLOCKS, &format!("{}, {peak}", tables(LIST)))).unwrap();
    let error = at_peak.at(DumpTime::Peak).unwrap().check_resident().unwrap_err().to_string();
    assert_eq!(error, "the dump has the resident bytes of the end only; --at end shows the end");
}

#[test]
fn wrong_mappings_are_named_with_their_place() {
    let check = |mappings: &str, expected: &str| {
        let text = document("live", BLOCKS, &format!(r#"{STACKS}, "mappings": {{{mappings}}}"#));
        assert_eq!(read(text).unwrap_err().to_string(), expected, "{mappings}");
    };
    let list = |list: &str| format!(r#""pageSize": 4096, "resident": 1, "list": [{list}]"#);
    check(r#""resident": 1, "list": []"#, "mappings.pageSize is missing");
    check(r#""pageSize": 5000, "resident": 1, "list": []"#, "mappings.pageSize: 5000, not a power of two");
    check(r#""pageSize": 4096, "list": []"#, "mappings.resident is missing");
    check(r#""pageSize": 4096, "resident": 1"#, "mappings.list is missing");
    check(&list(r#"{"bytes": 1}"#), "mappings.list[0].start is missing");
    check(&list(r#"{"start": "10"}"#), "mappings.list[0].bytes is missing");
    check(&list(r#"{"start": 10}"#), "mappings.list[0].start: not a string");
    check(&list(r#"{"start": "x"}"#), "mappings.list[0].start: not a hexadecimal number");
    check(&list(r#"{"start": "10", "bytes": -1}"#), "mappings.list[0].bytes: negative");
    check(
        &list(r#"{"start": "10", "bytes": 1, "resident": "1"}"#),
        "mappings.list[0].resident: not a number",
    );
    check(
        &list(r#"{"start": "10", "bytes": 1, "alloc": "Q"}"#),
        "mappings.list[0].alloc: no trace 'Q' in traceTable",
    );
    check(
        &list(r#"{"start": "10", "bytes": 8}, {"start": "17", "bytes": 1}"#),
        "mappings.list[1].start: inside of the area before it",
    );
    check(
        &list(r#"{"start": "ffffffffffffffff", "bytes": 8}"#),
        "mappings.list[0].bytes: the sum of the sizes is too large",
    );
    let block = document("live", r#"{"req": 8, "untouched": 7, "swapped": 2}"#, &tables(LIST));
    let error = read(block).unwrap_err().to_string();
    assert_eq!(error, "blockList[0].untouched: more bytes than the blocks have");
    // A dump that is cut off is an error. The reader does not return a shorter list.
    let whole = document("live", BLOCKS, &tables(LIST));
    for end in 1..whole.len() {
        assert!(read(&whole[..end]).is_err(), "{end}");
    }
    // The reader skips a value of another type: another version may use the key differently.
    read(document("live", BLOCKS, &format!(r#"{STACKS}, "mappings": [1]"#))).unwrap();
}
