//! The graph of this test program itself.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex};

use heap_graph::graph::CoarseType;
use heap_graph::live::{AllocationSites, LiveGraphOptions, SiteFrame, coarse_type};
use heap_graph::snapshot::{SnapshotReadOptions, SnapshotWriteOptions, read_from};
use heap_graph::{Breakdown, DominatorTree, Graph, HeapGraph, HeapNode, NodeIndex, census};
use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading, computed_size_of, measure::SkipReason};

/// All edges, as `CLASS -NAME-> CLASS`; a node without a class has its type there.
fn lines(graph: &Graph) -> Vec<String> {
    let mut lines = Vec::new();
    for node in graph.nodes() {
        for edge in node.edges() {
            let name = edge.name.map_or("-".to_owned(), |name| name.to_string());
            lines.push(format!("{} -{name}-> {}", short(node), short(edge.referent)));
        }
    }
    lines
}

fn short(node: HeapNode<'_>) -> String {
    node.class_name().unwrap_or(node.type_name()).to_string()
}

fn heap_bytes(graph: &Graph) -> u128 {
    graph.nodes().map(|node| u128::from(node.shallow_size())).sum()
}

#[derive(MallocSizeOf)]
struct Index {
    names: Vec<String>,
    entries: HashMap<u32, Entry>,
    best: Option<Box<Entry>>,
}

#[derive(MallocSizeOf)]
struct Entry {
    title: String,
    tags: Vec<u8>,
}

fn entry(title: &str) -> Entry {
    Entry { title: title.into(), tags: vec![1, 2, 3] }
}

