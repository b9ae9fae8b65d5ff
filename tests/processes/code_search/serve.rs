//! With `--serve` the example keeps running, and every command of the guide works with it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use tempfile::TempDir;

/// The running example, with a folder for its socket and for files of the commands.
struct Serving {
    child: Child,
    /// Kept open, since the program may print more.
    _stdout: BufReader<ChildStdout>,
    folder: TempDir,
}

impl Serving {
    /// Starts the example on its own source, with its own DMD, and waits until it serves.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/code_search");
        let mut child = Command::new(super::program())
            .arg(source)
            .arg("--serve")
            .env("XDG_RUNTIME_DIR", folder.path())
            .env("DMD", "1")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        let announced = format!("Process {} answers requests until you end it (Ctrl-C).", child.id());
        while !line.starts_with(&announced) {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "it has ended");
        }
        Self { child, _stdout: stdout, folder }
    }

    /// Runs a command line of the guide, in which `code_search` names this process.
    fn run(&self, line: &str) -> Output {
        let mut words = line.split(' ');
        assert_eq!(words.next(), Some("about-memory"), "{line}");
        let mut command = Command::new(super::about_memory());
        command.args(words).env("XDG_RUNTIME_DIR", self.folder.path()).current_dir(self.folder.path());
        command.stdin(Stdio::null()).output().unwrap()
    }

    fn shown(&self, line: &str) -> String {
        let Output { status, stdout, stderr } = self.run(line);
        assert!(status.success(), "{line}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn every_command_works_on_it() {
    let serving = Serving::start();
    let pid = serving.child.id();
    for (line, expected) in [
        ("about-memory list", "code_search"),
        ("about-memory show code_search", "search-documents"),
        (&*format!("about-memory show {pid} --filter explicit/search --verbose"), "interner"),
        ("about-memory show code_search --resident", "resident-map"),
        ("about-memory watch code_search --interval 0.1 --count 2", "explicit"),
        ("about-memory minimize code_search", ""),
        ("about-memory save code_search -o before.json.gz", ""),
        ("about-memory save code_search after.json.gz", ""),
        ("about-memory save --all reports --anonymize", "reports/about-memory-1"),
        ("about-memory diff before.json.gz after.json.gz", "Main Process"),
        ("about-memory series before.json.gz after.json.gz --path explicit/search", "explicit/search"),
        ("about-memory html code_search -o page.html", ""),
        ("about-memory snapshot save code_search -o heap.fxsnapshot", ""),
        ("about-memory snapshot census heap.fxsnapshot", "objects"),
        ("about-memory snapshot dominators heap.fxsnapshot", "Documents"),
        ("about-memory snapshot suspects heap.fxsnapshot", ""),
        ("about-memory dump code_search -o dmd.json.gz", ""),
        ("about-memory dmd dmd.json.gz", "code_search"),
        ("about-memory html before.json.gz --dmd dmd.json.gz -o both.html", ""),
    ] {
        let shown = serving.shown(line);
        assert!(shown.contains(expected), "{line}: {shown}");
    }
    for file in ["before.json.gz", "page.html", "heap.fxsnapshot", "dmd.json.gz", "both.html"] {
        assert!(serving.folder.path().join(file).metadata().unwrap().len() > 100, "{file}");
    }
    // The memory that the example reports, and the memory that it does not report.
    let text = serving.shown("about-memory show before.json.gz");
    assert!(text.contains("heap-unclassified") && !text.contains("WARNING"), "{text}");
}
