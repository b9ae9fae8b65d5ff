//! Child processes, forks, names of files, and messages.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;

use crate::support::{command, count, libdmd, preloaded, read_dump, run, succeed, victim};

#[test]
fn a_dump_at_the_end_of_each_process() {
    let folder = tempfile::tempdir().unwrap();
    let options = "--mode=live --quiet --dump-at-exit --output=all.json.gz";
    // The shell changes its folder and runs two other programs.
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

/// Two processes may have the same number: one may be in another namespace, or one may have ended and left its file.
#[test]
fn a_dump_of_a_number_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let options = "--verbose --dump-at-exit --output=dump-%p.json";
    let script = "echo other > dump-$$.json; echo other > dump-$$-2.json; (true); true";
    let output = succeed(preloaded("/bin/bash", options).args(["-c", script]).current_dir(folder.path()));
    let mut others = Vec::new();
    let mut dumps = Vec::new();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if fs::read(&path).unwrap() == b"other\n" { others.push(path) } else { dumps.push(path) }
    }
    assert_eq!((others.len(), dumps.len()), (2, 2), "{others:?} {dumps:?}");
    let third = others.iter().min_by_key(|path| path.as_os_str().len()).unwrap().with_extension("");
    let third = folder.path().join(format!("{}-3.json", third.file_name().unwrap().to_str().unwrap()));
    read_dump(&third);
    // The message contains the name of the file.
    let text = String::from_utf8(output.stderr).unwrap();
    for path in dumps {
        let path = folder.path().canonicalize().unwrap().join(path.file_name().unwrap());
        assert!(text.contains(&format!("] opened {} for writing\n", path.display())), "{text}");
    }
}

