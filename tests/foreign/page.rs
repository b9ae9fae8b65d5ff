//! The page of the documentation is made of the code in `ways/`.

use std::fmt::Write as _;
use std::{env, fs};

/// How a crate's types are measured: the crate, how exactly, what to know, and the name of its file in `ways/`.
type Way = (&'static str, &'static str, &'static str, &'static str);

const WAYS: &[Way] = &[
    ("async-channel", "at least", "what messages own is not visible", "async_channel"),
    ("bit-vec", "computed", "", "bit_vec"),
    ("bstr", "exact", "", "bstr"),
    ("camino", "computed", "", "camino"),
    ("crossbeam-channel", "at least", "what messages own is not visible", "crossbeam_channel"),
    ("crossbeam-queue", "at least", "what values own is not visible", "crossbeam_queue"),
    ("csv", "at least", "the bytes of a record, not their capacity", "csv"),
    ("fixedbitset", "at least", "the words, not their capacity", "fixedbitset"),
    ("flume", "at least", "messages that wait; what they own is not visible", "flume"),
    ("generational-arena", "computed", "", "generational_arena"),
    ("hashlink", "at least", "all entries; the table that finds them is larger", "hashlink"),
    ("http", "at least", "the tables of a map; names and values do not show whether they are shared", "http"),
    ("hyper", "at least", "its requests and responses are those of http", "hyper"),
    ("id-arena", "at least", "the elements, not their capacity", "id_arena"),
    ("lasso", "stated", "the arena of the strings, without the tables", "lasso"),
    ("memmap2", "exact", "a mapping is no heap: its resident bytes are a `NonHeap` report", "memmap2"),
    ("moka", "at least", "keys and values; the cache's own tables are not visible", "moka"),
    ("ndarray", "at least", "owned arrays; room that an array leaves unused is not visible", "ndarray"),
    ("prost", "exact", "messages derive it; a field of the crate bytes needs its feature", "prost"),
    ("quick_cache", "at least", "the tables are stated; waits for the cache's locks", "quick_cache"),
    (
        "regex",
        "stated",
        "by regex-automata, which is behind it, and states a part only; regex itself states nothing",
        "regex_automata",
    ),
    ("ropey", "stated", "the buffers of the text, without the nodes of the tree", "ropey"),
    ("semver", "at least", "the text, without its length in front", "semver"),
    ("tokio", "at least", "`mpsc`: messages that wait; what they own is not visible", "tokio"),
    (
        "tokio-tasks",
        "opaque",
        "futures show nothing: their number is a report, a tag has their memory",
        "tokio_tasks",
    ),
    ("toml", "at least", "exact, except that it leaves out the nodes of tables", "toml"),
    ("typed-arena", "at least", "the values; what they own is not visible", "typed_arena"),
];

#[test]
fn the_page_has_the_code_of_every_way() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut text = String::from(
        "Code for types that no feature of memory-reporter measures. Tests compile each piece, and compare its bytes \
         with a counting allocator if it returns bytes.\n\nA function belongs to a field: `#[malloc_size_of(with = measure)]`. *Stated* means that \
         the crate states the figure itself; no test checks it.\n\n| crate | how exactly | what to know |\n|---|---|---|\n",
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
    assert_eq!(listed, there, "a file in ways/ that the page does not show");
    let page = format!("{root}/reporter/src/docs/other_crates.md");
    if env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&page, &text).unwrap();
    }
    let expected = fs::read_to_string(&page).unwrap();
    assert!(expected == text, "{page} is stale; UPDATE_GOLDEN=1 rewrites it");
}
