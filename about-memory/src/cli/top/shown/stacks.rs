//! Tests of the screens of types and of stacks.

use super::*;

fn dark_matter() -> HeapBlocks {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dmd/dark-matter-mixed.json");
    HeapBlocks::new(dmd_analyze::read(path).unwrap(), &ProgramOptions::new())
}

#[test]
fn types_have_tables_and_lead_to_blocks() {
    let session = Session::new(SessionOptions::new());
    let mut shown = DrawnScreen::new(session.clone());
    shown.screens.told(ScreenAnswer::Processes(vec![process(7, "server", 10)]));
    shown.keys("t");
    assert_eq!(shown.lines()[23], "process 7 does not answer the request dmd-copy");
    shown.keys("5");
    assert!(shown.has("No types"));
    shown
        .screens
        .types
        .take(&session, "types of a file", |_| Err("the file has no types".to_owned()))
        .unwrap();
    assert!(shown.until("the file has no types")[1].starts_with("types of a file (1 of 1)"));

    let row = |bytes, text: &str, of_type: Option<&str>| TypeTableRow {
        bytes,
        blocks: 1234,
        text: text.to_owned(),
        of_type: of_type.map(str::to_owned),
    };
    let rows = vec![row(3 << 20, "Function", Some("Function")), row(1 << 20, "[u8]", Some("[u8]"))];
    let tables = vec![
        TypeTable::new("type", "By type", 4 << 20, rows, 10),
        TypeTable::new("field", "By field", 4 << 20, vec![row(4 << 20, "App.cache", None)], 10),
        TypeTable::by_pointers(
            "disagreement",
            "Disagreements",
            vec![row(0, "A, and the stack names B", None)],
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
    assert_eq!(shown.lines()[23], "select a row with a type");
    shown.press(KeyCode::Tab);
    assert_eq!(shown.lines()[2..4], ["  POINTERS WHAT", "     1,234 A, and the stack names B"]);
    shown.press(KeyCode::Tab);
    // Enter goes from a type to its blocks in the snapshot.
    shown.press(KeyCode::Enter);
    let lines = shown.until(" GROUP");
    assert!(lines[1].ends_with(": Function"), "{lines:#?}");
    assert_eq!(shown.screens.screen, ScreenKind::Memory);
    shown.press(KeyCode::Backspace);
    shown.until("aggregate by type and stack");
    shown.keys("5[");
    assert!(shown.has("the file has no types"));
}

#[test]
fn stacks_have_kinds_holders_a_flame_graph_and_callers() {
    let mut shown = without_files();
    shown.keys("4");
    shown.screens.told(ScreenAnswer::Stacks("dmd.json".to_owned(), Box::new(dark_matter())));
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
