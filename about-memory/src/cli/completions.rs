//! `about-memory completions` and `about-memory man`.

use std::io::{self, Write as _};

use clap::{Args, Command};
use clap_complete::Shell;

use super::Failure;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory completions bash > ~/.local/share/bash-completion/completions/about-memory
  about-memory completions zsh > ~/.zfunc/_about-memory
  about-memory completions fish > ~/.config/fish/completions/about-memory.fish";

pub(crate) const MAN_EXAMPLES: &str = "\
Examples:
  about-memory man > ~/.local/share/man/man1/about-memory.1
  about-memory man diff | man -l -";

#[derive(Args)]
pub(crate) struct CompletionsCommand {
    /// Write the script for this shell.
    shell: Shell,
}

impl CompletionsCommand {
    pub(super) fn run(self, mut command: Command) -> Result<(), Failure> {
        let name = command.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        io::stdout().write_all(&script).map_err(Failure::Output)
    }
}

#[derive(Args)]
pub(crate) struct ManCommand {
    /// Print the page of this command. [default: the whole program]
    command: Option<String>,
}

impl ManCommand {
    pub(super) fn run(self, command: Command) -> Result<(), Failure> {
        let page = match self.command {
            None => command,
            Some(name) => {
                let Some(found) = command.find_subcommand(&name) else {
                    return Err(Failure::Usage(format!(
                        "{name}: is not a command; list the commands with: about-memory --help"
                    )));
                };
                found
                    .clone()
                    .display_name(format!("about-memory-{name}"))
                    .bin_name(format!("about-memory {name}"))
            }
        };
        let mut roff = Vec::new();
        clap_mangen::Man::new(page).render(&mut roff).map_err(Failure::Output)?;
        io::stdout().write_all(&roff).map_err(Failure::Output)
    }
}
