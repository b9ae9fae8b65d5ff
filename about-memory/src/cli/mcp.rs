//! `about-memory mcp`: answers an assistant's questions about memory, over the Model Context Protocol.
//!
//! ```text
//! line      one message on one line: the bounded reader, and the only writer of standard output
//! protocol  both eras of the protocol: discovery, versions, and the errors of requests
//! call      the queue of tool calls: one runs at a time, with progress and cancellation
//! place     the folders whose files the tools may read, and the processes that they may record
//! tool      the list of the tools, their arguments and schemas
//! argument  checked arguments of a call
//! opened    the handles of opened sources, and pages of their tables
//! source    opened files: reports, stacks and graphs
//! answers   what the tools return: answers, detail, changes, capture; schema describes it
//! table     tables of amounts, their order, and the cache of tables
//! page      answers within a number of bytes: rows, sums of the rest, cursors, text
//! ```
//!
//! The server speaks the protocol itself: it has seven methods, and a library for it brings tokio and eighty crates.
//! Names in answers come from measured programs. They are data: `page::quoted` escapes and cuts each of them.

mod answers;
mod argument;
mod call;
mod capture;
mod changes;
mod control;
mod detail;
mod graph_source;
mod line;
mod opened;
mod page;
mod place;
mod protocol;
mod reason;
mod report_source;
mod schema;
mod source;
mod stack_source;
mod table;
mod tool;

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;

use super::Failure;
use super::dump_limits::DumpLimits;
use opened::MemoryTools;
use place::AllowedPlaces;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory mcp                                   # an assistant's settings name this command
  about-memory mcp --root target/heap --root reports
  about-memory mcp --allow-capture my-server
  about-memory mcp --skill > SKILL.md

The server reads requests from standard input and writes answers to standard output, one JSON message on each line, by
the Model Context Protocol (2026-07-28, and the versions with `initialize`). It reads files below --root, and asks
listening processes for their reports. The symbols of a dump come from the programs that the dump names.";

/// The skill for assistants: when to use which tool.
const SKILL: &str = include_str!("../../assets/SKILL.md");

#[derive(Args)]
pub(crate) struct McpCommand {
    /// Read only files below this folder. Repeatable. [default: the current folder, unless the home folder is in it]
    #[arg(long, value_name = "FOLDER")]
    root: Vec<PathBuf>,
    /// Let the assistant record processes with this id or name; `*` stands for any characters. Repeatable.
    #[arg(long, value_name = "PROCESS")]
    allow_capture: Vec<String>,
    /// Print the skill: a text that teaches an assistant to use these tools.
    #[arg(long, conflicts_with_all = ["root", "allow_capture"])]
    skill: bool,
    #[command(flatten)]
    limits: DumpLimits,
}

impl McpCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.skill {
            let mut out = io::stdout().lock();
            return out.write_all(SKILL.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output);
        }
        let places = AllowedPlaces::new(&self.root, self.allow_capture)?;
        protocol::serve(MemoryTools::new(places, self.limits))
    }
}
