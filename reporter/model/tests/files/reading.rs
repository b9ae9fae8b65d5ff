//! Accepted files, files with warnings, and rejected files.

use std::io::Read;
use std::time::{Duration, Instant};

use memory_report::file::{self, ReadOptions};
use memory_report::{ReadError, WarningKind};

use crate::gzip::gzip;
use crate::{document, error, read, report};

/// The warning of a file with one faulty report.
fn warning(member: &str) -> String {
    let set = read(document(&report(member))).unwrap();
    assert_eq!(set.len(), 0);
    let [warning] = set.warnings() else { panic!("{:?}", set.warnings()) };
    warning.to_string()
}

#[test]
fn compressed_or_not_is_told_by_the_first_bytes() {
    let text = document(&report(""));
    let folder = std::env::temp_dir().join(format!("memory-reporter-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("plain.json.gz"), &text).unwrap();
    assert_eq!(file::read(folder.join("plain.json.gz")).unwrap().len(), 1);
    std::fs::write(folder.join("packed.json"), gzip(&text)).unwrap();
    match file::read(folder.join("packed.json")) {
        Ok(set) => assert!(cfg!(feature = "gzip") && set.len() == 1),
        Err(error) => assert!(matches!(error, ReadError::NoGzip) && cfg!(not(feature = "gzip")), "{error}"),
    }
    assert_eq!(file::read(folder.join("absent")).unwrap_err().to_string(), "not found");
    assert_eq!(file::read(&folder).unwrap_err().to_string(), "is a directory");
    #[cfg(target_os = "linux")]
    assert_eq!(file::read("/dev/zero").unwrap_err().to_string(), "is not a regular file");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn not_json() {
    assert_eq!(error(""), "is empty: not a gzip or JSON file");
    assert_eq!(error("  "), "truncated after 2 bytes");
    assert_eq!(error("hello"), "not JSON: expected a JSON value at byte 0");
    assert_eq!(error("{\"version\": 1,}"), "not JSON: expected a string at byte 14");
    assert_eq!(error("{\"version\": 1"), "truncated after 13 bytes");
    assert_eq!(error("[1, 2]"), "not a memory report: expected a JSON object");
    assert_eq!(error("[1, 2"), "truncated after 5 bytes");
    assert_eq!(error("17"), "not a memory report: expected a JSON object");
    assert_eq!(error("null"), "not a memory report: expected a JSON object");
    let text = document("");
    assert_eq!(error(text.clone() + " x"), format!("not JSON: expected the end at byte {}", text.len() + 1));
    let nan = report("\"amount\": NaN");
    assert!(error(document(&nan)).starts_with("not JSON: expected a JSON value at byte "));
    for number in ["01", "1.", ".5", "+1", "1e", "--1", "0x1", "1_000", "tru", "nulll"] {
        let bad = report(&format!("\"amount\": {number}"));
        assert!(matches!(read(document(&bad)), Err(ReadError::NotJson(..))), "{number}");
    }
    assert!(matches!(read("{\"a\": \"\n\"}"), Err(ReadError::NotJson(7, _))));
    assert!(matches!(read("{\"a\": \"\\x\"}"), Err(ReadError::NotJson(8, _))));
}

#[test]
fn not_utf8() {
    assert_eq!(error(b"{\"a\": \"\xff\"}"), "invalid UTF-8 at byte 7");
    assert_eq!(error(b"{\"a\": \"\xc3"), "invalid UTF-8 at byte 7");
    assert_eq!(error([0xff, 0xfe, b'{', 0]), "invalid UTF-8 at byte 0");
    assert_eq!(read(format!("\u{feff}{}", document(""))).unwrap().len(), 0);
}

#[test]
fn deep_nesting_anywhere() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = |n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
        for key in ["unknown", "version", "hasMozMallocUsableSize", "reports", "memory_report"] {
            let text = format!("{{\"{key}\": {}}}", deep(100_000));
            assert!(error(text).starts_with("nested more than 128 levels deep at byte "), "{key}");
        }
        let element = report(&format!("\"unknown\": {}", deep(100_000)));
        assert!(error(document(&element)).starts_with("nested more than 128 levels deep at byte "));
        assert!(error(document(&deep(100_000))).starts_with("nested more than 128 levels deep at byte "));
        assert!(error(deep(100_000)).starts_with("nested more than 128 levels deep at byte "));
        let text = format!("{{\"unknown\": {}, {}", deep(127), &document("")[1..]);
        assert_eq!(read(text).unwrap().len(), 0);
    }
}

#[test]
fn version_and_other_keys() {
    assert_eq!(error("{}"), "version is missing");
    for (version, shown) in [("2", "2"), ("\"1\"", "\"1\""), ("null", "null"), ("[1]", "[1]")] {
        let text = format!("{{\"version\": {version}}}");
        assert_eq!(error(text), format!("version {shown} is not supported (expected 1)"));
    }
    assert_eq!(error("{\"version\": 1}"), "hasMozMallocUsableSize is missing");
    let usable = |value: &str| format!("{{\"version\": 1, \"hasMozMallocUsableSize\": {value}");
    assert_eq!(error(usable("3}")), "hasMozMallocUsableSize is not true or false");
    assert_eq!(error(usable("true}")), "reports is missing");
    assert_eq!(error(usable("true, \"reports\": {}}")), "reports is not an array");
    assert_eq!(error(usable("true, \"reports\": null}")), "reports is not an array");
    let set = read(usable("false, \"reports\": [], \"more\": [{}, \"x\", 1e400]}")).unwrap();
    assert!(!set.usable_size_known());
}

#[test]
fn the_last_of_equal_keys_wins() {
    let good = report("");
    let text = format!(
        "{{\"reports\": 5, \"version\": 2, \"version\": 1.0, \"hasMozMallocUsableSize\": true, \
         \"reports\": [{good}, {good}], \"reports\": [{good}]}}"
    );
    assert_eq!(read(text).unwrap().len(), 1);
    let set = read(document(&report("\"amount\": \"x\", \"amount\": 8"))).unwrap();
    assert_eq!(set.iter().next().unwrap().amount, 8);
}

#[test]
fn a_crash_dump_is_unwrapped() {
    let inner = document(&report(""));
    for text in [
        format!("{{\"memory_report\": {inner}}}"),
        format!("{{\"memory_report\": {inner}, \"version\": 7, \"reports\": [1]}}"),
        format!("{{\"version\": 7, \"reports\": [1], \"memory_report\": {inner}}}"),
    ] {
        let set = read(text).unwrap();
        assert_eq!((set.len(), set.warnings().len()), (1, 0));
    }
    assert_eq!(error("{\"memory_report\": null}"), "memory_report is not an object");
}

#[test]
fn a_bad_report_costs_only_itself() {
    for value in ["1.5", "1e400", "-1e400", "\"7\"", "null", "true", "[7]", "{}", "1e-3"] {
        assert_eq!(warning(&format!("\"amount\": {value}")), "reports[0].amount: not a whole number");
    }
    for value in ["9223372036854775808", "-9223372036854775809", "1e300"] {
        assert_eq!(
            warning(&format!("\"amount\": {value}")),
            "reports[0].amount: the number does not fit into 64 bits"
        );
    }
    assert_eq!(warning("\"kind\": 3"), "reports[0].kind: unknown kind 3");
    assert_eq!(warning("\"kind\": -1"), "reports[0].kind: unknown kind -1");
    assert_eq!(warning("\"kind\": 0.5"), "reports[0].kind: not a whole number");
    assert_eq!(warning("\"units\": 4"), "reports[0].units: unknown units 4");
    assert_eq!(warning("\"path\": 5"), "reports[0].path: not a string");
    assert_eq!(warning("\"process\": null"), "reports[0].process: not a string");
    let explicit = "\"path\": \"explicit/a\"";
    assert_eq!(warning(explicit), "reports[0].kind: OTHER is not allowed under explicit/");
    let explicit = "\"path\": \"explicit/a\", \"kind\": 1, \"units\": 1";
    assert_eq!(warning(explicit), "reports[0].units: COUNT is not allowed under explicit/");

    let reports = format!("{}, {{}}, 5, [], {}", report(""), report(""));
    let set = read(document(&reports)).unwrap();
    let warnings: Vec<_> = set.warnings().iter().map(ToString::to_string).collect();
    let expected = ["reports[1].process: missing", "reports[2]: not an object", "reports[3]: not an object"];
    assert_eq!((set.len(), warnings), (2, expected.map(str::to_owned).to_vec()));
}

#[test]
fn whole_numbers_in_any_notation() {
    for (value, amount) in [
        ("1.0", 1),
        ("1e3", 1000),
        ("-0", 0),
        ("-2.50e1", -25),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("9007199254740993", (1 << 53) + 1),
    ] {
        let set = read(document(&report(&format!("\"amount\": {value}")))).unwrap();
        assert_eq!(set.iter().next().unwrap().amount, amount, "{value}");
    }
}

#[test]
fn text_is_unescaped() {
    let member = r#""path": "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud800x\udc00", "more": 1"#;
    let set = read(document(&report(member))).unwrap();
    let path = set.iter().next().unwrap().path;
    assert_eq!(path, "\"\\/\u{8}\u{c}\n\r\té😀\u{fffd}x\u{fffd}");
}

#[test]
fn a_report_without_a_description_is_kept_with_a_warning() {
    let without = r#"{"process":"","path":"a","kind":2,"units":0,"amount":7}"#.to_owned();
    let of_another_type =
        ["null", "5", "[\"d\"]", "{}"].map(|value| report(&format!("\"description\": {value}")));
    for (element, message) in
        [(without, "missing")].into_iter().chain(of_another_type.map(|element| (element, "not a string")))
    {
        let set = read(document(&element)).unwrap();
        let reports: Vec<_> = set.iter().map(|report| (report.amount, report.description)).collect();
        assert_eq!(reports, [(7, "")]);
        let [warning] = set.warnings() else { panic!("{:?}", set.warnings()) };
        assert_eq!(warning.kind, WarningKind::ReportKept);
        assert_eq!(warning.to_string(), format!("reports[0].description: {message}"));
    }
    // A report with a second fault is left out because of that fault.
    assert_eq!(warning("\"description\": 5, \"kind\": 3"), "reports[0].kind: unknown kind 3");
}

/// A reader that returns one byte at a time, so that every token is cut at every place.
struct Slowly<'a>(&'a [u8]);

