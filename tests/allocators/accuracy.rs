//! Compares computed sizes with requested bytes, and measured sizes with usable bytes. A counting allocator counts
//! both.

#[path = "statics.rs"]
mod statics;
#[path = "tags.rs"]
#[allow(unsafe_code, reason = "calls the allocator")]
mod tags;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::ffi::CString;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use allocators::{Counting, Random, grown};
use memory_reporter::{
    MallocSizeOf, MallocSizeOfOps, amounts, computed_size_of, malloc_size_of, measure::SkipReason,
};

memory_reporter::global_allocator!(Counting);

/// Asserts that both readings are exact for the value.
fn exact<T: MallocSizeOf>(name: &str, make: impl FnOnce() -> T) {
    let (value, held) = grown(make);
    assert_eq!(computed_size_of(&value) as isize, held.asked, "computed: {name}");
    assert_eq!(malloc_size_of(&value) as isize, held.usable, "measured: {name}");
}

/// Takes a value that shows only the inside of some blocks. Asserts that its computed size is exact, and that its
/// measured size is between the requested and the usable bytes.
fn exact_computed<T: MallocSizeOf>(name: &str, make: impl FnOnce() -> T) {
    let (value, held) = grown(make);
    assert_eq!(computed_size_of(&value) as isize, held.asked, "computed: {name}");
    let measured = malloc_size_of(&value) as isize;
    assert!((held.asked..=held.usable).contains(&measured), "measured: {name}: {measured} {held:?}");
}

fn text(n: usize) -> String {
    "x".repeat(n)
}

#[test]
fn blocks_whose_start_is_visible_are_exact_in_both_readings() {
    exact("String with room", || {
        let mut s = String::with_capacity(100);
        s.push_str("hello");
        s
    });
    exact("empty String", String::new);
    exact("Vec<u8> of 64 MiB", || vec![1_u8; 64 << 20]);
    exact("Vec<u64> with room", || {
        let mut v = Vec::with_capacity(1000);
        v.push(1_u64);
        v
    });
    exact("Vec<String>", || (0..1000).map(|_| text(7)).collect::<Vec<_>>());
    exact("Vec<()>", || vec![(); 1000]);
    exact("Vec<Vec<Vec<u8>>>", || vec![vec![vec![1_u8; 10]; 10]; 10]);
    exact("Box<u64>", || Box::new(7_u64));
    exact("Box<str>", || text(40).into_boxed_str());
    exact("Box<[String]>", || (0..100).map(text).collect::<Box<[_]>>());
    exact("Vec<Box<Box<u64>>>", || (0..100_u64).map(|i| Box::new(Box::new(i))).collect::<Vec<_>>());
    exact("Box<()>", || Box::new(()));
    exact("Option<Vec<String>>", || Some((0..10).map(text).collect::<Vec<_>>()));
    exact("Result", || Ok::<String, String>(text(9)));
    exact("tuple", || (text(3), 5_u8, vec![1_u16; 3]));
    exact("[String; 40]", || std::array::from_fn::<_, 40, _>(text));
    exact("BinaryHeap with room", || {
        let mut heap = BinaryHeap::with_capacity(1000);
        heap.extend(0..10_u64);
        heap
    });
    exact("wrapped VecDeque", || {
        let mut deque = VecDeque::with_capacity(1000);
        deque.extend(0..1000_u32);
        for i in 0..500 {
            deque.pop_front();
            deque.push_back(i);
        }
        deque
    });
    exact("CString", || CString::new(text(33)).unwrap());
    exact("PathBuf", || PathBuf::from(text(77)));
    exact("Cow::Owned", || Cow::<[u8]>::Owned(vec![1; 1000]));
    exact("Cow::Borrowed", || Cow::Borrowed("static"));
    exact("Mutex<Vec<u8>>", || Mutex::new(vec![1_u8; 1000]));
    exact("RwLock<String>", || RwLock::new(text(100)));
    exact("RefCell<String>", || RefCell::new(text(100)));
    exact("OnceLock<String>", || OnceLock::from(text(100)));
    exact("Pin<Box>", || Box::pin(text(100)));
    exact("Vec<&'static str>", || vec!["static"; 100]);
}

#[repr(align(64))]
#[derive(Debug)]
struct Aligned([u8; 64]);

