//! Saves a heap snapshot of a running process.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use about_memory::live;
use clap::Args;
use heap_graph::snapshot::WriteOptions;

use super::super::input::{self, Input};
use super::super::typed::Reading;
use super::super::{Failure, live_input, new_file};

#[derive(Args)]
pub(super) struct Save {
    /// The process id or the name of a running process; with --typed also a core file or a dump of scan mode.
    #[arg(value_name = "SOURCE")]
    source: Input,
    /// The file to write.
    #[arg(required_unless_present = "output")]
    file: Option<PathBuf>,
    /// The file to write, as in other commands.
    #[arg(long, short, value_name = "FILE", conflicts_with = "file")]
    output: Option<PathBuf>,
    /// The time the process has to answer.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = live_input::seconds)]
    timeout: Duration,
    /// Save the blocks that DMD records, with their types and fields, of a program without a derive.
    #[arg(long)]
    typed: bool,
    #[command(flatten)]
    reading: Reading,
}

impl Save {
    pub(super) fn run(self) -> Result<String, Failure> {
        let file = self.file.as_ref().or(self.output.as_ref()).expect("the parser requires one of them");
        if self.typed {
            return self.typed(file).map(|()| String::new());
        }
        if self.reading.is_chosen() {
            return Err(Failure::Usage("--core and --program are for --typed".to_owned()));
        }
        let pid = input::pid(&self.source)?;
        let saved = live::save_snapshot(pid, file, self.timeout);
        saved.map(|()| String::new()).map_err(|error| live_input::failure(&[pid], error))
    }

    fn typed(&self, file: &Path) -> Result<(), Failure> {
        self.reading.with(&self.source, Some(self.timeout), |heap, _, dump| {
            let wrong = |error: anyhow::Error| Failure::File(self.source.name(), error);
            let graph = heap.graph(dump).map_err(|error| wrong(error.into()))?;
            // Names of types, fields and functions are private enough that only this user may read them.
            let written = new_file::write(file, true, |out| -> io::Result<()> {
                heap_graph::snapshot::write(&graph, out, &WriteOptions::new()).map(drop)
            });
            written.map_err(|error| {
                Failure::File(file.display().to_string(), anyhow::anyhow!("cannot be written: {error}"))
            })
        })
    }
}
