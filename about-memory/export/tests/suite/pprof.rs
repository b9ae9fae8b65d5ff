//! pprof, decoded with messages derived from `profile.proto`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use memory_export::pprof::{PprofOptions, PprofReadOptions, PprofSymbols, is_pprof, read, write};
use memory_export::{ExportError, ImportError, ProfileValue, StackProfile};
use prost::Message as _;

use crate::inputs::{self, BEYOND, HOSTILE};

/// The messages of `profile.proto`.
#[allow(missing_docs, unreachable_pub, reason = "named as in the schema")]
pub mod schema {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub sample: Vec<ProfileSample>,
        #[prost(message, repeated, tag = "3")]
        pub mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub string_table: Vec<String>,
        #[prost(int64, tag = "7")]
        pub drop_frames: i64,
        #[prost(int64, tag = "9")]
        pub time_nanos: i64,
        #[prost(int64, tag = "10")]
        pub duration_nanos: i64,
        #[prost(message, optional, tag = "11")]
        pub period_type: Option<ValueType>,
        #[prost(int64, tag = "12")]
        pub period: i64,
        #[prost(int64, repeated, tag = "13")]
        pub comment: Vec<i64>,
        #[prost(int64, tag = "14")]
        pub default_sample_type: i64,
    }
    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct ValueType {
        #[prost(int64, tag = "1")]
        pub r#type: i64,
        #[prost(int64, tag = "2")]
        pub unit: i64,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ProfileSample {
        #[prost(uint64, repeated, tag = "1")]
        pub location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub value: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        pub label: Vec<Label>,
    }
    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Label {
        #[prost(int64, tag = "1")]
        pub key: i64,
        #[prost(int64, tag = "2")]
        pub str: i64,
        #[prost(int64, tag = "3")]
        pub num: i64,
        #[prost(int64, tag = "4")]
        pub num_unit: i64,
    }
    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Mapping {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub memory_start: u64,
        #[prost(uint64, tag = "3")]
        pub memory_limit: u64,
        #[prost(uint64, tag = "4")]
        pub file_offset: u64,
        #[prost(int64, tag = "5")]
        pub filename: i64,
        #[prost(int64, tag = "6")]
        pub build_id: i64,
        #[prost(bool, tag = "7")]
        pub has_functions: bool,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Location {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub mapping_id: u64,
        #[prost(uint64, tag = "3")]
        pub address: u64,
        #[prost(message, repeated, tag = "4")]
        pub line: Vec<Line>,
    }
    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Line {
        #[prost(uint64, tag = "1")]
        pub function_id: u64,
        #[prost(int64, tag = "2")]
        pub line: i64,
        #[prost(int64, tag = "3")]
        pub column: i64,
    }
    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Function {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int64, tag = "2")]
        pub name: i64,
        #[prost(int64, tag = "3")]
        pub system_name: i64,
        #[prost(int64, tag = "4")]
        pub filename: i64,
    }
}

use schema::Profile;

fn written(stacks: &StackProfile, options: &PprofOptions) -> Vec<u8> {
    let mut file = Vec::new();
    write(stacks, options, &mut file).unwrap();
    file
}