impl MallocSizeOf for Aligned {
    const NEEDS_WALK: bool = false;

    fn size_of_excluding_this<R: memory_reporter::Reading>(&self, _: &mut MallocSizeOfOps<R>) -> usize {
        usize::from(self.0[0]) // always 0 here
    }
}

#[test]
fn blocks_that_show_only_their_inside_are_exact_as_computed() {
    exact("Arc<str>", || Arc::<str>::from(text(40)));
    exact("Arc<[u64]>", || Arc::<[u64]>::from(vec![1; 100]));
    exact("Rc<String>", || Rc::new(text(40)));
    exact("aligned in Arc", || Arc::new(Aligned([0; 64])));
    exact_computed("LinkedList<u64>", || (0..1000_u64).collect::<LinkedList<_>>());
    exact_computed("LinkedList of aligned", || (0..10).map(|_| Aligned([0; 64])).collect::<LinkedList<_>>());
    exact_computed("fresh VecDeque", || (0..1000_u32).collect::<VecDeque<_>>());
    exact_computed("HashMap of 1", || HashMap::from([(1_u64, 1_u64)]));
    exact_computed("HashMap of aligned", || HashMap::from([(1_u8, Aligned([0; 64]))]));
    exact_computed("empty HashMap", HashMap::<u64, u64>::new);
    exact_computed("HashMap<u64, u8>", || (0..5000_u64).map(|i| (i, 0_u8)).collect::<HashMap<_, _>>());
    exact_computed("HashSet<String>", || (0..5000).map(|i| i.to_string()).collect::<HashSet<_>>());
    exact_computed("BTreeMap of 1", || BTreeMap::from([(1_u64, 1_u64)]));
    exact_computed("empty BTreeMap", BTreeMap::<u64, u64>::new);
    exact_computed("BTreeMap by collect", || (0..5000_u64).map(|i| (i, i)).collect::<BTreeMap<_, _>>());
    exact_computed("BTreeMap sorted", || {
        let mut map = BTreeMap::new();
        (0..5000_u64).for_each(|i| {
            map.insert(i, i);
        });
        map
    });
    exact_computed("BTreeMap of Strings", || {
        let mut random = Random::new(5);
        (0..5000).map(|_| (random.number().to_string(), Box::new(1_u32))).collect::<BTreeMap<_, _>>()
    });
    exact_computed("BTreeSet<u8>", || (0..200_u8).collect::<BTreeSet<_>>());
    exact_computed("BTreeMap of (), one entry", || BTreeMap::from([((), 7_u32)]));
}

#[test]
fn shared_pointers_count_once() {
    exact("100 clones of one Rc", || {
        let one = Rc::new(7_u64);
        vec![one; 100]
    });
    exact("graph of Arcs", || {
        let nodes: Vec<Arc<(u64, String)>> = (0..100).map(|i| Arc::new((i, text(i as usize)))).collect();
        let mut random = Random::new(3);
        let mut edges = Vec::with_capacity(1000);
        edges.extend((0..1000).map(|_| Arc::clone(&nodes[random.below(100) as usize])));
        (nodes, edges)
    });
}

#[test]
fn three_thousand_random_btrees_are_exact() {
    let mut random = Random::new(99);
    for round in 0..3000 {
        let n = random.below(if round % 10 == 0 { 4000 } else { 300 }) + 1;
        let (map, held) = grown(|| {
            let mut map: BTreeMap<u64, [u8; 3]> =
                if round % 3 == 0 { (0..n).map(|i| (i, [0; 3])).collect() } else { BTreeMap::new() };
            for i in 0..n {
                match round % 3 {
                    0 => drop(map.remove(&random.below(n))),
                    1 => drop(map.insert(random.number(), [0; 3])),
                    _ => {
                        map.insert(i, [0; 3]);
                        if i % 3 == 0 {
                            map.remove(&random.below(i + 1));
                        }
                    }
                }
            }
            map
        });
        if !map.is_empty() {
            assert_eq!(computed_size_of(&map) as isize, held.asked, "round {round}, {} entries", map.len());
        }
    }
}

