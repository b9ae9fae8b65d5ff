//! Time lines of recordings: the slices must equal a replay up to their bounds.

use std::collections::BTreeSet;

use dmd_analyze::program::{HeapChange, ProgramOptions, Timeline, TimelineOptions};
use dmd_analyze::recording::{Moment, Recording};
use dmd_analyze::{Analysis, AnalyzeOptions, Dump, RecordKind};
use dmd_format::recording::{BlockAction, LiveBlock, RecordedBlock};

use super::history::server;
use super::random;
use super::script::Script;

fn timeline(recording: &mut Recording, bounds: &TimelineOptions) -> Timeline {
    Timeline::new(recording, &ProgramOptions::new(), bounds, |_| ()).unwrap()
}

/// Blocks and usable bytes.
fn sums(dump: Dump) -> (i128, i128) {
    let sums = Analysis::new(dump, &AnalyzeOptions::new()).sums(RecordKind::Live);
    (sums.num, sums.usable())
}

/// The blocks that began after one bound (or at any time), and are alive at another bound.
fn alive(timeline: &Timeline, after: Option<usize>, at: usize) -> (i128, i128) {
    let cells = timeline.cells().filter(|cell| {
        after.is_none_or(|after| cell.began > after)
            && cell.began <= at
            && cell.ended.is_none_or(|end| end > at)
    });
    cells.fold((0, 0), |(blocks, bytes), cell| (blocks + i128::from(cell.blocks), bytes + cell.bytes))
}

fn check(recording: &mut Recording, timeline: &Timeline) {
    let bounds: Vec<Moment> = timeline.bounds().map(Moment::After).collect();
    for to in 0..bounds.len() {
        let state = sums(recording.state_at(bounds[to]).unwrap());
        assert_eq!(alive(timeline, None, to), state, "at {to}");
        for from in (0..=to).step_by(3) {
            let window = sums(recording.between(bounds[from], bounds[to]).unwrap());
            assert_eq!(alive(timeline, Some(from), to), window, "from {from} to {to}");
        }
    }
    let outline = recording.outline().unwrap();
    let peak = timeline.peak();
    assert_eq!(timeline.bounds().nth(peak), Some(outline.peak.time));
    assert_eq!(alive(timeline, None, peak), sums(recording.state_at(Moment::Peak).unwrap()));
    let allocated: u64 = timeline.steps().map(|step| step.allocations).sum();
    assert_eq!(allocated, outline.statistics.allocations + outline.statistics.reallocations);
    let began = timeline.cells().filter(|cell| cell.began > 0).map(|cell| cell.blocks).sum::<i64>();
    assert!(began as u64 <= allocated, "{began} of {allocated}");
}

fn with_older(seed: u64, threads: u32) -> Script {
    let mut script = random(seed, 2000, threads);
    let block = |requested| RecordedBlock { requested, slop: 24, stack: 1 };
    for at in 0..20 {
        script.older.push(LiveBlock { address: 0x10_0000 + 0x100 * at, block: block(100 + at) });
    }
    for at in 0..10 {
        script.end(3000 + 150 * at, 1, 0x10_0000 + 0x100 * at);
    }
    script
}

#[test]
fn slices_add_up_to_the_states_of_the_replay() {
    for (seed, threads, slices) in [(7, 1, 12), (8, 5, 17)] {
        let mut recording = with_older(88_172_645_463_325_252 + seed, threads).recording();
        let timeline = timeline(&mut recording, &TimelineOptions::new().slices(slices));
        assert!(timeline.bounds().len() as u64 > slices);
        check(&mut recording, &timeline);
    }
}

#[test]
fn too_many_cells_make_longer_slices_that_stay_exact() {
    let mut recording = with_older(88_172_645_463_325_252, 3).recording();
    let fine = timeline(&mut recording, &TimelineOptions::new().slices(64));
    let coarse = timeline(&mut recording, &TimelineOptions::new().slices(64).cells(150));
    assert!(fine.cells().len() > 500);
    assert!(coarse.cells().len() <= 150, "{}", coarse.cells().len());
    let bounds: BTreeSet<_> = fine.bounds().collect();
    assert!(coarse.bounds().len() < bounds.len() / 4 && coarse.bounds().all(|bound| bounds.contains(&bound)));
    check(&mut recording, &coarse);
    assert_eq!(fine.steps().collect::<Vec<_>>(), coarse.steps().collect::<Vec<_>>(), "slices change no step");
    let no_cells = timeline(&mut recording, &TimelineOptions::new().cells(0));
    check(&mut recording, &no_cells);
}

