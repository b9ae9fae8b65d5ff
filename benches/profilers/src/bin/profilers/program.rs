//! Runs a program, and reads its output.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program with its environment.
#[derive(Clone)]
pub(crate) struct Program {
    path: PathBuf,
    environment: Vec<(&'static str, OsString)>,
}

/// The costs of one run.
pub(crate) struct Outcome {
    /// The user and system time in seconds.
    pub(crate) cpu: f64,
    pub(crate) peak_kib: f64,
    /// The whole output.
    pub(crate) text: String,
}

impl Program {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, environment: vec![] }
    }

    pub(crate) fn with(&self, name: &'static str, value: impl Into<OsString>) -> Self {
        let mut other = self.clone();
        other.environment.push((name, value.into()));
        other
    }

    pub(crate) fn preloading(&self, library: &Path) -> Self {
        self.with("LD_PRELOAD", library)
    }

    pub(crate) fn run(&self, workload: &str, scale: f64) -> Result<Outcome, Box<dyn Error>> {
        let text = self.output(&[workload, &scale.to_string()])?;
        Ok(Outcome { cpu: field(&text, "cpu")?, peak_kib: field(&text, "peak_kib")?, text })
    }

    /// The nanoseconds that the program's allocator adds to an allocation and its deallocation.
    pub(crate) fn added_to_pair(&self) -> Result<f64, Box<dyn Error>> {
        let text = self.output(&["pairs"])?;
        Ok(field(&text, "pair_ns")? - field(&text, "system_pair_ns")?)
    }

    fn output(&self, arguments: &[&str]) -> Result<String, Box<dyn Error>> {
        let mut command = Command::new(&self.path);
        command.args(arguments).env_remove("DMD").env_remove("LD_PRELOAD");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output = command.output().map_err(|error| format!("{}: {error}", self.path.display()))?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}: {error}", self.path.display(), output.status).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// The number after `name=`.
pub(crate) fn field(text: &str, name: &str) -> Result<f64, Box<dyn Error>> {
    let value = text.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    Ok(value.ok_or_else(|| format!("no {name} in {text:?}"))?.parse()?)
}
