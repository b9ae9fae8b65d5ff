//! The executable and the libraries that were loaded.

use super::numbers::{self, PayloadReader};
use super::{MOST_PAYLOAD, MalformedPayload};

/// An executable or a library that is or was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordedModule {
    /// The path of the file.
    pub path: Vec<u8>,
    /// The build id in hexadecimal; empty if the file has none.
    pub build_id: String,
    /// The first address of the mapping.
    pub start: u64,
    /// The first address after the mapping.
    pub end: u64,
    /// The address in the process minus the address in the file.
    pub bias: u64,
    /// For an unloaded library, the first node of the tree whose address is in it; otherwise `None`. Several modules of
    /// the list may contain the address of a node. If any of these modules is loaded, the node belongs to the first
    /// loaded module. Otherwise the node belongs to the first of these modules whose `unloaded_since` is not after the
    /// node.
    pub unloaded_since: Option<u32>,
}

/// Encodes modules as the payload of a chunk. Each module has its path and its build id, both after their lengths.
/// Then varints contain the start, the length and the bias. A last varint is 0 for a loaded module, and otherwise 1
/// plus [`unloaded_since`](RecordedModule::unloaded_since). The list ends before the first module that does not fit
/// into a payload of [`MOST_PAYLOAD`] bytes.
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
/// Returns an error if the payload ends in the middle of a module, or if the number of a node has more than 32 bits.
pub fn decode_modules(payload: &[u8]) -> Result<Vec<RecordedModule>, MalformedPayload> {
    let mut payload = PayloadReader::new(payload);
    let mut modules = Vec::new();
    while !payload.is_empty() {
        let path = payload.counted_bytes()?.to_vec();
        let build_id = String::from_utf8_lossy(payload.counted_bytes()?).into_owned();
        let (start, length, bias) = (payload.number()?, payload.number()?, payload.number()?);
        let unloaded_since = match payload.number()? {
            0 => None,
            number => Some(
                u32::try_from(number - 1)
                    .map_err(|_| payload.malformed("the number of a node is out of range"))?,
            ),
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
