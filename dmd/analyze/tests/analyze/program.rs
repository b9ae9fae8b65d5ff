//! The text for the author of a Rust program.

use dmd_analyze::program::{FoldReason, FoldRules, HeapSummary, HolderKey, ProgramOptions};
use dmd_analyze::{Analysis, AnalyzeOptions, Dump};

use super::{document, read};

const REGISTRY: &str = "/home/me/.cargo/registry/src/index.example-0123/";
const STD: &str = "/rustc/0123/library/";

/// A dump of the crate `dmd` with blocks of given bytes and stacks; frames innermost first.
pub(super) fn dump(mode: &str, blocks: &[(u64, u64, &[&str])]) -> Dump {
    let mut list = Vec::new();
    let mut traces = Vec::new();
    let mut frames = Vec::new();
    for (index, (bytes, num, stack)) in blocks.iter().enumerate() {
        list.push(format!("{{\"req\": {bytes}, \"num\": {num}, \"alloc\": \"T{index}\"}}"));
        let keys: Vec<String> = (0..stack.len()).map(|at| format!("\"F{index}-{at}\"")).collect();
        traces.push(format!("\"T{index}\": [{}]", keys.join(",")));
        frames.extend(keys.iter().zip(*stack).map(|(key, text)| {
            let text = text.replace("REGISTRY/", REGISTRY).replace("STD/", STD);
            format!("{key}: \"#00: {text}\"")
        }));
    }
    let tables = format!(
        "\"traceTable\": {{{}}}, \"frameTable\": {{{}}}, \"modules\": []",
        traces.join(","),
        frames.join(",")
    );
    read(document(mode, &list.join(","), &tables)).unwrap()
}

pub(super) fn analysis(dump: Dump) -> Analysis {
    Analysis::new(dump, &AnalyzeOptions::new().max_frames(usize::MAX).limit(usize::MAX).types(true))
}

const WRITER: &[&str] = &[
    "realloc[/lib/libdmd.so +0x10]",
    "alloc::alloc::realloc (STD/alloc/src/alloc.rs:140)",
    "alloc::raw_vec::RawVecInner<A>::shrink<alloc::alloc::Global> (STD/alloc/src/raw_vec/mod.rs:700)",
    "<tantivy::directory::ram_directory::VecWriter as tantivy_common::TerminatingWrite>::terminate_ref (REGISTRY/tantivy-0.22.1/src/directory/ram_directory.rs:71)",
    "tv::index (/home/me/ws/tv/src/index.rs:12)",
    "tv::main::{{closure}} (/home/me/ws/tv/src/main.rs:30)",
    "std::sys::backtrace::__rust_begin_short_backtrace (STD/std/src/sys/backtrace.rs:152)",
    "start_thread (./nptl/pthread_create.c:442)",
];

const OWN: &[&str] = &[
    "malloc[/lib/libdmd.so +0x10]",
    "alloc::vec::Vec<T,A>::push<own::Job, alloc::alloc::Global> (STD/alloc/src/vec/mod.rs:9)",
    "own::fill (/home/me/ws/own/src/lib.rs:5)",
    "tv::main (/home/me/ws/tv/src/main.rs:31)",
    "core::ops::function::FnOnce::call_once (STD/core/src/ops/function.rs:250)",
    "main[/home/me/ws/target/release/tv +0x99]",
    "__libc_start_main_impl (../csu/libc-start.c:360)",
];

const LIBC: &[&str] = &["malloc[/lib/libdmd.so +0x10]", "fopen[/lib/x86_64-linux-gnu/libc.so.6 +0x1]"];

#[test]
fn a_program_s_own_places_come_first() {
    let dump = dump("live", &[(1 << 20, 3, WRITER), (1000, 2, OWN), (472, 1, LIBC)]);
    let text = analysis(dump).program_text(10, &ProgramOptions::new()).to_string();
    assert_eq!(text, include_str!("../golden/program.txt"));
}

