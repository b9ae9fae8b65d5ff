//! `about-memory top`: running processes, reports, heap snapshots, stacks and types in the terminal.

mod ask;
mod cursor;
mod memory;
mod processes;
mod report;
mod screens;
#[cfg(test)]
mod shown;
mod stacks;
mod types;

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use about_memory::live::{self, AskOptions, EndSignals};
use about_memory::session::{Session, SessionOptions};
use clap::Args;
use dmd_analyze::program::{HeapBlocks, ProgramOptions};
use dmd_analyze::recording::Recording;
use dmd_analyze::{Dump, Mode};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{Event, KeyEventKind};
use typed_heap::CoreFile;

use super::dump_limits::DumpLimits;
use super::html::has_blocks;
use super::input::{InputArgument, ReadLimits};
use super::keys::{self, KeyInput, TerminalKeys};
use super::live_input::{self, seconds};
use super::recorded::BlockTime;
use super::symbols::SymbolSearch;
use super::{Failure, heap, serve};
use ask::{ScreenAnswer, ScreenRequest};
use screens::{KeyOutcome, ScreenKind, TopScreens};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory top
  about-memory top 1234
  about-memory top heap.fxsnapshot
  about-memory top dmd.json.gz
  about-memory top history.dmdrec --at peak
  about-memory top core.1234

Keys: 1 processes, 2 report, 3 memory, 4 stacks, 5 types, ? all keys, q quits.";

/// The time that the program waits for a key before it checks for answers.
const LOOK: Duration = Duration::from_millis(100);
/// The time that the program has to end by itself after a signal. It may be reading a long file, and the terminal may
/// accept no text.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Args)]
pub(crate) struct TopCommand {
    /// Heap snapshots (.fxsnapshot), report files, dumps and recordings of DMD, core files, and ids or names of
    /// processes to measure. If there are several reports or dumps, the last one is shown.
    #[arg(value_name = "FILE|PID")]
    inputs: Vec<InputArgument>,
    /// Update after this time. Seconds, or a number with ms, s, m or h.
    #[arg(long, short, value_name = "TIME", default_value = "2", value_parser = seconds)]
    interval: Duration,
    #[command(flatten)]
    when: BlockTime,
    #[command(flatten)]
    symbols: SymbolSearch,
    #[command(flatten)]
    reading: ReadLimits,
}

impl TopCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        if !(io::stdout().is_terminal() && io::stdin().is_terminal()) {
            let reason = "top needs a terminal; for text, use list, show or show --interval";
            return Err(Failure::Usage(reason.to_owned()));
        }
        let ending = EndSignals::new(GRACE, || drop(ratatui::try_restore())).map_err(Failure::Output)?;
        let session = Session::new(SessionOptions::new());
        let mut screens = TopScreens::new(session.clone(), self.typed());
        for input in &self.inputs {
            self.open(input, &session, &mut screens)?;
        }
        let mut terminal = ratatui::try_init().map_err(Failure::Output)?;
        let result = self.follow(&mut terminal, &mut screens, &ending);
        keys::give_back(terminal);
        session.end();
        match result {
            Err(error) if !keys::is_at_end() => Err(Failure::Output(error)),
            _ => Ok(()),
        }
    }

    fn open(
        &self,
        input: &InputArgument,
        session: &Session,
        screens: &mut TopScreens,
    ) -> Result<(), Failure> {
        if let Some(pid) = input.process()? {
            let set = live::collect(&[pid], &AskOptions::new())
                .map_err(|error| live_input::failure(&[pid], error))?;
            screens.report.told(vec![pid], set);
            screens.screen = ScreenKind::Report;
            return Ok(());
        }
        if serve::is_snapshot(input.path()) {
            session.open(input.path()).map_err(|error| Failure::File(input.name(), error.into()))?;
            screens.screen = ScreenKind::Memory;
            return Ok(());
        }
        if CoreFile::is_elf(input.path()) {
            return self.open_types(input, session, screens);
        }
        let is_recording = !input.is_stdin() && Recording::is_at(input.path());
        if !is_recording {
            match input.read(&self.reading) {
                Err(Failure::File(name, error)) if has_blocks(&name, &error) && !input.is_stdin() => {}
                set => {
                    screens.report.open(about_memory::escape(&input.name()), set?, Vec::new());
                    screens.screen = ScreenKind::Report;
                    return Ok(());
                }
            }
        }
        let limits = self.reading.dump_options();
        let fix = |dump: &mut Dump| self.symbols.fix(dump, &limits);
        let (dump, _) = self.when.read(input.path(), &limits, None, fix)?;
        if dump.mode() == Mode::Scan {
            self.open_types(input, session, screens)?;
        }
        let blocks = HeapBlocks::new(dump, &ProgramOptions::new());
        screens.stacks.told(about_memory::escape(&input.name()), blocks);
        screens.screen = ScreenKind::Stacks;
        Ok(())
    }

    /// Reads the typed heap of a core file or a dump of scan mode.
    fn open_types(
        &self,
        input: &InputArgument,
        session: &Session,
        screens: &mut TopScreens,
    ) -> Result<(), Failure> {
        let save = heap::saver(self.typed(), input.clone());
        let taken = screens.types.take(session, &format!("types of {}", input.name()), save);
        screens.screen = ScreenKind::Types;
        taken.map_err(|reason| Failure::File(input.name(), anyhow::anyhow!(reason)))
    }

    fn typed(&self) -> heap::TypedHeapReader {
        let limits = DumpLimits::with_max_bytes(self.reading.max_bytes());
        heap::TypedHeapReader::new(self.symbols.clone(), limits)
    }

    /// Draws the screens, and handles keys and answers. Returns after the user quits, after a signal, or when the
    /// terminal is closed.
    fn follow(
        &self,
        terminal: &mut DefaultTerminal,
        screens: &mut TopScreens,
        ending: &EndSignals,
    ) -> io::Result<()> {
        let keys = TerminalKeys::read()?;
        let (to, from) = channel();
        let mut next = Instant::now();
        // At most one of the repeating requests runs at a time.
        let mut is_asking = false;
        let mut shown = screens.screen;
        while !ending.has_begun() {
            for told in from.try_iter() {
                is_asking &= !matches!(
                    told,
                    ScreenAnswer::Processes(_) | ScreenAnswer::Report(..) | ScreenAnswer::Failed(..)
                );
                screens.told(told);
            }
            if (next <= Instant::now() || shown != screens.screen) && !is_asking {
                if let Some(ask) = screens.again() {
                    is_asking = true;
                    ask.start(&to);
                }
                next = Instant::now() + self.interval;
                shown = screens.screen;
            }
            terminal.draw(|frame| screens.draw(frame))?;
            let key = match keys.next(LOOK)? {
                KeyInput::Event(Event::Key(key)) => key,
                KeyInput::Event(_) | KeyInput::Nothing => continue,
                KeyInput::End => return Ok(()),
            };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            match screens.press(key) {
                KeyOutcome::Nothing => {}
                KeyOutcome::Ask(ask) => {
                    is_asking |= matches!(ask, ScreenRequest::Measure(_));
                    ask.start(&to);
                }
                KeyOutcome::Quit => return Ok(()),
            }
        }
        Ok(())
    }
}
