//! The engine that runs queries: this process, or a cluster of Ballista.

use core::fmt;
use core::str::FromStr;

/// The engine of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryEngine {
    /// This process.
    #[default]
    Local,
    /// The scheduler of a cluster of Ballista, as HOST:PORT. Needs the feature `ballista`.
    Ballista(String),
}

const SCHEME: &str = "ballista://";

impl fmt::Display for QueryEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Ballista(scheduler) => write!(f, "{SCHEME}{scheduler}"),
        }
    }
}

impl FromStr for QueryEngine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "local" {
            return Ok(Self::Local);
        }
        let scheduler = text.strip_prefix(SCHEME).map(|rest| rest.trim_end_matches('/'));
        let port = scheduler.and_then(|scheduler| scheduler.rsplit_once(':'));
        match (scheduler, port) {
            (Some(scheduler), Some((host, port))) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                if !cfg!(feature = "ballista") {
                    return Err("this program was built without the feature ballista".to_owned());
                }
                Ok(Self::Ballista(scheduler.to_owned()))
            }
            _ => Err(format!("{text:?} is neither local nor {SCHEME}HOST:PORT")),
        }
    }
}
