//! Tests of each screen, as a terminal of 80 columns and 24 lines shows it.

#![allow(clippy::unwrap_used, reason = "a test")]

mod snapshots;
mod stacks;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use about_memory::serve::{TypeTable, TypeTableRow, TypeTables};
use about_memory::session::{Query, RowsOptions, Session, SessionOptions};
use dmd_analyze::program::{HeapBlocks, ProgramOptions};
use heap_graph::{GraphBuilder, NodeId, NodeParts};
use memory_report::{Kind, Report, ReportSet, Units};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::dump_limits::DumpLimits;
use super::super::heap::TypedHeapReader;
use super::super::symbols::SymbolSearch;
use super::ask::{ListedProcess, RequestKind, ScreenAnswer, ScreenRequest};
use super::screens::{KeyOutcome, ScreenKind, TopScreens};

struct DrawnScreen {
    screens: TopScreens,
    terminal: Terminal<TestBackend>,
}

impl DrawnScreen {
    fn new(session: Session) -> Self {
        let terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let reading = TypedHeapReader::new(SymbolSearch::default(), DumpLimits::with_max_bytes(1 << 30));
        Self { screens: TopScreens::new(session, reading), terminal }
    }

    /// Returns the lines of the screen, without trailing spaces.
    fn lines(&mut self) -> Vec<String> {
        self.terminal.draw(|frame| self.screens.draw(frame)).unwrap();
        let buffer = self.terminal.backend().buffer();
        let line = |y| (0..80).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..24).map(line).collect()
    }

    fn press(&mut self, key: KeyCode) -> Option<ScreenRequest> {
        match self.screens.press(KeyEvent::new(key, KeyModifiers::NONE)) {
            KeyOutcome::Nothing => None,
            KeyOutcome::Ask(ask) => Some(ask),
            KeyOutcome::Quit => panic!("{key:?} quits"),
        }
    }

    fn keys(&mut self, keys: &str) {
        for key in keys.chars() {
            assert!(self.press(KeyCode::Char(key)).is_none(), "{key}");
        }
    }

    /// Returns the lines as soon as one of them contains the text.
    fn until(&mut self, text: &str) -> Vec<String> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let lines = self.lines();
            if lines.iter().any(|line| line.contains(text)) {
                return lines;
            }
            assert!(Instant::now() < end, "no line contains {text}: {lines:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn has(&mut self, text: &str) -> bool {
        self.lines().iter().any(|line| line.contains(text))
    }
}

fn without_files() -> DrawnScreen {
    DrawnScreen::new(Session::new(SessionOptions::new()))
}

fn small() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/tests/golden/small-a.fxsnapshot")
}

fn process(pid: u32, name: &str, resident: u64) -> ListedProcess {
    // The list omits requests that every process answers.
    let requests = vec!["heap-snapshot".to_owned()];
    ListedProcess {
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
        shown
            .screens
            .told(ScreenAnswer::Processes(vec![process(7, "server", resident), process(8, "worker", 5)]));
    }
    let lines = shown.lines();
    assert!(lines[0].starts_with(" 1 Processes   2 Report   3 Memory   4 Stacks   5 Types"), "{lines:#?}");
    assert_eq!(lines[1], "       PID   RESIDENT       HEAP LATELY           PROCESS");
    assert_eq!(lines[2], "         7  40.00 MiB   1.00 MiB              ▂▄█ server");
    assert_eq!(lines[3], "         8   5.00 MiB   1.00 MiB              ███ worker");
    assert!(matches!(shown.press(KeyCode::Char('m')), Some(ScreenRequest::Minimize(7))));
    assert!(matches!(shown.press(KeyCode::Char('s')), Some(ScreenRequest::Save(7))));
    // A process without DMD has no stacks.
    shown.keys("d");
    assert_eq!(shown.lines()[23], "process 7 does not answer the request dmd-dump");
    shown.keys("D");
    assert_eq!(shown.lines()[23], "mark two processes with Space first");
    shown.keys(" j ");
    assert!(shown.lines()[3].starts_with("*        8"));
    assert!(matches!(shown.press(KeyCode::Char('D')), Some(ScreenRequest::Diff([7, 8]))));
    assert_eq!(shown.screens.screen, ScreenKind::Report);
    shown.keys("1k");
    assert!(matches!(shown.press(KeyCode::Enter), Some(ScreenRequest::Measure(pids)) if pids == [7, 8]));
    // An ended process is neither shown nor marked.
    shown.screens.told(ScreenAnswer::Processes(vec![process(8, "worker", 5)]));
    shown.keys("1");
    assert!(!shown.has("server"));
    assert!(matches!(shown.press(KeyCode::Enter), Some(ScreenRequest::Measure(pids)) if pids == [8]));
}

