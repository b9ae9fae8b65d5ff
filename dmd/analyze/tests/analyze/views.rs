//! Tables, estimates, and the other output formats.

use dmd_analyze::{Analysis, AnalyzeOptions, RecordKind, TableKey};
use proptest::prelude::*;
use serde_json::Value;

use super::{document, read};

const TABLES: &str = r##""traceTable": {"A": ["M", "P", "G", "I", "X"], "C": ["M", "P", "L", "X"], "D": ["U"], "R": ["D", "W", "S"]},
  "frameTable": {
    "M": "#00: malloc (m.c:1)",
    "P": "#00: alloc::vec::Vec<u8>::push (/rustc/1/library/alloc/src/vec/mod.rs:9)",
    "G": "#00: <my_app::Table as my_app::Grow>::grow (src/table.rs:5)",
    "I": "#00: my_app::insert (src/table.rs:9)",
    "L": "#00: other::load (/home/u/.cargo/registry/src/i/other-1.0.0/src/lib.rs:2)",
    "U": "#00: ???[/usr/lib/libz.so.1 +0x10]",
    "X": "#00: my_app::main (src/main.rs:1)",
    "D": "#00: dmd::report (dmd.rs:1)",
    "W": "#00: <alloc::string::String as memory_reporter::MallocSizeOf>::size_of (x.rs:1)",
    "S": "#00: my_app::Cache::report (src/cache.rs:1)"
  },
  "modules": [], "measurements": {"stackTracesUsed": 12345, "liveBlockTable": 1048576, "odd": [1], "threads": "?"},
  "reportPaths": [{"path": "explicit/one", "claimed": 5, "marked": 5}]"##;

const BLOCKS: &str = r#"
  {"req": 100, "slop": 12, "alloc": "A", "num": 3},
  {"req": 1000, "slop": 24, "alloc": "C"},
  {"req": 100, "alloc": "D"},
  {"req": 10, "slop": 6, "num": 7},
  {"req": 50, "alloc": "A", "reps": ["R"]},
  {"req": 60, "alloc": "A", "reps": ["R"], "repPaths": [0]},
  {"req": 70, "alloc": "A", "reps": ["R", "R"], "repPaths": [0, -1]}"#;

fn analysis(options: &AnalyzeOptions) -> Analysis {
    Analysis::new(read(document("dark-matter", BLOCKS, TABLES)).unwrap(), options)
}

/// Compares a text with a golden file.
pub(crate) fn golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(there, text, "{name} is stale; UPDATE_GOLDEN=1 rewrites it");
}

#[test]
fn blocks_are_grouped_by_module_reporter_size_and_frame() {
    let options = AnalyzeOptions::new()
        .by(TableKey::Module)
        .by(TableKey::Reporter)
        .by(TableKey::Size)
        .by(TableKey::Frame)
        .row_limit(4);
    golden("tables.txt", &analysis(&options).by_text().to_string());
}

#[test]
fn the_layout_of_2013() {
    let options = AnalyzeOptions::new().by(TableKey::Frame).ignore_alloc_fns(true).limit(2).row_limit(2);
    golden("classic.txt", &analysis(&options).classic().to_string());
    let live = Analysis::new(read(document("live", "", TABLES)).unwrap(), &options);
    golden("classic-empty.txt", &live.classic().to_string());
}

#[test]
fn folded_stacks_add_up_to_the_heap() {
    let folded = analysis(&AnalyzeOptions::new()).folded().to_string();
    golden("folded.txt", &folded);
    let sum: i128 =
        folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<i128>().unwrap()).sum();
    assert_eq!(sum, analysis(&AnalyzeOptions::new()).total().usable());
}

