//! A heap with many kinds of values and known contents. Usage: `DMD=--mode=scan typed_heap_victim DUMP`. The program
//! writes the dump and prints a line, and ends when its standard input ends.

#![allow(clippy::print_stdout, reason = "the test reads it")]

use std::alloc::System;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::Read as _;
use std::sync::{Arc, OnceLock};

#[global_allocator]
static GLOBAL: dmd::Dmd<System> = dmd::Dmd::new(System);

static STORE: OnceLock<Store> = OnceLock::new();

struct Store {
    users: Vec<User>,
    scores: HashMap<u32, u64>,
    index: BTreeMap<u64, [u64; 2]>,
    jobs: Vec<Box<dyn Run>>,
    first: Option<Box<Node>>,
}

struct User {
    name: String,
    email: Box<str>,
    session: Arc<Session>,
}

struct Session {
    #[expect(dead_code, reason = "it takes room")]
    id: u64,
    waiting: VecDeque<u16>,
    shapes: Vec<Shape>,
}

/// 72 bytes: a word for the variant, and 8, 1, 0 or 4 further words.
#[expect(dead_code, reason = "they take room")]
enum Shape {
    Polygon([u64; 8]),
    Circle(u64),
    Dot,
    /// Four words: one word for the inner variant, and three numbers.
    Nested(Option<[u64; 3]>),
}

struct Node {
    #[expect(dead_code, reason = "it takes room")]
    value: u64,
    next: Option<Box<Node>>,
}

trait Run: Send + Sync {
    fn run(&self) -> usize;
}

struct Copies {
    data: Vec<u64>,
}

struct Nothing([u64; 5]);

impl Run for Copies {
    fn run(&self) -> usize {
        self.data.len()
    }
}

impl Run for Nothing {
    fn run(&self) -> usize {
        self.0.len()
    }
}

fn user(number: usize, session: &Arc<Session>) -> User {
    // 32 bytes of room, 6 of them used.
    let mut name = String::with_capacity(32);
    name.push_str(&format!("user {number}"));
    User { name, email: "somebody@example.org".into(), session: Arc::clone(session) }
}

fn store() -> Store {
    // A queue with room for 64 numbers, 3 of them used.
    let mut waiting = VecDeque::with_capacity(64);
    waiting.extend([1, 2, 3]);
    // 12 shapes: 2 polygons, 3 circles, 4 dots, and 3 nested ones, 2 of them empty.
    let shapes = (0..12_u64)
        .map(|number| match number {
            0..2 => Shape::Polygon([number; 8]),
            2..5 => Shape::Circle(number),
            5..9 => Shape::Dot,
            _ => Shape::Nested((number == 9).then_some([number; 3])),
        })
        .collect();
    let session = Arc::new(Session { id: 7, waiting, shapes });
    // Room for 10 users, 4 of them used.
    let mut users = Vec::with_capacity(10);
    users.extend((0..4).map(|number| user(number, &session)));
    // 128 buckets, 100 of them used.
    let scores: HashMap<u32, u64> = (0..100).map(|number| (number, 1)).collect();
    // 30 keys.
    let index = (0..30).map(|number| (number, [number; 2])).collect();
    let jobs: Vec<Box<dyn Run>> = vec![
        // Room for 20 numbers, all of them used.
        Box::new(Copies { data: vec![1; 20] }),
        Box::new(Nothing([0; 5])),
    ];
    // A list of 50 nodes.
    let first = (0..50).fold(None, |next, value| Some(Box::new(Node { value, next })));
    Store { users, scores, index, jobs, first }
}

fn main() {
    let dump = std::env::args_os().nth(1).expect("a file");
    let store = STORE.get_or_init(store);
    dmd::dump(&dump).expect("a dump");
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("standard input");
    let sum = store.users.iter().map(|user| {
        user.name.len() + user.email.len() + user.session.waiting.len() + user.session.shapes.len()
    });
    let jobs = store.jobs.iter().map(|job| job.run());
    let list = std::iter::successors(store.first.as_deref(), |node| node.next.as_deref()).count();
    println!("{}", sum.chain(jobs).sum::<usize>() + store.scores.len() + store.index.len() + list);
}