fn unpacked(file: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Decodes a profile, and checks the rules of pprof's `CheckValid` and of the other clients.
fn decoded(stacks: &StackProfile, options: &PprofOptions) -> Profile {
    let profile = Profile::decode(&*unpacked(&written(stacks, options))).unwrap();
    let text = |number: i64| profile.string_table[number as usize].as_str();
    assert_eq!(profile.string_table[0], "");
    let texts: BTreeSet<_> = profile.string_table.iter().collect();
    assert_eq!(texts.len(), profile.string_table.len(), "duplicate texts");
    let in_order = |ids: Vec<u64>| assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    in_order(profile.location.iter().map(|location| location.id).collect());
    in_order(profile.function.iter().map(|function| function.id).collect());
    for sample in &profile.sample {
        assert_eq!(sample.value.len(), profile.sample_type.len());
        assert!(sample.location_id.iter().all(|id| (1..=profile.location.len() as u64).contains(id)));
        let keys: BTreeSet<_> = sample.label.iter().map(|label| label.key).collect();
        assert_eq!(keys.len(), sample.label.len(), "duplicate keys");
    }
    for location in &profile.location {
        assert!(
            location.line.iter().all(|line| (1..=profile.function.len() as u64).contains(&line.function_id))
        );
        let mapping = profile.mapping.iter().find(|mapping| mapping.id == location.mapping_id);
        assert_eq!(mapping.is_some(), location.mapping_id != 0);
        assert!(mapping.is_none_or(|mapping| location.address < mapping.memory_limit));
    }
    assert_eq!(profile.period, 1);
    assert_eq!(
        profile.period_type.map(|kind| (text(kind.r#type), text(kind.unit))),
        Some(("space", "bytes"))
    );
    assert_eq!(text(profile.default_sample_type), "inuse_space");
    let types: Vec<_> = profile.sample_type.iter().map(|kind| (text(kind.r#type), text(kind.unit))).collect();
    assert_eq!(types, [("inuse_objects", "count"), ("inuse_space", "bytes")]);
    for (index, value) in inputs::LIVE.into_iter().enumerate() {
        let sum: i128 = profile.sample.iter().map(|sample| i128::from(sample.value[index])).sum();
        assert_eq!(Some(sum), stacks.total(value), "{value:?}");
    }
    profile
}

#[test]
fn sums_are_those_of_the_stacks() {
    for (name, stacks) in inputs::ordinary() {
        for options in [
            PprofOptions::new(),
            PprofOptions::new().sizes(true),
            PprofOptions::new().symbols(PprofSymbols::BuildId),
        ] {
            println!("{name}, {options:?}");
            decoded(&stacks, &options);
            assert_eq!(written(&stacks, &options), written(&stacks, &options));
        }
    }
}

#[test]
fn large_and_negative_amounts_are_exact() {
    for stacks in [
        inputs::with_amounts(-3, -BEYOND),
        inputs::with_amounts(1, BEYOND),
        inputs::with_amounts(1, i64::MAX - 10),
        inputs::with_amounts(i64::MIN, i64::MIN),
    ] {
        decoded(&stacks, &PprofOptions::new());
    }
    // Each amount fits, but clients add up all amounts.
    let error = write(&inputs::with_amounts(1, i64::MAX), &PprofOptions::new(), Vec::new()).unwrap_err();
    assert!(matches!(error, ExportError::TooLarge("pprof", "inuse_space", ..)), "{error}");
}

#[test]
fn labels_name_the_owner_and_the_type() {
    let stacks = inputs::hostile();
    let profile = decoded(&stacks, &PprofOptions::new());
    let text = |number: i64| profile.string_table[number as usize].as_str();
    let mut by_kind: BTreeMap<&str, i64> = BTreeMap::new();
    let mut reporters = BTreeSet::new();
    for sample in &profile.sample {
        for label in &sample.label {
            match text(label.key) {
                "kind" => *by_kind.entry(text(label.str)).or_default() += sample.value[1],
                "reporter" => drop(reporters.insert(text(label.str))),
                key => assert_eq!(key, "type"),
            }
        }
    }
    let each = 56 * HOSTILE.len() as i64;
    assert_eq!(by_kind, BTreeMap::from([("once", each), ("twice", each), ("unreported", each)]));
    assert_eq!(reporters, HOSTILE.into());
}

#[test]
fn sizes_are_labels_with_a_unit() {
    let profile = decoded(&inputs::hostile(), &PprofOptions::new().sizes(true));
    let text = |number: i64| profile.string_table[number as usize].as_str();
    for sample in &profile.sample {
        let size = sample.label.iter().find(|label| text(label.key) == "bytes").unwrap();
        assert_eq!(text(size.num_unit), "bytes");
        assert_eq!(size.num * sample.value[0], sample.value[1]);
    }
}

/// Clients demangle a name that equals its system name: `<Vec<T> as Extend>::extend` would become `::extend`.
#[test]
fn a_readable_name_is_not_the_system_name() {
    let profile = decoded(&inputs::hostile(), &PprofOptions::new());
    let text = |number: i64| profile.string_table[number as usize].as_str();
    let names: BTreeMap<&str, &str> =
        profile.function.iter().map(|function| (text(function.name), text(function.system_name))).collect();
    assert_eq!(names["<alloc::vec::Vec<T> as core::iter::Extend>::extend"], "");
    assert_eq!(names["app::main"], "_RNvC3app4main");
}

#[test]
fn inlined_functions_are_lines_of_one_location() {
    let profile = decoded(&inputs::hostile(), &PprofOptions::new());
    let text = |number: i64| profile.string_table[number as usize].as_str();
    let name = |line: &schema::Line| text(profile.function[line.function_id as usize - 1].name);
    for sample in &profile.sample {
        let [inner, outer] = sample.location_id[..] else { panic!("{sample:?}") };
        let inner = &profile.location[inner as usize - 1];
        assert_eq!(inner.line.len(), 2);
        assert!(HOSTILE.contains(&name(&inner.line[0])));
        assert_eq!((inner.line[0].line, inner.line[0].column), (7, 3));
        assert_eq!(name(&inner.line[1]), "app::main");
        let outer = &profile.location[outer as usize - 1];
        assert_eq!((outer.line.len(), outer.address), (0, 0x1234));
        let library = profile.mapping.iter().find(|mapping| mapping.id == outer.mapping_id).unwrap();
        assert_eq!((text(library.filename), text(library.build_id)), ("/lib/libc.so.6", "abcdef"));
    }
    assert!(profile.mapping.iter().all(|mapping| mapping.has_functions));
    assert_eq!(text(profile.mapping[0].build_id), "00ff");
}

#[test]
fn by_build_id_there_are_addresses_and_no_names() {
    let profile = decoded(&inputs::hostile(), &PprofOptions::new().symbols(PprofSymbols::BuildId));
    assert!(profile.function.is_empty());
    assert!(profile.mapping.iter().all(|mapping| !mapping.has_functions && mapping.memory_limit == u64::MAX));
    assert!(profile.location.iter().all(|location| location.address != 0 && location.line.is_empty()));
    assert!(profile.string_table[profile.drop_frames as usize].contains("__rust_"));
}

#[test]
fn what_is_written_is_read() {
    for (name, stacks) in inputs::ordinary() {
        println!("{name}");
        let file = written(&stacks, &PprofOptions::new().sizes(true));
        assert!(is_pprof(&file[..file.len().min(512)]));
        let read = read(&*file, &PprofReadOptions::new()).unwrap();
        for value in inputs::LIVE {
            assert_eq!(read.total(value), stacks.total(value));
        }
        assert_eq!(read.samples().len(), stacks.samples().len());
        assert_eq!(read.stack_count(), stacks.stack_count());
        if name == "100,000 stacks" {
            // Empty names are left out, so nothing is lost.
            assert_eq!(written(&read, &PprofOptions::new().sizes(true)), file);
        }
    }
}

#[test]
fn other_programs_profiles_are_read() {
    let mut profile = Profile {
        sample_type: vec![schema::ValueType { r#type: 1, unit: 2 }, schema::ValueType { r#type: 3, unit: 4 }],
        sample: vec![schema::ProfileSample { location_id: vec![1], value: vec![3, 300], label: Vec::new() }],
        location: vec![schema::Location { id: 1, mapping_id: 0, address: 0x10, line: Vec::new() }],
        string_table: ["", "objects", "count", "space", "bytes"].map(str::to_owned).into(),
        ..Profile::default()
    };
    let stacks = read(&*profile.encode_to_vec(), &PprofReadOptions::new()).unwrap();
    assert_eq!(
        (stacks.total(ProfileValue::LiveBlocks), stacks.total(ProfileValue::LiveBytes)),
        (Some(3), Some(300))
    );

    let check = |change: &dyn Fn(&mut Profile), message: &str| {
        let mut changed = profile.clone();
        change(&mut changed);
        let error = read(&*changed.encode_to_vec(), &PprofReadOptions::new()).unwrap_err();
        assert_eq!(error.to_string(), message);
    };
    check(&|p| p.sample[0].location_id = vec![2], "the profile has no location 2");
    check(&|p| p.sample_type[0].r#type = 9, "the profile has no text 9");
    check(&|p| p.location[0].mapping_id = 5, "the profile has no mapping 5");
    check(
        &|p| p.location[0].line = vec![schema::Line { function_id: 7, ..Default::default() }],
        "the profile has no function 7",
    );
    check(
        &|p| p.string_table = ["", "cpu", "nanoseconds", "samples", "count"].map(str::to_owned).into(),
        "the profile has no amounts of memory; its sample types are cpu, samples",
    );
    profile.sample[0].value.pop();
    let error = read(&*profile.encode_to_vec(), &PprofReadOptions::new()).unwrap_err();
    assert!(matches!(error, ImportError::Malformed(_, "a sample without an amount for each type")));
}

#[test]
fn a_reader_has_bounds_and_never_panics() {
    let file = written(&inputs::hostile(), &PprofOptions::new());
    let error = read(&*file, &PprofReadOptions::new().max_bytes(100)).unwrap_err();
    assert_eq!(error.to_string(), "the unpacked profile has more than 100 bytes");
    let bytes = unpacked(&file);
    for end in 0..bytes.len() {
        let _ = read(&bytes[..end], &PprofReadOptions::new());
    }
    for at in 0..bytes.len() {
        for value in [0, 0x7f, 0x80, 0xff] {
            let mut mutated = bytes.clone();
            mutated[at] = value;
            let _ = read(&*mutated, &PprofReadOptions::new());
        }
    }
    for text in [
        "{\"version\": 5}",
        "\n\n {\"version\": 1}",
        "",
        "[1]",
        "\n<!DOCTYPE html>",
        "box;main 12\n",
        "\"a\",1\n",
        "BZh91",
    ] {
        assert!(!is_pprof(text.as_bytes()), "{text}");
    }
}

/// A sample that refers many times to a location with many lines has many more frames than the file has bytes.
#[test]
fn stacks_that_expand_are_bounded() {
    let line = schema::Line { function_id: 1, ..Default::default() };
    let profile = Profile {
        sample_type: vec![schema::ValueType { r#type: 1, unit: 2 }],
        sample: vec![schema::ProfileSample {
            location_id: vec![1; 1000],
            value: vec![300],
            label: Vec::new(),
        }],
        location: vec![schema::Location { id: 1, mapping_id: 0, address: 0x10, line: vec![line; 1000] }],
        function: vec![schema::Function { id: 1, ..Default::default() }],
        string_table: ["", "inuse_space", "bytes"].map(str::to_owned).into(),
        ..Profile::default()
    };
    let bytes = profile.encode_to_vec();
    let error = read(&*bytes, &PprofReadOptions::new().max_frames(999_999)).unwrap_err();
    assert_eq!(error.to_string(), "the profile's stacks have more than 999999 frames");
    assert!(read(&*bytes, &PprofReadOptions::new().max_frames(1_000_000)).is_ok());
}

/// A field without contents takes two bytes, but each kind of part takes more memory than that.
#[test]
fn small_parts_are_bounded() {
    let types = vec![schema::ValueType { r#type: 1, unit: 2 }];
    let string_table: Vec<String> = ["", "inuse_space", "bytes"].map(str::to_owned).into();
    let base = Profile { sample_type: types, string_table, ..Profile::default() };
    let head = base.encode_to_vec();
    // A part that is repeated, and parts that contain many parts.
    let with = |part: &[u8], count: usize| [head.as_slice(), &part.repeat(count)].concat();
    let within = |field: u8, part: &[u8], count: usize| {
        let parts = part.repeat(count);
        let mut whole = vec![field << 3 | 2];
        let mut length = parts.len();
        while length >= 0x80 {
            whole.push(length as u8 | 0x80);
            length >>= 7;
        }
        whole.push(length as u8);
        [head.as_slice(), &whole, &parts].concat()
    };
    let most = 1_000;
    for (what, bytes) in [
        ("types", with(&[0x0a, 0], most)),
        ("samples", with(&[0x12, 0], most)),
        ("mappings", with(&[0x1a, 0], most)),
        ("locations", with(&[0x22, 0], most)),
        ("functions", with(&[0x2a, 0], most)),
        ("texts", with(&[0x32, 0], most)),
        ("labels", within(2, &[0x1a, 0], most)),
        ("lines", [within(4, &[0x22, 0], most), vec![0x2a, 0]].concat()),
    ] {
        let error = read(&*bytes, &PprofReadOptions::new().max_entries(most)).unwrap_err();
        let expected = "the profile has more than 1000 samples, labels, lines and texts in total";
        assert_eq!(error.to_string(), expected, "{what}");
    }
    // Amounts without a type, and a name that many lines repeat.
    let amounts = within(2, &[0x10, 1], 100_000);
    let error = read(&*amounts, &PprofReadOptions::new()).unwrap_err();
    assert!(
        matches!(error, ImportError::Malformed(_, "a sample without an amount for each type")),
        "{error}"
    );
    let line = schema::Line { function_id: 1, ..Default::default() };
    let mut named = Profile {
        location: vec![schema::Location { id: 1, mapping_id: 0, address: 0x10, line: vec![line; 200] }],
        function: vec![schema::Function { id: 1, name: 3, ..Default::default() }],
        ..base
    };
    named.string_table.push("f".repeat(10_000));
    let error = read(&*named.encode_to_vec(), &PprofReadOptions::new().max_bytes(1_000_000)).unwrap_err();
    assert_eq!(error.to_string(), "the profile's names have more than 1000000 bytes in total");
    assert!(read(&*named.encode_to_vec(), &PprofReadOptions::new()).is_ok());
}

#[test]
fn labels_of_other_programs_are_passed_over() {
    let mut profile = decoded(&inputs::hostile(), &PprofOptions::new());
    let known = read(&*profile.encode_to_vec(), &PprofReadOptions::new()).unwrap();
    let text = profile.string_table.len() as i64;
    profile.string_table.push("pod".to_owned());
    for sample in &mut profile.sample {
        sample.label.insert(0, schema::Label { key: text, str: text, ..Default::default() });
        // If a label occurs twice, the first one counts.
        let again = sample.label.last().map(|last| schema::Label { str: text, ..*last });
        sample.label.extend(again);
    }
    let stacks = read(&*profile.encode_to_vec(), &PprofReadOptions::new()).unwrap();
    assert_eq!(written(&stacks, &PprofOptions::new()), written(&known, &PprofOptions::new()));
}

#[test]
fn a_profile_needs_amounts_that_pprof_knows() {
    let stacks = memory_export::StackProfileBuilder::new(&[ProfileValue::PeakBytes]).finish().unwrap();
    let error = write(&stacks, &PprofOptions::new(), Vec::new()).unwrap_err();
    assert!(matches!(error, ExportError::NotRecorded("pprof", _)));
}
