//! Tests that the parser accepts each command line of the documentation and of `--help`.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser as _};

use super::{Arguments, spelled};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The pages of the guide.
fn pages() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(root().join("docs/src")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "md"))
}

/// Returns the simple commands of a shell line, as words. Understands quotes, comments, redirections and the characters
/// that separate commands.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote) = (None::<String>, None);
    let mut redirected = false;
    for character in line.chars().chain(['\n']) {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | ';' | '&' | '>' | '<' | ' ' | '\n') => {
                if let Some(word) = word.take()
                    && !std::mem::take(&mut redirected)
                {
                    commands.last_mut().unwrap().push(word);
                }
                match character {
                    '|' | ';' | '&' => commands.push(Vec::new()),
                    '>' | '<' => redirected = true,
                    _ => {}
                }
            }
            (None, _) => word.get_or_insert_default().push(character),
        }
    }
    assert!(quote.is_none(), "unclosed quote: {line}");
    commands
}

/// Returns the number of `about-memory` commands in this line, or the parser's first error.
fn check(line: &str) -> Result<usize, String> {
    let mut seen = 0;
    for mut command in commands(line) {
        let is_assignment = |word: &String| word.contains('=') && !word.starts_with('-');
        command.drain(..command.iter().take_while(|word| is_assignment(word)).count());
        if command.first().is_some_and(|program| program == "about-memory") {
            Arguments::try_parse_from(spelled(command.iter().map(OsString::from)))
                .map_err(|error| format!("{line}\n{error}"))?;
            seen += 1;
        }
    }
    Ok(seen)
}

/// The lines of the fenced `sh` blocks.
fn shell_lines(markdown: &str) -> impl Iterator<Item = &str> {
    let blocks = markdown.split("```sh\n").skip(1);
    blocks.flat_map(|block| block.split("```").next().unwrap().lines())
}

fn check_all<'a>(place: &str, lines: impl Iterator<Item = &'a str>) -> usize {
    lines.map(|line| check(line).unwrap_or_else(|error| panic!("{place}: {error}"))).sum()
}

#[test]
fn the_parser_accepts_what_the_documentation_shows() {
    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "about-memory/README.md"];
    let mut seen = 0;
    for path in pages().chain(others.map(|file| root().join(file))) {
        let text = fs::read_to_string(&path).unwrap();
        seen += check_all(&path.display().to_string(), shell_lines(&text));
    }
    assert!(seen > 40, "only {seen} command lines were found");
}

#[test]
fn the_parser_accepts_what_help_shows() {
    fn examples(command: &clap::Command) -> usize {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
        let own = check_all(command.get_name(), lines.filter(|line| line.contains("about-memory ")));
        own + command.get_subcommands().map(examples).sum::<usize>()
    }
    let seen = examples(&Arguments::command());
    assert!(seen > 60, "only {seen} command lines were found");
}

#[test]
fn commands_that_the_documentation_names_exist() {
    let command = Arguments::command();
    let mut seen = 0;
    for page in pages() {
        let text = fs::read_to_string(page).unwrap();
        for mention in text.split("`about-memory ").skip(1) {
            let mut level = &command;
            for word in mention.split('`').next().unwrap().split_whitespace() {
                if word.starts_with('-') || !level.has_subcommands() {
                    break;
                }
                level = level.find_subcommand(word).unwrap_or_else(|| panic!("about-memory {word}"));
            }
            seen += 1;
        }
    }
    assert!(seen > 5, "only {seen} command lines were found");
}

#[test]
fn the_parser_refuses_what_it_does_not_know() {
    for line in [
        "about-memory shwo memory-report.json.gz",
        "zcat x.json.gz | about-memory show - --no-such-option",
        "A=1 about-memory diff before.json.gz",
        "about-memory diff a b --fail-if 'explicit'",
    ] {
        assert!(check(line).is_err(), "{line}");
    }
    assert_eq!(check("DMD=1 my-program & about-memory list # | about-memory x"), Ok(1));
    assert_eq!(commands("a 'b c' > d | e --f=\"g\""), [vec!["a", "b c"], vec!["e", "--f=g"]]);
}
