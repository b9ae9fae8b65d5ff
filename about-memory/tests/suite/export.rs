//! `about-memory export`, `metrics`, and `diff` of profiles, on golden dumps and reports.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dmd_analyze::recording::{Moment, Recording};
use dmd_format::recording::{BlockAction, RecordedBlock, RecordedModule};
use memory_export::dmd::{ProfileOptions, RecordingHistory, RecordingWindow};
use memory_export::pprof::{self, PprofReadOptions, read};
use memory_export::{
    ProfileFormat, ProfileFrame, ProfileValue, SampleLabels, StackProfile, StackProfileBuilder,
};
use serde_json::{Value as Json, json};

use crate::recordings::script::{BASE, Script};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn about_memory(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_about-memory")).args(arguments).current_dir(folder).output().unwrap()
}

/// Runs the program, which must succeed. Returns its standard output.
fn run(arguments: &[&str], folder: &Path) -> Vec<u8> {
    let output = about_memory(arguments, folder);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Returns the one-line error of the program.
fn error(arguments: &[&str], folder: &Path, status: i32) -> String {
    let output = about_memory(arguments, folder);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim_end().strip_prefix("about-memory: ").unwrap().to_owned()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn profile(file: impl AsRef<Path>) -> StackProfile {
    read(&*fs::read(file).unwrap(), &PprofReadOptions::new()).unwrap()
}

/// Returns the usable bytes and the blocks of each kind, from `about-memory dmd --json`.
fn sums(dump: &Path, folder: &Path) -> BTreeMap<String, (i128, i128)> {
    let json = run(&["dmd", "--json", "--no-fix-stacks", path(dump)], folder);
    let json: Json = serde_json::from_slice(&json).unwrap();
    let kinds = json["kinds"].as_array().unwrap().iter();
    let number = |kind: &Json, name: &str| kind[name].to_string().parse::<i128>().unwrap();
    kinds
        .map(|kind| {
            (kind["kind"].as_str().unwrap().to_owned(), (number(kind, "usable"), number(kind, "blocks")))
        })
        .collect()
}

const DUMPS: [&str; 6] = [
    "live-basic.json",
    "dark-matter-mixed.json",
    "empty-dark-matter.json",
    "scan-contents.json",
    "zipped.json.gz",
    "many-records.json",
];

#[test]
fn profiles_have_the_sums_of_the_dump_for_each_kind() {
    let folder = tempfile::tempdir().unwrap();
    for name in DUMPS {
        let dump = golden("dmd").join(name);
        for extra in [&[][..], &["--all-frames"], &["--sizes"], &["--symbols-in", "build-id"]] {
            let arguments =
                [&["export", "--no-fix-stacks", path(&dump), "-o", "heap.pb.gz"][..], extra].concat();
            run(&arguments, folder.path());
            let stacks = profile(folder.path().join("heap.pb.gz"));
            let mut found: BTreeMap<String, (i128, i128)> = BTreeMap::new();
            for sample in stacks.samples() {
                let kind = match stacks.labels(sample.labels).kind {
                    None => "live",
                    Some("once") => "once-reported",
                    Some("twice") => "twice-reported",
                    Some(kind) => kind,
                };
                let [blocks, bytes] = [ProfileValue::LiveBlocks, ProfileValue::LiveBytes]
                    .map(|value| i128::from(sample.amounts[stacks.index_of(value).unwrap()]));
                let sums = found.entry(kind.to_owned()).or_default();
                *sums = (sums.0 + bytes, sums.1 + blocks);
            }
            let mut expected = sums(&dump, folder.path());
            expected.retain(|_, sums| *sums != (0, 0));
            assert_eq!(found, expected, "{name} {extra:?}");
        }
    }
}

#[test]
fn every_format_has_the_sum_of_the_dump() {
    let folder = tempfile::tempdir().unwrap();
    for name in DUMPS {
        let dump = golden("dmd").join(name);
        let expected: i128 = sums(&dump, folder.path()).values().map(|(bytes, _)| bytes).sum();
        let export = |format: &str| {
            run(&["export", "--no-fix-stacks", "--format", format, path(&dump)], folder.path())
        };
        let json = |format: &str| -> Json { serde_json::from_slice(&export(format)).unwrap() };
        let sum = |column: &Json| {
            column.as_array().unwrap().iter().map(|n| i128::from(n.as_i64().unwrap())).sum::<i128>()
        };

        let dhat: i128 = json("dhat")["pps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|point| i128::from(point["tb"].as_i64().unwrap()))
            .sum();
        assert_eq!(dhat, expected, "{name}");
        let speedscope = json("speedscope");
        let profiles = speedscope["profiles"].as_array().unwrap().iter();
        let bytes = profiles.filter(|profile| profile["unit"] == "bytes");
        assert_eq!(bytes.map(|profile| sum(&profile["weights"])).sum::<i128>(), expected, "{name}");
        assert_eq!(sum(&json("firefox-profiler")["threads"][0]["samples"]["weight"]), expected, "{name}");
        let folded = String::from_utf8(export("folded")).unwrap();
        let folded: i128 =
            folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<i128>().unwrap()).sum();
        assert_eq!(folded, expected, "{name}");
    }
}

/// Compares with the sums that heaptrack itself prints. `./test` installs Debian's package heaptrack.
#[cfg(target_os = "linux")]
#[test]
fn heaptrack_agrees() {
    let folder = tempfile::tempdir().unwrap();
    for (name, compressed) in DUMPS.into_iter().zip([false, true].into_iter().cycle()) {
        let dump = golden("dmd").join(name);
        let file = if compressed { "heaptrack.app.gz" } else { "app.heaptrack" };
        run(&["export", "--no-fix-stacks", path(&dump), "-o", file], folder.path());
        let client = Command::new("heaptrack_print").arg("-f").arg(folder.path().join(file)).output();
        let Ok(client) = client else {
            assert!(std::env::var_os("PROGRAMS_ARE_BUILT").is_none(), "./test installs heaptrack");
            return;
        };
        let text = String::from_utf8(client.stdout).unwrap();
        assert!(client.status.success(), "{name}: {text}");
        let (bytes, blocks) = sums(&dump, folder.path())
            .values()
            .fold((0, 0), |(bytes, blocks), (more, other)| (bytes + more, blocks + other));
        let line = |start: &str| text.lines().find_map(|line| line.strip_prefix(start)).unwrap().to_owned();
        let calls = line("calls to allocation functions: ");
        assert_eq!(calls.split(' ').next(), Some(&*blocks.to_string()), "{name}");
        // heaptrack prints three digits.
        assert_eq!(line("total memory leaked: "), line("peak heap memory consumption: "));
        let leaked = line("total memory leaked: ");
        let unit = leaked.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let factor =
            [("B", 1.0), ("K", 1e3), ("M", 1e6), ("G", 1e9)].into_iter().find(|(name, _)| *name == unit);
        let shown = leaked.trim_end_matches(unit).parse::<f64>().unwrap() * factor.unwrap().1;
        assert!((shown - bytes as f64).abs() <= 0.006 * factor.unwrap().1, "{name}: {leaked} {bytes}");
    }
}

#[test]
fn amounts_that_a_format_cannot_hold_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let dump = golden("dmd").join("degenerate-live.json");
    for (format, client) in
        [("speedscope", "speedscope"), ("dhat", "DHAT"), ("firefox-profiler", "the Firefox Profiler")]
    {
        let output = folder.path().join("out");
        let message =
            error(&["export", "--format", format, path(&dump), "-o", path(&output)], folder.path(), 1);
        assert!(
            message.contains(&format!("degenerate-live.json: {client} cannot hold live bytes of 46387")),
            "{message}"
        );
        assert!(!output.exists(), "half a file");
    }
    let (first, second) = (golden("dmd").join("diff-live-1.json"), golden("dmd").join("diff-live-2.json"));
    for format in ["dhat", "heaptrack", "folded"] {
        let arguments = ["export", path(&first), path(&second), "--format", format];
        let message = error(&arguments, folder.path(), 1);
        assert!(message.contains("the format has no negative amounts"), "{message}");
    }
}

#[test]
fn a_difference_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["diff-live-1.json", "diff-live-2.json"].map(|name| golden("dmd").join(name));
    run(&["export", path(&first), path(&second), "-o", "growth.pb.gz"], folder.path());
    let total = |dump: &Path| sums(dump, folder.path())["live"].0;
    let stacks = profile(folder.path().join("growth.pb.gz"));
    assert_eq!(stacks.total(ProfileValue::LiveBytes), Some(total(&second) - total(&first)));
    let message = error(
        &["export", path(&first), path(&golden("dmd").join("cumulative-churn.json")), "-o", "x.pb.gz"],
        folder.path(),
        1,
    );
    assert!(message.ends_with("its mode is cumulative, but the first dump has the mode live"), "{message}");
}

