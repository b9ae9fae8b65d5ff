//! Reads DWARF bytes with bounds checks. Each read outside of the bytes returns `None`. So a corrupted section only
//! ends a walk.

/// Bytes, with the real or assumed address at which they are mapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteSpan<'a> {
    pub(crate) address: usize,
    pub(crate) bytes: &'a [u8],
}

impl<'a> ByteSpan<'a> {
    /// A reader that starts at `address`; `None` if that is outside of the span.
    pub(crate) fn reader_at(&self, address: usize) -> Option<ByteReader<'a>> {
        let at = address.wrapping_sub(self.address);
        (at <= self.bytes.len()).then_some(ByteReader { span: *self, at })
    }
}

/// A position in a [`ByteSpan`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteReader<'a> {
    span: ByteSpan<'a>,
    at: usize,
}

impl<'a> ByteReader<'a> {
    /// The offset of the next byte in the span.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn address(&self) -> usize {
        self.span.address.wrapping_add(self.at)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.span.bytes.len()
    }

    /// Sets the position. If it is past the end, all reads return `None`.
    pub(crate) fn seek(&mut self, position: usize) {
        self.at = position;
    }

    /// Skips the next `len` bytes and returns them as a separate reader.
    pub(crate) fn split(&mut self, len: usize) -> Option<ByteReader<'a>> {
        let end = self.at.checked_add(len)?;
        let bytes = self.span.bytes.get(..end)?;
        let part = ByteReader { span: ByteSpan { address: self.span.address, bytes }, at: self.at };
        self.at = end;
        Some(part)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let end = self.at.checked_add(N)?;
        let bytes = self.span.bytes.get(self.at..end)?;
        self.at = end;
        bytes.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_ne_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_ne_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    /// Reads an unsigned LEB128 number; bits above 64 are dropped.
    pub(crate) fn uleb(&mut self) -> Option<u64> {
        let mut value = 0u64;
        let mut shift = 0u32;
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift = shift.saturating_add(7);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    /// Reads a signed LEB128 number; bits above 64 are dropped.
    pub(crate) fn sleb(&mut self) -> Option<i64> {
        let mut value = 0i64;
        let mut shift = 0u32;
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= i64::from(byte & 0x7f) << shift;
            }
            shift = shift.saturating_add(7);
            if byte & 0x80 == 0 {
                if shift < 64 && byte & 0x40 != 0 {
                    value |= -1i64 << shift;
                }
                return Some(value);
            }
        }
    }

    /// Reads the bytes up to a zero byte, and skips the zero byte.
    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let rest = self.span.bytes.get(self.at..)?;
        let len = rest.iter().position(|&byte| byte == 0)?;
        self.at += len + 1;
        rest.get(..len)
    }

    /// Reads a pointer in one of the `DW_EH_PE` encodings. `data` is the base of data-relative pointers (the address
    /// of `.eh_frame_hdr`). For an indirect pointer, the result is the address at which the target's address is
    /// stored: only pointers to personality routines are indirect, and the walker skips these.
    pub(crate) fn pointer(&mut self, encoding: u8, data: usize) -> Option<usize> {
        if encoding == encoding::ALIGNED {
            let padding = self.address().wrapping_neg() % size_of::<usize>();
            self.split(padding)?;
            return self.u64().map(|value| value as usize);
        }
        let base = match encoding & 0x70 {
            encoding::ABSOLUTE => 0,
            encoding::PC_RELATIVE => self.address(),
            encoding::DATA_RELATIVE => data,
            _ => return None,
        };
        let value = match encoding & 0x0f {
            encoding::ABSOLUTE | encoding::U64 | encoding::S64 => self.u64()? as usize,
            encoding::ULEB => self.uleb()? as usize,
            encoding::U16 => usize::from(self.u16()?),
            encoding::U32 => self.u32()? as usize,
            encoding::SLEB => self.sleb()? as usize,
            encoding::S16 => self.u16()? as i16 as usize,
            encoding::S32 => self.u32()? as i32 as usize,
            _ => return None,
        };
        Some(base.wrapping_add(value))
    }
}

/// The `DW_EH_PE` constants.
pub(crate) mod encoding {
    pub(crate) const ABSOLUTE: u8 = 0x00;
    pub(crate) const ULEB: u8 = 0x01;
    pub(crate) const U16: u8 = 0x02;
    pub(crate) const U32: u8 = 0x03;
    pub(crate) const U64: u8 = 0x04;
    pub(crate) const SLEB: u8 = 0x09;
    pub(crate) const S16: u8 = 0x0a;
    pub(crate) const S32: u8 = 0x0b;
    pub(crate) const S64: u8 = 0x0c;
    pub(crate) const PC_RELATIVE: u8 = 0x10;
    pub(crate) const DATA_RELATIVE: u8 = 0x30;
    pub(crate) const ALIGNED: u8 = 0x50;
    pub(crate) const OMITTED: u8 = 0xff;
}
