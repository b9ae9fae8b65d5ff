//! Keeps running after the work, so that a user can try every command of `about-memory` on a running program.

use std::io::Write;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use memory_reporter::live::answer_collections;
use memory_reporter::{pressure::AllocatorPurge, watching::WatchedCollector};

use crate::engine::Engine;
use crate::workers::Workers;
use crate::workload;

/// The time between two queries.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens, and answers a query from time to time, so that `about-memory show --interval 2s` has changes to show.
/// Returns only if it cannot listen or write to `out`.
pub(crate) fn serve(engine: &Arc<Engine>, workers: &Workers, out: &mut impl Write) -> anyhow::Result<()> {
    memory_reporter::listen().context("--serve: cannot listen")?;
    let shared = Arc::clone(engine);
    heap_graph::answer_snapshots(move |roots| {
        roots.add("interner", &shared.interner);
        roots.add("documents", &shared.documents);
        roots.add("index", &shared.index);
        roots.add("query cache", &shared.cache);
    })
    .forever();
    // The program has no garbage collector, but its allocator can give pages back.
    let pages = Mutex::new(WatchedCollector::new(AllocatorPurge));
    answer_collections(move || pages.lock().unwrap_or_else(PoisonError::into_inner).collect("API")).forever();
    let pid = process::id();
    writeln!(
        out,
        "\nProcess {pid} answers requests until you end it (Ctrl-C). From another terminal: about-memory show {pid}"
    )?;
    out.flush()?;
    for query in workload::generate(engine).iter().cycle() {
        workers.answer_all(vec![query.clone()], drop);
        thread::sleep(PAUSE);
    }
    // Reached only if the documents have too few common words for queries.
    loop {
        thread::park();
    }
}
