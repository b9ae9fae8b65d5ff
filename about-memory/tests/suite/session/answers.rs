//! Answers and rows equal the results of heap-graph.

use std::collections::BTreeSet;

use about_memory::session::{
    Query, QueryAnswer, RowColumn, RowsOptions, Session, SessionError, SessionOptions, SessionRow,
};
use heap_graph::census::TreeOptions;
use heap_graph::{Breakdown, CensusTree, DominatorTree, GraphBuilder, NodeId, NodeIndex, NodeParts};

use super::{ask, by, census, chain, dominators, golden, individuals, names, with_small};

/// Returns all rows, in windows of seven.
fn all(session: &Session, query: &Query, options: &RowsOptions) -> Vec<SessionRow> {
    let answer = ask(session, query.clone());
    let mut rows = Vec::new();
    loop {
        let mut part = options.clone();
        (part.start, part.count) = (rows.len(), 7);
        let part = session.rows(query, &answer, &part).unwrap();
        let is_last = part.rows.is_empty();
        rows.extend(part.rows);
        if is_last {
            assert_eq!(part.total, rows.len());
            return rows;
        }
    }
}

/// Opens all rows, level by level.
fn opened(session: &Session, query: &Query) -> Vec<SessionRow> {
    let mut options = RowsOptions::first(0);
    loop {
        let rows = all(session, query, &options);
        let before = options.open.len();
        options.open.extend(rows.iter().filter(|row| row.children > 0).map(|row| row.id));
        if options.open.len() == before {
            return rows;
        }
    }
}

#[test]
fn the_rows_of_a_census_are_those_of_its_tree() {
    let (session, id) = with_small();
    let graph = heap_graph::snapshot::read(golden("small-a.fxsnapshot")).unwrap();
    for (invert, filter) in [(false, ""), (true, ""), (false, "Function"), (true, "Function")] {
        let breakdown = Breakdown::preset("type").unwrap();
        let report = heap_graph::census(&graph, &breakdown).unwrap();
        let options = TreeOptions::new().invert(invert);
        let options = if filter.is_empty() { options } else { options.filter(filter) };
        let tree = CensusTree::new(&report, &options);
        let mut expected = Vec::new();
        let mut stack: Vec<_> = tree.children(tree.root()).map(|node| (node, 0)).collect();
        stack.reverse();
        while let Some((node, level)) = stack.pop() {
            expected.push((level, vec![node.bytes, node.count, node.total_bytes, node.total_count]));
            let at = stack.len();
            stack.extend(tree.children(node).map(|child| (child, level + 1)));
            stack[at..].reverse();
            assert_eq!(tree.find(node.id), Some(node));
        }
        let query = Query::Census { snapshot: id, by: by("type"), invert, filter: filter.to_owned() };
        let rows = opened(&session, &query);
        let found: Vec<_> = rows.iter().map(|row| (row.level, row.numbers.clone())).collect();
        assert_eq!(found, expected);
        let ids: BTreeSet<_> = rows.iter().map(|row| row.id).collect();
        assert_eq!(ids.len(), rows.len(), "ids are unique");
    }
}

#[test]
fn what_is_open_stays_open_under_another_filter() {
    let (session, id) = with_small();
    let plain = census(id, "type");
    let objects = all(&session, &plain, &RowsOptions::first(0));
    let objects = objects.iter().find(|row| row.name == ["objects"]).unwrap();
    let filtered =
        Query::Census { snapshot: id, by: by("type"), invert: false, filter: "Function".to_owned() };
    let rows = all(&session, &filtered, &RowsOptions::first(0).open(objects.id));
    assert!(rows[0].is_open && rows[0].name == ["objects"]);
    assert!(rows[1..].iter().all(|row| row.level == 1 && row.name[0].contains("Function")));
}

