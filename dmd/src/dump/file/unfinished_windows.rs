//! The file of a dump that is being written. No signal handler ends the process here.

pub(super) struct UnfinishedFile(NewFile);

use std::fs::File;
use std::io;
use std::path::Path;

use memory_report::new_file::NewFile;

impl UnfinishedFile {
    pub(super) fn new(file: NewFile) -> Self {
        Self(file)
    }

    pub(super) fn file(&mut self) -> &mut File {
        self.0.file()
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.0.finish()
    }

    pub(super) fn finish_new(&mut self, path: &Path) -> io::Result<()> {
        self.0.finish_new(path)
    }
}
