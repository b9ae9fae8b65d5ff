//! The text for the author of a Rust program.

use dmd_analyze::program::{Fold, Folds, HolderKey, ProgramOptions, Summary};
use dmd_analyze::{Analysis, AnalyzeOptions, Dump};

use super::{document, read};

const REGISTRY: &str = "/home/me/.cargo/registry/src/index.example-0123/";
const STD: &str = "/rustc/0123/library/";

/// A dump of the crate `dmd` with blocks of given bytes and stacks; frames innermost first.
fn dump(mode: &str, blocks: &[(u64, u64, &[&str])]) -> Dump {
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

fn analysis(dump: Dump) -> Analysis {
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
    let text = analysis(dump).holder_tree(&keys, 2, &ProgramOptions::new()).to_string();
    assert_eq!(
        text,
        "        bytes    share  Live by crate, type, site
      3.00 MB   99.92%  tantivy
      3.00 MB   99.92%    in VecWriter::terminate_ref
      3.00 MB   99.92%      <VecWriter as TerminatingWrite>::terminate_ref  …ory/ram_directory.rs:71
      1.95 KB    0.06%  own
      1.95 KB    0.06%    [Job], or a type of the same layout
      1.95 KB    0.06%      own::fill  own/src/lib.rs:5
        472 B    0.01%  (1 more)
"
    );
}

#[test]
fn all_frames_are_shown_to_those_who_ask() {
    let dump = dump("live", &[(1 << 20, 3, WRITER)]);
    let mut options = ProgramOptions::new();
    options.all_frames = true;
    options.verbose = true;
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
    let mut options = ProgramOptions::new();
    options.folds = Folds::new().also(|text| text.contains("tantivy"));
    let summary = Summary::new(&analysis(dump), &options);
    assert_eq!(summary.tables[0].rows[0].name, "tv::index");
    assert_eq!(summary.tables[0].rows[0].place, "src/index.rs:12");
    assert_eq!(summary.tables[2].rows[0].name, "tv");
}

/// Six blocks that share their innermost frames are six records: whole stacks are compared.
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

/// The view never takes frames of a stripped program for an allocator's. It shows each address as a site of its own.
#[test]
fn frames_without_names_are_sites() {
    let stack = |offset: &'static str| -> Vec<&'static str> {
        vec!["malloc[/lib/libdmd.so +0x10]", offset, "start_thread[/lib/libc.so.6 +0x8]"]
    };
    let (a, b) = (stack("???[/bin/tv +0x1234]"), stack("???[/bin/tv +0x99]"));
    let summary =
        Summary::new(&analysis(dump("live", &[(3000, 1, &a), (2000, 1, &b)])), &ProgramOptions::new());
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
    let mut options = ProgramOptions::new();
    options.colour = true;
    let coloured = analysis(dump(())).program_text(10, &options).to_string();
    assert!(coloured.contains("\u{1b}[1mtv::index\u{1b}[0m"), "{coloured}");
}

#[test]
fn every_fold_has_a_reason() {
    let dump = dump("live", &[(1, 1, WRITER), (1, 1, OWN), (1, 1, LIBC)]);
    let folds = Folds::new();
    let of: Vec<Vec<Option<Fold>>> =
        dump.stacks().map(|stack| stack.map(|frame| folds.of(&frame)).collect()).collect();
    let (allocator, library, start) = (Some(Fold::Allocator), Some(Fold::Library), Some(Fold::Start));
    assert_eq!(of[0], [allocator, library, library, None, None, None, library, start]);
    assert_eq!(of[1], [allocator, library, None, None, library, start, start]);
    assert_eq!(of[2], [allocator, library]);
}
