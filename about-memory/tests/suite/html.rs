//! The page as a file: its contents, and the program that writes it. `ui/test` tests the page in a browser.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use about_memory::HtmlOptions;
use flate2::read::GzDecoder;
use memory_reporter::{Kind, Report, ReportSet, Units, file};
use serde_json::Value;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

pub(crate) fn about_memory(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_about-memory")).args(arguments).output().unwrap()
}

fn set(names: &[&str]) -> ReportSet {
    let mut set = ReportSet::new();
    for name in names {
        let path = &format!("explicit/{name}");
        set.push(Report {
            process: name,
            path,
            kind: Kind::Heap,
            units: Units::Bytes,
            amount: 1,
            description: name,
        });
    }
    set
}

/// Returns the text of the element with the data.
fn data(page: &str) -> &str {
    let (_, rest) = page.split_once(r#"<script type="application/octet-stream" id="data">"#).unwrap();
    rest.split_once("</script>").unwrap().0
}

/// Returns the decompressed data.
fn payload(page: &str) -> Vec<u8> {
    use base64::Engine as _;
    let packed = base64::engine::general_purpose::STANDARD.decode(data(page)).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    bytes
}

pub(crate) fn header(page: &str) -> Value {
    let bytes = payload(page);
    let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
    let columns: u64 = header["columns"].as_array().unwrap().iter().map(|c| c[1].as_u64().unwrap()).sum();
    assert_eq!(bytes.len() as u64, 4 + length as u64 + columns);
    header
}

#[test]
fn names_are_in_the_data_only() {
    let evil = ["</script><script>alert(1)</script>", "<!--", "<b>x", "@DATA@", "@TITLE@", "&amp;", "\"'`"];
    let page = about_memory::html(&set(&evil), &HtmlOptions::new().title("</title><script>\u{202e}"));
    let plain = about_memory::html(&ReportSet::new(), &HtmlOptions::new());
    assert!(data(&page).bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b)));
    let title = "<title>about:memory (&lt;/title&gt;&lt;script&gt;\\u{202e})</title>";
    assert!(page.contains(title));
    let frame = page.replace(data(&page), "").replace(title, "<title>about:memory</title>");
    assert_eq!(frame, plain.replace(data(&plain), ""));
    assert_eq!(page.matches("<script").count(), 2, "the data, and the page's own script");
}

