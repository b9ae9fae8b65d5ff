//! Random values under DMD: each reading returns the bytes that the allocator has given for a value, slop included. It
//! does not matter whether Rust shows the start of a block or only its inside.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::ffi::{CString, OsString};
use std::fmt::Debug;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::sync::{Arc, Mutex, Weak};

use memory_reporter::{
    Collection, MallocSizeOf, MemoryReporter, Reports, malloc_size_of, measure::size_summary, size_tree,
};
use tests::{Random, grown};

struct Reporter<'a, T>(&'a T);

impl<T: MallocSizeOf> MemoryReporter for Reporter<'_, T> {
    fn collect_reports(&self, out: &mut Reports) {
        out.heap("explicit/value", self.0, "Memory used by the value.");
    }
}

fn text(random: &mut Random) -> String {
    let mut text = String::with_capacity(random.below(80) as usize);
    text.push_str(&"x".repeat(random.below(70) as usize));
    text
}

fn texts(random: &mut Random) -> impl Iterator<Item = String> {
    (0..random.below(30)).map(|_| text(random))
}

fn numbers(random: &mut Random, most: u64) -> Vec<u64> {
    (0..random.below(most)).map(|_| random.below(1000)).collect()
}

fn pairs(random: &mut Random, most: u64) -> impl Iterator<Item = (u64, u8)> + use<> {
    numbers(random, most).into_iter().map(|n| (n, n as u8))
}

/// Returns a function that selects the entries to keep, perhaps none.
fn keeps(random: &mut Random) -> impl FnMut() -> bool + use<> {
    let share = random.below(4);
    let mut random = random.clone();
    move || random.below(3) < share
}

/// The differences between readings and the allocator, by kind of value.
#[derive(Default)]
struct Comparison {
    values: usize,
    differing: BTreeMap<&'static str, Vec<(Bytes, isize)>>,
}

/// The usable bytes of a value according to each reading.
#[derive(Debug)]
struct Bytes {
    reported: usize,
    measured: usize,
    summed: usize,
    tree: usize,
}

impl Bytes {
    fn of<T: MallocSizeOf>(value: &T) -> Self {
        let set = Collection::new().with(&Reporter(value)).collect();
        Self {
            reported: set.iter().next().expect("one report").amount as usize,
            measured: malloc_size_of(value),
            summed: size_summary(value).usable,
            tree: size_tree(value).total().usable,
        }
    }

    fn all(&self, condition: impl Fn(usize) -> bool) -> bool {
        [self.reported, self.measured, self.summed, self.tree].into_iter().all(condition)
    }
}

impl Comparison {
    /// Checks a value in which each block shows the address of at least one byte.
    fn exact<T: MallocSizeOf>(&mut self, kind: &'static str, make: impl FnOnce() -> T) {
        self.check(kind, make, |bytes, held| bytes == held);
    }

    /// Checks a value that hides the address of a block.
    fn at_most<T: MallocSizeOf>(&mut self, kind: &'static str, make: impl FnOnce() -> T) {
        self.check(kind, make, |bytes, held| bytes <= held);
    }

    fn check<T: MallocSizeOf>(
        &mut self,
        kind: &'static str,
        make: impl FnOnce() -> T,
        holds: impl Fn(usize, usize) -> bool,
    ) {
        let (value, held) = grown(make);
        let bytes = Bytes::of(&value);
        self.values += 1;
        if !bytes.all(|bytes| holds(bytes, held.usable as usize)) {
            self.differing.entry(kind).or_default().push((bytes, held.usable));
        }
    }

    fn sequences(&mut self, random: &mut Random) {
        self.exact("String", || text(random));
        self.exact("Vec", || numbers(random, 90));
        self.exact("Vec of texts", || texts(random).collect::<Vec<_>>());
        self.exact("VecDeque", || VecDeque::from(numbers(random, 90)));
        self.exact("rotated VecDeque", || {
            let mut deque = VecDeque::from(numbers(random, 90));
            for _ in 0..random.below(50) {
                let front = deque.pop_front().unwrap_or(1);
                deque.push_back(front);
            }
            deque
        });
        self.exact("thinned VecDeque", || {
            let mut deque = VecDeque::from(numbers(random, 90));
            let mut keeps = keeps(random);
            deque.rotate_left(deque.len() / 2);
            deque.retain(|_| keeps());
            deque
        });
        self.exact("LinkedList", || numbers(random, 60).into_iter().collect::<LinkedList<_>>());
        self.exact("BinaryHeap", || BinaryHeap::from(numbers(random, 60)));
        self.exact("texts of the system", || {
            let os: OsString = text(random).into();
            (
                os,
                PathBuf::from(text(random)),
                CString::new(text(random)).expect("text without a null"),
                Cow::Borrowed("text"),
            )
        });
    }

