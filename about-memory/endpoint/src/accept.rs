//! Selects the form that a client prefers, by the header `Accept` of RFC 9110, 12.5.1.

use memory_export::open_metrics::MetricsForm;

/// A range of media types, with its weight in thousandths.
struct AcceptedRange<'a> {
    /// The media type. Its case does not matter.
    media: &'a str,
    version: Option<&'a str>,
    weight: u32,
}

/// The ranges of a header. Ignores ranges with an invalid weight.
fn ranges(accept: &str) -> impl Iterator<Item = AcceptedRange<'_>> {
    accept.split(',').filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().filter(|media| !media.is_empty())?;
        let mut found = AcceptedRange { media, version: None, weight: 1000 };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim() {
                "q" | "Q" => {
                    let weight: f64 = value.parse().ok()?;
                    found.weight = (weight.clamp(0.0, 1.0) * 1000.0).round() as u32;
                }
                name if name.eq_ignore_ascii_case("version") => found.version = Some(value),
                _ => {}
            }
        }
        Some(found)
    })
}

/// The weight of a media type: the weight of the most specific matching range, or 0 without such a range.
fn weight(accept: &str, media: &str, version: Option<&str>) -> u32 {
    let kind = media.split('/').next().unwrap_or_default();
    let closeness = |range: &AcceptedRange<'_>| match range.media {
        name if name.eq_ignore_ascii_case(media) => match (range.version, version) {
            (Some(asked), Some(ours)) if asked != ours => None,
            (Some(_), _) => Some(3),
            _ => Some(2),
        },
        name if name.strip_suffix("/*").is_some_and(|name| name.eq_ignore_ascii_case(kind)) => Some(1),
        "*/*" => Some(0),
        _ => None,
    };
    let closest = ranges(accept).filter_map(|range| Some((closeness(&range)?, range.weight))).max();
    closest.map_or(0, |(_, weight)| weight)
}

/// Returns the form of metrics: `OpenMetrics` if the header names this form with at least the weight of the text of
/// Prometheus; otherwise the text of Prometheus, which every client can read.
pub(crate) fn form(accept: &str) -> MetricsForm {
    let open = weight(accept, "application/openmetrics-text", Some("1.0.0"));
    let names_it =
        ranges(accept).any(|range| range.media.eq_ignore_ascii_case("application/openmetrics-text"));
    let plain = weight(accept, "text/plain", Some("0.0.4"));
    if names_it && open > 0 && open >= plain { MetricsForm::OpenMetrics } else { MetricsForm::Prometheus }
}

/// Whether the header names a compressed file type.
pub(crate) fn is_gzip(accept: &str) -> bool {
    ["application/gzip", "application/x-gzip"]
        .into_iter()
        .any(|media| ranges(accept).any(|range| range.media.eq_ignore_ascii_case(media) && range.weight > 0))
}
