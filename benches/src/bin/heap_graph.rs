//! Measures the time and memory to write, read and analyze heap graphs. Two graphs have 1,100,000 nodes and 3,100,000
//! edges: one is like a heap of Firefox, and one is more tangled than any real heap. The third graph is a list of a
//! million nodes.
//!
//! `cargo run --release -p benches --bin heap_graph [FILE.fxsnapshot]`
//!
//! With `growth` instead of a file: prints the cost of a census and of dominators for 10,000,000 nodes, as a multiple
//! of the cost for 1,000,000 nodes of the same shape; `growth firefox`, `tangled` or `list` measures one shape. With
//! `windows`: prints the time for windows of rows of the dominator tree of 10,000,000 nodes. With `save FILE`: writes
//! the graph that is like a heap of Firefox.

#![allow(clippy::print_stdout, reason = "the figures are the output")]

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use about_memory::session::{Query, RowColumn, RowsOptions, Session, SessionOptions};
use heap_graph::graph::{CoarseType, GraphError};
use heap_graph::live::LiveGraphOptions;
use heap_graph::snapshot::{SnapshotReadOptions, SnapshotWriteOptions, read_from, write};
use heap_graph::{
    Breakdown, DominatorTree, Graph, GraphBuilder, HeapGraph, NodeId, NodeIndex, NodeParts, Roots,
};
use memory_reporter::MallocSizeOf;
use tests::Random;

const NODES: u64 = 1_100_000;
const ROUNDS: usize = 7;

/// `growth` compares graphs of these sizes.
const SMALL: u64 = 1_000_000;
const LARGE: u64 = 10 * SMALL;
/// The number of analyses of the small graph for each analysis of the large graph. The analyses of the small graph are
/// timed together, because the system counts CPU time in steps of some milliseconds.
const SMALL_RUNS: u64 = LARGE / SMALL;

/// The number of edges of a graph with `nodes` nodes. The number per node is the same as in a heap of Firefox.
fn edges_of(nodes: u64) -> u64 {
    nodes * 31 / 11
}

/// The number of nodes with very many incoming edges in a heap of Firefox: shapes, prototypes and similar objects.
const HUBS: u64 = 25;

/// Edges as in `medium.fxsnapshot`, a heap of Firefox. A tree edge is the edge by which a breadth-first walk first
/// reaches a node. 58 % of the nodes have no tree edge to a child, 22 % have one, 18 % have two or three, and 2 % have
/// more. A quarter of all nodes are children of arrays with thousands of elements, or of the root. 79 % of the other
/// edges lead to [`HUBS`] nodes, and 21 % lead to nearby or earlier nodes. 84 % of all nodes have exactly one incoming
/// edge.
fn like_firefox(nodes: u64, random: &mut Random) -> Vec<Vec<u32>> {
    let mut edges: Vec<Vec<u32>> = vec![Vec::new(); nodes as usize];
    let mut made = 1;
    for node in 0..nodes {
        let children = match random.below(100_000) {
            _ if node == 0 => nodes / 8,
            0..2 => 10_000,
            2..58_000 => 0,
            58_000..80_000 => 1,
            80_000..98_000 => 2 + random.below(2),
            _ => 4 + random.below(4),
        };
        // The last node of the queue gets at least one child, so that the walk continues.
        let children = if node + 1 == made { children.max(1) } else { children };
        let last = (made + children).min(nodes);
        edges[node as usize].extend(made as u32..last as u32);
        made = last;
    }
    for _ in nodes..=edges_of(nodes) {
        let from = random.below(nodes);
        let to = match random.below(100) {
            // Some hubs have ten times as many edges as others.
            0..79 => {
                let popular = 1 + random.below(HUBS);
                20 + random.below(popular) * 40
            }
            79..88 => (from + random.below(100)) % nodes,
            _ => random.below(from + 1),
        };
        // Edges to shapes and prototypes come before edges to the contents of an object.
        let place = random.below(1 + edges[from as usize].len().min(2) as u64);
        edges[from as usize].insert(place as usize, to as u32);
    }
    edges
}

