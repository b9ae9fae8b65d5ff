//! A small language with objects and a garbage collector, observed like JavaScript in Firefox's `Debugger.Memory`.
//!
//! It runs a program of the language (see [`program`]) from a file, or its built-in program. While the program runs,
//! it logs allocations, and prints each cycle of the collector. At the end it prints which classes the program
//! allocated. Then it prints a census of the remaining objects by class, and a census by the Rust stack that allocated
//! them.
//!
//! ```sh
//! cargo run --release -p examples --example object_language
//! ```

mod heap;
mod program;

use std::alloc::System;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use dmd::{Dmd, MemoryObserver, Mode, Options, Stacks};
use heap_graph::census::{CensusReport, StackKey};
use heap_graph::{Breakdown, census};
use memory_reporter::watching::{ClassName, GarbageCollection};

use crate::heap::Heap;

memory_reporter::global_allocator!(
    Dmd<System>: Dmd::switched_on(System, Options::new().mode(Mode::Live).stacks(Stacks::Full).quiet(true))
);

/// The program that runs if the command line names no file.
const PROGRAM: &str = "
class Point x y
class Line from to
class List first rest
let here = Point 3 4
let all = List here nil
repeat 1000
    let there = Point 5 6
    let line = Line here there
    let all = List line all
    repeat 3
        let there = Point 7 8
    end
end
forget all
repeat 200
    let all = List here here
end
";

#[allow(clippy::print_stderr, reason = "errors go to stderr")]
fn main() -> ExitCode {
    match run(std::env::args_os().nth(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("object_language: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: Option<std::ffi::OsString>) -> anyhow::Result<()> {
    let text = match file {
        Some(file) => std::fs::read_to_string(&file).with_context(|| file.to_string_lossy().into_owned())?,
        None => PROGRAM.to_owned(),
    };
    let statements = program::parse(&text)?;

    let observer = MemoryObserver::new();
    observer.set_on_garbage_collection(Some(Arc::new(|_, cycle| print_cycle(cycle))));
    observer.set_max_allocations_log_length(100_000)?;
    observer.set_tracking_allocation_sites(true)?;
    let mut heap = Heap::new();
    heap.run(&statements)?;
    let log = observer.drain_allocations_log()?;
    let overflowed = observer.allocations_log_overflowed();
    observer.set_tracking_allocation_sites(false)?;

    let out = &mut io::stdout().lock();
    let mut classes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for entry in &log {
        // The log also contains allocations of the arena and of this program itself.
        let class = entry.class.as_ref().map(ClassName::as_str).filter(|class| heap.has_class(class));
        let (count, bytes) = classes.entry(class.unwrap_or("(no object)")).or_default();
        (*count, *bytes) = (*count + 1, *bytes + entry.size);
    }
    writeln!(out, "\nallocations by class{}", if overflowed { ", the newest" } else { "" })?;
    for (class, (count, bytes)) in classes {
        writeln!(out, "{count:8} {bytes:10} B  {class}")?;
    }
    let first = log.iter().find(|entry| entry.class.as_ref().is_some_and(|class| class.as_str() == "Line"));
    if let Some(frame) = first.and_then(|entry| entry.frame.as_ref()) {
        let frames: Vec<String> = frame.to_string().lines().take(6).map(str::to_owned).collect();
        writeln!(out, "\nthe first Line was allocated at\n{}", frames.join("\n"))?;
    }

    heap.collect();
    let graph = heap.graph()?;
    let by_class = Breakdown::parse(r#"{"by": "objectClass"}"#)?;
    writeln!(out, "\nremaining objects, by class")?;
    print_classes(out, &census(&graph, &by_class)?)?;
    let by_stack = Breakdown::parse(r#"{"by": "allocationStack", "then": {"by": "objectClass"}}"#)?;
    writeln!(out, "\nremaining objects, by allocation stack")?;
    if let CensusReport::Stacks(stacks) = census(&graph, &by_stack)? {
        for (key, report) in stacks {
            let StackKey::Stack(stack) = key else { continue };
            let names = stack.frames().filter_map(|frame| frame.frame.function.as_ref());
            let names = names.map(ToString::to_string);
            let own = names.filter_map(|name| Some(name.strip_prefix("object_language::heap::")?.to_owned()));
            writeln!(out, "{}", own.collect::<Vec<_>>().join(" < "))?;
            print_classes(out, &report)?;
        }
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "the output")]
fn print_cycle(cycle: &GarbageCollection) {
    let took: f64 = cycle.collections.iter().map(|slice| slice.end_timestamp - slice.start_timestamp).sum();
    println!(
        "{} cycle {}: {}{}, slices: {}, {took:.3} ms",
        cycle.collector,
        cycle.gc_cycle_number,
        cycle.reason,
        if cycle.nonincremental_reason.is_some() { ", finished at once" } else { "" },
        cycle.collections.len()
    );
}

fn print_classes(out: &mut impl Write, report: &CensusReport) -> io::Result<()> {
    let CensusReport::Map(classes) = report else { return Ok(()) };
    for (class, report) in classes {
        if let CensusReport::Count(count) = report
            && count.count != Some(0)
        {
            let (count, bytes) = (count.count.unwrap_or(0), count.bytes.unwrap_or(0));
            writeln!(out, "{count:8} {bytes:10} B  {class}")?;
        }
    }
    Ok(())
}
