//! All containers of the standard library, trait objects, closures, shared pointers, enums, thread-locals and locals.

#![allow(dead_code, reason = "only the types and the blocks count")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};

pub trait Shape {
    fn area(&self) -> f64;
}

pub struct Circle {
    pub radius: f64,
    pub label: String,
}

pub struct Polygon {
    pub points: Vec<(f64, f64)>,
    pub tag: Box<str>,
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        self.radius * self.radius * 3.0 + self.label.len() as f64
    }
}

impl Shape for Polygon {
    fn area(&self) -> f64 {
        self.points.iter().map(|point| point.0 * point.1).sum::<f64>() + self.tag.len() as f64
    }
}

pub enum Token {
    Word(String),
    Number(u64),
    List(Vec<Token>),
    Boxed(Box<Token>),
    Nothing,
}

pub struct Node {
    pub name: String,
    pub below: Vec<Arc<Node>>,
    pub parent: Option<Weak<Node>>,
    pub shape: Box<dyn Shape + Send + Sync>,
}

pub struct Linked {
    pub number: u64,
    pub next: Option<Box<Linked>>,
}

pub enum Role {
    Admin,
    Named(Arc<str>),
    Custom { name: String, rights: Vec<u16> },
}

pub struct User {
    pub id: u64,
    pub email: Option<String>,
    pub roles: Vec<Role>,
    pub picture: Option<Box<[u8]>>,
}

pub struct Job {
    pub run: Box<dyn Fn(u64) -> u64 + Send + Sync>,
    pub payload: Vec<u8>,
}

pub struct Store {
    pub users: HashMap<String, User>,
    pub by_age: BTreeMap<u32, Vec<u64>>,
    pub queue: VecDeque<Job>,
    pub seen: HashSet<u64>,
    pub names: BTreeSet<String>,
    pub heap: BinaryHeap<(u64, String)>,
}

pub static STORE: OnceLock<RwLock<Store>> = OnceLock::new();
pub static TOKENS: Mutex<Vec<Token>> = Mutex::new(Vec::new());
pub static GRAPH: OnceLock<Arc<Node>> = OnceLock::new();

thread_local! {
    pub static LOCAL: RefCell<Vec<Rc<Linked>>> = const { RefCell::new(Vec::new()) };
}

#[inline(never)]
fn user(id: u64, admin: &Arc<str>) -> User {
    let role = |number| match number {
        0 => Role::Admin,
        1 => Role::Named(admin.clone()),
        _ => Role::Custom { name: format!("role {id} {number}"), rights: vec![1; number as usize] },
    };
    User {
        id,
        email: (id % 3 == 0).then(|| format!("user{id}@example.com")),
        roles: (0..id % 4).map(role).collect(),
        picture: (id % 5 == 0).then(|| vec![id as u8; 40].into_boxed_slice()),
    }
}

#[inline(never)]
fn store(count: u64) -> Store {
    let mut all = Store {
        users: HashMap::new(),
        by_age: BTreeMap::new(),
        queue: VecDeque::new(),
        seen: HashSet::new(),
        names: BTreeSet::new(),
        heap: BinaryHeap::new(),
    };
    let admin: Arc<str> = Arc::from("role-administrator");
    truth::is("Arc<str>", &raw const *admin, "ArcInner<str>");
    for number in 0..count {
        all.users.insert(format!("login-{number}"), user(number, &admin));
        all.by_age.entry((number % 97) as u32).or_default().push(number);
        let (times, big) = (number * 3, vec![number; 2]);
        let run = Box::new(move |given| given + times + big[0]);
        truth::is("Box<dyn Fn>", &*run, "own::store::{closure#0}");
        all.queue.push_back(Job { run, payload: vec![0; (number % 50) as usize + 1] });
        all.seen.insert(number * 7919);
        all.names.insert(format!("name of {number:08}"));
        all.heap.push((number ^ 0x5a5a, "h".repeat((number % 30) as usize + 1)));
    }
    for (name, user) in &all.users {
        truth::is("HashMap", name, "table (String, own::User)");
        truth::is("keys of a HashMap", name.as_ptr(), "str");
        user.email.iter().for_each(|email| truth::is("Option<String>", email.as_ptr(), "str"));
        user.picture.iter().for_each(|bytes| truth::is("Option<Box<[u8]>>", bytes.as_ptr(), "[u8]"));
        for role in &user.roles {
            truth::is("Vec of enums", role, "[own::Role]");
            if let Role::Custom { name, rights } = role {
                truth::is("fields of a variant", name.as_ptr(), "str");
                truth::is("fields of a variant", rights.as_ptr(), "[u16]");
            }
        }
    }
    for (age, numbers) in &all.by_age {
        truth::is("BTreeMap", age, "*Node<u32, Vec<u64>>");
        truth::is("values of a BTreeMap", numbers.as_ptr(), "[u64]");
    }
    all.names.iter().for_each(|name| truth::is("BTreeSet", name, "*Node<String, SetValZST>"));
    all.seen.iter().for_each(|number| truth::is("HashSet", number, "table (u64, ())"));
    for job in &all.queue {
        truth::is("VecDeque", job, "[own::Job]");
        truth::is("Vec<u8>", job.payload.as_ptr(), "[u8]");
    }
    for one in &all.heap {
        truth::is("BinaryHeap", one, "[(u64, String)]");
        truth::is("values of a BinaryHeap", one.1.as_ptr(), "str");
    }
    all
}

