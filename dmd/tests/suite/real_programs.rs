//! Programs of the system under `libdmd.so`: each program has the same output and status as without the library, and
//! each process writes a complete dump. The tests skip programs that are not installed.

use std::path::Path;
use std::process::{Command, Output};

use dmd::analyze;
use dmd::analyze::program::{ProgramOptions, ResidentMemory, ResidentOwner};

use crate::support::{command, count, preloaded, read_dump, run, without_reasons};

const ALL_OPTIONS: [&str; 5] = [
    "--mode=dark-matter --stacks=full",
    "--mode=live",
    "--mode=cumulative --stacks=full",
    "--mode=scan",
    "--sample-below=4093",
];

fn is_there(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|folders| std::env::split_paths(&folders).any(|folder| folder.join(program).exists()))
}

/// Runs a shell script in a new folder.
fn script(mut shell: Command, script: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    run(shell.args(["-c", script]).current_dir(folder.path()).env("HOME", folder.path()).env("LC_ALL", "C"))
}

/// Compares a script with and without the library. `needed` lists the programs that the script calls.
fn same(needed: &[&str], text: &str) {
    if !needed.iter().all(|program| is_there(program)) {
        return;
    }
    let plain = script(command("/bin/bash"), text);
    // By default, each script runs with three of the options. The length of the script selects them.
    let number = if std::env::var_os("THOROUGH").is_some() { ALL_OPTIONS.len() } else { 3 };
    for options in ALL_OPTIONS.into_iter().cycle().skip(text.len()).take(number) {
        let dumps = tempfile::tempdir().unwrap();
        let output = dumps.path().join("d-%p.json.gz");
        let options = format!("{options} --quiet --dump-at-exit --output={}", output.display());
        let mut recorded = script(preloaded("/bin/bash", &options), text);
        if text.contains("ulimit -f 0") {
            recorded.stderr = without_reasons(&recorded.stderr);
        }
        assert_eq!(recorded, plain, "{options}: {text}");
        let mut blocks = 0;
        for entry in std::fs::read_dir(dumps.path()).unwrap() {
            blocks += blocks_of(&entry.unwrap().path());
        }
        assert!(blocks > 0, "{options}: {text}");
    }
}

fn blocks_of(dump: &Path) -> u64 {
    let dump = read_dump(dump);
    assert_eq!(dump["dropped"]["blocks"], 0);
    count(&dump, |_| true)
}

#[test]
fn the_shell() {
    same(
        &[],
        "for i in 1 2 3; do (echo $i | cat | tr 1-3 a-c); done; diff <(seq 1 3) <(seq 1 4); \
         for i in {1..50}; do (exit $i) & done; wait; exec ls /",
    );
    same(&["sort", "xz", "tar"], "seq 1 20000 | sort --parallel=4 -S 1M -n | xz -T2 -1 | xz -d | md5sum");
    same(&["tar", "gzip"], "seq 1 20000 >a; tar czf a.tgz a; tar tzf a.tgz; gzip -l a.tgz | wc -l");
}

#[test]
fn descriptors_are_closed_and_limits_are_low() {
    same(&[], "ls / 2>&-; cat /etc/passwd <&- 2>&- | wc -l; bash -c true <&- >&- 2>&-; echo $?");
    same(
        &[],
        "(ulimit -n 4; cat /etc/passwd | wc -c); (ulimit -s 100; ls /); (ulimit -v 100000; ls /); echo $?",
    );
    same(&[], "env -i /bin/ls /; cd /proc; bash -c 'ls / | head -1'; (ulimit -f 0; ls / | wc -l; echo $?)");
}

#[test]
fn those_that_signals_end() {
    same(
        &["timeout"],
        "timeout 0.1 sleep 5; echo $?; for s in SEGV ABRT KILL TERM; do bash -c \"kill -$s \\$\\$\"; done 2>/dev/null; echo $?",
    );
}

#[test]
fn compilers() {
    same(
        &["gcc", "make"],
        "printf 'all: a b c\\n%%:\\n\\t@echo $@ >$@; gcc -x c -c -o $@.o - </dev/null\\n' >Makefile; make -s -j2; ls",
    );
    same(
        &["g++"],
        "printf '#include <map>\\nint main(){std::map<int,int> m; m[1]=2; try {throw 3;} catch(int i) {return i+m[1];}}' >a.cc; g++ -o a a.cc; ./a; echo $?",
    );
}