#[test]
fn all_keys_are_listed_and_q_quits() {
    let mut shown = without_files();
    shown.keys("?");
    let lines = shown.lines().join("\n");
    for text in
        ["Enter open", "Space pause", "Backspace back", "k kind", "q or Ctrl-C ends", "S snapshot", "x save"]
    {
        assert!(lines.contains(text), "{text} in {lines}");
    }
    // No line is cut off at its end.
    for (screen, end) in [("1", "t types"), ("2", "x save"), ("3", "S snapshot"), ("4", "Backspace back")] {
        shown.keys(&format!("x{screen}"));
        assert!(shown.lines()[23].ends_with(end), "{end}");
        shown.keys("?");
    }
    shown.keys("x4");
    assert!(shown.has("No stacks"));
    let key = |code, modifiers| KeyEvent::new(code, modifiers);
    assert!(matches!(shown.screens.press(key(KeyCode::Char('q'), KeyModifiers::NONE)), KeyOutcome::Quit));
    assert!(matches!(shown.screens.press(key(KeyCode::Char('c'), KeyModifiers::CONTROL)), KeyOutcome::Quit));
}

#[test]
fn a_report_opens_filters_and_shows_changes_since_a_mark() {
    let mut shown = without_files();
    shown.screens.screen = ScreenKind::Report;
    assert!(shown.has("No report"));
    shown.screens.told(ScreenAnswer::Report(vec![7], Box::new(set(4))));
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

    assert!(matches!(shown.screens.again(), Some(ScreenRequest::Measure(pids)) if pids == [7]));
    shown.keys(" ");
    assert!(shown.has("paused") && shown.screens.again().is_none());
    shown.keys(" b");
    shown.screens.told(ScreenAnswer::Report(vec![7], Box::new(set(6))));
    let lines = shown.lines();
    assert_eq!(lines[1], "process 7 since the mark");
    assert!(
        lines.iter().any(|line| line.starts_with("     +2.00 MiB") && line.contains("cache")),
        "{lines:#?}"
    );
    assert!(!lines.iter().any(|line| line.contains("index")));
    assert!(matches!(shown.press(KeyCode::Char('x')), Some(ScreenRequest::Export(set)) if set.len() == 4));
}

/// The guide contains the screens of a process and of its report exactly as the program draws them.
#[test]
fn the_guide_shows_the_screens() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/serve.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let mut shown = without_files();
    for resident in [10, 20, 40] {
        let processes = vec![process(7, "server", resident), process(8, "worker", 5)];
        shown.screens.told(ScreenAnswer::Processes(processes));
    }
    let mut check = |last: usize| {
        let lines = shown.lines();
        let picture =
            format!("{}\n", lines[..last].iter().chain([&lines[23]]).cloned().collect::<Vec<_>>().join("\n"));
        assert!(guide.contains(&picture), "the guide needs this picture:\n{picture}");
        shown.press(KeyCode::Enter);
        shown.screens.told(ScreenAnswer::Report(vec![7], Box::new(set(4))));
    };
    check(4);
    check(8);
}

