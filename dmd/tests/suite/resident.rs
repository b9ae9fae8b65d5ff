//! The resident memory of dumps: of blocks, of mappings, and of the whole process.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use dmd::analyze::program::{MemoryArea, MemoryOwner, ProgramOptions, ResidentMemory, ResidentOwner};
use dmd::analyze::{self, Analysis, AnalyzeOptions, RecordKind};
use serde_json::Value;

use crate::support::{preloaded, read_dump, succeed, victim};

/// The lines that the victim prints: the kind, the name and the numbers of each.
fn expectations(stdout: &[u8]) -> Vec<(String, String, Vec<u64>)> {
    let lines = std::str::from_utf8(stdout).unwrap().lines();
    let parsed = lines.map(|line| {
        let mut words = line.split(' ');
        let (kind, name) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
        (kind, name, words.map(|word| word.parse().unwrap()).collect())
    });
    parsed.collect()
}

fn number(object: &Value, key: &str) -> u64 {
    object.get(key).map_or(0, |number| number.as_u64().unwrap())
}

const OPTIONS: &str = "--mode=live --stacks=full --quiet";

#[test]
fn shapes_of_memory_have_the_expected_pages() {
    let folder = tempfile::tempdir().unwrap();
    let output = succeed(preloaded(victim("resident"), OPTIONS).arg(folder.path()));
    check_shapes(&output.stdout, &folder.path().join("dump.json"));
}

/// The request for ranges of pages is new in Linux 6.7: a filter makes the kernel look older.
#[test]
fn an_older_kernel_gives_the_same_pages() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = preloaded(victim("resident"), OPTIONS);
    // SAFETY: the function makes system calls only.
    unsafe { command.pre_exec(refuse_scans) };
    let output = succeed(command.arg(folder.path()));
    check_shapes(&output.stdout, &folder.path().join("dump.json"));
}

/// Installs a filter that refuses `ioctl` with the request `PAGEMAP_SCAN`, as older kernels do.
fn refuse_scans() -> std::io::Result<()> {
    const SCAN: u32 = 0xc060_6610;
    const NUMBER: u32 = 0;
    /// The low half of the second argument.
    const REQUEST: u32 = 24;
    let load =
        |k| libc::sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k };
    let equals = |k, jf| libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: 0,
        jf,
        k,
    };
    let answer = |k| libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k };
    let mut filter = [
        load(NUMBER),
        equals(libc::SYS_ioctl as u32, 3),
        load(REQUEST),
        equals(SCAN, 1),
        answer(libc::SECCOMP_RET_ERRNO | libc::ENOTTY as u32),
        answer(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the call only gives rights up.
    let gave_up = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program is valid during the call.
    let is_set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if gave_up == 0 && is_set == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[test]
fn a_page_map_that_may_not_be_read_is_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    // Another user writes the dump.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    succeed(preloaded(victim("resident"), OPTIONS).arg(folder.path()).arg("unreadable"));
    let file = folder.path().join("dump.json");
    read_dump(&file);
    let dump = analyze::read(&file).unwrap();
    let error = dump.check_resident().unwrap_err().to_string();
    assert!(error.contains("/proc/self/pagemap: Permission denied"), "{error}");
    // The rest of the dump is there.
    assert!(Analysis::new(dump, &AnalyzeOptions::new()).sums(RecordKind::Live).num > 0);
}

#[test]
fn tens_of_thousands_of_mappings_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    let output = succeed(preloaded(victim("resident"), OPTIONS).arg(folder.path()).arg("many"));
    check_shapes(&output.stdout, &file);
    let dump = analyze::read(&file).unwrap();
    let memory = dump.memory().unwrap();
    assert!(memory.areas.len() > 60_000 && memory.lost_mappings == 0, "{}", memory.areas.len());
}

