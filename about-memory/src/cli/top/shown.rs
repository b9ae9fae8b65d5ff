//! Each screen as a terminal of 80 columns and 24 lines shows it.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use about_memory::serve::{TypeRow, TypeTable, TypeTables};
use about_memory::session::{Query, RowsOptions, Session, SessionOptions};
use dmd_analyze::program::{HeapBlocks, ProgramOptions};
use heap_graph::{GraphBuilder, NodeId, NodeParts};
use memory_report::{Kind, Report, ReportSet, Units};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::dump_limits::DumpLimits;
use super::super::heap::TypedHeapReader;
use super::super::symbols::Symbols;
use super::ask::{Ask, Asked, Process, Told};
use super::screens::{Next, Screen, Screens};

struct Shown {
    screens: Screens,
    terminal: Terminal<TestBackend>,
}

impl Shown {
    fn new(session: Session) -> Self {
        let terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let reading = TypedHeapReader::new(Symbols::default(), DumpLimits::of_bytes(1 << 30));
        Self { screens: Screens::new(session, reading), terminal }
    }

    /// The lines on the screen, without spaces at their ends.
    fn lines(&mut self) -> Vec<String> {
        self.terminal.draw(|frame| self.screens.draw(frame)).unwrap();
        let buffer = self.terminal.backend().buffer();
        let line = |y| (0..80).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..24).map(line).collect()
    }

    fn press(&mut self, key: KeyCode) -> Option<Ask> {
        match self.screens.press(KeyEvent::new(key, KeyModifiers::NONE)) {
            Next::Nothing => None,
            Next::Ask(ask) => Some(ask),
            Next::Quit => panic!("{key:?} quits"),
        }
    }

    fn keys(&mut self, keys: &str) {
        for key in keys.chars() {
            assert!(self.press(KeyCode::Char(key)).is_none(), "{key}");
        }
    }

    /// The lines once one of them contains a text.
    fn until(&mut self, text: &str) -> Vec<String> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let lines = self.lines();
            if lines.iter().any(|line| line.contains(text)) {
                return lines;
            }
            assert!(Instant::now() < end, "{text} is not in {lines:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn has(&mut self, text: &str) -> bool {
        self.lines().iter().any(|line| line.contains(text))
    }
}

fn without_files() -> Shown {
    Shown::new(Session::new(SessionOptions::new()))
}

fn process(pid: u32, name: &str, resident: u64) -> Process {
    // A process lists only the requests that not every process answers.
    let requests = vec!["heap-snapshot".to_owned()];
    Process {
        pid,
        name: name.to_owned(),
        requests,
        resident: Some(resident << 20),
        heap: Some(1 << 20),
        error: None,
    }
}

fn set(megabytes: i64) -> ReportSet {
    let mut set = ReportSet::new();
    for (path, kind, amount) in [
        ("explicit/cache/keys", Kind::Heap, 1),
        ("explicit/cache/values", Kind::Heap, megabytes),
        ("explicit/index", Kind::Heap, 2),
        ("heap-allocated", Kind::Other, 20),
    ] {
        let (process, units, description) = ("Main Process (pid 7)", Units::Bytes, "A part.");
        set.push(Report { process, path, kind, units, amount: amount << 20, description });
    }
    set
}

#[test]
fn processes_have_a_line_each_and_keys() {
    let mut shown = without_files();
    assert!(shown.has("ABOUT_MEMORY=listen"));
    for resident in [10, 20, 40] {
        shown.screens.told(Told::Processes(vec![process(7, "server", resident), process(8, "worker", 5)]));
    }
    let lines = shown.lines();
    assert!(lines[0].starts_with(" 1 Processes   2 Report   3 Memory   4 Stacks   5 Types"), "{lines:#?}");
    assert_eq!(lines[1], "       PID   RESIDENT       HEAP LATELY           PROCESS");
    assert_eq!(lines[2], "         7  40.00 MiB   1.00 MiB              ▂▄█ server");
    assert_eq!(lines[3], "         8   5.00 MiB   1.00 MiB              ███ worker");
    assert!(matches!(shown.press(KeyCode::Char('m')), Some(Ask::Minimize(7))));
    assert!(matches!(shown.press(KeyCode::Char('s')), Some(Ask::Save(7))));
    // A process without DMD has no stacks.
    shown.keys("d");
    assert_eq!(shown.lines()[23], "process 7 does not offer this (dmd-dump)");
    shown.keys("D");
    assert_eq!(shown.lines()[23], "mark two processes with Space first");
    shown.keys(" j ");
    assert!(shown.lines()[3].starts_with("*        8"));
    assert!(matches!(shown.press(KeyCode::Char('D')), Some(Ask::Diff([7, 8]))));
    assert_eq!(shown.screens.screen, Screen::Report);
    shown.keys("1k");
    assert!(matches!(shown.press(KeyCode::Enter), Some(Ask::Measure(pids)) if pids == [7, 8]));
    // A process that has ended is neither shown nor marked.
    shown.screens.told(Told::Processes(vec![process(8, "worker", 5)]));
    shown.keys("1");
    assert!(!shown.has("server"));
    assert!(matches!(shown.press(KeyCode::Enter), Some(Ask::Measure(pids)) if pids == [8]));
}