#[test]
fn blocks_are_nodes_and_fields_are_edges() {
    let index = Index {
        names: vec!["a".into(), "bc".into()],
        entries: HashMap::from([(7, entry("seven"))]),
        best: Some(Box::new(entry("best"))),
    };
    let heap = HeapGraph::collect(|roots| roots.add("index", &index));
    assert_eq!(
        lines(heap.graph()),
        [
            "roots -index-> Index",
            "Index -names-> Vec",
            "Index -entries-> HashMap",
            "Index -best-> Entry",
            "Vec -element-> alloc::string::String",
            "Vec -element-> alloc::string::String",
            "HashMap -value.title-> alloc::string::String",
            "HashMap -value.tags-> alloc::vec::Vec<u8>",
            "Entry -title-> alloc::string::String",
            "Entry -tags-> alloc::vec::Vec<u8>",
        ]
    );
    assert_eq!(heap_bytes(heap.graph()), computed_size_of(&index) as u128);
    assert!(heap.skipped().is_empty());
    let report = census(heap.graph(), &Breakdown::preset("coarseType").unwrap()).unwrap().to_json();
    assert!(report.contains(r#""strings":{"count":4,"bytes":12}"#), "{report}");
    assert!(report.contains(r#""other":{"count":2,"bytes":6}"#), "{report}");
}

#[derive(MallocSizeOf)]
struct Shared {
    first: Arc<Entry>,
    second: Arc<Entry>,
}

#[test]
fn shared_blocks_are_one_node() {
    let first = Arc::new(entry("shared"));
    let value = Shared { second: Arc::clone(&first), first };
    let heap = HeapGraph::collect(|roots| {
        roots.add("value", &value);
        roots.add("again", &value.second);
    });
    let lines = lines(heap.graph());
    for line in ["Shared -first-> Entry", "Shared -second-> Entry", "Entry -title-> alloc::string::String"] {
        assert_eq!(lines.iter().filter(|there| *there == line).count(), 1, "{lines:#?}");
    }
    assert_eq!(heap_bytes(heap.graph()), computed_size_of(&value) as u128);
    let tree = DominatorTree::new(heap.graph());
    // Two roots of the program hold the block, so the graph's root dominates it.
    let shared = heap.graph().nodes().find(|node| short(*node) == "Entry").unwrap();
    assert_eq!(tree.immediate_dominator(shared.index()).map(HeapNode::index), Some(NodeIndex::ROOT));
}

#[derive(MallocSizeOf)]
struct Parent {
    children: RefCell<Vec<Rc<Child>>>,
}

#[derive(MallocSizeOf)]
struct Child {
    name: String,
    parent: Weak<Parent>,
}

#[derive(MallocSizeOf)]
struct Viewer<'a> {
    name: &'a String,
    text: &'a str,
    outside: &'a u8,
}

#[test]
fn weak_pointers_and_references_are_edges() {
    let parent = Rc::new(Parent { children: RefCell::default() });
    for name in ["one", "two"] {
        let child = Child { name: name.into(), parent: Rc::downgrade(&parent) };
        parent.children.borrow_mut().push(Rc::new(child));
    }
    let children = parent.children.borrow();
    let viewers = vec![Viewer { name: &children[0].name, text: &children[1].name[1..], outside: &7 }];
    let heap = HeapGraph::collect(|roots| {
        roots.add("viewers", &viewers);
        roots.add("parent", &parent);
    });
    let lines = lines(heap.graph());
    let count = |line: &str| lines.iter().filter(|there| *there == line).count();
    assert_eq!(count("Child -parent-> Parent"), 2, "{lines:#?}");
    assert_eq!(count("Vec -element.text-> alloc::string::String"), 1, "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("outside")), "{lines:#?}");
}

#[test]
fn a_lock_that_is_held_is_skipped_and_recorded() {
    let value = Mutex::new(vec![1_u64]);
    let held = value.lock().unwrap();
    let heap = HeapGraph::collect(|roots| roots.add("value", &value));
    drop(held);
    assert_eq!(heap.graph().node_count(), 2);
    assert_eq!(heap.skipped().len(), 1);
}

#[test]
fn a_value_told_twice_counts_once() {
    let value = Index { names: vec!["a".into()], entries: HashMap::new(), best: None };
    let heap = HeapGraph::collect(|roots| {
        roots.add("one", &value);
        roots.add("two", &value);
        roots.add("names", &value.names);
    });
    // All three roots hold the vector. Its own edges occur once.
    let lines = lines(heap.graph());
    for line in ["Index -names-> Vec", "Vec -element-> alloc::string::String"] {
        let expected = if line.starts_with("Index") { 2 } else { 1 };
        assert_eq!(lines.iter().filter(|there| *there == line).count(), expected, "{lines:#?}");
    }
    assert_eq!(lines.iter().filter(|line| line.ends_with("-> Vec")).count(), 4, "{lines:#?}");
    assert_eq!(heap_bytes(heap.graph()), computed_size_of(&value) as u128);
}

#[derive(MallocSizeOf)]
struct Link {
    next: Option<Box<Link>>,
}

#[test]
fn a_long_list_is_walked_written_and_asked() {
    let mut list = None;
    for _ in 0..200_000 {
        list = Some(Box::new(Link { next: list }));
    }
    let heap = HeapGraph::collect(|roots| roots.add("list", &list));
    assert_eq!(heap.graph().node_count(), 200_002);
    let tree = DominatorTree::new(heap.graph());
    assert_eq!(tree.retained_size(NodeIndex::ROOT), Some(200_000 * size_of::<Link>() as u128));
    crate::write::assert_same(heap.graph(), &crate::write::written(heap.graph()), "a list");
    while let Some(link) = list {
        list = link.next;
    }
}

#[test]
fn trees_and_maps_of_std_are_walked() {
    let map: BTreeMap<String, Vec<String>> =
        (0..100).map(|i| (format!("key {i}"), vec![format!("value {i}")])).collect();
    let heap = HeapGraph::collect(|roots| roots.add("map", &map));
    assert_eq!(heap_bytes(heap.graph()), computed_size_of(&map) as u128);
    let tree = DominatorTree::new(heap.graph());
    assert!(heap.graph().nodes().all(|node| tree.is_reachable(node.index())));
}

struct Sites;

impl AllocationSites for Sites {
    fn site(&self, address: usize) -> Option<u64> {
        (address != 0).then_some(3)
    }

    fn frames(&self, site: u64) -> Vec<SiteFrame> {
        assert_eq!(site, 3);
        let frame = |function: &str, line| SiteFrame {
            function: Some(function.into()),
            source: "app.rs".into(),
            line,
            ..SiteFrame::default()
        };
        vec![frame("make", 9), frame("main", 2)]
    }
}

#[test]
fn a_program_may_know_better_and_a_profiler_more() {
    let value = vec![entry("x")];
    let options =
        LiveGraphOptions::new().allocation_sites(&Sites).coarse_type(|types| match &*types.class_name() {
            "Vec" => CoarseType::DomNode,
            _ => coarse_type(types),
        });
    let heap = HeapGraph::collect_with(options, |roots| roots.add("value", &value));
    let buffers = heap.graph().nodes().filter(|node| node.coarse_type() == CoarseType::DomNode);
    // The walk finds the value itself, its block and the block of the tags.
    assert_eq!(buffers.count(), 3);
    let report = census(heap.graph(), &Breakdown::preset("stack").unwrap()).unwrap().to_json();
    let expected = r#"{"@map":[[[["app.rs",9,0,"make",null],["app.rs",2,0,"main",null]],{"count":3"#;
    assert!(report.starts_with(expected), "{report}");
}

/// The class of a slice, an array or a tuple has both brackets, and no paths.
#[test]
fn classes_keep_their_brackets() {
    let pair = || (entry("x"), Some(7_u32));
    let slice: Box<[Entry]> = Box::new([entry("a"), entry("b")]);
    let array = Box::new([entry("c"), entry("d")]);
    let (tuple, nested) = (Box::new(pair()), vec![Box::new([vec![pair()]])]);
    let heap = HeapGraph::collect(|roots| {
        roots.add("slice", &slice);
        roots.add("array", &array);
        roots.add("tuple", &tuple);
        roots.add("nested", &nested);
    });
    let classes = heap.graph().nodes().filter_map(|node| node.class_name());
    let names: BTreeSet<_> = classes.map(|name| name.to_string()).collect();
    for expected in ["[Entry]", "[Entry; 2]", "(Entry, Option<u32>)", "[Vec<(Entry, Option<u32>)>; 1]", "Vec"]
    {
        assert!(names.contains(expected), "{expected} in {names:?}");
    }
    for name in &names {
        let count = |bracket| name.matches(bracket).count();
        assert!(count('[') == count(']') && count('(') == count(')') && !name.contains("::"), "{name}");
    }
}

/// All data of a graph, independent of the order of nodes and edges.
fn facts(graph: &Graph) -> Vec<String> {
    let mut facts: Vec<_> = graph
        .nodes()
        .map(|node| {
            let mut edges: Vec<_> = node
                .edges()
                .map(|edge| (edge.name.map(|name| name.to_string()), edge.referent.id()))
                .collect();
            edges.sort();
            let stack = node.allocation_stack().map_or(0, |stack| stack.frames().count());
            let (id, size, name) = (node.id(), node.shallow_size(), node.type_name());
            format!("{id} {size} {name} {} {stack} {edges:?}", short(node))
        })
        .collect();
    facts.sort();
    facts
}

/// The graph of the roots. Checks that a saved snapshot contains the same graph.
fn collected_and_saved(tell: impl Fn(&mut heap_graph::Roots<'_>)) -> Graph {
    let options = LiveGraphOptions::new().allocation_sites(&Sites);
    let collected = HeapGraph::collect_with(options, &tell).into_graph();
    let mut file = Vec::new();
    let saved = HeapGraph::stream(&mut file, options, &SnapshotWriteOptions::new(), &tell).unwrap();
    let read = read_from(&file[..], &SnapshotReadOptions::new()).unwrap();
    let numbers = |graph: &Graph| (graph.node_count() as u64, graph.edge_count() as u64);
    assert_eq!((saved.nodes, saved.edges), numbers(&read));
    assert_eq!(facts(&read), facts(&collected));
    read
}

#[test]
fn what_is_saved_while_it_is_walked_is_what_is_collected() {
    let index = Index {
        names: vec!["a".into(), "bc".into()],
        entries: HashMap::from([(7, entry("seven"))]),
        best: Some(Box::new(entry("best"))),
    };
    collected_and_saved(|roots| roots.add("index", &index));

    let first = Arc::new(entry("shared"));
    let shared = Shared { second: Arc::clone(&first), first };
    collected_and_saved(|roots| {
        roots.add("value", &shared);
        roots.add("again", &shared.second);
    });

    let parent = Rc::new(Parent { children: RefCell::default() });
    for name in ["one", "two"] {
        let child = Child { name: name.into(), parent: Rc::downgrade(&parent) };
        parent.children.borrow_mut().push(Rc::new(child));
    }
    let children = parent.children.borrow();
    let viewers = vec![Viewer { name: &children[0].name, text: &children[1].name[1..], outside: &7 }];
    // The walk meets references before and after the blocks that they point into.
    for turned in [false, true] {
        collected_and_saved(|roots| {
            if turned {
                roots.add("parent", &parent);
            }
            roots.add("viewers", &viewers);
            if !turned {
                roots.add("parent", &parent);
            }
        });
    }

    let map: BTreeMap<String, Vec<Option<Box<Entry>>>> =
        (0..50).map(|i| (format!("key {i}"), vec![None, Some(Box::new(entry("x")))])).collect();
    collected_and_saved(|roots| roots.add("map", &map));

    let mut list = None;
    for _ in 0..10_000 {
        list = Some(Box::new(Link { next: list }));
    }
    collected_and_saved(|roots| roots.add("list", &list));
    while let Some(link) = list {
        list = link.next;
    }
}

#[test]
fn roots_that_change_between_the_rounds_do_no_harm() {
    let value = vec![1_u8];
    for (first, second) in [(1, 3), (3, 1), (0, 2), (2, 0)] {
        let round = Cell::new(0);
        let mut file = Vec::new();
        let tell = |roots: &mut heap_graph::Roots<'_>| {
            let count = if round.replace(1) == 0 { first } else { second };
            (0..count).for_each(|place| roots.add(&format!("root {place}"), &value));
        };
        HeapGraph::stream(&mut file, LiveGraphOptions::new(), &SnapshotWriteOptions::new(), tell).unwrap();
        let read = read_from(&file[..], &SnapshotReadOptions::new()).unwrap();
        assert_eq!(read.root().edges().count(), first);
    }
}

#[test]
fn a_saved_file_is_whole_or_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heap.fxsnapshot");
    let value = vec!["x".to_owned()];
    let saved = HeapGraph::save(&path, |roots| roots.add("value", &value)).unwrap();
    assert_eq!((saved.nodes, saved.edges), (4, 3));
    assert_eq!(heap_graph::snapshot::read(&path).unwrap().node_count(), 4);
    // A file cannot replace a folder.
    let taken = folder.path().join("taken");
    std::fs::create_dir(&taken).unwrap();
    HeapGraph::save(&taken, |roots| roots.add("value", &value)).unwrap_err();
    HeapGraph::save(folder.path().join("no/such/folder"), |roots| roots.add("value", &value)).unwrap_err();
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["heap.fxsnapshot", "taken"]);
}

/// A writer that fails like a full disk.
struct Full;

impl std::io::Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let value: Vec<String> = (0..100_000).map(|i| i.to_string()).collect();
    let error =
        HeapGraph::stream(&mut Full, LiveGraphOptions::new(), &SnapshotWriteOptions::new(), |roots| {
            roots.add("value", &value);
        });
    assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
}

#[cfg(unix)]
#[test]
fn an_incomplete_file_has_a_private_name_that_nobody_can_take_before() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = tempfile::tempdir().unwrap();
    let (path, victim) = (folder.path().join("heap.fxsnapshot"), folder.path().join("victim"));
    std::fs::write(&victim, "precious").unwrap();
    symlink(&victim, folder.path().join("incomplete-heap.fxsnapshot")).unwrap();
    let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    let incomplete = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let is_file = |path: &PathBuf| path.symlink_metadata().unwrap().is_file() && *path != victim;
        entries.filter(is_file).collect()
    };
    let seen = RefCell::new(Vec::new());
    for _ in 0..2 {
        let before = incomplete();
        HeapGraph::save(&path, |roots| {
            let new: Vec<_> = incomplete().into_iter().filter(|path| !before.contains(path)).collect();
            assert_eq!((new.len(), mode(&new[0])), (1, 0o600), "{new:?}");
            let name = new[0].file_name().unwrap().to_str().unwrap().to_owned();
            assert!(name.starts_with("incomplete-") && !name.contains("heap"), "{name}");
            seen.borrow_mut().push(name);
            roots.add("value", &vec![1_u8]);
        })
        .unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(incomplete(), std::slice::from_ref(&path));
    }
    // Each save calls `add_roots` twice, and writes to a file with another name.
    let mut names = seen.into_inner();
    names.dedup();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
}

