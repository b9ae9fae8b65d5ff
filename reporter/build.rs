//! Tells the crate whether std can look into its lazy values, as it can from Rust 1.94 on.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(lazy_get)");
    if minor_version().is_some_and(|minor| minor >= 94) {
        println!("cargo::rustc-cfg=lazy_get");
    }
}

/// The 94 of `rustc 1.94.0 (...)`.
fn minor_version() -> Option<u32> {
    let rustc = env::var_os("RUSTC")?;
    let version = String::from_utf8(Command::new(rustc).arg("--version").output().ok()?.stdout).ok()?;
    version.strip_prefix("rustc 1.")?.split('.').next()?.parse().ok()
}
