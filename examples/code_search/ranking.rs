//! Finds the best documents for a query.
//!
//! All arithmetic uses integers, and if scores are equal, the earlier document is better. So the same text gives the
//! same answer on every machine.

use std::cmp::Reverse;

use memory_reporter::MallocSizeOf;

use crate::documents::{DocumentId, Documents, Line};
use crate::index::{Index, Posting, PostingList};
use crate::query_cache::{Answer, Hit, Query};

/// The maximum number of hits in an answer.
const HITS: usize = 20;

/// The number of lines in a snippet before and after the hit.
const SNIPPET_AROUND: usize = 2;

/// The maximum number of characters in a line of a snippet.
const SNIPPET_LINE: usize = 120;

/// A buffer that a worker reuses for each query.
#[derive(Debug, Default, MallocSizeOf)]
pub(crate) struct Scratch {
    candidates: Vec<Candidate>,
}

#[derive(Debug, MallocSizeOf)]
struct Candidate {
    document: DocumentId,
    line: Line,
    score: u32,
}

/// Finds the documents that have all words of the query, and ranks them.
pub(crate) fn answer(query: &Query, index: &Index, documents: &Documents, scratch: &mut Scratch) -> Answer {
    let mut lists: Vec<&PostingList> = query.terms().iter().map(|&term| index.list(term)).collect();
    lists.sort_by_key(|list| list.postings().len());
    let candidates = &mut scratch.candidates;
    candidates.clear();
    if let [rarest, others @ ..] = &lists[..] {
        let runs = rarest.postings().chunk_by(|one, next| one.document == next.document);
        candidates.extend(runs.filter_map(|run| candidate(run, rarest, others, documents.len())));
    }
    candidates.sort_unstable_by_key(|candidate| (Reverse(candidate.score), candidate.document));
    let hits = candidates.iter().take(HITS).map(|&Candidate { document, line, .. }| Hit {
        document,
        line,
        snippet: snippet(documents, document, line),
    });
    Answer { documents: candidates.len(), hits: hits.collect() }
}

/// Scores one document by its lines with the rarest word. Returns `None` if the document lacks another word.
fn candidate(
    run: &[Posting],
    rarest: &PostingList,
    others: &[&PostingList],
    documents: usize,
) -> Option<Candidate> {
    let document = run.first()?.document;
    let mut score = weight(rarest, documents) * frequency(run);
    let mut shared = vec![0_u32; run.len()];
    for list in others {
        let lines = list.within(document);
        if lines.is_empty() {
            return None;
        }
        let weight = weight(list, documents);
        score += weight * frequency(lines);
        for (shared, posting) in shared.iter_mut().zip(run) {
            if lines.binary_search_by_key(&posting.line, |posting| posting.line).is_ok() {
                *shared += weight;
            }
        }
    }
    // The first of the best lines: `max_by_key` returns the last maximum, and the iterator is reversed.
    let (posting, shared) = run.iter().zip(shared).rev().max_by_key(|&(_, shared)| shared)?;
    Some(Candidate { document, line: posting.line, score: score + 4 * shared })
}

/// The weight of a word: a rarer word has a higher weight.
fn weight(list: &PostingList, documents: usize) -> u32 {
    (documents / list.documents().max(1) as usize).checked_ilog2().unwrap_or(0) + 1
}

/// The weight for the number of lines: many lines count a little more than one line.
fn frequency(lines: &[Posting]) -> u32 {
    lines.len().checked_ilog2().unwrap_or(0) + 1
}

fn snippet(documents: &Documents, document: DocumentId, line: Line) -> String {
    let mut snippet = String::new();
    for line in documents.get(document).lines_around(line, SNIPPET_AROUND) {
        snippet.extend(line.chars().take(SNIPPET_LINE));
        snippet.push('\n');
    }
    snippet.shrink_to_fit();
    snippet
}