#[test]
fn all_keys_are_listed_and_q_quits() {
    let mut shown = without_files();
    shown.keys("?");
    let lines = shown.lines().join("\n");
    for text in
        ["Enter open", "Space pause", "Backspace back", "k kind", "q or Ctrl-C ends", "S take", "x save"]
    {
        assert!(lines.contains(text), "{text} in {lines}");
    }
    // Nothing is cut off at the end of a line.
    for (screen, end) in [("1", "t types"), ("2", "x save"), ("3", "S take"), ("4", "Backspace back")] {
        shown.keys(&format!("x{screen}"));
        assert!(shown.lines()[23].ends_with(end), "{end}");
        shown.keys("?");
    }
    shown.keys("x4");
    assert!(shown.has("No stacks"));
    let key = |code, modifiers| KeyEvent::new(code, modifiers);
    assert!(matches!(shown.screens.press(key(KeyCode::Char('q'), KeyModifiers::NONE)), Next::Quit));
    assert!(matches!(shown.screens.press(key(KeyCode::Char('c'), KeyModifiers::CONTROL)), Next::Quit));
}

#[test]
fn a_report_opens_filters_and_shows_changes_since_a_mark() {
    let mut shown = without_files();
    shown.screens.screen = Screen::Report;
    assert!(shown.has("No report"));
    shown.screens.told(Told::Report(vec![7], Box::new(set(4))));
    let lines = shown.lines();
    assert_eq!(lines[1], "process 7");
    assert_eq!(lines[2], "▾ Main Process (pid 7)");
    assert_eq!(lines[3], "     20.00 MiB  100.0% ▾ explicit");
    assert_eq!(lines[4], "     13.00 MiB   65.0%     heap-unclassified");
    assert_eq!(lines[5], "      5.00 MiB   25.0%   ▸ cache");
    for _ in 0..3 {
        shown.press(KeyCode::Down);
    }
    shown.press(KeyCode::Right);
    assert_eq!(shown.lines()[6], "      4.00 MiB   20.0%       values");
    shown.press(KeyCode::Left);
    assert!(!shown.has("values"));
    shown.keys("v");
    assert!(shown.has("5,242,880"));
    shown.keys("v/val");
    assert!(shown.has("filter: val_"));
    shown.press(KeyCode::Enter);
    assert!(shown.has("values") && !shown.has("index"));
    shown.press(KeyCode::Home);
    shown.keys("n/");
    shown.press(KeyCode::Esc);
    assert!(shown.has("index"));

    assert!(matches!(shown.screens.again(), Some(Ask::Measure(pids)) if pids == [7]));
    shown.keys(" ");
    assert!(shown.has("paused") && shown.screens.again().is_none());
    shown.keys(" b");
    shown.screens.told(Told::Report(vec![7], Box::new(set(6))));
    let lines = shown.lines();
    assert_eq!(lines[1], "process 7 since the mark");
    assert!(
        lines.iter().any(|line| line.starts_with("     +2.00 MiB") && line.contains("cache")),
        "{lines:#?}"
    );
    assert!(!lines.iter().any(|line| line.contains("index")));
    assert!(matches!(shown.press(KeyCode::Char('x')), Some(Ask::Export(set)) if set.len() == 4));
}

