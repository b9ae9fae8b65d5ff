//! Types of blocks from their stacks. The stacks in `tests/data/types` are from real programs, reduced in size.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;

use dmd_analyze::{Analysis, AnalyzeOptions, BlockShape, CallFrame, FunctionName, TableKey, TypeVerdict};
use serde_json::Value;

use super::views::golden;
use super::{document, read};

/// Checks the path and the types of a function's name.
fn check(name: &str, path: &str, arguments: &[&str]) {
    let parsed = FunctionName::parse(name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!((parsed.path.join("|"), &parsed.arguments[..]), (path.to_owned(), arguments), "{name}");
}

#[test]
fn names_have_a_path_and_types() {
    check("malloc", "malloc", &[]);
    check("alloc::vec::with_capacity<own::Token>", "alloc|vec|with_capacity", &["own::Token"]);
    check("deserialize_any<a::B, c::D<e::F, G>>", "deserialize_any", &["a::B", "c::D<e::F, G>"]);
    // The arguments are the types of the owner. If the owner has only names of parameters, they are the types of the
    // function.
    let name = "alloc::raw_vec::RawVec<T,A>::grow_one<own::Job, alloc::alloc::Global>";
    check(name, "alloc|raw_vec|RawVec|grow_one", &["own::Job", "alloc::alloc::Global"]);
    check("<alloc::raw_vec::RawVec<own::Job>>::grow_one", "alloc|raw_vec|RawVec|grow_one", &["own::Job"]);
    check("alloc::vec::Vec<own::Job>::extend<u8>", "alloc|vec|Vec|extend", &["own::Job"]);
    check("alloc::slice::<impl [T]>::to_vec<u8, a::G>", "alloc|slice|to_vec", &["u8", "a::G"]);
    check("<alloc::sync::Arc<[T]> as core::convert::From<&[T]>>::from<u32>", "alloc|sync|Arc|from", &["u32"]);
    check("<alloc::sync::Arc<str> as core::convert::From<&str>>::from", "alloc|sync|Arc|from", &["str"]);
    check("<[u8]>::to_vec_in::<alloc::alloc::Global>", "[]|to_vec_in", &["u8"]);
    check(
        "core::iter::collect::<dyn a::B + c::D, (u8, [u16; 4])>",
        "core|iter|collect",
        &["dyn a::B + c::D", "(u8, [u16; 4])"],
    );
    check("a::f<fn(u8) -> b::C<u8>, &str>", "a|f", &["fn(u8) -> b::C<u8>", "&str"]);
    check("a::f<dyn b::Fn<(u8,), Output = i32>>", "a|f", &["dyn b::Fn<(u8,), Output = i32>"]);
    check("a::f<'a, 'b, u8>", "a|f", &["u8"]);
    check("own::store::{closure#3}", "own|store|{closure#3}", &[]);
    check("alloc::vec::{impl#3}::push<u8, a::G>", "alloc|vec|{impl#3}|push", &["u8", "a::G"]);
    check("<&dyn a::F as b::G>::call<u8>", "call", &["u8"]);
    check("", "", &[]);
}

#[test]
fn unbalanced_names_have_no_parts() {
    for name in ["a<", "a>", "a::b<c", "a(<b)>", "<a as b>>::c", "a::{b", "operator<", "f<'<'>"] {
        assert_eq!(FunctionName::parse(name), None, "{name}");
    }
}

/// A name of a megabyte would take hours if a part of it were read again for each of its brackets.
#[test]
fn long_names_take_linear_time() {
    let deep = 1 << 18;
    let nested =
        format!("alloc::raw_vec::RawVec<T,A>::grow_one<{}u8{}, A>", "a<".repeat(deep), ">".repeat(deep));
    let wide = format!("alloc::raw_vec::grow_one<({}), b::Global>", "own::Job, ".repeat(deep));
    let open = "<(".repeat(deep);
    for name in [&nested, &wide, &open] {
        let verdict = TypeVerdict::from_stack(&[frame(name, Some(1), false)]);
        assert_eq!(matches!(verdict, TypeVerdict::Typed { .. }), name != &open);
    }
}

/// Deterministic damage: removes, doubles and swaps parts of names.
#[test]
fn damaged_names_do_not_panic() {
    let seeds = [
        "alloc::raw_vec::RawVec<T,A>::grow_one<own::Job, alloc::alloc::Global>",
        "<alloc::vec::Vec<T> as alloc::vec::SpecFromIter<T,I>>::from_iter<(a::B, [u8; 4]), fn(u8) -> a::É>",
        "smallvec::SmallVec<A>::try_grow<[alloc::sync::Arc<str, alloc::alloc::Global>; 2]>",
        "hashbrown::raw::RawTable<T,A>::reserve_rehash<(u32, &'static dyn a::F + b::G), alloc::alloc::Global, h::{closure_env#0}<u8>>",
        "<&dyn a::Fn<(u8,), Output = i32> as b::FnOnce<()>>::call_once::{closure#0}",
    ];
    let mut state = 1_u64;
    let mut next = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound.max(1)
    };
    let mut typed = 0;
    for round in 0..10_000 {
        let mut name: Vec<char> = seeds[round % seeds.len()].chars().collect();
        for _ in 0..1 + next(3) {
            let at = next(name.len());
            match next(4) {
                0 => drop(name.drain(at..(at + 1 + next(8)).min(name.len()))),
                1 => name.insert(at, ['<', '>', ',', ':', '(', ']', ' ', 'T', '\u{202e}', '-'][next(10)]),
                2 => name.truncate(at),
                _ if name.is_empty() => {}
                _ => name.swap(at, 0),
            }
        }
        let name: String = name.into_iter().collect();
        if let Some(parsed) = FunctionName::parse(&name) {
            let kept: usize = parsed.path.iter().chain(&parsed.arguments).map(|part| part.len()).sum();
            assert!(kept <= name.len() + 2, "{name}");
        }
        let frame = frame(&name, Some(1), round % 2 == 0);
        typed += usize::from(matches!(TypeVerdict::from_stack(&[frame, frame]), TypeVerdict::Typed { .. }));
    }
    assert!(typed > 200, "only {typed} damaged names have a type: most damage must not affect the type");
}

