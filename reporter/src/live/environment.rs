//! The environment variable `ABOUT_MEMORY`, which is read once before `main`.

use std::io::Write as _;

use super::{listen, listen_to_signals};

pub(crate) fn start_up() {
    let Some(value) = std::env::var_os("ABOUT_MEMORY") else { return };
    for word in value.to_string_lossy().split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let result = match word.split_once('=') {
            None if word == "listen" => listen().map(super::Listening::forever),
            None if word == "signals" => listen_to_signals(std::env::temp_dir()),
            Some(("signals", folder)) if !folder.is_empty() => listen_to_signals(folder),
            _ => {
                say(&format!("there is no {word:?}, only listen, signals and signals=FOLDER"));
                continue;
            }
        };
        if let Err(error) = result {
            say(&format!("{word:?}: {error}"));
        }
    }
}

/// Writes to stderr: the program has called nothing, so there is no caller to return an error to.
fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "memory-reporter: ABOUT_MEMORY: {message}");
}