#[test]
fn memory_by_several_keys_is_a_tree() {
    let dump = dump("live", &[(1 << 20, 3, WRITER), (1000, 2, OWN), (472, 1, LIBC)]);
    let keys = [HolderKey::Crate, HolderKey::Type, HolderKey::Site];
    let text = analysis(dump).holder_tree(&keys, Some(2), &ProgramOptions::new()).to_string();
    assert_eq!(
        text,
        "        bytes    share  Live by crate, type, site
     3.00 MiB   99.92%  tantivy
     3.00 MiB   99.92%    in tantivy::…::VecWriter::terminate_ref
     3.00 MiB   99.92%      VecWriter::terminate_ref  tantivy-0.22.1/…/directory/ram_directory.rs:71
     1.95 KiB    0.06%  own
     1.95 KiB    0.06%    [Job], or a type of the same layout
     1.95 KiB    0.06%      own::fill  own/src/lib.rs:5
        472 B    0.01%  (1 more)
"
    );
}

/// Two stacks with the same closure at two lines. Only the first stack names the function that contains the closure.
const CLOSURES: [&[&str]; 2] = [
    &[
        "alloc::boxed::new<gc::Box> (STD/alloc/src/boxed.rs:286)",
        "gc::{closure#0}<gc::Value> (REGISTRY/gc-0.20.0/src/lib.rs:140)",
        "std::thread::local::try_with<gc::Heap, gc::{impl#4}::alloc::{closure_env#0}<gc::Value>> (STD/std/src/thread/local.rs:513)",
        "gc::alloc<gc::Value> (REGISTRY/gc-0.20.0/src/lib.rs:135)",
        "app::main (/home/me/ws/app/src/main.rs:3)",
    ],
    &[
        "alloc::boxed::new<gc::Box> (STD/alloc/src/boxed.rs:286)",
        "gc::{closure#0}<gc::Value> (REGISTRY/gc-0.20.0/src/lib.rs:143)",
        "app::main (/home/me/ws/app/src/main.rs:3)",
    ],
];

#[test]
fn a_site_is_one_function_everywhere() {
    let dump = || dump("live", &[(1 << 20, 1, CLOSURES[0]), (1 << 21, 1, CLOSURES[1])]);
    let options = ProgramOptions::new();
    let summary = HeapSummary::new(&analysis(dump()), &options);
    let [row] = &summary.tables[0].rows[..] else { panic!("{summary}") };
    assert_eq!((&*row.name, &*row.place), ("gc::alloc::{closure}<Value>", "gc-0.20.0/src/lib.rs:143"));
    assert_eq!(
        analysis(dump()).holder_tree(&[HolderKey::Site], None, &options).to_string(),
        "        bytes    share  Live by site
     3.00 MiB  100.00%  gc::alloc::{closure}<Value>  gc-0.20.0/src/lib.rs:143
"
    );
    let text = analysis(dump()).program_text(10, &options).to_string();
    assert_eq!(text.matches("\n    gc::alloc::{closure}<Value>").count(), 2, "{text}");
}

/// The site of each stack, in order of bytes.
fn sites(stacks: &[&[&str]]) -> Vec<String> {
    let blocks: Vec<(u64, u64, &[&str])> =
        stacks.iter().enumerate().map(|(index, stack)| (1000 - index as u64, 1, *stack)).collect();
    let summary = HeapSummary::new(&analysis(dump("live", &blocks)), &ProgramOptions::new());
    summary.tables[0].rows.iter().map(|row| row.name.clone()).collect()
}