#[test]
fn cumulative_dumps_have_allocations_only() {
    let folder = tempfile::tempdir().unwrap();
    run(&["export", path(&golden("dmd").join("cumulative-churn.json")), "-o", "all.pprof"], folder.path());
    let stacks = profile(folder.path().join("all.pprof"));
    assert_eq!(stacks.values(), [ProfileValue::AllocatedBlocks, ProfileValue::AllocatedBytes]);
}

#[test]
fn profiles_become_other_formats_and_differences() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["diff-live-1.json", "diff-live-2.json"].map(|name| golden("dmd").join(name));
    run(&["export", path(&first), "-o", "first.pb.gz"], folder.path());
    run(&["export", path(&second), "-o", "second.pb.gz"], folder.path());
    let folded = |source: &str| run(&["export", source, "--format", "folded"], folder.path());
    assert_eq!(folded("first.pb.gz"), folded(path(&first)));

    let json = run(&["diff", "first.pb.gz", "second.pb.gz", "--json"], folder.path());
    let json: Json = serde_json::from_slice(&json).unwrap();
    let (before, after) = (sums(&first, folder.path())["live"].0, sums(&second, folder.path())["live"].0);
    assert_eq!(json["first"].to_string(), before.to_string());
    assert_eq!(json["second"].to_string(), after.to_string());
    let changes = json["changes"].as_array().unwrap();
    let change: i128 = changes.iter().map(|change| i128::from(change["change"].as_i64().unwrap())).sum();
    assert_eq!(change, after - before);
    let text = String::from_utf8(run(&["diff", "first.pb.gz", "second.pb.gz"], folder.path())).unwrap();
    assert!(text.starts_with(&format!("live bytes: {before} -> {after} ({:+})\n", after - before)), "{text}");
    let same = String::from_utf8(run(&["diff", "first.pb.gz", "first.pb.gz"], folder.path())).unwrap();
    assert_eq!(same.lines().count(), 2, "{same}");

    let message = error(&["diff", "first.pb.gz", "second.pb.gz", "--filter", "x"], folder.path(), 2);
    assert_eq!(message, "--filter is for reports, not for pprof profiles");
    // A profile and a dump are both heaps.
    let text = String::from_utf8(run(&["diff", "first.pb.gz", path(&second)], folder.path())).unwrap();
    assert!(text.contains("bytes"), "{text}");
    let bytes = fs::read(folder.path().join("first.pb.gz")).unwrap();
    fs::write(folder.path().join("cut.pb.gz"), &bytes[..bytes.len() / 2]).unwrap();
    let message = error(&["diff", "first.pb.gz", "cut.pb.gz"], folder.path(), 1);
    assert!(message.starts_with("cut.pb.gz: "), "{message}");
}

