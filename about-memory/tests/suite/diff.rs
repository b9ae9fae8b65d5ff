//! Diffs beyond Firefox's texts: rules for names, exactness, limits.

use about_memory::{
    DiffOptions, Limit, LimitError, NormalizeNames, NormalizeRule, assert_memory, assert_memory_diff,
    changes, check_limits, diff,
};
use memory_reporter::tree::{Forest, Mark};
use memory_reporter::{Kind, Report, ReportSet, Units, memory_report::NamePattern};
use proptest::prelude::*;

fn push(set: &mut ReportSet, process: &str, path: &str, amount: i64) {
    let kind = if path.starts_with("explicit/") { Kind::Heap } else { Kind::Other };
    set.push(Report { process, path, kind, units: Units::Bytes, amount, description: "" });
}

fn set(reports: &[(&str, i64)]) -> ReportSet {
    let mut set = ReportSet::new();
    reports.iter().for_each(|(path, amount)| push(&mut set, "Main Process (pid 1)", path, *amount));
    set
}

#[test]
fn a_rule_of_ones_own_makes_names_equal() {
    let (first, second) = (set(&[("explicit/session 7/text", 10)]), set(&[("explicit/session 8/text", 30)]));
    let shown = |options: &DiffOptions| {
        let changes = changes(&first, &second, options).unwrap();
        changes.changes().map(|c| (c.path.to_string(), c.first(), c.second())).collect::<Vec<_>>()
    };
    let of = |path: &str, first, second| (path.to_owned(), first, second);
    assert_eq!(
        shown(&DiffOptions::new()),
        [of("explicit/session 7/text", Some(10), None), of("explicit/session 8/text", None, Some(30))]
    );
    let rule = NormalizeRule::parse("session ([0-9]+)=>session N").unwrap();
    assert_eq!(
        shown(&DiffOptions::new().normalize(rule.clone())),
        [of("explicit/session N/text", Some(10), Some(30))]
    );
    let mut within = rule;
    within.within = "explicit/other".into();
    assert_eq!(shown(&DiffOptions::new().normalize(within)).len(), 2);
}

#[test]
fn rules_of_firefox_can_be_left_out() {
    let mut options = DiffOptions::new();
    assert!(options.normalize.iter().any(|rule| rule.names == NormalizeNames::OneSidedProcesses));
    options.normalize.clear();
    let (first, second) = (set(&[("x pid 1", 10)]), set(&[("x pid 2", 10)]));
    assert_eq!(changes(&first, &second, &options).unwrap().changes().count(), 2);
    assert_eq!(diff(&first, &second).len(), 0);
}

#[test]
fn rules_that_a_report_carries_are_used() {
    let mut first = set(&[("explicit/session 7/text", 10)]);
    first.add_name_patterns([NamePattern::new("session [0-9]+", "session N"), NamePattern::new("(", "")]);
    let difference = diff(&first, &set(&[("explicit/session 8/text", 30)]));
    assert_eq!(
        difference.iter().map(|r| (r.path, r.amount)).collect::<Vec<_>>(),
        [("explicit/session N/text", 20)]
    );
    let warnings: Vec<_> = difference.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["normalizeNames: not a regular expression: ("]);
}

#[test]
fn a_bad_rule_is_named() {
    assert_eq!(NormalizeRule::parse("a").unwrap_err().to_string(), "not REGEX=>REPLACEMENT: a");
    assert_eq!(NormalizeRule::parse("(=>b").unwrap_err().to_string(), "not a regular expression: (");
    // The parser rejects a pattern that would need much memory.
    assert!(NormalizeRule::parse("((a{100}){100}){100}=>").is_err());
}