#[test]
fn rows_have_any_order() {
    let (session, id) = with_small();
    let query = census(id, "objectClass");
    for (column, place) in
        [(RowColumn::Bytes, 0), (RowColumn::Count, 1), (RowColumn::TotalBytes, 2), (RowColumn::TotalCount, 3)]
    {
        let numbers = |ascending| -> Vec<_> {
            let rows = all(&session, &query, &RowsOptions::first(0).sort(column, ascending));
            rows.iter().map(|row| row.numbers[place]).collect()
        };
        assert!(numbers(true).is_sorted() && numbers(false).iter().rev().is_sorted());
    }
    let rows = all(&session, &query, &RowsOptions::first(0).sort(RowColumn::Name, true));
    assert!(rows.iter().map(|row| &row.name).is_sorted());

    // The order of nodes is kept between windows. It belongs to one query and one column.
    let sorted = |query: &Query, column, ascending| {
        all(&session, query, &RowsOptions::first(0).sort(column, ascending))
    };
    let ids = |rows: &[SessionRow]| rows.iter().map(|row| row.id).collect::<BTreeSet<_>>();
    let groups = all(&session, &query, &RowsOptions::first(0));
    let group = groups.iter().find(|row| row.name == ["Function"]).unwrap().id;
    let (every, some) = (dominators(id), individuals(id, "objectClass", group));
    for _ in 0..2 {
        for (column, place) in [(RowColumn::Retained, 0), (RowColumn::Shallow, 1)] {
            for query in [&every, &some] {
                let (up, down) = (sorted(query, column, true), sorted(query, column, false));
                assert!(up.iter().map(|row| row.numbers[place]).is_sorted());
                assert!(down.iter().rev().map(|row| row.numbers[place]).is_sorted());
                assert_eq!(ids(&up), ids(&all(&session, query, &RowsOptions::first(0))));
                assert_eq!(ids(&up), ids(&down));
            }
        }
        assert_ne!(ids(&sorted(&every, RowColumn::Name, true)), ids(&sorted(&some, RowColumn::Name, true)));
    }
}

#[test]
fn dominators_individuals_and_paths_agree_with_the_tree() {
    let (session, id) = with_small();
    let graph = heap_graph::snapshot::read(golden("small-a.fxsnapshot")).unwrap();
    let tree = DominatorTree::new(&graph);
    let query = dominators(id);
    let rows = all(&session, &query, &RowsOptions::first(0));
    let expected: Vec<_> = tree.immediately_dominated(NodeIndex::ROOT).map(|node| node.id().0).collect();
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), expected);

    // Reads the nodes behind a group of the census.
    let groups = census(id, "objectClass");
    let group =
        all(&session, &groups, &RowsOptions::first(0)).into_iter().find(|row| row.name == ["Function"]);
    let group = group.unwrap();
    let behind = individuals(id, "objectClass", group.id);
    let answer = ask(&session, behind.clone());
    let rows = session.rows(&behind, &answer, &RowsOptions::first(500)).unwrap();
    assert_eq!(rows.found as i128, group.numbers[1]);
    assert!(rows.rows.iter().map(|row| row.numbers[0]).rev().is_sorted());

    // A search finds a node by its id, and a path leads to the node.
    let node = rows.rows[0].id;
    let search = Query::Search { snapshot: id, text: format!("@0x{node:x}") };
    let answer = ask(&session, search.clone());
    assert_eq!(session.rows(&search, &answer, &RowsOptions::first(5)).unwrap().rows[0].id, node);
    let paths = ask(&session, Query::Paths { snapshot: id, node, max: 3 });
    let QueryAnswer::Paths(paths) = &*paths else { panic!("{paths:?}") };
    assert!(!paths.is_empty() && paths.len() <= 3);
    for path in paths {
        assert_eq!(path[0].node, graph.root().id().0);
        assert_eq!(path.last().unwrap().node, node);
    }
}

/// Firefox's panel filters only the census.
#[test]
fn every_view_has_a_filter() {
    let (session, id) = with_small();
    let graph = heap_graph::snapshot::read(golden("small-a.fxsnapshot")).unwrap();
    let tree = DominatorTree::new(&graph);
    // A filter of dominators keeps the nodes with the name and the nodes above them.
    let query = Query::Dominators { snapshot: id, filter: "Function".to_owned() };
    let rows = all(&session, &query, &RowsOptions::first(0));
    let is_named = |node: &heap_graph::HeapNode<'_>| node.title().contains("Function");
    let reachable = || graph.nodes().filter(|node| tree.is_reachable(node.index()));
    let mut expected = BTreeSet::new();
    for node in reachable().filter(is_named) {
        let above = core::iter::successors(Some(node), |node| tree.immediate_dominator(node.index()));
        expected.extend(above.map(|node| node.id().0));
    }
    expected.remove(&graph.root().id().0);
    assert_eq!(rows.iter().map(|row| row.id).collect::<BTreeSet<_>>(), expected);
    assert_eq!(rows.len(), expected.len());
    let answer = ask(&session, query.clone());
    let found = session.rows(&query, &answer, &RowsOptions::first(1)).unwrap().found;
    assert_eq!(found, reachable().filter(is_named).count());
    // A closed row hides the rows below it.
    let open = rows.iter().find(|row| row.is_open && row.children > 0).unwrap();
    let fewer = all(&session, &query, &RowsOptions::first(0).close(open.id));
    assert!(fewer.len() < rows.len() && fewer.iter().any(|row| row.id == open.id && !row.is_open));

    let map = Query::TreeMap { snapshot: id, by: by("type"), filter: "Function".to_owned() };
    let map = ask(&session, map);
    let QueryAnswer::TreeMap(root) = &*map else { panic!("{map:?}") };
    assert!(root.inside.iter().all(|of| of.inside.iter().all(|of| of.name.contains("Function"))));

    // Filters the nodes of a group by a name that no node of the group has.
    let strings = all(&session, &census(id, "coarseType"), &RowsOptions::first(0));
    let objects = strings.iter().find(|row| row.name == ["objects"]).unwrap();
    let named = |filter: &str| Query::Individuals {
        snapshot: id,
        by: by("coarseType"),
        invert: false,
        group: objects.id,
        filter: filter.to_owned(),
    };
    let count = |filter: &str| {
        let query = named(filter);
        let answer = ask(&session, query.clone());
        session.rows(&query, &answer, &RowsOptions::first(1)).unwrap().found
    };
    assert!(0 < count("Function") && count("Function") < count(""));
    assert_eq!(count("no such name"), 0);
}

