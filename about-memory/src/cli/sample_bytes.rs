//! Parses the mean number of allocated bytes from one sampled block to the next, such as `512KiB`.

/// The size that `run --sample` without a number and `track` use. It is cheap enough for production.
pub(crate) const DEFAULT: &str = "512KiB";

/// Parses a number of bytes, with or without a unit. The number must be at least 1 byte and at most 1 TiB.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("B", 0)];
    let unit = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    let bytes = digits.trim_end().parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes
        .filter(|bytes| (1..=1 << 40).contains(bytes))
        .ok_or_else(|| "must be a number of bytes from 1 to 1024GiB, such as 512KiB".to_owned())
}