#[test]
fn the_page_loads_nothing() {
    let page = about_memory::html(&set(&["a"]), &HtmlOptions::new());
    let policy =
        r#"<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-"#;
    assert!(page.contains(policy));
    for word in
        ["<link", "src=", " href=", "@import", "url(", "importScripts", "XMLHttpRequest", "sendBeacon"]
    {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn all_of_the_forest_is_in_it() {
    let set = file::read(golden("firefox/sample.json.gz")).unwrap();
    let header = header(&about_memory::html(&set, &HtmlOptions::new()));
    assert_eq!(header["processes"].as_array().unwrap().len(), 9);
    assert_eq!(header["processes"][0]["name"], "Main Process (pid 687)");
    assert_eq!(header["exact"], true);
    assert_eq!(header["is_diff"], false);
    assert!(header["nodes"].as_u64().unwrap() > 5000);
}

#[test]
fn amounts_that_floats_cannot_hold_are_told() {
    let set = file::read(golden("ours/huge.json")).unwrap();
    assert_eq!(header(&about_memory::html(&set, &HtmlOptions::new()))["exact"], false);
}

#[test]
fn the_page_is_small() {
    let empty = about_memory::html(&ReportSet::new(), &HtmlOptions::new());
    assert!(empty.len() < 114_000, "{}", empty.len());
    // 5,073 reports of a real program: 15 bytes each, names included.
    let sample = file::read(golden("firefox/sample.json.gz")).unwrap();
    let page = about_memory::html(&sample, &HtmlOptions::new());
    assert!(page.len() < empty.len() + 20 * sample.len(), "{}", page.len());
    let loose = about_memory::html(&sample, &HtmlOptions::new().compression(0));
    assert!(loose.len() > page.len());
    assert_eq!(header(&loose), header(&page));
}

#[test]
fn the_program_writes_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let sample = golden("firefox/units.json");
    let sample = sample.to_str().unwrap();
    let output = about_memory(&["html", sample, "-o", page.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    let written = fs::read_to_string(&page).unwrap();
    assert!(written.starts_with("<!DOCTYPE html>"));
    assert!(written.contains(&format!("<title>about:memory ({sample})</title>")));
    let output = about_memory(&["html", sample, "-o", "-", "--title", "units"]);
    let piped = String::from_utf8(output.stdout).unwrap();
    assert!(piped.contains("<title>about:memory (units)</title>"));
    assert_eq!(data(&piped), data(&written));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the page is in the folder");
}

#[test]
fn two_files_give_a_page_of_what_changed() {
    let (first, second) = (golden("firefox/diff.a.json"), golden("firefox/diff.b.json"));
    let output = about_memory(&["html", first.to_str().unwrap(), second.to_str().unwrap(), "-o", "-"]);
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.contains("<title>about:memory (diff of "));
    assert_eq!(header(&page)["is_diff"], true);
}

#[test]
fn a_dump_gives_a_page_with_a_flame_graph_alone_or_beside_a_report() {
    let (dump, report) = (golden("dmd/dark-matter-mixed.json"), golden("firefox/units.json"));
    let (dump, report) = (dump.to_str().unwrap(), report.to_str().unwrap());
    let page = |arguments: &[&str]| {
        let output = about_memory(&[&["html", "-o", "-"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        header(&String::from_utf8(output.stdout).unwrap())
    };
    let alone = page(&[dump]);
    assert_eq!(alone["processes"].as_array().unwrap().len(), 0);
    assert!(alone["flame"]["frames"].as_u64().unwrap() > 10, "{alone}");
    let both = page(&[report, "--dmd", dump]);
    assert_eq!(both["flame"], alone["flame"]);
    assert_eq!(both["processes"], page(&[report])["processes"]);
    assert!(page(&[report]).get("flame").is_none());

    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.json");
    fs::write(&bad, r#"{"version": 5, "invocation": {"mode": "odd"}}"#).unwrap();
    for arguments in [&[bad.to_str().unwrap()][..], &[report, "--dmd", bad.to_str().unwrap()]] {
        let output = about_memory(&[&["html", "-o", "-"], arguments].concat());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(message.contains("bad.json: ") && message.contains("mode"), "{message}");
    }
}

/// The page shows the warnings above its views.
#[test]
fn a_page_of_a_dump_warns_of_pointers_without_a_block() {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump.json");
    let text = r##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "dark-matter"},
        "blockList": [{"req": 8, "alloc": "A"}], "traceTable": {"A": ["F"]},
        "frameTable": {"F": "#00: app::f (/home/me/app/src/f.rs:1)"},
        "reportPaths": [{"path": "explicit/cache", "claimed": 0, "marked": 0}],
        "reportFaults": [{"kind": "freed", "addr": "7f10", "path": 0,
            "frames": ["#00: app::report (/home/me/app/src/f.rs:9)"]}]}"##;
    fs::write(&dump, text).unwrap();
    let output = about_memory(&["html", dump.to_str().unwrap(), "-o", "-"]);
    assert!(output.status.success(), "{output:?}");
    let warnings = &header(&String::from_utf8(output.stdout).unwrap())["set_warnings"];
    let message = "1 pointer to a block that was freed (freed), by app::report (src/f.rs:9)";
    assert_eq!(warnings, &serde_json::json!([{"subject": "explicit/cache", "message": message}]));
}

/// With the option, the page has the resident memory of the process, and of each stack.
#[test]
fn a_page_of_a_dump_has_the_resident_memory() {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump.json");
    let text = |mappings: &str| {
        format!(
            r##"{{"version": 5, "invocation": {{"dmdEnvVar": null, "mode": "live"}},
            "blockList": [{{"req": 8192, "alloc": "A", "untouched": 4096}}], "traceTable": {{"A": ["F"]}},
            "frameTable": {{"F": "#00: app::f (/home/me/app/src/f.rs:1)"}}{mappings}}}"##
        )
    };
    let mappings = r#", "mappings": {"pageSize": 4096, "resident": 8192, "list": [{"start": "1000", "bytes": 16384,
        "access": "rw-p", "owner": "heap", "resident": 8192, "blocks": 1, "live": 8192, "liveResident": 4096}]}"#;
    fs::write(&dump, text(mappings)).unwrap();
    let page = |options: &[&str]| {
        let output = about_memory(&[&["html", dump.to_str().unwrap(), "-o", "-"], options].concat());
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (is_written, with) = page(&["--resident"]);
    assert!(is_written, "{with}");
    let blocks = &header(&with)["heap"]["blocks"];
    assert_eq!(blocks["resident"], true);
    let memory = blocks["memory"].as_str().unwrap();
    assert!(memory.starts_with("Resident memory of the process: 8.00 KiB\n"), "{memory}");
    assert!(memory.contains("4.00 KiB   50.00%  live blocks\n"), "{memory}");
    let (_, without) = page(&[]);
    assert!(header(&without).get("heap").is_none_or(Value::is_null));
    // Files without pages of blocks.
    let (is_written, reason) = page(&["--resident", "--at", "end"]);
    assert!(!is_written && reason.contains("cannot be used with"), "{reason}");
    fs::write(&dump, text("")).unwrap();
    let (is_written, reason) = page(&["--resident"]);
    assert!(!is_written && reason.contains("the dump has no resident bytes"), "{reason}");
    let report = golden("ours/dark-matter.json");
    let output = about_memory(&["html", report.to_str().unwrap(), "--resident", "-o", "-"]);
    let reason = String::from_utf8(output.stderr).unwrap();
    assert!(reason.contains("--resident needs the file of a dump"), "{reason}");
}

#[test]
fn a_saved_report_with_dark_matter_has_its_functions() {
    let report = golden("ours/dark-matter.json");
    let text = about_memory(&["show", report.to_str().unwrap()]);
    assert!(text.status.success(), "{text:?}");
    let expected = fs::read_to_string(golden("ours/dark-matter.expected.txt")).unwrap();
    assert_eq!(String::from_utf8(text.stdout).unwrap(), expected);
    // The page adds no computed amounts to the saved reports.
    assert_eq!(expected.matches("heap-unclassified\n").count(), 1, "{expected}");

    let output = about_memory(&["html", report.to_str().unwrap(), "-o", "-"]);
    assert!(output.status.success(), "{output:?}");
    let page = String::from_utf8(output.stdout).unwrap();
    let bytes = payload(&page);
    let has = |name: &str| bytes.windows(name.len()).any(|part| part == name.as_bytes());
    for name in
        ["heap-unclassified", "app::load", "~std::thread::Builder::spawn", "twice-reported", "app::name"]
    {
        assert!(has(name), "{name}");
    }
    // 15 nodes of `explicit`, none of them computed, and 3 nodes of `twice-reported`.
    assert_eq!(header(&page)["nodes"], 18);
}

/// Runs `about-memory html -` on these bytes.
fn piped(bytes: &[u8]) -> Output {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut child = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .args(["html", "-", "-o", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    // The program may refuse the input before it has read all of it.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

#[test]
fn a_dump_or_a_report_may_be_standard_input() {
    let flame = |path: &Path| {
        let output = piped(&fs::read(path).unwrap());
        assert!(output.status.success(), "{output:?}");
        header(&String::from_utf8(output.stdout).unwrap())
    };
    for dump in ["dmd/dark-matter-mixed.json", "dmd/zipped.json.gz"] {
        let dump = golden(dump);
        let output = about_memory(&["html", "-o", "-", dump.to_str().unwrap()]);
        assert_eq!(flame(&dump), header(&String::from_utf8(output.stdout).unwrap()));
    }
    assert_eq!(flame(&golden("firefox/sample.json.gz"))["processes"].as_array().unwrap().len(), 9);
    for (bad, said) in [
        (r#"{"version": 5, "invocation": {"mode": "odd"}}"#.to_owned(), "mode"),
        ("{}".to_owned(), "version"),
        // `version` is so far from the start of the file that the detection of the format does not find it.
        (format!("{{\"x\": \"{}\", \"version\": 5}}", "a".repeat(5_000_000)), "version 5 is not supported"),
    ] {
        let output = piped(bad.as_bytes());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(message.starts_with("about-memory: -: ") && message.contains(said), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn what_cannot_be_read_or_written_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.json");
    let missing = missing.to_str().unwrap();
    let sample = golden("firefox/units.json");
    let sample = sample.to_str().unwrap();
    let nowhere = folder.path().join("no-such-folder/page.html");
    for (arguments, status) in [
        (&["html", missing, "-o", "-"][..], 1),
        (&["html", sample, missing, "-o", "-"], 1),
        (&["html", sample, "-o", nowhere.to_str().unwrap()], 1),
        (&["html", sample, "-o", folder.path().to_str().unwrap()], 1),
        (&["html", "-", "-", "-o", "-"], 2),
        (&["html", sample], 2),
        (&["html", sample, "-o", "-", "--normalize", "a=>b"], 2),
        (&["html", sample, sample, "-o", "-", "--dmd", sample], 2),
        (&["html", sample, "-o", "-", "--dmd", sample], 1),
        (&["html", sample, "-o", "-", "--dmd", missing], 1),
    ] {
        let output = about_memory(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(status == 2 || message.lines().count() == 1, "{message}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A page of a private file is private under any umask.
#[cfg(unix)]
#[test]
fn the_page_of_a_private_file_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let run = |script: &str| {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("umask 022; {script}")).current_dir(&folder);
        let output = command.env("ABOUT", env!("CARGO_BIN_EXE_about-memory")).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    };
    for (mode, expected) in [(0o644, 0o644), (0o600, 0o600)] {
        fs::copy(golden("firefox/sample.json.gz"), &report).unwrap();
        fs::set_permissions(&report, fs::Permissions::from_mode(mode)).unwrap();
        for script in [
            "$ABOUT html report.json -o out",
            "$ABOUT html report.json report.json -o out",
            "$ABOUT html - -o out < report.json",
            "$ABOUT export report.json --format openmetrics -o out",
        ] {
            run(script);
            let found = fs::metadata(folder.path().join("out")).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, expected, "{script} of {mode:o}");
            fs::remove_file(folder.path().join("out")).unwrap();
        }
    }
}