#[test]
fn marks_say_what_is_new_and_what_is_gone() {
    let difference = diff(
        &set(&[("explicit/a", 1), ("explicit/b", 1), ("explicit/c", 5)]),
        &set(&[("explicit/b", 3), ("explicit/c/d", 1), ("explicit/c/e", 1), ("explicit/f", 2)]),
    );
    assert!(difference.is_diff());
    let forest = Forest::new(&difference);
    let process = &forest.processes()[0];
    let mark = |path| process.node(path).unwrap().mark();
    assert_eq!(mark("explicit/a"), Some(Mark::Removed));
    assert_eq!(mark("explicit/b"), None);
    assert_eq!(mark("explicit/f"), Some(Mark::Added));
    assert_eq!(mark("explicit/c"), None);
    assert_eq!(mark("explicit/c/(fake child)"), Some(Mark::Fake));
    assert_eq!(process.node("explicit/c").unwrap().largest_change(), 5);
    assert_eq!(process.amount("explicit/c"), Some(-3));
}

#[test]
fn differences_of_more_than_64_bits_are_exact() {
    let difference = diff(&set(&[("a", i64::MIN), ("a", i64::MIN)]), &set(&[("a", i64::MAX)]));
    let expected = i128::from(i64::MAX) - 2 * i128::from(i64::MIN);
    assert_eq!(Forest::new(&difference).amount("a"), Some(expected));
}

fn verdicts(first: &ReportSet, second: &ReportSet, limits: &[&str]) -> Vec<Result<bool, LimitError>> {
    let limits: Vec<Limit> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
    let verdicts = check_limits(first, second, &DiffOptions::new(), &limits).unwrap();
    verdicts.into_iter().map(|verdict| verdict.map(|verdict| verdict.holds)).collect()
}

#[test]
fn limits_compare_exactly() {
    let first = set(&[("explicit/a", 1000), ("explicit/b", 0), ("gone", 7), ("down", 200)]);
    let second = set(&[("explicit/a", 1050), ("explicit/b", 1), ("new", 7), ("down", 150), ("x<y", 3)]);
    let checked = |limit: &str| verdicts(&first, &second, &[limit]).pop().unwrap();
    for (limit, holds) in [
        ("explicit/a > +5%", false),
        ("explicit/a >= +5%", true),
        ("explicit/a == +5 %", true),
        ("explicit/a > +4.999999%", true),
        ("explicit/a>+49 B", true),
        ("explicit/a > +50", false),
        ("explicit/a < 1.1 KiB", true),
        ("explicit/a == 1,050", true),
        ("explicit == 1_051 B", true),
        // Growth from 0 exceeds any percentage.
        ("explicit/b > +1000%", true),
        ("explicit/b > +0%", true),
        ("new > +5%", true),
        ("gone < +0%", true),
        ("gone == -100%", true),
        ("gone == 0", true),
        ("down <= -25%", true),
        ("down < -25%", false),
        ("down == -50", true),
        ("x<y > 2", true),
        ("[Main] explicit/a > 1 KiB", true),
        ("[Process (pid] explicit/a > 1 KiB", true),
    ] {
        assert_eq!(checked(limit), Ok(holds), "{limit}");
    }
    assert!(matches!(checked("[web] explicit > 1"), Err(LimitError::NotReported(_))));
    assert!(matches!(checked("explicit > 1%"), Err(LimitError::Units(_, Units::Bytes))));
    assert!(matches!(
        "explicit > +5%".parse::<Limit>().unwrap().check(None, &Forest::new(&second)),
        Err(LimitError::NothingBefore(_))
    ));
}

#[test]
fn what_is_no_limit_says_why() {
    for (text, why) in [
        ("explicit", "expected PATH, one of < <= > >= ==, and a limit such as 64 MiB or +5%"),
        ("explicit = 5", "expected PATH, one of < <= > >= ==, and a limit such as 64 MiB or +5%"),
        ("> 5", "the path is missing"),
        ("explicit > 5 mb", "the unit is not B, KiB, MiB, GiB, kB, MB, GB or %"),
        ("explicit > MiB", "the limit is not a number"),
        ("explicit > 1.2.3", "the limit is not a number"),
        ("explicit > .5 MiB", "the limit is not a number"),
        ("explicit >", "the limit is not a number"),
        ("explicit > 0.1234567", "the limit has more than 20 digits or more than 6 decimals"),
    ] {
        let error = text.parse::<Limit>().unwrap_err().to_string();
        assert_eq!(error, format!("not a limit: {text}: {why}"));
    }
}