fn frame(function: &str, line: Option<u32>, inlined: bool) -> CallFrame<'_> {
    let mut frame = CallFrame::default();
    frame.function = Some(function);
    frame.line = line;
    frame.inlined = inlined;
    frame
}

/// Checks the verdict about a stack. `~` marks an inlined function, `?` a call of unknown line.
fn verdict(stack: &[&str], expected: &str) {
    let frames: Vec<CallFrame<'_>> = stack
        .iter()
        .map(|text| {
            let line = (!text.contains('?')).then_some(1);
            frame(text.trim_start_matches(['~', '?']), line, text.contains('~'))
        })
        .collect();
    assert_eq!(TypeVerdict::from_stack(&frames).to_string(), expected, "{stack:#?}");
}

const GROW: &str = "alloc::raw_vec::RawVec<T,A>::grow_one<std::path::StateID, alloc::alloc::Global>";

#[test]
fn the_caller_names_a_merged_function() {
    let like = "[StateID], or a type of the same layout";
    verdict(&["malloc", GROW, "app::main"], like);
    verdict(&["malloc", GROW, "~alloc::vec::push<u32, alloc::alloc::Global>", "app::main"], "[u32]");
    // The caller may also have been merged with another instance.
    let push = "alloc::vec::Vec<T,A>::push<u32, alloc::alloc::Global>";
    verdict(&["malloc", GROW, push, "app::main"], "[u32], or a type of the same layout");
    verdict(&["malloc", GROW, push, "~alloc::vec::push<i32, alloc::alloc::Global>", "app::main"], "[i32]");
    verdict(&["~alloc::vec::push<u32, a::G>", "app::generic<u32>"], "[u32], or a type of the same layout");
    // A frame whose block has another shape allocates another block.
    verdict(&["malloc", GROW, "~alloc::boxed::new<u32>", "app::main"], like);
    // A library function around the program's code allocates another block.
    verdict(&["malloc", GROW, "app::f", "~alloc::vec::push<u32, alloc::alloc::Global>", "app::main"], like);
}

#[test]
fn nothing_is_guessed() {
    // A call without a line may represent several merged calls. Its inlined frames are lost, and with them the type.
    verdict(&["malloc", "?alloc::vec::from_iter<u8, app::I>", "app::main"], "in app::main");
    verdict(&["malloc", "~alloc::vec::from_iter<u8, app::I>", "app::main"], "[u8]");
    verdict(&["malloc", "?~alloc::vec::push<u8, a::G>", "app::main"], "[u8]");
    verdict(&["malloc", "?app::load<app::Job>", "~alloc::vec::push<u8, a::G>", "app::main"], "in app::load");
    // Types of allocators and names of parameters are not the block's type.
    verdict(&["malloc", "alloc::raw_vec::grow_amortized<alloc::alloc::Global>", "app::f"], "in app::f");
    verdict(&["malloc", "alloc::raw_vec::RawVec<T,A>::grow_one", "app::f"], "in app::f");
    verdict(&["malloc", "alloc::vec::Vec<T>::push<", "app::f"], "in app::f");
    verdict(&["malloc", "smallvec::SmallVec<A>::try_grow<app::Backing>", "app::f"], "in app::f");
    // An in-place collect reuses a block whose elements have another type.
    verdict(
        &["malloc", "~alloc::vec::in_place_collect::from_iter_in_place<app::I, u8>", "app::f"],
        "in app::f",
    );
    verdict(&["malloc", "g_strdup", "app::f"], "in g_strdup");
    verdict(&["malloc"], "in malloc");
    verdict(&[], "in an unknown function");
}

