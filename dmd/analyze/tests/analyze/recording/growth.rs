//! A server that grows, and frees everything at its end: growth between two times, and leaks before the end.

use core::time::Duration;

use dmd_analyze::program::{HeapGrowth, LeakOptions, Leaks, ProgramOptions};
use dmd_analyze::recording::Moment;
use dmd_format::recording::{BlockAction, RecordedBlock};
use serde_json::Value;

use super::script::Script;
use crate::views::golden;

/// The microseconds of a second.
const SECOND: u64 = 1_000_000;

/// The server allocates 50,000 bytes at its start. It gets 5 requests a second, and keeps 1,000 bytes and 8 bytes of
/// slop for each request. Each request also makes a block for a moment. From 34 to 36 s the server frees all blocks.
fn server() -> Script {
    let mut script = Script::new();
    let (start, kept, moment) =
        (script.stack(&[0x100, 0x110]), script.stack(&[0x100, 0x120]), script.stack(&[0x100, 0x130]));
    script.begin(SECOND, 1, 0x1000, 50_000, start);
    let requests: Vec<u64> = (0..160).collect();
    for n in &requests {
        let at = 2 * SECOND + n * SECOND / 5;
        let block = RecordedBlock { requested: 1000, slop: 8, stack: kept };
        script.push(at, 2, 0x10_0000 + 0x1000 * n, BlockAction::Begin(block));
        script.begin(at + 10, 2, 0x2000, 2000, moment);
        script.end(at + 20, 2, 0x2000);
    }
    for n in &requests {
        script.end(34 * SECOND + n * SECOND / 80, 1, 0x10_0000 + 0x1000 * n);
    }
    script.end(36 * SECOND, 1, 0x1000);
    script
}

fn seconds(seconds: u64) -> Moment {
    Moment::After(Duration::from_secs(seconds))
}

#[test]
fn growth_is_net_between_two_times() {
    let mut recording = server().recording();
    let times = [seconds(10), seconds(30)];
    let growth = HeapGrowth::new(&mut recording, times, &ProgramOptions::new(), |_| ()).unwrap();
    golden("growth.txt", &growth.text(10, &ProgramOptions::new()).to_string());
    let json: Value = serde_json::from_str(&growth.json(1).to_string()).unwrap();
    assert_eq!((json["from"].as_f64(), json["to"].as_f64()), (Some(10.0), Some(30.0)));
    assert_eq!(json["total"]["growth"], 100 * 1008);
    assert_eq!(json["total"]["before"], serde_json::json!({"bytes": 50_000 + 41 * 1008, "blocks": 42}));
    let sites = json["sites"].as_array().unwrap();
    assert_eq!(
        (sites.len(), &sites[0]["growth"], &sites[0]["after"]["blocks"]),
        (1, &100_800.into(), &141.into())
    );
    // From the last request on the heap only shrinks.
    let times = [seconds(33), Moment::End];
    let shrunk = HeapGrowth::new(&mut recording, times, &ProgramOptions::new(), |_| ()).unwrap();
    let text = shrunk.text(10, &ProgramOptions::new()).to_string();
    assert!(text.contains("Growth from 33 s to 36 s: -202.39 KiB in -157 blocks"), "{text}");
    assert!(text.contains("(2 that shrank)"), "{text}");
    for (times, words) in [
        ([seconds(30), seconds(10)], "before it starts at 30.00 s"),
        ([seconds(30), seconds(500)], "the recording ends at 36.00 s, before 500.00 s"),
    ] {
        let error = HeapGrowth::new(&mut recording, times, &ProgramOptions::new(), |_| ()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn what_a_program_frees_at_its_exit_is_no_secret() {
    let leaks = |at: Option<Moment>| {
        let options = at.into_iter().fold(LeakOptions::new(), LeakOptions::at);
        Leaks::new(&mut server().recording(), &options, |_| ()).unwrap()
    };
    let at_end = leaks(None);
    assert_eq!(at_end.blocks(), 0);
    let (bytes, after) = at_end.freed_at_exit().unwrap();
    assert!((50_000 + 155 * 1008..=50_000 + 160 * 1008).contains(&bytes), "{bytes}");
    assert!((33.0..=34.1).contains(&after.as_secs_f64()), "{after:?}");
    let text = at_end.text(5, &ProgramOptions::new()).to_string();
    let line = text.lines().find(|line| line.contains(" at exit: ")).unwrap();
    assert!(
        line.contains(" KiB were freed in the last ") && line.ends_with(" shows these blocks."),
        "{line}"
    );
    let at = line.split("--at ").nth(1).unwrap().split(' ').next().unwrap();

    // At the time that the line names, the blocks are alive.
    let before = leaks(Some(at.parse().unwrap()));
    assert!(before.blocks() >= 155, "{at}: {}", before.blocks());
    let text = before.text(5, &ProgramOptions::new()).to_string();
    assert!(text.contains("Allocated again and again, and alive: ") && text.contains("Alive 3"), "{text}");
    assert!(!text.contains("never freed") && !text.contains("at exit"), "{text}");
    let json: Value = serde_json::from_str(&before.json(5).to_string()).unwrap();
    assert_eq!((json["at"].is_number(), json["leaks"][0]["growth"].as_str()), (true, Some("again")));
    let json: Value = serde_json::from_str(&at_end.json(5).to_string()).unwrap();
    assert_eq!(json["freedAtExit"]["bytes"].as_u64().map(u128::from), Some(bytes));

    // A heap that shrinks slowly, or only now and then, counts as not freed at exit.
    let steady = Leaks::new(&mut Script::small().recording(), &LeakOptions::new(), |_| ()).unwrap();
    assert_eq!(steady.freed_at_exit(), None);
    let error =
        Leaks::new(&mut server().recording(), &LeakOptions::new().at(seconds(99)), |_| ()).unwrap_err();
    assert!(error.to_string().contains("the recording ends at 36.00 s"), "{error}");
}