#[test]
fn a_block_that_did_not_move_is_the_block_it_was() {
    let mut script = Script::new();
    let first = script.stack(&[0x10]);
    script.begin(1, 1, 0x1000, 100, first);
    script.push(50, 1, 0x1000, BlockAction::EndByMove(None));
    // A bound is between the end of the block and its return.
    script.push(62, 1, 0x1000, BlockAction::Back(RecordedBlock { requested: 100, slop: 0, stack: first }));
    script.begin(99, 1, 0x2000, 30, first);
    let mut recording = script.recording();
    for slices in [2, 10, 100] {
        let timeline = timeline(&mut recording, &TimelineOptions::new().slices(slices));
        check(&mut recording, &timeline);
    }
}

#[test]
fn the_curve_has_the_highest_live_bytes_of_each_step() {
    let mut recording = server().recording();
    let timeline = timeline(&mut recording, &TimelineOptions::new());
    let outline = recording.outline().unwrap();
    let steps: Vec<_> = timeline.steps().collect();
    assert_eq!(steps.iter().map(|step| step.highest).max().unwrap(), outline.peak.bytes as i128);
    let peak = steps.iter().position(|step| step.highest == outline.peak.bytes as i128).unwrap();
    assert!(steps[peak].end >= outline.peak.time && (peak == 0 || steps[peak - 1].end < outline.peak.time));
    // The curve is never below the heap's size at a bound.
    for (bound, step) in steps.iter().enumerate() {
        assert!(alive(&timeline, None, bound).1 <= step.highest, "{bound}");
    }
}

#[test]
fn small_stacks_share_rows_and_lose_nothing() {
    let mut recording = server().recording();
    let bounds = TimelineOptions::new().slices(12);
    let (whole, small) = (timeline(&mut recording, &bounds), timeline(&mut recording, &bounds.rows(2)));
    assert_eq!((whole.rows().rows().len(), whole.rows().merged()), (4, 0));
    assert_eq!(small.rows().merged(), 2);
    let names = small.rows().names();
    let frames: Vec<&str> =
        small.rows().frames().iter().map(|frame| names[frame.name as usize].as_str()).collect();
    assert_eq!(frames[0], "all");
    assert!(frames.contains(&"(small)"), "{frames:?}");
    let last = whole.bounds().len() - 1;
    assert_eq!(alive(&whole, None, last), alive(&small, None, last));
    check(&mut recording, &small);
    // The frames are a tree in preorder, and each row belongs to a frame of the tree.
    let children: u32 = small.rows().frames().iter().map(|frame| frame.children).sum();
    assert_eq!(children as usize, frames.len() - 1);
    let in_bounds = |row: &dmd_analyze::program::StackRow| {
        (row.frame as usize) < frames.len() && row.holders.iter().all(|name| (*name as usize) < names.len())
    };
    assert!(small.rows().rows().iter().all(in_bounds));
}

#[test]
fn an_empty_recording_has_an_empty_time_line() {
    let mut recording = Script::new().recording();
    let timeline = timeline(&mut recording, &TimelineOptions::new());
    assert_eq!((timeline.cells().len(), timeline.rows().rows().len()), (0, 0));
    assert_eq!(timeline.rows().frames().len(), 1);
}

#[test]
fn a_change_has_both_sides_of_each_stack() {
    let (mut first, mut second) = (Script::new(), Script::new());
    for (script, kept, fresh) in [(&mut first, 100, 0x30), (&mut second, 700, 0x40)] {
        let stays = script.stack(&[0x10, 0x20]);
        let of_one = script.stack(&[0x10, fresh]);
        script.begin(1, 1, 0x1000, kept, stays);
        script.begin(2, 1, 0x2000, 50, of_one);
    }
    let end = |script: &Script| script.recording().state_at(Moment::End).unwrap();
    let change = HeapChange::new(end(&first), end(&second), &ProgramOptions::new()).unwrap();
    let both = change.changes().iter().map(|change| (change.before.usable(), change.after.usable()));
    assert_eq!(both.collect::<BTreeSet<_>>(), BTreeSet::from([(100, 700), (50, 0), (0, 50)]));
    assert_eq!(change.changes().len(), change.rows().rows().len());
    assert!(!change.is_estimated());
}
