//! The order in which stacks are built does not matter.

use memory_export::{
    ExportError, ProfileEvent, ProfileFrame, ProfileValue, SampleLabels, StackProfile, StackProfileBuilder,
    pprof,
};
use proptest::prelude::*;
use std::time::Duration;

use crate::inputs::{LIVE, with_amounts};

fn bytes_of(stacks: &StackProfile) -> Vec<u8> {
    let mut file = Vec::new();
    pprof::write(stacks, &pprof::PprofOptions::new(), &mut file).unwrap();
    file
}

proptest! {
    #[test]
    fn equal_samples_in_any_order_give_equal_bytes(
        samples in prop::collection::vec((0_u32..6, 0_u32..6, 0_usize..3, 1_i64..100), 0..40),
        seed in any::<u64>(),
    ) {
        let mut shuffled = samples.clone();
        let mut state = seed;
        for at in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(at, (state >> 33) as usize % (at + 1));
        }
        let build = |samples: &[(u32, u32, usize, i64)]| {
            let mut builder = StackProfileBuilder::new(&LIVE);
            for (inner, outer, kind, blocks) in samples {
                let frame = |builder: &mut StackProfileBuilder, number: u32| {
                    let name = format!("f{number}");
                    builder.frame(&ProfileFrame { function: Some(&name), ..ProfileFrame::default() })
                };
                let frames = [frame(&mut builder, *inner), frame(&mut builder, *outer)];
                let stack = builder.stack(&frames);
                let kind = [None, Some("once"), Some("twice")][*kind];
                let labels = builder.labels(&SampleLabels { kind, ..SampleLabels::default() });
                builder.sample(stack, labels, Some(8), &[*blocks, 8 * blocks]);
            }
            builder.finish().unwrap()
        };
        let (first, second) = (build(&samples), build(&shuffled));
        prop_assert_eq!(first.total(ProfileValue::LiveBytes), Some(samples.iter().map(|s| i128::from(8 * s.3)).sum()));
        prop_assert_eq!(bytes_of(&first), bytes_of(&second));
    }
}

#[test]
fn sums_beyond_63_bits_are_an_error() {
    let mut builder = StackProfileBuilder::new(&LIVE);
    let stack = builder.stack(&[]);
    let labels = builder.labels(&SampleLabels::default());
    builder.sample(stack, labels, None, &[1, i64::MAX]);
    builder.sample(stack, labels, None, &[1, 1]);
    let error = builder.finish().unwrap_err();
    assert!(matches!(error, ExportError::TooLarge(..)));
    assert_eq!(
        error.to_string(),
        "a profile cannot hold live bytes of 9223372036854775808: numbers are exact only up to 9223372036854775807"
    );
}

#[test]
fn samples_that_cancel_out_are_gone() {
    let stacks = with_amounts(0, 0);
    assert_eq!(stacks.samples().len(), 1);
    assert_eq!(stacks.total(ProfileValue::AllocatedBytes), None);
}

#[test]
fn events_follow_their_stacks() {
    let mut builder = StackProfileBuilder::new(&LIVE);
    let frame = |builder: &mut StackProfileBuilder, name| {
        builder.frame(&ProfileFrame { function: Some(name), ..ProfileFrame::default() })
    };
    let (z, a) = (frame(&mut builder, "z"), frame(&mut builder, "a"));
    let (of_z, of_a) = (builder.stack(&[z]), builder.stack(&[a]));
    let (stacks, new) = builder.finish_with_stacks().unwrap();
    for (stack, name) in [(of_z, "z"), (of_a, "a")] {
        let event = new.event(ProfileEvent::new(Duration::ZERO, stack, 1, false));
        assert_eq!(stacks.frame(stacks.stack(event.stack)[0]).function, Some(name));
    }
}