#[test]
fn stacks_that_many_blocks_share_are_folded_once_and_within_bounds() {
    let stack = |name: &str, frames: usize| {
        format!("\"{name}\": [{}]", vec![format!("\"F{name}\""); frames].join(","))
    };
    let reps: Vec<String> = (0..200).map(|n| format!("R{n}")).collect();
    let traces: Vec<String> = reps.iter().map(|rep| stack(rep, 1)).collect();
    let frames: Vec<String> =
        reps.iter().map(|rep| format!("\"F{rep}\": \"#00: report (at.rs:{rep})\"")).collect();
    let blocks: Vec<String> = reps
        .iter()
        .map(|rep| format!("{{\"req\": 10, \"alloc\": \"A\", \"reps\": [\"{rep}\"]}}"))
        .chain((0..200).map(|n| format!("{{\"req\": {}, \"alloc\": \"R{n}\"}}", n + 1)))
        .collect();
    let tables = format!(
        "\"traceTable\": {{{}, {}}}, \"frameTable\": {{\"FA\": \"#00: deep (at.rs:1)\", {}}}",
        stack("A", 2000),
        traces.join(","),
        frames.join(",")
    );
    let dump = read(document("dark-matter", &blocks.join(","), &tables)).unwrap();
    let options = AnalyzeOptions::new().max_frames(usize::MAX).limit(usize::MAX);
    let analysis = Analysis::new(dump, &options);
    let sum = |text: &str| -> i128 {
        text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<i128>().unwrap()).sum()
    };
    let folded = analysis.folded().to_string();
    assert!(folded.len() < 20_000, "a deep stack is written once: {}", folded.len());
    assert!(
        folded.ends_with(";deep;deep 2000\n") && folded.contains("\nonce-reported;reported by report;deep;")
    );
    for most in [0, 30, 100, 6000, 20_000] {
        let bounded = analysis.folded().most_text(most).to_string();
        assert!(bounded.len() < most + 500, "{most}: {}", bounded.len());
        assert_eq!(sum(&bounded), sum(&folded), "{most}: {bounded}");
    }
    let bounded = analysis.folded().most_text(6000).to_string();
    assert!(bounded.ends_with("\nonce-reported;(small) 2000\n"), "{bounded}");
}

#[test]
fn escaped_names_count_in_a_bounded_folded_text() {
    let name = "\u{202e}".repeat(10);
    let tables =
        format!("\"traceTable\": {{\"A\": [\"FA\"]}}, \"frameTable\": {{\"FA\": \"#00: {name} (at.rs:1)\"}}");
    let dump = read(document("live", "{\"req\": 10, \"alloc\": \"A\"}", &tables)).unwrap();
    let analysis = Analysis::new(dump, &AnalyzeOptions::new());
    assert_eq!(analysis.folded().to_string(), format!("{} 10\n", "\\u{202e}".repeat(10)));
    for most in [20, 40, 80] {
        assert_eq!(analysis.folded().most_text(most).to_string(), "(small) 10\n", "{most}");
    }
}

/// The frames of a flame graph, indented by their depth.
fn outline(analysis: &Analysis, most: usize) -> String {
    let mut text = String::new();
    // For each depth, the number of frames that follow.
    let mut open: Vec<usize> = Vec::new();
    for frame in analysis.flame_graph(most).frames() {
        while open.last() == Some(&0) {
            open.pop();
        }
        text += &format!("{:1$}", "", open.len());
        let mark = if frame.estimated { "~" } else { "" };
        text += &format!("{} {mark}{} in {}\n", frame.name, frame.sums.usable(), frame.sums.num);
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        open.push(frame.children);
    }
    assert!(open.iter().all(|left| *left == 0), "{text}");
    text
}

#[test]
fn a_flame_graph_is_the_folded_stacks_as_a_tree() {
    let options = AnalyzeOptions::new().ignore_alloc_fns(true).estimate(true).limit(usize::MAX);
    let analysis = analysis(&options);
    golden("flame.txt", &outline(&analysis, usize::MAX));
    golden("flame-small.txt", &outline(&analysis, 6));
    // Only the root is left. It still has the whole sum.
    assert_eq!(outline(&analysis, 0), "all 1752 in 15\n (small) 1752 in 15\n");
}

