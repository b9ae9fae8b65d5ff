//! The program `memory-fleet`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    memory_fleet::cli::main()
}
