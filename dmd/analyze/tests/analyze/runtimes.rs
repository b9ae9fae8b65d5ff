//! Sites of programs that use runtimes for tasks and jobs, or arenas.

use dmd_analyze::program::{HeapSummary, ProgramOptions};

use super::program::{analysis, dump};

const MAIN: [&str; 5] = [
    "tokio::runtime::task::harness::poll_future<app::serve::{async_fn_env#0}> (REGISTRY/tokio-1.54.1/src/runtime/task/harness.rs:537)",
    "tokio::runtime::context::enter<T> (REGISTRY/tokio-1.54.1/src/runtime/context.rs:65)",
    "tokio::runtime::runtime::block_on<T> (REGISTRY/tokio-1.54.1/src/runtime/runtime.rs:348)",
    "app::main (/home/me/app/src/main.rs:9)",
    "__libc_start_main[/lib/libc.so.6 +0x20]",
];

/// The lines of the only stack of a program.
fn stack_lines(frames: &[&str]) -> Vec<String> {
    let analysis = analysis(dump("live", &[(1 << 20, 1, frames)]));
    let text = analysis.program_text(10, &ProgramOptions::new()).to_string();
    let (_, stack) = text.split_once("in 1 block\n").unwrap();
    let lines = stack.lines().filter(|line| !line.is_empty()).skip(2);
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn runtimes_allocate_for_the_functions_that_called_them() {
    let spawned = [
        "alloc::boxed::new<Cell> (STD/alloc/src/boxed.rs:286)",
        "tokio::runtime::task::core::new<T> (REGISTRY/tokio-1.54.1/src/runtime/task/core.rs:261)",
        "tokio::task::spawn::spawn<T> (REGISTRY/tokio-1.54.1/src/task/spawn.rs:170)",
        "app::serve (/home/me/app/src/main.rs:30)",
    ];
    assert_eq!(
        stack_lines(&[&spawned[..], &MAIN[..]].concat()),
        ["> app::serve src/main.rs:30", "> app::main src/main.rs:9"]
    );
    let collected = [
        "alloc::vec::Vec<T,A>::reserve<app::Job, alloc::alloc::Global> (STD/alloc/src/vec/mod.rs:9)",
        "rayon::iter::collect::collect_with_consumer<T> (REGISTRY/rayon-1.12.0/src/iter/collect/mod.rs:81)",
        "app::sums (/home/me/app/src/sums.rs:4)",
    ];
    assert_eq!(stack_lines(&collected), ["> app::sums src/sums.rs:4"]);
}

/// `main` only waits for the runtime. The runtime allocates the buffer of a connection, so it is the site.
#[test]
fn a_runtime_that_no_task_called_allocates_for_itself() {
    let buffer = [
        "alloc::vec::Vec<T,A>::reserve<u8, alloc::alloc::Global> (STD/alloc/src/vec/mod.rs:9)",
        "hyper::proto::h1::io::Buffered<T>::read (REGISTRY/hyper-1.12.0/src/proto/h1/io.rs:205)",
        "hyper::proto::h1::dispatch::Dispatcher<D>::poll_loop (REGISTRY/hyper-1.12.0/src/proto/h1/dispatch.rs:150)",
    ];
    assert_eq!(
        stack_lines(&[&buffer[..], &MAIN[..]].concat()),
        ["Buffered<T>::read hyper-1.12.0/src/proto/h1/io.rs:205", "> app::main src/main.rs:9"]
    );
    // If the stack contains no function of the program, the runtime is still the site, not the standard library.
    let thread = ["std::thread::spawn (STD/std/src/thread/mod.rs:7)"];
    assert_eq!(
        stack_lines(&[&buffer[..], &MAIN[..2], &thread[..]].concat()),
        ["Buffered<T>::read hyper-1.12.0/src/proto/h1/io.rs:205", "(5 frames folded)"]
    );
}

#[test]
fn the_site_of_a_chunk_is_outside_of_the_arena() {
    let chunk = |package: &'static str, grow: &'static str| {
        let frames = [
            format!("{grow} (REGISTRY/{package}/src/lib.rs:1004)"),
            format!("arena::Arena::alloc<app::Node> (REGISTRY/{package}/src/lib.rs:7)"),
            "app::parse (/home/me/app/src/main.rs:5)".to_owned(),
        ];
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        let summary =
            HeapSummary::new(&analysis(dump("live", &[(1 << 20, 1, &frames)])), &ProgramOptions::new());
        let row = |table: usize| summary.tables[table].rows[0].name.clone();
        [row(0), row(1), row(2)]
    };
    for (package, of_crate) in [
        ("bumpalo-3.20.4", "bumpalo"),
        ("oxc_allocator-0.146.0", "oxc_allocator"),
        ("typed-arena-2.0.2", "typed_arena"),
        ("my-arena-0.1.0", "my_arena"),
    ] {
        let expected = ["app::parse".to_owned(), format!("chunk of {of_crate}"), "app".to_owned()];
        assert_eq!(chunk(package, "arena::new_chunk"), expected);
    }
    let [site, ..] = chunk("chunky-0.1.0", "arena::new_chunk");
    assert_eq!(site, "arena::new_chunk");
}

/// Debug information with only lines names both functions `{async_fn#0}`.
#[test]
fn async_functions_without_a_name_are_apart() {
    let at = |line: &'static str| {
        [
            "alloc::vec::Vec<T,A>::reserve<u8, alloc::alloc::Global> (STD/alloc/src/vec/mod.rs:9)",
            line,
            "app::jobs::{async_block#0} (/home/me/app/src/jobs.rs:40)",
        ]
    };
    let first = at("app::jobs::{async_fn#0} (/home/me/app/src/jobs.rs:5)");
    let second = at("app::jobs::{async_fn#0} (/home/me/app/src/jobs.rs:25)");
    let summary = HeapSummary::new(
        &analysis(dump("live", &[(1 << 20, 1, &first), (1 << 10, 1, &second)])),
        &ProgramOptions::new(),
    );
    let places: Vec<&str> = summary.tables[0].rows.iter().map(|row| &*row.place).collect();
    assert_eq!(places, ["src/jobs.rs:5", "src/jobs.rs:25"]);
    // The runtime's types name the function that it polls.
    let polled = [&first[..2], &MAIN[..]].concat().join("\n").replace("app::serve", "app::jobs::load");
    let polled: Vec<&str> = polled.lines().collect();
    assert_eq!(stack_lines(&polled), ["> jobs::load src/jobs.rs:5", "> app::main src/main.rs:9"]);
}

#[test]
fn a_function_has_its_largest_line_or_a_range_of_lines() {
    let at = |line: &'static str| {
        ["alloc::vec::Vec<T,A>::reserve<u8, alloc::alloc::Global> (STD/alloc/src/vec/mod.rs:9)", line]
    };
    let lines = [
        at("app::load (/home/me/app/src/main.rs:52)"),
        at("app::load (/home/me/app/src/main.rs:55)"),
        at("app::load (/home/me/app/src/main.rs:53)"),
        at("app::load (/home/me/app/src/main.rs:90)"),
    ];
    let place = |bytes: [u64; 4]| {
        let blocks: Vec<(u64, u64, &[&str])> =
            bytes.iter().zip(&lines).map(|(bytes, lines)| (*bytes, 1, &lines[..])).collect();
        let summary = HeapSummary::new(&analysis(dump("live", &blocks)), &ProgramOptions::new());
        summary.tables[0].rows[0].place.clone()
    };
    assert_eq!(place([1000, 600, 300, 10]), "src/main.rs:52");
    assert_eq!(place([800, 600, 300, 10]), "src/main.rs:52..55");
}
