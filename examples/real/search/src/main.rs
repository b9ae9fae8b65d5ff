//! `search [NAMES]` makes an index of generated names with fst, and searches the index for misspelled names.

use std::collections::HashMap;

use fst::automaton::Levenshtein;
use fst::{IntoStreamer, Map, MapBuilder, Streamer};

const SYLLABLES: [&str; 16] =
    ["ba", "chi", "dor", "el", "fan", "gri", "hul", "ir", "jo", "kem", "lis", "mo", "nar", "os", "pre", "tu"];

/// A person in the list from which the program makes the index.
struct Person {
    name: String,
    number: u64,
}

/// The result of a query.
struct Answer {
    names: Vec<String>,
    numbers: Vec<u64>,
}

fn people(count: u64) -> Vec<Person> {
    let mut people: Vec<Person> = (0..count)
        .map(|number| {
            let hash = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let syllable = |place: u64| SYLLABLES[(hash >> (place * 4 + 20)) as usize % SYLLABLES.len()];
            Person { name: (0..3 + hash % 4).map(syllable).collect(), number }
        })
        .collect();
    people.sort_by(|a, b| (&a.name, a.number).cmp(&(&b.name, b.number)));
    people.dedup_by(|a, b| a.name == b.name);
    people
}

fn index(people: &[Person]) -> Result<Map<Vec<u8>>, fst::Error> {
    let mut builder = MapBuilder::memory();
    for person in people {
        builder.insert(&person.name, person.number)?;
    }
    Ok(builder.into_map())
}

fn find(map: &Map<Vec<u8>>, name: &str) -> Result<Answer, Box<dyn std::error::Error>> {
    let mut stream = map.search(Levenshtein::new(name, 1)?).into_stream();
    let mut answer = Answer { names: Vec::new(), numbers: Vec::new() };
    while let Some((name, number)) = stream.next() {
        answer.names.push(String::from_utf8(name.to_vec())?);
        answer.numbers.push(number);
    }
    Ok(answer)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse())?;
    let people = people(count);
    let map = index(&people)?;

    let mut answers: HashMap<String, Answer> = HashMap::new();
    for person in people.iter().step_by(people.len().div_ceil(2_000).max(1)) {
        let mut mistaken = person.name.clone();
        mistaken.replace_range(1..2, "x");
        if !answers.contains_key(&mistaken) {
            let answer = find(&map, &mistaken)?;
            answers.insert(mistaken, answer);
        }
    }

    let found: usize = answers.values().map(|answer| answer.names.len()).sum();
    let highest = answers.values().flat_map(|answer| &answer.numbers).max();
    println!(
        "{} names in {} bytes; {} queries found {found}, the last {highest:?}",
        map.len(),
        map.as_fst().as_bytes().len(),
        answers.len()
    );
    Ok(())
}
