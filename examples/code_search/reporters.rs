//! The memory reporters of the program.

use std::sync::Arc;

use memory_reporter::{MemoryReporter, Reports, collect_report};

use crate::engine::Engine;
use crate::query_cache::QueryCache;
use crate::workers::WorkerStates;

impl MemoryReporter for Engine {
    fn collect_reports(&self, out: &mut Reports) {
        collect_report!(
            out,
            "explicit/search/interner",
            Heap,
            &self.interner,
            "Memory used by the distinct words and their lookup table."
        );
        collect_report!(
            out,
            "explicit/search/documents",
            Heap,
            &self.documents,
            "Memory used by the text of the documents, their paths and the offsets of their lines."
        );
        collect_report!(
            out,
            "explicit/search/index",
            Heap,
            &self.index,
            "Memory used by the inverted index: for each word, the lines that contain it."
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
            "search-words",
            Other,
            Count,
            self.interner.len(),
            "The number of distinct words."
        );
        collect_report!(
            out,
            "search-postings",
            Other,
            Count,
            self.index.postings(),
            "The number of pairs of a word and a line that contains it."
        );
        collect_report!(
            out,
            "search-queries-answered",
            Other,
            CountCumulative,
            self.statistics.answered(),
            "The number of queries answered since the start."
        );
        collect_report!(
            out,
            "search-cache-hit-rate",
            Other,
            Percentage,
            self.statistics.cache_hits() * 10_000 / self.statistics.answered().max(1),
            "The share of queries that the query cache could answer."
        );
    }
}

/// Reports memory that [`Engine`] already reports. This mistake is made only with `--report-twice`.
pub(crate) struct DocumentsAgain(pub(crate) Arc<Engine>);

impl MemoryReporter for DocumentsAgain {
    fn collect_reports(&self, out: &mut Reports) {
        collect_report!(
            out,
            "explicit/search/texts",
            Heap,
            &self.0.documents,
            "Memory used by the documents. Another reporter also reports this memory."
        );
    }
}

impl MemoryReporter for QueryCache {
    fn collect_reports(&self, out: &mut Reports) {
        collect_report!(
            out,
            "explicit/search/query-cache",
            Heap,
            self,
            "Memory used by the cached answers, with the snippets of their hits."
        );
        collect_report!(
            out,
            "search-cached-answers",
            Other,
            Count,
            self.len(),
            "The number of cached answers."
        );
    }
}

impl MemoryReporter for WorkerStates {
    fn collect_reports(&self, out: &mut Reports) {
        for (number, state) in self.iter().enumerate() {
            collect_report!(
                out,
                format!("explicit/search/workers/worker({number})"),
                Heap,
                state,
                "Memory that a worker thread keeps from one query to the next."
            );
        }
    }
}