#[test]
fn closures_have_the_function_around_them_where_a_stack_tells() {
    let closure = "app::run::{closure#1} (/home/me/ws/app/src/run.rs:9)";
    let map = "core::option::map<u8> (STD/core/src/option.rs:1)";
    let near = "app::run::Jobs::start<u8> (/home/me/ws/app/src/run.rs:7)";
    let outer = "app::run::{closure#0} (/home/me/ws/app/src/run.rs:8)";
    let other = "app::pool::execute (/home/me/ws/app/src/pool.rs:7)";
    let of_other = "app::pool::with<app::run::deep::call::{closure_env#1}> (/home/me/ws/app/src/pool.rs:7)";
    let of_two = "app::pool::with<app::run::a::{closure_env#1}, app::run::b::{closure_env#1}> (/home/me/ws/app/src/pool.rs:7)";
    let alone = "run::{closure}";
    for (callers, name) in [
        (&[near][..], "Jobs::start::{closure}"),
        (&[map, near], "Jobs::start::{closure}"),
        (&[map, outer, map, near], "Jobs::start::{closure}"),
        (&[of_other, near], "deep::call::{closure}"),
        (&[other, near], &format!("app::{alone}")),
        (&[of_two, near], &format!("app::{alone}")),
        (&[map], &format!("app::{alone}")),
        (&[], &format!("app::{alone}")),
    ] {
        let stack: Vec<&str> = [closure].into_iter().chain(callers.iter().copied()).collect();
        assert_eq!(sites(&[&stack]), [name], "{stack:#?}");
    }
    // Two stacks contain the closure at the same line, but below different functions of its file: the function that
    // contains the closure is unknown.
    let second = "app::run::stop (/home/me/ws/app/src/run.rs:70)";
    assert_eq!(sites(&[&[closure, near], &[closure, second]]), [format!("app::{alone}")]);
    // Closures at different lines of the file are different closures.
    let far = closure.replace(":9", ":71");
    assert_eq!(
        sites(&[&[closure, near], &[&far, second]]),
        ["Jobs::start::{closure}", "run::stop::{closure}"]
    );
    // A name that already contains the function is kept.
    assert_eq!(
        sites(&[&["app::run::go::{{closure}} (/home/me/ws/app/src/run.rs:9)", second]]),
        ["run::go::{closure}"]
    );
}

#[test]
fn verbose_cuts_nothing() {
    let long = format!(
        "app::f<{}> (REGISTRY/app-1.0.0/src/{}/g.rs:1)",
        "app::T, ".repeat(20) + "U",
        "folder/".repeat(9)
    );
    let dump = || dump("live", &[(1 << 20, 1, &[&long]), (1 << 20, 3, WRITER), (9, 1, LIBC)]);
    let options = ProgramOptions::new().verbose(true);
    let analysis = analysis(dump());
    let keys = [HolderKey::Type, HolderKey::Crate, HolderKey::Site];
    let tree = analysis.holder_tree(&keys, None, &options).to_string();
    for text in [analysis.program_text(10, &options).to_string(), tree] {
        assert!(!text.contains('…'), "{text}");
        for stack in [&[&*long][..], &WRITER[3..4]] {
            let (function, place) = stack[0].split_once(" (").unwrap();
            let file = place.trim_end_matches(')').replace("REGISTRY/", REGISTRY);
            let lines: Vec<&str> = text.lines().collect();
            let at =
                lines.iter().position(|line| line.contains(function)).unwrap_or_else(|| panic!("{text}"));
            assert!(lines[at].ends_with(function) && lines[at + 1].trim_start() == file, "{text}");
            assert!(lines[at + 1].starts_with("      "), "{text}");
        }
    }
    assert!(analysis.program_text(10, &options).to_string().contains(" frames folded)"));
}

#[test]
fn small_rows_of_a_tree_are_one() {
    let stacks: Vec<String> =
        (0..30).map(|at| format!("app::f{at} (/home/me/ws/app/src/lib.rs:{at})")).collect();
    let stacks: Vec<[&str; 1]> = stacks.iter().map(|stack| [&**stack]).collect();
    let of_bytes = |first: u64| {
        let blocks = stacks.iter().enumerate().map(|(at, stack)| {
            let bytes = if at == 0 { first } else { 100 + at as u64 };
            (bytes, 1, &stack[..])
        });
        analysis(dump("live", &blocks.collect::<Vec<_>>()))
    };
    let lines = |first: u64, rows: Option<usize>, verbose: bool| {
        let options = ProgramOptions::new().verbose(verbose);
        let text = of_bytes(first).holder_tree(&[HolderKey::Site], rows, &options).to_string();
        (text.lines().count() - 1, text.lines().last().unwrap().trim().to_owned())
    };
    assert_eq!(lines(1 << 20, None, false), (2, "3.26 KiB    0.32%  (29 more)".to_owned()));
    assert_eq!(lines(1 << 20, None, true).0, 11);
    assert_eq!(lines(1 << 20, Some(20), false).0, 21);
    assert_eq!(lines(100, None, false).0, 11);
}

