//! heaptrack's text, read by the rules of its reader.

use std::collections::BTreeMap;
use std::time::Duration;

use memory_export::heaptrack::{HeaptrackOptions, write, write_history};
use memory_export::{
    ExportError, ProfileEvent, ProfileFrame, ProfileValue, SampleLabels, StackProfile, StackProfileBuilder,
};

use crate::inputs::{self, BEYOND};

/// The result of reading a file.
#[derive(Default)]
struct Heap {
    allocations: u64,
    live: i128,
    peak: i128,
    milliseconds: u64,
    /// The live bytes by the name of the outermost function.
    by_root: BTreeMap<String, i128>,
}

fn read(file: &[u8]) -> Heap {
    let text = core::str::from_utf8(file).unwrap();
    assert!(text.starts_with("v 10400 2\nX "));
    let (mut texts, mut instructions, mut traces) = (vec![""], vec![Vec::new()], vec![(0, 0)]);
    let mut kinds: Vec<(u64, u64)> = Vec::new();
    let mut heap = Heap::default();
    for line in text.lines().skip(1) {
        let (mode, rest) = line.split_at(1);
        let numbers = || -> Vec<u64> {
            rest.split_whitespace().map(|number| u64::from_str_radix(number, 16).unwrap()).collect()
        };
        match mode {
            "s" => texts.push(&rest[1..]),
            "i" => {
                let numbers = numbers();
                // Each function has a file and a line, except the last function.
                assert!(numbers[1..].iter().step_by(1).all(|number| *number < 1 << 32));
                let functions: Vec<u64> = numbers[2..].iter().step_by(3).copied().collect();
                assert!(functions.iter().all(|text| (1..texts.len() as u64).contains(text)));
                assert!(numbers[1] < texts.len() as u64);
                instructions.push(functions);
            }
            "t" => {
                let [instruction, parent] = numbers()[..] else { panic!("{line}") };
                assert!((1..instructions.len() as u64).contains(&instruction));
                assert!(parent < traces.len() as u64, "{line}");
                traces.push((instruction, parent));
            }
            "a" => {
                let [size, trace] = numbers()[..] else { panic!("{line}") };
                assert!((1..traces.len() as u64).contains(&trace));
                kinds.push((size, trace));
            }
            "+" | "-" => {
                let (size, mut trace) = kinds[numbers()[0] as usize];
                let size = if mode == "+" { i128::from(size) } else { -i128::from(size) };
                heap.allocations += u64::from(mode == "+");
                heap.live += size;
                heap.peak = heap.peak.max(heap.live);
                while traces[trace as usize].1 != 0 {
                    trace = traces[trace as usize].1;
                }
                let root = instructions[traces[trace as usize].0 as usize].last();
                let root = root.map_or("", |text| texts[*text as usize]);
                *heap.by_root.entry(root.to_owned()).or_default() += size;
            }
            "c" => heap.milliseconds = numbers()[0],
            "X" | "I" => {}
            _ => panic!("{line}"),
        }
    }
    heap
}

fn written(stacks: &StackProfile, options: &HeaptrackOptions) -> (Heap, u64) {
    let mut file = Vec::new();
    let merged = write(stacks, options, &mut file).unwrap().merged;
    (read(&file), merged)
}

#[test]
fn sums_are_those_of_the_stacks() {
    for (name, stacks) in inputs::ordinary() {
        println!("{name}");
        let (heap, merged) = written(&stacks, &HeaptrackOptions::new());
        assert_eq!((Some(heap.live), merged), (stacks.total(ProfileValue::LiveBytes), 0));
        assert_eq!(heap.peak, heap.live);
        assert_eq!(Some(i128::from(heap.allocations)), stacks.total(ProfileValue::LiveBlocks));
    }
}

#[test]
fn owners_are_the_outermost_functions() {
    let (heap, _) = written(&inputs::hostile(), &HeaptrackOptions::new());
    let each = 56 * inputs::HOSTILE.len() as i128;
    let expected = ["reported once", "reported twice", "unreported"].map(|name| (name.to_owned(), each));
    assert_eq!(heap.by_root, expected.into());
}

