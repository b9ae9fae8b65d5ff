//! A search index of tantivy in memory. Its blocks are private: the reporter gets access to them through the files of
//! the index.

use memory_reporter::collect_reports;
use tantivy::collector::Count;
use tantivy::directory::RamDirectory;
use tantivy::query::QueryParser;
use tantivy::schema::{STORED, Schema, TEXT};
use tantivy::{Index, IndexSettings, doc};

mod index;

memory_reporter::global_allocator!(std::alloc::System);

const DOCUMENTS: u64 = 300_000;

fn main() -> tantivy::Result<()> {
    let mut schema = Schema::builder();
    let text = schema.add_text_field("text", TEXT | STORED);
    let index = Index::create(RamDirectory::create(), schema.build(), IndexSettings::default())?;
    let mut writer = index.writer_with_num_threads(1, 50_000_000)?;
    for number in 0..DOCUMENTS {
        let words = (1..=20).map(|i| format!("word{} ", number.wrapping_mul(i * i) % 50_000));
        writer.add_document(doc!(text => words.collect::<String>()))?;
    }
    writer.commit()?;
    writer.wait_merging_threads()?;

    let searcher = index.reader()?.searcher();
    let query = QueryParser::for_index(&index, vec![text]).parse_query("word7")?;
    assert!(searcher.search(&query, &Count)? > 0);

    let search = std::sync::Arc::new(index::Search { index });
    let _registration = memory_reporter::register_weak(&search);
    let reports = collect_reports(&Default::default());
    let amount =
        |path: &str| reports.iter().find(|report| report.path == path).map_or(0, |report| report.amount);
    let (files, heap) = (amount("explicit/search/index"), amount("heap-allocated"));
    let reported: i64 = reports
        .iter()
        .filter(|report| report.kind == memory_reporter::Kind::Heap && report.path.starts_with("explicit/"))
        .map(|report| report.amount)
        .sum();
    let dark = 100.0 * (heap - reported) as f64 / heap as f64;
    println!("explicit/search/index {files:>10} bytes of {heap} in the heap; {dark:.2} % unclassified");
    Ok(())
}