/// The guide shows the screens of a process and of its report as they are.
#[test]
fn the_guide_shows_the_screens() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/serve.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let mut shown = without_files();
    for resident in [10, 20, 40] {
        let processes = vec![process(7, "server", resident), process(8, "worker", 5)];
        shown.screens.told(Told::Processes(processes));
    }
    let mut check = |last: usize| {
        let lines = shown.lines();
        let picture =
            format!("{}\n", lines[..last].iter().chain([&lines[23]]).cloned().collect::<Vec<_>>().join("\n"));
        assert!(guide.contains(&picture), "the guide needs this picture:\n{picture}");
        shown.press(KeyCode::Enter);
        shown.screens.told(Told::Report(vec![7], Box::new(set(4))));
    };
    check(4);
    check(8);
}

/// The reader asks for a process, then for a difference: the measurement comes late, and does not replace what was asked last.
#[test]
fn a_late_answer_replaces_no_later_one() {
    let mut shown = without_files();
    shown.screens.told(Told::Processes(vec![process(7, "server", 10), process(8, "worker", 5)]));
    assert!(matches!(shown.press(KeyCode::Enter), Some(Ask::Measure(pids)) if pids == [7]));
    shown.keys("1 j ");
    assert!(matches!(shown.press(KeyCode::Char('D')), Some(Ask::Diff([7, 8]))));
    shown.screens.told(Told::Difference("from 7 to 8".to_owned(), Box::new(set(4))));
    shown.screens.told(Told::Report(vec![7], Box::new(set(5))));
    assert_eq!(shown.lines()[1], "from 7 to 8");
    shown.keys("1 k ");
    assert!(matches!(shown.press(KeyCode::Enter), Some(Ask::Measure(pids)) if pids == [7]));
    shown.screens.told(Told::Difference("late".to_owned(), Box::new(set(4))));
    assert_eq!(shown.lines()[1], "from 7 to 8");
    shown.screens.told(Told::Report(vec![7], Box::new(set(5))));
    assert_eq!(shown.lines()[1], "process 7");
    // A difference that fails leaves the report in sight, which is followed on.
    shown.keys("1 j ");
    assert!(matches!(shown.press(KeyCode::Char('D')), Some(Ask::Diff(_))));
    let fails = |shown: &mut Shown, asked| shown.screens.told(Told::Failed(asked, "it has ended".to_owned()));
    // What fails besides it changes nothing: a file that is not saved, a measurement from before.
    fails(&mut shown, Asked::Other);
    fails(&mut shown, Asked::Report(vec![7]));
    shown.screens.told(Told::Report(vec![7], Box::new(set(9))));
    assert!(!shown.has("10.00 MiB"), "the difference may still come");
    fails(&mut shown, Asked::Report(Vec::new()));
    shown.screens.told(Told::Report(vec![7], Box::new(set(9))));
    assert!(shown.has("10.00 MB"), "the cache has 1 MB and 9");
}

fn small() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/tests/golden/small-a.fxsnapshot")
}

#[test]
fn a_snapshot_has_aggregate_dominators_suspects_nodes_and_paths() {
    let session = Session::new(SessionOptions::new());
    let mut shown = Shown::new(session.clone());
    shown.screens.screen = Screen::Memory;
    assert!(shown.has("No heap snapshot"));
    let id = session.open(&small()).unwrap();
    session.wait_until_read(id);
    let lines = shown.until("GROUP");
    assert!(lines[1].starts_with("small-a (1 of 1, ") && lines[1].ends_with("aggregate by type, inverted"));
    shown.keys("g");
    let lines = shown.until("by objectClass");
    assert!(lines.len() == 24);
    let lines = shown.until("Function");
    let first = lines[3].clone();
    shown.keys("i");
    shown.until("inverted");
    shown.keys("i");
    shown.until("Function");
    // From the group to its nodes, to the paths of the first, and back.
    shown.keys("u");
    let lines = shown.until(" NODE");
    assert!(lines[1].ends_with("nodes of the group"), "{lines:#?}");
    assert!(lines[3].contains("@ 0x"));
    shown.keys("p");
    assert!(shown.until("→")[1].contains("paths to @ 0x"));
    shown.press(KeyCode::Backspace);
    shown.until(" NODE");
    shown.press(KeyCode::Backspace);
    assert_eq!(shown.until(" GROUP")[3], first);
    shown.press(KeyCode::Tab);
    let lines = shown.until(" NODE");
    assert!(lines[1].ends_with("dominators"));
    assert!(lines[3].contains('▾'), "{lines:#?}");
    shown.press(KeyCode::Tab);
    shown.until("suspects");
    shown.press(KeyCode::Tab);
    shown.keys("S");
    assert_eq!(shown.lines()[23], "choose a process on the first screen with S");
    // The next snapshot, and the one before.
    let other = session.open(&small().with_file_name("medium.fxsnapshot")).unwrap();
    session.wait_until_read(other);
    shown.keys("]");
    shown.until("medium (2 of 2");
    shown.keys("[");
    shown.until("small-a (1 of 2");
}

