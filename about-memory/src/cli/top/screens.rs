//! The five screens, and which of them is in sight. Neither a terminal nor a process takes part.

use std::ffi::OsString;

use about_memory::session::Session;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::super::heap;
use super::super::input::Input;
use super::super::line::{line, part, styled};
use super::ask::{self, Ask, Asked, Told};
use super::memory::Memory;
use super::processes::Processes;
use super::report::Report;
use super::stacks::Stacks;
use super::types::Types;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Screen {
    Processes,
    Report,
    Memory,
    Stacks,
    Types,
}

const SCREENS: [(Screen, &str); 5] = [
    (Screen::Processes, "1 Processes"),
    (Screen::Report, "2 Report"),
    (Screen::Memory, "3 Memory"),
    (Screen::Stacks, "4 Stacks"),
    (Screen::Types, "5 Types"),
];

/// What the program does next.
#[derive(Debug)]
pub(super) enum Next {
    Nothing,
    Ask(Ask),
    Quit,
}

pub(super) struct Screens {
    pub(super) screen: Screen,
    pub(super) report: Report,
    pub(super) stacks: Stacks,
    pub(super) types: Types,
    /// How typed heaps are read.
    reading: heap::TypedHeapReader,
    processes: Processes,
    memory: Memory,
    session: Session,
    /// The process that `S` on the screen of snapshots takes one of.
    of: Option<(u32, String)>,
    message: String,
    has_help: bool,
}

impl Screens {
    pub(super) fn new(session: Session, reading: heap::TypedHeapReader) -> Self {
        Self {
            screen: Screen::Processes,
            report: Report::default(),
            stacks: Stacks::default(),
            types: Types::default(),
            reading,
            processes: Processes::default(),
            memory: Memory::new(session.clone()),
            session,
            of: None,
            message: String::new(),
            has_help: false,
        }
    }

    /// What to ask again after a while.
    pub(super) fn again(&self) -> Option<Ask> {
        match self.screen {
            Screen::Processes => Some(Ask::List),
            Screen::Report => self.report.again(),
            Screen::Memory | Screen::Stacks | Screen::Types => None,
        }
    }

