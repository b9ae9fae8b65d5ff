//! The facts with which the summary of a heap starts.

use dmd_analyze::Dump;
use dmd_analyze::program::{HeapOverview, ProgramOptions, ResidentMemory, Timeline};
use serde::Serialize;

/// The number of rows of resident memory.
const OWNERS: usize = 8;

/// Facts about a heap that its blocks do not contain: the life of the program, the memory of its process, and advice. A
/// page shows them in its summary.
#[derive(Clone, Debug, Serialize)]
pub struct HeapFacts {
    /// The lines about the peak, the end and the allocations.
    life: String,
    /// The resident memory of the process by owner, as text. Empty if it is unknown.
    memory: String,
    /// What the reader can build or start differently to see more. Empty without advice.
    advice: String,
}

impl HeapFacts {
    /// The facts of a dump whose symbols were looked up.
    pub fn from_dump(dump: &Dump, overview: &HeapOverview) -> Self {
        let memory = ResidentMemory::new(dump, &ProgramOptions::new());
        Self {
            life: overview.life_text().to_string(),
            memory: memory.map(|memory| memory.limit(OWNERS).to_string()).unwrap_or_default(),
            advice: dump.line_advice().unwrap_or_default().to_owned(),
        }
    }

    /// The facts of a recording.
    pub fn from_timeline(timeline: &Timeline) -> Self {
        let life = timeline.overview().life_text().to_string();
        Self { life, memory: String::new(), advice: String::new() }
    }
}
