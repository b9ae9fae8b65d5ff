//! Compares the compile time of memory-reporter's derive with the compile time of serde's `Serialize`.
//!
//! `cargo run --release -p benches --bin compile_time -- [ROUNDS]`
//!
//! Writes two crates of 200 structs with 10 fields each. Each struct has a derive, and code that uses the derive: every
//! reading of memory-reporter in the first crate, and `serde_json::to_string` in the second crate. Cargo builds the
//! dependencies first. Then each round compiles both crates again, one after the other.

#![allow(clippy::print_stdout, reason = "the figures are the output")]

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

const STRUCTS: usize = 200;
const FIELDS: [&str; 10] = [
    "String",
    "u32",
    "Vec<u8>",
    "Option<String>",
    "HashMap<String, u64>",
    "Vec<String>",
    "Box<u64>",
    "bool",
    "BTreeMap<u32, String>",
    "(f64, f64)",
];

/// One crate: its derive, its dependencies, and its code for each struct.
struct Subject {
    name: &'static str,
    derive: &'static str,
    dependencies: String,
    /// Expressions that use a value; `{}` is replaced by the value.
    uses: &'static [&'static str],
}

fn source(subject: &Subject) -> Result<String, Box<dyn Error>> {
    let mut text = "#![allow(dead_code)]\nuse std::collections::{BTreeMap, HashMap};\n".to_owned();
    for i in 0..STRUCTS {
        writeln!(text, "#[derive({})]\npub struct S{i} {{", subject.derive)?;
        for (f, ty) in FIELDS.iter().enumerate() {
            writeln!(text, "    f{f}: {ty},")?;
        }
        // Each struct contains the struct before it, as in a real program.
        if i > 0 {
            writeln!(text, "    before: Option<Box<S{}>>,", i - 1)?;
        }
        writeln!(text, "}}")?;
        for (u, expression) in subject.uses.iter().enumerate() {
            let expression = expression.replace("{}", "value");
            writeln!(text, "pub fn use_{i}_{u}(value: &S{i}) -> usize {{ {expression} }}")?;
        }
    }
    Ok(text)
}

fn compile(folder: &Path, target: &Path) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--offline"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(start.elapsed().as_secs_f64())
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = env::args().nth(1).map_or(Ok(5), |n| n.parse::<usize>())?;
    let workspace =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the workspace folder does not exist")?;
    let subjects = [
        Subject {
            name: "ours",
            derive: "memory_reporter::MallocSizeOf",
            dependencies: format!("memory-reporter = {{ path = {:?} }}", workspace.join("reporter")),
            uses: &[
                "memory_reporter::computed_size_of({})",
                "memory_reporter::malloc_size_of({})",
                "memory_reporter::MallocSizeOfOps::computed().erased(|ops| memory_reporter::MallocSizeOf::size_of_excluding_this({}, ops))",
            ],
        },
        Subject {
            name: "serde",
            derive: "serde::Serialize",
            dependencies: "serde = { version = \"1\", features = [\"derive\"] }\nserde_json = \"1\""
                .to_owned(),
            uses: &["serde_json::to_string({}).map_or(0, |text| text.len())"],
        },
    ];
    let root = tempfile::tempdir()?;
    let target = root.path().join("target");
    for subject in &subjects {
        let folder = root.path().join(subject.name);
        fs::create_dir_all(folder.join("src"))?;
        fs::copy(workspace.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        fs::write(
            folder.join("Cargo.toml"),
            format!(
                "[package]\nname = \"subject-{}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[dependencies]\n{}\n[workspace]\n",
                subject.name, subject.dependencies
            ),
        )?;
        fs::write(folder.join("src/lib.rs"), "")?;
        compile(&folder, &target)?;
    }
    let mut seconds = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (subject, seconds) in subjects.iter().zip(&mut seconds) {
            let folder = root.path().join(subject.name);
            fs::write(folder.join("src/lib.rs"), format!("// round {round}\n{}", source(subject)?))?;
            seconds.push(compile(&folder, &target)?);
        }
    }
    let medians: Vec<f64> = seconds
        .iter_mut()
        .map(|times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        })
        .collect();
    println!("{STRUCTS} structs of {} fields, {rounds} rounds, debug build", FIELDS.len());
    for (subject, median) in subjects.iter().zip(&medians) {
        println!("{:<6} {median:.2} s", subject.name);
    }
    println!("memory-reporter to serde: {:.2}", medians[0] / medians[1]);
    Ok(())
}
