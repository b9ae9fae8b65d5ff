//! Tests the options in `$DMD`: their syntax, defaults and errors.

use dmd::{Mode, Options, Run, Stacks};

use crate::support::{command, preloaded, run, succeed, victim};

#[test]
fn one_gives_the_defaults() {
    for text in ["1", "", " \t\n\u{b}\u{c}\r "] {
        assert_eq!(Options::parse(text.as_bytes()), Ok(Options::new()), "{text:?}");
    }
    let defaults = Options::new();
    assert_eq!((defaults.mode, defaults.stacks), (Mode::DarkMatter, Stacks::Partial));
}

#[test]
fn words_are_split_at_white_space() {
    let options = Options::parse(b"\t--mode=cumulative \n--stacks=full  --show-dump-stats=yes ").unwrap();
    assert_eq!((options.mode, options.stacks), (Mode::Cumulative, Stacks::Full));
    assert!(options.show_dump_stats);
    assert_eq!(Options::parse(b"--mode=scan").unwrap().stacks, Stacks::Full);
    assert_eq!(Options::parse(b"--mode=normal").unwrap().mode, Mode::DarkMatter);
    assert_eq!(Options::parse(b"--mode=stress").unwrap().run, Run::Stress);
    let ours = b"--max-frames=8 --output=a%p.gz --dump-at-exit --children=no --quiet=yes --verbose \
        --sample-below=4093 --resident=no";
    let ours = Options::parse(ours).unwrap();
    assert_eq!((ours.max_frames, ours.output, ours.sample_below), (8, Some("a%p.gz"), Some(4093)));
    assert!(ours.dump_at_exit && ours.quiet && ours.verbose && !ours.children && !ours.resident);
}

#[test]
fn what_is_not_understood_is_told() {
    let bad = [
        "0",
        "1 1",
        "on",
        "--mode",
        "--mode=",
        "--mode=Live",
        "--mode=live,scan",
        "--stacks=none",
        "--show-dump-stats",
        "--show-dump-stats=1",
        "--sample-below=0",
        "--sample-below=+5",
        "--sample-below=x",
        "--max-frames=0",
        "--max-frames=257",
        "--output=",
        "--output",
        "--children",
        "-q",
        "--mode=live=scan",
    ];
    for text in bad {
        let error = Options::parse(text.as_bytes()).unwrap_err();
        let first = text.split(' ').find(|word| *word == text || *word == "1").unwrap();
        let expected = format!("Bad entry in the $DMD environment variable: '{first}'. It is entry 1. ");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
    let told = |text: &'static str| Options::parse(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(
        told("--quiet --stacks=none"),
        "Bad entry in the $DMD environment variable: '--stacks=none'. It is entry 2. --stacks takes partial or full."
    );
    assert_eq!(
        told("-q"),
        "Bad entry in the $DMD environment variable: '-q'. It is entry 1. Entries are 1, --mode, --stacks, \
         --sample-below, --sample-bytes, --seed, --wait-for-track, --show-dump-stats, --max-frames, --resident, \
         --output, --record, --copy-to, --copy-at, --dump-at-exit, --dump-near-limit, --children, --quiet, --verbose; 0, off or no switches DMD off."
    );
}

#[test]
fn some_values_switch_dmd_off() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    for value in ["0", "off", "no", "", " "] {
        assert!(Options::is_off(value.as_bytes()), "{value:?}");
        let declared = succeed(command(victim("declared")).arg(&file).env("DMD", value));
        assert_eq!(declared.stdout, b"off\n", "{value:?}");
        let preloaded = succeed(preloaded(victim("declared"), value).arg(&file));
        assert_eq!((&*preloaded.stdout, preloaded.stderr.len()), (&b"off\n"[..], 0), "{value:?}");
    }
    for value in ["1", "--quiet", "on", "none", "00"] {
        assert!(!Options::is_off(value.as_bytes()), "{value:?}");
    }
}

#[test]
fn a_bad_entry_ends_the_process() {
    let output = run(preloaded("/bin/true", "--mode=live --mode=dead").env("LC_ALL", "C"));
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("DMD["), "{text}");
    assert!(
        text.ends_with(
            "] Bad entry in the $DMD environment variable: '--mode=dead'. It is entry 2. --mode takes live, \
                       dark-matter, cumulative, scan, normal, test or stress.\n"
        ),
        "{text}"
    );
}
