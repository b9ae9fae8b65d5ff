//! Programs that write the types of their blocks to a file. They are compiled with optimization, like real programs,
//! and `libdmd.so` records them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use dmd_analyze::{DumpReadOptions, read_with, symbolize::SymbolOptions};
use heap_graph::DominatorTree;
use tempfile::TempDir;
use typed_heap::{DebugInfo, LayeredMemory, Library, ProcessMemory, ScanMemory, TypedHeap, WasteKind};

use crate::{Victim, program, statics_are_readable};

/// The path of `libdmd.so`, built as for users.
fn libdmd() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let target = test.parent().unwrap().parent().unwrap().with_file_name("libdmd");
        // If the variable is set, `./test` has already built the library.
        if std::env::var_os("PROGRAMS_ARE_BUILT").is_none() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--quiet", "--profile", "dist", "-p", "dmd-preload", "--target-dir"]);
            cargo.arg(&target).current_dir(env!("CARGO_MANIFEST_DIR"));
            assert!(cargo.status().unwrap().success());
        }
        target.join("dist/libdmd.so")
    })
}

/// Compiles a source in a folder. The folder contains the crates that the source uses.
fn compile(folder: &Path, source: &str, level: &str, arguments: &[&str]) {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/victims/truth");
    let mut compile = Command::new(rustc);
    compile.args(["--edition=2024", "-Cdebuginfo=2", &format!("-Copt-level={level}")]).args(arguments);
    let status = compile.arg(sources.join(source)).current_dir(folder).status().unwrap();
    assert!(status.success(), "{source}");
}

/// A row of the table: the number of a construct's blocks with the right type, and the blocks with wrong types.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    right: u64,
    wrong: BTreeMap<String, u64>,
}

/// A program that has written the types of its blocks: construct, address and type.
struct Witness {
    victim: Victim,
    truth: Vec<(String, u64, String)>,
}

impl Witness {
    fn start(name: &str, level: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = |name: &str, version: &str| {
            let [metadata, suffix] =
                ["metadata", "extra-filename"].map(|what| format!("-C{what}=-{version}"));
            let arguments = ["--crate-type=rlib", "--crate-name", name, &metadata, &suffix];
            compile(folder.path(), &format!("{name}{version}.rs"), level, &arguments);
        };
        compile(folder.path(), "truth.rs", level, &["--crate-type=rlib"]);
        let mut externs = vec!["--extern=truth=libtruth.rlib"];
        if name == "versions" {
            library("item", "1");
            library("item", "2");
            let plug = ["--crate-type=cdylib", "--extern=item=libitem-2.rlib"];
            compile(folder.path(), "plug.rs", level, &plug);
            externs.extend(["--extern=item1=libitem-1.rlib", "--extern=item2=libitem-2.rlib"]);
        }
        if name == "executor" {
            compile(folder.path(), "async_task.rs", level, &["--crate-type=rlib"]);
            externs.push("--extern=async_task=libasync_task.rlib");
        }
        compile(folder.path(), &format!("{name}.rs"), level, &externs);
        let program = folder.path().join(name);
        Self::of(folder, &program)
    }

    /// Starts a program. Its folder may contain a library.
    fn of(folder: TempDir, program: &Path) -> Self {
        let [dump_path, truth_path, plug] =
            ["scan.json", "truth", "libplug.so"].map(|name| folder.path().join(name));
        let mut command = Command::new(program);
        command.args([&dump_path, &truth_path, &plug]).env("LD_PRELOAD", libdmd());
        command.env("DMD", "--mode=scan --stacks=full --quiet");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let mut dump = read_with(&dump_path, &DumpReadOptions::new().contents(true)).unwrap();
        dump.symbolize(&SymbolOptions::new());
        let bias = dump.modules()[0].bias.unwrap();
        let plugged = dump.modules().iter().find(|module| Path::new(&module.path) == plug);
        let plugged =
            plugged.map(|module| (module.path.clone(), module.bias.unwrap(), fs::read(&plug).unwrap()));
        let libraries: Vec<_> = plugged
            .iter()
            .map(|(path, own_bias, file)| Library::new(path, file, own_bias.wrapping_sub(bias)))
            .collect();
        let info = DebugInfo::read_with(&fs::read(program).unwrap(), &libraries).unwrap();
        let truth = fs::read_to_string(&truth_path).unwrap();
        let line = |line: &str| {
            let mut parts = line.split('\t');
            let mut part = || parts.next().unwrap().to_owned();
            let (construct, address, name) = (part(), part(), part());
            (construct, u64::from_str_radix(&address, 16).unwrap(), name)
        };
        let truth = truth.lines().map(line).collect();
        Self { victim: Victim { child, dump, info, folder }, truth }
    }