#[test]
fn types_that_look_equal_get_more_of_their_paths() {
    let stack = |name: &str| {
        vec![
            format!("alloc::boxed::Box<T>::new<gc::Holder<{name}>> (STD/alloc/src/boxed.rs:286)"),
            "app::main (/home/me/ws/app/src/main.rs:3)".to_owned(),
        ]
    };
    let stacks = ["app::env::object::Inner", "app::env::declarative::Inner", "app::Other"].map(stack);
    let stacks: Vec<Vec<&str>> = stacks.iter().map(|stack| stack.iter().map(|f| &**f).collect()).collect();
    let blocks: Vec<(u64, u64, &[&str])> =
        stacks.iter().enumerate().map(|(at, stack)| (3000 - at as u64, 1, &**stack)).collect();
    let analysis = analysis(dump("live", &blocks));
    let options = ProgramOptions::new();
    let names = ["Holder<object::Inner>", "Holder<declarative::Inner>", "Holder<Other>"];
    let names = names.map(|name| format!("{name}, or a type of the same layout"));
    let summary = HeapSummary::new(&analysis, &options);
    let of_summary: Vec<&str> = summary.tables[1].rows.iter().map(|row| &*row.name).collect();
    assert_eq!(of_summary, names);
    let tree = analysis.holder_tree(&[HolderKey::Type], None, &options).to_string();
    for name in names {
        assert!(tree.contains(&format!("%  {name}\n")), "{tree}");
    }
}

/// Names that differ only in parts that do not fit into the column get the whole line.
#[test]
fn sites_that_look_equal_get_a_line_of_their_own() {
    let instance = |of: &str| {
        format!(
            "app::module::function_with_a_long_name<app::Generic<app::ArgumentsOf{of}>> (REGISTRY/app-1.0.0/src/lib.rs:1)"
        )
    };
    let stacks = ["One", "Two"].map(instance);
    let summary = HeapSummary::new(
        &analysis(dump("live", &[(3000, 1, &[&stacks[0]]), (2000, 1, &[&stacks[1]])])),
        &ProgramOptions::new(),
    );
    let text = summary.to_string();
    for of in ["One", "Two"] {
        let lines = format!(
            "  module::function_with_a_long_name<Generic<ArgumentsOf{of}>>\n{:28}app-1.0.0/src/lib.rs:1\n",
            ""
        );
        assert!(text.contains(&lines), "{text}");
    }
}

/// In a row without a place, the function keeps its crate.
#[test]
fn functions_in_the_place_of_types_keep_their_crate() {
    for (function, shown) in [
        ("skip::base::alloc", "in skip::base::alloc"),
        ("skip::a::b::Base::alloc", "in skip::…::Base::alloc"),
        ("skip::alloc", "in skip::alloc"),
        ("skip::a::b::c::{{closure}}", "in skip::…::b::c::{closure}"),
    ] {
        let frame = format!("{function} (REGISTRY/skip-0.1.3/src/base.rs:1)");
        let summary =
            HeapSummary::new(&analysis(dump("live", &[(100, 1, &[&frame])])), &ProgramOptions::new());
        assert_eq!(summary.tables[1].rows[0].name, shown);
    }
    let closure = "skip::{closure#0} (REGISTRY/skip-0.1.3/src/lib.rs:2)";
    let caller = "skip::insert (REGISTRY/skip-0.1.3/src/lib.rs:1)";
    let text = analysis(dump("live", &[(100, 1, &[closure, caller])]))
        .program_text(10, &ProgramOptions::new())
        .to_string();
    assert_eq!(text.matches(" in skip::insert::{closure}\n").count(), 2, "the table and the record\n{text}");
}

/// The number of folded frames is shown on request, and for stacks whose frames are all folded.
#[test]
fn folded_frames_are_counted_where_it_matters() {
    let dump = || dump("live", &[(1 << 20, 3, WRITER), (1000, 2, OWN), (472, 1, LIBC)]);
    let mut options = ProgramOptions::new();
    let counts = |options: &ProgramOptions| -> Vec<String> {
        let text = analysis(dump()).program_text(10, options).to_string();
        let lines = text.lines().filter(|line| line.contains("folded)"));
        lines.map(|line| line.trim().to_owned()).collect()
    };
    assert_eq!(counts(&options), ["(1 frame folded)"]);
    options = options.verbose(true);
    let of = |frames: usize| format!("({frames} frames folded)");
    assert_eq!(counts(&options), [of(3), of(2), of(2), of(3), "(1 frame folded)".to_owned()]);
    options = options.all_frames(true);
    assert_eq!(counts(&options), [""; 0]);
}

