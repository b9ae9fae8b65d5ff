//! The written format, byte for byte.

use memory_reporter::{Kind, Report, ReportSet, Units, file};

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
        file::write(&path, &set()).unwrap();
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