    /// Calls `check` with the heap, including the program's statics.
    fn with(&self, check: impl FnOnce(&TypedHeap<'_>, &LayeredMemory<'_>)) {
        let scan = ScanMemory::new(&self.victim.dump).unwrap();
        let process = ProcessMemory::open(self.victim.child.id()).unwrap();
        let memory = LayeredMemory::new(&scan, &process);
        check(&self.victim.heap(&memory), &memory);
    }

    /// The table: for each construct, the blocks with right and wrong types.
    fn table(&self, heap: &TypedHeap<'_>) -> BTreeMap<String, Row> {
        let mut table: BTreeMap<String, Row> = BTreeMap::new();
        for (way, address, name) in &self.truth {
            let block = heap
                .blocks()
                .iter()
                .position(|block| (block.address..block.address + block.requested.max(1)).contains(address));
            let found = block.map_or_else(|| "no block".to_owned(), |block| heap.type_name(block));
            // The text after the colon is one of several ways to make the construct.
            let construct = way.split(':').next().unwrap_or_default();
            let row = table.entry(construct.to_owned()).or_default();
            // An inner node of a tree has another type than a leaf.
            let is_right = name.strip_prefix('*').map_or(found == *name, |end| found.ends_with(end));
            match is_right {
                true => row.right += 1,
                false => *row.wrong.entry(format!("{name} of {way} is {found}")).or_default() += 1,
            }
        }
        table
    }
}

fn text(table: &BTreeMap<String, Row>) -> String {
    let line = |(construct, row): (&String, &Row)| {
        let wrong = row.wrong.iter().map(|(what, count)| format!(" ({what}: {count})")).collect::<String>();
        format!("{construct}: {} right, {} wrong{wrong}\n", row.right, row.wrong.values().sum::<u64>())
    };
    table.iter().map(line).collect()
}

/// Checks that all blocks of a program have their types, and that each construct has the expected number of blocks.
fn check(witness: &Witness, heap: &TypedHeap<'_>, expected: &[(&str, u64)]) {
    let table = witness.table(heap);
    let found: Vec<(&str, u64)> = table.iter().map(|(construct, row)| (&**construct, row.right)).collect();
    let text = text(&table);
    assert!(table.values().all(|row| row.wrong.is_empty()), "\n{text}\n{:?}", heap.agreement());
    assert_eq!(found, expected, "\n{text}");
    assert_eq!(heap.census().misfits, 0);
}

#[test]
fn stale_words_never_win() {
    if !statics_are_readable() {
        return;
    }
    let witness = Witness::start("stale", "3");
    witness.with(|heap, memory| {
        let expected = [
            ("MaybeUninit array", 1),
            ("dangling raw pointer", 1),
            ("dropped ManuallyDrop", 1),
            ("emptied Option with a niche", 2),
            ("erased pointer", 20),
            ("filled Option with a niche", 10),
            ("half-read vec", 2),
            ("moved local of an async fn", 1),
            ("repr(i64) of -1", 3),
            ("repr(u128)", 3),
            ("vec![..] after pop", 2),
            ("vec![..] after truncate", 4),
        ];
        check(&witness, heap, &expected);
        // Pointers that seem to be live, but contradict the stack: the stack's type, the pointer's type, the number.
        let contradictions: Vec<_> = heap.agreement().disagreements().collect();
        let expected = [("stale::New", "stale::Old", 3), ("stale::Plain", "stale::Header", 10)];
        assert_eq!(contradictions, expected);
        let agreement = heap.agreement();
        assert_eq!((agreement.disagree, agreement.outweighed, agreement.owners_disagree), (13, 13, 0));
        // Three vectors have unused capacity: for 3 of 5 elements, for 1 of 3 elements, and for 1 of 4 elements.
        let rows = heap.waste(memory).rows;
        let rows = || rows.iter().filter(|row| row.name == "[Box<stale::Old>]");
        assert!(rows().all(|row| row.unused == WasteKind::Capacity));
        let sums = rows().fold((0, 0), |sum, row| (sum.0 + row.blocks, sum.1 + row.unused_bytes));
        assert_eq!(sums, (3, (3 + 1 + 1) * 8));
    });
}

