//! Budget files: limits, errors, and updates with `--write`.

use about_memory::{Budget, BudgetOptions};
use memory_reporter::{Kind, Report, ReportSet, Units};

fn set() -> ReportSet {
    let mut set = ReportSet::new();
    for (process, path, kind, units, amount) in [
        ("Main Process (pid 1)", "explicit/cache/keys", Kind::Heap, Units::Bytes, 30 << 20),
        ("Main Process (pid 1)", "explicit/cache/values", Kind::Heap, Units::Bytes, 50 << 20),
        ("Main Process (pid 1)", "explicit/pool/one", Kind::Heap, Units::Bytes, 5 << 20),
        ("Main Process (pid 1)", "explicit/tiny", Kind::Heap, Units::Bytes, 100),
        ("worker (pid 2)", "explicit/cache/keys", Kind::Heap, Units::Bytes, 10 << 20),
        ("worker (pid 2)", "threads", Kind::Other, Units::Count, 4),
        ("worker (pid 2)", "hits", Kind::Other, Units::Percentage, 9012),
    ] {
        set.push(Report { process, path, kind, units, amount, description: "" });
    }
    set
}

#[test]
fn every_sort_of_limit() {
    let budget = Budget::parse(
        "[budget]\n\
         explicit = '95.1 MiB'\n\
         \"explicit/cache\" = ['> 80 MiB', '<= 89 MiB']\n\
         threads = 4\n\
         hits = '>= 90%'\n\
         nothing = 1\n\
         \n\
         [process.'worker']\n\
         \"explicit/cache\" = 10485760\n\
         threads = '5 MiB'\n\
         [process.\"worker (pid NNN)\"]\n\
         threads = '< 4'\n",
    );
    let shown: Vec<_> = budget
        .unwrap()
        .check(&set())
        .iter()
        .map(|check| format!("{} {} {check}", check.line, check.failed()))
        .collect();
    assert_eq!(
        shown,
        [
            "2 false explicit <= 95.1 MiB: 95.00 MiB",
            "3 false explicit/cache > 80 MiB: 90.00 MiB",
            "3 true explicit/cache <= 89 MiB: 90.00 MiB",
            "4 false threads <= 4: 4",
            "5 false hits >= 90%: 90.12%",
            "6 false nothing <= 1: no report has this path",
            "9 false [worker] explicit/cache <= 10485760: 10.00 MiB",
            "10 true [worker] threads <= 5 MiB: the units of the report are COUNT",
            "12 true [worker (pid NNN)] threads < 4: 4",
        ]
    );
}

#[test]
fn units_are_powers_of_1000_or_of_1024() {
    for (limit, bytes) in [
        ("1 B", 1),
        ("1 kB", 1_000),
        ("1KB", 1_000),
        ("1 KiB", 1_024),
        ("1.5 MB", 1_500_000),
        ("1 MiB", 1 << 20),
        ("2 GB", 2_000_000_000),
        ("2 GiB", 2 << 30),
    ] {
        let budget = Budget::parse(&format!("[budget]\n'explicit/a' = '{limit}'\n")).unwrap();
        for (amount, fails) in [(bytes, false), (bytes + 1, true)] {
            let mut set = ReportSet::new();
            let (process, path, description) = ("p", "explicit/a", "");
            set.push(Report { process, path, kind: Kind::Heap, units: Units::Bytes, amount, description });
            assert_eq!(budget.check(&set)[0].failed(), fails, "{limit} {amount}");
        }
    }
}

#[test]
fn a_misspelled_path_gets_the_most_similar_one() {
    let budget = Budget::parse(
        "[budget]\n'explicit/cahce' = '9 GB'\nthread = 9\n[process.worker]\n'explicit/pool' = 1\n",
    );
    let shown: Vec<_> = budget.unwrap().check(&set()).iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "explicit/cahce <= 9 GB: no report has this path; did you mean explicit/cache?",
            "thread <= 9: no report has this path; did you mean threads?",
            // Only another process has this path.
            "[worker] explicit/pool <= 1: no report has this path",
        ]
    );
}

