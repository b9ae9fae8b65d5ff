//! Medians, and change points in series.
//!
//! Source of the method: E-Divisive means, as the tool Hunter uses it for benchmarks: the point that separates two
//! distributions best is a candidate, and t-tests decide which candidates are changes.

/// The median; 0 without values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        count if count % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

/// A change of the level of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The index of the first value after the change.
    pub index: usize,
    /// The mean from the change point before to this one.
    pub before: f64,
    /// The mean from this change point to the next.
    pub after: f64,
    /// The probability of such a difference without a change.
    pub p: f64,
}

/// The minimum number of values on each side of a change.
const MIN_SIDE: usize = 3;

/// Finds all changes with a probability below `max_p`. An even growth is not a change, though each split of it would
/// pass the test: a series has no changes if a straight line explains it better than levels do.
pub fn change_points(series: &[f64], max_p: f64) -> Vec<ChangePoint> {
    let mut bounds = vec![0, series.len()];
    let mut open = vec![(0, series.len())];
    while let Some((start, end)) = open.pop() {
        // The tests come later: a rise that a fall follows is visible only in parts of the series.
        let Some(split) = candidate(&series[start..end]).map(|split| start + split) else { continue };
        bounds.push(split);
        open.extend([(start, split), (split, end)]);
    }
    bounds.sort_unstable();
    // The best of many splits is tested, so its probability counts for each of them.
    let tests = series.len() as f64;
    // Changes that chance explains are removed, the least certain first.
    loop {
        let points: Vec<ChangePoint> = bounds
            .windows(3)
            .map(|sides| {
                let (before, after) = (&series[sides[0]..sides[1]], &series[sides[1]..sides[2]]);
                let p = (p_of_difference(before, after) * tests).min(1.0);
                ChangePoint { index: sides[1], before: mean(before), after: mean(after), p }
            })
            .collect();
        let worst = points.iter().max_by(|one, other| one.p.total_cmp(&other.p));
        match worst.filter(|worst| worst.p >= max_p) {
            Some(worst) => bounds.retain(|bound| *bound != worst.index),
            None if is_line(series, &points) => return Vec::new(),
            None => return points,
        }
    }
}

/// Whether a straight line explains a series better than the levels between change points, by the Bayesian information
/// criterion: a line has two parameters, and each change point has a place and a level.
fn is_line(series: &[f64], points: &[ChangePoint]) -> bool {
    if points.is_empty() {
        return false;
    }
    let count = series.len() as f64;
    let (middle, level) = ((count - 1.0) / 2.0, mean(series));
    let times = || (0..series.len()).map(|index| index as f64 - middle);
    let slope = times().zip(series).map(|(time, value)| time * (value - level)).sum::<f64>()
        / times().map(|time| time * time).sum::<f64>();
    let from_line: f64 =
        times().zip(series).map(|(time, value)| (value - level - slope * time).powi(2)).sum();
    let bounds: Vec<usize> =
        [0].into_iter().chain(points.iter().map(|point| point.index)).chain([series.len()]).collect();
    let from_levels: f64 = bounds.windows(2).map(|ends| squares(&series[ends[0]..ends[1]])).sum();
    // Rounding errors are no evidence.
    let tiny = count * (1e-12 * level.abs()).powi(2) + f64::MIN_POSITIVE;
    let cost = |squares: f64, parameters: usize| {
        count * ((squares + tiny) / count).ln() + parameters as f64 * count.ln()
    };
    cost(from_line, 2) < cost(from_levels, 2 * points.len() + 1)
}

/// The split with the largest distance between the distributions on both sides.
fn candidate(series: &[f64]) -> Option<usize> {
    let count = series.len();
    if count < 2 * MIN_SIDE {
        return None;
    }
    let distance = |one: usize, other: usize| (series[one] - series[other]).abs();
    // The sums of distances within the left side, within the right side, and between them.
    let mut left = 0.0;
    let mut between = 0.0;
    let mut right: f64 =
        (0..count).map(|one| (one + 1..count).map(|other| distance(one, other)).sum::<f64>()).sum();
    let mut best: Option<(f64, usize)> = None;
    for split in 1..count {
        let moved = split - 1;
        let to_left: f64 = (0..moved).map(|other| distance(moved, other)).sum();
        let to_right: f64 = (split..count).map(|other| distance(moved, other)).sum();
        left += to_left;
        right -= to_right;
        between += to_right - to_left;
        if split < MIN_SIDE || count - split < MIN_SIDE {
            continue;
        }
        let (m, n) = (split as f64, (count - split) as f64);
        let within = 2.0 * left / (m * (m - 1.0)) + 2.0 * right / (n * (n - 1.0));
        let score = m * n / (m + n) * (2.0 * between / (m * n) - within);
        if best.is_none_or(|(known, _)| score > known) {
            best = Some((score, split));
        }
    }
    best.map(|(_, split)| split)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sum of the squares of the differences from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Student's t-test for two samples with the same variance, two-sided.
fn p_of_difference(one: &[f64], other: &[f64]) -> f64 {
    let (m, n) = (one.len() as f64, other.len() as f64);
    let freedom = m + n - 2.0;
    let difference = (mean(one) - mean(other)).abs();
    let variance = (squares(one) + squares(other)) / freedom;
    // Rounding makes equal values differ.
    let tiny = 1e-12 * (mean(one).abs() + mean(other).abs());
    if difference <= tiny {
        return 1.0;
    }
    let error = (variance * (1.0 / m + 1.0 / n)).sqrt().max(tiny);
    let t = difference / error;
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The regularized incomplete beta function, by its continued fraction (Lentz's method).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = (a * x.ln() + b * (1.0 - x).ln() - log_beta(a, b)).exp() / a;
    let small = 1e-300;
    let (mut c, mut d) = (1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..200 {
        let m = f64::from(step);
        for factor in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 + factor * d;
            d = 1.0 / if d.abs() < small { small } else { d };
            c = 1.0 + factor / c;
            c = if c.abs() < small { small } else { c };
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-12 {
            break;
        }
    }
    (front * fraction).clamp(0.0, 1.0)
}

fn log_beta(a: f64, b: f64) -> f64 {
    log_gamma(a) + log_gamma(b) - log_gamma(a + b)
}

/// Stirling's series, after a shift to large arguments.
fn log_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += x.ln();
        x += 1.0;
    }
    let half_log_two_pi = 0.918_938_533_204_672_7;
    let inverse = 1.0 / x;
    let series = inverse / 12.0 - inverse.powi(3) / 360.0 + inverse.powi(5) / 1260.0;
    (x - 0.5) * x.ln() - x + half_log_two_pi + series - shift
}
