//! Suggestions about memory that no reporter reports.

use dmd_analyze::{DumpTime, Suggestions};

use super::{TABLES, document, read};

/// The suggestions for one block of each stack. Frames are innermost first.
fn suggest(stacks: &[&[&str]]) -> Suggestions {
    let mut blocks = Vec::new();
    let mut traces = Vec::new();
    let mut frames = Vec::new();
    for (index, stack) in stacks.iter().enumerate() {
        blocks.push(format!("{{\"req\": {}, \"alloc\": \"T{index}\"}}", 1000 - index));
        let keys: Vec<String> = (0..stack.len()).map(|at| format!("\"F{index}-{at}\"")).collect();
        traces.push(format!("\"T{index}\": [{}]", keys.join(",")));
        frames.extend(keys.iter().zip(*stack).map(|(key, text)| format!("{key}: \"#00: {text}\"")));
    }
    let tables =
        format!("\"traceTable\": {{{}}}, \"frameTable\": {{{}}}", traces.join(","), frames.join(","));
    Suggestions::new(read(document("dark-matter", &blocks.join(","), &tables)).unwrap(), 10).unwrap()
}

const STD: &str = "/rustc/0123/library/";

#[test]
fn the_collection_is_named_in_every_way_that_compilers_name_it() {
    let cases: &[(&str, Option<&str>)] = &[
        ("<alloc::vec::Vec<app::Entry>>::push (FILE)", Some("Vec<app::Entry>")),
        (
            "<alloc::raw_vec::RawVec<(alloc::string::String, app::Doc)>>::grow_one (FILE)",
            Some("Vec<(String, app::Doc)>"),
        ),
        ("alloc::vec::Vec<T,A>::push<app::Entry, alloc::alloc::Global> (FILE)", Some("Vec<app::Entry>")),
        ("alloc::vec::Vec<app::Entry, alloc::alloc::Global>::push (FILE)", Some("Vec<app::Entry>")),
        (
            "alloc::vec::push<app::Entry, alloc::alloc::Global> (/rustc/0/library/alloc/src/vec/mod.rs:1)",
            Some("Vec<app::Entry>"),
        ),
        (
            "hashbrown::raw::RawTable<T,A>::reserve_rehash<(alloc::string::String, app::Doc), alloc::alloc::Global, hashbrown::map::make_hasher::{closure_env#0}<u8>> (FILE)",
            Some("RawTable<(String, app::Doc)>"),
        ),
        (
            "std::collections::hash::map::HashMap<K,V,S,A>::insert<alloc::string::String, app::Doc, std::hash::random::RandomState, alloc::alloc::Global> (FILE)",
            Some("HashMap<String, app::Doc>"),
        ),
        (
            "<alloc::collections::btree::map::entry::VacantEntry<u64, app::Doc>>::insert (FILE)",
            Some("BTreeMap<u64, app::Doc>"),
        ),
        ("<alloc::string::String as core::clone::Clone>::clone (FILE)", Some("String")),
        ("alloc::sync::Arc<T>::new<app::Answer> (FILE)", Some("Arc<app::Answer>")),
        ("alloc::sync::allocate_for_slice<u8> (FILE)", Some("Arc<[u8]>")),
        ("alloc::sync::Arc<[T]>::copy_from_slice<u8> (FILE)", Some("Arc<[u8]>")),
        ("alloc::alloc::exchange_malloc (FILE)", None),
        ("core::iter::traits::iterator::Iterator::collect<app::Words, alloc::vec::Vec<u8>> (FILE)", None),
    ];
    for (frame, expected) in cases {
        let file = match frame.contains("hashbrown") {
            true => "(/home/me/.cargo/registry/src/i/hashbrown-0.17.0/src/raw.rs:1)".to_owned(),
            false => format!("({STD}alloc/src/file.rs:1)"),
        };
        let frame = frame.replace("(FILE)", &file);
        let suggestions =
            suggest(&[&["malloc[/lib/libc.so +0x1]", &frame, "app::cache::Cache::fill (src/cache.rs:7)"]]);
        assert_eq!(suggestions.suggestions[0].largest().type_name.as_deref(), *expected, "{frame}");
        assert_eq!(suggestions.suggestions[0].largest().function, "app::cache::Cache::fill");
    }
}

