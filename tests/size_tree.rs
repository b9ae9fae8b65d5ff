//! The tree of sizes: its totals are equal to the totals of the plain walk, however the tree merges parts.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use memory_reporter::{
    Collection, MallocSizeOf, MemoryReporter, Reports, collect_report, computed_size_of, malloc_size_of,
    measure::size_summary, size_tree,
};
use tests::{Random, grown};

#[derive(MallocSizeOf)]
enum Value {
    Null,
    Text(String),
    List(Vec<Value>),
    Table(HashMap<String, Value>),
    Sorted(BTreeMap<u32, Value>),
    Boxed(Box<Value>),
    Shared(Rc<Vec<String>>, Rc<Vec<String>>),
}

fn value(random: &mut Random, depth: u32) -> Value {
    let kind = if depth == 0 { random.below(2) } else { random.below(7) };
    let some = random.below(6);
    match kind {
        0 => Value::Null,
        1 => Value::Text("x".repeat(random.below(50) as usize)),
        2 => Value::List((0..some).map(|_| value(random, depth - 1)).collect()),
        3 => Value::Table((0..some).map(|i| (format!("key {i}"), value(random, depth - 1))).collect()),
        4 => Value::Sorted((0..some as u32).map(|i| (i, value(random, depth - 1))).collect()),
        5 => Value::Boxed(Box::new(value(random, depth - 1))),
        _ => {
            let shared = Rc::new(vec!["shared".to_owned(); some as usize]);
            Value::Shared(Rc::clone(&shared), shared)
        }
    }
}