#[test]
fn profiles_are_compared_by_what_both_have() {
    let folder = tempfile::tempdir().unwrap();
    let profile = |name: &str, values: &[ProfileValue], amounts: &[i64]| {
        let mut builder = StackProfileBuilder::new(values);
        let frame = builder.frame(&ProfileFrame { function: Some("app::run"), ..ProfileFrame::default() });
        let stack = builder.stack(&[frame]);
        let labels = builder.labels(&SampleLabels::default());
        builder.sample(stack, labels, None, amounts);
        let file = fs::File::create(folder.path().join(name)).unwrap();
        pprof::write(&builder.finish().unwrap(), &pprof::PprofOptions::new(), file).unwrap();
    };
    profile(
        "a.pb.gz",
        &[ProfileValue::LiveBytes, ProfileValue::AllocatedBlocks, ProfileValue::AllocatedBytes],
        &[10, 2, 30],
    );
    profile("b.pb.gz", &[ProfileValue::AllocatedBytes], &[50]);
    profile("c.pb.gz", &[ProfileValue::LiveBytes], &[50]);
    let text = String::from_utf8(run(&["diff", "a.pb.gz", "b.pb.gz"], folder.path())).unwrap();
    assert_eq!(text, "allocated bytes: 30 -> 50 (+20)\n\n+20 bytes\n    app::run\n");
    let json = run(&["diff", "a.pb.gz", "b.pb.gz", "--json"], folder.path());
    let json: Json = serde_json::from_slice(&json).unwrap();
    assert!(json["changes"][0].get("blocks").is_none(), "{json}");
    let message = error(&["diff", "b.pb.gz", "c.pb.gz"], folder.path(), 1);
    assert!(message.starts_with("c.pb.gz: has no column of bytes in common with b.pb.gz"), "{message}");
}