/// At the kernel's maximum of mappings, the dump has the blocks, and the reason why the rest is missing.
#[test]
fn a_process_that_can_map_nothing_more_has_a_dump() {
    let folder = tempfile::tempdir().unwrap();
    succeed(preloaded(victim("resident"), OPTIONS).arg(folder.path()).arg("full"));
    let file = folder.path().join("dump.json");
    read_dump(&file);
    let dump = analyze::read(&file).unwrap();
    match dump.memory() {
        Ok(memory) => assert!(memory.areas.len() > 60_000),
        Err(error) => assert!(error.to_string().contains("out of memory"), "{error}"),
    }
    assert!(Analysis::new(dump, &AnalyzeOptions::new()).sums(RecordKind::Live).num > 0);
}

/// Each dump is whole. The rows add up, or the dump says that the memory changed meanwhile.
#[test]
fn memory_that_changes_meanwhile_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    succeed(preloaded(victim("resident"), OPTIONS).arg(folder.path()).arg("busy"));
    for dump in 0..20 {
        let file = folder.path().join(format!("busy-{dump}.json"));
        read_dump(&file);
        let dump = analyze::read(&file).unwrap();
        let memory = dump.memory().unwrap();
        let sum = memory.areas.iter().map(|area| area.resident).sum::<u64>();
        assert!(sum == memory.resident || memory.is_changing, "{sum} {}", memory.resident);
        let table = ResidentMemory::new(&dump, &ProgramOptions::new()).unwrap();
        let rows = table.rows.iter().map(|row| row.resident).sum::<i128>();
        assert_eq!(rows, i128::from(memory.resident));
    }
}

/// Compares a dump with the expectations that the victim printed.
fn check_shapes(expected: &[u8], file: &Path) {
    let dump = read_dump(file);
    let areas = dump["mappings"]["list"].as_array().unwrap();
    for (kind, name, numbers) in expectations(expected) {
        match (&*kind, &*numbers) {
            ("block", [requested, count, resident, swapped]) => {
                let blocks = dump["blockList"].as_array().unwrap().iter();
                let (mut found, mut usable, mut absent, mut out) = (0, 0, 0, 0);
                for block in blocks.filter(|block| block["req"] == *requested) {
                    let num = block.get("num").map_or(1, |num| num.as_u64().unwrap());
                    found += num;
                    usable += num * (requested + number(block, "slop"));
                    absent += number(block, "untouched") + number(block, "swapped");
                    out += number(block, "swapped");
                }
                assert_eq!((found, usable - absent, out), (*count, *resident, *swapped), "{name}");
            }
            ("heap", [start, bytes, resident, swapped]) => {
                // The kernel has one mapping for the whole heap.
                let holds = |area: &&Value| {
                    let area_start = u64::from_str_radix(area["start"].as_str().unwrap(), 16).unwrap();
                    (area_start..area_start + number(area, "bytes")).contains(start)
                };
                let area = areas.iter().find(holds).unwrap();
                assert_eq!((&area["owner"], number(area, "swapped")), (&"heap".into(), *swapped), "{name}");
                let [all, here] = [number(area, "bytes"), number(area, "resident")];
                // The other pages of the heap are not more than the blocks and the words between them need.
                assert!(
                    all >= *bytes && (*resident..*resident + (1 << 20)).contains(&here),
                    "{name}: {area}"
                );
            }
            ("area", [start, bytes, resident, swapped]) => {
                let range = *start..start + bytes;
                let of_range = |area: &&Value| {
                    let start = u64::from_str_radix(area["start"].as_str().unwrap(), 16).unwrap();
                    range.contains(&start)
                };
                let mut sums = [0; 3];
                for area in areas.iter().filter(of_range) {
                    assert_eq!(area["owner"], "mapping", "{name}: {area}");
                    let stack = area["alloc"].as_str().unwrap();
                    assert!(!dump["traceTable"][stack].as_array().unwrap().is_empty(), "{name}");
                    for (sum, key) in sums.iter_mut().zip(["bytes", "resident", "swapped"]) {
                        *sum += number(area, key);
                    }
                }
                assert_eq!(sums, [*bytes, *resident, *swapped], "{name}");
            }
            ("stack", [least]) => {
                let is_it = |area: &&Value| area["owner"] == "stack" && area["name"] == *name;
                let resident = number(areas.iter().find(is_it).unwrap(), "resident");
                assert!((*least..least + (256 << 10)).contains(&resident), "{name}: {resident}");
            }
            _ => panic!("{kind} {name} {numbers:?}"),
        }
    }
    adds_up(file);
}