    pub(super) fn told(&mut self, told: Told) {
        match told {
            Told::Processes(rows) => self.processes.told(rows),
            Told::Report(pids, set) => self.report.told(pids, *set),
            Told::Difference(title, set) => self.report.told_difference(title, *set),
            Told::Stacks(title, blocks) => {
                self.stacks.told(title, *blocks);
                self.message.clear();
            }
            Told::Done(message) => self.message = about_memory::escape(&message),
            Told::Failed(asked, message) => {
                if let Asked::Report(pids) = asked {
                    self.report.told_failure(&pids);
                }
                self.message = about_memory::escape(&message);
            }
        }
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Next {
        let is_ctrl_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if is_ctrl_c {
            return Next::Quit;
        }
        self.message.clear();
        let is_typing = self.screen == Screen::Report && self.report.is_typing();
        if !is_typing {
            if std::mem::take(&mut self.has_help) {
                return Next::Nothing;
            }
            match key.code {
                KeyCode::Char('q') => return Next::Quit,
                KeyCode::Char('?') => {
                    self.has_help = true;
                    return Next::Nothing;
                }
                KeyCode::Char(digit @ '1'..='5') => {
                    self.screen = SCREENS[digit as usize - '1' as usize].0;
                    return Next::Nothing;
                }
                KeyCode::Esc => {
                    self.screen = Screen::Processes;
                    return Next::Nothing;
                }
                _ => {}
            }
        }
        // The screen of stacks has `k` for the kind.
        let code = match key.code {
            KeyCode::Char('j') if !is_typing && self.screen != Screen::Stacks => KeyCode::Down,
            KeyCode::Char('k') if !is_typing && self.screen != Screen::Stacks => KeyCode::Up,
            code => code,
        };
        let asked = match self.screen {
            Screen::Processes => self.processes.press(code),
            Screen::Report => self.report.press(code),
            Screen::Memory if code == KeyCode::Char('S') => match &self.of {
                Some((pid, name)) => Ok(Some(Ask::Snapshot(*pid, name.clone()))),
                None => Err("choose a process on the first screen with S".to_owned()),
            },
            Screen::Memory => self.memory.press(code).map(|()| None),
            Screen::Stacks => self.stacks.press(code).map(|()| None),
            Screen::Types => self.types.press(code).map(|of_type| {
                if let Some(of_type) = of_type {
                    self.memory.show_type(&of_type);
                    self.screen = Screen::Memory;
                }
                None
            }),
        };
        match asked {
            Ok(None) => Next::Nothing,
            Ok(Some(ask)) => self.ask(ask),
            Err(message) => {
                self.message = message;
                Next::Nothing
            }
        }
    }

    /// Goes to the screen that shows the answer.
    fn ask(&mut self, ask: Ask) -> Next {
        match &ask {
            Ask::Measure(pids) => {
                self.report.want(pids.clone());
                self.screen = Screen::Report;
            }
            Ask::Diff(_) => {
                self.report.want(Vec::new());
                self.screen = Screen::Report;
            }
            Ask::Stacks(pid) => {
                self.screen = Screen::Stacks;
                self.message = format!("asking process {pid} for its stacks …");
            }
            Ask::Snapshot(pid, name) => {
                self.screen = Screen::Memory;
                self.of = Some((*pid, name.clone()));
                if let Err(error) = ask::take(&self.session, *pid, name) {
                    self.message = error;
                }
                return Next::Nothing;
            }
            Ask::Types(pid, name) => {
                self.screen = Screen::Types;
                let save = heap::saver(self.reading.clone(), Input::from(OsString::from(pid.to_string())));
                if let Err(error) = self.types.take(&self.session, &format!("{name} (pid {pid})"), save) {
                    self.message = error;
                }
                return Next::Nothing;
            }
            _ => {}
        }
        Next::Ask(ask)
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let [tabs, body, keys] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
                .areas(frame.area());
        let tab = |(screen, title): &(Screen, &'static str)| {
            let style = Style::new();
            let style = if *screen == self.screen { style.add_modifier(Modifier::REVERSED) } else { style };
            [part(&format!(" {title} "), style), part(" ", Style::new())]
        };
        let help = part(" ? keys  q quit", Style::new());
        frame.render_widget(Line::from_iter(SCREENS.iter().flat_map(tab).chain([help])), tabs);
        let text = if self.message.is_empty() { self.keys() } else { &self.message };
        let style =
            Style::new().add_modifier(if self.message.is_empty() { Modifier::DIM } else { Modifier::BOLD });
        frame.render_widget(styled(text, style), keys);
        if self.has_help {
            return frame.render_widget(Paragraph::new(help_text()), body);
        }
        match self.screen {
            Screen::Processes => self.processes.draw(frame, body),
            Screen::Report => self.report.draw(frame, body),
            Screen::Memory => self.memory.draw(frame, body),
            Screen::Stacks => self.stacks.draw(frame, body),
            Screen::Types => self.types.draw(frame, body, &self.session.snapshots()),
        }
    }

    fn keys(&self) -> &'static str {
        match self.screen {
            Screen::Processes => Processes::KEYS,
            Screen::Report => Report::KEYS,
            Screen::Memory => Memory::KEYS,
            Screen::Stacks => Stacks::KEYS,
            Screen::Types => Types::KEYS,
        }
    }
}

fn help_text() -> Vec<Line<'static>> {
    let screens = [
        ("Processes", Processes::KEYS),
        ("Report", Report::KEYS),
        ("Memory", Memory::KEYS),
        ("Stacks", Stacks::KEYS),
        ("Types", Types::KEYS),
    ];
    let mut lines = vec![
        line("Everywhere: 1 to 5 choose a screen, ↑↓ Page Up, Page Down, Home, End move,"),
        line("  j k move, too, but not in Stacks, Esc goes to the processes,"),
        line("  q or Ctrl-C ends. Any key closes this text."),
    ];
    for (name, keys) in screens {
        lines.extend([Line::default(), super::cursor::head(name), line(keys)]);
    }
    lines
}