#[test]
fn the_nodes_of_a_group_are_found_however_many_leaves_it_has() {
    let (session, id) = with_small();
    for (name, invert) in [("type", true), ("stack", false), ("objectClass", false)] {
        let groups = Query::Census { snapshot: id, by: by(name), invert, filter: String::new() };
        let rows = all(&session, &groups, &RowsOptions::first(0));
        let group = rows.iter().find(|row| row.has_nodes).unwrap();
        let query =
            Query::Individuals { snapshot: id, by: by(name), invert, group: group.id, filter: String::new() };
        let answer = ask(&session, query.clone());
        let found = session.rows(&query, &answer, &RowsOptions::first(1)).unwrap().found;
        assert_eq!(found as i128, group.numbers[1], "{name}");
    }
    // Asks for a group that exists only in the other snapshot of a difference: the answer has no nodes.
    let answer = ask(&session, individuals(id, "type", 1));
    assert!(matches!(&*answer, QueryAnswer::Nodes { found: 0, .. }));
}

#[test]
fn classes_have_what_they_retain_together() {
    let (session, id) = with_small();
    let graph = heap_graph::snapshot::read(golden("small-a.fxsnapshot")).unwrap();
    let tree = DominatorTree::new(&graph);
    let query = Query::Classes { snapshot: id, filter: String::new() };
    let rows = all(&session, &query, &RowsOptions::first(0));
    let expected = heap_graph::dominators::sizes_by_class(&tree);
    assert_eq!(rows.len(), expected.len());
    for (row, class) in rows.iter().zip(&expected) {
        let numbers = [class.retained_size as i128, class.shallow_size as i128, class.count.into()];
        assert_eq!((&row.name, &row.numbers[..]), (&vec![class.class.to_string()], &numbers[..]));
    }
    let some = Query::Classes { snapshot: id, filter: "Function".to_owned() };
    let some = all(&session, &some, &RowsOptions::first(0));
    assert!(!some.is_empty() && some.iter().all(|row| row.name[0].contains("Function")));
}

/// Like Alt and a click on the arrow in Firefox.
#[test]
fn a_row_opens_with_everything_below() {
    let (session, id) = with_small();
    let query = census(id, "type");
    let whole = opened(&session, &query);
    let roots = all(&session, &query, &RowsOptions::first(0));
    let first = roots.iter().find(|row| row.children > 0).unwrap();
    let start = whole.iter().position(|row| row.id == first.id).unwrap();
    let below = whole[start + 1..].iter().take_while(|row| row.level > 0).count();
    let options = RowsOptions::first(0).open_below(first.id);
    let rows = all(&session, &query, &options);
    assert_eq!(rows.len(), roots.len() + below);
    assert!(rows.iter().all(|row| row.children == 0 || row.is_open == (row.level > 0 || row.id == first.id)));
    // One of these rows is closed again.
    let closed = all(&session, &query, &options.close(first.id));
    assert_eq!(closed.len(), roots.len());
    // A tree of any size opens at most 10,000 rows.
    let chain = session.insert("chain", chain(30_000)).unwrap();
    let query = dominators(chain);
    let answer = ask(&session, query.clone());
    let rows = session.rows(&query, &answer, &RowsOptions::first(1).open_below(2)).unwrap();
    assert!(rows.total < 30_000);
}

