//! The sample by bytes: its counts follow the binomial law, and its weights are unbiased.

use dmd::{ByteSampler, Options};
use memory_report::dmd::sample::{largest_error, variance, weight};

/// Distances from the mean that an honest sampler exceeds once in two million tests; the seeds are fixed.
const SIGMAS: f64 = 5.0;

#[test]
fn counts_follow_the_binomial_law() {
    for (seed, mean, bytes, trials) in [
        (1, 4096, 1, 4_000_000),
        (2, 4096, 16, 1_000_000),
        (3, 4096, 4096, 100_000),
        (4, 524_288, 100, 3_000_000),
        (5, 524_288, 1 << 20, 20_000),
        (6, 1, 1, 100_000),
    ] {
        let mut sampler = ByteSampler::new(seed, mean);
        let chosen = (0..trials).filter(|_| sampler.trial(bytes)).count() as f64;
        let chance = 1.0 - (-(bytes as f64) / mean as f64).exp();
        let expected = trials as f64 * chance;
        let deviation = (expected * (1.0 - chance)).sqrt();
        assert!((chosen - expected).abs() <= SIGMAS * deviation, "{mean} {bytes}: {chosen}, {expected}");
    }
}

/// The spread of the counts is the law's too: neither a regular sampler nor one of bursts passes.
#[test]
fn counts_spread_as_the_binomial_law_says() {
    let (mean, bytes, trials, runs) = (4096, 64, 6400, 2000);
    let chance = 1.0 - (-(bytes as f64) / mean as f64).exp();
    let expected = trials as f64 * chance;
    let squares: f64 = (0..runs)
        .map(|run| {
            let mut sampler = ByteSampler::new(1000 + run, mean);
            let chosen = (0..trials).filter(|_| sampler.trial(bytes)).count() as f64;
            (chosen - expected).powi(2)
        })
        .sum();
    let ratio = squares / runs as f64 / (expected * (1.0 - chance));
    // The deviation of the estimate of a variance from n values is sqrt(2 / n).
    assert!((ratio - 1.0).abs() <= SIGMAS * (2.0 / runs as f64).sqrt(), "{ratio}");
}

#[test]
fn weights_are_the_inverse_of_the_chance() {
    for mean in [1, 1000, 524_288, 1 << 40] {
        for requested in [0, 1, 8, 100, 4096, 524_287, 524_288, 1 << 22, 1 << 44] {
            let chance = -(-(u64::max(requested, 1) as f64) / mean as f64).exp_m1();
            let (found, expected) = (weight(requested, mean), 1.0 / chance);
            assert!((found - expected).abs() <= 1e-12 * expected, "{requested} {mean}: {found} {expected}");
        }
    }
    assert!((weight(7, 0) - 1.0).abs() < f64::EPSILON, "every block is recorded");
}

/// A population of all sizes, sampled often: the mean of the estimates is the truth, and their spread is what the
/// sample itself says.
#[test]
fn estimates_are_unbiased() {
    let mean = 16_384;
    let population: Vec<u64> =
        (0..3000).map(|n: u64| 1 + n * n % 997 + if n.is_multiple_of(500) { 50_000 } else { 0 }).collect();
    let truth: u64 = population.iter().sum();
    let runs = 2000;
    let (mut sum, mut squares, mut said, mut blocks) = (0.0, 0.0, 0.0, 0.0);
    for run in 0..runs {
        let mut sampler = ByteSampler::new(run * 7 + 3, mean);
        let chosen: Vec<u64> = population.iter().copied().filter(|size| sampler.trial(*size)).collect();
        let estimate: f64 = chosen.iter().map(|size| weight(*size, mean) * *size as f64).sum();
        blocks += chosen.iter().map(|size| weight(*size, mean)).sum::<f64>();
        said += chosen.iter().map(|size| variance(*size, mean) * (*size as f64).powi(2)).sum::<f64>();
        sum += estimate;
        squares += (estimate - truth as f64).powi(2);
    }
    let (runs, truth) = (runs as f64, truth as f64);
    let deviation = (squares / runs).sqrt();
    assert!((sum / runs - truth).abs() <= SIGMAS * deviation / runs.sqrt(), "{} {truth}", sum / runs);
    assert!((squares / said - 1.0).abs() < 0.2, "{squares} {said}");
    assert!(deviation <= largest_error(truth as u64, mean) * 1.1);
    assert!((blocks / runs / population.len() as f64 - 1.0).abs() < 0.05, "{}", blocks / runs);
}

#[test]
fn options_take_units() {
    let parse = |text: &'static str| Options::parse(text.as_bytes()).map(|options| options.sample_bytes);
    assert_eq!(parse("--sample-bytes=4093").unwrap(), Some(4093));
    assert_eq!(parse("--sample-bytes=512KiB").unwrap(), Some(512 << 10));
    assert_eq!(parse("--sample-bytes=2GiB").unwrap(), Some(2 << 30));
    for bad in ["", "=", "=0", "=KiB", "=-1", "=1.5MiB", "=99999999999999GiB", "=512kb"] {
        let word: &'static str = format!("--sample-bytes{bad}").leak();
        assert!(parse(word).is_err(), "{word}");
    }
    assert!(Options::parse(b"--wait-for-track").unwrap().wait_for_track);
    assert!(Options::parse(b"--wait-for-track=maybe").is_err());
}