#[test]
fn all_frames_are_shown_to_those_who_ask() {
    let dump = dump("live", &[(1 << 20, 3, WRITER)]);
    let mut options = ProgramOptions::new();
    options = options.all_frames(true);
    options = options.verbose(true);
    let text = analysis(dump).program_text(10, &options).to_string();
    for frame in WRITER {
        let function = frame.split([' ', '[']).next().unwrap();
        assert!(text.contains(function), "{function}\n{text}");
    }
    assert!(!text.contains("folded"), "{text}");
}

#[test]
fn users_fold_frames_of_their_own() {
    let dump = dump("live", &[(1 << 20, 3, WRITER)]);
    let options = ProgramOptions::new().folds(FoldRules::new().also(|text| text.contains("tantivy")));
    let summary = HeapSummary::new(&analysis(dump), &options);
    assert_eq!(summary.tables[0].rows[0].name, "tv::index");
    assert_eq!(summary.tables[0].rows[0].place, "src/index.rs:12");
    assert_eq!(summary.tables[2].rows[0].name, "tv");
}

/// Six blocks with the same innermost frames have six records, because whole stacks are compared.
#[test]
fn records_are_compared_by_whole_stacks() {
    let mut stacks = Vec::new();
    for line in 0..6 {
        let mut stack: Vec<String> = WRITER.iter().map(|frame| (*frame).to_owned()).collect();
        stack[4] = format!("tv::index (/home/me/ws/tv/src/index.rs:{line})");
        stacks.push(stack);
    }
    let stacks: Vec<Vec<&str>> = stacks.iter().map(|stack| stack.iter().map(|f| &**f).collect()).collect();
    let blocks: Vec<(u64, u64, &[&str])> = stacks.iter().map(|stack| (100, 1, &**stack)).collect();
    let text = analysis(dump("live", &blocks)).program_text(10, &ProgramOptions::new()).to_string();
    assert_eq!(text.matches("in 1 block\n").count(), 6, "{text}");
}

/// The view does not count frames of a stripped program as an allocator's. It shows each address as a site.
#[test]
fn frames_without_names_are_sites() {
    let stack = |offset: &'static str| -> Vec<&'static str> {
        vec!["malloc[/lib/libdmd.so +0x10]", offset, "start_thread[/lib/libc.so.6 +0x8]"]
    };
    let (a, b) = (stack("???[/bin/tv +0x1234]"), stack("???[/bin/tv +0x99]"));
    let summary =
        HeapSummary::new(&analysis(dump("live", &[(3000, 1, &a), (2000, 1, &b)])), &ProgramOptions::new());
    let names: Vec<&str> = summary.tables[0].rows.iter().map(|row| &*row.name).collect();
    assert_eq!(names, ["tv+0x1234", "tv+0x99"]);
    assert_eq!(summary.tables[2].rows[0].name, "tv");
}

