//! The executable and the libraries that were loaded.

use super::numbers::{self, PayloadReader};
use super::{MOST_PAYLOAD, MalformedPayload};

/// An executable or a library that is or was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordedModule {
    /// The path of its file.
    pub path: Vec<u8>,
    /// Its build id in hexadecimal; empty if it has none.
    pub build_id: String,
    /// The first address of its mapping.
    pub start: u64,
    /// The first address behind its mapping.
    pub end: u64,
    /// The address in the process minus the address in the file.
    pub bias: u64,
    /// If the library was unloaded: the first node that has it. Of all libraries that were at an address, a node's is
    /// the first one of the list that is loaded, or else the first with `since` not after the node.
    pub unloaded_since: Option<u32>,
}

/// Encodes modules as the payload of a chunk: for each the path and the build id, both after their lengths, then
/// varints with start, length and bias, and a varint that is 0 for a loaded module and otherwise 1 plus
/// [`unloaded_since`](RecordedModule::unloaded_since). Leaves modules out beyond the bound of a payload.
pub fn encode_modules<'a>(modules: impl IntoIterator<Item = &'a RecordedModule>) -> Vec<u8> {
    let mut payload = Vec::new();
    for module in modules {
        let before = payload.len();
        numbers::push_bytes(&mut payload, &module.path);
        numbers::push_bytes(&mut payload, module.build_id.as_bytes());
        let length = module.end.wrapping_sub(module.start);
        let unloaded = module.unloaded_since.map_or(0, |since| u64::from(since) + 1);
        for number in [module.start, length, module.bias, unloaded] {
            numbers::push(&mut payload, number);
        }
        if payload.len() > MOST_PAYLOAD {
            payload.truncate(before);
            break;
        }
    }
    payload
}

/// Decodes a modules chunk's payload.
///
/// # Errors
///
/// If the payload is not that of a modules chunk.
pub fn decode_modules(payload: &[u8]) -> Result<Vec<RecordedModule>, MalformedPayload> {
    let mut payload = PayloadReader::new(payload);
    let mut modules = Vec::new();
    while !payload.is_empty() {
        let path = payload.counted_bytes()?.to_vec();
        let build_id = String::from_utf8_lossy(payload.counted_bytes()?).into_owned();
        let (start, length, bias) = (payload.number()?, payload.number()?, payload.number()?);
        let unloaded_since = match payload.number()? {
            0 => None,
            number => {
                Some(u32::try_from(number - 1).map_err(|_| payload.malformed("no node has such a number"))?)
            }
        };
        modules.push(RecordedModule {
            path,
            build_id,
            start,
            end: start.saturating_add(length),
            bias,
            unloaded_since,
        });
    }
    Ok(modules)
}