#[test]
fn json_says_what_the_text_says() {
    let options = AnalyzeOptions::new().by(TableKey::Module).limit(1).row_limit(1);
    let text = analysis(&options).json().to_string();
    golden("analysis.json", &text);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["total"]["usable"], 1752);
    assert_eq!(json["kinds"][1]["records"], 4);
    assert_eq!(json["kinds"][1]["shown"][0]["allocatedAt"][0], "malloc (m.c:1)");
    let odd = read(document(
        "live",
        r#"{"req": 1, "alloc": "T"}"#,
        r##""traceTable": {"T": ["F"]}, "frameTable": {"F": "#00: \"\\\u0001\u2028"}"##,
    ))
    .unwrap();
    let json: Value = serde_json::from_str(&Analysis::new(odd, &options).json().to_string()).unwrap();
    assert_eq!(json["kinds"][0]["shown"][0]["allocatedAt"][0], "\"\\\u{1}\u{2028}");
}

#[test]
fn stackless_blocks_are_estimated_from_those_of_their_size_and_marked() {
    let tables = r##""traceTable": {"A": ["F"], "B": ["G"], "R": ["H"]},
        "frameTable": {"F": "#00: a (a.rs:1)", "G": "#00: b (b.rs:1)", "H": "#00: r (r.rs:1)"}"##;
    let blocks = r#"{"req": 16, "alloc": "A", "num": 3}, {"req": 16, "alloc": "B"}, {"req": 16, "num": 99},
        {"req": 9999, "num": 2}, {"req": 64, "num": 5, "reps": ["R"]}, {"req": 512, "alloc": "A"}"#;
    let options = AnalyzeOptions::new().estimate(true);
    let analysis = Analysis::new(read(document("dark-matter", blocks, tables)).unwrap(), &options);
    let text = analysis.text(&[]).to_string();
    golden("estimate.txt", &text);
    assert_eq!(analysis.total().req, 103 * 16 + 2 * 9999 + 5 * 64 + 512);
    // `a` gets 74 of the 99 blocks, and `b` gets 25 blocks. The 2 blocks stay without a stack, because no block
    // with a stack has their size. The 5 blocks stay without a stack, because no block with a stack has their reporter.
    assert!(text.contains("~78 blocks in") && text.contains("~26 blocks in"), "{text}");
    // The amounts of stacks are estimates; the total is exact.
    golden("flame-estimate.txt", &outline(&analysis, usize::MAX));
}

#[test]
fn what_differs_from_run_to_run_can_be_replaced() {
    let tables = r##""traceTable": {"A": ["F", "F", "F", "G"], "B": ["F", "F", "G"]},
        "frameTable": {"F": "#00: f (DMD.cpp:1)", "G": "#00: g (g.rs:1)"}"##;
    let blocks = r#"{"req": 9, "addr": "7f00", "alloc": "A"}, {"req": 8, "addr": "7f10", "alloc": "B"}"#;
    let options = AnalyzeOptions::new().for_testing(true);
    let text = Analysis::new(read(document("scan", blocks, tables)).unwrap(), &options).text(&[]).to_string();
    assert!(text.contains("  Allocated at {\n    #01: ... DMD.cpp ...\n  }\n"), "{text}");
    assert!(text.contains("    #02: f (DMD.cpp:1)\n    #03: g (g.rs:1)\n"), "{text}");
    assert_eq!(text.matches("  block addresses: 0xdadadada\n").count(), 2);

    // Records that look equal after the replacement stay separate. Filters see the same frames as the output.
    let blocks = r#"{"req": 9, "addr": "7f00", "alloc": "A"}, {"req": 8, "addr": "7f10", "alloc": "C"}"#;
    let tables = tables.replace("\"B\":", "\"C\": [\"F\", \"F\", \"F\"], \"B\":");
    let options = options.filter(dmd_analyze::StackFilter::new("... DMD.cpp"));
    let text =
        Analysis::new(read(document("scan", blocks, &tables)).unwrap(), &options).text(&[]).to_string();
    assert_eq!(text.matches("    #01: ... DMD.cpp ...\n").count(), 2, "{text}");
}

