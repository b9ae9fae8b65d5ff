//! Tests of the screen of heap snapshots.

use super::*;

#[test]
fn a_snapshot_has_aggregate_dominators_suspects_nodes_and_paths() {
    let session = Session::new(SessionOptions::new());
    let mut shown = DrawnScreen::new(session.clone());
    shown.screens.screen = ScreenKind::Memory;
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
    // The test goes from the group to its nodes, then to the paths of the first node, and back.
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
    assert_eq!(shown.lines()[23], "press S on a process of the first screen");
    // Selects the next snapshot, then the previous snapshot.
    let other = session.open(&small().with_file_name("medium.fxsnapshot")).unwrap();
    session.wait_until_read(other);
    shown.keys("]");
    shown.until("medium (2 of 2");
    shown.keys("[");
    shown.until("small-a (1 of 2");
}

/// As on the page of `serve`, two levels of dominators are open until the user closes them.
#[test]
fn the_first_levels_of_dominators_are_open() {
    // Two owners, each with two lists. Each list has a leaf with one part.
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
    let mut shown = DrawnScreen::new(session.clone());
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
    shown.screens.screen = ScreenKind::Memory;
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
    // A closed row is open again in a new view.
    (0..3).for_each(|_| assert!(shown.press(KeyCode::Tab).is_none()));
    shown.until(" NODE");
    assert_eq!(addresses(shown.until("dominators")), seen);
}

/// The parent of the chosen row may be far above the visible rows.
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
    let mut shown = DrawnScreen::new(session.clone());
    session.insert("wide", builder.finish().unwrap()).unwrap();
    shown.screens.screen = ScreenKind::Memory;
    shown.press(KeyCode::Tab);
    shown.until("▾ other › Owner");
    shown.press(KeyCode::End);
    assert!(!shown.has("Owner"));
    shown.press(KeyCode::Left);
    let lines = shown.lines();
    assert!(lines[3].contains("▾ other › Owner"), "{lines:#?}");
    // Left also reaches the parent row from a leaf below rows that open by themselves.
    shown.press(KeyCode::Down);
    shown.lines();
    shown.press(KeyCode::Left);
    assert!(shown.has("▾ other › Owner"));
    // The parent row is now chosen, so Left closes it.
    shown.press(KeyCode::Left);
    assert!(shown.has("▸ other › Owner") && !shown.has("Leaf"));
}
