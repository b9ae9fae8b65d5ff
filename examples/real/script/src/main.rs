//! `script FILE` runs a Python program by RustPython. The names that the program has defined live until the end.

use std::process::ExitCode;

use rustpython_vm::{Interpreter, Settings};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: script FILE");
        return ExitCode::FAILURE;
    };
    let source = match std::fs::read_to_string(&path) {
        Ok(source) => source,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let status = Interpreter::without_stdlib(Settings::default()).run(|vm| {
        let scope = vm.new_scope_with_builtins();
        vm.run_string(scope, &source, path).map(drop)
    });
    ExitCode::from(status as u8)
}
