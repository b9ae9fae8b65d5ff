//! Chunks that describe the process, the clock, watermarks, and the end.
//!
//! Each payload is a list of fields. A field is a varint with its number, a varint with its length, and its bytes. The
//! bytes of a number are one varint. Readers skip unknown fields, and a missing field is 0 or empty.

use super::MalformedPayload;
use super::numbers::{self, PayloadReader};

/// The process, and how it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RecordedProcess {
    /// Field 1: the number of the process.
    pub process: u64,
    /// Field 2: the number of the parent process if the `live` chunks contain the parent's blocks, after a fork;
    /// otherwise 0.
    pub forked_from: u64,
    /// Field 3: the start of the recording, in nanoseconds since 1970 in UTC.
    pub wall_time: u64,
    /// Field 4: the tick at the start of the recording.
    pub tick: u64,
    /// Field 5: the approximate length of a tick in picoseconds.
    pub tick_picoseconds: u64,
    /// Field 6: the size of a page of memory, in bytes.
    pub page_size: u64,
    /// Field 7: the maximum number of frames of a stack that a reader shows.
    pub max_frames: u64,
    /// Field 8: the name of DMD's [`Mode`](crate::Mode).
    pub mode: Vec<u8>,
    /// Field 9: the value of `$DMD`; empty if the program chose the options.
    pub options: Vec<u8>,
    /// Field 10, once for each word: the program and its arguments.
    pub command: Vec<Vec<u8>>,
    /// Field 11: 1 if the recording started while the program ran, so that earlier blocks are missing; otherwise 0.
    pub began_late: u64,
}

/// A tick and its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ClockReading {
    /// Field 1: the tick.
    pub tick: u64,
    /// Field 2: nanoseconds since the start of the recording.
    pub nanoseconds: u64,
}

/// A tick before which all events are in earlier chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Watermark {
    /// Field 1: the tick.
    pub tick: u64,
}

/// The end of a recording, with the counts of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RecordingEnd {
    /// Field 1: the tick of the end.
    pub tick: u64,
    /// Field 2: nanoseconds since the start of the recording.
    pub nanoseconds: u64,
    /// Field 3: the number of new blocks, without blocks that a move made.
    pub allocations: u64,
    /// Field 4: the number of freed blocks.
    pub frees: u64,
    /// Field 5: the number of started moves.
    pub reallocations: u64,
    /// Field 6: the number of blocks that a thread freed or moved before it allocated another block.
    pub temporary: u64,
    /// Field 7: the number of blocks that the engine did not record.
    pub dropped_blocks: u64,
    /// Field 8: the number of events that are missing in the file.
    pub lost_events: u64,
    /// Field 9: the peak of usable bytes, as the engine counted it; requested bytes in older files.
    pub peak_bytes: u64,
    /// Field 10: the maximum difference between the true peak and `peak_bytes`, in bytes. The true peak may be higher
    /// or lower, since threads count their freed blocks later.
    pub peak_within: u64,
}

fn push_number(payload: &mut Vec<u8>, field: u64, number: u64) {
    let mut bytes = Vec::with_capacity(numbers::MOST);
    numbers::push(&mut bytes, number);
    push_bytes(payload, field, &bytes);
}

fn push_bytes(payload: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    numbers::push(payload, field);
    numbers::push_bytes(payload, bytes);
}

fn for_each_field<'a>(
    payload: &'a [u8],
    mut each: impl FnMut(u64, &'a [u8]),
) -> Result<(), MalformedPayload> {
    let mut payload = PayloadReader::new(payload);
    while !payload.is_empty() {
        let field = payload.number()?;
        each(field, payload.counted_bytes()?);
    }
    Ok(())
}

/// Decodes fields that are all numbers. `place` returns the struct's field for a field number.
fn decode_numbers<T: Default>(
    payload: &[u8],
    place: impl Fn(&mut T, u64) -> Option<&mut u64>,
) -> Result<T, MalformedPayload> {
    let mut fact = T::default();
    for_each_field(payload, |field, bytes| {
        if let (Some(place), Ok(number)) = (place(&mut fact, field), PayloadReader::new(bytes).number()) {
            *place = number;
        }
    })?;
    Ok(fact)
}

impl RecordedProcess {
    /// A value in which all numbers are 0 and all texts are empty.
    pub fn new() -> Self {
        Self::default()
    }

    fn number(&mut self, field: u64) -> Option<&mut u64> {
        Some(match field {
            1 => &mut self.process,
            2 => &mut self.forked_from,
            3 => &mut self.wall_time,
            4 => &mut self.tick,
            5 => &mut self.tick_picoseconds,
            6 => &mut self.page_size,
            7 => &mut self.max_frames,
            11 => &mut self.began_late,
            _ => return None,
        })
    }

    /// Encodes the payload of a chunk.
    pub fn encode(&self) -> Vec<u8> {
        let (mut payload, mut copy) = (Vec::new(), self.clone());
        for field in 1..=7 {
            if let Some(number) = copy.number(field) {
                push_number(&mut payload, field, *number);
            }
        }
        push_bytes(&mut payload, 8, &self.mode);
        push_bytes(&mut payload, 9, &self.options);
        for argument in &self.command {
            push_bytes(&mut payload, 10, argument);
        }
        if self.began_late != 0 {
            push_number(&mut payload, 11, self.began_late);
        }
        payload
    }

    /// Decodes an about chunk's payload.
    ///
    /// # Errors
    ///
    /// Returns an error if the payload is not a list of fields.
    pub fn decode(payload: &[u8]) -> Result<Self, MalformedPayload> {
        let mut about = decode_numbers(payload, Self::number)?;
        for_each_field(payload, |field, bytes| match field {
            8 => about.mode = bytes.to_vec(),
            9 => about.options = bytes.to_vec(),
            10 => about.command.push(bytes.to_vec()),
            _ => {}
        })?;
        Ok(about)
    }
}

macro_rules! of_numbers {
    ($name:ident, $($field:literal $member:ident),*) => {
        impl $name {
            /// A value in which all numbers are 0.
            pub fn new() -> Self {
                Self::default()
            }

            fn number(&mut self, field: u64) -> Option<&mut u64> {
                Some(match field {
                    $($field => &mut self.$member,)*
                    _ => return None,
                })
            }

            /// Encodes the payload of a chunk.
            pub fn encode(&self) -> Vec<u8> {
                let mut payload = Vec::new();
                $(push_number(&mut payload, $field, self.$member);)*
                payload
            }

            /// Decodes the payload of a chunk of this kind.
            ///
            /// # Errors
            ///
            /// Returns an error if the payload is not a list of fields.
            pub fn decode(payload: &[u8]) -> Result<Self, MalformedPayload> {
                decode_numbers(payload, Self::number)
            }
        }
    };
}

of_numbers!(ClockReading, 1 tick, 2 nanoseconds);
of_numbers!(Watermark, 1 tick);
of_numbers!(
    RecordingEnd,
    1 tick,
    2 nanoseconds,
    3 allocations,
    4 frees,
    5 reallocations,
    6 temporary,
    7 dropped_blocks,
    8 lost_events,
    9 peak_bytes,
    10 peak_within
);
