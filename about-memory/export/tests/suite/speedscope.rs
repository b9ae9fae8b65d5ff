//! speedscope's JSON.

use memory_export::speedscope::{SpeedscopeOptions, write};
use memory_export::{ProfileValue, StackProfile};
use serde_json::Value as Json;

use crate::inputs::{self, BEYOND, HOSTILE};

fn written(stacks: &StackProfile, options: &SpeedscopeOptions) -> Json {
    let mut file = Vec::new();
    write(stacks, options, &mut file).unwrap();
    let json: Json = serde_json::from_slice(&file).unwrap();
    assert_eq!(json["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = json["shared"]["frames"].as_array().unwrap();
    assert!(frames.iter().all(|frame| frame["name"].is_string()));
    for profile in json["profiles"].as_array().unwrap() {
        assert_eq!(profile["type"], "sampled");
        let (samples, weights) =
            (profile["samples"].as_array().unwrap(), profile["weights"].as_array().unwrap());
        assert_eq!(samples.len(), weights.len());
        let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
        assert_eq!((profile["startValue"].as_u64(), profile["endValue"].as_u64()), (Some(0), Some(sum)));
        let stacks = samples.iter().flat_map(|stack| stack.as_array().unwrap());
        assert!(stacks.into_iter().all(|frame| frame.as_u64().unwrap() < frames.len() as u64));
    }
    json
}

/// The sum of all profiles whose names start with `name`.
fn sum(json: &Json, name: &str) -> i128 {
    let profiles = json["profiles"].as_array().unwrap().iter();
    let named = profiles.filter(|profile| profile["name"].as_str().unwrap().starts_with(name));
    named.map(|profile| i128::from(profile["endValue"].as_i64().unwrap())).sum()
}

#[test]
fn sums_are_those_of_the_stacks() {
    for (name, stacks) in inputs::ordinary() {
        for options in
            [SpeedscopeOptions::new(), SpeedscopeOptions::new().small(0), SpeedscopeOptions::new().small(3)]
        {
            println!("{name}, {options:?}");
            let json = written(&stacks, &options);
            assert_eq!(Some(sum(&json, "live bytes")), stacks.total(ProfileValue::LiveBytes));
            assert_eq!(Some(sum(&json, "live blocks")), stacks.total(ProfileValue::LiveBlocks));
        }
    }
}

#[test]
fn each_kind_is_a_profile_and_reporters_are_roots() {
    let json = written(&inputs::hostile(), &SpeedscopeOptions::new());
    let names: Vec<&str> = json["profiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|profile| profile["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "live bytes, reported once",
            "live bytes, reported twice",
            "live bytes, unreported",
            "live blocks, reported once",
            "live blocks, reported twice",
            "live blocks, unreported",
        ]
    );
    let frames = &json["shared"]["frames"];
    for stack in json["profiles"][0]["samples"].as_array().unwrap() {
        let root = frames[stack[0].as_u64().unwrap() as usize]["name"].as_str().unwrap();
        assert!(HOSTILE.contains(&root.strip_prefix("reported by ").unwrap()));
        let leaf = &frames[stack.as_array().unwrap().last().unwrap().as_u64().unwrap() as usize];
        assert_eq!(
            (leaf["file"].as_str(), leaf["line"].as_u64(), leaf["col"].as_u64()),
            (leaf["name"].as_str(), Some(7), Some(3))
        );
    }
}

#[test]
fn small_stacks_become_one() {
    let json = written(&inputs::many(), &SpeedscopeOptions::new().small(3));
    let profile = &json["profiles"][0];
    assert_eq!(profile["samples"].as_array().unwrap().len(), 1);
    let frame = profile["samples"][0][0].as_u64().unwrap() as usize;
    assert_eq!(json["shared"]["frames"][frame]["name"], "(100000 small)");
}

#[test]
fn a_difference_has_what_grew_and_what_shrank() {
    let json = written(&inputs::with_amounts(-2, -50), &SpeedscopeOptions::new());
    let of = |name: &str| sum(&json, name);
    assert_eq!((of("live bytes, grown"), of("live bytes, shrunk")), (10, 50));
    assert_eq!((of("live blocks, grown"), of("live blocks, shrunk")), (1, 2));
}

#[test]
fn amounts_beyond_doubles_are_an_error() {
    let error = write(&inputs::with_amounts(1, BEYOND), &SpeedscopeOptions::new(), Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "speedscope cannot hold live bytes of 9007199254741003: numbers are exact only up to 9007199254740992"
    );
}
