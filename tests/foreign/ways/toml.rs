use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};

#[derive(MallocSizeOf)]
#[malloc_size_of(remote = toml::Value)]
pub enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Datetime(#[malloc_size_of(ignore = "plain data")] toml::value::Datetime),
    Array(#[malloc_size_of(each = Value::measure)] Vec<toml::Value>),
    Table(#[malloc_size_of(with = table)] toml::Table),
}

/// Keys and values; the nodes of the map are not visible.
pub fn table<R: Reading>(table: &toml::Table, ops: &mut MallocSizeOfOps<R>) -> usize {
    ops.contents(|ops| table.iter().map(|(key, value)| ops.key(key) + Value::measure(value, ops)).sum())
}