/// Each node has an edge from an earlier node. Six of ten other edges lead to nodes with many incoming edges, three
/// lead to nearby nodes, and one leads to any node. Half of all nodes have several incoming edges, so the graph is more
/// tangled than any real heap.
fn tangled(nodes: u64, random: &mut Random) -> Vec<Vec<u32>> {
    let mut edges: Vec<Vec<u32>> = vec![Vec::new(); nodes as usize];
    for node in 1..nodes {
        let parent =
            if random.below(50) == 0 { random.below(node) } else { node - 1 - random.below(node.min(40)) };
        edges[parent as usize].push(node as u32);
    }
    for _ in nodes..=edges_of(nodes) {
        let from = random.below(nodes);
        let popular = 1 + random.below(nodes / 55);
        let far = match random.below(10) {
            0 => random.below(nodes),
            1..4 => (from + random.below(500)) % nodes,
            _ => random.below(popular) * 50,
        };
        edges[from as usize].push(far as u32);
    }
    edges
}

/// Makes a graph with its nodes in the order of a breadth-first walk, as in a snapshot that such a walk has written.
fn heap(edges: &[Vec<u32>], random: &mut Random) -> Result<Graph, GraphError> {
    let mut places = vec![u32::MAX; edges.len()];
    let mut order = vec![0_u32];
    places[0] = 0;
    let mut next = 0;
    while let Some(node) = order.get(next).copied() {
        next += 1;
        for to in &edges[node as usize] {
            if places[*to as usize] == u32::MAX {
                places[*to as usize] = order.len() as u32;
                order.push(*to);
            }
        }
    }
    let mut builder = GraphBuilder::new();
    let mut texts = |name: &str, count: u64| -> Result<Vec<_>, GraphError> {
        (0..count).map(|i| builder.text(&format!("{name} {i}"))).collect()
    };
    let (types, classes, names) = (texts("js::Type", 12)?, texts("Class", 500)?, texts("property", 3_000)?);
    let id = |node: u32| NodeId(0x7f00_0000_0000 + u64::from(node) * 48);
    for node in order {
        let type_name = types[random.below(12) as usize];
        let mut parts = NodeParts::new(id(node), 16 + random.below(8) * 16, type_name);
        if random.below(2) == 0 {
            parts.coarse_type = CoarseType::Object;
            parts.class_name = Some(classes[(random.below(500) * random.below(500) / 500) as usize]);
        }
        builder.node(parts)?;
        for to in &edges[node as usize] {
            builder.edge(id(*to), Some(names[random.below(3_000) as usize]))?;
        }
    }
    builder.finish()
}

/// A list of nodes that starts at the root.
fn list(nodes: u64) -> Result<Graph, GraphError> {
    let mut builder = GraphBuilder::new();
    let (node, next) = (builder.text("Node")?, builder.text("next")?);
    for index in 0..nodes {
        builder.node(NodeParts::new(NodeId(16 + index * 16), 16, node))?;
        if index + 1 < nodes {
            builder.edge(NodeId(32 + index * 16), Some(next))?;
        }
    }
    builder.finish()
}

/// The CPU seconds of this process, which has one thread; `None` if the system does not provide them.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

fn time<T>(what: &str, mut run: impl FnMut() -> T) -> f64 {
    let (mut seconds, mut processor) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (start, before) = (Instant::now(), processor_seconds());
        let result = black_box(run());
        seconds.push(start.elapsed().as_secs_f64());
        processor.extend(processor_seconds().zip(before).map(|(after, before)| after - before));
        drop(result);
    }
    seconds.sort_by(f64::total_cmp);
    processor.sort_by(f64::total_cmp);
    println!(
        "{what:>40}: {:8.1} ms, fastest {:8.1} ms; on a processor {:8.1} ms",
        seconds[ROUNDS / 2] * 1e3,
        seconds[0] * 1e3,
        processor.first().map_or(f64::NAN, |fastest| fastest * 1e3)
    );
    seconds[0]
}

/// The CPU milliseconds of a call.
fn processor_ms<T>(run: impl FnOnce() -> T) -> f64 {
    let before = processor_seconds();
    drop(black_box(run()));
    processor_seconds().zip(before).map_or(f64::NAN, |(after, before)| (after - before) * 1e3)
}

/// The peak of this process's memory during a call, minus the memory before the call, in megabytes; `None` if the
/// system does not provide it.
fn peak_megabytes<T>(run: impl FnOnce() -> T) -> Option<f64> {
    let status = |field: &str| {
        let text = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(field))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    // Resets the peak.
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    let before = status("VmRSS:")?;
    drop(black_box(run()));
    Some((status("VmHWM:")? - before) * 1024.0 / 1e6)
}