/// As on the page of `serve`, two levels of dominators are open until the reader closes them.
#[test]
fn the_first_levels_of_dominators_are_open() {
    // Two owners, each of two lists of a leaf, which has a part.
    let mut builder = GraphBuilder::new();
    let name = builder.text("Node").unwrap();
    let below = |id| match id {
        1 => vec![10, 20],
        10 | 20 => vec![id + 1, id + 2],
        11 | 12 | 21 | 22 => vec![id * 10],
        110 | 120 | 210 | 220 => vec![id + 1],
        _ => Vec::new(),
    };
    let mut queue = vec![1];
    while let Some(id) = queue.pop() {
        builder.node(NodeParts::new(NodeId(id), id, name)).unwrap();
        below(id).into_iter().for_each(|to| builder.edge(NodeId(to), None).unwrap());
        queue.extend(below(id));
    }
    let session = Session::new(SessionOptions::new());
    let mut shown = Shown::new(session.clone());
    let snapshot = session.insert("deep", builder.finish().unwrap()).unwrap();
    let query = Query::Dominators { snapshot, filter: String::new() };
    let answer = session.ask(query.clone()).unwrap().wait(Duration::from_secs(60)).unwrap().unwrap();
    let expected = |options: RowsOptions| {
        let rows = session.rows(&query, &answer, &options).unwrap().rows;
        rows.iter().map(|row| format!("@ 0x{:x}", row.id)).collect::<Vec<_>>()
    };
    let addresses = |lines: Vec<String>| -> Vec<_> {
        let rows = lines[3..23].iter();
        rows.filter_map(|line| Some(line[line.find("@ 0x")?..].to_owned())).collect()
    };
    shown.screens.screen = Screen::Memory;
    shown.press(KeyCode::Tab);
    let seen = addresses(shown.until(" NODE"));
    let options = RowsOptions::first(20).depth(2);
    assert_eq!(seen, expected(options.clone()));
    assert_eq!(seen.len(), 10, "{seen:?}");
    let first = session.rows(&query, &answer, &RowsOptions::first(1)).unwrap().rows[0].id;
    for (key, is_open) in [(KeyCode::Left, false), (KeyCode::Right, true), (KeyCode::Enter, false)] {
        shown.press(key);
        let now = if is_open { options.clone() } else { options.clone().close(first) };
        assert_eq!(addresses(shown.lines()), expected(now), "{key:?}");
    }
    // What was closed is open again in a view that begins anew.
    (0..3).for_each(|_| assert!(shown.press(KeyCode::Tab).is_none()));
    shown.until(" NODE");
    assert_eq!(addresses(shown.until("dominators")), seen);
}

/// The row around the chosen one may be far above what is in sight.
#[test]
fn left_reaches_the_row_around() {
    let mut builder = GraphBuilder::new();
    let names = ["Root", "Owner", "Leaf"].map(|name| builder.text(name).unwrap());
    builder.node(NodeParts::new(NodeId(1), 8, names[0])).unwrap();
    builder.edge(NodeId(2), None).unwrap();
    builder.node(NodeParts::new(NodeId(2), 8, names[1])).unwrap();
    (3..103).for_each(|id| builder.edge(NodeId(id), None).unwrap());
    (3..103).for_each(|id| builder.node(NodeParts::new(NodeId(id), 8, names[2])).unwrap());
    let session = Session::new(SessionOptions::new());
    let mut shown = Shown::new(session.clone());
    session.insert("wide", builder.finish().unwrap()).unwrap();
    shown.screens.screen = Screen::Memory;
    shown.press(KeyCode::Tab);
    shown.until("▾ other › Owner");
    shown.press(KeyCode::End);
    assert!(!shown.has("Owner"));
    shown.press(KeyCode::Left);
    let lines = shown.lines();
    assert!(lines[3].contains("▾ other › Owner"), "{lines:#?}");
    // From a leaf that is among those which open by themselves, too.
    shown.press(KeyCode::Down);
    shown.lines();
    shown.press(KeyCode::Left);
    assert!(shown.has("▾ other › Owner"));
    // It is chosen, so Left closes it.
    shown.press(KeyCode::Left);
    assert!(shown.has("▸ other › Owner") && !shown.has("Leaf"));
}

