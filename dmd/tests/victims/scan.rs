//! A program that switches recording on by itself, in scan mode. Usage: `scan FILE`.

use std::alloc::System;
use std::hint::black_box;

use dmd::{Dmd, Mode, Options};

#[global_allocator]
static ALLOCATOR: Dmd<System> = Dmd::switched_on(System, Options::new().mode(Mode::Scan).quiet(true));

fn main() {
    let file = std::env::args_os().nth(1).expect("a file");
    for _ in 0..100 {
        black_box(Box::leak(vec![1_u8; 33].into_boxed_slice()));
    }
    dmd::dump(&file).expect("a dump");
}
