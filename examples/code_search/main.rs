//! A search engine over source code, as a model of a program that accounts for its memory.
//!
//! The program reads every text file below a directory, and indexes the words. It answers a batch of generated queries
//! on worker threads, and then the queries of the command line. At the end it prints its own memory, like Firefox's
//! about:memory.
//!
//! Its long-lived memory has five owners: [`interner`] (words), [`documents`] (text), [`index`] (the lines of each
//! word), [`query_cache`] (answers) and [`workers`] (the state of each worker). They derive `MallocSizeOf`;
//! [`reporters`] reports their sizes. The program reports the query cache only with `--report-cache`. Without this
//! option the cache's bytes are part of `heap-unclassified`, and DMD shows which stacks allocated them (`--dmd`). With
//! `--report-twice` two reporters report the documents, and DMD shows this mistake. With `--serve` the program keeps
//! running, and answers the program `about-memory`.

#![forbid(unsafe_code)]

mod arguments;
mod documents;
mod engine;
mod index;
mod interner;
mod progress;
mod query_cache;
mod ranking;
mod reporters;
mod serve;
mod sources;
mod statistics;
mod words;
mod workers;
mod workload;

use std::alloc::System;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Parser;
use dmd::Dmd;
use memory_reporter::{CollectOptions, collect_reports, register_weak};

use crate::arguments::Arguments;
use crate::engine::Engine;
use crate::progress::Progress;
use crate::query_cache::Answer;
use crate::ranking::Scratch;
use crate::reporters::DocumentsAgain;
use crate::workers::Workers;

memory_reporter::global_allocator!(Dmd<System>: Dmd::new(System));

/// The queries if the command line has no `--query`.
const DEFAULT_QUERIES: [&str; 3] = ["hash map", "size_of", "drop guard"];

/// The number of hits to show for each query.
const HITS_SHOWN: usize = 3;

#[allow(clippy::print_stderr, reason = "errors go to stderr")]
fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("code_search: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the reader of stdout has closed it, like `head` does. This is not an error of the program.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut progress = Progress::new();
    let mut out = BufWriter::new(io::stdout().lock());

    let engine = Arc::new(read(arguments, &mut progress, &mut out)?);
    let workers = Workers::start(&engine, arguments.workers())?;
    let _engine_reporter = register_weak(&engine);
    let _workers_reporter = register_weak(&workers.states);
    let _cache_reporter = arguments.report_cache.then(|| register_weak(&engine.cache));

    let again = Arc::new(DocumentsAgain(Arc::clone(&engine)));
    let _documents_again_reporter = arguments.report_twice.then(|| register_weak(&again));

    answer_workload(&engine, &workers, &mut progress);
    drop(progress);
    writeln!(out, "{}", engine.statistics)?;

    for words in arguments.queries(&DEFAULT_QUERIES) {
        writeln!(out)?;
        answer(&engine, words, &mut out)?;
    }
    writeln!(out)?;
    let reports = collect_reports(&CollectOptions::default());
    write!(out, "{}", about_memory::text(&reports))?;
    out.flush()?;
    if let Some(file) = &arguments.save {
        memory_reporter::file::write(file, &reports).with_context(|| format!("--save {}", file.display()))?;
    }
    if let Some(file) = &arguments.dmd {
        dmd::report_and_dump(file).with_context(|| format!("--dmd {}", file.display()))?;
    }
    if arguments.serve {
        serve::serve(&engine, &workers, &mut out)?;
    }
    Ok(())
}

/// Reads all documents that the arguments select into a new engine.
fn read(arguments: &Arguments, progress: &mut Progress, out: &mut impl Write) -> anyhow::Result<Engine> {
    let limits = arguments.limits();
    let files = sources::list(&sources::roots(arguments.directory.as_deref())?, &limits)?;
    let mut engine = Engine::default();
    let mut limited = files.len() == limits.files;
    for (number, file) in files.iter().enumerate() {
        progress.tick(|| format!("indexing {number} of {} files", files.len()));
        let Some(text) = sources::read(file) else { continue };
        if engine.documents.bytes() + text.len() as u64 > limits.bytes {
            limited = true;
            break;
        }
        engine.add(file.shown_as.clone(), text);
    }
    engine.finish();
    anyhow::ensure!(!engine.documents.is_empty(), "no source text found");
    let more = if limited { " (and there may be more: see --max-files, --max-megabytes)" } else { "" };
    writeln!(out, "{}{more}", engine.summary())?;
    Ok(engine)
}

/// Answers the queries of many users: each generated query, and every third query again.
fn answer_workload(engine: &Arc<Engine>, workers: &Workers, progress: &mut Progress) {
    let queries = workload::generate(engine);
    let again: Vec<_> = queries.iter().step_by(3).cloned().collect();
    let mut answered = 0;
    for round in [queries, again] {
        workers.answer_all(round, |_| {
            answered += 1;
            progress.tick(|| format!("{answered} queries answered"));
        });
    }
}

fn answer(engine: &Engine, words: &str, out: &mut impl Write) -> io::Result<()> {
    let query = match engine.query(words) {
        Ok(query) => query,
        Err(error) => return writeln!(out, "{words}: {error}"),
    };
    let answer: Arc<Answer> = engine.answer(&query, &mut Scratch::default());
    writeln!(out, "{words}: {} documents", answer.documents)?;
    for hit in answer.hits.iter().take(HITS_SHOWN) {
        let path = engine.documents.get(hit.document).path.display();
        writeln!(out, "{path}:{}", hit.line.number())?;
        for line in hit.snippet.lines() {
            writeln!(out, "{}", format!("    {line}").trim_end())?;
        }
    }
    Ok(())
}