#[test]
fn options_without_effect_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dump = golden("dmd/live-basic.json");
    let report = golden("ours/counted.json");
    for (arguments, message) in [
        (["export", path(&report), "-o", "a.prom", "--at", "end"].as_slice(), "--at and --between are for"),
        (&["export", path(&report), "-o", "a.prom", "--requested"], "--all-frames and --requested are for"),
        (&["export", path(&dump), "-o", "a.folded", "--sizes"], "--sizes and --symbols-in are for"),
        (&["export", path(&dump), "-o", "a.folded", "--symbols-in", "build-id"], "--sizes and --symbols-in"),
    ] {
        let told = error(arguments, folder.path(), 2);
        assert!(told.starts_with(message), "{arguments:?}: {told}");
    }
    run(&["export", path(&dump), "-o", "a.pb.gz"], folder.path());
    let told = error(&["export", "a.pb.gz", "-o", "a.folded", "--at", "end"], folder.path(), 2);
    assert!(told.starts_with("a.pb.gz: a pprof profile has one time"), "{told}");
}

#[test]
fn the_name_of_the_output_tells_the_format() {
    let folder = tempfile::tempdir().unwrap();
    let dump = golden("dmd").join("live-basic.json");
    for (name, start) in [
        ("a.pb.gz", "\u{1f}"),
        ("a.PPROF", "\u{1f}"),
        ("a.speedscope.json", "{\"$schema\""),
        ("dhat-heap.json", "{\"dhatFileVersion\":2"),
        ("a.dhat.json", "{\"dhatFileVersion\":2"),
        ("heaptrack.app.1234", "v 10400 2\n"),
        ("a.profile.json", "{\"meta\""),
        ("a.folded", "(no stack recorded) "),
        ("a.folded.gz", "\u{1f}"),
    ] {
        run(&["export", path(&dump), "-o", name], folder.path());
        let bytes = fs::read(folder.path().join(name)).unwrap();
        assert!(bytes.starts_with(start.as_bytes()), "{name}: {:?}", &bytes[..bytes.len().min(40)]);
    }
    let message = error(&["export", path(&dump), "-o", "a.json"], folder.path(), 2);
    assert!(
        message.starts_with("a.json: no format has this ending; use --format (formats: pprof, dhat"),
        "{message}"
    );
    let message = error(&["export", path(&dump)], folder.path(), 2);
    assert!(message.starts_with("--format or --output is required"), "{message}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 9, "an incomplete file is left");
}

#[test]
fn a_source_that_does_not_fit_the_format_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let report = golden("ours/counted.json");
    let dump = golden("dmd/live-basic.json");
    let message = error(&["export", path(&report), "-o", "a.pb.gz"], folder.path(), 1);
    assert!(message.contains("is a memory report and has no stacks"), "{message}");
    let message = error(&["export", path(&dump), "-o", "a.prom"], folder.path(), 1);
    assert!(message.contains("is a dump of DMD and has no reports"), "{message}");
    recording(folder.path());
    let message = error(&["export", "r.dmdrec", "-o", "a.prom"], folder.path(), 1);
    assert!(message.starts_with("r.dmdrec: is a recording of DMD and has no reports; "), "{message}");
    let message = error(&["metrics", "r.dmdrec"], folder.path(), 1);
    assert_eq!(message, "r.dmdrec: it is a recording of DMD; read it with: about-memory history");
    let message = error(&["export", "none.json", "-o", "a.pb.gz"], folder.path(), 1);
    assert!(message.starts_with("none.json: "), "{message}");
    let message =
        error(&["export", path(&dump), path(&dump), path(&dump), "-o", "a.pb.gz"], folder.path(), 2);
    assert!(message.contains("at most 2"), "{message}");
}

