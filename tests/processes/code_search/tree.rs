//! The tree of the example adds up, and `heap-unclassified` contains the bytes that the example does not report.

use std::process::Command;

/// Runs the example and returns its about:memory text.
fn run(arguments: &[&str]) -> String {
    // Without optimization the example is slow, so it gets less text.
    let megabytes = match (cfg!(debug_assertions), std::env::var_os("THOROUGH").is_some()) {
        (true, false) => "6",
        (true, true) => "15",
        (false, _) => "60",
    };
    let mut command = Command::new(super::program());
    let output = command.args(["--max-megabytes", megabytes]).args(arguments).output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{errors}");
    assert_eq!(errors, "");
    text.into_owned()
}

/// The megabytes in the line of the tree that ends with this name.
fn amount(text: &str, name: &str) -> f64 {
    let line = text
        .lines()
        .find(|line| line.ends_with(&format!("─ {name}")) || line.ends_with(&format!("- {name}")))
        .unwrap_or_else(|| panic!("no {name} in {text}"));
    let number: String = line
        .trim_start_matches(|c: char| !c.is_ascii_digit())
        .chars()
        .take_while(|c| *c != ' ')
        .filter(|c| *c != ',')
        .collect();
    number.parse().unwrap_or_else(|_| panic!("{line}"))
}

#[test]
fn the_tree_adds_up_but_for_what_is_not_reported() {
    let with = run(&["--report-cache"]);
    let without = run(&[]);
    let (explicit, cache) = (amount(&with, "explicit"), amount(&with, "query-cache"));
    // If the amount is below 1 %, the tree shows it among the tiny entries.
    let unclassified =
        if with.contains("heap-unclassified") { amount(&with, "heap-unclassified") } else { 0.01 * explicit };
    assert!(unclassified < 0.02 * explicit, "{unclassified} of {explicit}");
    assert!(cache > 0.02 * explicit, "the cache must be large enough to find: {cache} of {explicit}");
    let missing = amount(&without, "heap-unclassified");
    assert!(missing >= cache * 0.95, "{missing} of {cache}");
    assert!(missing - unclassified <= cache * 1.05, "{missing} - {unclassified} of {cache}");
    assert!((amount(&without, "explicit") - explicit).abs() < 0.05 * explicit);
}

#[test]
fn help_and_errors() {
    let help = run(&["--help"]);
    assert!(help.contains("Examples:") && help.contains("--report-cache"), "{help}");
    let output = Command::new(super::program()).arg("/no/such/directory").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.starts_with("code_search: ") && errors.contains("/no/such/directory"), "{errors}");
}
