//! Data with the answers of a real Firefox.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use heap_graph::Graph;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub(crate) const SNAPSHOTS: [&str; 3] = ["small-a", "small-b", "medium"];

pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

pub(crate) fn snapshot(name: &str) -> Graph {
    let file = path(&format!("{name}.fxsnapshot"));
    heap_graph::snapshot::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The text of a file, unpacked if its name says so.
pub(crate) fn text(name: &str) -> String {
    let mut text = String::new();
    let file = File::open(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    if name.ends_with(".gz") {
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    } else {
        { file }.read_to_string(&mut text).unwrap();
    }
    text
}

pub(crate) fn raw(name: &str) -> Box<RawValue> {
    serde_json::from_str(&text(name)).unwrap()
}

/// The entries of a JSON object, as they stand in the text, in the order of the text.
pub(crate) fn entries(object: &RawValue) -> Vec<(String, Box<RawValue>)> {
    struct Entries(Vec<(String, Box<RawValue>)>);
    impl<'de> serde::Deserialize<'de> for Entries {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Entries;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                    let mut entries = Vec::new();
                    while let Some(entry) = map.next_entry()? {
                        entries.push(entry);
                    }
                    Ok(Entries(entries))
                }
            }
            deserializer.deserialize_map(Visitor)
        }
    }
    serde_json::from_str::<Entries>(object.get()).unwrap().0
}

pub(crate) fn entry(object: &RawValue, key: &str) -> Box<RawValue> {
    let found = entries(object).into_iter().find(|(name, _)| name == key);
    found.unwrap_or_else(|| panic!("no {key}")).1
}

pub(crate) fn object(object: &RawValue) -> Map<String, Value> {
    serde_json::from_str(object.get()).unwrap()
}

/// JSON without blanks between its tokens.
pub(crate) fn compact(json: &str) -> String {
    let (mut out, mut in_text, mut escaped) = (String::new(), false, false);
    for c in json.chars() {
        if in_text {
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if c.is_ascii_whitespace() {
            continue;
        } else {
            in_text = c == '"';
        }
        out.push(c);
    }
    out
}