#[derive(MallocSizeOf)]
struct Hidden {
    /// The walk has no access to the address of an empty table.
    empty: Vec<HashMap<u32, u64>>,
    also_empty: HashSet<String>,
    /// Elements of size 0 have invented addresses, equal to the ids of roots.
    unit: HashSet<()>,
    aligned: HashSet<Aligned>,
    units: Vec<()>,
}

#[derive(MallocSizeOf, PartialEq, Eq, Hash)]
#[repr(align(64))]
struct Aligned;

#[test]
fn each_block_at_an_unknown_address_is_a_node() {
    let value = Hidden {
        empty: (0..5).map(|_| HashMap::with_capacity(10)).collect(),
        also_empty: HashSet::with_capacity(100),
        unit: HashSet::from([()]),
        aligned: HashSet::from([Aligned]),
        units: vec![(); 7],
    };
    let graph = collected_and_saved(|roots| roots.add("value", &value));
    assert_eq!(heap_bytes(&graph), computed_size_of(&value) as u128);
    // The root, the value, the vector and its five tables, and three sets.
    assert_eq!(graph.node_count(), 1 + 1 + 1 + 5 + 3);
    let tables = |graph: &Graph| graph.nodes().filter(|node| short(*node) == "HashMap").count();
    assert_eq!(tables(&graph), 5);
    // The second root holds the same blocks, and has its own node.
    let again = collected_and_saved(|roots| {
        roots.add("value", &value);
        roots.add("again", &value);
    });
    assert_eq!(heap_bytes(&again), computed_size_of(&value) as u128);
    assert_eq!((again.node_count(), tables(&again)), (graph.node_count() + 1, 5));
}

