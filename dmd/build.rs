//! Chooses the engine of the target, as `cfg(engine = "...")`: `native` on Linux on `x86_64` and `aarch64`, `portable`
//! on other 64-bit Linux, macOS and Windows. For all other targets the `cfg` is not set.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(engine, values(\"native\", \"portable\"))");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let (system, processor) = (target("OS"), target("ARCH"));
    let is_forced = env::var_os("CARGO_FEATURE_PORTABLE_ENGINE").is_some();
    let has_native = system == "linux" && ["x86_64", "aarch64"].contains(&processor.as_str());
    let has_portable =
        ["linux", "macos", "windows"].contains(&system.as_str()) && target("POINTER_WIDTH") == "64";
    if has_native && !is_forced {
        println!("cargo::rustc-cfg=engine=\"native\"");
    } else if has_portable {
        println!("cargo::rustc-cfg=engine=\"portable\"");
    }
}