#[test]
fn a_library_s_frame_is_known_by_its_file_where_its_name_has_no_path() {
    let bare = [
        format!("to_vec_in<u8, alloc::alloc::Global> ({STD}alloc/src/slice.rs:1)"),
        format!("{{impl#9}}::spec_extend<app::Entry> ({STD}alloc/src/vec/spec_extend.rs:1)"),
        format!("<[app::Entry]>::to_vec ({STD}alloc/src/slice.rs:1)"),
        "next<u8> (/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/core/src/iter/mod.rs:1)"
            .to_owned(),
        format!("grow ({STD}std/src/collections/hash/map.rs:1)"),
        "grow (/home/me/.cargo/registry/src/i/hashbrown-0.17.0/src/raw.rs:1)".to_owned(),
    ];
    for frame in &bare {
        let suggestions = suggest(&[&[frame, "app::cache::Cache::fill (/home/me/app/src/cache.rs:7)"]]);
        assert_eq!(suggestions.suggestions[0].largest().function, "app::cache::Cache::fill", "{frame}");
    }
    // If all frames are of libraries, the suggestion names the crate, not the file.
    let of_std = suggest(&[&[&format!("with_capacity ({STD}std/src/io/buffered/bufreader.rs:1)")]]);
    assert_eq!(of_std.suggestions[0].largest().module, "std");
    let package = "(/home/me/.cargo/registry/src/i/regex-automata-0.4.9/src/dfa/dense.rs:1)";
    let of_package = suggest(&[&[&format!("build {package}")]]);
    assert_eq!(of_package.suggestions[0].largest().module, "regex_automata");
}

