//! The five screens, and the choice of the visible screen. Tests use this code without a terminal or a process.

use std::ffi::OsString;

use about_memory::session::Session;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::super::heap;
use super::super::input::InputArgument;
use super::super::line::{line, part, styled};
use super::ask::{self, RequestKind, ScreenAnswer, ScreenRequest};
use super::memory::SnapshotScreen;
use super::processes::ProcessScreen;
use super::report::ReportScreen;
use super::stacks::StackScreen;
use super::types::TypeScreen;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScreenKind {
    Processes,
    Report,
    Memory,
    Stacks,
    Types,
}

const SCREENS: [(ScreenKind, &str); 5] = [
    (ScreenKind::Processes, "1 Processes"),
    (ScreenKind::Report, "2 Report"),
    (ScreenKind::Memory, "3 Memory"),
    (ScreenKind::Stacks, "4 Stacks"),
    (ScreenKind::Types, "5 Types"),
];

/// The action that follows a key.
#[derive(Debug)]
pub(super) enum KeyOutcome {
    Nothing,
    Ask(ScreenRequest),
    Quit,
}

pub(super) struct TopScreens {
    pub(super) screen: ScreenKind,
    pub(super) report: ReportScreen,
    pub(super) stacks: StackScreen,
    pub(super) types: TypeScreen,
    /// The settings for reading typed heaps.
    reading: heap::TypedHeapReader,
    processes: ProcessScreen,
    memory: SnapshotScreen,
    session: Session,
    /// The key `S` on the screen of snapshots takes a snapshot of this process.
    of: Option<(u32, String)>,
    message: String,
    has_help: bool,
}

impl TopScreens {
    pub(super) fn new(session: Session, reading: heap::TypedHeapReader) -> Self {
        Self {
            screen: ScreenKind::Processes,
            report: ReportScreen::default(),
            stacks: StackScreen::default(),
            types: TypeScreen::default(),
            reading,
            processes: ProcessScreen::default(),
            memory: SnapshotScreen::new(session.clone()),
            session,
            of: None,
            message: String::new(),
            has_help: false,
        }
    }

    /// Returns the request that updates the screen after a while. `None` if the screen does not update itself.
    pub(super) fn again(&self) -> Option<ScreenRequest> {
        match self.screen {
            ScreenKind::Processes => Some(ScreenRequest::List),
            ScreenKind::Report => self.report.again(),
            ScreenKind::Memory | ScreenKind::Stacks | ScreenKind::Types => None,
        }
    }

