//! Observers of allocations in a program: the program `watching` checks itself, under either engine.

use std::process::Command;

use crate::support::{command, libdmd, succeed, victim};

const CASES: [&str; 10] = [
    "settings",
    "rows",
    "entries",
    "overflow",
    "shares",
    "two-limits",
    "threads",
    "classes",
    "collections",
    "forks",
];

fn watching(case: &str) -> Command {
    let mut command = command(victim("watching"));
    command.arg(case);
    command
}

#[test]
fn an_observer_needs_an_engine() {
    succeed(&mut watching("nothing"));
}

#[test]
fn the_linked_engine_keeps_logs() {
    for case in CASES {
        succeed(watching(case).env("DMD", "--mode=live --stacks=full --quiet"));
    }
}

#[test]
fn an_engine_that_takes_a_sample_keeps_no_logs_and_says_so() {
    let options = "--mode=live --sample-bytes=1000 --quiet";
    succeed(watching("sampled").env("DMD", options));
    let mut command = watching("sampled");
    succeed(command.env("LD_PRELOAD", libdmd()).env("DMD", options));
}

/// The preloaded engine looks up no symbols in the process.
#[test]
fn the_preloaded_engine_keeps_logs() {
    for case in CASES {
        let mut command = watching(case);
        command.env("LD_PRELOAD", libdmd()).env("WITHOUT_SYMBOLS", "1");
        succeed(command.env("DMD", "--mode=live --stacks=full --quiet"));
    }
}
