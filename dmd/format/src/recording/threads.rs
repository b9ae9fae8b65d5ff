//! The names of threads.

use super::MalformedPayload;
use super::numbers::{self, PayloadReader};

/// A thread. A later chunk may have another name for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordedThread {
    /// The number that events chunks have, from 1.
    pub number: u32,
    /// The system's number.
    pub system_id: u32,
    /// The name; empty if it is not known.
    pub name: Vec<u8>,
}

/// Adds threads to the payload of a chunk: for each, varints with number and system's number, then the name after
/// its length.
pub fn encode_threads<'a>(payload: &mut Vec<u8>, threads: impl IntoIterator<Item = &'a RecordedThread>) {
    for thread in threads {
        numbers::push(payload, thread.number.into());
        numbers::push(payload, thread.system_id.into());
        numbers::push_bytes(payload, &thread.name);
    }
}

/// Decodes a threads chunk's payload.
///
/// # Errors
///
/// If the payload is not that of a threads chunk.
pub fn decode_threads(payload: &[u8]) -> Result<Vec<RecordedThread>, MalformedPayload> {
    let mut payload = PayloadReader::new(payload);
    let mut threads = Vec::new();
    while !payload.is_empty() {
        let (number, system_id) = (payload.small_number()?, payload.small_number()?);
        threads.push(RecordedThread { number, system_id, name: payload.counted_bytes()?.to_vec() });
    }
    Ok(threads)
}
