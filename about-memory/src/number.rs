//! Formats numbers as `Intl.NumberFormat("en-US")` does.
//!
//! The rule was checked on many values: take the shortest decimal that parses as the same `f64`, then round half away
//! from zero. Neither the exact binary value nor Rust's `{:.2}` gives the same digits. Whole numbers that an `f64`
//! cannot represent are rounded exactly; Firefox has already lost their digits.

use std::fmt::Write as _;

use memory_report::Units;

/// An `f64` represents every whole number up to this.
const EXACT: u128 = 1 << 53;

/// The unit of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ByteUnits {
    /// MiB, called MB, as in Firefox.
    #[default]
    Mb,
    /// Whole bytes: `B`.
    B,
    /// 1024 bytes: `KiB`.
    KiB,
    /// 1024 KiB: `MiB`.
    MiB,
    /// 1024 MiB: `GiB`.
    GiB,
    /// Each amount in the largest of `B`, `KiB`, `MiB` and `GiB` that gives at least 1.
    Auto,
}

impl ByteUnits {
    fn resolve(self, amount: i128) -> Self {
        match (self, amount.unsigned_abs()) {
            (Self::Auto, 0..0x400) => Self::B,
            (Self::Auto, 0x400..0x10_0000) => Self::KiB,
            (Self::Auto, 0x10_0000..0x4000_0000) => Self::MiB,
            (Self::Auto, _) => Self::GiB,
            (units, _) => units,
        }
    }
}

/// Appends an amount with its unit: in bytes if `verbose`, otherwise in MiB, called MB.
pub(crate) fn push_amount(to: &mut String, amount: i128, units: Units, verbose: bool) {
    push_amount_in(to, amount, units, if verbose { ByteUnits::B } else { ByteUnits::Mb });
}

/// Appends an amount with its unit.
pub(crate) fn push_amount_in(to: &mut String, amount: i128, units: Units, bytes: ByteUnits) {
    match units {
        Units::Bytes => {
            let (divisor, name) = match bytes.resolve(amount) {
                ByteUnits::Mb => (1 << 20, " MB"),
                ByteUnits::KiB => (1 << 10, " KiB"),
                ByteUnits::MiB => (1 << 20, " MiB"),
                ByteUnits::GiB => (1 << 30, " GiB"),
                ByteUnits::B | ByteUnits::Auto => (1, " B"),
            };
            match divisor {
                1 => push_whole(to, amount),
                divisor => push_scaled(to, amount, divisor, 0),
            }
            to.push_str(name);
        }
        Units::Count | Units::CountCumulative => push_whole(to, amount),
        Units::Percentage => {
            push_scaled(to, amount, 10_000, 2);
            to.push('%');
        }
    }
}

/// Appends the share of `root` that `amount` is, in percent.
pub(crate) fn push_fraction(to: &mut String, amount: i128, root: i128) {
    let ratio = if root == 0 { 1.0 } else { amount as f64 / root as f64 };
    if (0.99995..=1.0).contains(&ratio) {
        to.push_str("100.0%");
    } else {
        push_float(to, ratio, 2, 2);
        to.push('%');
    }
}

/// Appends `amount` in percent of `whole`, with two decimals. `whole` must not be 0.
pub(crate) fn push_ratio(to: &mut String, amount: i128, whole: i128) {
    push_float(to, amount as f64 / whole as f64, 2, 1);
    to.push('%');
}

fn push_whole(to: &mut String, number: i128) {
    if number < 0 {
        to.push('-');
    }
    let mut digits = [0; 40];
    push_grouped(to, decimal(number.unsigned_abs(), &mut digits), 1);
}

/// Appends `number / divisor`, times ten to the power of `shift`, with two decimals.
fn push_scaled(to: &mut String, number: i128, divisor: u32, shift: u32) {
    let magnitude = number.unsigned_abs();
    if magnitude <= EXACT {
        push_float(to, number as f64 / f64::from(divisor), shift as usize, 1);
        return;
    }
    // Sums of 64-bit amounts need far less than 128 bits.
    let divisor = u128::from(divisor);
    let hundredths = magnitude.saturating_mul(100 * 10_u128.pow(shift)).saturating_add(divisor / 2) / divisor;
    if number < 0 {
        to.push('-');
    }
    let mut digits = [0; 40];
    push_hundredths(to, decimal(hundredths, &mut digits), 1);
}

/// Appends `number` times ten to the power of `shift`, with two decimals and at least `min_whole` digits before the
/// decimal point.
fn push_float(to: &mut String, number: f64, shift: usize, min_whole: usize) {
    if number.is_sign_negative() {
        to.push('-');
    }
    let mut shortest = StackBuffer::default();
    // This never fails: 400 bytes hold any f64 without exponent.
    let _ = write!(shortest, "{}", number.abs());
    let text = shortest.bytes();
    let point = text.iter().position(|b| *b == b'.').unwrap_or(text.len());
    let (whole, fraction) = (&text[..point], text.get(point + 1..).unwrap_or(&[]));
    // Keeps up to two digits behind the (shifted) point, and the digit that decides the rounding.
    let kept = shift + 2;
    let mut digits = Vec::with_capacity(whole.len() + kept + 1);
    digits.push(b'0');
    digits.extend_from_slice(whole);
    digits.extend(fraction.iter().copied().chain(core::iter::repeat(b'0')).take(kept));
    if fraction.get(kept).is_some_and(|digit| *digit >= b'5') {
        for digit in digits.iter_mut().rev() {
            if *digit == b'9' {
                *digit = b'0';
            } else {
                *digit += 1;
                break;
            }
        }
    }
    push_hundredths(to, &digits, min_whole);
}

/// Appends digits. The last two are decimals.
fn push_hundredths(to: &mut String, digits: &[u8], min_whole: usize) {
    let (whole, decimals) = digits.split_at(digits.len().saturating_sub(2));
    push_grouped(to, whole, min_whole);
    to.push('.');
    for _ in decimals.len()..2 {
        to.push('0');
    }
    to.extend(decimals.iter().map(|digit| char::from(*digit)));
}

/// Appends digits in groups of three, without leading zeros but with at least `min` digits.
fn push_grouped(to: &mut String, digits: &[u8], min: usize) {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let digits = &digits[zeros..];
    let count = digits.len().max(min);
    for (i, digit) in core::iter::repeat_n(&b'0', count - digits.len()).chain(digits).enumerate() {
        if i > 0 && (count - i).is_multiple_of(3) {
            to.push(',');
        }
        to.push(char::from(*digit));
    }
}

/// Writes the digits of a number into `room`.
fn decimal(mut number: u128, room: &mut [u8; 40]) -> &[u8] {
    let mut start = room.len();
    loop {
        start -= 1;
        room[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &room[start..];
        }
    }
}

/// A buffer for formatted text that needs no allocation.
struct StackBuffer {
    bytes: [u8; 400],
    len: usize,
}

impl StackBuffer {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Default for StackBuffer {
    fn default() -> Self {
        Self { bytes: [0; 400], len: 0 }
    }
}

impl core::fmt::Write for StackBuffer {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(core::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}