#[test]
fn containers_have_their_types() {
    if !statics_are_readable() {
        return;
    }
    let witness = Witness::start("own", "3");
    witness.with(|heap, _| {
        let expected = [
            ("Arc", 341),
            ("Arc<[T]>", 500),
            ("Arc<str>", 1),
            ("BTreeMap", 97),
            ("BTreeSet", 1000),
            ("BinaryHeap", 1000),
            ("Box<dyn Fn>", 1000),
            ("Box<dyn Shape>", 341),
            ("HashMap", 1000),
            ("HashSet", 1000),
            ("LinkedList", 1000),
            ("Option<Box<[u8]>>", 200),
            ("Option<String>", 334),
            ("Rc", 100),
            ("Vec of enums", 1500),
            ("Vec<Arc>", 85),
            ("Vec<u8>", 1000),
            ("VecDeque", 1000),
            ("behind a thread-local", 2000),
            ("enums in enums", 408),
            ("fields behind dyn", 342),
            ("fields of a variant", 500),
            ("keys of a HashMap", 1000),
            ("locals", 2450),
            ("values of a BTreeMap", 97),
            ("values of a BinaryHeap", 1000),
            ("values of a LinkedList", 1000),
        ];
        check(&witness, heap, &expected);
        assert_eq!(heap.agreement().disagreements().count(), 0, "{:?}", heap.agreement());
    });
}

#[test]
fn a_little_of_each_has_its_types() {
    if !statics_are_readable() {
        return;
    }
    let witness = Witness::start("tiny", "3");
    witness.with(|heap, _| {
        let expected = [
            ("Arc", 9),
            ("BTreeMap", 30),
            ("Box", 334),
            ("Box<dyn Shape>", 835),
            ("HashMap", 20),
            ("String", 1597),
            ("Vec", 734),
            ("VecDeque", 9),
            ("locals of tasks", 5),
            ("tasks", 5),
        ];
        check(&witness, heap, &expected);
        assert_eq!(heap.agreement().disagreements().count(), 0, "{:?}", heap.agreement());
    });
}

/// Programs with containers of crates. Cargo builds these programs; `rustc` alone compiles the others of this file.
#[test]
fn containers_of_crates_have_their_types() {
    if !statics_are_readable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let witness = Witness::of(folder, &program("typed_heap_documents"));
    let expected = [
        ("Arc<str>", 10),
        ("BTreeMap", 906),
        ("Bytes", 500),
        ("SmallVec", 175),
        ("hashbrown", 50),
        ("indexmap", 1000),
        ("serde_json", 6000),
    ];
    witness.with(|heap, _| check(&witness, heap, &expected));
    let folder = tempfile::tempdir().unwrap();
    let witness = Witness::of(folder, &program("typed_heap_sessions"));
    let expected = [
        ("Arc<Mutex>", 300),
        ("Arc<[u8]>", 897),
        ("BTreeMap", 1794),
        ("Bytes", 450),
        ("HashMap", 900),
        ("VecDeque", 600),
        ("dashmap", 300),
        ("locals of tasks", 1950),
    ];
    witness.with(|heap, _| check(&witness, heap, &expected));
}

#[test]
fn tasks_of_executors_are_found_in_their_blocks() {
    if !statics_are_readable() {
        return;
    }
    let witness = Witness::start("executor", "3");
    witness.with(|heap, memory| {
        check(&witness, heap, &[("locals of tasks", 13), ("tasks", 13)]);
        let graph = heap.graph(&witness.victim.dump).unwrap();
        let tasks = heap.tasks(memory, &DominatorTree::new(&graph));
        // Three of the 13 tasks were cancelled.
        assert_eq!(tasks.tasks, 10, "{tasks:#?}");
        let [row] = &tasks.rows[..] else { panic!("{tasks:#?}") };
        let names: Vec<_> = row.awaits.iter().map(|one| &*one.future).collect();
        assert_eq!((names, row.waits_for.as_deref()), (vec!["executor::small"], Some("executor::Never")));
        let lists: Vec<usize> =
            (0..heap.blocks().len()).filter(|block| heap.type_name(*block) == "[u64]").collect();
        let bytes = |block: usize| heap.blocks()[block].usable;
        let held: u64 = lists.iter().take(10).map(|list| bytes(*list)).sum();
        assert_eq!(row.retained_bytes, row.bytes + held);
    });
}

