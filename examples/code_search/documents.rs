//! Owns the text of the documents.

use std::ops::Range;
use std::path::PathBuf;

use memory_reporter::MallocSizeOf;

/// The number of a document, in the order in which the engine reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, MallocSizeOf)]
pub(crate) struct DocumentId(u32);

/// A line of a document, counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, MallocSizeOf)]
pub(crate) struct Line(u32);

impl Line {
    /// The line's number in editors, which count from one.
    pub(crate) fn number(self) -> u32 {
        self.0 + 1
    }
}

/// One file.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Document {
    /// The path to show.
    pub(crate) path: PathBuf,
    text: String,
    /// The offset in the text at which each line starts.
    line_starts: Vec<u32>,
}

impl Document {
    /// Makes a document. The text must be smaller than 4 GiB.
    pub(crate) fn new(path: PathBuf, text: String) -> Self {
        let mut line_starts = vec![0];
        let ends = text.bytes().zip(1_u32..).filter(|&(byte, _)| byte == b'\n');
        line_starts.extend(ends.map(|(_, next)| next));
        line_starts.shrink_to_fit();
        Self { path, text, line_starts }
    }

    /// The lines of the document with their numbers, without line ends.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Line, &str)> {
        (0..).map(Line).zip(self.text.lines())
    }

    /// A line and up to `around` lines before and after it.
    pub(crate) fn lines_around(&self, line: Line, around: usize) -> impl Iterator<Item = &str> {
        let line = line.0 as usize;
        let last = (line + around).min(self.line_starts.len() - 1);
        (line.saturating_sub(around)..=last).map(|line| self.text[self.range(line)].trim_end())
    }

    fn range(&self, line: usize) -> Range<usize> {
        let end = self.line_starts.get(line + 1).map_or(self.text.len(), |&next| next as usize);
        self.line_starts[line] as usize..end
    }
}

/// All documents.
#[derive(Debug, Default, MallocSizeOf)]
pub(crate) struct Documents {
    documents: Vec<Document>,
    bytes: u64,
}

impl Documents {
    /// Adds a document, and gives it a number.
    pub(crate) fn add(&mut self, document: Document) -> DocumentId {
        let id = u32::try_from(self.documents.len()).expect("limited text has fewer files than 2^32");
        self.bytes += document.text.len() as u64;
        self.documents.push(document);
        DocumentId(id)
    }

    /// The document with this number.
    pub(crate) fn get(&self, id: DocumentId) -> &Document {
        &self.documents[id.0 as usize]
    }

    /// The number of bytes of text.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of documents.
    pub(crate) fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there is no document.
    pub(crate) fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }
}
