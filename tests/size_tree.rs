//! The tree of sizes: its totals are those of the plain walk, whatever it merges.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use memory_reporter::{MallocSizeOf, computed_size_of, malloc_size_of, size_summary, size_tree};
use tests::{Counting, Random, grown};

memory_reporter::global_allocator!(Counting);

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
