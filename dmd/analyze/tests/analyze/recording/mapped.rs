//! Mappings in recordings: over the time, and those that stay.

use std::io::Cursor;

use dmd_analyze::program::{LeakOptions, Leaks, ProgramOptions, UsageHistory};
use dmd_analyze::recording::{Moment, Recording};
use dmd_analyze::{AnalyzeError, DumpReadOptions};
use serde_json::Value;

use super::script::Script;
use crate::views::golden;

/// A cache of 100 pages that stays, a buffer of 50 pages that is mapped three times, a file of 25 pages, and 10 older
/// pages. The heap's peak is at 40 of 70 microseconds.
fn maps() -> Script {
    let mut script = Script::small();
    let (cache, buffer) = (script.stack(&[0x10, 0x30]), script.stack(&[0x10, 0x40]));
    script.map(0, 1000, 10, Some((cache, false)));
    script.map(15, 100, 100, Some((cache, false)));
    for at in [20, 30, 45] {
        script.map(at, 500, 50, Some((buffer, false)));
        script.map(at + 5, 500, 50, None);
    }
    script.map(51, 300, 25, Some((buffer, true)));
    // A hole in the cache, and a part of the file that another mapping replaces.
    script.map(60, 110, 10, None);
    script.map(65, 320, 10, Some((cache, false)));
    script
}

fn figures<const N: usize>(line: &Value, keys: [&str; N]) -> [u64; N] {
    keys.map(|key| line[key].as_u64().unwrap())
}

#[test]
fn mapped_memory_has_a_history() {
    let options = ProgramOptions::new();
    let history = UsageHistory::new(&mut maps().recording(), &options, |_| ()).unwrap();
    golden("mapped_history.txt", &history.text(5, &options).to_string());
    let json: Value = serde_json::from_str(&history.json(9).to_string()).unwrap();
    let keys = ["mappings", "highest", "atPeak", "atEnd"];
    let pages = |[mappings, highest, at_peak, at_end]: [u64; 4]| {
        [mappings, highest << 12, at_peak << 12, at_end << 12]
    };
    let mapped = &json["mapped"];
    assert_eq!(figures(mapped, keys), pages([7, 160, 110, 130]));
    let [cache, buffer, files] = &**mapped["sites"].as_array().unwrap() else { panic!("{mapped}") };
    assert_eq!(figures(cache, keys), pages([3, 110, 110, 110]));
    assert_eq!(figures(buffer, keys), pages([3, 50, 0, 0]));
    assert_eq!(figures(files, keys), pages([1, 25, 0, 20]));
    assert!(files["name"].as_str().unwrap().starts_with("files of "), "{files}");
    // The lines have the changes inside of steps.
    let live: Vec<u64> =
        buffer["live"].as_array().unwrap().iter().map(|bytes| bytes.as_u64().unwrap() >> 12).collect();
    assert_eq!((live.len(), live.iter().max()), (240, Some(&50)));
    let steps = |from: usize, to: usize| &live[from * 240 / 70..to * 240 / 70];
    assert!(steps(21, 25).iter().all(|pages| *pages == 50), "{live:?}");
    assert!(
        [steps(1, 20), steps(27, 30), steps(52, 70)].concat().iter().all(|pages| *pages == 0),
        "{live:?}"
    );
}

#[test]
fn mappings_that_stay_are_listed() {
    let leaks = |options: &LeakOptions| Leaks::new(&mut maps().recording(), options, |_| ()).unwrap();
    let options = ProgramOptions::new();
    let at_end = leaks(&LeakOptions::new());
    golden("mapped_leaks.txt", &at_end.text(5, &options).to_string());
    let json: Value = serde_json::from_str(&at_end.json(9).to_string()).unwrap();
    let keys = ["mappings", "bytes", "made"];
    let [cache, file] = &**json["mappings"].as_array().unwrap() else { panic!("{json}") };
    // The hole cut the cache in two.
    assert_eq!(figures(cache, keys), [3, 100 << 12, 3]);
    assert_eq!(figures(file, keys), [1, 20 << 12, 1]);
    assert_eq!((&cache["file"], &file["file"]), (&false.into(), &true.into()));
    assert!(cache["mappedAt"][0].as_str().unwrap().contains("+0x30"), "{cache}");

    let at = |at: &str| {
        let leaks = leaks(&LeakOptions::new().at(at.parse::<Moment>().unwrap()));
        let json: Value = serde_json::from_str(&leaks.json(9).to_string()).unwrap();
        json["mappings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["bytes"].as_u64().unwrap() >> 12)
            .sum::<u64>()
    };
    assert_eq!([at("22us"), at("27us"), at("peak")], [150, 100, 100]);
    // Ignored stacks are left out.
    let rest = leaks(&LeakOptions::new().ignore(|frame| frame.contains("+0x30")));
    let json: Value = serde_json::from_str(&rest.json(9).to_string()).unwrap();
    assert_eq!(json["mappings"].as_array().unwrap().len(), 1);
}

#[test]
fn changes_of_mappings_do_not_count_as_entries() {
    let mut script = maps();
    let stack = script.stack(&[0x10, 0x50]);
    script.chunk = 50;
    for at in 0..1000 {
        script.map(100 + at, 700, 5, Some((stack, false)));
        script.map(100 + at, 700, 5, None);
    }
    let leaks = |script: &Script| {
        let options = DumpReadOptions::new().max_entries(300);
        let mut recording = Recording::from_file(Cursor::new(script.bytes()), &options).unwrap();
        Leaks::new(&mut recording, &LeakOptions::new(), |_| ())
    };
    let json: Value = serde_json::from_str(&leaks(&script).unwrap().json(9).to_string()).unwrap();
    assert_eq!(json["mappings"].as_array().unwrap().len(), 2, "{json}");
    // Mappings that exist count.
    (0..301).for_each(|page| script.map(2000, 10_000 + 2 * page, 1, Some((stack, false))));
    assert!(matches!(leaks(&script).unwrap_err(), AnalyzeError::TooManyEntries(300)));
}