#[test]
fn what_was_recorded_as_a_sample_is_marked() {
    let blocks = r#"{"req": 4093, "alloc": "A", "sampled": true}, {"req": 9000, "alloc": "C"}"#;
    let analysis = Analysis::new(read(document("live", blocks, TABLES)).unwrap(), &AnalyzeOptions::new());
    let text = analysis.text(&[]).to_string();
    assert!(
        text.contains("  ~1 block in") && text.contains("  ~4,093 bytes (~4,093 requested / ~0 slop)"),
        "{text}"
    );
    assert!(text.contains("  1 block in") && text.contains("Total: ~13,093 bytes in ~2 blocks"), "{text}");
}

proptest! {
    #[test]
    fn a_pruned_flame_graph_has_all_bytes(
        blocks in prop::collection::vec((1..2000u64, 0..4usize, any::<bool>()), 0..60),
        most in 0..20usize,
    ) {
        let traces = ["", ", \"alloc\": \"A\"", ", \"alloc\": \"C\"", ", \"alloc\": \"D\""];
        let list: Vec<String> = blocks
            .iter()
            .map(|(req, trace, reported)| {
                let reps = if *reported { ", \"reps\": [\"R\"]" } else { "" };
                format!("{{\"req\": {req}{}{reps}}}", traces[*trace])
            })
            .collect();
        let options = AnalyzeOptions::new().limit(usize::MAX);
        let analysis = Analysis::new(read(document("dark-matter", &list.join(","), TABLES)).unwrap(), &options);
        let graph = analysis.flame_graph(most);
        let frames: Vec<_> = graph.frames().collect();
        prop_assert_eq!(frames[0].sums, analysis.total());
        prop_assert!(frames.iter().filter(|frame| frame.name != "(small)").count() <= most + 1);
        // In reverse order, each frame follows all frames that it called.
        let mut done: Vec<_> = Vec::new();
        for frame in frames.iter().rev() {
            let called: Vec<_> = (0..frame.children).map(|_| done.pop().unwrap()).collect();
            let below: i128 = called.iter().sum();
            prop_assert!(below <= frame.sums.usable());
            // The outermost frames are not functions, and have no bytes of their own.
            if frame.name == "all" || frame.name.starts_with("reported by") {
                prop_assert_eq!(below, frame.sums.usable());
            }
            done.push(frame.sums.usable());
        }
        prop_assert_eq!(done.len(), 1);
    }

    #[test]
    fn estimates_add_up(blocks in prop::collection::vec((0..2000u64, 0..9u64, 0..6u64, 0..4u8, any::<bool>()), 0..60)) {
        let traces = ["", ", \"alloc\": \"A\"", ", \"alloc\": \"C\"", ", \"alloc\": \"D\""];
        let list: Vec<String> = blocks
            .iter()
            .map(|(req, slop, num, trace, reported)| {
                let reps = if *reported { ", \"reps\": [\"R\"]" } else { "" };
                format!("{{\"req\": {req}, \"slop\": {slop}, \"num\": {num}{}{reps}}}", traces[usize::from(*trace)])
            })
            .collect();
        let dump = || read(document("dark-matter", &list.join(","), TABLES)).unwrap();
        let exact = Analysis::new(dump(), &AnalyzeOptions::new());
        let guessed = Analysis::new(dump(), &AnalyzeOptions::new().estimate(true).by(TableKey::Module));
        prop_assert_eq!(exact.total(), guessed.total());
        for kind in [RecordKind::Unreported, RecordKind::OnceReported] {
            prop_assert_eq!(exact.sums(kind), guessed.sums(kind));
        }
        let json: Value = serde_json::from_str(&guessed.json().to_string()).unwrap();
        for kind in json["kinds"].as_array().unwrap() {
            for rows in [&kind["shown"], &kind["tables"][0]["shown"]] {
                let sum: i64 = rows.as_array().unwrap().iter().map(|row| row["usable"].as_i64().unwrap()).sum();
                prop_assert_eq!(sum, kind["usable"].as_i64().unwrap());
                for row in rows.as_array().unwrap() {
                    prop_assert!(row["blocks"].as_i64().unwrap() >= 0);
                }
            }
        }
    }
}
