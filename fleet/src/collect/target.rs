//! Targets: what is asked, and when.

use std::collections::HashMap;
use std::time::Duration;

use super::MAX_BACK_OFF;
use crate::life::LifeHash;

/// A process that is asked for its reports or its profile, or a name for several processes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectTarget {
    /// The address, such as `http://10.0.0.7:9090/memory/report`.
    ///
    /// `dns://NAME:PORT/PATH` stands for all addresses of a name, and `local:` for the processes of this user on this
    /// machine. A path below `/debug/pprof/` gives a profile.
    pub url: String,
    /// The name of the service; `None` takes it from the reports.
    pub service: Option<String>,
    /// The version of the service.
    pub version: Option<String>,
    /// The name of the machine; `None` takes it from the address.
    pub host: Option<String>,
    /// The start time of the process, since 1970, if it is known.
    pub started: Option<Duration>,
}

/// What an address stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetKind<'a> {
    /// A server.
    Http { authority: &'a str, path: &'a str },
    /// All addresses of a name.
    Name { authority: &'a str, path: &'a str },
    /// All processes of this user on this machine.
    Local,
    /// A process on this machine, by its id.
    Process(u32),
}

impl TargetKind<'_> {
    const HTTP: &'static str = "http://";
    const NAME: &'static str = "dns://";
    const LOCAL: &'static str = "local:";
    pub(super) const PROCESS: &'static str = "pid:";

    /// Whether the address stands for several targets.
    pub(super) fn is_search(self) -> bool {
        matches!(self, Self::Name { .. } | Self::Local)
    }
}

/// The path of a target without a path.
const PATH: &str = "/memory/report";

impl CollectTarget {
    /// Parses `ADDRESS [service=NAME] [version=VERSION] [host=NAME]`. The address is `http://HOST:PORT[/PATH]`,
    /// `dns://NAME:PORT[/PATH]` or `local:`.
    ///
    /// # Errors
    ///
    /// Returns what is wrong.
    pub fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let url = words.next().unwrap_or_default();
        let mut target =
            Self { url: full_url(url)?, service: None, version: None, host: None, started: None };
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

    /// What the address stands for.
    pub(super) fn kind(&self) -> TargetKind<'_> {
        if let Some(pid) = self.url.strip_prefix(TargetKind::PROCESS) {
            return TargetKind::Process(pid.parse().unwrap_or_default());
        }
        if self.url == TargetKind::LOCAL {
            return TargetKind::Local;
        }
        let (scheme, rest) = self.url.split_at(self.url.find("//").map_or(0, |at| at + 2));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        match scheme {
            TargetKind::NAME => TargetKind::Name { authority, path },
            _ => TargetKind::Http { authority, path },
        }
    }

    /// The name of the machine, if no other is given.
    pub(super) fn place_name(&self) -> &str {
        match self.kind() {
            TargetKind::Http { authority, .. } | TargetKind::Name { authority, .. } => authority,
            TargetKind::Local | TargetKind::Process(_) => &self.url,
        }
    }

    /// Whether the answer is a profile of pprof.
    pub(super) fn is_profile(&self) -> bool {
        matches!(self.kind(), TargetKind::Http { path, .. } if path.starts_with("/debug/pprof/"))
    }

    /// The target's place in the first three quarters of an interval, so that there is time for slow answers.
    pub fn place(&self, interval: Duration) -> Duration {
        let mut hash = LifeHash::new();
        hash.text(&self.url);
        interval.mul_f64(0.75 * (hash.0 >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

/// An address with its path.
fn full_url(url: &str) -> Result<String, String> {
    if url == TargetKind::LOCAL {
        return Ok(url.to_owned());
    }
    let schemes = [TargetKind::HTTP, TargetKind::NAME];
    let scheme = schemes.into_iter().find(|scheme| url.starts_with(scheme)).ok_or_else(|| {
        format!(
            "{url:?} does not start with http:// or dns://, and is not local:; memory-fleet has no TLS, so ask https servers \
             through a proxy"
        )
    })?;
    let rest = &url[scheme.len()..];
    let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
    let port = authority.rsplit_once(':').map(|(_, port)| port).unwrap_or_default();
    if port.parse::<u16>().is_err() || authority.starts_with(':') || authority.contains('@') {
        return Err(format!("{url:?} is not {scheme}HOST:PORT/PATH"));
    }
    let path = if path.is_empty() { PATH.to_owned() } else { format!("/{path}") };
    Ok(format!("{scheme}{authority}{path}"))
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
