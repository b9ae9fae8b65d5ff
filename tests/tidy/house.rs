//! The picture of the crates, drawn from their manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tests::golden;

use super::packages::{name, published};
use super::{manifest, root};

const BOX_WIDTH: usize = 196;
const BOX_HEIGHT: usize = 46;
const COLUMN_WIDTH: usize = 216;
const ROW_HEIGHT: usize = 100;
const MARGIN: usize = 12;

/// The name of each crate with the names of its dependencies in this workspace.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let folders = published();
    let ours: BTreeSet<String> = folders.iter().map(|folder| name(folder)).collect();
    let of_crate = |folder: &String| {
        let manifest = manifest(folder);
        let table =
            manifest.get("dependencies").and_then(|table| table.as_table()).cloned().unwrap_or_default();
        let names = table.iter().map(|(key, value)| {
            value.get("package").and_then(|package| package.as_str()).unwrap_or(key).to_owned()
        });
        (name(folder), names.filter(|name| ours.contains(name)).collect())
    };
    folders.iter().map(of_crate).collect()
}

/// All crates on which a crate depends, directly or not.
fn below(crates: &BTreeMap<String, BTreeSet<String>>, name: &str) -> BTreeSet<String> {
    let direct = &crates[name];
    direct.iter().cloned().chain(direct.iter().flat_map(|name| below(crates, name))).collect()
}

/// The number of crates on the longest path downwards.
fn level(crates: &BTreeMap<String, BTreeSet<String>>, name: &str) -> usize {
    crates[name].iter().map(|below| level(crates, below) + 1).max().unwrap_or(0)
}

fn folder(wanted: &str) -> String {
    published().into_iter().find(|folder| name(folder) == wanted).unwrap()
}

/// A box for each crate, above all crates on which it depends. A line shows a dependency, unless other lines imply it.
fn picture() -> String {
    let crates = dependencies();
    let mut rows: Vec<Vec<&str>> = Vec::new();
    for name in crates.keys() {
        let level = level(&crates, name);
        rows.resize_with(rows.len().max(level + 1), Vec::new);
        rows[level].push(name);
    }
    rows.reverse();
    let columns = rows.iter().map(Vec::len).max().unwrap();
    let (width, height) =
        (columns * COLUMN_WIDTH + 2 * MARGIN, (rows.len() - 1) * ROW_HEIGHT + BOX_HEIGHT + 2 * MARGIN);
    let mut places = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        let left = (width - row.len() * COLUMN_WIDTH) / 2 + (COLUMN_WIDTH - BOX_WIDTH) / 2;
        for (column, name) in row.iter().enumerate() {
            places.insert(*name, (left + column * COLUMN_WIDTH, MARGIN + number * ROW_HEIGHT));
        }
    }
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (name, direct) in &crates {
        for to in direct {
            if direct.iter().any(|other| other != to && below(&crates, other).contains(to)) {
                continue;
            }
            let (x1, y1) = places[name.as_str()];
            let (x2, y2) = places[to.as_str()];
            let (x1, y1, x2) = (x1 + BOX_WIDTH / 2, y1 + BOX_HEIGHT, x2 + BOX_WIDTH / 2);
            let middle = y2 - (ROW_HEIGHT - BOX_HEIGHT) / 2;
            writeln!(
                svg,
                "<path d=\"M{x1} {y1} C{x1} {middle} {x2} {middle} {x2} {y2}\" fill=\"none\" stroke=\"#789\"/>"
            )
            .unwrap();
        }
    }
    for (name, (x, y)) in places {
        let folder = folder(name);
        let (middle, first, second) = (x + BOX_WIDTH / 2, y + 20, y + 37);
        write!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"6\" fill=\"#eef3fa\" stroke=\"#456\"/>\n\
             <text x=\"{middle}\" y=\"{first}\" text-anchor=\"middle\" font-size=\"14\" fill=\"#123\">{name}</text>\n\
             <text x=\"{middle}\" y=\"{second}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#456\">{folder}/</text>\n"
        )
        .unwrap();
    }
    svg + "</svg>\n"
}

#[test]
fn the_picture_shows_the_crates_as_they_are() {
    golden("docs/pictures/crates.svg", &picture());
    assert!(super::read("docs/src/contributing.md").contains("(../pictures/crates.svg)"));
    assert!(root().join("docs/pictures/crates.svg").exists());
}
