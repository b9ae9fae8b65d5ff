//! Builds `libdmd.so` and embeds it into the program, so that an installation is one file. Only optimized builds embed
//! the library. A program of another build looks for the library in cargo's folders.
//!
//! `$ABOUT_MEMORY_LIBDMD` names a library that is already built. If the library's build fails, the result is a warning
//! or, with `$ABOUT_MEMORY_NEEDS_LIBDMD`, an error.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The profile's name, in the workspace and in `libdmd/manifest.toml`.
const PROFILE: &str = "dist";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ABOUT_MEMORY_LIBDMD");
    println!("cargo::rerun-if-env-changed=ABOUT_MEMORY_NEEDS_LIBDMD");
    println!("cargo::rustc-check-cfg=cfg(contains_libdmd)");
    if env::var_os("CARGO_FEATURE_PROGRAM").is_none() {
        return;
    }
    let library = match env::var_os("ABOUT_MEMORY_LIBDMD") {
        Some(path) => Ok(PathBuf::from(path)),
        None if is_optimized() && is_for_linux() => build(),
        None => return,
    };
    match library.and_then(|path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display())))
    {
        Ok(path) => {
            println!("cargo::rerun-if-changed={}", path.display());
            println!("cargo::rustc-env=LIBDMD={}", path.display());
            println!("cargo::rustc-cfg=contains_libdmd");
        }
        Err(reason) if env::var_os("ABOUT_MEMORY_NEEDS_LIBDMD").is_some() => {
            println!("cargo::error=libdmd.so cannot be built: {reason}");
        }
        // The program is useful without the library, and its option `--library` can name another file of the library.
        Err(reason) => println!("cargo::warning=about-memory will not contain libdmd.so: {reason}"),
    }
}

fn is_optimized() -> bool {
    env::var_os("PROFILE").is_some_and(|profile| profile == "release")
}

fn is_for_linux() -> bool {
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    target("OS") == "linux"
        && target("ENV") == "gnu"
        && ["x86_64", "aarch64"].contains(&target("ARCH").as_str())
}

/// Builds the library with a second cargo, in its own target folder. The build needs no network: the program has the
/// same dependencies, so cargo has downloaded them already.
fn build() -> Result<PathBuf, String> {
    let variable = |name: &str| env::var_os(name).ok_or_else(|| format!("${name} is not set"));
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?);
    let target = variable("TARGET")?;
    let repository = package.join("../dmd/preload/Cargo.toml");
    let is_repository = repository.exists();
    if is_repository {
        // Printed before the build, so that cargo watches these files even if the build fails.
        for path in ["dmd", "reporter/src", "reporter/model/src", "Cargo.toml", "Cargo.lock"] {
            println!("cargo::rerun-if-changed={}", package.join("..").join(path).display());
        }
    }
    let manifest = if is_repository { repository } else { copied(&package.join("libdmd"), &out)? };
    let target_folder = out.join("libdmd-target");
    let mut cargo = Command::new(variable("CARGO")?);
    cargo.args(["build", "--quiet", "--lib", "--offline", "--profile", PROFILE, "--manifest-path"]);
    cargo.arg(manifest).arg("--target-dir").arg(&target_folder).arg("--target").arg(&target);
    if is_repository {
        cargo.arg("--locked");
    }
    // The library's build ignores the options of the program's build, such as sanitizers or clippy's wrapper.
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_TARGET"] {
        cargo.env_remove(name);
    }
    let output = cargo.output().map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(errors.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; "));
    }
    let built = target_folder.join(target).join(PROFILE);
    let stripped = out.join("libdmd.so");
    fs::copy(built.join("libdmd.so"), &stripped).map_err(|error| format!("it cannot be copied: {error}"))?;
    // The stripped file is a fifth smaller, and keeps the names that the loader and debuggers need. If `strip` is
    // missing, the library still works.
    let _ = Command::new("strip").arg("--strip-all").arg(&stripped).status();
    Ok(stripped)
}

/// Copies the library's sources and manifest to a folder that cargo can write to. Returns the path of the copied
/// manifest.
fn copied(sources: &Path, out: &Path) -> Result<PathBuf, String> {
    let copy = out.join("libdmd-sources");
    let failure = |error: std::io::Error| format!("its sources cannot be copied: {error}");
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(failure)?;
    }
    fs::create_dir_all(copy.join("src")).map_err(failure)?;
    for entry in fs::read_dir(sources.join("src")).map_err(failure)? {
        let entry = entry.map_err(failure)?;
        fs::copy(entry.path(), copy.join("src").join(entry.file_name())).map_err(failure)?;
    }
    let manifest = copy.join("Cargo.toml");
    fs::copy(sources.join("manifest.toml"), &manifest).map_err(failure)?;
    Ok(manifest)
}
