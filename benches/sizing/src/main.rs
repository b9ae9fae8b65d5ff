//! Measures values with memory-reporter, with handwritten walks and with other crates, in one process.
//!
//! ```text
//! sizing speed [ROUNDS] [SET]   ns a block, and the ratio to a hand-written walk
//! sizing accuracy               error relative to the bytes of a counting allocator
//! sizing hazards                deep lists, held locks, cycles: one child process a case
//! sizing dynamic                the cost of a `dyn` value
//! ```

#![allow(clippy::print_stdout, reason = "the figures are the output")]
#![allow(unused_qualifications, clippy::unused_unit, reason = "code from the derives of other crates")]

mod accuracy;
mod data;
mod dynamic;
mod floor;
mod hazards;
mod rivals;
mod speed;

use std::process::ExitCode;

memory_reporter::global_allocator!(tests::Counting);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |i: usize| arguments.get(i).map_or("", String::as_str);
    match argument(0) {
        "speed" => speed::run(argument(1).parse().unwrap_or(15), argument(2)),
        "accuracy" => accuracy::run(),
        "dynamic" => dynamic::run(),
        "hazards" if arguments.len() == 3 => hazards::run_one(argument(1), argument(2)),
        "hazards" => hazards::run(),
        _ => {
            println!("usage: sizing speed [ROUNDS] [SET] | accuracy | hazards | dynamic");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
