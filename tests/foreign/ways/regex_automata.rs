use memory_reporter::MallocSizeOf;
use regex_automata::meta::Regex;

#[derive(MallocSizeOf)]
pub struct Lexer {
    /// Without the caches that searches fill: `Cache::memory_usage` states those of a cache of your own.
    #[malloc_size_of(stated_by = Regex::memory_usage)]
    pub word: Regex,
}
