//! The page of the documentation consists of the code in `ways/`.

use std::fmt::Write as _;
use std::{env, fs};

/// A row of the table: the name of a crate, how exactly its types are measured, a note, and the name of its file in
/// `ways/`.
type Way = (&'static str, &'static str, &'static str, &'static str);

const WAYS: &[Way] = &[
    ("async-channel", "at least", "memory that messages own is not visible", "async_channel"),
    ("bit-vec", "computed", "", "bit_vec"),
    ("bstr", "exact", "", "bstr"),
    ("camino", "computed", "", "camino"),
    ("crossbeam-channel", "at least", "memory that messages own is not visible", "crossbeam_channel"),
    ("crossbeam-queue", "at least", "memory that values own is not visible", "crossbeam_queue"),
    ("csv", "at least", "the bytes of a record, not their capacity", "csv"),
    ("fixedbitset", "at least", "the words, not their capacity", "fixedbitset"),
    ("flume", "at least", "waiting messages; memory that they own is not visible", "flume"),
    ("generational-arena", "computed", "", "generational_arena"),
    ("hashlink", "at least", "all entries; the table of pointers is larger than counted", "hashlink"),
    ("http", "at least", "the tables of a map; names and values do not show whether they are shared", "http"),
    ("hyper", "at least", "its requests and responses are types of http", "hyper"),
    ("id-arena", "at least", "the elements, not their capacity", "id_arena"),
    ("lasso", "stated", "the arena of the strings, without the tables", "lasso"),
    (
        "memmap2",
        "exact",
        "a mapping is not heap memory: its resident bytes are a `NonHeap` report",
        "memmap2",
    ),
    ("moka", "at least", "keys and values; the cache's own tables are not visible", "moka"),
    (
        "moka-future",
        "at least",
        "`moka::future`: keys and values; a tag counts the tables, too",
        "moka_future",
    ),
    ("ndarray", "at least", "owned arrays; their unused room is not visible", "ndarray"),
    (
        "prost",
        "exact",
        "messages derive the trait; for fields of type `Bytes`, enable the feature `bytes1`",
        "prost",
    ),
    ("quick_cache", "at least", "the tables are stated; waits for the cache's locks", "quick_cache"),
    (
        "regex",
        "stated",
        "through its crate regex-automata, which states only a part; regex itself states no size",
        "regex_automata",
    ),
    ("ropey", "stated", "the buffers of the text, without the nodes of the tree", "ropey"),
    ("semver", "at least", "the text, without the length before it", "semver"),
    ("tokio", "at least", "`mpsc`: waiting messages; memory that they own is not visible", "tokio"),
    ("tokio-tasks", "opaque", "futures are opaque: report their number, and tag their memory", "tokio_tasks"),
    ("toml", "at least", "exact, except that it leaves out the nodes of tables", "toml"),
    ("typed-arena", "at least", "the values; memory that they own is not visible", "typed_arena"),
];

#[test]
fn the_page_has_the_code_of_every_way() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut text = String::from(
        "Code for types that no feature of memory-reporter measures. Tests compile each piece, and compare its bytes \
         with a counting allocator if it returns bytes.\n\nA function belongs to a field: `#[malloc_size_of(with = measure)]`. *Stated* means that \
         the crate itself states the figure, and no test checks it.\n\n| crate | how exactly | what to know |\n|---|---|---|\n",
    );
    for (name, seen, note, _) in WAYS {
        writeln!(text, "| [`{name}`](#{name}) | {seen} | {note} |").unwrap();
    }
    for (name, _, _, file) in WAYS {
        let code = fs::read_to_string(format!("{root}/tests/foreign/ways/{file}.rs")).unwrap();
        write!(text, "\n# `{name}`\n\n```ignore\n{code}```\n").unwrap();
    }
    let listed = WAYS.len();
    let there = fs::read_dir(format!("{root}/tests/foreign/ways")).unwrap().count();
    assert_eq!(listed, there, "the page must have a row for each file in ways/");
    let page = format!("{root}/reporter/src/docs/other_crates.md");
    if env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&page, &text).unwrap();
    }
    let expected = fs::read_to_string(&page).unwrap();
    assert!(expected == text, "{page} is stale; UPDATE_GOLDEN=1 rewrites it");
}
