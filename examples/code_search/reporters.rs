//! Who reports the program's memory: one report for each part, and a few counts.

use std::sync::{Arc, Mutex};

use memory_reporter::{
    MemoryReporter, Registration, Reports, collect_report, register_strong, register_weak,
};

use crate::engine::Engine;
use crate::workers::{WorkerState, Workers};

/// Registers all reporters, the query cache's only if asked for; they report until the result is dropped.
pub(crate) fn register(engine: &Arc<Engine>, workers: &Workers, report_cache: bool) -> Vec<Registration> {
    let mut registrations =
        vec![register_weak(engine), register_strong(Arc::new(WorkerStates(workers.states.clone())))];
    if report_cache {
        registrations.push(register_strong(Arc::new(Cache(Arc::clone(engine)))));
    }
    registrations
}

/// The engine is its own reporter.
impl MemoryReporter for Engine {
    fn collect_reports(&self, out: &mut Reports) {
        collect_report!(
            out,
            "explicit/search/interner",
            Heap,
            &self.interner,
            "Memory used by the distinct words and their numbers."
        );
        collect_report!(
            out,
            "explicit/search/documents",
            Heap,
            &self.documents,
            "Memory used by the text of the documents."
        );
        collect_report!(
            out,
            "explicit/search/index",
            Heap,
            &self.index,
            "Memory used by the inverted index."
        );
        collect_report!(
            out,
            "search-documents",
            Other,
            Count,
            self.documents.len(),
            "The number of documents that can be found."
        );
        collect_report!(
            out,
            "search-postings",
            Other,
            Count,
            self.index.postings(),
            "The number of lines listed for words, over all words."
        );
        let (answered, hits) = (self.statistics.answered(), self.statistics.cache_hits());
        collect_report!(
            out,
            "search-queries",
            Other,
            CountCumulative,
            answered,
            "Queries answered since the program started."
        );
        if let Some(rate) = (hits * 10_000).checked_div(answered) {
            collect_report!(
                out,
                "search-cache-hit-rate",
                Other,
                Percentage,
                rate,
                "How many of the queries the cache answered."
            );
        }
    }
}

/// The query cache, which nobody reports unless asked to.
struct Cache(Arc<Engine>);

impl MemoryReporter for Cache {
    fn collect_reports(&self, out: &mut Reports) {
        collect_report!(
            out,
            "explicit/search/query-cache",
            Heap,
            &self.0.cache,
            "Memory used by the answers that are kept."
        );
    }
}

/// What each worker keeps for itself.
struct WorkerStates(Vec<Arc<Mutex<WorkerState>>>);

impl MemoryReporter for WorkerStates {
    fn collect_reports(&self, out: &mut Reports) {
        for (number, state) in self.0.iter().enumerate() {
            let path = format!("explicit/search/workers/worker {number}");
            collect_report!(out, path, Heap, state, "Memory used by a worker's own state.");
        }
    }
}
