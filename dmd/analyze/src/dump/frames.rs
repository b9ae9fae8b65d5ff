//! The frames of a dump, each stored once.

use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;
use memory_report::TextPool;

use super::frame::{CallFrame, FrameText, ParsedFrame, TYPE};

/// The id of a frame's text. Equal texts have equal ids. Records are compared by these texts, as in `dmd.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FrameTextId(u32);

impl FrameTextId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Texts of frames, each stored and parsed once.
#[derive(Debug, Default)]
pub(crate) struct FrameTexts {
    all: String,
    /// For each text, its end in `all`, and its parts.
    texts: Vec<(usize, ParsedFrame)>,
    /// The ids by text.
    ids: HashTable<FrameTextId>,
    /// Randomly seeded, so that the author of a dump cannot provoke collisions.
    hasher: RandomState,
}

impl FrameTexts {
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn get(&self, id: FrameTextId) -> FrameText<'_> {
        let index = id.index();
        let start = index.checked_sub(1).map_or(0, |before| self.texts[before].0);
        let (end, parsed) = &self.texts[index];
        parsed.with(&self.all[start..*end])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = FrameText<'_>> {
        (0..self.texts.len()).map(|index| self.get(FrameTextId(index as u32)))
    }

    /// The id of a text. Adds it if it is new.
    pub(crate) fn add(&mut self, text: &str) -> FrameTextId {
        self.add_parsed(text, false, || ParsedFrame::new(text))
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = FrameTextId> + use<> {
        (0..self.texts.len() as u32).map(FrameTextId)
    }

    /// Adds the text without its line or offset: all frames of a function in one file or module get the same id. The
    /// text of an unknown function keeps its id.
    pub(crate) fn add_without_line(&mut self, id: FrameTextId) -> FrameTextId {
        let frame = self.get(id).frame();
        let CallFrame { function: Some(_), line, offset, .. } = frame else { return id };
        if line.is_none() && offset.is_none() {
            return id;
        }
        let (text, parsed) = ParsedFrame::from_frame(&CallFrame { line: None, offset: None, ..frame });
        self.add_parsed(&text, frame.in_allocator, || parsed)
    }

    /// The id of a text that is a type.
    pub(crate) fn add_type(&mut self, name: &str) -> FrameTextId {
        self.add(&format!("{TYPE}{name}"))
    }

    /// Adds a copy of an already parsed text.
    fn copy(&mut self, text: FrameText<'_>) -> FrameTextId {
        self.add_parsed(text.as_str(), text.is_in_allocator(), || text.parsed())
    }

    /// Adds a parsed text. If several calls have the same text, and one of them is inside of the allocator, all of them
    /// count as inside of the allocator.
    fn add_parsed(
        &mut self,
        text: &str,
        in_allocator: bool,
        parse: impl FnOnce() -> ParsedFrame,
    ) -> FrameTextId {
        let hash = self.hasher.hash_one(text);
        if let Some(known) = self.ids.find(hash, |id| self.get(*id).as_str() == text).copied() {
            if in_allocator {
                self.texts[known.index()].1.set_in_allocator();
            }
            return known;
        }
        let next = FrameTextId(self.texts.len() as u32);
        self.all.push_str(text);
        self.texts.push((self.all.len(), parse()));
        let mut ids = core::mem::take(&mut self.ids);
        ids.insert_unique(hash, next, |id| self.hash(*id));
        self.ids = ids;
        next
    }

    fn hash(&self, id: FrameTextId) -> u64 {
        self.hasher.hash_one(self.get(id).as_str())
    }

    fn shrink_to_fit(&mut self) {
        self.all.shrink_to_fit();
        self.texts.shrink_to_fit();
        let mut ids = core::mem::take(&mut self.ids);
        ids.shrink_to_fit(|id| self.hash(*id));
        self.ids = ids;
    }
}

/// The id of a frame. Equal frames have equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallId(u32);