#[test]
fn metrics_and_series_come_from_reports() {
    let folder = tempfile::tempdir().unwrap();
    let report = golden("ours/counted.json");
    let metrics = run(&["metrics", path(&report)], folder.path());
    assert_eq!(metrics, run(&["export", path(&report), "--format", "openmetrics"], folder.path()));
    let text = String::from_utf8(metrics).unwrap();
    assert!(
        text.starts_with("# TYPE memory_report_bytes gauge\n# UNIT memory_report_bytes bytes\n"),
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"));
    let prometheus =
        run(&["metrics", path(&report), "--format", "prometheus", "--max-series", "3"], folder.path());
    let prometheus = String::from_utf8(prometheus).unwrap();
    assert!(!prometheus.contains("# EOF") && !prometheus.contains("# UNIT"));
    let limited = run(&["export", path(&report), "-f", "prometheus", "--max-series", "3"], folder.path());
    assert_eq!(prometheus.as_bytes(), limited);
    run(&["export", path(&report), "-o", "memory.prom"], folder.path());

    let [first, second] = ["firefox/diff-isolated.a.json", "firefox/diff-isolated.b.json"].map(golden);
    run(&["export", path(&first), path(&second), "-o", "week.trace.json"], folder.path());
    let json: Json =
        serde_json::from_slice(&fs::read(folder.path().join("week.trace.json")).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| event["ph"] == "C"), "{json}");
    let message = error(&["metrics", path(&report), "--timeout", "3"], folder.path(), 2);
    assert!(message.contains("--timeout is for running processes"), "{message}");
    for (option, format) in [("--depth", "folded"), ("--tree", "chrome-trace"), ("--resident", "v8")] {
        let value = ["3"].into_iter().filter(|_| option == "--depth");
        let arguments = ["export", path(&report), "--format", format, option];
        let arguments: Vec<&str> = arguments.into_iter().chain(value).collect();
        let message = error(&arguments, folder.path(), 2);
        assert!(message.contains(option) && message.contains(" are for "), "{message}");
    }
}

fn recording(folder: &Path) {
    fs::write(folder.join("r.dmdrec"), Script::small().bytes()).unwrap();
}

#[test]
fn a_recording_has_what_was_allocated_and_what_lives() {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path());
    for (when, expected) in [
        // The heap has shrunk since its peak.
        (&[][..], [4, 3150, 3, 2150]),
        (&["--at", "end"], [5, 3157, 2, 107]),
        (&["--between", "25us", "end"], [3, 2057, 1, 7]),
        (&["--between", "25us", "45us"], [2, 2050, 2, 2050]),
    ] {
        run(&[&["export", "r.dmdrec", "-o", "r.pb.gz"], when].concat(), folder.path());
        let stacks = profile(folder.path().join("r.pb.gz"));
        let values = [
            ProfileValue::AllocatedBlocks,
            ProfileValue::AllocatedBytes,
            ProfileValue::LiveBlocks,
            ProfileValue::LiveBytes,
        ];
        assert_eq!(values.map(|value| stacks.total(value).unwrap()), expected, "{when:?}");
        let of_thread = |name: &str| {
            let samples = stacks.samples().filter(|sample| stacks.labels(sample.labels).thread == Some(name));
            samples.map(|sample| sample.amounts[0]).sum::<i64>()
        };
        let threads = i128::from(of_thread("worker-1") + of_thread("worker-2"));
        assert_eq!(threads, expected[0], "{when:?}");
        // The live blocks have the same sum in formats that contain only live blocks.
        let folded = run(&[&["export", "r.dmdrec", "--format", "folded"], when].concat(), folder.path());
        let folded = String::from_utf8(folded).unwrap();
        let amount = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<i128>().unwrap();
        assert_eq!(folded.lines().map(amount).sum::<i128>(), expected[3], "{when:?}");
    }
}

