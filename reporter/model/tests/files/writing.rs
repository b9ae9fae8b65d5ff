//! The written format, byte for byte.

use memory_report::file::ReadOptions;
use memory_report::{Kind, Report, ReportSet, Units, Warning, WarningKind, file};

const EXPECTED: &str = r#"{
 "version": 1,
 "hasMozMallocUsableSize": false,
 "reports": [
  {
   "process": "Main Process (pid 1)",
   "path": "explicit/a\\b",
   "kind": 1,
   "units": 0,
   "amount": -5,
   "description": "Says \"é\"."
  },
  {
   "process": "web",
   "path": "n",
   "kind": 2,
   "units": 3,
   "amount": 9223372036854775807,
   "description": ""
  }
 ]
}"#;

fn set() -> ReportSet {
    let mut set = ReportSet::new();
    set.set_usable_size_known(false);
    set.push(Report {
        process: "Main Process (pid 1)",
        path: "explicit/a\\b",
        kind: Kind::Heap,
        units: Units::Bytes,
        amount: -5,
        description: "Says \"é\".",
    });
    set.push(Report {
        process: "web",
        path: "n",
        kind: Kind::Other,
        units: Units::Percentage,
        amount: i64::MAX,
        description: "",
    });
    set
}

#[test]
fn format_is_that_of_firefox() {
    let mut written = Vec::new();
    file::write_to(&mut written, &set()).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), EXPECTED);
}

#[test]
fn a_name_in_gz_is_compressed() {
    let folder = std::env::temp_dir().join(format!("memory-reporter-writing-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, packed) in [("r.json", false), ("r.json.gz", true)] {
        let path = folder.join(name);
        let written = file::write(&path, &set());
        if packed && cfg!(not(feature = "gzip")) {
            assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::Unsupported);
            assert!(!path.exists());
            continue;
        }
        written.unwrap();
        assert_eq!(std::fs::read(&path).unwrap().starts_with(&[0x1f, 0x8b]), packed);
        assert!(file::read(&path).unwrap().iter().eq(set().iter()));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_saved_process_has_a_name() {
    let mut set = ReportSet::new();
    let (process, path, description) = ("", "n", "");
    set.push(Report { process, path, kind: Kind::Other, units: Units::Count, amount: 1, description });
    let mut written = Vec::new();
    file::write_to(&mut written, &set).unwrap();
    let name = format!("\"Main Process (pid {})\"", std::process::id());
    assert!(String::from_utf8(written).unwrap().contains(&name));
}

#[test]
fn warnings_are_written_and_read() {
    let mut set = set();
    for (kind, subject) in [
        (WarningKind::TimedOut, "a \"reporter\""),
        (WarningKind::ProcessMissing, "web (pid 2)"),
        (WarningKind::ReportKept, ""),
    ] {
        set.warn(Warning::new(kind, subject, "did not\nanswer"));
    }
    let mut written = Vec::new();
    file::write_to(&mut written, &set).unwrap();
    let text = String::from_utf8(written).unwrap();
    let end =
        ",\n \"warnings\": [\n  {\n   \"kind\": \"timed-out\",\n   \"subject\": \"a \\\"reporter\\\"\",";
    assert!(text.starts_with(&format!("{}{end}", EXPECTED.strip_suffix("\n}").unwrap())), "{text}");
    let read = file::read_from(text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(read.warnings(), set.warnings());
    assert!(read.iter().eq(set.iter()));
}

#[test]
fn odd_warnings_are_passed_over() {
    let text = r#"{"warnings": [1, [{}], {}, {"kind": [], "subject": "a", "message": "b"}, {"subject": "a"},
        {"kind": "later", "subject": "c", "message": "d", "more": {"x": [null]}}],
        "version": 1, "hasMozMallocUsableSize": true, "reports": []}"#;
    let read = file::read_from(text.as_bytes(), &ReadOptions::default()).unwrap();
    let texts: Vec<_> = read.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["a: b", "c: d"]);
    for other in ["{}", "null", "[]", "\"\""] {
        let text = format!(
            "{{\"warnings\": {other}, \"version\": 1, \"hasMozMallocUsableSize\": true, \"reports\": []}}"
        );
        let read = file::read_from(text.as_bytes(), &ReadOptions::default()).unwrap();
        assert!(read.warnings().is_empty());
    }
}

#[test]
fn processes_get_other_names() {
    let mut set = set();
    set.rename_processes(|name| if name == "web" { "x".to_owned() } else { format!("{name}!") });
    let names: Vec<_> = set.iter().map(|report| report.process.to_owned()).collect();
    assert_eq!(names, ["Main Process (pid 1)!", "x"]);
    set.rename_processes(|_| "one".to_owned());
    assert!(set.iter().all(|report| report.process == "one"));
    assert_eq!(memory_report::tree::Forest::new(&set).processes().len(), 1);
}
