//! Tells the crate whether std can look into its lazy values, as it can from Rust 1.94 on.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(lazy_get)");
    if std_shows_lazy_values().unwrap_or(false) {
        println!("cargo::rustc-cfg=lazy_get");
    }
}

/// By the version that the compiler tells, `rustc 1.94.0 (...)`; of pre-releases only the next
/// minor version is sure.
fn std_shows_lazy_values() -> Option<bool> {
    let rustc = env::var_os("RUSTC")?;
    let told = String::from_utf8(Command::new(rustc).arg("--version").output().ok()?.stdout).ok()?;
    let version = told.strip_prefix("rustc 1.")?.split(' ').next()?;
    let minor: u32 = version.split('.').next()?.parse().ok()?;
    Some(minor > 94 || minor == 94 && !version.contains('-'))
}
