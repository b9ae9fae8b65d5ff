//! The values to measure. A random generator with a fixed seed makes them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use memory_reporter::MallocSizeOf;
use tests::Random;

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
pub(crate) struct Record {
    pub(crate) id: u64,
    pub(crate) score: f64,
    pub(crate) rest: (u64, u64),
}

#[derive(
    MallocSizeOf,
    allocative::Allocative,
    deepsize::DeepSizeOf,
    get_size2::GetSize,
    heapsize_derive::HeapSizeOf,
    loupe::MemoryUsage,
    malloc_size_of_derive::MallocSizeOf,
    parity_util_mem::MallocSizeOf,
)]
pub(crate) struct Node {
    pub(crate) value: u64,
    pub(crate) left: Option<Box<Node>>,
    pub(crate) right: Option<Box<Node>>,
}

#[derive(
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
#[mem_size(rec)]
pub(crate) struct Leaf {
    pub(crate) id: u64,
    pub(crate) name: String,
}

/// The edges are clones of the nodes.
#[derive(
    MallocSizeOf,
    allocative::Allocative,
    datasize::DataSize,
    deepsize::DeepSizeOf,
    get_size2::GetSize,
    heapsize_derive::HeapSizeOf,
    loupe::MemoryUsage,
    mem_dbg::MemSize,
    parity_util_mem::MallocSizeOf,
)]
#[mem_size(rec)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Arc<Leaf>>,
    pub(crate) edges: Vec<Arc<Leaf>>,
}

#[derive(
    MallocSizeOf,
    allocative::Allocative,
    deepsize::DeepSizeOf,
    get_size2::GetSize,
    heapsize_derive::HeapSizeOf,
    loupe::MemoryUsage,
    malloc_size_of_derive::MallocSizeOf,
    parity_util_mem::MallocSizeOf,
)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    Array(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

pub(crate) fn strings(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("str{i:07}")).collect()
}

pub(crate) fn table(n: usize) -> HashMap<u64, Vec<u32>> {
    let mut random = Random::new(7);
    (0..n).map(|_| random.number()).map(|key| (key, vec![1; (key % 16) as usize + 1])).collect()
}

pub(crate) fn tree_map(n: usize) -> BTreeMap<String, Box<Record>> {
    let mut random = Random::new(9);
    let mut map = BTreeMap::new();
    for _ in 0..n {
        let id = random.number();
        map.insert(format!("key{id:020}"), Box::new(Record { id, score: 1.0, rest: (1, 2) }));
    }
    map
}

pub(crate) fn box_tree(depth: u32) -> Node {
    let child = |depth: u32| (depth > 1).then(|| Box::new(box_tree(depth - 1)));
    Node { value: u64::from(depth), left: child(depth), right: child(depth) }
}

pub(crate) fn graph(nodes: usize, edges: usize) -> Graph {
    let mut random = Random::new(11);
    let nodes: Vec<_> =
        (0..nodes).map(|i| Arc::new(Leaf { id: i as u64, name: format!("leaf{i:06}") })).collect();
    let edges = (0..edges).map(|_| Arc::clone(&nodes[random.below(nodes.len() as u64) as usize])).collect();
    Graph { nodes, edges }
}

pub(crate) fn json(values: i64) -> Json {
    let (mut left, mut random) = (values, Random::new(13));
    let mut top = Vec::new();
    while left > 0 {
        top.push(json_below(&mut left, 4, &mut random));
    }
    Json::Array(top)
}

fn json_below(left: &mut i64, depth: u32, random: &mut Random) -> Json {
    *left -= 1;
    match (depth, random.below(8)) {
        (0, 0) => Json::Null,
        (0, 1) => Json::Bool(true),
        (0, 2..=4) => Json::Number(random.number() as f64),
        (0, _) => Json::Text(format!("value {:08}", random.below(100_000_000))),
        (_, 0..=3) => Json::Array((0..8).map(|_| json_below(left, depth - 1, random)).collect()),
        _ => {
            Json::Object((0..8).map(|i| (format!("key_{i}"), json_below(left, depth - 1, random))).collect())
        }
    }
}
