//! The sample by bytes: its counts follow the binomial distribution, and its weights are unbiased.

use std::collections::BTreeSet;

use dmd::{ByteSampler, Options};
use dmd_format::sample::{largest_error, variance, weight};

use crate::support::{c_program, preloaded, read_dump, succeed};

/// The maximum distance from the mean, in standard deviations. A correct sampler exceeds it once in two million tests;
/// the seeds are fixed.
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

/// The spread of the counts follows the distribution, too: a sampler with regular distances or with bursts fails this
/// test.
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
    // The standard deviation of the estimate of a variance from n values is sqrt(2 / n).
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

/// Samples blocks of all sizes many times: the mean of the estimates is the true value, and their spread is the spread
/// that the sample itself states.
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

/// For each process, the sizes of the sampled blocks. All processes make the same blocks.
fn samples(options: &str, children: &str) -> Vec<BTreeSet<u64>> {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "seeded");
    let options = format!("--sample-bytes=16384 --quiet --dump-at-exit --output=d-%p.json {options}");
    succeed(preloaded(&program, &options).arg(children).current_dir(folder.path()));
    let paths = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let dumps = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let sizes = dumps.map(|path| {
        let dump = read_dump(path);
        let sizes = dump["blockList"].as_array().unwrap().iter().map(|block| block["req"].as_u64().unwrap());
        sizes.filter(|size| (10_000..14_000).contains(size)).collect::<BTreeSet<_>>()
    });
    sizes.filter(|sizes| !sizes.is_empty()).collect()
}

/// The errors of many estimates cancel out only if the samples are independent of each other.
#[test]
fn each_process_and_run_has_its_own_sample() {
    let runs = [samples("", "0"), samples("", "0")];
    assert_eq!((runs[0].len(), runs[1].len()), (1, 1));
    assert_ne!(runs[0], runs[1]);
    let children = samples("", "2");
    assert_eq!(children.len(), 2);
    assert_ne!(children[0], children[1]);
}

#[test]
fn a_seed_decides_the_sample() {
    let runs = ["7", "7", "8"].map(|seed| samples(&format!("--seed={seed}"), "0"));
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
    assert_eq!(Options::parse(b"--seed=0").unwrap().seed, Some(0));
    assert!(Options::parse(b"--seed=").is_err() && Options::parse(b"--seed=x").is_err());
}