#[test]
fn totals_are_those_of_the_plain_walk() {
    let mut random = Random::new(42);
    for round in 0..500 {
        let (value, held) = grown(|| value(&mut random, 6));
        let tree = size_tree(&value);
        assert_eq!(tree.total().usable, malloc_size_of(&value), "round {round}");
        assert_eq!(tree.total().asked, computed_size_of(&value), "round {round}");
        assert_eq!(tree.total().asked as isize, held.asked, "round {round}");
        let own: usize = tree.nodes().map(|node| node.own().usable).sum();
        assert_eq!(own, tree.total().usable, "round {round}");
        let reported: i64 = tree.reports("explicit/value").iter().map(|report| report.amount).sum();
        assert_eq!(reported as usize, tree.total().usable, "round {round}");
        let folded = tree.folded("value").to_string();
        let stacks: usize =
            folded.lines().map(|l| l.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum();
        assert_eq!(stacks, tree.total().usable, "round {round}");
        let json = serde_json::to_value(&tree).unwrap();
        assert_eq!(json["bytes"].as_u64().unwrap() as usize, tree.total().usable, "round {round}");
    }
}

#[test]
fn blocks_and_slop_come_from_one_walk() {
    let (words, held) = grown(|| (0..1000).map(|i| format!("word {i}")).collect::<Vec<_>>());
    let summary = size_summary(&words);
    assert_eq!(summary.blocks as isize, held.blocks);
    assert_eq!(summary.asked as isize, held.asked);
    assert_eq!(summary.usable as isize, held.usable);
    assert_eq!(summary.slop() as isize, held.usable - held.asked);
}

#[derive(MallocSizeOf)]
struct Node {
    next: Option<Box<Node>>,
    text: String,
}

#[test]
fn a_list_of_a_million_nodes_is_a_small_tree() {
    let walk = || {
        let mut list = Node { next: None, text: String::new() };
        for _ in 0..1_000_000 {
            list = Node { next: Some(Box::new(list)), text: String::new() };
        }
        let tree = size_tree(&list);
        assert_eq!(tree.total().asked, 1_000_000 * size_of::<Node>());
        assert_eq!(tree.total().blocks, 1_000_000);
        assert!(tree.len() < 10, "{} nodes", tree.len());
        while let Some(next) = list.next.take() {
            list = *next;
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(walk).unwrap().join().unwrap();
}

#[test]
fn the_views_show_it() {
    #[derive(MallocSizeOf)]
    struct Cache {
        names: Vec<String>,
        pages: HashMap<u64, Vec<u8>>,
    }
    let cache = Cache {
        names: vec!["a name".to_owned(); 1000],
        pages: (0..100).map(|i| (i, vec![0; 10_000])).collect(),
    };
    let tree = size_tree(&cache);
    assert_eq!(tree.find("pages").unwrap().total().blocks, 101);
    let text = about_memory::text(&tree.reports("explicit/cache")).verbose(true).to_string();
    for name in ["names", "pages", "(elements)"] {
        assert!(text.contains(name), "{name} in {text}");
    }
    assert!(tree.folded("cache").to_string().contains("cache;names;(elements) "));
}

#[derive(MallocSizeOf)]
struct Cache {
    entries: HashMap<u64, Entry>,
    first: Rc<Vec<String>>,
    second: Rc<Vec<String>>,
    empty: Vec<u8>,
}

#[derive(MallocSizeOf)]
struct Entry {
    title: String,
    tags: Vec<String>,
}

impl Cache {
    fn new() -> Self {
        let entry = |i: u64| Entry { title: "x".repeat(20), tags: vec!["tag".to_owned(); i as usize % 3] };
        let shared = Rc::new(vec!["shared".to_owned(); 3]);
        Self {
            entries: (0..10).map(|i| (i, entry(i))).collect(),
            first: Rc::clone(&shared),
            second: shared,
            empty: Vec::new(),
        }
    }
}

struct Expanding<'a>(&'a Cache, &'a str, usize);

impl MemoryReporter for Expanding<'_> {
    fn collect_reports(&self, out: &mut Reports) {
        out.heap_tree(self.1, self.0, self.2, "Memory used by the cache.");
    }
}

fn expanded(cache: &Cache, path: &str, depth: usize) -> Vec<(String, i64)> {
    let set = Collection::new().with(&Expanding(cache, path, depth)).collect();
    assert!(set.warnings().is_empty(), "{:?}", set.warnings());
    set.iter().map(|report| (report.path.to_owned(), report.amount)).collect()
}

fn paths(reports: &[(String, i64)]) -> Vec<&str> {
    reports.iter().map(|(path, _)| path.as_str()).collect()
}

#[test]
fn a_reporter_expands_fields_to_a_depth() {
    let cache = Cache::new();
    let total = malloc_size_of(&cache) as i64;
    for path in ["explicit/cache", "cache"] {
        for depth in 0..8 {
            let reports = expanded(&cache, path, depth);
            assert_eq!(reports.iter().map(|(_, amount)| amount).sum::<i64>(), total, "depth {depth}");
            for a in paths(&reports) {
                let below = format!("{a}/");
                assert!(!paths(&reports).iter().any(|b| b.starts_with(&below)), "{a} must be a leaf");
            }
        }
    }
    assert_eq!(paths(&expanded(&cache, "explicit/cache", 0)), ["explicit/cache"]);
    // The walk counts shared blocks at the first reference. `empty` owns no memory.
    let fields = expanded(&cache, "explicit/cache", 1);
    assert_eq!(paths(&fields), ["explicit/cache/entries", "explicit/cache/first"]);
    let deep = expanded(&cache, "explicit/cache", 3);
    assert_eq!(
        paths(&deep),
        [
            "explicit/cache/entries/(itself)",
            "explicit/cache/entries/(values)/tags",
            "explicit/cache/entries/(values)/title",
            "explicit/cache/first/(itself)",
            "explicit/cache/first/(elements)",
        ]
    );
}

#[test]
fn what_one_reporter_counted_another_s_tree_leaves_out() {
    let cache = Cache::new();
    let again = Expanding(&cache, "explicit/again", 9);
    let once = Expanding(&cache, "explicit/once", 9);
    let set = Collection::new().with(&once).with(&again).collect();
    let sum = |start: &str| -> i64 {
        set.iter().filter(|report| report.path.starts_with(start)).map(|report| report.amount).sum()
    };
    let shared = malloc_size_of(&cache.first) as i64;
    assert_eq!(sum("explicit/once") - sum("explicit/again"), shared);
}

#[test]
fn a_bad_path_is_told_once() {
    let cache = Cache::new();
    let set = Collection::new().with(&Expanding(&cache, "explicit//cache", 2)).collect();
    assert!(set.is_empty());
    assert_eq!(set.warnings().len(), 1, "{:?}", set.warnings());
}

struct ByMacro<'a>(&'a Cache);

impl MemoryReporter for ByMacro<'_> {
    fn collect_reports(&self, out: &mut Reports) {
        const DEPTH: usize = 1;
        collect_report!(out, "explicit/literal", HeapTree, DEPTH, self.0, "Memory used by the cache.");
        collect_report!(out, format!("other/{}", 1), HeapTree, 0, self.0, "Memory used by the cache.");
    }
}

#[test]
fn the_macro_takes_literals_and_other_paths() {
    let cache = Cache::new();
    let set = Collection::new().with(&ByMacro(&cache)).collect();
    let paths: Vec<_> = set.iter().map(|report| report.path).collect();
    assert_eq!(paths, ["explicit/literal/entries", "explicit/literal/first", "other/1"]);
}