impl CallId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct StoredCall {
    text: FrameTextId,
    /// The module, the offset and other facts of a frame that was looked up. Its text may not contain them.
    code: Option<CodeOffset>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CodeOffset {
    module: u32,
    offset: u64,
    column: Option<u32>,
    inlined: bool,
    system_name: Option<u32>,
}

/// Frames from a dump or from the look-up, each stored once.
#[derive(Debug, Default)]
pub(crate) struct CallTable {
    texts: FrameTexts,
    frames: Vec<StoredCall>,
    /// The ids by content. The table stores no copies of frames, so that it stays small: engines keep it in the memory
    /// of the program that they measure.
    ids: HashTable<CallId>,
    hasher: RandomState,
    /// Paths of modules, and system names.
    names: TextPool,
}

impl CallTable {
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = CallId> + use<> {
        (0..self.frames.len() as u32).map(CallId)
    }

    pub(crate) fn at(&self, index: usize) -> CallFrame<'_> {
        self.get(CallId(index as u32))
    }

    pub(crate) fn get(&self, id: CallId) -> CallFrame<'_> {
        let StoredCall { text, code } = self.frames[id.index()];
        let frame = self.texts.get(text).frame();
        match code {
            None => frame,
            Some(CodeOffset { module, offset, column, inlined, system_name }) => {
                let name = |number: u32| self.names.get(number);
                let (module, system_name) = (Some(name(module)), system_name.map(name));
                CallFrame { module, offset: Some(offset), column, inlined, system_name, ..frame }
            }
        }
    }

    pub(crate) fn text(&self, id: CallId) -> FrameText<'_> {
        self.texts.get(self.text_id(id))
    }

    /// The id of the text by which records compare the frame.
    pub(crate) fn text_id(&self, id: CallId) -> FrameTextId {
        self.frames[id.index()].text
    }

    /// Splits off the parts that records need: the texts, and for each frame the id of its text.
    pub(crate) fn into_texts(self) -> (FrameTexts, Vec<FrameTextId>) {
        (self.texts, self.frames.into_iter().map(|frame| frame.text).collect())
    }

    /// Adds a frame from a dump's text.
    pub(crate) fn read(&mut self, text: &str) -> CallId {
        let text = self.texts.add(text);
        self.store(StoredCall { text, code: None })
    }

    /// Adds a frame that was looked up.
    pub(crate) fn add(&mut self, frame: &CallFrame<'_>) -> CallId {
        let (text, parts) = ParsedFrame::from_frame(frame);
        let text = self.texts.add_parsed(&text, frame.in_allocator, || parts);
        let code = frame.module.zip(frame.offset).map(|(module, offset)| {
            let (module, system_name) = (self.name(module), frame.system_name.map(|name| self.name(name)));
            CodeOffset { module, offset, column: frame.column, inlined: frame.inlined, system_name }
        });
        self.store(StoredCall { text, code })
    }

    /// Adds a type in the place of a frame.
    pub(crate) fn add_type(&mut self, name: &str) -> CallId {
        let text = self.texts.add_type(name);
        self.store(StoredCall { text, code: None })
    }

    /// Adds a copy of a frame of `others`.
    pub(crate) fn copy(&mut self, others: &Self, id: CallId) -> CallId {
        let StoredCall { text, code } = others.frames[id.index()];
        let text = self.texts.copy(others.texts.get(text));
        let code = code.map(|code| {
            let mut name = |number: u32| self.name(others.names.get(number));
            CodeOffset { module: name(code.module), system_name: code.system_name.map(name), ..code }
        });
        self.store(StoredCall { text, code })
    }

    /// Releases unused capacity.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.texts.shrink_to_fit();
        self.frames.shrink_to_fit();
        let (frames, hasher) = (&self.frames, &self.hasher);
        self.ids.shrink_to_fit(|id| hasher.hash_one(frames[id.index()]));
    }

    fn name(&mut self, name: &str) -> u32 {
        self.names.intern(name).expect("a dump has fewer than 2^32 names")
    }

    fn store(&mut self, frame: StoredCall) -> CallId {
        let (frames, hasher) = (&self.frames, &self.hasher);
        let next = CallId(frames.len() as u32);
        let id = *self
            .ids
            .entry(
                hasher.hash_one(frame),
                |id| frames[id.index()] == frame,
                |id| hasher.hash_one(frames[id.index()]),
            )
            .or_insert(next)
            .get();
        if id == next {
            self.frames.push(frame);
        }
        id
    }
}
