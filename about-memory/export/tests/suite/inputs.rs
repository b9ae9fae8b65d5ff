//! Stacks on which each format is tested.

use memory_export::{ProfileFrame, ProfileValue, SampleLabels, StackProfile, StackProfileBuilder};

pub(crate) const LIVE: [ProfileValue; 2] = [ProfileValue::LiveBlocks, ProfileValue::LiveBytes];

/// Names that are hard to write: markup, separators, quotes, line breaks, marks of text direction, generics.
pub(crate) const HOSTILE: [&str; 9] = [
    "<script>alert(1)</script>",
    "a;b,c (d) e",
    "\"quoted\\\"",
    "two\nlines\r\tand\u{1}more",
    "\u{202e}right to left\u{2066}",
    "<alloc::vec::Vec<T> as core::iter::Extend>::extend",
    "no utf-8: \u{fffd}",
    "",
    "]]>}{'",
];

pub(crate) fn empty() -> StackProfile {
    StackProfileBuilder::new(&LIVE).finish().unwrap()
}

fn named(builder: &mut StackProfileBuilder, names: &[&str]) -> memory_export::ProfileStackId {
    let frames: Vec<_> = names
        .iter()
        .map(|name| builder.frame(&ProfileFrame { function: Some(name), ..ProfileFrame::default() }))
        .collect();
    builder.stack(&frames)
}

pub(crate) fn one_block() -> StackProfile {
    let mut builder = StackProfileBuilder::new(&LIVE);
    let stack = named(&mut builder, &["app::load", "app::main"]);
    let labels = builder.labels(&SampleLabels::default());
    builder.sample(stack, labels, Some(100), &[1, 100]);
    builder.finish().unwrap()
}

/// Owners, types and files with hostile names, inlined frames, and addresses without functions.
pub(crate) fn hostile() -> StackProfile {
    let mut builder = StackProfileBuilder::new(&LIVE);
    builder.facts().program = "/opt/a \"b\"\n;c".to_owned();
    let program = builder.module("/opt/a \"b\"\n;c", "00ff");
    let library = builder.module("/lib/libc.so.6", "abcdef");
    let address = builder.frame(&ProfileFrame {
        module: Some(library),
        offset: Some(0x1234),
        ..ProfileFrame::default()
    });
    for (index, name) in HOSTILE.into_iter().enumerate() {
        let inner = builder.frame(&ProfileFrame {
            function: Some(name),
            file: Some(name),
            line: Some(7),
            column: Some(3),
            module: Some(program),
            offset: Some(0x100 + index as u64),
            inlined: true,
            ..ProfileFrame::default()
        });
        let outer = builder.frame(&ProfileFrame {
            function: Some("app::main"),
            system_name: Some("_RNvC3app4main"),
            file: Some("src/main.rs"),
            line: Some(index as u32),
            module: Some(program),
            offset: Some(0x100 + index as u64),
            ..ProfileFrame::default()
        });
        let stack = builder.stack(&[inner, outer, address]);
        for (kind, reporter) in [("unreported", None), ("once", Some(name)), ("twice", Some(name))] {
            let labels = builder.labels(&SampleLabels {
                kind: Some(kind),
                reporter,
                type_name: Some(name),
                thread: None,
            });
            builder.sample(stack, labels, Some(16), &[2, 32]);
            builder.sample(stack, labels, Some(24), &[1, 24]);
        }
    }
    builder.finish().unwrap()
}

/// 100,000 stacks of 12 frames.
pub(crate) fn many() -> StackProfile {
    stacks(100_000)
}

/// At most 1,000,000 different stacks of 12 frames.
pub(crate) fn stacks(count: usize) -> StackProfile {
    let mut builder = StackProfileBuilder::new(&LIVE);
    let frames: Vec<_> = (0..1000)
        .map(|index| {
            let name = format!("app::function_{index}");
            builder.frame(&ProfileFrame {
                function: Some(&name),
                file: Some("src/app.rs"),
                line: Some(index),
                ..ProfileFrame::default()
            })
        })
        .collect();
    let labels = builder.labels(&SampleLabels { kind: Some("unreported"), ..SampleLabels::default() });
    for index in 0..count {
        let calls: Vec<_> =
            (0..10).map(|depth| frames[index.wrapping_mul(2_654_435_761 >> depth) / 7 % 1000]).collect();
        let first = frames[index % 1000];
        let second = frames[index / 1000];
        let stack = builder.stack(&[&[first, second][..], &calls].concat());
        builder.sample(stack, labels, Some(8 + index as u64 % 5), &[3, 3 * (8 + index as i64 % 5)]);
    }
    builder.finish().unwrap()
}

/// One sample with these numbers of blocks and bytes.
pub(crate) fn with_amounts(blocks: i64, bytes: i64) -> StackProfile {
    let mut builder = StackProfileBuilder::new(&LIVE);
    let stack = named(&mut builder, &["app::load"]);
    let other = named(&mut builder, &["app::store"]);
    let labels = builder.labels(&SampleLabels::default());
    builder.sample(stack, labels, None, &[blocks, bytes]);
    builder.sample(other, labels, Some(10), &[1, 10]);
    builder.finish().unwrap()
}

/// Inputs that each format must be able to hold.
pub(crate) fn ordinary() -> [(&'static str, StackProfile); 4] {
    [("empty", empty()), ("one block", one_block()), ("hostile names", hostile()), ("100,000 stacks", many())]
}

pub(crate) const BEYOND: i64 = (1 << 53) + 1;
