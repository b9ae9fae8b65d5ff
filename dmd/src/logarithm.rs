//! The natural logarithm. It does not use the C library's mathematics: `libm` would cost half a megabyte in every
//! process that `libdmd.so` records.

use core::f64::consts::{LN_2, SQRT_2};

/// The natural logarithm of a positive normal number, with an error of a few units in the last place; minus infinity
/// for 0.
pub(crate) fn ln(number: f64) -> f64 {
    const MANTISSA_BITS: u32 = 52;
    const BIAS: i64 = 1023;
    if number == 0.0 {
        return f64::NEG_INFINITY;
    }
    let bits = number.to_bits();
    let mut exponent = (bits >> MANTISSA_BITS) as i64 - BIAS;
    let mut mantissa = f64::from_bits(bits & ((1 << MANTISSA_BITS) - 1) | (BIAS as u64) << MANTISSA_BITS);
    if mantissa > SQRT_2 {
        (mantissa, exponent) = (mantissa / 2.0, exponent + 1);
    }
    // ln m = 2 artanh((m - 1) / (m + 1)). The argument is at most 0.172, so eleven terms are enough.
    let argument = (mantissa - 1.0) / (mantissa + 1.0);
    let square = argument * argument;
    let series = (0..11_u32).rev().fold(0.0, |sum, n| sum * square + 1.0 / f64::from(2 * n + 1));
    2.0 * argument * series + exponent as f64 * LN_2
}
