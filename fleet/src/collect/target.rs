//! Targets: what is asked, and when.

use std::collections::HashMap;
use std::time::Duration;

use super::MAX_BACK_OFF;
use crate::life::LifeHash;

/// A process that answers over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectTarget {
    /// The address, such as `http://10.0.0.7:9090/memory/report`.
    pub url: String,
    /// The name of the service; `None` takes it from the reports.
    pub service: Option<String>,
    /// The version of the service.
    pub version: Option<String>,
    /// The name of the machine; `None` takes it from the address.
    pub host: Option<String>,
}

/// The path of a target without a path.
const PATH: &str = "/memory/report";

impl CollectTarget {
    /// Parses `http://HOST:PORT[/PATH] [service=NAME] [version=VERSION] [host=NAME]`.
    ///
    /// # Errors
    ///
    /// Returns what is wrong.
    pub fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let url = words.next().unwrap_or_default();
        let rest = url.strip_prefix("http://").ok_or_else(|| {
            format!("{url:?} does not start with http://; memory-fleet has no TLS, so ask https servers through a proxy")
        })?;
        let (authority, path) =
            rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
        let port = authority.rsplit_once(':').map(|(_, port)| port).unwrap_or_default();
        if port.parse::<u16>().is_err() || authority.starts_with(':') || authority.contains('@') {
            return Err(format!("{url:?} is not http://HOST:PORT/PATH"));
        }
        let path = if path.is_empty() { PATH.to_owned() } else { format!("/{path}") };
        let mut target =
            Self { url: format!("http://{authority}{path}"), service: None, version: None, host: None };
        for word in words {
            match word.split_once('=') {
                Some(("service", value)) if !value.is_empty() => target.service = Some(value.to_owned()),
                Some(("version", value)) if !value.is_empty() => target.version = Some(value.to_owned()),
                Some(("host", value)) if !value.is_empty() => target.host = Some(value.to_owned()),
                _ => return Err(format!("{word:?} is not service=NAME, version=VERSION or host=NAME")),
            }
        }
        Ok(target)
    }

    /// The host and the port.
    pub(super) fn authority(&self) -> &str {
        self.url["http://".len()..].split('/').next().unwrap_or_default()
    }

    pub(super) fn path(&self) -> &str {
        &self.url["http://".len() + self.authority().len()..]
    }

    /// The target's place in the first three quarters of an interval, so that there is time for slow answers.
    pub fn place(&self, interval: Duration) -> Duration {
        let mut hash = LifeHash::new();
        hash.text(&self.url);
        interval.mul_f64(0.75 * (hash.0 >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

/// Parses a file with a target on each line. Empty lines and lines with `#` at their start are comments.
///
/// # Errors
///
/// Returns the number of the line, and what is wrong.
pub fn parse_targets(text: &str) -> Result<Vec<CollectTarget>, String> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(number, line)| CollectTarget::parse(line).map_err(|error| format!("line {number}: {error}")))
        .collect()
}

/// Targets that failed, with the round in which they are asked again.
#[derive(Default)]
pub(super) struct FailingTargets {
    by_url: HashMap<String, FailingTarget>,
}

struct FailingTarget {
    next: u64,
    rounds: u32,
}

impl FailingTargets {
    pub(super) fn must_wait(&self, target: &CollectTarget, round: u64) -> bool {
        self.by_url.get(&target.url).is_some_and(|failing| round < failing.next)
    }

    pub(super) fn note(&mut self, target: &CollectTarget, round: u64, is_ok: bool) {
        if is_ok {
            self.by_url.remove(&target.url);
            return;
        }
        // The first failure is often a restart, so the target is asked again in the next round.
        let failing = self.by_url.entry(target.url.clone()).or_insert(FailingTarget { next: 0, rounds: 0 });
        failing.rounds = (failing.rounds * 2).clamp(1, MAX_BACK_OFF);
        failing.next = round + u64::from(failing.rounds);
    }
}
