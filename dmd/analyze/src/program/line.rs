//! Lines of a view: amounts, and frames with their names and places side by side.

use core::fmt::Write as _;

use super::ProgramOptions;
use super::short_name;
use super::short_path::Workspace;
use crate::clean::Clean;
use crate::fold::is_of_program;
use crate::frame::Frame;
use crate::type_name::Verdict;

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// The least columns that a name gets beside its place.
const LEAST_NAME: usize = 24;

/// Text in bold, if the view has colours.
pub(super) fn bold(text: &str, options: &ProgramOptions) -> String {
    if options.colour { format!("{BOLD}{text}{PLAIN}") } else { text.to_owned() }
}

/// Text that is less important.
pub(super) fn dim(text: &str, options: &ProgramOptions) -> String {
    if options.colour { format!("{DIM}{text}{PLAIN}") } else { text.to_owned() }
}

/// Bytes as people read them, such as `44.04 MB`, in units of 1,024.
pub(super) fn bytes(amount: i128) -> String {
    let units = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = amount as f64;
    let mut unit = 0;
    while value.abs() >= 1023.995 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{amount} B") } else { format!("{value:.2} {}", units[unit]) }
}

/// The name of a frame's function. A function without a name has its module and place there.
pub(super) fn name(frame: &Frame<'_>, width: usize, options: &ProgramOptions) -> String {
    let Some(function) = frame.function else {
        let module = frame.module.map_or("???", |module| module.rsplit('/').next().unwrap_or(module));
        return Clean(&format!("{module}+0x{:x}", frame.offset.unwrap_or_default())).to_string();
    };
    let name = if options.verbose { function.to_owned() } else { short_name::function(function, width) };
    Clean(&name).to_string()
}

/// What is known about the type of blocks.
pub(super) fn type_name(verdict: &Verdict, width: usize, options: &ProgramOptions) -> String {
    let whole = verdict.to_string();
    let text = match verdict {
        _ if options.verbose => whole,
        Verdict::Typed { .. } => short_name::type_name(&whole, width),
        Verdict::In { .. } => short_name::function(&whole, width),
    };
    Clean(&text).to_string()
}

/// The place of a frame: its source line, or else its module.
pub(super) fn place(frame: &Frame<'_>, workspace: &Workspace, options: &ProgramOptions) -> String {
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
    Clean(&place).to_string()
}

/// Frames as lines: the names in one column, the places in another. Frames of the program itself have a mark.
pub(super) fn frames(
    frames: &[Frame<'_>],
    indent: &str,
    workspace: &Workspace,
    options: &ProgramOptions,
) -> Vec<String> {
    let places: Vec<String> = frames.iter().map(|frame| place(frame, workspace, options)).collect();
    let room = options.width.saturating_sub(indent.len() + "> ".len() + "  ".len());
    let longest = |texts: &[String]| texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let for_places = longest(&places).min(room.saturating_sub(LEAST_NAME).max(room / 2));
    let for_names = room - for_places;
    let names: Vec<String> = frames.iter().map(|frame| name(frame, for_names, options)).collect();
    let column = longest(&names).min(for_names);
    let line = |((frame, name), place): ((&Frame<'_>, &String), &String)| {
        let own = is_of_program(frame);
        let place = if options.verbose { place.clone() } else { end(place, for_places) };
        let padding = " ".repeat(column.saturating_sub(name.chars().count()));
        let name = if own { bold(name, options) } else { name.clone() };
        let text =
            format!("{indent}{} {name}{padding}  {}", if own { ">" } else { " " }, dim(&place, options));
        text.trim_end().to_owned()
    };
    frames.iter().zip(&names).zip(&places).map(line).collect()
}

/// The start of a text that is too long.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let start: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{start}…")
}

/// A path that is too long, without its middle: the package, the file's name and its line say the most.
pub(super) fn end(path: &str, width: usize) -> String {
    let length = path.chars().count();
    if length <= width {
        return path.to_owned();
    }
    if let (Some((package, _)), Some((_, file))) = (path.split_once('/'), path.rsplit_once('/')) {
        let short = format!("{package}/…/{file}");
        if package != "…" && short.chars().count() <= width {
            return short;
        }
    }
    let rest: String = path.chars().skip(length + 1 - width.max(1)).collect();
    format!("…{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units() {
        for (amount, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KB"),
            (-1_048_576, "-1.00 MB"),
            (1_048_575, "1.00 MB"),
            (i128::from(u64::MAX), "16.00 EB"),
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
        let long = Frame { function: Some(name), file: Some(file), line: Some(1234), ..Frame::default() };
        let workspace = Workspace::default();
        for width in [40, 60, 100, 120] {
            let options = ProgramOptions { width, ..ProgramOptions::default() };
            for line in frames(&[long, long], "    ", &workspace, &options) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}
