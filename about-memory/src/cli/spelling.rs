//! Arguments as Python's `argparse` accepts them, for the commands that replace Firefox's scripts.

use std::ffi::OsString;

/// Long options of `dmd.py`.
const DMD: &[&str] = &[
    "--help",
    "--output",
    "--max-frames",
    "--sort-by",
    "--ignore-alloc-fns",
    "--no-fix-stacks",
    "--clamp-contents",
    "--print-clamp-stats",
    "--filter-stacks-for-testing",
    "--filter",
];

/// Long options of `block_analyzer.py`.
const BLOCK: &[&str] = &[
    "--help",
    "--info",
    "--max-stack-frame-length",
    "--ignore-alloc-fns",
    "--max-frames",
    "--chain-reports",
];

/// Converts spellings that the scripts accept and clap does not: an unambiguous prefix of a script's option, and
/// `-sfl`, a short option of three letters. An option of the command itself stays as it is: `ours(command, name)`
/// returns true for it.
pub(super) fn spelled(
    arguments: impl Iterator<Item = OsString>,
    ours: impl Fn(&str, &str) -> bool,
) -> impl Iterator<Item = OsString> {
    let mut command: Option<OsString> = None;
    let mut only_values = false;
    arguments.enumerate().map(move |(index, argument)| {
        // `heap block` has the same options as `block`.
        if index == 1 || index == 2 && command.as_ref().is_some_and(|command| command == "heap") {
            command = Some(argument.clone());
        }
        only_values |= argument == "--";
        let command = command.as_deref().and_then(|command| command.to_str()).unwrap_or_default();
        let options = match command {
            "dmd" => DMD,
            "block" => BLOCK,
            _ => return argument,
        };
        let Some(text) = argument.to_str().filter(|_| index > 1 && !only_values) else { return argument };
        let (name, value) = match text.split_once('=') {
            Some((name, _)) => (name, &text[name.len()..]),
            None => (text, ""),
        };
        if name == "-sfl" && command == "block" {
            return format!("--max-stack-frame-length{value}").into();
        }
        if name.len() < 3 || !name.starts_with("--") || ours(command, &name[2..]) {
            return argument;
        }
        let mut meant = options.iter().filter(|option| option.starts_with(name));
        match (meant.next(), meant.next()) {
            (Some(option), None) => format!("{option}{value}").into(),
            _ => argument,
        }
    })
}

/// Parses a number of frames as Python's `int` does.
pub(super) fn frames(text: &str) -> Result<u16, String> {
    let digits = text.trim();
    let unsigned = digits.strip_prefix('+').unwrap_or(digits);
    let joined = !unsigned.starts_with('_') && !unsigned.ends_with('_') && !unsigned.contains("__");
    let number = unsigned.replace('_', "").parse::<u16>();
    match number {
        Ok(number @ 1..=24) if joined => Ok(number),
        _ => Err("not in the range 1..24".to_owned()),
    }
}