/// The areas add up to the kernel's sum, and the blocks of areas to the blocks of the dump.
fn adds_up(file: &Path) {
    let dump = analyze::read(file).unwrap();
    let memory = dump.memory().unwrap();
    let sum = memory.areas.iter().map(|area| area.resident).sum::<u64>();
    assert_eq!(sum, memory.resident);
    for area in &memory.areas {
        assert!(area.live_resident + area.live_swapped <= area.live, "{area:?}");
        assert!(area.live_resident <= area.resident, "{area:?}");
        assert!(area.resident + area.swapped <= area.bytes, "{area:?}");
    }
    let of_areas = |amount: fn(&MemoryArea) -> u64| memory.areas.iter().map(amount).sum::<u64>();
    let [blocks, live, resident] =
        [of_areas(|area| area.blocks), of_areas(|area| area.live), of_areas(|area| area.live_resident)];
    assert!(memory.areas.iter().any(|area| area.owner == MemoryOwner::Dmd && area.resident > 0));
    let sums = Analysis::new(dump, &AnalyzeOptions::new()).sums(RecordKind::Live);
    assert_eq!([sums.num, sums.usable(), sums.resident()], [blocks, live, resident].map(i128::from));
}

#[test]
fn the_wrapper_knows_pages_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("peak.json");
    let options = "--mode=live --stacks=full --quiet";
    let mut command = crate::support::command(victim("peak"));
    succeed(command.env("DMD", options).arg("at-end").arg(&file));
    read_dump(&file);
    let dump = analyze::read(&file).unwrap();
    let memory = dump.memory().unwrap();
    assert_eq!(memory.areas.iter().map(|area| area.resident).sum::<u64>(), memory.resident);
    dump.check_resident().unwrap();
}

#[test]
fn the_option_leaves_the_pages_out() {
    let folder = tempfile::tempdir().unwrap();
    let options = "--mode=live --stacks=full --quiet --resident=no";
    succeed(preloaded(victim("resident"), options).arg(folder.path()));
    let file = folder.path().join("dump.json");
    let dump = read_dump(&file);
    assert!(dump.get("mappings").is_none());
    assert!(dump["blockList"].as_array().unwrap().iter().all(|block| block.get("untouched").is_none()));
    let error = analyze::read(&file).unwrap().check_resident().unwrap_err().to_string();
    assert!(error.starts_with("the dump has no resident bytes"), "{error}");
}

/// A sample has a part of the blocks, and the rows still add up.
#[test]
fn a_sample_adds_up() {
    let folder = tempfile::tempdir().unwrap();
    succeed(preloaded(victim("resident"), "--sample-bytes=64KiB --quiet").arg(folder.path()));
    let file = folder.path().join("dump.json");
    read_dump(&file);
    let dump = analyze::read(&file).unwrap();
    let memory = ResidentMemory::new(&dump, &ProgramOptions::new()).unwrap();
    assert_eq!(memory.rows.iter().map(|row| row.resident).sum::<i128>(), i128::from(memory.resident));
    let live = memory.rows.iter().find(|row| row.owner == ResidentOwner::LiveBlocks).unwrap();
    // The half-touched block of 4 MiB is always in the sample.
    assert!(live.resident > 2_000_000, "{memory}");
}
