//! Dumps that are a sample by bytes: weights, standard errors, and hostile values.

use dmd_analyze::program::{LeakOptions, Leaks, ProgramOptions};
use dmd_analyze::{Analysis, AnalyzeOptions, Dump, RecordKind};
use dmd_format::sample::{variance, weight};

use super::{TABLES, document, read};

fn sampled(bytes: &str, blocks: &str) -> String {
    document("live", blocks, TABLES).replacen(r#""mode""#, &format!(r#""sampleBytes": {bytes}, "mode""#), 1)
}

fn live(dump: Dump) -> (i128, i128, i128) {
    let sums = Analysis::new(dump, &AnalyzeOptions::new()).sums(RecordKind::Live);
    (sums.num, sums.req, sums.slop)
}

#[test]
fn blocks_are_weighed() {
    let blocks = r#"{"req": 1000, "slop": 8, "num": 3, "alloc": "A"}, {"req": 1048576, "alloc": "A"}"#;
    let dump = read(sampled("524288", blocks)).unwrap();
    let sample = *dump.sample().unwrap();
    assert_eq!((sample.mean, sample.recorded), (524_288, 4));
    let (small, large) = (3.0 * weight(1000, 524_288), weight(1 << 20, 524_288));
    let of = |requested: u64, usable: f64| variance(requested, 524_288) * usable * usable;
    let error = (3.0 * of(1000, 1008.0) + of(1 << 20, 1_048_576.0)).sqrt();
    assert!((sample.standard_error / error - 1.0).abs() < 1e-9, "{}", sample.standard_error);
    assert!(sample.largest_error(100 << 20) > 7e6 && sample.largest_error(100 << 20) < 8e6);
    let expected = [
        (small.round() + large.round()) as i128,
        ((small * 1000.0).round() + (large * 1_048_576.0).round()) as i128,
        (small * 8.0).round() as i128,
    ];
    assert_eq!(live(dump), expected.into());
    let json =
        Analysis::new(read(sampled("524288", blocks)).unwrap(), &AnalyzeOptions::new()).json().to_string();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["invocations"][0]["sampleBytes"], 524_288);
    assert_eq!(json["total"]["estimated"], true);
    assert!(json["total"]["standardError"].as_u64().unwrap() > 1 << 20);
}

/// A block that is much larger than the mean distance is always recorded, so its amount is not an estimate.
#[test]
fn a_large_block_is_exact() {
    let dump = read(sampled("1024", r#"{"req": 1048576, "slop": 16, "alloc": "A"}"#)).unwrap();
    assert!(dump.sample().unwrap().standard_error.abs() < 1e-9);
    assert_eq!(live(dump), (1, 1 << 20, 16));
}

#[test]
fn leaks_of_a_sample_are_marked_as_estimates() {
    let blocks = r#"{"req": 1000, "slop": 8, "num": 3, "alloc": "A"}"#;
    let leaks = |text: String| Leaks::from_dump(read(text).unwrap(), &LeakOptions::new()).unwrap();
    let sample = leaks(sampled("524288", blocks));
    let text = sample.text(5, &ProgramOptions::new()).to_string();
    assert!(text.starts_with("Leaked: ~1.51 MiB in ~1,574 blocks.\nEstimated from a sample"), "{text}");
    assert!(text.contains("\n1. ~1.51 MiB"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&sample.json(5).to_string()).unwrap();
    assert_eq!(json["estimated"], true);
    assert!(json["standardError"].as_u64().unwrap() > 1 << 19, "{json}");
    let exact = leaks(document("live", blocks, TABLES));
    let text = exact.text(5, &ProgramOptions::new()).to_string();
    assert!(!text.contains('~') && !text.contains("Estimated"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&exact.json(5).to_string()).unwrap();
    assert!(json.get("estimated").is_none(), "{json}");
}

#[test]
fn bad_distances_are_refused() {
    for bytes in ["0", "-1", "1.5", "\"1\"", "null", "1099511627777", "99999999999999999999"] {
        let error = read(sampled(bytes, "")).unwrap_err().to_string();
        assert!(error.starts_with("invocation.sampleBytes: "), "{bytes}: {error}");
    }
    let huge = r#"{"req": 18446744073709551615, "num": 18446744073709551615}"#;
    let error = read(sampled("1099511627776", huge)).unwrap_err().to_string();
    assert!(!error.contains('\n') && !error.is_empty());
    let many = r#"{"req": 0, "num": 18446744073709551615}"#;
    assert!(live(read(sampled("1099511627776", many)).unwrap()).0 > 0);
}