#[test]
fn too_many_blocks_become_larger_ones() {
    let stacks = inputs::with_amounts(1_000_000_000_000, 8_000_000_000_003);
    let (heap, merged) = written(&stacks, &HeaptrackOptions::new().most(1000));
    assert_eq!(Some(heap.live), stacks.total(ProfileValue::LiveBytes));
    assert!(heap.allocations <= 1000);
    assert_eq!(Some(i128::from(heap.allocations + merged)), stacks.total(ProfileValue::LiveBlocks));
    // If the mean size is not a whole number, block sizes differ by one byte.
    let (heap, merged) = written(&inputs::with_amounts(3, 100), &HeaptrackOptions::new());
    assert_eq!((heap.live, heap.allocations, merged), (110, 4, 0));
}

#[test]
fn a_history_has_its_peak_and_its_end() {
    let mut builder = StackProfileBuilder::new(&inputs::LIVE);
    builder.facts().duration = Some(Duration::from_secs(3));
    let frame = builder.frame(&ProfileFrame { function: Some("f"), ..ProfileFrame::default() });
    let stack = builder.stack(&[frame]);
    let labels = builder.labels(&SampleLabels::default());
    builder.sample(stack, labels, Some(8), &[1, 8]);
    let (stacks, new) = builder.finish_with_stacks().unwrap();
    let event = |milliseconds, size, is_free| {
        new.event(ProfileEvent::new(Duration::from_millis(milliseconds), stack, size, is_free))
    };
    let events = [event(1, 100, false), event(5, 8, false), event(9, 100, true)];
    let mut file = Vec::new();
    write_history(&stacks, events, &mut file).unwrap();
    let heap = read(&file);
    assert_eq!((heap.allocations, heap.peak, heap.live, heap.milliseconds), (2, 108, 8, 3000));
    let text = String::from_utf8(file).unwrap();
    assert!(text.contains("c 1\n") && text.contains("c 9\n- 0\n"), "{text}");
}

#[test]
fn large_amounts_are_exact_and_negative_ones_an_error() {
    let (heap, _) = written(&inputs::with_amounts(1, BEYOND), &HeaptrackOptions::new());
    assert_eq!(heap.live, i128::from(BEYOND) + 10);
    let error = write(&inputs::with_amounts(-1, -5), &HeaptrackOptions::new(), Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "heaptrack cannot hold live blocks of -1: the format has no negative amounts"
    );
    let error = write(&inputs::with_amounts(1, i64::MAX), &HeaptrackOptions::new(), Vec::new()).unwrap_err();
    assert!(matches!(error, ExportError::TooLarge("heaptrack", "live bytes", ..)));
}

/// The compiler may inline hundreds of functions at one place. All of them are in one line.
#[test]
fn any_number_of_functions_is_inlined_at_an_address() {
    for inlined in [84, 85, 86, 300] {
        let mut builder = StackProfileBuilder::new(&[ProfileValue::LiveBlocks, ProfileValue::LiveBytes]);
        let module = builder.module("app", "");
        let names: Vec<String> = (0..=inlined).map(|number| format!("inlined_{number}")).collect();
        let frames: Vec<_> = (0..=inlined)
            .map(|number| {
                builder.frame(&ProfileFrame {
                    function: Some(&names[number]),
                    file: Some("app.rs"),
                    line: Some(7),
                    module: Some(module),
                    offset: Some(0x100),
                    inlined: number < inlined,
                    ..ProfileFrame::default()
                })
            })
            .collect();
        let stack = builder.stack(&frames);
        let labels = builder.labels(&SampleLabels::default());
        builder.sample(stack, labels, Some(64), &[3, 192]);
        let mut file = Vec::new();
        write(&builder.finish().unwrap(), &HeaptrackOptions::new(), &mut file).unwrap();
        let heap = read(&file);
        assert_eq!((heap.allocations, heap.live), (3, 192));
        assert_eq!(heap.by_root, BTreeMap::from([(names[inlined].clone(), 192)]));
    }
}
