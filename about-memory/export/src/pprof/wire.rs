//! The encoding of protocol buffers: numbers, and messages as their length and bytes.

/// A message to write.
#[derive(Debug, Default)]
pub(super) struct WireMessage(pub(super) Vec<u8>);

impl WireMessage {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Adds a number. A number 0 is left out, because readers use 0 for missing numbers.
    pub(super) fn number(&mut self, field: u32, number: u64) {
        if number != 0 {
            self.varint(u64::from(field << 3));
            self.varint(number);
        }
    }

    /// Adds a number that may be negative.
    pub(super) fn signed(&mut self, field: u32, number: i64) {
        self.number(field, number as u64);
    }

    /// Adds bytes, a text or a message.
    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field << 3 | 2));
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Adds many numbers. `room` is scratch space.
    pub(super) fn numbers(&mut self, field: u32, numbers: impl Iterator<Item = u64>, room: &mut Self) {
        room.clear();
        numbers.for_each(|number| room.varint(number));
        if !room.0.is_empty() {
            self.bytes(field, &room.0);
        }
    }
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum WireField<'b> {
    Number(u64),
    Bytes(&'b [u8]),
    /// A number of fixed length. No field of a profile has this type.
    Fixed,
}

/// Reads the fields of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireFields<'b> {
    bytes: &'b [u8],
    /// The position of `bytes` in the whole profile.
    at: u64,
}

/// The position of the fault, and the reason.
pub(super) type WireFault = (u64, &'static str);

impl<'b> WireFields<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn varint(&mut self) -> Result<u64, WireFault> {
        let mut number = 0;
        for (place, byte) in self.bytes.iter().enumerate().take(10) {
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.skip(place + 1);
                return Ok(number);
            }
        }
        Err((self.at, "a number without an end"))
    }

    fn skip(&mut self, bytes: usize) {
        self.bytes = &self.bytes[bytes..];
        self.at += bytes as u64;
    }

    fn take(&mut self, bytes: u64) -> Result<&'b [u8], WireFault> {
        let length = usize::try_from(bytes).ok().filter(|length| *length <= self.bytes.len());
        let Some(length) = length else { return Err((self.at, "a field beyond the end")) };
        let (taken, _) = self.bytes.split_at(length);
        self.skip(length);
        Ok(taken)
    }

    /// The next field, with its field number.
    pub(super) fn next(&mut self) -> Result<Option<(u32, WireField<'b>)>, WireFault> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let start = self.at;
        let key = self.varint()?;
        let field = match key & 7 {
            0 => WireField::Number(self.varint()?),
            1 => self.take(8).map(|_| WireField::Fixed)?,
            2 => {
                let length = self.varint()?;
                WireField::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| WireField::Fixed)?,
            _ => return Err((start, "a field of an unknown type")),
        };
        match u32::try_from(key >> 3) {
            Ok(number) if number > 0 => Ok(Some((number, field))),
            _ => Err((start, "a field without a number")),
        }
    }

    /// The position of the next field.
    pub(super) fn at(&self) -> u64 {
        self.at
    }
}

impl<'b> WireField<'b> {
    /// The fields of a nested message. `end` is the position after it.
    pub(super) fn message(self, end: u64) -> Result<WireFields<'b>, WireFault> {
        match self {
            Self::Bytes(bytes) => Ok(WireFields { bytes, at: end - bytes.len() as u64 }),
            _ => Err((end, "a number in place of a message")),
        }
    }

    pub(super) fn number(self, end: u64) -> Result<u64, WireFault> {
        match self {
            Self::Number(number) => Ok(number),
            _ => Err((end, "bytes in place of a number")),
        }
    }

    /// Calls `each` with one number, or with each number of a packed field.
    pub(super) fn each_number<E: From<WireFault>>(
        self,
        end: u64,
        mut each: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Number(number) => each(number),
            _ => {
                let mut packed = self.message(end)?;
                while !packed.bytes.is_empty() {
                    each(packed.varint()?)?;
                }
                Ok(())
            }
        }
    }
}