/// A recording without allocations.
#[test]
fn an_empty_recording_is_a_file_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r.dmdrec"), Script::new().bytes()).unwrap();
    for when in [&[][..], &["--at", "peak"], &["--between", "0s", "end"]] {
        let export =
            |format: &str| run(&[&["export", "r.dmdrec", "--format", format], when].concat(), folder.path());
        for format in ["dhat", "speedscope", "firefox-profiler"] {
            let file: Json = serde_json::from_slice(&export(format)).unwrap();
            assert!(file.is_object(), "{format} {when:?}");
        }
        assert_eq!(export("folded"), b"");
        assert!(export("heaptrack").starts_with(b"v "));
        assert_eq!(read(&*export("pprof"), &PprofReadOptions::new()).unwrap().samples().count(), 0);
    }
}

#[test]
fn dhat_has_the_lives_of_a_recordings_blocks() {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path());
    let dhat = |when: &[&str]| -> Json {
        let arguments = [&["export", "r.dmdrec", "--format", "dhat"], when].concat();
        serde_json::from_slice(&run(&arguments, folder.path())).unwrap()
    };
    let of = |file: &Json| -> Vec<Json> {
        let mut points = file["pps"].as_array().unwrap().clone();
        points.iter_mut().for_each(|point| drop(point.as_object_mut().unwrap().remove("fs")));
        points.sort_by_key(|point| point["tb"].as_i64());
        points
    };
    let whole = dhat(&[]);
    assert_eq!((&whole["bklt"], &whole["te"], &whole["tg"]), (&true.into(), &70.into(), &40.into()));
    assert_eq!(
        of(&whole),
        [
            // 100 bytes live for 60 microseconds, and 50 bytes for 10.
            json!({ "tb": 157, "tbk": 3, "tl": 70, "mb": 150, "mbk": 2, "gb": 150, "gbk": 2, "eb": 107, "ebk": 2 }),
            json!({ "tb": 3000, "tbk": 2, "tl": 40, "mb": 2000, "mbk": 1, "gb": 2000, "gbk": 1, "eb": 0, "ebk": 0 }),
        ]
    );
    let window = dhat(&["--between", "45us", "65us"]);
    assert_eq!((of(&window), &window["te"]), (vec![], &65.into()));
}

#[test]
fn heaptrack_and_the_firefox_profiler_have_a_recordings_events() {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path());
    let export = |format: &str| {
        let file = run(&["export", "r.dmdrec", "--format", format], folder.path());
        String::from_utf8(file).unwrap()
    };
    let events = |file: &str| {
        let of = |sign: char| file.lines().filter(|line| line.starts_with([sign])).count();
        (of('+'), of('-'))
    };
    assert_eq!(events(&export("heaptrack")), (5, 3));
    let profile: Json = serde_json::from_str(&export("firefox-profiler")).unwrap();
    // The profile shows the time until the peak. Changes at the same time are merged.
    let changes = &profile["counters"][0]["samples"]["count"];
    assert_eq!(*changes, json!([100, 1000, 1000, 50]));
}

#[test]
fn a_snapshot_has_its_nodes_by_stack() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/tests/golden/small-a.fxsnapshot");
    run(&["export", path(&snapshot), "-o", "heap.pb.gz"], folder.path());
    let stacks = profile(folder.path().join("heap.pb.gz"));
    let breakdown = r#"{"by":"allocationStack","then":{"by":"count"},"noStack":{"by":"count"}}"#;
    let census =
        run(&["snapshot", "census", path(&snapshot), "--breakdown", breakdown, "--json"], folder.path());
    let census: Json = serde_json::from_slice(&census).unwrap();
    let total = |value: ProfileValue| stacks.total(value).unwrap();
    let (mut count, mut bytes) = (0, 0);
    let mut all = vec![&census];
    while let Some(part) = all.pop() {
        if let (Some(more), Some(other)) = (part["count"].as_i64(), part["bytes"].as_i64()) {
            (count, bytes) = (count + i128::from(more), bytes + i128::from(other));
        } else {
            all.extend(part.as_object().into_iter().flat_map(|parts| parts.values()));
            all.extend(part.as_array().into_iter().flatten());
        }
    }
    assert!(count > 1000);
    assert_eq!((total(ProfileValue::LiveBlocks), total(ProfileValue::LiveBytes)), (count, bytes));
    assert!(stacks.samples().all(|sample| stacks.labels(sample.labels).type_name.is_some()));
    let failure = error(&["export", path(&snapshot), "-o", "x.pb.gz", "--at", "peak"], folder.path(), 2);
    assert!(failure.contains("a heap snapshot has one time"), "{failure}");
}