#[test]
fn names_in_limits_are_normalized_too() {
    let first = set(&[("explicit/stack (tid=5)/a", 10), ("explicit/stack (tid=5)/b", 10)]);
    let second = set(&[("explicit/stack (tid=9)/a", 10), ("explicit/stack (tid=9)/b", 30)]);
    let checked = verdicts(
        &first,
        &second,
        &[
            "explicit/stack (tid=5)/b == +20",
            "explicit/stack (tid=NNN)/b == +20",
            "explicit/stack (tid=9) == +100%",
        ],
    );
    assert_eq!(checked, [Ok(true), Ok(true), Ok(true)]);
}

/// `heap-allocated` has not changed, so the sum of the differences has no `heap-unclassified`.
#[test]
fn a_limit_is_on_what_each_report_shows() {
    let first = set(&[("explicit/a", 10), ("heap-allocated", 100)]);
    let second = set(&[("explicit/a", 30), ("heap-allocated", 100)]);
    assert_memory_diff!(first, second, "explicit == +0%", "explicit/a == +20 B", "explicit == 100 B");
    assert_memory_diff!(first, second, "explicit/heap-unclassified == -20 B");
}

#[test]
#[should_panic(expected = "memory has changed:\n  not explicit < +5%: 10 B to 30 B (+20 B, +200.00%)\n  \
                nope > 3: no report has this path\n\nTotal resident")]
fn failure_names_every_limit_and_shows_the_diff() {
    let (first, second) = (set(&[("explicit/a", 10)]), set(&[("explicit/a", 30)]));
    assert_memory_diff!(first, second, "explicit < +5%", "explicit/a >= +20 B", "nope > 3");
}

#[test]
fn one_set_takes_a_limit_as_text_too() {
    let set = set(&[("explicit/a", 2048), ("debt", -5)]);
    assert_memory!(set, "explicit/a == 2 KiB");
    assert_memory!(set, "[Main] explicit < 2.1 KiB");
    assert_memory!(set, "debt" == -5);
}

prop_compose! {
    fn reports()(reports in prop::collection::vec(
        (prop_oneof!["p \\(pid [12]\\)", Just("web".to_owned())],
         prop::collection::vec("a|b|c", 1..4),
         prop_oneof![any::<i64>(), -3..4_i64]),
        0..30,
    )) -> Vec<(String, String, i64)> {
        reports.into_iter().map(|(process, parts, amount)| (process, parts.join("/"), amount)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Each amount is the second sum minus the first, for any order and number of reports.
    #[test]
    fn differences_are_of_sums(first in reports(), second in reports()) {
        let made = |reports: &[(String, String, i64)]| {
            let mut set = ReportSet::new();
            reports.iter().for_each(|(process, path, amount)| push(&mut set, process, path, *amount));
            set
        };
        let difference = diff(&made(&first), &made(&second));
        let forest = Forest::new(&difference);
        let sum = |reports: &[(String, String, i64)], path: &str| -> i128 {
            reports.iter().filter(|(_, p, _)| p == path).map(|(_, _, amount)| i128::from(*amount)).sum()
        };
        for (_, path, _) in first.iter().chain(&second) {
            let ours: i128 = difference.iter().filter(|r| r.path == path).map(|r| i128::from(r.amount)).sum();
            prop_assert_eq!(ours, sum(&second, path) - sum(&first, path));
        }
        prop_assert!(forest.warnings().is_empty());
        super::shown(&difference);
        // Opposite changes cancel each other.
        prop_assert!(diff(&made(&first), &made(&first)).is_empty());
    }
}
