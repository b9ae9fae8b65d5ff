//! Runs the smoke steps under `libdmd.so`. Usage: `smoke_preloaded FOLDER`, with `DMD` and `LD_PRELOAD` set.

#[path = "smoke/steps.rs"]
mod steps;

fn main() {
    steps::run(std::env::args_os().nth(1).expect("a folder").as_ref());
}
