//! The help of the program: its commands under headings, and the first commands to type.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::Arguments;

/// The commands that the help lists, by heading. The help hides all other commands: `detach`, `log`, `mcp`, old spellings and
/// commands for installations.
pub(super) const HEADINGS: [(&str, &[&str]); 5] = [
    ("Record", &["run", "attach", "track"]),
    ("Look", &["show", "top", "serve", "dmd", "history", "leaks", "heap", "snapshot"]),
    ("Ask a running process", &["list", "save"]),
    ("Compare and check", &["diff", "series", "check"]),
    ("Share", &["html", "export"]),
];

const FIRST_STEPS: &str = "\
My program takes too much memory: what do I type?
  about-memory run -- my-program                       Run it. At its end: the code that held the most memory
  about-memory show dmd-1234.json.gz                   Look at any file, and see what to type next
  about-memory run --record app.dmdrec -- my-program   It grows: record every allocation, and then
  about-memory leaks app.dmdrec                        see what it never frees
  about-memory attach 1234                             It runs already: record it from now on
  about-memory show 1234                               Look at the process 1234";

const LAST_LINES: &str = "\
Exit status: 0 on success, 1 if a file cannot be read or no process answers, 2 for wrong usage, 3 if a limit does not
hold. `run` exits with the status of the program.

`about-memory completions SHELL` prints a script that completes arguments, and `about-memory man` the manual page.\n\
`about-memory log PID` writes a line of JSON for each allocation of a running process.\n\
`about-memory mcp` answers an assistant's questions, by the Model Context Protocol.";

/// Returns the parser. Its help lists the commands under headings, and hides all other commands.
pub(super) fn parser() -> Command {
    let mut command = Arguments::command();
    command.build();
    let mut sections = String::new();
    for (heading, names) in HEADINGS {
        let _ = writeln!(sections, "{heading}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let _ = writeln!(sections, "  {name:<10}{}", about.map(ToString::to_string).unwrap_or_default());
        }
        sections.push('\n');
    }
    let template = format!(
        "{{about}}\n\n{FIRST_STEPS}\n\n{{usage-heading}} {{usage}}\n\n{sections}Options:\n{{options}}\n\n{LAST_LINES}\n"
    );
    let listed = |name: &str| HEADINGS.iter().any(|(_, names)| names.contains(&name));
    Arguments::command().help_template(template).mut_subcommands(|command| {
        let is_hidden = !listed(command.get_name());
        command.hide(is_hidden)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use clap::Arg;

    use super::*;

    #[test]
    fn the_help_lists_at_most_18_commands_each_in_one_line() {
        let mut command = parser();
        let help = command.render_long_help().to_string();
        let names: Vec<&str> = HEADINGS.iter().flat_map(|(_, names)| *names).copied().collect();
        assert!(names.len() <= 18, "{}", names.len());
        for name in names {
            let found = command.find_subcommand(name).unwrap_or_else(|| panic!("{name}"));
            let about = found.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("\n  {name:<10}{about}\n")), "{name} {about}: {help}");
        }
        for line in help.lines() {
            assert!(line.chars().count() <= 120, "{line}");
        }
        let first_screen: String = help.lines().take(24).collect();
        assert!(
            first_screen.contains("what do I type?") && first_screen.contains("about-memory leaks"),
            "{help}"
        );
    }

    #[test]
    fn commands_that_help_does_not_list_work() {
        let command = parser();
        let old = [
            "types",
            "waste",
            "why",
            "tasks",
            "block",
            "coverage",
            "detach",
            "dump",
            "log",
            "mcp",
            "minimize",
            "watch",
            "metrics",
            "completions",
            "man",
        ];
        for name in old {
            assert!(command.find_subcommand(name).is_some_and(Command::is_hide_set), "{name}");
        }
        let hidden = command.get_subcommands().filter(|command| command.is_hide_set()).count();
        assert_eq!(hidden, old.len());
    }

    /// Returns the first sentence of an option's help, and the type of its value. All options with a fixed list of
    /// values have the same type.
    fn meaning(option: &Arg) -> (String, String) {
        let help = option.get_help().map(ToString::to_string).unwrap_or_default().replace('\n', " ");
        let sentence =
            help.split_once(". ").map_or(&*help, |(first, _)| first).trim_end_matches('.').to_owned();
        let is_choice = !option.get_possible_values().is_empty() && option.get_action().takes_values();
        let value = match is_choice {
            true => "choice".to_owned(),
            false => format!("{:?}", option.get_value_parser().type_id()),
        };
        (sentence, value)
    }

    fn visit(command: &Command, seen: &mut BTreeMap<String, BTreeMap<(String, String), Vec<String>>>) {
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            let Some(name) = option.get_long() else { continue };
            let commands = seen.entry(name.to_owned()).or_default().entry(meaning(option)).or_default();
            commands.push(command.get_name().to_owned());
        }
        command.get_subcommands().for_each(|command| visit(command, seen));
    }

    fn add_letters(command: &Command, seen: &mut BTreeMap<char, BTreeSet<String>>) {
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            if let (Some(letter), Some(name)) = (option.get_short(), option.get_long()) {
                seen.entry(letter).or_default().insert(name.to_owned());
            }
        }
        command.get_subcommands().for_each(|command| add_letters(command, seen));
    }

    #[test]
    fn a_letter_means_the_same_option_in_all_commands() {
        let mut seen = BTreeMap::new();
        add_letters(&parser(), &mut seen);
        assert!(seen[&'f'].contains("filter") && seen.len() > 8, "{seen:?}");
        seen.retain(|_, names| names.len() > 1);
        assert!(seen.is_empty(), "{seen:?}");
    }

    #[test]
    fn an_option_means_the_same_in_all_commands() {
        let mut seen = BTreeMap::new();
        parser().get_subcommands().for_each(|command| visit(command, &mut seen));
        let different: Vec<_> =
            seen.iter().filter(|(name, meanings)| *name != "by" && meanings.len() > 1).collect();
        assert!(different.is_empty(), "{different:#?}");
        // The keys of `--by` differ between commands, but the first sentence of its help is the same.
        let sentences: BTreeSet<_> = seen["by"].keys().map(|(sentence, _)| sentence).collect();
        assert_eq!(sentences.len(), 1, "{sentences:?}");
        assert!(seen.len() <= 125, "{}", seen.len());
    }
}
