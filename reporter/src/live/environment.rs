//! The environment variable `ABOUT_MEMORY`, which is read once before `main`.

use std::io::Write as _;

use super::{ListenGuard, ListenOptions, listen_to_signals, listen_until_dropped};
use crate::platform;
use crate::process_lock::ProcessLock;

/// The socket that the variable requested.
static LISTENING: ProcessLock<Option<ListenGuard>> = ProcessLock::new(None);

/// The name of the variable.
const NAME: &str = "ABOUT_MEMORY";

fn words() -> Vec<String> {
    let value = std::env::var_os(NAME).unwrap_or_default();
    let value = value.to_string_lossy();
    value.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether the variable requests that this process listens, and the process may trust its environment.
pub fn is_asked_to_listen() -> bool {
    !platform::runs_with_other_rights() && words().iter().any(|word| word == "listen")
}

pub(crate) fn start_up() {
    for word in words() {
        let word = &*word;
        let result = match word.split_once('=') {
            None if word == "listen" => listen_until_dropped(&ListenOptions::new()).map(keep),
            None if word == "signals" => listen_to_signals(std::env::temp_dir()),
            Some(("signals", folder)) if !folder.is_empty() => listen_to_signals(folder),
            _ => {
                say(&format!("unknown word {word:?}: expected listen, signals or signals=FOLDER"));
                continue;
            }
        };
        if let Err(error) = result {
            say(&format!("{word:?}: {error}"));
        }
    }
}

fn keep(listening: ListenGuard) {
    *LISTENING.lock() = Some(listening);
}

/// Stops the listener and the signal handlers that the environment variable `ABOUT_MEMORY` started in this process. A
/// program calls this function if the variable is for the programs that it starts. The variable stays in the
/// environment.
pub fn ignore_environment() {
    let listening = LISTENING.lock().take();
    drop(listening);
    platform::ignore_triggers();
}

/// Writes to stderr. The program has made no call, so no caller could receive an error.
fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "memory-reporter: ABOUT_MEMORY: {message}");
}
