//! `about-memory html`: a report, or what changed between two, as one page for a browser.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use about_memory::{DiffOptions, HtmlOptions, NormalizeRule, changes};
use clap::Args;
use memory_reporter::ReportSet;

use super::Failure;
use super::input::{Input, Reading};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory html memory-report.json.gz -o page.html
  about-memory html before.json.gz after.json.gz -o changes.html
  zcat memory-report.json.gz | about-memory html - -o - > page.html

The page is one file that loads nothing; names in a report cannot become part of it but as text.";

#[derive(Args)]
pub(crate) struct Html {
    /// The report file, compressed or not; `-` for standard input.
    file: Input,
    /// A later report: the page then shows what changed.
    second: Option<Input>,
    /// The page to write; `-` for standard output.
    #[arg(long, short, value_name = "PAGE")]
    output: PathBuf,
    /// What the title says is shown. [default: the names of the files]
    #[arg(long)]
    title: Option<String>,
    /// Replace what matches in all names before two reports are compared. May be repeated.
    #[arg(long, value_name = "REGEX=>REPLACEMENT", value_parser = NormalizeRule::parse, requires = "second")]
    normalize: Vec<NormalizeRule>,
    #[command(flatten)]
    reading: Reading,
}

impl Html {
    pub(super) fn run(self) -> Result<(), Failure> {
        let set = self.read()?;
        let title = match (&self.title, &self.second) {
            (Some(title), _) => title.clone(),
            (None, Some(second)) => format!("diff of {} and {}", self.file.name(), second.name()),
            (None, None) => self.file.name(),
        };
        let page = about_memory::html(&set, &HtmlOptions::new().title(title));
        if self.output.as_os_str() == "-" {
            let mut out = io::stdout().lock();
            return out.write_all(page.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output);
        }
        write(&self.output, &page)
            .map_err(|error| Failure::File(self.output.display().to_string(), error.into()))
    }

    fn read(&self) -> Result<ReportSet, Failure> {
        let Some(second) = &self.second else { return self.file.read(&self.reading) };
        let options = self.normalize.iter().cloned().fold(DiffOptions::new(), DiffOptions::normalize);
        let (first, second) = Input::read_two(&self.file, second, &self.reading)?;
        let changes = changes(&first, &second, &options).map_err(|e| Failure::Usage(e.to_string()))?;
        Ok(changes.to_set())
    }
}

/// Writes beside the page and renames, so that nobody sees half a page. What is no plain file, such as
/// `/dev/null` or a pipe, is written to directly.
fn write(path: &Path, page: &str) -> io::Result<()> {
    if path.exists() && !fs::metadata(path)?.is_file() {
        return fs::write(path, page);
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.incomplete", std::process::id()));
    // Never through a link that somebody put there.
    let mut file = File::create_new(&beside)?;
    let written = file.write_all(page.as_bytes()).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    written
}