type Analysis = (&'static str, fn(&Graph));

/// Compares the costs of the large graph and the small graph. The runs of the two graphs alternate, so that both graphs
/// have the same noise. Other work of the machine fills the caches and so slows only the large graph. The fastest runs
/// contain the least of this effect, so they are the most useful.
fn compare(small: &Graph, large: &Graph) {
    let analyses: [Analysis; 4] = [
        ("census default", |graph| drop(heap_graph::census(graph, &Breakdown::default()))),
        ("census bucket", |graph| drop(heap_graph::census(graph, &Breakdown::Bucket))),
        ("dominators with retained sizes", |graph| drop(DominatorTree::new(graph))),
        ("the same, and all lists of dominated nodes", |graph| {
            black_box(DominatorTree::new(graph).immediately_dominated(NodeIndex::ROOT).len());
        }),
    ];
    for (what, run) in analyses {
        let (mut few, mut many) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            few.push(processor_ms(|| (0..SMALL_RUNS).for_each(|_| run(small))) / SMALL_RUNS as f64);
            many.push(processor_ms(|| run(large)));
        }
        few.sort_by(f64::total_cmp);
        many.sort_by(f64::total_cmp);
        let peak = peak_megabytes(|| run(large)).unwrap_or(f64::NAN);
        let pair = |few: f64, many: f64| format!("{few:.1} and {many:.1} ms, {:.1} times", many / few);
        let medians = pair(few[few.len() / 2], many[many.len() / 2]);
        let fastest = pair(few[0], many[0]);
        println!("{what:>40}: {medians}; fastest {fastest}; {peak:.0} MB at the peak");
    }
}

/// Measures each shape in two sizes, or only the given shape.
fn growth(shape: Option<&str>) -> Result<(), GraphError> {
    println!("CPU time of {SMALL} and {LARGE} nodes, medians and fastest");
    let mut random = Random::new(7);
    let mut firefox = |nodes| heap(&like_firefox(nodes, &mut random), &mut random);
    if shape.is_none_or(|shape| shape == "firefox") {
        println!("like a heap of Firefox");
        compare(&firefox(SMALL)?, &firefox(LARGE)?);
    }
    let mut tangle = |nodes| heap(&tangled(nodes, &mut random), &mut random);
    if shape.is_none_or(|shape| shape == "tangled") {
        println!("tangled");
        compare(&tangle(SMALL)?, &tangle(LARGE)?);
    }
    if shape.is_none_or(|shape| shape == "list") {
        println!("a list");
        compare(&list(SMALL)?, &list(LARGE)?);
    }
    Ok(())
}

