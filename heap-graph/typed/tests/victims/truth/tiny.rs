//! A small selection: trees of values behind `dyn`, nested enums, a map, a B-tree, a queue of shared values, and
//! futures.

#![allow(dead_code, reason = "only the types and the blocks count")]

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

trait Shape: Send + Sync {
    fn area(&self) -> u64;
}

struct Named(u64, String);
struct Points(Vec<u32>);

impl Shape for Named {
    fn area(&self) -> u64 {
        self.0
    }
}

impl Shape for Points {
    fn area(&self) -> u64 {
        self.0.len() as u64
    }
}

struct Node {
    name: String,
    below: Vec<Node>,
    next: Option<Box<Node>>,
    shape: Box<dyn Shape>,
}

enum Token {
    Word(String),
    Number(u64),
    List(Vec<Token>),
    Boxed(Box<Token>),
    Empty,
}

type Task = Pin<Box<dyn Future<Output = u64> + Send + Sync>>;

struct Store {
    map: HashMap<String, Node>,
    tree: BTreeMap<u32, Vec<Token>>,
    queue: VecDeque<Arc<Node>>,
    tasks: Vec<Task>,
}

static STORE: OnceLock<Store> = OnceLock::new();

fn text(text: String) -> String {
    truth::is("String", text.as_ptr(), "str");
    text
}

fn node(depth: u64) -> Node {
    let below: Vec<Node> = (0..depth % 3).map(|_| node(depth / 3)).collect();
    below.first().into_iter().for_each(|first| truth::is("Vec", first, "[tiny::Node]"));
    let next = (depth > 3).then(|| Box::new(node(depth / 2)));
    next.iter().for_each(|next| truth::is("Box", &raw const **next, "tiny::Node"));
    let shape: Box<dyn Shape> = if depth.is_multiple_of(2) {
        let named = Box::new(Named(depth, text(format!("named {depth}"))));
        truth::is("Box<dyn Shape>", &raw const *named, "tiny::Named");
        named
    } else {
        let points = Box::new(Points(vec![1; 5]));
        truth::is("Box<dyn Shape>", &raw const *points, "tiny::Points");
        truth::is("Vec", points.0.as_ptr(), "[u32]");
        points
    };
    Node { name: text(format!("node {depth}")), below, next, shape }
}

fn token(depth: u64) -> Token {
    match depth % 5 {
        0 => Token::Word(text(format!("word {depth}"))),
        1 => Token::Number(depth),
        2 => Token::List(tokens(depth / 4)),
        3 => {
            let token = Box::new(token(depth / 2));
            truth::is("Box", &raw const *token, "tiny::Token");
            Token::Boxed(token)
        }
        _ => Token::Empty,
    }
}

fn tokens(count: u64) -> Vec<Token> {
    let all: Vec<Token> = (0..count).map(token).collect();
    all.first().into_iter().for_each(|first| truth::is("Vec", first, "[tiny::Token]"));
    all
}

struct Never;

impl Future for Never {
    type Output = ();
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

async fn inner(number: u64) -> u64 {
    let own = text(format!("task {number}"));
    Never.await;
    own.len() as u64
}

async fn outer(number: u64) -> u64 {
    let list = vec![number; 5];
    truth::is("locals of tasks", list.as_ptr(), "[u64]");
    inner(number).await + list.len() as u64
}

fn task(number: u64) -> Task {
    let mut task = Box::pin(outer(number));
    truth::is("tasks", &raw const *task, "tiny::outer::{async_fn#0}");
    let _ = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    task
}

fn main() {
    truth::open();
    let store = Store {
        map: (0..20).map(|number| (text(format!("key {number}")), node(number * 7))).collect(),
        tree: (0..30).map(|number| (number, tokens(number.into()))).collect(),
        queue: (0..9).map(|number| Arc::new(node(number))).collect(),
        tasks: (0..5).map(task).collect(),
    };
    store.map.keys().for_each(|key| truth::is("HashMap", key, "table (String, tiny::Node)"));
    store.tree.keys().for_each(|key| truth::is("BTreeMap", key, "*Node<u32, Vec<tiny::Token>>"));
    for shared in &store.queue {
        truth::is("VecDeque", shared, "[Arc<tiny::Node>]");
        truth::is("Arc", &raw const **shared, "ArcInner<tiny::Node>");
    }
    let area: u64 = store.map.values().map(|node| node.shape.area()).sum();
    assert!(STORE.set(store).is_ok() && area > 0);
    truth::wait();
    std::process::exit(0);
}
