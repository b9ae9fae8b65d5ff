//! DHAT's JSON, checked by the rules of `dh_view.js`.

use std::collections::BTreeSet;
use std::time::Duration;

use memory_export::dhat::write;
use memory_export::{
    ExportError, ProfileFrame, ProfileValue, SampleLabels, StackProfile, StackProfileBuilder,
};
use serde_json::Value as Json;

use crate::inputs::{self, BEYOND};

fn written(stacks: &StackProfile) -> Json {
    let mut file = Vec::new();
    write(stacks, &mut file).unwrap();
    let json: Json = serde_json::from_slice(&file).unwrap();
    for key in
        ["dhatFileVersion", "mode", "verb", "bklt", "bkacc", "tu", "Mtu", "cmd", "pid", "te", "pps", "ftbl"]
    {
        assert!(!json[key].is_null(), "{key}");
    }
    assert_eq!((json["dhatFileVersion"].as_u64(), json["ftbl"][0].as_str()), (Some(2), Some("[root]")));
    let points = json["pps"].as_array().unwrap();
    let keys: &[&str] = match json["bklt"].as_bool().unwrap() {
        true => &["tb", "tbk", "tl", "mb", "mbk", "gb", "gbk", "eb", "ebk"],
        false => &["tb", "tbk"],
    };
    let frames = json["ftbl"].as_array().unwrap();
    let mut seen = BTreeSet::new();
    for point in points {
        assert!(keys.iter().all(|key| point[key].is_u64()), "{point}");
        let stack: Vec<u64> =
            point["fs"].as_array().unwrap().iter().map(|frame| frame.as_u64().unwrap()).collect();
        assert!(stack.iter().all(|frame| (1..frames.len() as u64).contains(frame)));
        assert!(seen.insert(stack), "data file contains a repeated location");
    }
    let texts: BTreeSet<_> = frames.iter().map(|frame| frame.as_str().unwrap()).collect();
    assert_eq!(texts.len(), frames.len(), "duplicate frames");
    json
}

fn sum(json: &Json, key: &str) -> i128 {
    json["pps"].as_array().unwrap().iter().map(|point| i128::from(point[key].as_u64().unwrap())).sum()
}

#[test]
fn sums_are_those_of_the_stacks() {
    for (name, stacks) in inputs::ordinary() {
        println!("{name}");
        let json = written(&stacks);
        assert_eq!(json["bklt"], false);
        assert_eq!(Some(sum(&json, "tb")), stacks.total(ProfileValue::LiveBytes));
        assert_eq!(Some(sum(&json, "tbk")), stacks.total(ProfileValue::LiveBlocks));
    }
}

#[test]
fn frames_that_read_alike_are_one_location() {
    let mut builder = StackProfileBuilder::new(&inputs::LIVE);
    let labels = builder.labels(&SampleLabels::default());
    let module = builder.module("/bin/app", "");
    for offset in [1, 2] {
        let frame = ProfileFrame {
            function: Some("f"),
            module: Some(module),
            offset: Some(offset),
            ..ProfileFrame::default()
        };
        let frame = builder.frame(&frame);
        let stack = builder.stack(&[frame]);
        builder.sample(stack, labels, None, &[1, 10]);
    }
    let json = written(&builder.finish().unwrap());
    assert_eq!(json["pps"].as_array().unwrap().len(), 1);
    assert_eq!(json["pps"][0]["tb"], 20);
}

#[test]
fn the_owner_is_above_the_allocation() {
    let json = written(&inputs::hostile());
    let name = |frame: &Json| json["ftbl"][frame.as_u64().unwrap() as usize].as_str().unwrap().to_owned();
    let first: BTreeSet<String> =
        json["pps"].as_array().unwrap().iter().map(|point| name(&point["fs"][0])).collect();
    assert_eq!(first, ["reported once", "reported twice", "unreported"].map(str::to_owned).into());
}

#[test]
fn a_history_has_life_times() {
    let values = [
        ProfileValue::AllocatedBlocks,
        ProfileValue::AllocatedBytes,
        ProfileValue::LiveBlocks,
        ProfileValue::LiveBytes,
        ProfileValue::PeakBlocks,
        ProfileValue::PeakBytes,
        ProfileValue::OwnPeakBlocks,
        ProfileValue::OwnPeakBytes,
        ProfileValue::Lifetimes,
    ];
    let mut builder = StackProfileBuilder::new(&values);
    builder.facts().duration = Some(Duration::from_secs(2));
    builder.facts().peak = Some(Duration::from_secs(1));
    let frame = builder.frame(&ProfileFrame { function: Some("f"), ..ProfileFrame::default() });
    let stack = builder.stack(&[frame]);
    let labels = builder.labels(&SampleLabels::default());
    builder.sample(stack, labels, Some(8), &[10, 80, 1, 8, 3, 24, 4, 32, 500_000]);
    let json = written(&builder.finish().unwrap());
    assert_eq!(
        (json["bklt"].as_bool(), json["te"].as_u64(), json["tg"].as_u64()),
        (Some(true), Some(2_000_000), Some(1_000_000))
    );
    assert!(json["tuth"].is_u64());
    for (key, amount) in [
        ("tb", 80),
        ("tbk", 10),
        ("tl", 500_000),
        ("mb", 32),
        ("mbk", 4),
        ("gb", 24),
        ("gbk", 3),
        ("eb", 8),
        ("ebk", 1),
    ] {
        assert_eq!(json["pps"][0][key], amount, "{key}");
    }
}

#[test]
fn what_the_format_cannot_say_is_an_error() {
    let error = write(&inputs::with_amounts(1, -20), Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "DHAT cannot hold live bytes of -10: the format has no negative amounts");
    let error = write(&inputs::with_amounts(1, -5), Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "DHAT cannot hold live bytes of -5: the format has no negative amounts");
    let error = write(&inputs::with_amounts(1, BEYOND), Vec::new()).unwrap_err();
    assert!(matches!(error, ExportError::TooLarge("DHAT", "live bytes", ..)));
}

#[test]
fn long_lives_are_in_milliseconds() {
    use ProfileValue::*;
    for (lives, units, end) in [(BEYOND - 1, ["µs", "s"], 7_000_000), (BEYOND * 2, ["ms", "ks"], 7000)] {
        let values = [
            AllocatedBytes,
            AllocatedBlocks,
            LiveBytes,
            LiveBlocks,
            PeakBytes,
            PeakBlocks,
            OwnPeakBytes,
            OwnPeakBlocks,
            Lifetimes,
        ];
        let mut builder = StackProfileBuilder::new(&values);
        let frame = builder.frame(&ProfileFrame { function: Some("f"), ..ProfileFrame::default() });
        let stack = builder.stack(&[frame]);
        let labels = builder.labels(&SampleLabels::default());
        builder.sample(stack, labels, None, &[8, 1, 8, 1, 8, 1, 8, 1, lives]);
        (builder.facts().duration, builder.facts().peak) =
            (Some(Duration::from_secs(7)), Some(Duration::from_secs(7)));
        let json = written(&builder.finish().unwrap());
        assert_eq!([&json["tu"], &json["Mtu"]], units);
        assert_eq!((&json["te"], &json["tg"]), (&end.into(), &end.into()));
        let expected = if units[0] == "ms" { lives / 1000 } else { lives };
        assert_eq!(json["pps"][0]["tl"], expected);
    }
}