/// The user requests a process, then a difference. The measurement of the process arrives late, and must not replace
/// the difference.
#[test]
fn a_late_answer_replaces_no_later_one() {
    let mut shown = without_files();
    shown.screens.told(ScreenAnswer::Processes(vec![process(7, "server", 10), process(8, "worker", 5)]));
    assert!(matches!(shown.press(KeyCode::Enter), Some(ScreenRequest::Measure(pids)) if pids == [7]));
    shown.keys("1 j ");
    assert!(matches!(shown.press(KeyCode::Char('D')), Some(ScreenRequest::Diff([7, 8]))));
    shown.screens.told(ScreenAnswer::Difference("from 7 to 8".to_owned(), Box::new(set(4))));
    shown.screens.told(ScreenAnswer::Report(vec![7], Box::new(set(5))));
    assert_eq!(shown.lines()[1], "from 7 to 8");
    shown.keys("1 k ");
    assert!(matches!(shown.press(KeyCode::Enter), Some(ScreenRequest::Measure(pids)) if pids == [7]));
    shown.screens.told(ScreenAnswer::Difference("late".to_owned(), Box::new(set(4))));
    assert_eq!(shown.lines()[1], "from 7 to 8");
    shown.screens.told(ScreenAnswer::Report(vec![7], Box::new(set(5))));
    assert_eq!(shown.lines()[1], "process 7");
    // If a difference fails, the visible report stays and is updated again.
    shown.keys("1 j ");
    assert!(matches!(shown.press(KeyCode::Char('D')), Some(ScreenRequest::Diff(_))));
    let fails = |shown: &mut DrawnScreen, asked| {
        shown.screens.told(ScreenAnswer::Failed(asked, "it has ended".to_owned()));
    };
    // Other failures do not change the screen: a file was not saved, or an earlier measurement failed.
    fails(&mut shown, RequestKind::Other);
    fails(&mut shown, RequestKind::Report(vec![7]));
    shown.screens.told(ScreenAnswer::Report(vec![7], Box::new(set(9))));
    assert!(!shown.has("10.00 MiB"), "the difference may still arrive");
    fails(&mut shown, RequestKind::Report(Vec::new()));
    shown.screens.told(ScreenAnswer::Report(vec![7], Box::new(set(9))));
    assert!(shown.has("10.00 MiB"), "the cache has 1 MiB and 9");
}

/// Foreign names that would look equal to other names: a terminal shows neither zero-width characters nor controls.
const DECEPTIVE: [&str; 6] =
    ["safe::T\u{200b}ype", "a\u{202e}gnp", "nul\0b", "esc\u{1b}[31m", "nl\nFAKE", "\u{feff}bom"];

#[test]
fn no_screen_shows_what_deceives() {
    let shows = |shown: &mut DrawnScreen, text: &str| {
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
        let mut shown = DrawnScreen::new(session.clone());
        shown.screens.told(ScreenAnswer::Processes(vec![process(7, name, 1)]));
        shows(&mut shown, &escaped);
        shown.screens.told(ScreenAnswer::Failed(RequestKind::Other, name.to_owned()));
        shows(&mut shown, &escaped);

        let mut set = ReportSet::new();
        let (path, kind, units) = (format!("explicit/{name}"), Kind::Heap, Units::Bytes);
        set.push(Report { process: name, path: &path, kind, units, amount: 5, description: name });
        shown.screens.screen = ScreenKind::Report;
        shown.screens.told(ScreenAnswer::Report(vec![7], Box::new(set)));
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
        shown.screens.told(ScreenAnswer::Stacks(name.to_owned(), Box::new(blocks)));
        shown.keys("4");
        for key in ["t", "f", "e"] {
            shown.keys(key);
            shows(&mut shown, &escaped);
        }

        let row = TypeTableRow { bytes: 8, blocks: 1, text: name.to_owned(), of_type: None };
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