#[test]
fn interpreters() {
    same(
        &["perl"],
        "perl -e 'my %h; $h{$_}=[1..10] for 1..2000; my $p=fork; if(!$p) {exit 3} waitpid $p,0; print $?>>8, scalar keys %h; eval {die \"x\\n\"}; print $@'",
    );
    same(
        &["python3"],
        "python3 -c 'import threading, json, os, sys\n\
         t=[threading.Thread(target=lambda: json.dumps(list(range(5000)))) for _ in range(4)]\n\
         [x.start() for x in t]; [x.join() for x in t]\n\
         for i in range(5):\n p=os.fork()\n if p==0: sys.exit(i)\n print(os.waitpid(p,0)[1])\n\
         os.execvp(\"echo\",[\"echo\",\"last\"])'",
    );
    same(
        &["python3"],
        "python3 -c 'import multiprocessing as m\n\
         if __name__==\"__main__\":\n  with m.get_context(\"fork\").Pool(2) as p: print(p.map(abs, range(-5,0)))'",
    );
    same(
        &["node"],
        "node -e 'const {Worker}=require(\"worker_threads\"); let n=0; for(let i=0;i<3;i++) new Worker(\"require(\\\"worker_threads\\\").parentPort.postMessage(7)\",{eval:true}).on(\"message\",m=>{n+=m; if(n==21) console.log(n)}); function f(x){return f(x+1)+1} try{f(0)}catch(e){console.log(e.message)}'",
    );
    same(
        &["ruby"],
        "ruby -e 'puts 200.times.map{|i| Fiber.new{\"x\"*i}}.sum{|f| f.resume.size}; puts 4.times.map{|k| Thread.new{k}}.sum(&:value)'",
    );
}

#[test]
fn databases_and_tools() {
    same(
        &["sqlite3"],
        "sqlite3 :memory: 'create table t(a); with recursive c(x) as (select 1 union all select x+1 from c where x<5000) insert into t select x from c; select sum(a) from t'",
    );
    same(
        &["git"],
        "git init -q . 2>/dev/null; echo a >a; git add a; git -c user.name=a -c user.email=a@b commit -qm a --date=@0; git status --short; git ls-files",
    );
    same(&["openssl"], "seq 1 9 | openssl dgst -sha256");
    same(&["curl"], "curl -sS file:///etc/passwd | wc -l; curl -sS http://127.0.0.1:1/ 2>/dev/null; echo $?");
    same(
        &["vim"],
        "vim -u NONE -es -c 'call setline(1,range(1,100))' -c '%s/1/x/g' -c '%print' -c 'qa!' | tail -1",
    );
}

/// The loader searches the allocator's library after `libdmd.so`.
#[test]
fn those_with_another_allocator_before_them() {
    for library in ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"] {
        let path = Path::new("/usr/lib/x86_64-linux-gnu").join(library);
        if path.exists() {
            let library = path.display();
            same(
                &["perl"],
                &format!(
                    "LD_PRELOAD=$LD_PRELOAD:{library} perl -e 'my @a=map {{\"x\"x$_}} 1..500; print scalar(@a)'"
                ),
            );
        }
    }
}

/// Programs with one thread: their rows add up to the kernel's sum to the page, and nothing is left over.
#[test]
fn resident_memory_by_owner_adds_up() {
    let mut programs = 0;
    for (program, text) in [
        ("awk", "seq 1 50000 | awk '{ seen[$1] = $0 \"x\" } END { print length(seen) }'"),
        ("bash", "declare -A all; for i in {1..20000}; do all[$i]=$i; done; echo ${#all[@]}"),
        ("find", "find /usr/bin /etc -newer /etc/passwd | wc -l"),
        ("gcc", "printf '#include <stdio.h>\\nint main(void) { puts(\"\"); }' | gcc -O2 -x c -o a -"),
        (
            "git",
            "git init -q .; seq 1 9999 >a; git add a; git -c user.name=a -c user.email=b commit -qm a; git log -p | wc -l",
        ),
        ("grep", "seq 1 90000 | grep -c '[13579]\\(00\\)*$'"),
        ("ld", "echo 'int main(void) { return 0; }' | gcc -x c -c -o a.o -; ld -r -o b.o a.o"),
        ("make", "seq -f 'a%.0f: ; @true' 1 5000 >Makefile; make -s a7"),
        ("perl", "perl -e 'my %h; $h{$_} = [1..10] for 1..20000; print scalar keys %h'"),
        ("python3", "python3 -c 'import json, sqlite3, ssl; print(len([str(i) for i in range(200000)]))'"),
        ("sed", "seq 1 50000 | sed -n 'H;$p' | wc -l"),
        ("sort", "seq 1 100000 | sort --parallel=1 -r | tail -1"),
        ("tar", "seq 1 100000 >a; tar cf - a a a | tar tf -"),
        ("xz", "seq 1 100000 | xz -T1 -6 | xz -dc | tail -1"),
    ] {
        if !is_there(program) {
            continue;
        }
        let dumps = tempfile::tempdir().unwrap();
        let output = dumps.path().join("d-%p.json");
        let options =
            format!("--mode=live --stacks=full --quiet --dump-at-exit --output={}", output.display());
        script(preloaded("/bin/bash", &options), text);
        let mut sums = Vec::new();
        for entry in std::fs::read_dir(dumps.path()).unwrap() {
            let dump = analyze::read(entry.unwrap().path()).unwrap();
            let table = ResidentMemory::new(&dump, &ProgramOptions::new()).unwrap();
            let rows = table.rows.iter().map(|row| row.resident).sum::<i128>();
            let has_difference = table.rows.iter().any(|row| row.owner == ResidentOwner::Difference);
            assert!(!table.is_changing && !has_difference, "{program}: {table}");
            assert_eq!(rows, i128::from(dump.memory().unwrap().resident), "{program}: {table}");
            sums.push(rows);
        }
        assert!(!sums.is_empty(), "{program}");
        programs += 1;
    }
    assert!(programs >= 10, "{programs}");
}