impl Read for Slowly<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.len().min(into.len()).min(1);
        self.0.read(&mut into[..n])
    }
}

#[test]
fn how_the_bytes_arrive_does_not_matter() {
    let member = r#""path": "é\ud83d\ude00/日本", "amount": -12.0e1, "x": [true, {"y": null}]"#;
    let text = document(&vec![report(member); 3000].join(" ,\n"));
    let set = file::read_from(Slowly(text.as_bytes()), &ReadOptions::default()).unwrap();
    assert_eq!(set.len(), 3000);
    assert!(set.iter().all(|report| report.path == "é😀/日本" && report.amount == -120));
}

#[test]
fn one_very_long_path_is_fine() {
    let long = format!("t/{}", "x".repeat(5_000_000));
    let set = read(document(&report(&format!("\"path\": \"{long}\"")))).unwrap();
    assert_eq!(set.iter().next().unwrap().path, long);
}

/// A reader that returns `head`, and then `body` repeatedly. It ends after a number of bytes.
struct Endless {
    head: Vec<u8>,
    body: &'static [u8],
    at: usize,
    left: usize,
}

impl Endless {
    fn new(head: &str, body: &'static str, bytes: usize) -> Self {
        Self { head: head.as_bytes().to_vec(), body: body.as_bytes(), at: 0, left: bytes }
    }
}

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = into.len().min(self.left);
        if let (true, [byte]) = (self.at >= self.head.len(), self.body) {
            into[..n].fill(*byte);
            self.left -= n;
            return Ok(n);
        }
        for byte in &mut into[..n] {
            let body = self.at.checked_sub(self.head.len());
            *byte = body.map_or_else(|| self.head[self.at], |at| self.body[at % self.body.len()]);
            self.at += 1;
        }
        self.left -= n;
        Ok(n)
    }
}