/// The session computes the walk that all paths share only once, together with the dominator tree.
#[test]
fn paths_to_many_nodes_need_one_walk() {
    let (session, id) = with_small();
    let graph = heap_graph::snapshot::read(golden("small-a.fxsnapshot")).unwrap();
    ask(&session, dominators(id));
    for node in graph.nodes().step_by(97) {
        let answer = ask(&session, Query::Paths { snapshot: id, node: node.id().0, max: 10 });
        let QueryAnswer::Paths(paths) = &*answer else { panic!("{answer:?}") };
        let expected = heap_graph::shortest_paths(&graph, NodeIndex::ROOT, &[node.index()], 10);
        let ids = |paths: &[Vec<about_memory::session::PathStep>]| -> Vec<Vec<u64>> {
            paths.iter().map(|path| path[..path.len() - 1].iter().map(|step| step.node).collect()).collect()
        };
        let expected: Vec<Vec<u64>> = expected.paths[0]
            .1
            .iter()
            .map(|path| path.iter().map(|part| part.predecessor.0).collect())
            .collect();
        assert_eq!(ids(paths), expected);
    }
    assert_eq!(names(&session, "walk"), ["computing", "computed"]);
}

#[test]
fn snapshots_stand_side_by_side() {
    let session = Session::new(SessionOptions::new());
    let snapshots: Vec<_> =
        [10, 25, 15].iter().map(|length| session.insert("chain", chain(*length)).unwrap()).collect();
    for (by_name, invert) in [("type", true), ("internalType", false), ("count", false)] {
        let by = by(by_name);
        let query = Query::Generations {
            snapshots: snapshots.clone(),
            by: by.clone(),
            invert,
            filter: String::new(),
        };
        let answer = ask(&session, query.clone());
        let rows = session.rows(&query, &answer, &RowsOptions::first(500)).unwrap();
        assert_eq!(rows.columns, [RowColumn::Growth, RowColumn::In(0), RowColumn::In(1), RowColumn::In(2)]);
        for row in &rows.rows {
            assert_eq!(row.numbers[0], row.numbers[3] - row.numbers[1], "{row:?}");
        }
        // Each column is the census of its snapshot.
        for (place, snapshot) in snapshots.iter().enumerate() {
            let census = Query::Census { snapshot: *snapshot, by: by.clone(), invert, filter: String::new() };
            let census = all(&session, &census, &RowsOptions::first(0));
            let own = if invert { 0 } else { 2 };
            for group in &census {
                let row = rows.rows.iter().find(|row| row.name == group.name).unwrap();
                assert_eq!((row.id, row.numbers[1 + place]), (group.id, group.numbers[own]));
            }
            assert_eq!(census.len(), rows.rows.iter().filter(|row| row.numbers[1 + place] != 0).count());
        }
    }
    let too_many = Query::Generations {
        snapshots: vec![snapshots[0]; 17],
        by: by("type"),
        invert: true,
        filter: String::new(),
    };
    assert!(matches!(session.ask(too_many), Err(SessionError::TooMuch("snapshots", 16))));
    let name = |column: RowColumn| RowColumn::try_from(column.name());
    assert_eq!(
        (name(RowColumn::In(7)), name(RowColumn::Growth)),
        (Ok(RowColumn::In(7)), Ok(RowColumn::Growth))
    );
    assert!(RowColumn::try_from("in-".to_owned()).is_err());
}

#[test]
fn a_difference_can_be_swapped() {
    let session = Session::new(SessionOptions::new());
    let first = session.insert("first", chain(10)).unwrap();
    let second = session.insert("second", chain(25)).unwrap();
    let diff = |baseline, comparison| {
        let query = Query::Diff {
            baseline,
            comparison,
            by: by("internalType"),
            invert: false,
            filter: String::new(),
        };
        all(&session, &query, &RowsOptions::first(0)).iter().map(|row| row.numbers[1]).sum::<i128>()
    };
    assert_eq!((diff(first, second), diff(second, first)), (15, -15));
}

/// As in Firefox, the first levels of a dominator tree are open, but only the first rows below each row.
#[test]
fn the_first_levels_of_a_tree_open_by_themselves() {
    let (session, snapshot) = with_small();
    let query = dominators(snapshot);
    let answer = ask(&session, query.clone());
    let rows = |options: RowsOptions| session.rows(&query, &answer, &options).unwrap();
    let closed = rows(RowsOptions::first(500));
    let options = RowsOptions::first(500).depth(2);
    let all = rows(options.clone());
    assert!(all.total > closed.total);
    let mut come = [0; 4];
    for row in &all.rows {
        come[row.level] += 1;
        come[row.level + 1..].fill(0);
        assert_eq!(row.is_open, row.children > 0 && row.level < 2 && come[row.level] <= 15, "{row:?}");
    }
    assert!(all.rows.iter().any(|row| row.level == 2));
    // A window that starts at row 9 has the same rows as the full list from row 9 on. A row that the reader closes
    // stays closed.
    let part = rows(options.clone().start(9));
    assert_eq!((part.total, &part.rows[0]), (all.total, &all.rows[9]));
    let first = &all.rows[0];
    let less = rows(options.close(first.id));
    assert!(!less.rows[0].is_open && less.total < all.total);
    // A hostile request opens at most three levels.
    assert!(rows(RowsOptions::first(500).depth(usize::MAX)).rows.iter().all(|row| row.level <= 3));
}