#[test]
fn ours_and_a_dependency_s_are_told_apart() {
    let push = format!("alloc::vec::Vec<u8>::push ({STD}alloc/src/vec/mod.rs:1)");
    let suggestions = suggest(&[
        &[
            &push,
            "<app::cache::Cache>::fill (/home/me/app/src/cache.rs:7)",
            "app::main (/home/me/app/src/main.rs:1)",
        ],
        &[
            &push,
            "zip::read::decode (/home/me/.cargo/registry/src/index-1/zip-1.0.0/src/read.rs:9)",
            &format!("core::ops::function::FnOnce::call_once ({STD}core/src/ops/function.rs:1)"),
            "app::load (/home/me/app/src/load.rs:3)",
        ],
        &["???[/usr/lib/libz.so.1 +0x10]"],
    ]);
    assert_eq!(
        suggestions.to_string(),
        "\
2,997 bytes in 3 blocks are not reported.

1. 1,000 bytes (33.37%) in 1 block: app::cache::Cache
   1,000 bytes of Vec<u8>, allocated by app::cache::Cache::fill at src/cache.rs:7
   #[derive(memory_reporter::MallocSizeOf)]  // on app::cache::Cache
   memory_reporter::define_reporter!(\"explicit/cache\", Heap, &VALUE, \"Memory used by cache.\");  // VALUE: your static
   or, without a static: at the start of app::cache::Cache::fill (src/cache.rs:7):
   let _tag = memory_reporter::tag(\"explicit/cache\");

2. 999 bytes (33.33%) in 1 block: zip, a dependency
   999 bytes of Vec<u8>, allocated by zip::read::decode at zip-1.0.0/src/read.rs:9
   before the call in app::load (src/load.rs:3):
   let _tag = memory_reporter::tag(\"explicit/zip\");

3. 998 bytes (33.30%) in 1 block
   998 bytes, allocated by ??? at /usr/lib/libz.so.1 +0x10
   no symbols: build with debug information, or pass the folder of the symbols to --symbols

A tag counts the blocks of the allocator that the program declares:
   memory_reporter::global_allocator!(std::alloc::System);
"
    );
}

/// The advice of the only suggestion.
fn advice(stacks: &[&[&str]]) -> String {
    let found = suggest(stacks);
    let [only] = &found.suggestions[..] else { panic!("{found}") };
    only.advice()
}

#[test]
fn foreign_memory_gets_a_tag_and_never_a_derive() {
    let main = "app::work (/home/me/app/src/app.rs:1)";
    let package = |name: &str| format!("(/home/me/.cargo/registry/src/i/{name}-1.0.0/src/lib.rs:1)");
    // A type of a crate that the program does not call, in a vector of the program.
    let ids = format!("alloc::vec::Vec<gix_hash::object_id::ObjectId>::push ({STD}alloc/src/vec/mod.rs:1)");
    let tag = "   before the call in app::work (src/app.rs:1):\n   let _tag = memory_reporter::tag(\"explicit/gix-hash\");\n";
    assert_eq!(advice(&[&[&ids, main]]), tag);
    // One piece of advice covers all allocations below a call, also the allocations by crates that the called crate
    // uses.
    let push = format!("alloc::vec::Vec<u8>::push ({STD}alloc/src/vec/mod.rs:1)");
    let (inner, outer) = (format!("pack::read {}", package("pack")), format!("gix::find {}", package("gix")));
    let other = format!("gix::open {}", package("gix"));
    let second = "app::load (/home/me/app/src/app.rs:9)";
    assert_eq!(
        advice(&[&[&push, &inner, &outer, main], &[&push, &other, second]]),
        "   before the call in app::work (src/app.rs:1) and app::load (src/app.rs:9):\n   \
         let _tag = memory_reporter::tag(\"explicit/gix\");\n"
    );
    // A crate for which the documentation contains code.
    let slots = format!(
        "alloc::vec::Vec<T,A>::into_boxed_slice<crossbeam_channel::flavors::array::Slot<app::Job>, \
         alloc::alloc::Global> ({STD}alloc/src/vec/mod.rs:1)"
    );
    let channel = format!("crossbeam_channel::channel::bounded<app::Job> {}", package("crossbeam-channel"));
    let text = suggest(&[&[&slots, &channel, main]]).to_string();
    assert!(text.contains(" of Box<[crossbeam_channel::flavors::array::Slot<app::Job>]>, "), "{text}");
    assert_eq!(
        advice(&[&[&slots, &channel, main]]),
        "   before the call in app::work (src/app.rs:1):\n   \
         let _tag = memory_reporter::tag(\"explicit/crossbeam-channel\");\n   \
         or measure the values: memory_reporter::docs::other_crates has the code for crossbeam_channel\n"
    );
    // A crate that memory-reporter measures.
    let shards = format!("alloc::vec::Vec<dashmap::lock::RwLock<u8>>::push ({STD}alloc/src/vec/mod.rs:1)");
    let cargo = "   cargo add memory-reporter --features dashmap6\n   #[derive(memory_reporter::MallocSizeOf)]  // on app::Cache\n";
    let method = "app::Cache::put (/home/me/app/src/app.rs:4)";
    let dashmap = format!("dashmap::DashMap<u32, u8>::insert {}", package("dashmap"));
    for stack in [&[&*shards, method][..], &[&push, &dashmap, method]] {
        let text = advice(&[stack]);
        assert!(text.starts_with(cargo), "{text}");
    }
    // C libraries do not allocate from the allocator that counts tags.
    let text = advice(&[&["deflate[/usr/lib/libz.so.1 +0x10]", main]]);
    assert!(text.contains("CountingMalloc") && !text.contains("tag("), "{text}");
    // The recorded frames end in the library.
    let text = advice(&[&[&push, &inner]]);
    assert!(
        text.starts_with("   no function of the program is on these stacks: record more frames"),
        "{text}"
    );
}

#[test]
fn all_memory_of_an_owner_has_one_piece_of_advice() {
    let frame = |collection: &str| format!("{collection}::push ({STD}alloc/src/vec/mod.rs:1)");
    let (entries, names) = (frame("alloc::vec::Vec<app::Entry>"), frame("alloc::string::String"));
    let (fill, name) =
        ("app::Cache::fill (/a/src/app.rs:1)", "app::Entry::new::{{closure}} (/a/src/app.rs:7)");
    let arc = format!(
        "alloc::sync::Arc<std::sync::poison::mutex::Mutex<app::Cache>>::new ({STD}alloc/src/sync.rs:1)"
    );
    let main = "app::main (/a/src/main.rs:3)";
    let found = suggest(&[&[&entries, fill], &[&names, name, fill], &[&names, fill], &[&arc, main]]);
    let text = found.to_string();
    assert!(
        text.contains(
            "\
1. 3,994 bytes (100.00%) in 4 blocks: app::Cache
   1,000 bytes of Vec<app::Entry>, allocated by app::Cache::fill at src/app.rs:1
     999 bytes of String, allocated by app::Entry::new at src/app.rs:7
     998 bytes of String, allocated by app::Cache::fill at src/app.rs:1
     997 bytes of Arc<Mutex<app::Cache>>, allocated by app::main at src/main.rs:3
   #[derive(memory_reporter::MallocSizeOf)]  // on app::Cache and app::Entry
   impl memory_reporter::MemoryReporter for Cache {
"
        ),
        "{text}"
    );
}

#[test]
fn a_value_in_an_arc_is_registered() {
    let push = format!("alloc::vec::Vec<app::Entry>::push ({STD}alloc/src/vec/mod.rs:1)");
    let arc = format!(
        "alloc::sync::Arc<T>::new<std::sync::poison::mutex::Mutex<app::Cache>> ({STD}alloc/src/sync.rs:1)"
    );
    let found = suggest(&[
        &[&push, "app::Cache::fill (/a/src/app.rs:1)"],
        &[&arc, "app::main (/a/src/main.rs:3)"],
        &[&push, "app::collect (/a/src/app.rs:9)"],
    ]);
    assert_eq!(
        found.suggestions[0].advice(),
        "   \
#[derive(memory_reporter::MallocSizeOf)]  // on app::Cache and app::Entry
   impl memory_reporter::MemoryReporter for Cache {
       fn collect_reports(&self, reports: &mut memory_reporter::Reports) {
           reports.heap(\"explicit/cache\", self, \"Memory used by cache.\");
       }
   }
   let _registration = memory_reporter::register_weak(&value);  // value: the Arc of Cache
"
    );
    // The second suggestion is for another value, which may be a part of the value in the `Arc`.
    assert_eq!(
        found.suggestions[1].advice(),
        "   \
#[derive(memory_reporter::MallocSizeOf)]  // on app::Entry
   memory_reporter::define_reporter!(\"explicit/collect\", Heap, &VALUE, \"Memory used by collect.\");  // VALUE: your static
   or, if the Arc<app::Cache> holds VALUE: derive for app::Cache, and memory_reporter::register_weak(&value);
   or, without a static: at the start of app::collect (src/app.rs:9):
   let _tag = memory_reporter::tag(\"explicit/collect\");
"
    );
}

#[test]
fn a_future_is_tagged_as_a_whole() {
    let push = format!("alloc::string::String::push_str ({STD}alloc/src/string.rs:1)");
    let moka =
        "moka::future::Cache<u64, app::Page>::insert (/home/me/.cargo/registry/src/i/moka-0.12.0/src/f.rs:1)";
    let poll =
        "tokio::runtime::task::core::Core<T,S>::poll (/home/me/.cargo/registry/src/i/tokio-1.0.0/src/c.rs:1)";
    let future = "app::answer::{{closure}} (/a/src/app.rs:5)";
    assert_eq!(
        advice(&[&[&push, moka, future, poll]]),
        "   \
tag the futures in app::answer (src/app.rs:5):
   memory_reporter::tags::Tag::new(\"explicit/moka\").future(FUTURE).await
   or measure the values: memory_reporter::docs::other_crates has the code for moka
"
    );
    // If no runtime polls `{{closure}}`, it is a closure of `app::answer`, not a future.
    assert!(
        advice(&[&[&push, future, "app::main (/a/src/main.rs:1)"]]).contains("tag(\"explicit/answer\");")
    );
}

#[test]
fn growth_in_libraries_is_its_caller_s() {
    let suggestions = suggest(&[&[
        "malloc[/usr/lib/libc.so.6 +0x10]",
        &format!("std::fs::read::inner ({STD}std/src/fs.rs:1)"),
        "app::load (/home/me/app/src/app.rs:1)",
    ]]);
    assert_eq!(suggestions.suggestions[0].largest().module, "app");
    assert_eq!(suggestions.suggestions[0].largest().function, "app::load");
}

#[test]
fn without_lines_a_program_s_own_crate_is_known_by_its_name() {
    for (frame, dependency) in [
        ("my_app::cache::fill[/home/me/target/debug/my-app +0x10]", false),
        ("<my_app::Cache>::fill[/usr/lib/libmy_app.so.2 +0x10]", false),
        ("zip::read::decode[/home/me/target/debug/my-app +0x10]", true),
        ("deflate[/usr/lib/libz.so.1 +0x10]", true),
    ] {
        assert_eq!(suggest(&[&[frame]]).suggestions[0].largest().dependency, dependency, "{frame}");
    }
}

#[test]
fn what_debug_information_would_tell_is_said() {
    let said = "   to see the type and the line, build with debug information (lines are enough)\n";
    let grow = "alloc::raw_vec::RawVecInner<A>::grow[/home/me/my-app +0x20]";
    for (frame, expected) in [
        ("my_app::cache::fill[/home/me/my-app +0x10]", true),
        ("my_app::cache::fill (/home/me/src/cache.rs:7)", false),
        ("deflate[/usr/lib/libz.so.1 +0x10]", false),
        ("???[/home/me/my-app +0x10]", false),
    ] {
        let text = suggest(&[&[grow, frame]]).to_string();
        assert_eq!(text.contains(said), expected, "{text}");
    }
    // A symbol may contain the type.
    let text = suggest(&[&[
        "<alloc::vec::Vec<my_app::Entry>>::push[/home/me/my-app +0x20]",
        "<my_app::Cache>::fill[/home/me/my-app +0x10]",
    ]])
    .to_string();
    assert!(text.contains("Vec<my_app::Entry>") && !text.contains(said), "{text}");
}

#[test]
fn blocks_without_a_stack_are_counted_apart() {
    let tables = r#""traceTable": {}, "frameTable": {}"#;
    let dump = read(document("dark-matter", r#"{"req": 16, "num": 3}"#, tables)).unwrap();
    let text = Suggestions::new(dump, 10).unwrap().to_string();
    assert_eq!(
        text,
        "48 bytes in 3 blocks are not reported.\n\nNo stack is recorded for 48 bytes in 3 blocks.\n"
    );
    let cumulative = read(document("cumulative", "", tables)).unwrap();
    assert!(Suggestions::new(cumulative, 10).is_err());
}

#[test]
fn at_the_peak_all_blocks_need_a_reporter() {
    let peak = r#""peak": {"bytes": 1100, "blocks": 8, "seconds": 1.5, "within": 0,
        "stacks": [{"alloc": "A", "num": 7, "bytes": 100}, {"bytes": 1000}]}"#;
    let document = document("dark-matter", r#"{"req": 5, "reps": ["A"]}"#, &format!("{peak}, {TABLES}"));
    let suggestions = |at| Suggestions::new(read(document.clone()).unwrap().at(at).unwrap(), 10).unwrap();
    assert_eq!(suggestions(DumpTime::End).unreported.usable(), 0);
    let at_peak = suggestions(DumpTime::Peak);
    assert_eq!((at_peak.unreported.usable(), at_peak.before_reports), (1100, Some(DumpTime::Peak)));
    assert_eq!((at_peak.suggestions.len(), at_peak.suggestions[0].sums.usable()), (1, 100));
    assert_eq!(at_peak.without_stack.usable(), 1000);
    let text = at_peak.to_string();
    let first =
        "The program holds 1,100 bytes in 8 blocks at the peak (--at end shows the end).\n\n1. 100 bytes";
    assert!(text.starts_with(first), "{text}");
}
