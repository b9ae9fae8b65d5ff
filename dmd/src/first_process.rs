//! The words behind the user's own in `$DMD`. By them all processes of a run know the first one, which gets the
//! plain name of a dump, and the folder in which it started.
//!
//! `--first-process=NUMBER NAMESPACE FOLDER`, where FOLDER extends to the end of the variable. Both numbers have a
//! fixed number of digits and are 0 before there is a first process. The first process writes its own in place, so
//! that its environment stays as the kernel laid it out.

use core::ffi::CStr;
use std::ffi::OsString;
use std::path::Path;

const WORD: &str = " --first-process=";
const DIGITS: usize = 10;

/// The content of the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct First {
    /// 0 if the first process is this one.
    pub(crate) process: u32,
    /// The namespace of that number.
    pub(crate) namespace: u32,
    /// Empty if it is not known.
    pub(crate) folder: &'static CStr,
    /// Offset of the digits in the variable's value.
    pub(crate) digits_at: usize,
}

/// The digits of both numbers.
pub(crate) type Digits = [u8; 2 * DIGITS + 1];

/// The words for `$DMD` that tell a process which is about to start that it is the first of a run, and to which
/// folder names of dumps are relative. They come after all other words.
#[doc(hidden)]
pub fn words_for_first_process(folder: &Path) -> OsString {
    let mut words = OsString::from(format!("{WORD}{} ", String::from_utf8_lossy(&digits(0, 0))));
    words.push(folder);
    words
}

pub(crate) fn digits(process: u32, namespace: u32) -> Digits {
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

/// The value of `$DMD` as the user wrote it, and our words, if there are any.
pub(crate) fn split(variable: &'static CStr) -> (&'static [u8], Option<First>) {
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
        let folder_at = at + WORD.len() + size_of::<Digits>() + 1;
        Some(First {
            process: number(0)?,
            namespace: number(DIGITS + 1)?,
            folder: CStr::from_bytes_with_nul(variable.to_bytes_with_nul().get(folder_at..)?).ok()?,
            digits_at: at + WORD.len(),
        })
    };
    (users, first())
}