#[test]
fn lines_fit_a_terminal() {
    let long = format!(
        "app::{}::run<alloc::vec::Vec<alloc::string::String>> (REGISTRY/{}-1.0.0/src/{}.rs:100)",
        "module".repeat(20),
        "package".repeat(10),
        "file".repeat(30)
    );
    let text = analysis(dump("live", &[(1 << 30, 3, &[&long])]))
        .program_text(10, &ProgramOptions::new())
        .to_string();
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn colours_only_where_asked() {
    let dump = |()| dump("live", &[(1 << 20, 3, WRITER)]);
    let plain = analysis(dump(())).program_text(10, &ProgramOptions::new()).to_string();
    assert!(!plain.contains('\u{1b}'));
    let options = ProgramOptions::new().colour(true);
    let coloured = analysis(dump(())).program_text(10, &options).to_string();
    assert!(coloured.contains("\u{1b}[1mtv::index\u{1b}[0m"), "{coloured}");
}

#[test]
fn every_fold_has_a_reason() {
    let dump = dump("live", &[(1, 1, WRITER), (1, 1, OWN), (1, 1, LIBC)]);
    let folds = FoldRules::new();
    let of: Vec<Vec<Option<FoldReason>>> =
        dump.stacks().map(|stack| stack.map(|frame| folds.reason(&frame)).collect()).collect();
    let (allocator, library, start) =
        (Some(FoldReason::Allocator), Some(FoldReason::Library), Some(FoldReason::Start));
    let collection = Some(FoldReason::Collection);
    assert_eq!(of[0], [allocator, collection, collection, None, None, None, library, start]);
    assert_eq!(of[1], [allocator, collection, None, None, collection, start, start]);
    assert_eq!(of[2], [allocator, library]);
}

/// Cargo keeps the sources of an installed program in the registry.
#[test]
fn a_program_from_a_registry_has_lines_and_frames_of_its_own() {
    const WALK: &[&str] = &[
        "malloc[/lib/libdmd.so +0x10]",
        "alloc::vec::Vec<T,A>::push<tool::Node, alloc::alloc::Global> (STD/alloc/src/vec/mod.rs:9)",
        "other::each (REGISTRY/other-1.13.0/src/each.rs:4)",
        "tool::walk (REGISTRY/tool-1.2.0/src/walk.rs:5)",
        "tool::main (REGISTRY/tool-1.2.0/src/main.rs:31)",
    ];
    let dump = dump("live", &[(1000, 2, WALK)]);
    assert!(dump.has_lines_of_program());
    let text = analysis(dump).program_text(10, &ProgramOptions::new()).to_string();
    let stack: Vec<&str> =
        text.lines().rev().take(3).map(|line| line.split("  tool-").next().unwrap().trim_end()).collect();
    assert_eq!(
        stack,
        ["  > tool::main", "  > tool::walk", "    other::each  other-1.13.0/src/each.rs:4"],
        "{text}"
    );
}

/// At its end, a program may hold only a block that the standard library allocated before `main`.
#[test]
fn a_program_without_blocks_of_its_own_may_have_lines() {
    let start = "std::rt::lang_start::{{closure}} (STD/std/src/rt.rs:210)";
    let has_lines = |frames: &[&str]| dump("live", &[(1000, 1, frames)]).has_lines_of_program();
    assert!(has_lines(&["malloc[/lib/libdmd.so +0x10]", start, "main[/app/tool +0x20]"]));
    assert!(!has_lines(&["malloc[/lib/libdmd.so +0x10]", "std::rt::lang_start[/app/tool +0x10]"]));
    assert!(!has_lines(&["malloc[/lib/libdmd.so +0x10]", start, "tool::run[/app/tool +0x30]"]));
    // A program in C.
    assert!(!has_lines(&["malloc[/lib/libdmd.so +0x10]", "main[/app/tool +0x20]"]));
}

#[test]
fn a_recursion_is_one_round_and_a_count() {
    let round =
        ["app::walk::{{closure}} (/home/me/app/src/walk.rs:7)", "app::walk (/home/me/app/src/walk.rs:9)"];
    let mut stack = vec!["malloc[/lib/libdmd.so +0x10]", "app::walk (/home/me/app/src/walk.rs:3)"];
    stack.extend(core::iter::repeat_n(round, 5).flatten());
    stack.extend(core::iter::repeat_n("app::down (/home/me/app/src/down.rs:2)", 4));
    stack.push("app::main (/home/me/app/src/main.rs:1)");
    let text = |options| analysis(dump("live", &[(8, 1, &stack)])).program_text(10, &options).to_string();
    let short = text(ProgramOptions::new());
    let (_, stack) = short.split_once("\n1. ").unwrap();
    let name = |line| str::split(line, "  src").next().unwrap().trim();
    let lines: Vec<&str> = stack.lines().skip(2).map(name).collect();
    assert_eq!(
        lines,
        [
            "> app::walk",
            "> app::walk::{closure}",
            "> app::walk",
            "(these 2 frames, 4 more times)",
            "> app::down",
            "(this frame, 3 more times)",
            "> app::main",
        ],
        "{short}"
    );
    let verbose = ProgramOptions::new().verbose(true);
    assert!(!text(verbose).contains("more times"));
}