fn dark_matter() -> HeapBlocks {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dmd/dark-matter-mixed.json");
    HeapBlocks::new(dmd_analyze::read(path).unwrap(), &ProgramOptions::new())
}

#[test]
fn types_have_tables_and_lead_to_blocks() {
    let session = Session::new(SessionOptions::new());
    let mut shown = Shown::new(session.clone());
    shown.screens.told(Told::Processes(vec![process(7, "server", 10)]));
    shown.keys("t");
    assert_eq!(shown.lines()[23], "process 7 does not offer this (dmd-copy)");
    shown.keys("5");
    assert!(shown.has("No types"));
    shown.screens.types.take(&session, "types of a file", |_| Err("it has none".to_owned())).unwrap();
    assert!(shown.until("it has none")[1].starts_with("types of a file (1 of 1)"));

    let row = |bytes, text: &str, of_type: Option<&str>| TypeRow {
        bytes,
        blocks: 1234,
        text: text.to_owned(),
        of_type: of_type.map(str::to_owned),
    };
    let rows = vec![row(3 << 20, "Function", Some("Function")), row(1 << 20, "[u8]", Some("[u8]"))];
    let tables = vec![
        TypeTable::new("type", "By type", 4 << 20, rows, 10),
        TypeTable::new("field", "By field", 4 << 20, vec![row(4 << 20, "App.cache", None)], 10),
        TypeTable::of_pointers(
            "disagreement",
            "Disagreements",
            vec![row(0, "A, and the stack says B", None)],
            10,
        ),
    ];
    let tables = TypeTables::new("4.00 MiB in 2468 blocks.", tables);
    let save = move |path: &Path| {
        std::fs::copy(small(), path).map_err(|error| error.to_string())?;
        Ok(tables)
    };
    shown.screens.types.take(&session, "types of server", save).unwrap();
    let lines = shown.until("By type");
    assert_eq!(lines[1], "types of server (2 of 2): By type");
    assert_eq!(lines[3], "    3.00 MiB   75.0%      1,234 Function");
    assert_eq!(lines[21], "4.00 MiB in 2468 blocks.");
    shown.press(KeyCode::Tab);
    assert_eq!(shown.lines()[3], "    4.00 MiB  100.0%      1,234 App.cache");
    shown.press(KeyCode::Enter);
    assert_eq!(shown.lines()[23], "choose a row of a type");
    shown.press(KeyCode::Tab);
    assert_eq!(shown.lines()[2..4], ["  POINTERS WHAT", "     1,234 A, and the stack says B"]);
    shown.press(KeyCode::Tab);
    // From a type to its blocks: those of the snapshot.
    shown.press(KeyCode::Enter);
    let lines = shown.until(" GROUP");
    assert!(lines[1].ends_with(": Function"), "{lines:#?}");
    assert_eq!(shown.screens.screen, Screen::Memory);
    shown.press(KeyCode::Backspace);
    shown.until("aggregate by type and stack");
    shown.keys("5[");
    assert!(shown.has("it has none"));
}

#[test]
fn stacks_have_kinds_holders_a_flame_graph_and_callers() {
    let mut shown = without_files();
    shown.keys("4");
    shown.screens.told(Told::Stacks("dmd.json".to_owned(), Box::new(dark_matter())));
    let all = shown.lines();
    assert!(all[1].starts_with("dmd.json, All (") && all[1].ends_with("by site"), "{all:#?}");
    assert_eq!(all[2], "       BYTES             BLOCKS NAME");
    shown.keys("k");
    assert!(shown.lines()[1].contains(", Twice-reported ("));
    shown.keys("kkk");
    assert_eq!(shown.lines(), all);
    shown.keys("t");
    assert!(shown.lines()[1].ends_with("by type"));
    shown.keys("f");
    let lines = shown.lines();
    assert!(lines[3].contains("██████████ ▾ all"), "{lines:#?}");
    let open = |lines: &[String]| {
        lines
            .iter()
            .skip(3)
            .filter(|line| line.contains("MiB") || line.contains(" B ") || line.contains("KiB"))
            .count()
    };
    let before = open(&lines);
    assert!(before > 1);
    shown.press(KeyCode::Enter);
    assert_eq!(open(&shown.lines()), 1);
    shown.press(KeyCode::Right);
    assert_eq!(open(&shown.lines()), before);
    shown.keys("e");
    let functions = shown.lines();
    assert!(functions[1].ends_with("functions"));
    shown.press(KeyCode::Enter);
    let lines = shown.lines();
    assert!(lines[1].contains("around ") && lines.iter().any(|line| line == "called by"), "{lines:#?}");
    assert!(lines.iter().any(|line| line == "calls") && lines.iter().any(|line| line.contains("of its own")));
    shown.press(KeyCode::Backspace);
    assert_eq!(shown.lines(), functions);
}

