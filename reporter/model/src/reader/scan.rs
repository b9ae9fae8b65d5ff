//! Scans JSON tokens (RFC 8259) in text that may continue beyond the window.
//!
//! `serde_json` is not suitable: it cannot stop inside a value and continue later. It also rejects the whole document
//! for a number such as `1e400`, although only one report contains it.

use std::borrow::Cow;

const MAX_DEPTH: u32 = 128;

/// The reason why a token could not be taken.
#[derive(Debug)]
pub enum ScanStop {
    /// The window ends here; the document may continue.
    More,
    /// The text at this offset is not the expected text. The second field names the expected text.
    Expected(usize, &'static str),
    /// The value at this offset is nested too deeply.
    TooDeep(usize),
}

/// A cursor over text.
#[derive(Debug)]
pub struct TextScan<'t> {
    text: &'t str,
    at: usize,
    /// Whether the document ends with this text.
    last: bool,
}

impl<'t> TextScan<'t> {
    /// A cursor at the start of `text`. `last` is whether the document ends with this text.
    #[inline]
    pub fn new(text: &'t str, last: bool) -> Self {
        Self { text, at: 0, last }
    }

    /// The offset of the cursor, in bytes.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The text between the offset `start` and the cursor.
    #[inline]
    pub fn since(&self, start: usize) -> &'t str {
        &self.text[start..self.at]
    }

    /// The error "expected `what`" at the cursor.
    pub fn expected<T>(&self, what: &'static str) -> Result<T, ScanStop> {
        Err(ScanStop::Expected(self.at, what))
    }

    /// Runs `take`. Moves the cursor back if `take` fails or needs more text.
    pub fn whole<T>(&mut self, take: impl FnOnce(&mut Self) -> Result<T, ScanStop>) -> Result<T, ScanStop> {
        let start = self.at;
        take(self).inspect_err(|_| self.at = start)
    }

    /// Takes a line with its line feed; the last line of a document may have none. `None` at the end of the document.
    ///
    /// # Errors
    ///
    /// Returns [`ScanStop::More`] if the window ends before the line does.
    pub fn line(&mut self) -> Result<Option<&'t str>, ScanStop> {
        let rest = &self.text[self.at..];
        let taken = match rest.find('\n') {
            Some(end) => end + 1,
            None if !self.last => return Err(ScanStop::More),
            None => rest.len(),
        };
        self.at += taken;
        Ok(Some(&rest[..taken]).filter(|line| !line.is_empty()))
    }

    /// Moves the cursor to the next byte that is not a blank, and returns that byte.
    #[inline]
    pub fn peek(&mut self) -> Result<u8, ScanStop> {
        let rest = &self.text.as_bytes()[self.at..];
        let blanks = rest.iter().take_while(|b| matches!(b, b' ' | b'\n' | b'\r' | b'\t')).count();
        self.at += blanks;
        rest.get(blanks).copied().ok_or(ScanStop::More)
    }

    /// Skips blanks. Returns whether the document ends there.
    pub fn at_end(&mut self) -> Result<bool, ScanStop> {
        match self.peek() {
            Ok(_) => Ok(false),
            Err(ScanStop::More) if self.last => Ok(true),
            Err(stop) => Err(stop),
        }
    }

    /// Skips blanks, and then `byte` if it is next. Returns whether it skipped `byte`.
    #[inline]
    pub fn eat(&mut self, byte: u8) -> Result<bool, ScanStop> {
        let found = self.peek()? == byte;
        self.at += usize::from(found);
        Ok(found)
    }

    /// Skips blanks and then `byte`. Fails if `byte` is not next; `what` names it in the error.
    #[inline]
    pub fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), ScanStop> {
        if self.eat(byte)? { Ok(()) } else { self.expected(what) }
    }

    /// Takes a string: borrowed if it contains no escapes. A lone surrogate becomes U+FFFD.
    #[inline]
    pub fn string(&mut self) -> Result<Cow<'t, str>, ScanStop> {
        self.expect(b'"', "a string")?;
        let start = self.at;
        let end = self.plain()?;
        if self.text.as_bytes()[end] == b'"' {
            self.at = end + 1;
            return Ok(Cow::Borrowed(&self.text[start..end]));
        }
        let mut string = String::new();
        let mut from = start;
        loop {
            let end = self.plain()?;
            string.push_str(&self.text[from..end]);
            self.at = end + 1;
            if self.text.as_bytes()[end] == b'"' {
                return Ok(Cow::Owned(string));
            }
            string.push(self.escape()?);
            from = self.at;
        }
    }

    /// The offset of the next quote or backslash.
    #[inline]
    fn plain(&mut self) -> Result<usize, ScanStop> {
        let rest = &self.text.as_bytes()[self.at..];
        match special(rest) {
            None => Err(ScanStop::More),
            Some(n) if rest[n] < b' ' => {
                Err(ScanStop::Expected(self.at + n, "no control character in a string"))
            }
            Some(n) => Ok(self.at + n),
        }
    }

    /// Takes the characters after a backslash, and returns the character that they mean.
    fn escape(&mut self) -> Result<char, ScanStop> {
        let byte = *self.text.as_bytes().get(self.at).ok_or(ScanStop::More)?;
        let plain = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return self.expected("an escape"),
        };
        self.at += 1;
        Ok(plain)
    }

    fn unicode_escape(&mut self) -> Result<char, ScanStop> {
        let unit = self.hex(self.at + 1)?;
        self.at += 5;
        if !(0xd800..0xdc00).contains(&unit) {
            return Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let ahead = &self.text.as_bytes()[self.at..];
        if ahead.len() < 2 && !self.last && b"\\u".starts_with(ahead) {
            return Err(ScanStop::More);
        }
        if ahead.starts_with(b"\\u") {
            let low = self.hex(self.at + 2)?;
            if (0xdc00..0xe000).contains(&low) {
                self.at += 6;
                let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex(&self, at: usize) -> Result<u32, ScanStop> {
        let Some(digits) = self.text.as_bytes().get(at..at + 4) else { return Err(ScanStop::More) };
        let digit = |n, &byte: &u8| Some(n * 16 + char::from(byte).to_digit(16)?);
        digits.iter().try_fold(0, digit).ok_or(ScanStop::Expected(at, "four hexadecimal digits"))
    }

    /// Takes a number, `true`, `false` or `null`, as written.
    #[inline]
    pub fn scalar(&mut self) -> Result<&'t str, ScanStop> {
        let first = self.peek()?;
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let len = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)).count();
        if len == rest.len() && !self.last {
            return Err(ScanStop::More);
        }
        let token = &self.text[start..start + len];
        let good = match first {
            b't' => token == "true",
            b'f' => token == "false",
            b'n' => token == "null",
            _ => is_number(token.as_bytes()),
        };
        if !good {
            return self.expected("a JSON value");
        }
        self.at += len;
        Ok(token)
    }

    /// Skips one value of any type at this depth in the document.
    pub fn skip(&mut self, depth: u32) -> Result<(), ScanStop> {
        let mut skip = ValueSkip::new(depth);
        skip.run(self)
    }
}

