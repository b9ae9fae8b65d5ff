//! Generates the queries of many users: every common word, and pairs of common words.

use std::cmp::Reverse;

use crate::engine::Engine;
use crate::interner::TermId;
use crate::query_cache::Query;

/// A word is common if at least this number of documents contain it.
const COMMON: u32 = 8;

/// The number of words to search for, the most common first.
const WORDS: usize = 2_000;

/// The distances in rank from the first word of a pair to the second word.
const APART: [usize; 2] = [1, 50];

/// Generates the queries. Their order depends only on the text.
pub(crate) fn generate(engine: &Engine) -> Vec<Query> {
    let words = common_words(engine);
    let single = words.iter().map(|&word| Query::new(vec![word]));
    let pairs = APART.iter().flat_map(|&apart| {
        words.iter().zip(words.iter().skip(apart)).map(|(&one, &other)| Query::new(vec![one, other]))
    });
    single.chain(pairs).collect()
}

fn common_words(engine: &Engine) -> Vec<TermId> {
    let documents = |term: TermId| engine.index.list(term).documents();
    let mut common: Vec<TermId> = engine.interner.ids().filter(|&term| documents(term) >= COMMON).collect();
    common.sort_by_key(|&term| (Reverse(documents(term)), engine.interner.word(term)));
    common.truncate(WORDS);
    common
}