/// A user who has created the files in advance, and may read them, gets no data of the program.
#[test]
fn files_from_before_are_not_written_into() {
    let folder = tempfile::tempdir().unwrap();
    for (name, option) in [("dump.json", "--dump-at-exit --output"), ("r.dmdrec", "--record")] {
        let path = folder.path().join(name);
        fs::write(&path, "for all").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let mut there = fs::File::open(&path).unwrap();
        succeed(preloaded("/bin/true", &format!("--quiet {option}={name}")).current_dir(folder.path()));
        let mut seen = String::new();
        there.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "for all", "{name}");
        let about = fs::metadata(&path).unwrap();
        assert!(about.len() > 100 && about.permissions().mode() & 0o777 == 0o600, "{about:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// A shell and `env` start these programs in three ways. These programs run without the library. Programs that start
/// after them run with the library.
#[test]
fn programs_that_cannot_be_preloaded_start() {
    let folder = tempfile::tempdir().unwrap();
    let source = "int puts(const char *), unsetenv(const char *); char *getenv(const char *);\n\
                  int main(void) { char *list = getenv(\"LD_PRELOAD\"); puts(list ? list : \"none\"); return 0; }\n";
    fs::write(folder.path().join("tells.c"), source).unwrap();
    fs::write(folder.path().join("other.c"), "").unwrap();
    let compile = |name: &str, flags: &[&str]| {
        let mut compiler = command("cc");
        compiler.args(["-w", "-o", name]).args(flags).current_dir(folder.path());
        run(&mut compiler).status.success()
    };
    assert!(compile("usual", &["tells.c"]) && compile("other.so", &["-shared", "other.c"]));
    // A program that starts with the GNU loader, under the name of musl's loader.
    let usual = succeed(command("readelf").args(["-l", "usual"]).current_dir(folder.path()));
    let usual = String::from_utf8(usual.stdout).unwrap();
    let (_, loader) = usual.split_once("interpreter: ").unwrap();
    let musl = folder.path().join("ld-musl.so.1");
    std::os::unix::fs::symlink(loader.split(']').next().unwrap(), &musl).unwrap();
    assert!(compile("musl", &["tells.c", &format!("-Wl,--dynamic-linker={}", musl.display())]));
    fs::write(folder.path().join("script"), format!("#!{}/musl\n", folder.path().display())).unwrap();
    fs::set_permissions(folder.path().join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut programs = vec!["musl", "script"];
    // Not every compiler has these sanitizers.
    for (name, sanitizer) in [("asan", "address"), ("tsan", "thread")] {
        if compile(name, &["tells.c", &format!("-fsanitize={sanitizer}")]) {
            programs.push(name);
        }
    }
    let library = libdmd().display();
    let other = folder.path().join("other.so");
    for program in programs {
        let script = format!("./{program} && env ./{program} && PATH=. && {program} && ./usual");
        let mut shell = preloaded("/bin/sh", "--quiet");
        let output = succeed(shell.args(["-c", &script]).current_dir(folder.path()));
        let expected = format!("none\nnone\nnone\n{library}\n");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{program}");
        // Other libraries in `LD_PRELOAD` stay.
        shell.env("LD_PRELOAD", format!("{}:{library}", other.display()));
        if program == "musl" {
            let output = succeed(&mut shell);
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(text.starts_with(&format!("{}\n", other.display())), "{text}");
        }
    }
}

/// The kernel starts the script's interpreter, with the script's name among the arguments.
#[test]
fn a_script_starts_as_ever() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    let text = "#!/bin/bash -p\necho \"$0 $# $3 $- $(cat /proc/$$/comm)\"; /bin/ls > /dev/null; exit 9\n";
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let plain = run(command(&script).args(["a b", "", "c"]));
    let options = "--quiet --dump-at-exit --output=dump.json";
    let output = run(preloaded(&script, options).args(["a b", "", "c"]).current_dir(folder.path()));
    assert_eq!((output.status.code(), output.stdout), (Some(9), plain.stdout));
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    // There are dumps of the shell, of `ls` and of the substitution.
    assert!(names.filter(|name| name.to_str().unwrap().starts_with("dump")).count() >= 3);
    let dump = read_dump(folder.path().join("dump.json"));
    assert_eq!(dump["invocation"]["dmdEnvVar"], options);
}

#[test]
fn it_says_what_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let output = succeed(
        preloaded("/bin/bash", "--verbose --dump-at-exit --output=x.json")
            .args(["-c", "true"])
            .current_dir(folder.path()),
    );
    let text = String::from_utf8(output.stderr).unwrap();
    let pid = text.strip_prefix("DMD[").and_then(|rest| rest.split(']').next()).unwrap();
    let path = folder.path().canonicalize().unwrap().join("x.json");
    let expected = format!(
        "DMD[P] $DMD = '--verbose --dump-at-exit --output=x.json'\nDMD[P] DMD is enabled\nDMD[P] opened {} for writing\n\
         DMD[P] Dump 1 {{\nDMD[P]   Constructing the heap block list...\n\
         DMD[P]   Constructing the stack trace table...\nDMD[P]   Constructing the stack frame table...\nDMD[P] }}\n",
        path.display()
    );
    assert_eq!(text.replace(&format!("DMD[{pid}]"), "DMD[P]"), expected);

    // No line on stderr: programs read the stderr of their child processes.
    let silent = succeed(preloaded("/bin/true", "--dump-at-exit --output=y.json").current_dir(folder.path()));
    assert_eq!(String::from_utf8(silent.stderr).unwrap(), "");
    assert!(folder.path().join("y.json").exists());
    let silent = succeed(&mut preloaded("/bin/true", "1"));
    assert_eq!(String::from_utf8(silent.stderr).unwrap(), "");
}

#[test]
fn nothing_happens_without_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    let output = succeed(preloaded("/bin/ls", "").env_remove("DMD").arg("/").current_dir(folder.path()));
    assert!(output.stderr.is_empty());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_tool_is_tried_by_either_hook() {
    for options in [
        "--mode=test --quiet",
        "--mode=test --stacks=full --quiet",
        "--mode=stress --quiet",
        // In the test modes DMD records every block, even with options for samples.
        "--mode=test --sample-below=100000 --quiet",
        "--mode=test --sample-bytes=1000000 --quiet",
        "--wait-for-track --mode=test --quiet",
        "--mode=stress --sample-bytes=1000000 --quiet",
    ] {
        let mut outputs = vec![succeed(&mut preloaded("/bin/false", options))];
        // Without optimization, the stress mode takes seconds.
        if !options.contains("stress") || std::env::var_os("THOROUGH").is_some() {
            outputs.push(succeed(command(victim("smoke_wrapper")).env("DMD", options)));
        }
        for output in outputs {
            let text = String::from_utf8(output.stderr).unwrap();
            if options.contains("test") {
                assert!(text.ends_with("] test: 8 checks, all passed\n"), "{options}: {text}");
            } else {
                assert!(text.contains(" 400 of 400 live blocks found, 0 dropped"), "{options}: {text}");
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
