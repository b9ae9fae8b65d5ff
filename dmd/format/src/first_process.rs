//! A suffix of `$DMD` that identifies the first process of a run for all processes of the run. The first process gets
//! the plain name of a dump. Relative names are relative to the folder in which the first process started.
//!
//! The suffix is ` --first-process=NUMBER NAMESPACE FOLDER`. FOLDER extends to the end of the variable. Both numbers
//! have a fixed number of digits, and are 0 before the first process starts. The first process overwrites the digits
//! with its own numbers, so that the layout of its environment does not change.

use core::ffi::CStr;
use std::ffi::OsString;
use std::path::Path;

const WORD: &str = " --first-process=";
const DIGITS: usize = 10;

/// The contents of the suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstProcess {
    /// The number of the first process; 0 if the current process is the first one.
    pub process: u32,
    /// The namespace of that number.
    pub namespace: u32,
    /// The folder in which the first process started; empty if it is unknown.
    pub folder: &'static CStr,
    /// The offset of the digits in the variable's value.
    pub digits_at: usize,
}

/// The digits of both numbers, with a space between them.
pub type ProcessDigits = [u8; 2 * DIGITS + 1];

/// The suffix for a process that is about to start as the first process of a run. Relative names of dumps are relative
/// to `folder`. The suffix must be the end of `$DMD`.
pub fn suffix(folder: &Path) -> OsString {
    let mut suffix = OsString::from(format!("{WORD}{} ", String::from_utf8_lossy(&digits(0, 0))));
    suffix.push(folder);
    suffix
}

/// Formats the digits of a process: its number and the namespace of the number.
pub fn digits(process: u32, namespace: u32) -> ProcessDigits {
    let mut digits = [b' '; 2 * DIGITS + 1];
    for (number, end) in [(process, DIGITS), (namespace, digits.len())] {
        let mut left = number;
        for digit in digits[end - DIGITS..end].iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
    }
    digits
}

/// Splits the value of `$DMD` into the user's text and the contents of the suffix. The second part is `None` if there
/// is no valid suffix.
pub fn split(variable: &'static CStr) -> (&'static [u8], Option<FirstProcess>) {
    let all = variable.to_bytes();
    let Some(at) = all.windows(WORD.len()).position(|words| words == WORD.as_bytes()) else {
        return (all, None);
    };
    let (users, ours) = (&all[..at], &all[at + WORD.len()..]);
    let number = |from: usize| {
        let digits = ours.get(from..from + DIGITS)?;
        let valid = digits.iter().all(u8::is_ascii_digit);
        core::str::from_utf8(digits).ok().filter(|_| valid)?.parse().ok()
    };
    let first = || {
        let folder_at = at + WORD.len() + size_of::<ProcessDigits>() + 1;
        Some(FirstProcess {
            process: number(0)?,
            namespace: number(DIGITS + 1)?,
            folder: CStr::from_bytes_with_nul(variable.to_bytes_with_nul().get(folder_at..)?).ok()?,
            digits_at: at + WORD.len(),
        })
    };
    (users, first())
}