#[test]
fn names_of_buffers_are_those_of_their_owners() {
    if !statics_are_readable() {
        return;
    }
    let witness = Witness::start("names", "3");
    witness.with(|heap, memory| {
        let expected = [
            ("Arc<str>", 2),
            ("Box<str>", 2),
            ("LazyLock", 1),
            ("OnceLock", 1),
            ("String", 35),
            ("Vec<u8>", 4),
            ("boxed array", 5),
            ("boxed slice of vec![..]", 5),
            ("collect in place", 39),
            ("vec![..]", 50),
        ];
        check(&witness, heap, &expected);
        let rows = heap.waste(memory).rows;
        let row = rows.iter().find(|row| row.name == "[u32]").unwrap();
        assert_eq!((row.unused, row.blocks, row.unused_bytes), (WasteKind::Capacity, 50, 25 * 4));
        let statics: Vec<_> = heap.statics().map(|(path, _)| path).collect();
        let of = |name: &str| statics.iter().filter(|path| path.starts_with(name)).count();
        assert_eq!(["static names::ONCE", "static names::LAZY", "static names::UNUSED"].map(of), [1, 1, 0]);
    });
}

#[test]
fn values_behind_a_prefix_have_their_types() {
    if !statics_are_readable() {
        return;
    }
    let witness = Witness::start("prefix", "3");
    witness.with(|heap, _| {
        let expected = [
            ("behind a prefix", 50),
            ("named by owners", 30),
            ("owned by a prefix", 40),
            ("owners disagree", 10),
            ("padded value", 20),
            ("prefix and value", 60),
            ("reference to a field", 10),
        ];
        check(&witness, heap, &expected);
        let why = heap.holding_chains();
        let holders = |name: &str| -> Vec<(String, u64)> {
            let is_it = |block: &usize| heap.type_name(*block) == name;
            let blocks = (0..heap.blocks().len()).filter(is_it);
            why.holders(blocks).into_iter().map(|row| (row.name, row.blocks)).collect()
        };
        let row = |name: &str, count: u64| (name.to_owned(), count);
        let name = "[24 bytes before] prefix::Object<prefix::Name>";
        assert_eq!(holders(name), [row("[NonNull<prefix::Object<prefix::Erased>>]", 20)]);
        // The words of a prefix hold blocks, too.
        let slots = holders("[u32]");
        assert_eq!(slots.iter().map(|row| row.1).sum::<u64>(), 40, "{slots:?}");
        assert!(slots.iter().all(|row| row.0.ends_with(" (a word)")), "{slots:?}");
        let nodes = holders("[16 bytes before] prefix::Node");
        assert_eq!(
            nodes,
            [row("[16 bytes before] prefix::Node.next.Some", 29), row("static prefix::NODES.Some", 1)]
        );
    });
}

#[test]
fn two_versions_of_a_crate_stay_apart() {
    if !statics_are_readable() {
        return;
    }
    let witness = Witness::start("versions", "3");
    witness.with(|heap, _| {
        let expected = [
            ("behind closures, first version", 30),
            ("behind closures, second version", 30),
            ("enum, first version", 10),
            ("enum, second version", 10),
            ("first version", 150),
            ("library", 107),
            ("second version", 180),
            ("shared, first version", 30),
            ("shared, second version", 30),
            ("tree, first version", 20),
            ("tree, second version", 20),
        ];
        check(&witness, heap, &expected);
        let agreement = heap.agreement();
        assert_eq!((agreement.disagree, agreement.outweighed, agreement.owners_disagree), (0, 0, 0));
        // Statics hold all items, including the library's. Each version's items lead to the types of that version.
        let why = heap.holding_chains();
        let blocks =
            |name: &str| (0..heap.blocks().len()).filter(|block| heap.type_name(*block) == name).collect();
        let holders = |name: &str| -> Vec<(String, u64)> {
            let blocks: Vec<usize> = blocks(name);
            why.holders(blocks).into_iter().map(|row| (row.name, row.blocks)).collect()
        };
        let others = holders("item::Other");
        let in_nodes = |row: &&(String, u64)| row.0.ends_with("Node<u64, item::Kind>.values[].Two");
        assert_eq!(others.iter().filter(in_nodes).map(|row| row.1).sum::<u64>(), 20 + 15, "{others:?}");
        let others: Vec<_> = others.iter().filter(|row| !in_nodes(row)).cloned().collect();
        let row = |name: &str, count: u64| (name.to_owned(), count);
        let expected =
            [row("item::Item.leaf", 100), row("ArcInner<item::Item>.leaf", 10), row("[item::Kind].Two", 10)];
        assert_eq!(others, expected);
        let lists = [row("item::Item.list", 100), row("ArcInner<item::Item>.list", 10)];
        assert_eq!(holders("[u16]"), lists);
        let leaves = holders("item::Leaf");
        let of_first: u64 = leaves.iter().filter(|row| row.0.contains(".One")).map(|row| row.1).sum();
        assert_eq!(of_first, 10 + 20, "{leaves:?}");
    });
}
