//! Numbers that look random and depend only on their keys.

/// A number from a seed and keys.
pub(super) fn bits(seed: u64, keys: &[u64]) -> u64 {
    keys.iter().fold(mixed(seed ^ 0x9e37_79b9_7f4a_7c15), |state, key| {
        mixed(state ^ key.wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(0x94d0_49bb_1331_11eb))
    })
}

/// From 0 to 1, without 1.
pub(super) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// About normal, with mean 0 and deviation 1: a sum of four uniform numbers.
pub(super) fn normal(bits: u64) -> f64 {
    let parts = [bits & 0xffff, bits >> 16 & 0xffff, bits >> 32 & 0xffff, bits >> 48];
    let sum: u64 = parts.iter().sum();
    (sum as f64 / 65_536.0 - 2.0) * 1.732_050_807_568_877_2
}

/// The finalizer of `SplitMix64`.
fn mixed(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