/// Names from outside that would look like others: a terminal shows neither characters without width nor controls.
const DECEPTIVE: [&str; 6] =
    ["safe::T\u{200b}ype", "a\u{202e}gnp", "nul\0b", "esc\u{1b}[31m", "nl\nFAKE", "\u{feff}bom"];

#[test]
fn no_screen_shows_what_deceives() {
    let shows = |shown: &mut Shown, text: &str| {
        let lines = shown.until(text);
        let is_bad = |line: &&String| line.chars().any(memory_report::is_deceptive);
        assert_eq!(lines.iter().find(is_bad), None);
    };
    for name in DECEPTIVE {
        let escaped = about_memory::escape(name);
        assert_ne!(escaped, name);
        let mut builder = GraphBuilder::new();
        let [root, class] = ["Root", name].map(|name| builder.text(name).unwrap());
        builder.node(NodeParts::new(NodeId(1), 8, root)).unwrap();
        builder.edge(NodeId(2), Some(class)).unwrap();
        builder.node(NodeParts::new(NodeId(2), 800, class)).unwrap();
        let session = Session::new(SessionOptions::new());
        session.insert(name, builder.finish().unwrap()).unwrap();
        let mut shown = Shown::new(session.clone());
        shown.screens.told(Told::Processes(vec![process(7, name, 1)]));
        shows(&mut shown, &escaped);
        shown.screens.told(Told::Failed(Asked::Other, name.to_owned()));
        shows(&mut shown, &escaped);

        let mut set = ReportSet::new();
        let (path, kind, units) = (format!("explicit/{name}"), Kind::Heap, Units::Bytes);
        set.push(Report { process: name, path: &path, kind, units, amount: 5, description: name });
        shown.screens.screen = Screen::Report;
        shown.screens.told(Told::Report(vec![7], Box::new(set)));
        shows(&mut shown, &escaped);

        shown.keys("3");
        shows(&mut shown, &format!("{escaped} (1 of 1"));
        for _ in 0..3 {
            shows(&mut shown, &escaped);
            shown.press(KeyCode::Tab);
        }
        shown.press(KeyCode::Tab);
        shown.until("dominators");
        shown.until(" NODE");
        shown.keys("p");
        shows(&mut shown, &format!(".{escaped} →"));

        let frames = serde_json::json!({ "F": format!("#00: {name} ({name}:1)") });
        let dump = serde_json::json!({
            "version": 5, "invocation": { "dmdEnvVar": "1", "mode": "live" }, "frameTable": frames, "traceTable": { "T": ["F"] },
            "blockList": [{ "req": 100, "alloc": "T" }],
        });
        let dump = dmd_analyze::read_from(dump.to_string().as_bytes(), &Default::default()).unwrap();
        let blocks = HeapBlocks::new(dump, &ProgramOptions::new());
        shown.screens.told(Told::Stacks(name.to_owned(), Box::new(blocks)));
        shown.keys("4");
        for key in ["t", "f", "e"] {
            shown.keys(key);
            shows(&mut shown, &escaped);
        }

        let row = TypeRow { bytes: 8, blocks: 1, text: name.to_owned(), of_type: None };
        let table = TypeTable::new("types", name, 8, vec![row], 10);
        let tables = TypeTables::new(name, vec![table]);
        let path = small();
        let save =
            move |to: &Path| std::fs::copy(&path, to).map(|_| tables).map_err(|error| error.to_string());
        shown.screens.types.take(&session, name, save).unwrap();
        shown.keys("5");
        shown.until(" WHAT");
        shows(&mut shown, &escaped);
    }
}
