//! `assert_memory!` and `assert_no_skipped!`.

use about_memory::{assert_memory, assert_no_skipped};
use memory_reporter::{Kind, Report, ReportSet, Units};

fn set() -> ReportSet {
    let mut set = ReportSet::new();
    let (process, description) = ("Main Process (pid 1)", "");
    for (path, kind, units, amount) in [
        ("explicit/cache/keys", Kind::Heap, Units::Bytes, 3 << 20),
        ("explicit/cache/values", Kind::Heap, Units::Bytes, 9 << 20),
        ("heap-allocated", Kind::Other, Units::Bytes, 20 << 20),
        ("threads", Kind::Other, Units::Count, 4),
    ] {
        set.push(Report { process, path, kind, units, amount, description });
    }
    set
}

#[test]
fn every_comparison_and_unit() {
    let set = set();
    assert_memory!(set, "explicit/cache" < 13 MiB);
    assert_memory!(set, "explicit/cache" <= 12 MiB);
    assert_memory!(set, "explicit/cache" > 12_000 KiB);
    assert_memory!(set, "explicit/cache" >= 12_582_912 B);
    assert_memory!(set, "explicit/heap-unclassified" == 8 MiB);
    assert_memory!(set, "explicit" < 1 GiB);
    assert_memory!(set, "threads" == 4);
    assert_no_skipped!(set);
}

#[test]
#[should_panic(expected = "explicit/cache is 12,582,912 B (12.00 MB), expected < 10 MiB\n\nTotal resident")]
fn failure_shows_amount_and_text() {
    assert_memory!(set(), "explicit/cache" < 10 MiB);
}

#[test]
#[should_panic(expected = "no report has the path explicit/cash, expected > 0 B")]
fn a_path_that_is_not_there_fails() {
    assert_memory!(set(), "explicit/cash" > 0 B);
}

mod shadowed {
    use super::*;

    /// A program may have macros of these names.
    #[allow(unused_macros, reason = "the assertions must not use them")]
    macro_rules! concat {
        ($($any:tt)*) => {
            compile_error!("not the macro of the program")
        };
    }
    #[allow(unused_macros, reason = "the assertions must not use them")]
    macro_rules! stringify {
        ($($any:tt)*) => {
            compile_error!("not the macro of the program")
        };
    }

    #[test]
    fn macros_of_the_program_change_nothing() {
        assert_memory!(set(), "explicit/cache" < 13 MiB);
        assert_no_skipped!(set());
    }
}

/// A failed assertion reports the line of the test, for every kind of failure.
#[test]
fn every_failure_is_at_the_line_of_the_caller() {
    let before = std::panic::take_hook();
    let (tell, told) = std::sync::mpsc::channel();
    let this_thread = std::thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == this_thread {
            let location = info.location().unwrap();
            let _ = tell.send((location.file().to_owned(), location.line()));
        } else {
            before(info);
        }
    }));
    let line = |assertion: fn()| {
        std::panic::catch_unwind(assertion).unwrap_err();
        let (file, line) = told.try_recv().unwrap();
        assert!(file.ends_with("assertions.rs"), "{file}");
        line
    };
    let first = line!();
    assert_eq!(line(|| assert_memory!(set(), "explicit/cache" < 10 MiB)), first + 1);
    assert_eq!(line(|| assert_memory!(set(), "explicit/cash" > 0 B)), first + 2);
    assert_eq!(line(|| assert_memory!(set(), "not a limit")), first + 3);
    assert_eq!(line(|| assert_memory!(set(), "threads" < 1 MiB)), first + 4);
    assert_eq!(line(|| about_memory::assert_memory_diff!(set(), set(), "explicit < 1 B")), first + 5);
    assert_eq!(line(|| about_memory::assert_memory_diff!(set(), set(), "not a limit")), first + 6);
}
