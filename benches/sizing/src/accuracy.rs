//! Compares the sizes from each crate with the sizes from a counting allocator.
//!
//! The error is relative to the requested bytes. Crates that ask the allocator are right if they include the slop; in
//! this case the output is `usable`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use memory_reporter::MallocSizeOf;
use smallvec::SmallVec;
use tests::{Random, grown};

use crate::data::{self, Graph, Json, Node};
use crate::measurers;

#[derive(
    Clone,
    Copy,
    MallocSizeOf,
    allocative::Allocative,
    datasize::DataSize,
    deepsize::DeepSizeOf,
    get_size2::GetSize,
    heapsize_derive::HeapSizeOf,
    loupe::MemoryUsage,
    malloc_size_of_derive::MallocSizeOf,
    mem_dbg::MemSize,
    parity_util_mem::MallocSizeOf,
)]
#[mem_size(flat)]
#[repr(align(64))]
pub(crate) struct Line(pub(crate) u8);

/// The error of a size as text; `exact` only if the size has no error at all.
fn error(said: Option<usize>, real: isize, usable: isize) -> String {
    let Some(said) = said else { return "-".to_owned() };
    let said = said as isize;
    match real {
        _ if said == real => "exact".to_owned(),
        _ if said == usable => "usable".to_owned(),
        0 => format!("{said} B"),
        // A negative size that wrapped around as an unsigned number.
        _ if said < 0 => "wraps".to_owned(),
        _ => format!("{:+.1} %", (said as f64 / real as f64 - 1.0) * 100.0),
    }
}

macro_rules! row {
    ($name:expr, $type:ty, $make:expr) => {{
        let (value, held): ($type, _) = grown(|| $make);
        let value = black_box(value);
        let answers = measurers!($type).into_iter().map(|(name, measure)| {
            let answer = if name.starts_with("floor") { None } else { Some(measure(&value)) };
            (name, answer)
        });
        print!("| `{}` | {} | {} | {} |", $name, held.blocks, held.asked, held.usable);
        for (_, answer) in answers.filter(|(name, _)| !name.starts_with("floor")) {
            print!(" {} |", error(answer.flatten(), held.asked, held.usable));
        }
        println!();
    }};
}

pub(crate) fn run() {
    let names: Vec<&str> = measurers!(u8).iter().map(|(name, _)| *name).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| !name.starts_with("floor")).collect();
    println!("| structure | blocks | requested | usable | {} |", names.join(" | "));
    println!("|---|---|---|---|{}", "---|".repeat(names.len()));

    row!("String, capacity 100", String, {
        let mut text = String::with_capacity(100);
        text.push_str("hello");
        text
    });
    row!("Vec<u64>, 10 of 1000", Vec<u64>, {
        let mut numbers = Vec::with_capacity(1000);
        numbers.extend(0..10);
        numbers
    });
    row!("Vec<String>, 1000", Vec<String>, (0..1000).map(|i| format!("s{i:06}")).collect());
    row!("VecDeque<u32>, wrapped", VecDeque<u32>, {
        let mut deque = VecDeque::with_capacity(1024);
        deque.extend(0..1000);
        deque.drain(..600);
        deque.extend(0..500);
        deque
    });
    row!("BinaryHeap<u64>, 10 of 1000", BinaryHeap<u64>, {
        let mut heap = BinaryHeap::with_capacity(1000);
        heap.extend(0..10);
        heap
    });
    row!("LinkedList<u64>, 1000", LinkedList<u64>, (0..1000).collect());
    row!("HashMap<u64, u64>, 1", HashMap<u64, u64>, HashMap::from([(1, 1)]));
    row!("HashMap<u64, u64>, 5000", HashMap<u64, u64>, (0..5000).map(|i| (i, i)).collect());
    row!("HashMap<u64, u8>, 5000", HashMap<u64, u8>, (0..5000).map(|i| (i, 1)).collect());
    row!("HashMap<u64, u64>, 6900 of 7000 removed", HashMap<u64, u64>, {
        let mut map: HashMap<u64, u64> = (0..7000).map(|i| (i, i)).collect();
        map.retain(|key, _| *key < 100);
        map
    });
    row!("HashSet<String>, 5000", HashSet<String>, (0..5000).map(|i| format!("key{i:08}")).collect());
    row!("BTreeMap<u64, u64>, 5000 collected", BTreeMap<u64, u64>, (0..5000).map(|i| (i, i)).collect());
    row!("BTreeMap<u64, u64>, 5000 sorted", BTreeMap<u64, u64>, {
        let mut map = BTreeMap::new();
        (0..5000).for_each(|i| assert!(map.insert(i, i).is_none()));
        map
    });
    row!("BTreeMap<u64, u64>, 5000 random", BTreeMap<u64, u64>, {
        let mut random = Random::new(42);
        let mut map = BTreeMap::new();
        (0..5000).for_each(|i| assert!(map.insert(random.number(), i).is_none()));
        map
    });
    row!("BTreeMap<u64, u64>, 1", BTreeMap<u64, u64>, BTreeMap::from([(1, 1)]));
    row!("BTreeSet<u64>, 5000 random", BTreeSet<u64>, {
        let mut random = Random::new(42);
        let mut set = BTreeSet::new();
        (0..5000).for_each(|_| assert!(set.insert(random.number())));
        set
    });
    row!("tree of boxes, 12 deep", Node, data::box_tree(12));
    row!("graph of Arcs, 100 nodes, 1000 edges", Graph, data::graph(100, 1000));
    row!("Vec of 100 clones of an Rc<u64>", Vec<Rc<u64>>, vec![Rc::new(9); 100]);
    row!("Arc<str>", Arc<str>, Arc::from("0123456789012345678901234567890123456789"));
    row!("Arc<[u64]>, 100", Arc<[u64]>, Arc::from(vec![1; 100]));
    row!("Box<str>", Box<str>, Box::from("0123456789012345678901234567890123456789"));
    row!("Box<[String]>, 100", Box<[String]>, (0..100).map(|i| format!("s{i:06}")).collect());
    #[allow(clippy::vec_box, reason = "a case of the table")]
    {
        row!(
            "Vec<Box<Box<u64>>>, 100",
            Vec<Box<Box<u64>>>,
            (0..100).map(|i| Box::new(Box::new(i))).collect()
        );
    }
    row!("SmallVec<[u64; 4]>, inline", SmallVec<[u64; 4]>, SmallVec::from_slice(&[1, 2, 3]));
    row!("SmallVec<[u64; 4]>, 20 of 64", SmallVec<[u64; 4]>, {
        let mut numbers = SmallVec::with_capacity(64);
        numbers.extend(0..20);
        numbers
    });
    row!("SmallVec<[String; 4]>, inline", SmallVec<[String; 4]>, {
        (0..3).map(|i| format!("inline{i:03}")).collect()
    });
    row!("JSON", Json, data::json(1000));
    row!("Option<Vec<String>>", Option<Vec<String>>, Some((0..10).map(|i| format!("{i}")).collect()));
    row!("Vec<()>, 1000", Vec<()>, vec![(); 1000]);
    row!("Vec<&'static str>, 100", Vec<&'static str>, vec!["static text, not on the heap"; 100]);
    row!("Mutex<Vec<u8>>, 1000", Mutex<Vec<u8>>, Mutex::new(vec![1; 1000]));
    row!("Cow<'static, [u8]>, owned 1000", Cow<'static, [u8]>, Cow::Owned(vec![1; 1000]));
    row!("Arc of align 64", Arc<Line>, Arc::new(Line(1)));
    row!("LinkedList of align 64", LinkedList<Line>, (0..10).map(Line).collect());
}