/// The offset of the first quote, backslash or control character. Examines eight bytes at a time.
#[inline]
fn special(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // Sets the high bit of each byte below `n`. The bits after the first byte below `n` may be wrong.
    let below = |word: u64, n: u8| word.wrapping_sub(ONES * u64::from(n)) & !word & HIGH;
    let equal = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let (words, rest) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = equal(word, b'"') | equal(word, b'\\') | below(word, b' ');
        if found != 0 {
            return Some(i * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let found = rest.iter().position(|&b| b == b'"' || b == b'\\' || b < b' ')?;
    Some(words.len() * 8 + found)
}

#[inline]
fn is_number(token: &[u8]) -> bool {
    let digits = |from: &[u8]| from.iter().take_while(|b| b.is_ascii_digit()).count();
    let rest = token.strip_prefix(b"-").unwrap_or(token);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let n = digits(fraction);
        if n == 0 {
            return false;
        }
        rest = &fraction[n..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let n = digits(exponent);
        return n > 0 && n == exponent.len();
    }
    rest.is_empty()
}

/// Skips one value without keeping it. It can stop between any two tokens and resume there.
#[derive(Debug)]
pub struct ValueSkip {
    base: u32,
    depth: u32,
    /// One bit for each open level, the innermost in the lowest bit: 1 for an object, 0 for an array.
    objects: u128,
    next: NextToken,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum NextToken {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
}

impl ValueSkip {
    /// A skip that starts before a value at this depth in the document.
    #[inline]
    pub fn new(depth: u32) -> Self {
        Self { base: depth, depth: 0, objects: 0, next: NextToken::Value }
    }

    /// Continues the skip. When it needs more text, it does not need the text before the cursor again.
    pub fn run(&mut self, scan: &mut TextScan<'_>) -> Result<(), ScanStop> {
        while !self.step(scan)? {}
        Ok(())
    }

    /// Skips one token. Returns whether the value is complete.
    fn step(&mut self, scan: &mut TextScan<'_>) -> Result<bool, ScanStop> {
        let byte = scan.peek()?;
        let object = self.objects & 1 == 1;
        let start = scan.at;
        self.next = match (self.next, byte) {
            (NextToken::ValueOrEnd, b']') | (NextToken::KeyOrEnd, b'}') => return Ok(self.close(scan)),
            (NextToken::CommaOrEnd, b']') if !object => return Ok(self.close(scan)),
            (NextToken::CommaOrEnd, b'}') if object => return Ok(self.close(scan)),
            (NextToken::CommaOrEnd, b',') => {
                scan.at += 1;
                if object { NextToken::Key } else { NextToken::Value }
            }
            (NextToken::Colon, b':') => {
                scan.at += 1;
                NextToken::Value
            }
            (NextToken::Key | NextToken::KeyOrEnd, b'"') => {
                self.string(scan, start)?;
                NextToken::Colon
            }
            (NextToken::Value | NextToken::ValueOrEnd, b'[' | b'{') => {
                if self.base + self.depth >= MAX_DEPTH {
                    return Err(ScanStop::TooDeep(scan.at));
                }
                self.depth += 1;
                self.objects = self.objects << 1 | u128::from(byte == b'{');
                scan.at += 1;
                if byte == b'{' { NextToken::KeyOrEnd } else { NextToken::ValueOrEnd }
            }
            (NextToken::Value | NextToken::ValueOrEnd, b'"') => {
                self.string(scan, start)?;
                return Ok(self.ended());
            }
            (NextToken::Value | NextToken::ValueOrEnd, _) => {
                scan.scalar()?;
                return Ok(self.ended());
            }
            (NextToken::Key | NextToken::KeyOrEnd, _) => return scan.expected("a string"),
            (NextToken::Colon, _) => return scan.expected("`:`"),
            (NextToken::CommaOrEnd, _) => return scan.expected("`,` or the end of the list"),
        };
        Ok(false)
    }

    /// Moves the cursor back to the start of an unfinished string, so that the string is scanned again.
    #[inline]
    fn string(&self, scan: &mut TextScan<'_>, start: usize) -> Result<(), ScanStop> {
        scan.string().map(drop).inspect_err(|_| scan.at = start)
    }

    fn close(&mut self, scan: &mut TextScan<'_>) -> bool {
        scan.at += 1;
        self.depth -= 1;
        self.objects >>= 1;
        self.ended()
    }

    fn ended(&mut self) -> bool {
        self.next = NextToken::CommaOrEnd;
        self.depth == 0
    }
}
