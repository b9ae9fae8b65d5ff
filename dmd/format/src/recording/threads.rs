//! The names of threads.

use super::MalformedPayload;
use super::numbers::{self, PayloadReader};

/// The name of a thread. A later chunk may contain another name for the same thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordedThread {
    /// The number of the thread in events chunks, from 1.
    pub number: u32,
    /// The system's number of the thread.
    pub system_id: u32,
    /// The name; empty if it is unknown.
    pub name: Vec<u8>,
}

/// Appends threads to the payload of a chunk. Each thread has varints with its number and the system's number, and
/// then the name after its length.
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
/// Returns an error if the payload ends in the middle of a thread, or if a number has more than 32 bits.
pub fn decode_threads(payload: &[u8]) -> Result<Vec<RecordedThread>, MalformedPayload> {
    let mut payload = PayloadReader::new(payload);
    let mut threads = Vec::new();
    while !payload.is_empty() {
        let (number, system_id) = (payload.small_number()?, payload.small_number()?);
        threads.push(RecordedThread { number, system_id, name: payload.counted_bytes()?.to_vec() });
    }
    Ok(threads)
}
