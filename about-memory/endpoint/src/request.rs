//! Parses paths and queries.

use memory_export::open_metrics::MetricsForm;

use crate::accept;
use crate::options::EndpointOptions;
use crate::response::RefusedRequest;

/// The paths that [`Endpoint::respond`](crate::Endpoint::respond) answers.
pub const PATHS: &[&str] = &[
    "/metrics",
    "/debug/pprof/heap",
    "/debug/pprof/allocs",
    "/memory/report",
    "/memory/snapshot",
    "/memory/last",
];

/// A parsed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndpointRequest {
    Metrics(MetricsForm),
    /// A profile or, with a number of seconds, the difference of two profiles.
    Profile(Option<u64>),
    Report {
        is_compressed: bool,
    },
    Snapshot,
    /// The last dump of an earlier process.
    Last,
}

/// Whether an error for this path must have the form that pprof servers use.
pub(crate) fn is_pprof(path: &str) -> bool {
    path.starts_with("/debug/pprof/")
}

impl EndpointRequest {
    pub(crate) fn parse(
        path: &str,
        query: &str,
        accept: &str,
        options: &EndpointOptions,
    ) -> Result<Self, RefusedRequest> {
        let request = match path {
            "/metrics" => Self::Metrics(accept::form(accept)),
            "/debug/pprof/heap" | "/debug/pprof/allocs" => return profile(path, query, options),
            "/memory/report" => Self::Report { is_compressed: accept::is_gzip(accept) },
            "/memory/snapshot" => Self::Snapshot,
            "/memory/last" => Self::Last,
            _ => {
                return Err(RefusedRequest::new(
                    404,
                    format!("unknown path; the paths are {}", PATHS.join(", ")),
                ));
            }
        };
        match parameters(query).next() {
            Some((name, _)) => Err(unknown(path, name, "no parameters")),
            None => Ok(request),
        }
    }
}

fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts.map(|part| part.split_once('=').unwrap_or((part, "")))
}

fn profile(path: &str, query: &str, options: &EndpointOptions) -> Result<EndpointRequest, RefusedRequest> {
    let mut seconds = None;
    let mut seen = Vec::new();
    for (name, value) in parameters(query) {
        if seen.contains(&name) {
            return Err(RefusedRequest::new(400, format!("{path}: {name} is given twice")));
        }
        match (name, value) {
            ("seconds", value) => {
                let number = value.parse().ok().filter(|number| (1..=options.max_seconds).contains(number));
                let number = number.ok_or_else(|| {
                    let (value, most) = (shown(value), options.max_seconds);
                    RefusedRequest::new(
                        400,
                        format!("{path}: seconds={value} is not a number from 1 to {most}"),
                    )
                })?;
                seconds = Some(number);
            }
            ("debug", "0") | ("gc", "0" | "1") => {}
            ("debug", value) => {
                let value = shown(value);
                return Err(RefusedRequest::new(
                    400,
                    format!(
                        "{path}: debug={value} requests text; only debug=0, the format of pprof, is supported"
                    ),
                ));
            }
            ("gc", value) => {
                return Err(RefusedRequest::new(
                    400,
                    format!("{path}: gc={} is neither 0 nor 1", shown(value)),
                ));
            }
            (name, _) => return Err(unknown(path, name, "only seconds, debug and gc")),
        }
        seen.push(name);
    }
    Ok(EndpointRequest::Profile(seconds))
}

fn unknown(path: &str, name: &str, known: &str) -> RefusedRequest {
    RefusedRequest::new(400, format!("{path}: unknown parameter {}; the path accepts {known}", shown(name)))
}

/// Makes a text of the client fit into a line.
fn shown(text: &str) -> String {
    const MOST: usize = 40;
    let mut shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}