#[inline(never)]
fn tokens(count: u64, depth: u32) -> Vec<Token> {
    let token = |number| match number % 5 {
        0 => Token::Word(format!("word {number} {depth}")),
        1 => Token::Number(number),
        2 if depth > 0 => Token::List(tokens(6, depth - 1)),
        3 => Token::Boxed(Box::new(Token::Word("boxed".to_string() + &number.to_string()))),
        _ => Token::Nothing,
    };
    let all: Vec<Token> = (0..count).map(token).collect();
    for one in &all {
        truth::is("enums in enums", one, "[own::Token]");
        match one {
            Token::Word(text) => truth::is("enums in enums", text.as_ptr(), "str"),
            Token::Boxed(inside) => truth::is("enums in enums", &**inside, "own::Token"),
            _ => {}
        }
    }
    all
}

#[inline(never)]
fn graph(depth: u32, id: &mut u64) -> Arc<Node> {
    *id += 1;
    let below = if depth == 0 { vec![] } else { (0..4).map(|_| graph(depth - 1, id)).collect() };
    let shape: Box<dyn Shape + Send + Sync> = if *id % 2 == 0 {
        let one = Box::new(Circle { radius: *id as f64, label: format!("c{id}") });
        truth::is("Box<dyn Shape>", &*one, "own::Circle");
        one
    } else {
        let one = Box::new(Polygon { points: vec![(1.0, 2.0); 3], tag: "polygon".into() });
        truth::is("Box<dyn Shape>", &*one, "own::Polygon");
        truth::is("fields behind dyn", one.points.as_ptr(), "[(f64, f64)]");
        truth::is("fields behind dyn", one.tag.as_ptr(), "str");
        one
    };
    let node = Arc::new(Node { name: format!("node {id}"), below, parent: None, shape });
    truth::is("Arc", &*node, "ArcInner<own::Node>");
    node.below.first().into_iter().for_each(|first| truth::is("Vec<Arc>", first, "[Arc<own::Node>]"));
    node
}

fn list(construct: &str, count: u64) -> Option<Box<Linked>> {
    let mut head = None;
    for number in 0..count {
        let one = Box::new(Linked { number, next: head });
        truth::is(construct, &*one, "own::Linked");
        head = Some(one);
    }
    head
}

fn main() {
    truth::open();
    let count = 1000;
    let _ = STORE.set(RwLock::new(store(count)));
    *TOKENS.lock().expect("no panic") = tokens(60, 3);
    let mut id = 0;
    let _ = GRAPH.set(graph(4, &mut id));
    LOCAL.with_borrow_mut(|all| {
        for number in 0..100 {
            let one = Rc::new(Linked { number, next: list("behind a thread-local", 20) });
            truth::is("Rc", &*one, "RcInner<own::Linked>");
            all.push(one);
        }
    });
    let on_stack: Vec<HashMap<u32, Box<[u64; 8]>>> = (1..50)
        .map(|size| {
            let all: HashMap<u32, Box<[u64; 8]>> =
                (0..size).map(|key| (key, Box::new([u64::from(key); 8]))).collect();
            for (key, array) in &all {
                truth::is("locals", key, "table (u32, Box<[u64; 8]>)");
                truth::is("locals", &**array, "[u64; 8]");
            }
            all
        })
        .collect();
    let mut linked = LinkedList::new();
    for number in 0..1000_u64 {
        linked.push_back((number, number.to_string()));
    }
    for one in &linked {
        truth::is("LinkedList", one, "linked_list::Node<(u64, String)>");
        truth::is("values of a LinkedList", one.1.as_ptr(), "str");
    }
    let slices: Vec<Arc<[u32]>> =
        (0..500_u32).map(|number| (0..=number % 20).collect::<Vec<_>>().into()).collect();
    slices.iter().for_each(|one| truth::is("Arc<[T]>", one.as_ptr(), "ArcInner<[u32]>"));
    truth::wait();
    black_box((&on_stack, &linked, &slices));
    std::process::exit(black_box(id as i32) - 341);
}
