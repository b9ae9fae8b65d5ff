//! Saves a heap snapshot of a running process or, with `--typed`, of a core file or a dump.

use std::path::{Path, PathBuf};
use std::time::Duration;

use about_memory::live;
use clap::Args;

use super::super::heap::{self, TypedHeapReader};
use super::super::input::{self, InputArgument};
use super::super::{Failure, live_input};

#[derive(Args)]
pub(super) struct SnapshotSaveCommand {
    /// The process id or the name of a running process; with --typed also a core file or a dump of scan mode.
    #[arg(value_name = "SOURCE")]
    source: InputArgument,
    /// The file to write.
    #[arg(required_unless_present = "output")]
    file: Option<PathBuf>,
    /// The file to write.
    #[arg(long, short, value_name = "FILE", conflicts_with = "file")]
    output: Option<PathBuf>,
    /// Wait at most this long for an answer. Seconds, or a number with ms, s, m or h.
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = live_input::seconds)]
    timeout: Duration,
    /// Save the blocks that DMD records, with their types and fields. The program needs no derive.
    #[arg(long)]
    typed: bool,
    #[command(flatten)]
    reading: TypedHeapReader,
}

impl SnapshotSaveCommand {
    pub(super) fn run(self) -> Result<String, Failure> {
        let file = self.file.as_ref().or(self.output.as_ref()).expect("the parser requires one of them");
        if self.typed {
            return self.typed(file).map(|()| String::new());
        }
        if self.reading.is_chosen() {
            return Err(Failure::Usage("--core and --program need --typed".to_owned()));
        }
        let pid = input::pid(&self.source)?;
        let saved = live::save_snapshot(pid, file, self.timeout);
        saved.map(|()| String::new()).map_err(|error| live_input::failure(&[pid], error))
    }

    fn typed(&self, file: &Path) -> Result<(), Failure> {
        self.reading.with(&self.source, Some(self.timeout), |heap, _, dump| {
            heap::save_graph(heap, dump, &self.source.name(), file).map(drop)
        })
    }
}
