use lasso::Rodeo;
use memory_reporter::MallocSizeOf;

#[derive(MallocSizeOf)]
pub struct Names {
    /// The arena of the strings, without the tables for lookups.
    #[malloc_size_of(stated_by = Rodeo::current_memory_usage)]
    pub interned: Rodeo,
}
