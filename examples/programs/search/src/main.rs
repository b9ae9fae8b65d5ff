//! Indexes generated documents in memory and searches them. Lines that end in `// +` are added to account for memory.

use tantivy::collector::TopDocs;
use tantivy::directory::RamDirectory;
use tantivy::query::QueryParser;
use tantivy::schema::{STORED, STRING, Schema, TEXT};
use tantivy::{Index, IndexSettings, SingleSegmentIndexWriter, TantivyDocument, doc};

memory_reporter::global_allocator!(std::alloc::System); // +

const WORDS: [&str; 16] = [
    "memory", "reporter", "tree", "heap", "block", "stack", "frame", "index", "search", "query", "cache", "page",
    "thread", "signal", "socket", "table",
];

/// The documents that the last searches found.
#[derive(Default)]
#[derive(memory_reporter::MallocSizeOf)] // +
struct History {
    found: Vec<(String, Vec<u64>)>,
}

impl memory_reporter::MemoryReporter for History { // +
    fn collect_reports(&self, out: &mut memory_reporter::Reports) { // +
        out.heap("explicit/search/history", self, "Memory used by the results of searches."); // +
    } // +
} // +

fn main() -> tantivy::Result<()> {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(20_000);
    let tag = memory_reporter::tags::Tag::new("explicit/search/tantivy"); // +
    let guard = tag.enter(); // +
    let mut schema = Schema::builder();
    let (id, body) = (schema.add_text_field("id", STRING | STORED), schema.add_text_field("body", TEXT | STORED));
    let settings = IndexSettings { docstore_compress_dedicated_thread: false, ..IndexSettings::default() };
    let index = Index::create(RamDirectory::create(), schema.build(), settings)?;
    let mut writer: SingleSegmentIndexWriter<TantivyDocument> =
        SingleSegmentIndexWriter::new(index.clone(), 50_000_000)?;
    for i in 0..count {
        let text: Vec<String> =
            (0..30).map(|j| format!("{}{}", WORDS[(i * 7 + j * 3) % 16], (i * j) % 5000)).collect();
        writer.add_document(doc!(id => format!("document {i}"), body => text.join(" ")))?;
    }
    println!("{}", about_memory::text(&memory_reporter::collect_reports(&Default::default())).verbose(true)); // +
    let index = writer.finalize()?;
    let searcher = index.reader()?.searcher();
    drop(guard); // +
    let parser = QueryParser::for_index(&index, vec![body]);
    let mut history = History::default();
    for i in 0..200 {
        let query = format!("{}{} AND {}{}", WORDS[i % 16], i % 50, WORDS[(i + 3) % 16], i % 70);
        let found = tag.run(|| searcher.search(&parser.parse_query(&query)?, &TopDocs::with_limit(10)))?; // +
        history.found.push((query, found.iter().map(|(_, address)| u64::from(address.doc_id)).collect()));
    }
    println!("{} searches", history.found.len());
    let history = memory_reporter::register_local(std::rc::Rc::new(history)); // +
    println!("{}", about_memory::text(&memory_reporter::collect_reports(&Default::default())).verbose(true)); // +
    drop(history); // +
    Ok(())
}
