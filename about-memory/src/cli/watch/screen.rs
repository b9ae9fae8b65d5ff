//! The full-screen view of a terminal, drawn again at each update.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use about_memory::live::{self, Change, WatchRow};
use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{List, Paragraph};
use ratatui::{DefaultTerminal, Frame};

use super::super::Failure;
use super::super::keys::{self, KeyInput, Keys};
use super::super::line::{line, styled};
use super::Look;

const KEYS: &str = "q quits, space pauses, arrows and page keys scroll";

/// Draws until the user quits, the terminal goes away or `count` updates are done.
pub(super) fn run(
    interval: Duration,
    count: Option<u64>,
    look: &mut dyn FnMut() -> Result<Look, Failure>,
) -> Result<(), Failure> {
    // Do the first update before the screen opens: its error message would be lost with the screen.
    let seen = look()?;
    let ended = Arc::new(Mutex::new(false));
    let by_signal = Arc::clone(&ended);
    live::before_ending(move || {
        *by_signal.lock().unwrap_or_else(PoisonError::into_inner) = true;
        let _ = ratatui::try_restore();
    })
    .map_err(Failure::Output)?;
    let mut terminal = ratatui::try_init().map_err(Failure::Output)?;
    let mut screen = Screen { seen, looks: 1, top: 0, height: 1, paused: false, broken: None, ended };
    let result = screen.run(&mut terminal, interval, count, look);
    keys::give_back(terminal);
    match result {
        Err(Failure::Output(_)) if keys::is_at_end() => Ok(()),
        result => result,
    }
}

struct Screen {
    seen: Look,
    looks: u64,
    /// The first row on the screen.
    top: usize,
    /// The number of rows that fit.
    height: usize,
    paused: bool,
    /// Why the last update failed.
    broken: Option<String>,
    /// Whether a signal has restored the terminal and is about to end the process.
    ended: Arc<Mutex<bool>>,
}

/// What a key or event requests.
enum Wish {
    Nothing,
    Draw,
    Quit,
}

impl Screen {
    fn run(
        &mut self,
        terminal: &mut DefaultTerminal,
        interval: Duration,
        count: Option<u64>,
        look: &mut dyn FnMut() -> Result<Look, Failure>,
    ) -> Result<(), Failure> {
        let keys = Keys::read().map_err(Failure::Output)?;
        let mut next = Instant::now() + interval;
        loop {
            self.draw_on(terminal)?;
            if count.is_some_and(|count| self.looks >= count) {
                return Ok(());
            }
            loop {
                let left = next.saturating_duration_since(Instant::now());
                if left.is_zero() && !self.paused {
                    self.look(look)?;
                    next = Instant::now() + interval;
                    break;
                }
                let wait = if self.paused { Duration::from_secs(1) } else { left };
                let event = match keys.next(wait).map_err(Failure::Output)? {
                    KeyInput::Event(event) => event,
                    KeyInput::Nothing => continue,
                    KeyInput::End => return Ok(()),
                };
                match self.wish(&event) {
                    Wish::Nothing => {}
                    Wish::Draw => break,
                    Wish::Quit => return Ok(()),
                }
            }
        }
    }

    fn draw_on(&mut self, terminal: &mut DefaultTerminal) -> Result<(), Failure> {
        let ended = Arc::clone(&self.ended);
        let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
        if *ended {
            // The thread that handles the signal ends the process. Anything drawn now would stay on the screen.
            loop {
                std::thread::park();
            }
        }
        terminal.draw(|frame| self.draw(frame)).map(drop).map_err(Failure::Output)
    }

    fn look(&mut self, look: &mut dyn FnMut() -> Result<Look, Failure>) -> Result<(), Failure> {
        self.looks += 1;
        match look() {
            Ok(seen) => {
                self.seen = seen;
                self.broken = None;
            }
            // The process may answer again; the last result stays on the screen.
            Err(Failure::File(who, error)) => self.broken = Some(format!("{who}: {error}")),
            Err(other) => return Err(other),
        }
        Ok(())
    }

    fn wish(&mut self, event: &Event) -> Wish {
        let key = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            Event::Resize(..) => return Wish::Draw,
            _ => return Wish::Nothing,
        };
        let last = self.seen.rows.len().saturating_sub(self.height);
        self.top = match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Quit,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Wish::Quit,
            KeyCode::Char(' ') => {
                self.paused = !self.paused;
                self.top
            }
            KeyCode::Up => self.top.saturating_sub(1),
            KeyCode::Down => self.top + 1,
            KeyCode::PageUp => self.top.saturating_sub(self.height),
            KeyCode::PageDown => self.top + self.height,
            KeyCode::Home => 0,
            KeyCode::End => last,
            _ => return Wish::Nothing,
        };
        self.top = self.top.min(last);
        Wish::Draw
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let warnings: Vec<_> =
            self.broken.iter().chain(&self.seen.missing).map(|warning| line(warning)).collect();
        let heads = u16::try_from(warnings.len()).unwrap_or(u16::MAX);
        let [warned, rows, keys] =
            Layout::vertical([Constraint::Max(heads), Constraint::Min(1), Constraint::Length(1)])
                .areas(frame.area());
        frame.render_widget(Paragraph::new(warnings).style(Style::new().fg(Color::Red)), warned);
        self.height = usize::from(rows.height).max(1);
        self.top = self.top.min(self.seen.rows.len().saturating_sub(self.height));
        let shown = self.seen.rows.iter().skip(self.top).take(self.height);
        frame.render_widget(List::new(shown.map(row_line)), rows);
        let state = if self.paused { ", paused" } else { "" };
        let text = format!("update {}{state}: {KEYS}", self.looks);
        frame.render_widget(styled(&text, Style::new().add_modifier(Modifier::REVERSED)), keys);
    }
}

fn row_line(row: &WatchRow) -> Line<'static> {
    let style = Style::new();
    let style = match row.change {
        Change::Same if row.amount.is_empty() => style.add_modifier(Modifier::BOLD),
        Change::Same => style,
        Change::New | Change::Grown => style.fg(Color::Red).add_modifier(Modifier::BOLD),
        Change::Shrunk => style.fg(Color::Green).add_modifier(Modifier::BOLD),
        Change::Gone => style.add_modifier(Modifier::DIM),
    };
    styled(&row.to_string(), style)
}
