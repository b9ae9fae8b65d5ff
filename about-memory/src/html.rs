//! One page that shows a set of reports in a browser. The page loads no other files.
//!
//! `npm run build` makes the page from `ui/`, with two placeholders: the title and the data. The data is compressed and
//! in base64, in an element that browsers do not run, so a browser never interprets a report's name as HTML or script.
//! The page's security policy forbids everything outside the page.

mod columns;
mod facts;
mod flame;
mod heap;
mod payload;

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dmd_analyze::Dump;
use dmd_analyze::FlameGraph;
use dmd_analyze::program::{HeapBlocks, HeapChange, ProgramOptions, ResidentMemory, Timeline};
use flate2::Compression;
use flate2::write::GzEncoder;
use memory_report::ReportSet;

use crate::escape::escape;
pub use facts::HeapFacts;
use heap::HeapPage;

/// The page, built by `npm run build` in `ui/`; see `ui/README.md`.
const PAGE: &str = include_str!("../assets/page.html");
const TITLE: &str = "@TITLE@";
const DATA: &str = "@DATA@";

/// Options of a page.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HtmlOptions {
    pub(crate) title: String,
    pub(crate) compression: u32,
    pub(crate) flame_graph: Option<FlameGraph>,
    heap: Option<HeapPage>,
    facts: Option<HeapFacts>,
}

impl HtmlOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the text that the title contains: the name of a file, or the names of two files for a diff. Default: empty.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// Sets the level of compression, from 0 (none) to 9. Default: 6. Higher levels gain little.
    #[must_use]
    pub fn compression(self, level: u32) -> Self {
        Self { compression: level, ..self }
    }

    /// Adds the flame graph of a DMD dump. Default: no flame graph. Browsers can show some ten thousand frames.
    #[must_use]
    pub fn flame_graph(self, graph: FlameGraph) -> Self {
        Self { flame_graph: Some(graph), ..self }
    }

    /// Shows a recording instead of reports: its time line, and the table, treemap and flame graph of the time range
    /// that the reader selects.
    #[must_use]
    pub fn timeline(self, timeline: Timeline) -> Self {
        Self { heap: Some(HeapPage::Timeline(Box::new(timeline))), ..self }
    }

    /// Adds facts to the summary of a dump or of a recording. Default: none.
    #[must_use]
    pub fn heap_facts(self, facts: HeapFacts) -> Self {
        Self { facts: Some(facts), ..self }
    }

    /// Shows the change between two heaps instead of reports, as table, treemap and flame graph. `names` are the names
    /// of the heaps.
    #[must_use]
    pub fn heap_change(self, change: HeapChange, names: [String; 2]) -> Self {
        Self { heap: Some(HeapPage::Change(change, names)), ..self }
    }

    /// Shows a dump instead of reports: the table, treemap and flame graph of its blocks. The blocks are grouped by the
    /// number of reports that contain them.
    #[must_use]
    pub fn heap_blocks(self, blocks: HeapBlocks) -> Self {
        Self { heap: Some(HeapPage::Blocks(blocks, None)), ..self }
    }

    /// Shows a dump as [`heap_blocks`](Self::heap_blocks) does. Above the views, the page has the resident memory of the
    /// process by owner.
    #[must_use]
    pub fn heap_blocks_and_memory(self, blocks: HeapBlocks, memory: &ResidentMemory) -> Self {
        Self { heap: Some(HeapPage::Blocks(blocks, Some(memory.to_string()))), ..self }
    }
}

impl HtmlOptions {
    /// Shows a dump as [`heap_blocks`](Self::heap_blocks) does, with the resident memory of its process by owner if the
    /// dump has it.
    #[must_use]
    pub fn dump(self, dump: Dump) -> Self {
        let view = ProgramOptions::new();
        let memory = dump.check_resident().and_then(|()| ResidentMemory::new(&dump, &view));
        let blocks = HeapBlocks::new(dump, &view);
        match memory {
            Ok(memory) => self.heap_blocks_and_memory(blocks, &memory),
            Err(_) => self.heap_blocks(blocks),
        }
    }
}

impl Default for HtmlOptions {
    fn default() -> Self {
        Self { title: String::new(), compression: 6, flame_graph: None, heap: None, facts: None }
    }
}

/// Returns a page that shows `set` in any browser of 2023 or later. The set may be a [`diff`](crate::diff()). The page
/// contains the text of [`text`](crate::text()) to open, close, filter and copy, a treemap, and the flame graph of
/// `options` if there is one.
///
/// The page is one file that loads no other files, so it can be mailed, or kept as an artefact of a build. A report
/// with a random name and amount takes about 8 bytes of the page; real reports take much less. The page creates
/// elements only for visible rows.
///
/// ```
/// use about_memory::HtmlOptions;
/// use memory_reporter::{Kind, Report, ReportSet, Units};
///
/// let mut set = ReportSet::new();
/// let (process, path, description) = ("Main Process (pid 1)", "explicit/<script>", "");
/// set.push(Report { process, path, kind: Kind::Heap, units: Units::Bytes, amount: 5000, description });
/// let page = about_memory::html(&set, &HtmlOptions::new().title("of a test"));
/// assert!(page.contains("<title>about:memory (of a test)</title>"));
/// assert!(!page.contains("explicit/<script>"));
/// ```
pub fn html(set: &ReportSet, options: &HtmlOptions) -> String {
    let title = match options.title.as_str() {
        "" => "about:memory".to_owned(),
        title => format!("about:memory ({})", escape(title)),
    };
    let data = STANDARD.encode(compress(
        &payload::payload(set, options.flame_graph.as_ref(), options.heap.as_ref(), options.facts.as_ref()),
        options.compression,
    ));
    let (head, rest) = PAGE.split_once(TITLE).expect("the page has a place for the title");
    let (middle, tail) = rest.split_once(DATA).expect("the page has a place for the data");
    let title = escape_html(&title);
    let mut page = String::with_capacity(PAGE.len() + title.len() + data.len());
    for part in [head, &title, middle, &data, tail] {
        page.push_str(part);
    }
    page
}

/// Returns the data for a served page. If the reports have the shape that the page knows, the data contains only their
/// amounts.
#[cfg(feature = "serve")]
pub(crate) fn followed(set: &ReportSet, known: &str) -> Vec<u8> {
    payload::followed(set, known)
}

/// Returns the data of the served page for stacks.
#[cfg(feature = "serve")]
pub(crate) fn stacks_payload(options: &HtmlOptions) -> Vec<u8> {
    let HtmlOptions { flame_graph, heap, facts, .. } = options;
    payload::payload(&ReportSet::new(), flame_graph.as_ref(), heap.as_ref(), facts.as_ref())
}

fn compress(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level.min(9)));
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("writing to memory does not fail")
}

/// Escapes text for use between tags.
fn escape_html(text: &str) -> String {
    let mut to = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => to.push_str("&amp;"),
            '<' => to.push_str("&lt;"),
            '>' => to.push_str("&gt;"),
            c => to.push(c),
        }
    }
    to
}