    pub(super) fn told(&mut self, told: ScreenAnswer) {
        match told {
            ScreenAnswer::Processes(rows) => self.processes.told(rows),
            ScreenAnswer::Report(pids, set) => self.report.told(pids, *set),
            ScreenAnswer::Difference(title, set) => self.report.told_difference(title, *set),
            ScreenAnswer::Stacks(title, blocks) => {
                self.stacks.told(title, *blocks);
                self.message.clear();
            }
            ScreenAnswer::Done(message) => self.message = about_memory::escape(&message),
            ScreenAnswer::Failed(asked, message) => {
                if let RequestKind::Report(pids) = asked {
                    self.report.told_failure(&pids);
                }
                self.message = about_memory::escape(&message);
            }
        }
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> KeyOutcome {
        let is_ctrl_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if is_ctrl_c {
            return KeyOutcome::Quit;
        }
        self.message.clear();
        let is_typing = self.screen == ScreenKind::Report && self.report.is_typing();
        if !is_typing {
            if std::mem::take(&mut self.has_help) {
                return KeyOutcome::Nothing;
            }
            match key.code {
                KeyCode::Char('q') => return KeyOutcome::Quit,
                KeyCode::Char('?') => {
                    self.has_help = true;
                    return KeyOutcome::Nothing;
                }
                KeyCode::Char(digit @ '1'..='5') => {
                    self.screen = SCREENS[digit as usize - '1' as usize].0;
                    return KeyOutcome::Nothing;
                }
                KeyCode::Esc => {
                    self.screen = ScreenKind::Processes;
                    return KeyOutcome::Nothing;
                }
                _ => {}
            }
        }
        // On the screen of stacks, `k` selects the kind, so it does not move the cursor.
        let code = match key.code {
            KeyCode::Char('j') if !is_typing && self.screen != ScreenKind::Stacks => KeyCode::Down,
            KeyCode::Char('k') if !is_typing && self.screen != ScreenKind::Stacks => KeyCode::Up,
            code => code,
        };
        let asked = match self.screen {
            ScreenKind::Processes => self.processes.press(code),
            ScreenKind::Report => self.report.press(code),
            ScreenKind::Memory if code == KeyCode::Char('S') => match &self.of {
                Some((pid, name)) => Ok(Some(ScreenRequest::Snapshot(*pid, name.clone()))),
                None => Err("press S on a process of the first screen".to_owned()),
            },
            ScreenKind::Memory => self.memory.press(code).map(|()| None),
            ScreenKind::Stacks => self.stacks.press(code).map(|()| None),
            ScreenKind::Types => self.types.press(code).map(|of_type| {
                if let Some(of_type) = of_type {
                    self.memory.show_type(&of_type);
                    self.screen = ScreenKind::Memory;
                }
                None
            }),
        };
        match asked {
            Ok(None) => KeyOutcome::Nothing,
            Ok(Some(ask)) => self.ask(ask),
            Err(message) => {
                self.message = message;
                KeyOutcome::Nothing
            }
        }
    }

    /// Selects the screen that will show the answer. Returns the request, or nothing if the session runs the request.
    fn ask(&mut self, ask: ScreenRequest) -> KeyOutcome {
        match &ask {
            ScreenRequest::Measure(pids) => {
                self.report.want(pids.clone());
                self.screen = ScreenKind::Report;
            }
            ScreenRequest::Diff(_) => {
                self.report.want(Vec::new());
                self.screen = ScreenKind::Report;
            }
            ScreenRequest::Stacks(pid) => {
                self.screen = ScreenKind::Stacks;
                self.message = format!("asking process {pid} for its stacks …");
            }
            ScreenRequest::Snapshot(pid, name) => {
                self.screen = ScreenKind::Memory;
                self.of = Some((*pid, name.clone()));
                if let Err(error) = ask::take(&self.session, *pid, name) {
                    self.message = error;
                }
                return KeyOutcome::Nothing;
            }
            ScreenRequest::Types(pid, name) => {
                self.screen = ScreenKind::Types;
                let save =
                    heap::saver(self.reading.clone(), InputArgument::from(OsString::from(pid.to_string())));
                if let Err(error) = self.types.take(&self.session, &format!("{name} (pid {pid})"), save) {
                    self.message = error;
                }
                return KeyOutcome::Nothing;
            }
            _ => {}
        }
        KeyOutcome::Ask(ask)
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let [tabs, body, keys] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
                .areas(frame.area());
        let tab = |(screen, title): &(ScreenKind, &'static str)| {
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
            ScreenKind::Processes => self.processes.draw(frame, body),
            ScreenKind::Report => self.report.draw(frame, body),
            ScreenKind::Memory => self.memory.draw(frame, body),
            ScreenKind::Stacks => self.stacks.draw(frame, body),
            ScreenKind::Types => self.types.draw(frame, body, &self.session.snapshots()),
        }
    }

    fn keys(&self) -> &'static str {
        match self.screen {
            ScreenKind::Processes => ProcessScreen::KEYS,
            ScreenKind::Report => ReportScreen::KEYS,
            ScreenKind::Memory => SnapshotScreen::KEYS,
            ScreenKind::Stacks => StackScreen::KEYS,
            ScreenKind::Types => TypeScreen::KEYS,
        }
    }
}

fn help_text() -> Vec<Line<'static>> {
    let screens = [
        ("Processes", ProcessScreen::KEYS),
        ("Report", ReportScreen::KEYS),
        ("Memory", SnapshotScreen::KEYS),
        ("Stacks", StackScreen::KEYS),
        ("Types", TypeScreen::KEYS),
    ];
    let mut lines = vec![
        line("Everywhere: 1 to 5 choose a screen; ↑ ↓ Page Up, Page Down, Home, End move;"),
        line("  j and k also move, except in Stacks; Esc goes to the processes;"),
        line("  q or Ctrl-C ends. Any key closes this text."),
    ];
    for (name, keys) in screens {
        lines.extend([Line::default(), super::cursor::head(name), line(keys)]);
    }
    lines
}
