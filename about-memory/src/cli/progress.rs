//! A progress bar for long reads, on stderr if it is a terminal.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Shorter reads show no bar.
const LONG: Duration = Duration::from_secs(1);

/// Shows a bar if a read takes long and stderr is a terminal.
pub(crate) struct ReadProgress<R> {
    reader: R,
    name: String,
    read: u64,
    bytes: u64,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl<R> ReadProgress<R> {
    pub(crate) fn new(reader: R, name: String, bytes: u64) -> Self {
        Self { reader, name, read: 0, bytes, started: Instant::now(), bar: None }
    }

    fn bar(&self) -> ProgressBar {
        let style = ProgressStyle::with_template("{msg} {bar:30} {binary_bytes} of {binary_total_bytes}");
        let bar = ProgressBar::new(self.bytes).with_message(about_memory::escape(&self.name));
        match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}

/// Shows a bar if the replay of a recording takes long.
pub(crate) fn show_replay(name: String) -> impl FnMut(u64, u64) + Send + 'static {
    let mut shown = ReadProgress::new((), name, 0);
    move |read, bytes| {
        // A smaller position means that another replay has started.
        if read < shown.read {
            shown.bar = None;
            shown.started = Instant::now();
        }
        (shown.read, shown.bytes) = (read, bytes);
        if shown.bar.is_none() && shown.started.elapsed() >= LONG {
            shown.bar = Some(shown.bar());
        }
        if let Some(bar) = &shown.bar {
            bar.set_position(read);
        }
    }
}

impl<R: Read> Read for ReadProgress<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(into)?;
        self.read += read as u64;
        if self.bar.is_none() && self.started.elapsed() >= LONG {
            self.bar = Some(self.bar());
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.read);
        }
        Ok(read)
    }
}

impl<R> Drop for ReadProgress<R> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
