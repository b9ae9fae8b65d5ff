//! Sets `cfg(lazy_get)` if std gives access to the values of its lazy types, as Rust 1.94 and later versions do.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(lazy_get)");
    if std_shows_lazy_values().unwrap_or(false) {
        println!("cargo::rustc-cfg=lazy_get");
    }
}

/// Reads the output of `rustc --version`, such as `rustc 1.94.0 (...)`. A pre-release of 1.94 does not count; a
/// pre-release of a later version does. `None` if the version cannot be read.
fn std_shows_lazy_values() -> Option<bool> {
    let rustc = env::var_os("RUSTC")?;
    let told = String::from_utf8(Command::new(rustc).arg("--version").output().ok()?.stdout).ok()?;
    let version = told.strip_prefix("rustc 1.")?.split(' ').next()?;
    let minor: u32 = version.split('.').next()?.parse().ok()?;
    Some(minor > 94 || minor == 94 && !version.contains('-'))
}