/// A front end has only a part of the rows. It can move to a parent row without the rows between.
#[test]
fn each_row_knows_the_place_of_the_row_around_it() {
    let (session, snapshot) = with_small();
    for query in [census(snapshot, "type"), dominators(snapshot)] {
        let answer = ask(&session, query.clone());
        let roots = session.rows(&query, &answer, &RowsOptions::first(50)).unwrap().rows;
        let options = roots.iter().fold(RowsOptions::first(500), |options, row| options.open_below(row.id));
        let all = session.rows(&query, &answer, &options).unwrap().rows;
        assert!(all.iter().any(|row| row.level > 1));
        for (place, row) in all.iter().enumerate() {
            let around = (0..place).rev().find(|before| all[*before].level < row.level);
            assert_eq!(row.parent, around, "{row:?}");
        }
        // A window has the same indices.
        let part = session.rows(&query, &answer, &options.clone().start(3)).unwrap().rows;
        assert_eq!(part[0], all[3]);
    }
}

#[test]
fn a_deep_tree_and_wrong_requests_for_rows_are_no_danger() {
    let session = Session::new(SessionOptions::new());
    let id = session.insert("chain", chain(5_000)).unwrap();
    let query = dominators(id);
    let answer = ask(&session, query.clone());
    let mut options = RowsOptions::first(500).start(4_000);
    options.open.extend(1..=5_000);
    let rows = session.rows(&query, &answer, &options).unwrap();
    assert_eq!((rows.total, rows.rows[0].id, rows.rows[0].level), (4_999, 4_002, 4_000));
    assert!(session.rows(&query, &answer, &RowsOptions::first(501)).is_err());
    let beyond = session.rows(&query, &answer, &RowsOptions::first(5).start(usize::MAX)).unwrap();
    assert!(beyond.rows.is_empty());
    let map = Query::TreeMap { snapshot: id, by: by("type"), filter: String::new() };
    assert!(session.rows(&map, &ask(&session, map.clone()), &RowsOptions::first(1)).is_err());
}

/// Many small nodes of a class that together retain much are one suspect, as in `about-memory snapshot suspects`.
#[test]
fn suspects_of_one_class_are_a_group_that_opens() {
    let mut builder = GraphBuilder::new();
    let [root, frame, cache] = ["Root", "SavedFrame", "Cache"].map(|name| builder.text(name).unwrap());
    builder.node(NodeParts::new(NodeId(1), 0, root)).unwrap();
    for id in 2..=1502 {
        builder.edge(NodeId(id), None).unwrap();
    }
    for id in 2..=1501 {
        builder.node(NodeParts::new(NodeId(id), 2 * id, frame)).unwrap();
    }
    builder.node(NodeParts::new(NodeId(1502), 1_000_000, cache)).unwrap();
    let session = Session::new(SessionOptions::new());
    let id = session.insert("suspects", builder.finish().unwrap()).unwrap();
    let query = Query::Suspects { snapshot: id };
    let answer = ask(&session, query.clone());
    let rows = |options: &RowsOptions| session.rows(&query, &answer, options).unwrap();
    let closed = rows(&RowsOptions::first(10));
    let named = |row: &SessionRow| (row.name.join(" "), row.numbers[0], row.children, row.is_node);
    let all = closed.rows.iter().map(named).collect::<Vec<_>>();
    let sum = (2..=1501).map(|id| 2 * id).sum();
    assert_eq!(
        all,
        [("1500 of SavedFrame".to_owned(), sum, 1000, false), ("other Cache".to_owned(), 1_000_000, 0, true)]
    );
    assert_eq!(closed.rows[0].numbers[1], sum, "the nodes themselves are small");
    let mut open = RowsOptions::first(10);
    open.open.insert(closed.rows[0].id);
    let open = rows(&open);
    // The page shows the nodes that retain the most.
    assert_eq!((open.total, open.rows[1].id, open.rows[1].level), (1002, 1501, 1));
    assert!(open.rows[0].is_open && open.rows[1].is_node && open.rows[1].name == ["other", "SavedFrame"]);
}