/// Measures windows of the rows of a dominator tree of the large graph, as a page requests them when the user scrolls.
fn windows() -> Result<(), Box<dyn Error>> {
    let mut random = Random::new(7);
    let session = Session::new(SessionOptions::new());
    let snapshot = session.insert("large", heap(&like_firefox(LARGE, &mut random), &mut random)?)?;
    let query = Query::Dominators { snapshot, filter: String::new() };
    let start = Instant::now();
    let answer = session.ask(query.clone())?.wait(Duration::from_secs(600)).ok_or("no answer")??;
    println!("dominators: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    let total = session.rows(&query, &answer, &RowsOptions::first(0))?.total;
    println!("{total} rows, none of them open; milliseconds for a window of 100 rows, medians");
    let orders = [
        ("as the tree", None),
        ("by shallow size", Some((RowColumn::Shallow, false))),
        ("by name", Some((RowColumn::Name, true))),
    ];
    for (what, order) in orders {
        for (at, from) in [("first", 0), ("middle", total / 2), ("last", total.saturating_sub(100))] {
            let options = RowsOptions::first(100).start(from);
            let options = match order {
                Some((column, ascending)) => options.sort(column, ascending),
                None => options,
            };
            let mut times = Vec::new();
            for _ in 0..ROUNDS {
                let start = Instant::now();
                black_box(session.rows(&query, &answer, &options)?);
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            times.sort_by(f64::total_cmp);
            println!("{what:>16}, {at}: {:.1}", times[ROUNDS / 2]);
        }
    }
    println!("{:.0} MB of results", session.memory() as f64 / 1e6);
    Ok(())
}

fn ask(graph: &Graph) {
    let nodes = graph.node_count();
    println!("{nodes} nodes, {} edges", graph.edge_count());
    let (flat, names) = graph.memory();
    let per_node = (flat as f64 - 8.0 * graph.edge_count() as f64) / nodes as f64;
    println!("{per_node:.1} bytes a node and 8 an edge; {:.1} MB of names", names as f64 / 1e6);
    let seconds = time("write", || write(graph, Vec::new(), &SnapshotWriteOptions::new()));
    println!("{:.2} million nodes a second written", nodes as f64 / seconds / 1e6);
    let file = write(graph, Vec::new(), &SnapshotWriteOptions::new()).unwrap_or_default();
    println!("{:.1} MB compressed", file.len() as f64 / 1e6);
    time("read on one thread", || read_from(&file[..], &SnapshotReadOptions::new()).ok());
    let path = tempfile::NamedTempFile::new().and_then(|mut temporary| {
        std::io::Write::write_all(&mut temporary, &file)?;
        Ok(temporary)
    });
    match path {
        Ok(path) => {
            time("read a file, on two threads", || heap_graph::snapshot::read(path.path()).ok());
        }
        Err(error) => println!("no temporary file: {error}"),
    }
    for preset in ["default", "count", "internalType", "objectClass", "stack"] {
        let breakdown = Breakdown::preset(preset).unwrap_or_default();
        time(&format!("census {preset}"), || heap_graph::census(graph, &breakdown).ok());
    }
    time("dominators with retained sizes", || DominatorTree::new(graph));
    let tree = DominatorTree::new(graph);
    time("the same, and all lists of dominated nodes", || {
        DominatorTree::new(graph).immediately_dominated(NodeIndex::ROOT).len()
    });
    black_box(tree.immediately_dominated(NodeIndex::ROOT).len());
    println!("{:.1} bytes a node for dominators", tree.memory() as f64 / nodes as f64);
    let reached = graph.nodes().filter(|node| tree.is_reachable(node.index())).count();
    println!("{reached} nodes reached");
    let all: Vec<NodeIndex> = graph.nodes().map(|node| node.index()).collect();
    let targets: Vec<_> = (1..6).map(|part| all[all.len() * part / 6]).collect();
    time("shortest paths, 5 targets x 5", || heap_graph::shortest_paths(graph, NodeIndex::ROOT, &targets, 5));
    time("sizes by class", || heap_graph::dominators::sizes_by_class(&tree));
}

#[derive(MallocSizeOf)]
struct Entry {
    title: String,
    parts: Vec<String>,
    owner: Arc<String>,
}

/// Measures a graph of this program: 200,000 entries with five blocks each.
fn live() {
    let owner = Arc::new("owner".to_owned());
    let entries: Vec<Box<Entry>> = (0..200_000)
        .map(|i| {
            let parts = (0..2).map(|part| format!("part {part}")).collect();
            Box::new(Entry { title: format!("entry {i}"), parts, owner: Arc::clone(&owner) })
        })
        .collect();
    let collect = || HeapGraph::collect(|roots| roots.add("entries", &entries));
    let heap = collect();
    println!("{} nodes, {} edges of this program", heap.graph().node_count(), heap.graph().edge_count());
    time("collect", collect);
    let save = || {
        let mut file = std::io::sink();
        let tell = |roots: &mut Roots<'_>| roots.add("entries", &entries);
        HeapGraph::stream(&mut file, LiveGraphOptions::new(), &SnapshotWriteOptions::new(), tell).ok()
    };
    let seconds = time("walk and write", save);
    let nodes = save().map_or(0, |saved| saved.nodes);
    println!("{:.2} million nodes a second walked and written", nodes as f64 / seconds / 1e6);
}

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args_os().nth(1) {
        Some(word) if word == "growth" => growth(std::env::args().nth(2).as_deref())?,
        Some(word) if word == "windows" => windows()?,
        Some(word) if word == "save" => {
            let mut random = Random::new(7);
            let graph = heap(&like_firefox(NODES, &mut random), &mut random)?;
            let file = std::env::args_os().nth(2).ok_or("usage: heap_graph save FILE")?;
            write(&graph, std::fs::File::create(file)?, &SnapshotWriteOptions::new())?;
        }
        Some(file) => ask(&heap_graph::snapshot::read(file)?),
        None => {
            let mut random = Random::new(7);
            println!("like a heap of Firefox");
            ask(&heap(&like_firefox(NODES, &mut random), &mut random)?);
            println!("tangled");
            ask(&heap(&tangled(NODES, &mut random), &mut random)?);
            println!("a list");
            ask(&list(1_000_000)?);
            println!("this program");
            live();
        }
    }
    Ok(())
}
