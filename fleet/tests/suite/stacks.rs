//! Questions about stacks: which version made a stack grow, and which stack leaks.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use memory_export::parquet::{self, ParquetOptions, ParquetRun};
use memory_export::pprof::{self, PprofReadOptions};
use memory_fleet::{FleetSession, Question, QuestionOptions, QuestionSubject, SessionOptions};

use crate::support::{Message, block_on, set, texts};

/// A profile with one stack for each function, called by `main`, and the live bytes. Each version is a build of its own:
/// it has another build id, folder and hash of rustc, and its functions are at other offsets and lines.
fn profile(version: &str, has_symbols: bool, amounts: &[(&str, u64)]) -> Vec<u8> {
    let build = u64::from(version == "1.1");
    let mut texts: Vec<String> = ["", "inuse_space", "bytes", "main"].map(str::to_owned).to_vec();
    texts.extend(amounts.iter().map(|(function, _)| format!("{function}::h{:016x}", 0xfeed + build)));
    let folder = texts.len() as u64;
    texts.extend([format!("/opt/app-{version}/app"), format!("ab{build:02}")]);
    let mapping = Message::default().number(1, 1).number(2, 0x1000).number(3, 0x9000);
    let mapping = mapping.number(5, folder).number(6, folder + 1);
    let mut profile =
        Message::default().part(1, Message::default().number(1, 1).number(2, 2).0).part(3, mapping.0);
    for (place, (_, amount)) in amounts.iter().enumerate() {
        let sample = Message::default().number(1, place as u64 + 2).number(1, 1).number(2, *amount);
        profile = profile.part(2, sample.0);
    }
    for place in 0..=amounts.len() as u64 {
        let address = 0x1100 + 0x40 * place + 0x700 * build;
        let mut location = Message::default().number(1, place + 1).number(2, 1).number(3, address);
        if has_symbols {
            location = location.part(4, Message::default().number(1, place + 1).number(2, 20 + 7 * build).0);
        }
        profile = profile
            .part(4, location.0)
            .part(5, Message::default().number(1, place + 1).number(2, place + 3).0);
    }
    for text in texts {
        profile = profile.part(6, text);
    }
    profile.0
}

fn add(root: &Path, (host, version, life): (&str, &str, u64), time: u64, profile: &[u8]) {
    let profile = pprof::read(profile, &PprofReadOptions::new()).unwrap();
    let mut run = ParquetRun::new("search", Duration::from_secs(time));
    (run.host, run.version, run.process) =
        (Some(host.to_owned()), Some(version.to_owned()), Some("app".to_owned()));
    run.pid = Some(7 + life as u32);
    let run = run.with_id_from_stacks(&profile);
    let options = ParquetOptions::new();
    for table in ["stacks", "frames"] {
        let path = root.join(parquet::file_name(table, &run));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = File::create(path).unwrap();
        match table {
            "stacks" => parquet::stacks(&run, &profile, &options, file).unwrap(),
            _ => parquet::frames(&run, &profile, &options, file).unwrap(),
        }
    }
}

fn open(root: &Path) -> FleetSession {
    let mut options = SessionOptions::default();
    options.subject = QuestionSubject::Stacks;
    options.threads = 2;
    FleetSession::open(root, &options).unwrap()
}

/// 10 hosts with three processes, each for 3 days; the first has version 1.0, the others 1.1. In 1.1, `index` holds 20 MB
/// more, and `session` gains 5 MB a day until the process restarts.
fn fill(root: &Path, has_symbols: bool) {
    for host in 0..10_u64 {
        for step in 0..18_u64 {
            let (life, age) = (step / 6, step % 6);
            let noise = (host * 37 + step * 11) % 50 * 1000;
            let amounts = [
                ("index", if life > 0 { 50_000_000 } else { 30_000_000 } + noise),
                ("session", 10_000_000 + noise + if life > 0 { age * 2_500_000 } else { 0 }),
                ("cache", 40_000_000 + noise),
            ];
            let version = if life > 0 { "1.1" } else { "1.0" };
            let profile = profile(version, has_symbols, &amounts);
            add(root, (&format!("h{host}"), version, life), 1_796_000_000 + step * 43_200, &profile);
        }
    }
}

#[test]
fn versions_and_leaks_name_stacks() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), true);
    let session = open(folder.path());
    let mut options = QuestionOptions::default();
    options.path = String::new();
    let versions = block_on(session.ask(&Question::Versions, &options)).unwrap();
    let named: Vec<String> = set(&versions, ["path", "version"])
        .into_iter()
        .map(|[path, version]| format!("{} {version}", path.split(" (").next().unwrap()))
        .collect();
    assert_eq!(named, ["index < main 1.1", "session < main 1.1"], "{versions:?}");
    assert!(
        versions.next[0].starts_with("memory-fleet leaks ")
            && versions.next[0].contains(" --stacks --service search")
    );
    let leaks = block_on(session.ask(&Question::Leaks, &options)).unwrap();
    let leaking = set(&leaks, ["path", "since"]);
    assert_eq!(leaking.len(), 1, "{leaks:?}");
    let [path, since] = leaking.into_iter().next().unwrap();
    assert!(path.starts_with("session < main (") && since == "1.1", "{path} {since}");
    let growth = block_on(session.ask(&Question::Growth, &options)).unwrap();
    // Two builds have other ids of stacks, but a stack is one path.
    let sql = "SELECT count(DISTINCT stack_id) AS ids, (SELECT count(DISTINCT path) FROM buckets) AS paths FROM stacks";
    let count = block_on(session.ask_sql(sql, 0)).unwrap();
    assert_eq!(texts(&count.rows, &["ids", "paths"]), [["6", "3"]]);
    assert_eq!(growth.rows.num_rows(), 3, "{growth:?}");
    assert!(!format!("{:?}", growth.notes).contains("parentheses"), "{growth:?}");

    let error = block_on(session.ask(&Question::Dark, &options)).unwrap_err();
    assert!(error.to_string().contains("not about stacks"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error = block_on(open(empty.path()).ask(&Question::Leaks, &options)).unwrap_err();
    assert!(error.to_string().contains("has no stacks in these days"), "{error}");
}

/// Ids differ between builds, so no question says that a version added such a stack.
#[test]
fn stacks_without_functions_are_not_compared_between_versions() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), false);
    let session = open(folder.path());
    let mut options = QuestionOptions::default();
    options.path = String::new();
    let versions = block_on(session.ask(&Question::Versions, &options)).unwrap();
    assert_eq!(versions.rows.num_rows(), 0, "{versions:?}");
    let note = "6 stacks without function names are left out: their ids differ between builds.";
    assert!(versions.notes.iter().any(|line| line == note), "{versions:?}");
    let leaks = block_on(session.ask(&Question::Leaks, &options)).unwrap();
    assert!(format!("{:?}", leaks.notes).contains("the id of a stack without function names"), "{leaks:?}");
}