    fn maps(&mut self, random: &mut Random) {
        self.exact("HashMap", || pairs(random, 200).collect::<HashMap<_, _>>());
        self.exact("HashSet of texts", || texts(random).collect::<HashSet<_>>());
        self.exact("thinned HashMap", || {
            let mut map: HashMap<_, _> = pairs(random, 200).chain([(5000, 1)]).collect();
            let mut keeps = keeps(random);
            map.retain(|key, _| *key == 5000 || keeps());
            map
        });
        self.exact("BTreeMap", || pairs(random, 200).collect::<BTreeMap<_, _>>());
        self.exact("thinned BTreeMap", || {
            let mut map: BTreeMap<_, _> = pairs(random, 200).chain([(5000, 1)]).collect();
            let mut keeps = keeps(random);
            map.retain(|key, _| *key == 5000 || keeps());
            map
        });
        self.exact("BTreeSet of texts", || texts(random).collect::<BTreeSet<_>>());
        self.exact("map of maps", || {
            let map =
                |random: &mut Random| numbers(random, 30).into_iter().map(|n| (n, text(random))).collect();
            (0..random.below(9)).map(|n| (n, map(random))).collect::<HashMap<_, BTreeMap<_, _>>>()
        });
        // Without entries, std shows no address of the table, and no address of the last leaf.
        self.at_most("emptied HashMap", || {
            let mut map: HashMap<_, _> = pairs(random, 200).collect();
            map.clear();
            map
        });
        self.at_most("emptied BTreeMap", || {
            let mut map: BTreeMap<_, _> = pairs(random, 200).collect();
            map.retain(|_, _| false);
            map
        });
    }

    fn pointers(&mut self, random: &mut Random) {
        self.exact("Rc", || Rc::new(text(random)));
        self.exact("shared Rc", || {
            let one = Rc::new(numbers(random, 40));
            vec![one; random.below(5) as usize + 1]
        });
        self.exact("Arc<str>", || Arc::<str>::from(text(random)));
        self.exact("shared Arc<[u64]>", || {
            let one = Arc::<[u64]>::from(numbers(random, 5));
            (Arc::clone(&one), one)
        });
        self.exact("Arc without a value", || (Arc::new(()), Arc::<str>::default(), Rc::<str>::default()));
        self.exact("shared Arc without a value", || {
            let one = Arc::new(());
            vec![one; 3]
        });
        self.exact("Weak", || {
            let strong = Arc::new(text(random));
            (Arc::downgrade(&strong), strong, Weak::<u64>::new())
        });
        self.exact("Box<dyn Debug>", || Box::new([1_u16; 9]) as Box<dyn Debug>);
        self.exact("Mutex", || Mutex::new(RefCell::new(numbers(random, 40))));
        self.exact("tuple", || {
            (text(random), Some(Box::new(numbers(random, 9))), [text(random), text(random)])
        });
        self.exact("small", || (Box::new(1_u8), vec![1_u8; random.below(9) as usize], Rc::new(())));
    }
}

fn compare() {
    let mut comparison = Comparison::default();
    let mut random = Random::new(38);
    while comparison.values < 3000 {
        comparison.sequences(&mut random);
        comparison.maps(&mut random);
        comparison.pointers(&mut random);
    }
    let mut text = format!("of {} values", comparison.values);
    for (kind, of_kind) in &comparison.differing {
        text.push_str(&format!("\n{kind}: {} differ: {:?}", of_kind.len(), &of_kind[..of_kind.len().min(6)]));
    }
    assert!(comparison.differing.is_empty(), "{text}");
}

#[test]
fn reports_have_the_bytes_that_the_allocator_holds() {
    if std::env::var_os("DMD").is_some() {
        return compare();
    }
    let test = concat!(module_path!(), "::reports_have_the_bytes_that_the_allocator_holds");
    let test = test.split_once("::").unwrap().1;
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("DMD", "--mode=dark-matter --stacks=partial --quiet")
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
