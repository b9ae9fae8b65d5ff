//! Data with the answers of a real Firefox.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use heap_graph::Graph;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub(crate) const SNAPSHOTS: [&str; 3] = ["small-a", "small-b", "medium"];

pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// A snapshot, shared by all tests.
pub(crate) fn snapshot(name: &str) -> Arc<Graph> {
    static READ: Mutex<BTreeMap<String, Arc<Graph>>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let graph = read.entry(name.to_owned()).or_insert_with(|| {
        let file = path(&format!("{name}.fxsnapshot"));
        let graph = heap_graph::snapshot::read(&file);
        Arc::new(graph.unwrap_or_else(|error| panic!("{}: {error}", file.display())))
    });
    Arc::clone(graph)
}

/// The text of a file; a file that ends in `.gz` is unpacked.
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

/// Firefox's answers about a snapshot. All tests share them, since they are long.
pub(crate) struct Answers(BTreeMap<String, Box<RawValue>>);

impl Answers {
    pub(crate) fn get(&self, key: &str) -> &RawValue {
        self.0.get(key).unwrap_or_else(|| panic!("no {key}"))
    }
}

pub(crate) fn answers(name: &str) -> Arc<Answers> {
    static READ: Mutex<BTreeMap<String, Arc<Answers>>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let answers = read.entry(name.to_owned()).or_insert_with(|| {
        let all = text(&format!("{name}.answers.json.gz"));
        Arc::new(Answers(serde_json::from_str(&all).unwrap()))
    });
    Arc::clone(answers)
}

pub(crate) fn raw(name: &str) -> Box<RawValue> {
    serde_json::from_str(&text(name)).unwrap()
}

/// The entries of a JSON object, as unparsed text, in the order of the text.
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

/// JSON without white space between its tokens.
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
