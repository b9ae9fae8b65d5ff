//! A progress bar for long reads, on stderr if it is a terminal, and a line for other long work.

use std::io::{self, IsTerminal as _, Read};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Shorter reads show no bar.
const LONG: Duration = Duration::from_secs(1);

/// Shorter work prints no line.
const LONG_WORK: Duration = Duration::from_secs(2);

/// Prints a line on stderr if the work takes long. On a terminal, the line shows the elapsed time and is updated.
/// Elsewhere, the line is printed once.
pub(crate) struct WorkNotice(Option<(Sender<()>, JoinHandle<()>)>);

impl WorkNotice {
    pub(crate) fn start(message: String) -> Self {
        let (end, ended) = mpsc::channel();
        let work = move || {
            if ended.recv_timeout(LONG_WORK) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            if !io::stderr().is_terminal() {
                return super::say(&message);
            }
            let message = about_memory::escape(&message);
            let bar = ProgressBar::new_spinner().with_message(message).with_elapsed(LONG_WORK);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            // The sender is dropped when the work ends.
            let _ = ended.recv();
            bar.finish_and_clear();
        };
        // If the thread cannot be started, no line is printed.
        let thread = thread::Builder::new().name("notice".to_owned()).spawn(work);
        Self(thread.ok().map(|thread| (end, thread)))
    }
}

impl Drop for WorkNotice {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

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