#[test]
fn a_bad_budget_names_the_line() {
    for (text, expected) in [
        (
            "[budget]\na = 1\nb = '5 mb'\n",
            "line 3: not a limit: 5 mb: the unit is not B, KiB, MiB, GiB, kB, MB, GB or %",
        ),
        ("[budget]\n\nb = '5", "line 3: "),
        ("[budget]\na = 1\na = 2\n", "line 3: duplicate key"),
        ("\n[limits]\na = 1\n", "line 2: limits is not a table of budgets; use budget or process"),
        ("budget = 5\n", "line 1: budget is not a table"),
        ("\n[process]\nweb = 5\n", "line 3: web is not a table"),
        ("[budget]\na = true\n", "line 2: the limit of a is neither a string nor a whole number"),
        ("[budget]\na = [1,\n2.5]\n", "line 3: the limit of a is neither a string nor a whole number"),
        ("[budget]\na.b = 5\n", "line 2: a is a table; quote a path with dots"),
        (
            "[budget]\na = '+5%'\n",
            "line 2: a <= +5%: a budget has no earlier report, so it cannot limit growth",
        ),
        ("[budget]\na = 'b <= 5'\n", "line 2: not a limit: "),
        ("[budget]\na = ''\n", "line 2: not a limit: "),
    ] {
        let error = Budget::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}\nexpected {expected}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(Budget::update(text, &set(), &BudgetOptions::new()).is_err());
    }
}

#[test]
fn a_new_budget_has_what_is_large() {
    let text = Budget::update("", &set(), &BudgetOptions::new()).unwrap();
    let table = text.split_once("[budget]\n").unwrap().1;
    assert_eq!(
        table,
        "explicit = \"105 MiB\"\n\"explicit/cache\" = \"99.0 MiB\"\n\"explicit/pool\" = \"5.50 MiB\"\n"
    );
    assert!(text.starts_with("# "));
    assert!(Budget::parse(&text).unwrap().check(&set()).iter().all(|check| !check.failed()));
}

#[test]
fn an_update_keeps_comments_minima_and_what_is_not_reported() {
    let before = "# Ours.\n\
                  [budget]\n\
                  explicit = '5 MiB' # all of it\n\
                  \"explicit/cache\" = ['> 80 MiB', '<= 9 GiB']\n\
                  nothing = 1\n\
                  threads = 400\n\n\
                  # The others.\n\
                  [process.worker]\n\
                  hits = '<= 2%'\n";
    let options = BudgetOptions::new().headroom(50.0).path("explicit/pool").path("no/such");
    let expected = "# Ours.\n\
                    [budget]\n\
                    explicit = \"143 MiB\" # all of it\n\
                    \"explicit/cache\" = ['> 80 MiB', \"<= 135 MiB\"]\n\
                    nothing = 1\n\
                    threads = 6\n\
                    \"explicit/pool\" = \"7.50 MiB\"\n\n\
                    # The others.\n\
                    [process.worker]\n\
                    hits = \"<= 135.2%\"\n";
    assert_eq!(Budget::update(before, &set(), &options).unwrap(), expected);
}

#[test]
fn a_written_budget_is_never_exceeded_by_its_report() {
    for amount in
        [0, 1, 999, 1023, 1024, 1025, 10_239, 1_048_575, 1_048_576, 123_456_789, 1 << 40, (1 << 53) + 1]
    {
        let mut set = ReportSet::new();
        let (process, path, description) = ("p", "explicit/a", "");
        set.push(Report { process, path, kind: Kind::Heap, units: Units::Bytes, amount, description });
        let text = Budget::update("", &set, &BudgetOptions::new().headroom(0.0).path("explicit/a")).unwrap();
        let budget = Budget::parse(&text).unwrap();
        let check = &budget.check(&set)[0];
        assert!(!check.failed(), "{amount}: {check}");
    }
}

#[test]
fn what_is_gone_is_below_its_minimum() {
    let budget = Budget::parse("[budget]\ngone = '>= 1 MiB'\nabsent = '< 1 MiB'\n").unwrap();
    let failed: Vec<_> = budget.check(&set()).iter().map(|check| check.failed()).collect();
    assert_eq!(failed, [true, false]);
}

#[test]
fn a_written_budget_of_negative_amounts_is_one() {
    let mut set = ReportSet::new();
    for (path, units) in [("bytes", Units::Bytes), ("count", Units::Count), ("percent", Units::Percentage)] {
        set.push(Report { process: "", path, kind: Kind::Other, units, amount: -50, description: "" });
    }
    let options = BudgetOptions::new().path("bytes").path("count").path("percent");
    assert!(options.missing(&set).is_empty());
    let text = Budget::update("", &set, &options).unwrap();
    assert!(Budget::parse(&text).unwrap().check(&set).iter().all(|check| !check.failed()), "{text}");
    assert_eq!(options.path("typo").missing(&set), ["typo"]);
}