/// Panics while it is measured.
struct Bomb;

impl MallocSizeOf for Bomb {
    fn size_of_excluding_this<R: Reading>(&self, _: &mut MallocSizeOfOps<R>) -> usize {
        panic!("the bomb")
    }
}

#[test]
fn a_value_that_panics_costs_only_itself() {
    let bad = (vec![vec![1_u8]], Arc::new(Mutex::new(Some(Bomb))));
    let good = vec!["a".to_owned()];
    let tell = |roots: &mut heap_graph::Roots<'_>| {
        let caught = catch_unwind(AssertUnwindSafe(|| roots.add("bad", &bad)));
        roots.add("good", &good);
        drop(caught);
    };
    let read = collected_and_saved(tell);
    let names: Vec<_> = read.root().edges().map(|edge| edge.name.unwrap().to_owned()).collect();
    assert_eq!(names, ["bad", "good"]);
    // The root; the bad value, its vector, the vector's bytes and the shared block; the good value, its vector and a
    // text.
    assert_eq!(read.node_count(), 1 + 4 + 3);
    let skipped = HeapGraph::collect(tell).skipped().to_vec();
    assert!(
        skipped.iter().all(|part| part.reason == SkipReason::Panicked) && skipped.len() == 2,
        "{skipped:?}"
    );
    assert!(!bad.1.is_poisoned());

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heap.fxsnapshot");
    let saved = catch_unwind(|| HeapGraph::save(&path, |roots| roots.add("bomb", &Bomb)));
    assert!(saved.is_err() && std::fs::read_dir(folder.path()).unwrap().next().is_none());
}

