//! Names of debug information. Each is stored once.

use memory_report::TextPool;

use super::types::DebugNameId;

/// The largest length of a name in bytes. Longer names are cut.
pub(super) const LONGEST: usize = 1 << 16;

/// The largest total size of all names in bytes.
pub(super) const MOST_BYTES: usize = 256 << 20;

#[derive(Debug)]
pub(super) struct NameTable {
    names: TextPool,
    /// The largest total size of the names in this table in bytes, at most `MOST_BYTES`.
    most: usize,
}

impl NameTable {
    pub(super) fn new(most: usize) -> Self {
        Self { names: TextPool::default(), most: most.min(MOST_BYTES) }
    }

    /// Adds the names of another part of a file, in their order, and adds that part's share of the limit. Returns the
    /// new ids; `None` at the limit.
    pub(super) fn append(&mut self, other: &Self) -> Option<Vec<DebugNameId>> {
        self.most = self.most.saturating_add(other.most).min(MOST_BYTES);
        other.names.iter().map(|name| self.intern(name)).collect()
    }

    pub(super) fn get(&self, id: DebugNameId) -> &str {
        self.names.get(id.0)
    }

    /// The id of a name; `None` for an unknown name.
    pub(super) fn find(&self, name: &str) -> Option<DebugNameId> {
        self.names.find(name).map(DebugNameId)
    }

    /// The id of a name. Adds the name if it is new. `None` at the limit of bytes.
    pub(super) fn intern(&mut self, name: &str) -> Option<DebugNameId> {
        if let Some(id) = self.find(name) {
            return Some(id);
        }
        let (text, ..) = self.names.parts();
        if text.len() + name.len() > self.most {
            return None;
        }
        self.names.intern(name).map(DebugNameId)
    }
}
