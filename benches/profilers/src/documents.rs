//! w3: parses, walks, clones and drops a JSON document.

use std::fmt::Write;
use std::hint::black_box;

use serde_json::Value;

use crate::Done;
use crate::churn::Random;

/// At scale 1: parses 60 MB of JSON three times.
pub(crate) fn parse_and_clone(scale: f64) -> Result<Done, Box<dyn std::error::Error>> {
    let text = document((60e6 * scale) as usize)?;
    let mut sum = 0;
    let mut alive = None;
    for _ in 0..3 {
        let value: Value = serde_json::from_str(&text)?;
        sum ^= walk(&value);
        let copy = black_box(value.clone());
        sum ^= walk(&copy).rotate_left(7);
        drop(alive.replace(value));
    }
    Ok((sum, Box::new(alive)))
}

fn document(length: usize) -> Result<String, std::fmt::Error> {
    let mut random = Random::new(42);
    let mut text = String::with_capacity(length + 4096);
    text.push('[');
    while text.len() < length {
        if text.len() > 1 {
            text.push(',');
        }
        record(&mut text, &mut random, 0)?;
    }
    text.push(']');
    Ok(text)
}

fn record(text: &mut String, random: &mut Random, depth: u32) -> std::fmt::Result {
    let [id, user, whole, part, note, more] = std::array::from_fn(|_| random.next());
    let (id, user, whole, part) = (id & 0xff_ffff, user & 0xffff, whole % 1000, part % 1000);
    let active = id % 2 == 0;
    write!(
        text,
        r#"{{"id":{id},"name":"user {user:x}","score":{whole}.{part:03},"active":{active},"note":"{note:x}{more:x}","tags":["#
    )?;
    for tag in 0..random.next() % 5 {
        write!(text, r#"{}"tag-{}""#, if tag > 0 { "," } else { "" }, random.next() % 500)?;
    }
    let [x, y, z] = std::array::from_fn(|_| random.next() % 90);
    write!(text, r#"],"point":[{x},{y},{z}],"child":"#)?;
    if depth < 12 && !random.next().is_multiple_of(4) {
        record(text, random, depth + 1)?;
    } else {
        text.push_str("null");
    }
    text.push('}');
    Ok(())
}

fn walk(value: &Value) -> u64 {
    match value {
        Value::Null => 1,
        Value::Bool(value) => u64::from(*value),
        Value::Number(number) => number.as_f64().unwrap_or(0.0) as u64,
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(walk).sum(),
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() as u64 + walk(value)).sum(),
    }
}
