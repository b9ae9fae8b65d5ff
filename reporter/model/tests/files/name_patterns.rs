//! The name patterns of a file: `normalizeNames`.

use memory_report::{NamePattern, ReportSet, file};

use super::{error, read};

fn document(patterns: &str) -> String {
    format!(
        "{{\"version\": 1, \"normalizeNames\": {patterns}, \"hasMozMallocUsableSize\": true, \"reports\": []}}"
    )
}

fn warnings(set: &ReportSet) -> Vec<String> {
    set.warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_written_is_read() {
    let mut set = ReportSet::new();
    let patterns = [NamePattern::new(r"id=[0-9]+", "id=N"), NamePattern::new("\"\\\u{1}", "é")];
    set.add_name_patterns(patterns.clone());
    set.add_name_patterns(patterns.clone());
    let mut written = Vec::new();
    file::write_to(&mut written, &set).unwrap();
    let expected =
        " \"hasMozMallocUsableSize\": true,\n \"normalizeNames\": [\n  [\"id=[0-9]+\", \"id=N\"],\n  [";
    assert!(String::from_utf8(written.clone()).unwrap().contains(expected));
    let read = read(written).unwrap();
    assert_eq!(read.name_patterns(), patterns);
    assert!(read.warnings().is_empty());
}

#[test]
fn sets_put_together_have_the_patterns_of_both() {
    let with = |pattern: &str| {
        let mut set = ReportSet::new();
        set.add_name_patterns([NamePattern::new("same", ""), NamePattern::new(pattern, "")]);
        set
    };
    let mut set = with("a");
    set.append(with("b"));
    let patterns: Vec<_> = set.name_patterns().iter().map(|p| p.pattern.as_str()).collect();
    assert_eq!(patterns, ["same", "a", "b"]);
}

#[test]
fn what_is_no_pair_of_texts_is_told() {
    for (patterns, good, bad) in [
        ("[]", 0, 0),
        (r#"[["a", "b"]]"#, 1, 0),
        (
            r#"[["a", "b"], ["a"], ["a", "b", "c"], ["a", 1], [1, "b"], "ab", 7, {}, [], [[]], ["c", ""]]"#,
            2,
            9,
        ),
        ("{\"a\": [1]}", 0, 1),
        ("null", 0, 1),
    ] {
        let set = read(document(patterns)).unwrap();
        assert_eq!(set.name_patterns().len(), good, "{patterns}");
        let expected = format!("normalizeNames: {bad} patterns are ignored: wrong, too long or too many");
        assert_eq!(warnings(&set), if bad == 0 { vec![] } else { vec![expected] });
    }
}

#[test]
fn there_are_not_many_and_they_are_not_long() {
    let long = format!("[[\"{}\", \"\"], [\"\", \"{}\"]]", "a".repeat(1000), "b".repeat(1001));
    assert_eq!(read(document(&long)).unwrap().name_patterns().len(), 1);
    let many: Vec<_> = (0..120).map(|i| format!("[\"{i}\", \"\"]")).collect();
    let set = read(document(&format!("[{}]", many.join(",")))).unwrap();
    assert_eq!(set.name_patterns().len(), 100);
    assert_eq!(warnings(&set), ["normalizeNames: 20 patterns are ignored: wrong, too long or too many"]);
}

#[test]
fn what_is_no_json_is_an_error() {
    for patterns in ["[", "[[", r#"[["a", "b""#, r#"[["a" "b"]]"#, "[[\"a\", \"b\"] 5]", "[[]"] {
        error(document(patterns));
    }
    assert!(
        error(document(&"[".repeat(1000))).contains("nested more than 128 levels deep"),
        "{}",
        error(document(&"[".repeat(1000)))
    );
}
