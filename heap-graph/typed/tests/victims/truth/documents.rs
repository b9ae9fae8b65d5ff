//! Values of JSON and containers of crates.

#![allow(dead_code, reason = "only the types and the blocks count")]

#[path = "truth.rs"]
mod truth;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use indexmap::IndexMap;
use serde_json::Value;
use smallvec::SmallVec;

struct Document {
    id: u64,
    body: Value,
    tags: SmallVec<[Arc<str>; 2]>,
    raw: Bytes,
}

#[derive(Default)]
struct Index {
    documents: IndexMap<String, Arc<Document>>,
    words: BTreeMap<String, Vec<u32>>,
    back: hashbrown::HashMap<u32, SmallVec<[u32; 4]>>,
}

static INDEX: Mutex<Option<Box<Index>>> = Mutex::new(None);

fn text(number: u64) -> String {
    let (tag, word) = (number % 7, number % 300);
    format!(
        r#"{{"id":{number},"nested":{{"list":[1,2,{{"deep":"value {number}"}}]}},"tags":["alpha","beta{tag}"],"text":"lorem ipsum {word}"}}"#
    )
}

/// Prints the strings and the lists of a value.
fn tell(value: &Value) {
    match value {
        Value::String(text) => truth::is("serde_json: strings", text.as_ptr(), "str"),
        Value::Array(all) => {
            truth::is("serde_json: arrays", all.as_ptr(), "[serde_json::value::Value]");
            all.iter().for_each(tell);
        }
        Value::Object(all) => {
            for (key, value) in all {
                truth::is("serde_json: keys", key.as_ptr(), "str");
                tell(value);
            }
        }
        _ => {}
    }
}

fn main() {
    truth::open();
    let mut index = Box::new(Index::default());
    let tags: Vec<Arc<str>> = (0..10).map(|number| format!("tag{number}").into()).collect();
    tags.iter().for_each(|tag| truth::is("Arc<str>", &raw const **tag, "ArcInner<str>"));
    for number in 0..500_u64 {
        let text = text(number);
        let body: Value = serde_json::from_str(&text).expect("valid");
        for word in body["text"].as_str().expect("a text").split(' ') {
            index.words.entry(word.to_owned()).or_default().push(number as u32);
        }
        index.back.entry((number % 50) as u32).or_default().push(number as u32);
        let tags = (0..number as usize % 4).map(|tag| tags[tag].clone()).collect();
        let document = Document { id: number, body, tags, raw: Bytes::from(text) };
        index.documents.insert(format!("key{number}"), Arc::new(document));
    }
    for (key, document) in &index.documents {
        truth::is("indexmap: keys", key.as_ptr(), "str");
        truth::is("indexmap: values", &raw const **document, "ArcInner<typed_heap_documents::Document>");
        truth::is("Bytes", document.raw.as_ptr(), "str");
        tell(&document.body);
        if document.tags.spilled() {
            truth::is("SmallVec", document.tags.as_ptr(), "[Arc<str>]");
        }
    }
    for (word, numbers) in &index.words {
        truth::is("BTreeMap: keys", word.as_ptr(), "str");
        truth::is("BTreeMap: nodes", word, "*Node<String, Vec<u32>>");
        truth::is("BTreeMap: values", numbers.as_ptr(), "[u32]");
    }
    for (key, numbers) in &index.back {
        truth::is("hashbrown", key, "table (u32, smallvec::SmallVec<[u32; 4]>)");
        if numbers.spilled() {
            truth::is("SmallVec", numbers.as_ptr(), "[u32]");
        }
    }
    *INDEX.lock().expect("no panic") = Some(index);
    truth::wait();
    black_box(INDEX.lock().expect("no panic").as_ref().expect("set").documents.len());
}
