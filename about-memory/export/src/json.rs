//! Writes JSON piece by piece.

use std::io::{self, Write};

use memory_report::json::push_string;

use crate::error::ExportError;

/// The largest whole number up to which doubles are exact. Clients read numbers as doubles.
pub(crate) const MOST: i128 = 1 << 53;

/// The amount, if it is not negative and is exact as a double.
pub(crate) fn exact(format: &'static str, what: &'static str, amount: i128) -> Result<i128, ExportError> {
    if amount > MOST {
        return Err(ExportError::TooLarge(format, what, amount, MOST));
    }
    if amount < 0 {
        return Err(ExportError::Negative(format, what, amount));
    }
    Ok(amount)
}

/// Writes JSON to `out` in pieces.
pub(crate) struct JsonWriter<W: Write> {
    text: String,
    out: W,
}

const PIECE: usize = 1 << 16;

impl<W: Write> JsonWriter<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { text: String::with_capacity(PIECE + 1024), out }
    }

    /// Adds text without escapes.
    pub(crate) fn raw(&mut self, text: &str) -> io::Result<()> {
        self.text.push_str(text);
        if self.text.len() >= PIECE { self.send() } else { Ok(()) }
    }

    /// Adds a string with quotes and escapes.
    pub(crate) fn string(&mut self, text: &str) -> io::Result<()> {
        push_string(&mut self.text, text);
        self.raw("")
    }

    /// Adds a whole number.
    pub(crate) fn number(&mut self, number: i128) -> io::Result<()> {
        match u64::try_from(number) {
            Ok(number) => push_number(&mut self.text, number),
            Err(_) => self.text.push_str(&number.to_string()),
        }
        self.raw("")
    }

    /// Adds an array. `each` writes its elements.
    pub(crate) fn array<T, E: From<io::Error>>(
        &mut self,
        elements: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut Self, T) -> Result<(), E>,
    ) -> Result<(), E> {
        self.raw("[")?;
        for (index, element) in elements.into_iter().enumerate() {
            self.raw(if index == 0 { "" } else { "," })?;
            each(self, element)?;
        }
        self.raw("]")?;
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.send()?;
        self.out.flush()
    }
}

/// Appends a number. Files have tens of millions of numbers, and the standard formatting takes twice as long.
pub(crate) fn push_number(text: &mut String, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend(digits[start..].iter().map(|digit| char::from(*digit)));
}
