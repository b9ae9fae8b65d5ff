//! Profiles of other programs as dumps.

use dmd_analyze::symbolize::SymbolOptions;
use dmd_analyze::{Analysis, AnalyzeOptions, Mode, RecordKind};
use memory_export::pprof::{PprofOptions, PprofReadOptions, PprofSymbols, read, write};
use memory_export::{ProfileFrame, ProfileValue, StackProfile, StackProfileBuilder, dmd};
use prost::Message as _;

use crate::pprof::schema;

#[inline(never)]
fn function_of_the_profile() -> u32 {
    std::hint::black_box(29)
}

/// The mapping of this test's code, and the address of a call in `function_of_the_profile`.
#[cfg(target_os = "linux")]
fn code() -> (u64, u64, String, u64) {
    assert_eq!(function_of_the_profile(), 29);
    let address = function_of_the_profile as fn() -> u32 as usize as u64 + 1;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).unwrap();
    for line in maps.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (start, end) = fields[0].split_once('-').unwrap();
        if (hexadecimal(start)..hexadecimal(end)).contains(&address) {
            return (hexadecimal(start), hexadecimal(fields[2]), fields[5].to_owned(), address);
        }
    }
    unreachable!("the code is mapped");
}

/// As Go and jemalloc's converters write it: addresses without functions, and the mapping of the code only.
#[test]
#[cfg(target_os = "linux")]
fn addresses_of_other_programs_become_functions() {
    let (start, offset, path, address) = code();
    let texts = ["", "inuse_objects", "count", "inuse_space", "bytes", &path, "space"].map(str::to_owned);
    let value = |name, unit| schema::ValueType { r#type: name, unit };
    let profile = schema::Profile {
        sample_type: vec![value(1, 2), value(3, 4)],
        sample: vec![schema::ProfileSample {
            location_id: vec![7],
            value: vec![40, 4000],
            label: Vec::new(),
        }],
        mapping: vec![schema::Mapping {
            id: 1,
            memory_start: start,
            memory_limit: start + 0x1000_0000,
            file_offset: offset,
            filename: 5,
            ..schema::Mapping::default()
        }],
        location: vec![schema::Location { id: 7, mapping_id: 1, address, ..schema::Location::default() }],
        string_table: texts.into(),
        period_type: Some(value(6, 4)),
        period: 524_288,
        ..schema::Profile::default()
    };
    let stacks = read(&*profile.encode_to_vec(), &PprofReadOptions::new()).unwrap();
    let mut dump = dmd::dump(&stacks).unwrap();
    assert_eq!(dump.mode(), Mode::Live);
    let sample = *dump.sample().unwrap();
    assert!(sample.mean == 524_288 && sample.recorded == 0 && sample.standard_error > 40_000.0, "{sample:?}");
    dump.symbolize(&SymbolOptions::new());
    let frames: Vec<_> = dump.stack(0).collect();
    assert!(frames.iter().any(|frame| frame.name().ends_with("function_of_the_profile")), "{frames:?}");
    let sums = Analysis::new(dump, &AnalyzeOptions::new()).sums(RecordKind::Live);
    assert_eq!((sums.num, sums.req), (40, 4000));
}

fn profile(values: &[ProfileValue], amounts: &[i64]) -> StackProfile {
    let mut builder = StackProfileBuilder::new(values);
    let module = builder.module("/opt/app", "0a1b");
    let frame =
        builder.frame(&ProfileFrame { module: Some(module), offset: Some(0x1234), ..Default::default() });
    let stack = builder.stack(&[frame]);
    let labels = builder.labels(&Default::default());
    builder.sample(stack, labels, None, amounts);
    builder.finish().unwrap()
}

/// Profiles by build id of this crate have addresses in the file.
#[test]
fn addresses_of_own_profiles_stay() {
    let values = [ProfileValue::LiveBlocks, ProfileValue::LiveBytes];
    let mut file = Vec::new();
    let options = PprofOptions::new().symbols(PprofSymbols::BuildId);
    write(&profile(&values, &[3, 300]), &options, &mut file).unwrap();
    let dump = dmd::dump(&read(&*file, &PprofReadOptions::new()).unwrap()).unwrap();
    let frame = dump.stack(0).next().unwrap();
    assert_eq!((frame.module, frame.offset), (Some("/opt/app"), Some(0x1234)));
    let module = dump.modules().first().unwrap();
    assert_eq!((&*module.build_id, module.has_file_offsets), ("0a1b", false));
    assert!(dump.sample().is_none());
}

#[test]
fn a_profile_without_live_blocks_has_all_blocks_or_no_dump() {
    use ProfileValue::{AllocatedBlocks, AllocatedBytes, LiveBlocks, LiveBytes};
    let dump = |values: &[ProfileValue], amounts: &[i64]| dmd::dump(&profile(values, amounts));
    assert_eq!(dump(&[AllocatedBlocks, AllocatedBytes], &[2, 20]).unwrap().mode(), Mode::Cumulative);
    assert_eq!(dump(&[LiveBlocks, LiveBytes], &[0, 20]).unwrap().stacks().len(), 1);
    assert!(dump(&[LiveBytes], &[20]).is_none());
    assert!(dump(&[LiveBlocks, LiveBytes], &[-1, -20]).is_none());
}
