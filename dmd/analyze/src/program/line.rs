//! Lines of a view: amounts, and frames with their names and places side by side.

use core::fmt::Write as _;

use super::{ProgramOptions, short_name};
use crate::dump::CallFrame;
use crate::names::Workspace;
use crate::print::CleanText;

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// The minimum number of columns that a name gets beside its place.
const LEAST_NAME: usize = 24;

/// Text in bold, if the view has colours.
pub(super) fn bold(text: &str, options: &ProgramOptions) -> String {
    if options.colour { format!("{BOLD}{text}{PLAIN}") } else { text.to_owned() }
}

/// Text of less importance, in a dim colour if the view has colours.
pub(super) fn dim(text: &str, options: &ProgramOptions) -> String {
    if options.colour { format!("{DIM}{text}{PLAIN}") } else { text.to_owned() }
}

/// Bytes in a readable form, such as `44.04 MiB`.
pub fn bytes(amount: i128) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = amount as f64;
    let mut unit = 0;
    while value.abs() >= 1023.995 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{amount} B") } else { format!("{value:.2} {}", units[unit]) }
}

/// The name of a frame's function. If the name is unknown, the module and the offset in the module.
pub(super) fn name(frame: &CallFrame<'_>, width: usize, options: &ProgramOptions) -> String {
    let Some(function) = frame.function else {
        let module = frame.module.map_or("???", |module| match options.verbose {
            true => module,
            false => module.rsplit('/').next().unwrap_or(module),
        });
        return CleanText(&format!("{module}+0x{:x}", frame.offset.unwrap_or_default())).to_string();
    };
    let name = if options.verbose { function.to_owned() } else { short_name::function(function, width) };
    CleanText(&name).to_string()
}

/// The place of a frame: its source line or, if it is unknown, its module.
pub(super) fn place(frame: &CallFrame<'_>, workspace: &Workspace, options: &ProgramOptions) -> String {
    let place = match (frame.file, frame.module) {
        (Some(file), _) => {
            let mut text = if options.verbose { file.to_owned() } else { workspace.short(file).into_owned() };
            if let Some(line) = frame.line {
                let _ = write!(text, ":{line}");
            }
            text
        }
        (None, Some(module)) if frame.function.is_some() && options.verbose => {
            format!("{module} +0x{:x}", frame.offset.unwrap_or_default())
        }
        (None, Some(module)) if frame.function.is_some() => {
            module.rsplit('/').next().unwrap_or(module).to_owned()
        }
        _ => String::new(),
    };
    CleanText(&place).to_string()
}

