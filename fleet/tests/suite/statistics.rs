//! Change points of series whose changes are known.

use memory_fleet::change_points;

/// A number from -1 to 1.
fn noise(index: usize) -> f64 {
    let bits = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

#[test]
fn steps_are_found_where_they_are() {
    for (steps, expected) in [
        (&[][..], &[][..]),
        (&[(10, 20.0)], &[10]),
        (&[(10, 20.0), (20, -20.0)], &[10, 20]),
        (&[(5, 8.0), (15, 8.0), (25, 8.0)], &[5, 15, 25]),
        // Fewer than three values on a side are no level.
        (&[(28, 1000.0)], &[]),
    ] {
        let series: Vec<f64> = (0..30)
            .map(|index| {
                let level: f64 = steps.iter().filter(|(at, _)| *at <= index).map(|(_, size)| size).sum();
                100.0 + level + noise(index)
            })
            .collect();
        let found: Vec<usize> = change_points(&series, 0.001).iter().map(|point| point.index).collect();
        assert_eq!(found, expected, "{steps:?}");
    }
}

#[test]
fn equal_and_short_series_have_no_changes() {
    for series in [vec![], vec![1.0], vec![5.0; 100], vec![1.0, 2.0, 3.0]] {
        assert_eq!(change_points(&series, 0.001), []);
    }
}

#[test]
fn an_even_growth_is_no_change() {
    for slope in [-3.0, 0.5, 2.0, 50.0] {
        let line = |index: usize| 100.0 + slope * index as f64;
        let series: Vec<f64> = (0..30).map(|index| line(index) + noise(index)).collect();
        assert_eq!(change_points(&series, 0.001), [], "{slope}");
        assert_eq!(change_points(&(0..30).map(line).collect::<Vec<_>>(), 0.001), [], "{slope}");
    }
    // A step in a slow growth is a change.
    let series: Vec<f64> =
        (0..30).map(|index| index as f64 + if index < 15 { 0.0 } else { 100.0 } + noise(index)).collect();
    assert!(change_points(&series, 0.001).iter().any(|point| point.index == 15));
}

#[test]
fn noise_rarely_has_changes() {
    let count: usize = (0..1000)
        .map(|number| {
            let series: Vec<f64> = (0..30).map(|index| 100.0 + noise(number * 1000 + index)).collect();
            change_points(&series, 0.001).len()
        })
        .sum();
    // The question `changes` also needs a minimum size.
    assert!(count <= 5, "{count}");
}