#[test]
fn each_collection_has_its_shape() {
    for (function, expected) in [
        ("alloc::raw_vec::grow_one<own::Job, alloc::alloc::Global>", "[own::Job]"),
        ("alloc::vec::into_boxed_slice<u8, alloc::alloc::Global>", "[u8] boxed slice"),
        ("alloc::boxed::new_uninit_slice<u8>", "[u8] boxed slice"),
        ("alloc::boxed::clone_from_ref<[u8]>", "[u8] boxed slice"),
        ("alloc::boxed::new<[u8; 4]>", "[u8; 4]"),
        ("alloc::boxed::new<own::store::{closure_env#3}>", "own::store::{closure#3}"),
        ("alloc::boxed::new<alloc::collections::linked_list::Node<u8>>", "linked_list::Node<u8>"),
        (
            "alloc::boxed::new<alloc::collections::btree::node::LeafNode<alloc::string::String, app::V>>",
            "LeafNode<String, app::V>",
        ),
        ("alloc::sync::new<app::Session>", "ArcInner<app::Session>"),
        ("alloc::rc::new<alloc::vec::Vec<u8, alloc::alloc::Global>>", "RcInner<Vec<u8>>"),
        ("alloc::sync::allocate_for_slice<u32>", "ArcInner<[u32]>"),
        ("alloc::sync::allocate_for_layout<[u32], app::f, app::g>", "ArcInner<[u32]>"),
        ("<alloc::sync::Arc<str> as core::convert::From<&str>>::from", "ArcInner<str>"),
        ("<alloc::sync::Arc<[T],A> as core::convert::From<alloc::vec::Vec<T,A>>>::from<u32>", "in app::main"),
        ("alloc::string::with_capacity", "str"),
        (
            "hashbrown::raw::reserve_rehash<(u32, own::Job), alloc::alloc::Global, h::H>",
            "table (u32, own::Job)",
        ),
        ("std::collections::hash::map::insert<u32, own::Job, s::S>", "table (u32, own::Job)"),
        ("smallvec::SmallVec<A>::try_grow<[alloc::sync::Arc<str, alloc::alloc::Global>; 2]>", "[Arc<str>]"),
        ("tokio::sync::mpsc::block::new<app::Msg>", "tokio::sync::mpsc::block::Block<app::Msg>"),
        (
            "alloc::boxed::new<std::collections::hash::map::HashMap<u8, u8, std::hash::random::RandomState>>",
            "HashMap<u8, u8>",
        ),
    ] {
        verdict(&["malloc", &format!("~{function}"), "app::main"], expected);
    }
}

/// The program's allocator may itself use containers.
#[test]
fn calls_of_an_allocator_say_nothing() {
    let stack =
        ["malloc", GROW, "app::Pool::take", "__rustc::__rust_alloc", "~alloc::boxed::new<u8>", "app::f"];
    verdict(&stack, "u8");
    // The nodes of a list contain a reference to the list's allocator.
    let by_references = [
        "~<&A as core::alloc::Allocator>::allocate<alloc::alloc::Global>",
        "~<&alloc::alloc::Global as core::alloc::Allocator>::allocate",
    ];
    let node =
        "~alloc::boxed::Box<T,A>::new_in<alloc::collections::linked_list::Node<u8>, &alloc::alloc::Global>";
    for passes in by_references {
        verdict(&["malloc", passes, node, "app::main"], "linked_list::Node<u8>");
    }
    verdict(&["malloc", "allocate", node, "app::main"], "in allocate");
}

#[test]
fn a_table_of_types() {
    let tables = r##""traceTable": {"A": ["M", "G", "P", "X"], "B": ["M", "D", "X"], "C": ["M", "S", "X"]},
      "frameTable": {
        "M": "#00: malloc (m.c:1)",
        "G": "#00: alloc::raw_vec::RawVec<T,A>::grow_one<app::Job, alloc::alloc::Global> (r.rs:1)",
        "P": "#00: alloc::vec::Vec<T,A>::push<app::Job, alloc::alloc::Global> (v.rs:1)",
        "D": "#00: serde::de::deserialize_any<app::Job> (d.rs:???)",
        "S": "#00: <alloc::string::String as core::convert::From<&str>>::from (s.rs:1)",
        "X": "#00: app::main (src/main.rs:1)"
      }"##;
    let blocks = r#"{"req": 400, "slop": 48, "alloc": "A", "num": 2}, {"req": 100, "alloc": "B"},
      {"req": 10, "slop": 6, "alloc": "C", "num": 7}, {"req": 20}"#;
    let options = AnalyzeOptions::new().by(TableKey::Type);
    let analysis = Analysis::new(read(document("live", blocks, tables)).unwrap(), &options);
    golden("types.txt", &analysis.by_text().to_string());
}