#[test]
fn three_thousand_random_hash_tables_are_exact_but_for_one_in_a_thousand_after_removals() {
    // A fixed hasher makes the test repeatable: the places of entries depend on their hashes.
    type Table = HashMap<u64, u64, BuildHasherDefault<DefaultHasher>>;
    let mut random = Random::new(7);
    let mut missed = 0;
    for round in 0..3000 {
        let n = random.below(6000) + 1;
        let (mut map, held) = grown(|| (0..n).map(|i| (i ^ 0x5555, i)).collect::<Table>());
        assert_eq!(computed_size_of(&map) as isize, held.asked, "round {round}, {n} entries");
        // Removing entries frees no memory: the table stays.
        for i in random.below(n)..n {
            map.remove(&(i ^ 0x5555));
        }
        missed += usize::from(computed_size_of(&map) as isize != held.asked);
    }
    assert!(missed <= 3, "the sizes of {missed} of 3000 tables are wrong after removals");
}

#[test]
fn a_list_of_a_million_nodes_is_measured_on_a_small_stack() {
    struct Node(Option<Box<Node>>);
    impl MallocSizeOf for Node {
        fn size_of_excluding_this<R: memory_reporter::Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
            ops.field("0", &self.0)
        }
    }
    let walk = || {
        let mut list = Node(None);
        for _ in 0..1_000_000 {
            list = Node(Some(Box::new(list)));
        }
        assert_eq!(computed_size_of(&list), 8_000_000);
        assert_eq!(malloc_size_of(&list), 24_000_000);
        MallocSizeOfOps::computed().erased(|ops| assert_eq!(list.size_of_excluding_this(ops), 8_000_000));
        while let Some(next) = list.0.take() {
            list = *next;
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(walk).unwrap().join().unwrap();
}

#[test]
fn what_is_locked_or_borrowed_is_skipped_and_said() {
    let mutex = Mutex::new(text(100));
    let cell = RefCell::new(text(100));
    let lock = RwLock::new(text(100));
    let (_held, _borrowed, _written) = (mutex.lock().unwrap(), cell.borrow_mut(), lock.write().unwrap());
    let mut ops = MallocSizeOfOps::computed();
    let bytes = [
        mutex.size_of_excluding_this(&mut ops),
        cell.size_of_excluding_this(&mut ops),
        lock.size_of_excluding_this(&mut ops),
        std::cell::Cell::new(text(9)).size_of_excluding_this(&mut ops),
    ];
    assert_eq!(bytes, [0; 4]);
    let reasons: Vec<_> = ops.skipped().iter().map(|skipped| skipped.reason).collect();
    assert_eq!(reasons, [SkipReason::Locked, SkipReason::Borrowed, SkipReason::Locked, SkipReason::Opaque]);
}

#[test]
fn a_poisoned_lock_is_read() {
    let mutex = Mutex::new(vec![1_u8; 100]);
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _guard = mutex.lock();
        panic!("poisons the lock");
    }));
    assert!(mutex.is_poisoned());
    assert_eq!(computed_size_of(&mutex), 100);
}

#[test]
fn cycles_end() {
    struct Loop(RefCell<Option<Rc<Loop>>>);
    impl MallocSizeOf for Loop {
        fn size_of_excluding_this<R: memory_reporter::Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
            ops.field("0", &self.0)
        }
    }
    let (first, held) = grown(|| {
        let first = Rc::new(Loop(RefCell::new(None)));
        let second = Rc::new(Loop(RefCell::new(Some(Rc::clone(&first)))));
        *first.0.borrow_mut() = Some(second);
        first
    });
    assert_eq!(computed_size_of(&first) as isize, held.asked);
    first.0.borrow_mut().take();
}

#[test]
fn heap_allocated_follows_every_thread() {
    // Other tests allocate at the same time, so only a difference far above their memory is meaningful.
    const BIG: usize = 1 << 30;
    let before = amounts::heap_allocated().unwrap() as i64;
    let blocks: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| Vec::with_capacity(BIG))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let during = amounts::heap_allocated().unwrap() as i64;
    drop(blocks);
    let after = amounts::heap_allocated().unwrap() as i64;
    let near = |bytes: i64, expected: i64| (bytes - expected).abs() < BIG as i64 / 2;
    assert!(near(during - before, 4 * BIG as i64), "{before} {during}");
    assert!(near(after - before, 0), "{before} {after}");
}
