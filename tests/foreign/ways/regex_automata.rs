use memory_reporter::MallocSizeOf;
use regex_automata::meta::Regex;

#[derive(MallocSizeOf)]
pub struct Lexer {
    /// The size leaves out the caches that searches fill. If you have your own cache, `Cache::memory_usage` states its
    /// bytes.
    #[malloc_size_of(stated_by = Regex::memory_usage)]
    pub word: Regex,
}