/// The blocks of a stack: pairs of a requested size and its count.
struct Sample {
    verdict: TypeVerdict,
    sizes: Vec<(u64, u64)>,
}

/// The stacks of a program.
fn samples(program: &str) -> Vec<Sample> {
    let path = format!("{}/tests/data/types/{program}.json.gz", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let data: Value = serde_json::from_str(&text).unwrap();
    let frames: Vec<CallFrame<'_>> = data["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parts| {
            let line = parts[2].as_u64().map(|line| line as u32);
            let mut frame = frame("", line, parts[3].as_bool().unwrap());
            frame.function = parts[0].as_str();
            frame.file = parts[1].as_str();
            frame
        })
        .collect();
    let stacks = data["stacks"].as_array().unwrap().iter();
    stacks
        .map(|stack| {
            let calls = stack["frames"].as_array().unwrap().iter();
            let calls: Vec<CallFrame<'_>> = calls.map(|id| frames[id.as_u64().unwrap() as usize]).collect();
            let sizes = stack["sizes"].as_array().unwrap().iter();
            let sizes = sizes.map(|pair| (pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap()));
            Sample { verdict: TypeVerdict::from_stack(&calls), sizes: sizes.collect() }
        })
        .collect()
}

/// The types with their bytes and blocks, and the percentage of bytes with a type.
fn census(samples: &[Sample]) -> (String, f64) {
    let mut rows: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let (mut typed, mut all) = (0, 0);
    for Sample { verdict, sizes } in samples {
        let bytes: u64 = sizes.iter().map(|(size, count)| size * count).sum();
        all += bytes;
        if matches!(verdict, TypeVerdict::Typed { .. }) {
            typed += bytes;
        }
        let row = rows.entry(verdict.to_string()).or_default();
        *row = (row.0 + bytes, row.1 + sizes.iter().map(|(_, count)| count).sum::<u64>());
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut text = String::new();
    for (name, (bytes, blocks)) in rows {
        writeln!(text, "{bytes:>9} {blocks:>7}  {name}").unwrap();
    }
    (text, 100.0 * typed as f64 / all as f64)
}

#[test]
fn real_programs_have_types() {
    for (program, least) in [("own", 99.0), ("jsonp", 85.0), ("asyncp", 95.0), ("synp", 95.0)] {
        let (text, typed) = census(&samples(program));
        golden(&format!("types-{program}.txt"), &text);
        assert!(typed >= least, "{program}: {typed}");
    }
}

/// Sizes of types and elements in bytes on 64-bit systems, computed from the sources of the programs.
const SIZES: &[(&str, &[(&str, u64)])] = &[
    (
        "own",
        &[
            ("(String, own::User)", 96),
            ("ArcInner<own::Node>", 88),
            ("LeafNode<String, SetValZST>", 280),
            ("LeafNode<u32, Vec<u64>>", 320),
            ("[(f64, f64)]", 16),
            ("[own::Job]", 40),
            ("[own::Role]", 48),
            ("[own::Token]", 32),
            ("[u16]", 2),
            ("[u64; 8]", 64),
            ("[u64]", 8),
            ("linked_list::Node<(u64, String)>", 48),
            ("own::Circle", 32),
            ("own::Poly", 40),
            ("own::Token", 32),
        ],
    ),
    ("jsonp", &[("LeafNode<String, serde_json::value::Value>", 632), ("[u32]", 4)]),
    ("asyncp", &[("(String, String)", 48), ("[String]", 24), ("[bytes::bytes::Bytes]", 32)]),
];

#[test]
fn blocks_have_sizes_that_fit_their_types() {
    for (program, sizes) in SIZES {
        let samples = samples(program);
        for (expected, size) in *sizes {
            let mut seen = 0;
            for Sample { verdict, sizes } in &samples {
                let TypeVerdict::Typed { shape, name, .. } = verdict else { continue };
                if name != expected {
                    continue;
                }
                for (block, count) in sizes {
                    let fits = match shape {
                        BlockShape::One => block == size,
                        BlockShape::Table => (2..32).any(|bits| {
                            let buckets = 1_u64 << bits;
                            (buckets * size).next_multiple_of(16) + buckets + 16 == *block
                        }),
                        _ => block % size == 0,
                    };
                    assert!(fits, "{program}: {count} blocks of {block} bytes, {name} has {size}");
                    seen += count;
                }
            }
            assert!(seen > 0, "{program}: no block of {expected}");
        }
    }
}
