//! Children, forks, names of files, and comments.

use std::fs;

use crate::support::{command, count, preloaded, read_dump, succeed, victim};

#[test]
fn a_dump_at_the_end_of_each_process() {
    let folder = tempfile::tempdir().unwrap();
    let options = "--mode=live --quiet --dump-at-exit --output=all.json.gz";
    // The shell changes its folder, and runs two other programs.
    let script = "cd /; /bin/ls >/dev/null; /bin/cat /dev/null; true";
    succeed(preloaded("/bin/bash", options).args(["-c", script]).current_dir(folder.path()));
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.contains(&"all.json.gz".to_owned()), "{names:?}");
    for name in names {
        let dump = read_dump(folder.path().join(&name));
        let pid = dump["process"]["pid"].as_u64().unwrap();
        assert!(name == "all.json.gz" || name == format!("all-{pid}.json.gz"), "{name}");
        assert!(count(&dump, |_| true) > 0);
        assert_eq!(dump["invocation"]["dmdEnvVar"], options);
        let modules = dump["modules"].as_array().unwrap();
        assert!(modules.iter().any(|module| {
            module["path"].as_str().unwrap().contains("libc.so")
                && !module["buildId"].as_str().unwrap().is_empty()
        }));
    }
}

#[test]
fn children_may_be_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let options = "--quiet --dump-at-exit --children=no --output=dump-%p.json";
    let script = "/bin/ls >/dev/null; (true); env | grep -c ^DMD=; true";
    let output = succeed(preloaded("/bin/bash", options).args(["-c", script]).current_dir(folder.path()));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(output.stdout, b"0\n");
}

#[test]
fn it_says_what_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let output = succeed(
        preloaded("/bin/bash", "--dump-at-exit --output=x.json")
            .args(["-c", "true"])
            .current_dir(folder.path()),
    );
    let text = String::from_utf8(output.stderr).unwrap();
    let pid = text.strip_prefix("DMD[").and_then(|rest| rest.split(']').next()).unwrap();
    let path = folder.path().canonicalize().unwrap().join("x.json");
    let expected = format!(
        "DMD[P] $DMD = '--dump-at-exit --output=x.json'\nDMD[P] DMD is enabled\nDMD[P] opened {} for writing\n\
         DMD[P] Dump 1 {{\nDMD[P]   Constructing the heap block list...\n\
         DMD[P]   Constructing the stack trace table...\nDMD[P]   Constructing the stack frame table...\nDMD[P] }}\n",
        path.display()
    );
    assert_eq!(text.replace(&format!("DMD[{pid}]"), "DMD[P]"), expected);
}

#[test]
fn nothing_happens_without_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    let output = succeed(preloaded("/bin/ls", "").env_remove("DMD").arg("/").current_dir(folder.path()));
    assert!(output.stderr.is_empty());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_tool_is_tried_by_either_door() {
    for options in ["--mode=test --quiet", "--mode=test --stacks=full --quiet", "--mode=stress --quiet"] {
        let by_library = succeed(&mut preloaded("/bin/false", options));
        let by_wrapper = succeed(command(victim("smoke_wrapper")).env("DMD", options));
        for output in [by_library, by_wrapper] {
            let text = String::from_utf8(output.stderr).unwrap();
            if options.contains("test") {
                assert!(text.ends_with("] test: 8 checks, all passed\n"), "{options}: {text}");
            } else {
                assert!(text.contains(" 400 of 400 blocks left found, 0 dropped"), "{options}: {text}");
            }
        }
    }
}

#[test]
fn a_pipe_that_nobody_reads_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    succeed(command("mkfifo").arg(&pipe));
    let options = format!("--dump-at-exit --output={}", pipe.display());
    let output = succeed(preloaded("/bin/bash", &options).args(["-c", "true"]));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(&format!("] can't create {}: ", pipe.display())), "{text}");
}