/// Frames as lines with two columns, names and places. The program's own frames have a mark.
pub(super) fn frames(
    frames: &[CallFrame<'_>],
    indent: &str,
    workspace: &Workspace,
    options: &ProgramOptions,
) -> Vec<String> {
    let places: Vec<String> = frames.iter().map(|frame| place(frame, workspace, options)).collect();
    let room = options.width.saturating_sub(indent.len() + "> ".len());
    let for_both = room.saturating_sub(GAP);
    let for_places = longest(&places).min(for_both.saturating_sub(LEAST_NAME).max(for_both / 2));
    let names: Vec<String> = frames.iter().map(|frame| name(frame, for_both - for_places, options)).collect();
    let below = options.width.saturating_sub(room) + "    ".len();
    let tails = tails(&names, &places, room, below, options);
    let line = |((frame, name), tail): ((&CallFrame<'_>, &String), String)| {
        let own = workspace.owns(frame);
        let name = if own { bold(name, options) } else { name.clone() };
        format!("{indent}{} {name}{tail}", if own { ">" } else { " " })
    };
    frames.iter().zip(&names).zip(tails).map(line).collect()
}

/// The number of columns between a name and its place.
const GAP: usize = 2;

fn count(text: &str) -> usize {
    text.chars().count()
}

fn longest(texts: &[String]) -> usize {
    texts.iter().map(|text| count(text)).max().unwrap_or(0)
}

/// The places that follow names, in a column if they fit. `room` is the width for a name and its place together.
/// A place that does not fit beside its name goes to the next line, indented by `below` columns.
pub(super) fn tails(
    names: &[String],
    places: &[String],
    room: usize,
    below: usize,
    options: &ProgramOptions,
) -> Vec<String> {
    let least = |place: &str| if options.verbose { count(place) } else { count(&least(place)) };
    let fits = |name: &str, place: &str| count(name) + GAP + least(place) <= room;
    let beside: Vec<(usize, usize)> = names
        .iter()
        .zip(places)
        .filter(|(name, place)| fits(name, place))
        .map(|(name, place)| (count(name), least(place)))
        .collect();
    let name_column = beside.iter().map(|(name, _)| *name).max().unwrap_or(0);
    let place_column = beside.iter().map(|(_, place)| *place).max().unwrap_or(0);
    let column = name_column.min(room.saturating_sub(GAP + place_column));
    let shown = |place: &str, width: usize| {
        dim(&if options.verbose { place.to_owned() } else { end(place, width) }, options)
    };
    let tail = |(name, place): (&String, &String)| {
        if place.is_empty() {
            return String::new();
        }
        if !fits(name, place) {
            let width = options.width.saturating_sub(below);
            return format!("\n{:below$}{}", "", shown(place, width));
        }
        let padding = column.saturating_sub(count(name)) + GAP;
        format!("{:padding$}{}", "", shown(place, room.saturating_sub(count(name) + padding)))
    };
    names.iter().zip(places).map(tail).collect()
}

/// Shortens a text that is too long: removes its middle.
pub(super) fn middle(text: &str, width: usize) -> String {
    let length = count(text);
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let start: String = text.chars().take(kept / 2).collect();
    let end: String = text.chars().skip(length - (kept - kept / 2)).collect();
    if width == 0 { String::new() } else { format!("{start}…{end}") }
}

/// Shortens a path that is too long: removes its middle. The package, the file's name and the line are the most useful
/// parts.
pub(super) fn end(path: &str, width: usize) -> String {
    if count(path) <= width {
        return path.to_owned();
    }
    let mut shorter = (1..path.matches('/').count()).map(|left_out| without_folders(path, left_out));
    shorter.find(|path| count(path) <= width).unwrap_or_else(|| middle(&least(path), width))
}

/// The package, the file's name and the line. For `mod.rs`, also the name of its folder.
fn least(path: &str) -> String {
    let folders = path.matches('/').count();
    let kept = if path.contains("/mod.rs:") { 2 } else { 1 };
    match folders.checked_sub(kept) {
        Some(left_out) if left_out > 0 => without_folders(path, left_out),
        _ => path.to_owned(),
    }
}

/// A path without `left_out` folders after the first folder.
fn without_folders(path: &str, left_out: usize) -> String {
    let mut parts = path.split('/');
    let first = parts.next().unwrap_or_default();
    let rest = parts.skip(left_out).collect::<Vec<_>>().join("/");
    if first == "…" { format!("…/{rest}") } else { format!("{first}/…/{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units() {
        for (amount, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (-1_048_576, "-1.00 MiB"),
            (1_048_575, "1.00 MiB"),
            (i128::from(u64::MAX), "16.00 EiB"),
        ] {
            assert_eq!(bytes(amount), text);
        }
    }

    #[test]
    fn lines_fit() {
        let name =
            "a::very::Long<with::Generics<of::Generics>>::name_that_goes_on_and_on_and_on_and_on_and_on";
        let file =
            "/home/me/.cargo/registry/src/index-1/some-crate-0.22.1/src/some/rather/long/path/to/file.rs";
        let long =
            CallFrame { function: Some(name), file: Some(file), line: Some(1234), ..CallFrame::default() };
        let workspace = Workspace::default();
        for width in [40, 60, 100, 120] {
            let options = ProgramOptions { width, ..ProgramOptions::default() };
            for line in frames(&[long, long], "    ", &workspace, &options).join("\n").lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn paths_keep_the_package_and_the_file() {
        let path = "tantivy-stacker-0.3.0/src/some/memory_arena.rs:209";
        for (width, short) in [
            (50, path),
            (49, "tantivy-stacker-0.3.0/…/some/memory_arena.rs:209"),
            (47, "tantivy-stacker-0.3.0/…/memory_arena.rs:209"),
            (43, "tantivy-stacker-0.3.0/…/memory_arena.rs:209"),
            (21, "tantivy-st…ena.rs:209"),
        ] {
            assert_eq!(end(path, width), short);
        }
        assert_eq!(end("…/b/c/d.c:7", 10), "…/c/d.c:7");
        assert_eq!(least("a-1.0.0/src/b/c/mod.rs:1"), "a-1.0.0/…/c/mod.rs:1");
    }

    #[test]
    fn places_that_do_not_fit_are_on_the_next_line() {
        let texts = |texts: [&str; 2]| texts.map(str::to_owned);
        let names = texts(["short", "a_name_of_20_letters"]);
        let places = texts(["package-1.0.0/src/file.rs:1", "package-1.0.0/src/long/path/file.rs:2"]);
        let mut options = ProgramOptions { width: 50, ..ProgramOptions::default() };
        let lines = |options: &ProgramOptions| {
            let tails = tails(&names, &places, 48, 6, options);
            names.iter().zip(tails).map(|(name, tail)| format!("{name}{tail}")).collect::<Vec<_>>()
        };
        assert_eq!(
            lines(&options),
            [
                "short                 package-1.0.0/…/file.rs:1",
                "a_name_of_20_letters  package-1.0.0/…/file.rs:2"
            ]
        );
        options.verbose = true;
        assert_eq!(
            lines(&options),
            [
                "short  package-1.0.0/src/file.rs:1",
                "a_name_of_20_letters\n      package-1.0.0/src/long/path/file.rs:2"
            ]
        );
    }
}
