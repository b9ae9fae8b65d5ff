//! The sampler returns the same numbers as Firefox's sampler.

use dmd::Sampler;
use proptest::prelude::*;

#[test]
fn first_skips_are_firefox_s() {
    let mut sampler = Sampler::new();
    let skips: Vec<_> = (0..6)
        .map(|_| {
            let skip = sampler.skip();
            assert!(sampler.trial(skip), "the byte after {skip} skipped bytes must be chosen");
            skip
        })
        .collect();
    assert_eq!(skips, [196, 92, 573, 151, 45, 322]);
}

#[test]
fn counts_are_those_of_firefox_s_test() {
    let mut sampler = Sampler::new();
    let mut chosen = |bytes| (0..10_000).filter(|_| sampler.trial(bytes)).count();
    assert_eq!([chosen(16), chosen(128), chosen(1024)], [511, 3136, 9531]);
}

proptest! {
    #[test]
    fn bytes_passed_over_add_up(sizes in prop::collection::vec(1usize..5000, 1..200)) {
        let mut sampler = Sampler::new();
        for bytes in sizes {
            let before = sampler.skip();
            let chosen = sampler.trial(bytes);
            prop_assert_eq!(chosen, before <= bytes);
            if !chosen {
                prop_assert_eq!(sampler.skip(), before - bytes);
            }
        }
    }
}