/// Damaged recordings may cause errors, but no panics.
#[test]
fn damaged_recordings_are_exported_or_refused() {
    let mut script = Script::new();
    let stacks = [script.stack(&[0x10, 0x20]), script.stack(&[0x10, 0x30])];
    for n in 0..60_u64 {
        script.begin(10 * n, 1 + (n % 2) as u32, 0x1000 * (n + 1), 10 + n, stacks[(n % 2) as usize]);
        if n % 3 == 0 {
            script.end(10 * n + 5, 1, 0x1000 * (n + 1));
        }
    }
    let whole = script.bytes();
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n as u64) as usize
    };
    let formats = [
        ProfileFormat::Pprof,
        ProfileFormat::Dhat,
        ProfileFormat::Heaptrack,
        ProfileFormat::FirefoxProfiler,
        ProfileFormat::Speedscope,
        ProfileFormat::Folded,
    ];
    let mut written = 0;
    for _ in 0..400 {
        let mut damaged = whole.clone();
        let at = below(damaged.len());
        damaged[at] = below(256) as u8;
        let Ok(mut recording) = Recording::from_file(Cursor::new(damaged), &Default::default()) else {
            continue;
        };
        for from in [None, Some(Moment::Peak)] {
            let window = RecordingWindow { from, to: Moment::End };
            let options = ProfileOptions::new();
            let Ok(history) = RecordingHistory::new(&mut recording, window, &options, |_| {}) else {
                continue;
            };
            for format in formats {
                let result = history.write(&mut recording, format, &Default::default(), &mut std::io::sink());
                written += usize::from(result.is_ok());
            }
        }
    }
    assert!(written > 1000, "{written}");
}

/// A format that contains only live blocks is written from the live blocks of that time. Symbols of other stacks are
/// not looked up.
#[test]
fn formats_without_a_history_read_the_stacks_of_what_lives() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = Script::small();
    // A stack whose only block is freed at once. It is in a library whose file is missing.
    let start = 0x6600_0000_0000;
    let path = b"/gone/libgone.so".to_vec();
    let (build_id, unloaded_since) = ("00ee".to_owned(), None);
    script.modules.push(RecordedModule {
        path,
        build_id,
        start,
        end: start + 0x1000,
        bias: start,
        unloaded_since,
    });
    let of_library = script.stack(&[0x10, start - BASE + 0x20]);
    script.begin(71, 1, 0x9000, 5000, of_library);
    script.end(72, 1, 0x9000);
    fs::write(folder.path().join("r.dmdrec"), script.bytes()).unwrap();
    for format in ["folded", "speedscope"] {
        let output = about_memory(&["export", "r.dmdrec", "--at", "end", "--format", format], folder.path());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !text.contains("libgone"), "{format}: {text}");
    }
}

#[test]
fn a_block_that_could_not_move_is_allocated_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = Script::new();
    let stack = script.stack(&[0x10]);
    script.begin(10, 1, 0x1000, 100, stack);
    script.push(30, 1, 0x1000, BlockAction::EndByMove(None));
    script.push(30, 1, 0x1000, BlockAction::Back(RecordedBlock { requested: 100, slop: 0, stack }));
    script.begin(50, 1, 0x2000, 1, stack);
    fs::write(folder.path().join("r.dmdrec"), script.bytes()).unwrap();
    let dhat = run(&["export", "r.dmdrec", "--format", "dhat"], folder.path());
    let dhat: Json = serde_json::from_slice(&dhat).unwrap();
    let point = &dhat["pps"][0];
    // The block lives from 10 to 50 microseconds.
    assert_eq!([&point["tb"], &point["tbk"], &point["tl"]], [101, 2, 40]);
}