#[test]
fn bombs_are_stopped_at_the_limit() {
    // `./test thorough` uses a larger limit.
    let limit: usize = if std::env::var_os("THOROUGH").is_some() { 5 << 20 } else { 1 << 20 };
    let start = "{\"version\": 1, \"hasMozMallocUsableSize\": true, \"reports\": [";
    let tiny = "{\"process\":\"\",\"path\":\"\",\"kind\":2,\"units\":0,\"amount\":0},";
    let options = ReadOptions::new().max_bytes(limit as u64);
    for (head, body) in
        [("", " "), ("{\"unknown\": [", "0,"), ("{\"unknown\": [", "\"x\","), (start, "0,"), (start, tiny)]
    {
        let began = Instant::now();
        let error = file::read_from(Endless::new(head, body, limit + 1), &options).unwrap_err();
        assert_eq!(error.to_string(), format!("contains more than {limit} bytes of text"), "{head}{body}");
        if cfg!(feature = "gzip") {
            let mut text = Vec::new();
            Endless::new(head, body, limit + 1).read_to_end(&mut text).unwrap();
            let error = file::read_from(&*gzip(text), &options).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("contains more than {limit} bytes of text"),
                "{head}{body}, packed"
            );
        }
        assert!(began.elapsed() < Duration::from_secs(60));
    }
    let zeros = file::read_from(Endless::new("", "\0", limit + 1), &options).unwrap_err();
    assert!(matches!(zeros, ReadError::NotJson(0, _)), "{zeros}");
    let string = file::read_from(Endless::new("{\"a\": \"", "x", 1 << 28), &ReadOptions::new()).unwrap_err();
    assert!(matches!(string, ReadError::ValueTooLong(_)), "{string}");
    let many = file::read_from(Endless::new(start, tiny, limit), &ReadOptions::new().max_reports(1000));
    assert_eq!(many.unwrap_err().to_string(), "more than 1000 reports");
}

#[test]
fn warnings_are_bounded() {
    let set = read(document(&vec!["0"; 5000].join(","))).unwrap();
    assert_eq!(set.warnings().len(), 1001);
    assert_eq!(set.warnings()[1000].to_string(), "reports: 4000 more are wrong");
    // The limit for warnings about kept reports is separate from the limit for dropped reports.
    let kept = report("\"description\": 5");
    let set = read(document(&vec![kept.as_str(); 1500].join(",").replacen(&kept, "0", 2))).unwrap();
    assert_eq!(set.len(), 1498);
    assert_eq!(set.warnings().len(), 2 + 1000 + 1);
    let dropped = set.warnings().iter().filter(|warning| warning.kind == WarningKind::ReportDropped);
    assert_eq!(dropped.count(), 2);
    assert_eq!(set.warnings()[1002].kind, WarningKind::ReportKept);
    assert_eq!(set.warnings()[1002].to_string(), "reports: 498 more are kept with faults");
}