/// Names blocks at arbitrary addresses, as a manual impl can: `enclosing` is safe.
struct Claims(Vec<(usize, usize)>);

impl MallocSizeOf for Claims {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let layout = |bytes| std::alloc::Layout::from_size_align(bytes, 1).unwrap();
        self.0.iter().fold(0_usize, |sum, (address, bytes)| {
            sum.saturating_add(ops.enclosing(std::ptr::without_provenance::<u8>(*address), layout(*bytes)))
        })
    }
}

#[test]
fn blocks_at_impossible_addresses_have_ids_of_their_own() {
    const MOST: usize = isize::MAX as usize;
    const HIDDEN: usize = 1 << 52;
    for claims in [
        vec![(HIDDEN, 8)],
        vec![(usize::MAX, 8)],
        vec![(usize::MAX, MOST), (usize::MAX - 3, 1 << 40), (1 << 60, MOST), (1 << 61, MOST)],
        // The ids of these blocks must differ from the ids of blocks at unknown addresses.
        vec![(HIDDEN, 8), (0, 4), (HIDDEN + 1, 8), (0, 8), (0, 9), (HIDDEN + 2, 8)],
        vec![(4096, MOST), (8192, 10), (1 << 20, MOST)],
    ] {
        let value = Claims(claims.clone());
        let heap = HeapGraph::collect(|roots| {
            roots.add("value", &value);
            roots.add("again", &value);
        });
        let graph = heap.graph();
        // The root of the graph and the two roots of the program are not blocks.
        assert_eq!(graph.nodes().count() - 3, claims.len());
        assert!(heap_bytes(graph) >= claims.iter().map(|(_, bytes)| *bytes as u128).sum());
        drop(DominatorTree::new(graph));
        let mut file = Vec::new();
        heap.write(&mut file, &SnapshotWriteOptions::new()).unwrap();
        let read = read_from(&file[..], &SnapshotReadOptions::new()).unwrap();
        assert_eq!(read.nodes().count(), graph.nodes().count());
    }
}
