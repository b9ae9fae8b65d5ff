//! Keys of traces and frames. Each key has a number, in the order of first use.

use std::borrow::Cow;
use std::collections::HashMap;

/// Marks a key without a number.
const NONE: u32 = u32::MAX;

/// The maximum length of `numbers`. A key that spells a larger number goes into `short` or `long`, so that one key
/// cannot take much memory.
const MAX_NUMBER: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct DumpKeys {
    /// For keys in DMD's base 32: the number of the key, by the value that the key spells; [`NONE`] for a value without
    /// a key.
    numbers: Vec<u32>,
    /// Other keys of up to seven bytes, by their bytes and length. The author of the file chooses these keys, so the
    /// map's hashes are random.
    short: HashMap<u64, u32>,
    long: HashMap<Box<str>, u32>,
    /// The place of the first use of each key.
    places: Vec<KeyUse>,
}

/// A place that uses a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyUse {
    /// `blockList[].alloc`
    Alloc(u32),
    /// `blockList[].reps[]`
    Reps(u32, u8),
    /// `peak.stacks[].alloc`
    Peak(u32),
    /// `mappings.list[].alloc`
    Mapping(u32),
    /// `traceTable[][]`, by the number of the trace's key and the frame's index.
    Frame(u32, u32),
    /// `traceTable` or `frameTable`: the key of an entry.
    Table,
}

impl DumpKeys {
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The number of a key. A new key gets the next number.
    #[inline]
    pub(crate) fn number(&mut self, key: &str, place: impl FnOnce() -> KeyUse) -> u32 {
        let next = self.places.len() as u32;
        let base32 = base32(key);
        if let Some(known) = base32.and_then(|number| self.numbers.get(number))
            && *known != NONE
        {
            return *known;
        }
        let number = match (base32, pack(key)) {
            (Some(number), _) => {
                if number >= self.numbers.len() {
                    self.numbers.resize(number + 1, NONE);
                }
                self.numbers[number] = next;
                next
            }
            (_, Some(packed)) => *self.short.entry(packed).or_insert(next),
            (_, None) => match self.long.get(key) {
                Some(number) => *number,
                None => *self.long.entry(key.into()).or_insert(next),
            },
        };
        if number == next {
            self.places.push(place());
        }
        number
    }

    pub(crate) fn place(&self, number: u32) -> KeyUse {
        self.places[number as usize]
    }

    /// The key with a number. Slow; only for messages.
    pub(crate) fn key(&self, number: u32) -> Cow<'_, str> {
        if let Some(mut base32) = self.numbers.iter().position(|known| *known == number) {
            let mut key = Vec::new();
            loop {
                key.insert(0, DIGITS[base32 % 32]);
                base32 /= 32;
                if base32 == 0 {
                    return String::from_utf8_lossy(&key).into_owned().into();
                }
            }
        }
        let short = self.short.iter().find(|(_, n)| **n == number).map(|(packed, _)| *packed);
        if let Some(packed) = short {
            let bytes = packed.to_le_bytes();
            let len = usize::from(bytes[7]).min(7);
            return String::from_utf8_lossy(&bytes[..len]).into_owned().into();
        }
        let long = self.long.iter().find(|(_, n)| **n == number);
        long.map_or("".into(), |(key, _)| Cow::Borrowed(&**key))
    }
}

const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef";

/// The number that a key spells in DMD's base 32; `None` if the key spells no number below [`MAX_NUMBER`], or if DMD
/// writes the number differently.
#[inline]
fn base32(key: &str) -> Option<usize> {
    let (first, rest) = key.as_bytes().split_first()?;
    if rest.len() > 3 || (*first == b'A' && !rest.is_empty()) {
        return None;
    }
    let mut number = 0;
    for byte in key.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'f' => byte - b'a' + 26,
            _ => return None,
        };
        number = number * 32 + usize::from(digit);
    }
    (number < MAX_NUMBER).then_some(number)
}

#[inline]
fn pack(key: &str) -> Option<u64> {
    let len = key.len();
    if len > 7 {
        return None;
    }
    let mut bytes = [0; 8];
    bytes[..len].copy_from_slice(key.as_bytes());
    bytes[7] = len as u8;
    Some(u64::from_le_bytes(bytes))
}
