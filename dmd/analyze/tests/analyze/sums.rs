//! The sums of all records must equal the heap, for any dump and any options.

use dmd_analyze::{Analysis, AnalyzeOptions, RecordKind, RecordOrder};
use proptest::prelude::*;

use super::{document, read};

/// Requested bytes, slop, number of blocks, allocation trace, report traces.
type Block = (u64, u64, u64, Option<u8>, Vec<u8>);

fn blocks() -> impl Strategy<Value = Vec<Block>> {
    let block = (
        prop_oneof![0..100u64, any::<u64>().prop_map(|n| n >> 1)],
        0..50u64,
        0..5u64,
        prop::option::of(0..6u8),
        prop::collection::vec(0..6u8, 0..=2),
    );
    prop::collection::vec(block, 0..40)
}

fn text(mode: &str, blocks: &[Block]) -> String {
    let blocks: Vec<String> = blocks
        .iter()
        .map(|(req, slop, num, alloc, reps)| {
            let alloc = alloc.map(|trace| format!(", \"alloc\": \"T{trace}\"")).unwrap_or_default();
            let reps: Vec<String> = reps.iter().map(|trace| format!("\"T{trace}\"")).collect();
            format!(
                "{{\"req\": {req}, \"slop\": {slop}, \"num\": {num}{alloc}, \"reps\": [{}]}}",
                reps.join(",")
            )
        })
        .collect();
    let traces: Vec<String> = (0..6).map(|n| format!("\"T{n}\": [\"F{}\", \"F{n}\"]", n / 2)).collect();
    let frames: Vec<String> = (0..6).map(|n| format!("\"F{n}\": \"#00: f{n} (f.rs:{n})\"")).collect();
    let tables =
        format!("\"traceTable\": {{{}}}, \"frameTable\": {{{}}}", traces.join(","), frames.join(","));
    document(mode, &blocks.join(","), &tables)
}

proptest! {
    #[test]
    fn kinds_add_up_to_the_heap(blocks in blocks(), frames in 1..4usize, limit in 0..5usize) {
        let options = AnalyzeOptions::new().max_frames(frames).limit(limit).sort_by(RecordOrder::NumBlocks);
        let analysis = Analysis::new(read(text("dark-matter", &blocks)).unwrap(), &options);
        let expected: i128 = blocks
            .iter()
            .map(|(req, slop, num, ..)| (i128::from(*req) + i128::from(*slop)) * i128::from(*num))
            .sum();
        prop_assert_eq!(analysis.total().usable(), expected);
        let kinds = [RecordKind::Unreported, RecordKind::OnceReported, RecordKind::TwiceReported];
        let sum: i128 = kinds.iter().map(|kind| analysis.sums(*kind).usable()).sum();
        prop_assert_eq!(sum, expected);
        let unreported: i128 = blocks
            .iter()
            .filter(|(.., reps)| reps.is_empty())
            .map(|(_, _, num, ..)| i128::from(*num))
            .sum();
        prop_assert_eq!(analysis.sums(RecordKind::Unreported).num, unreported);
    }

    #[test]
    fn the_difference_to_itself_is_nothing(blocks in blocks()) {
        let dump = || read(text("dark-matter", &blocks)).unwrap();
        let analysis = Analysis::difference(dump(), dump(), &AnalyzeOptions::new()).unwrap();
        prop_assert_eq!(analysis.total().usable(), 0);
        let shown = analysis.text(&[]).to_string();
        prop_assert!(shown.contains("# no unreported heap blocks"), "{}", shown);
        prop_assert!(!shown.contains("Allocated at"), "{}", shown);
    }

    #[test]
    fn a_difference_is_what_the_sums_differ_by(a in blocks(), b in blocks()) {
        let dump = |blocks: &[Block]| read(text("live", blocks)).unwrap();
        let options = AnalyzeOptions::new();
        let total = |blocks: &[Block]| Analysis::new(dump(blocks), &options).total().usable();
        let both = Analysis::difference(dump(&a), dump(&b), &options).unwrap();
        prop_assert_eq!(both.total().usable(), total(&b) - total(&a));
        prop_assert_eq!(both.sums(RecordKind::Live).usable(), total(&b) - total(&a));
    }
}
