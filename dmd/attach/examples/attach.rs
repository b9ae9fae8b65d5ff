//! `attach PID LIBRARY` and `attach PID`: attaches to a process, or detaches from it.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a program for tests")]

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1);
    let process = arguments.next().and_then(|number| number.parse().ok()).unwrap();
    let result = match arguments.next() {
        Some(library) => {
            let library = std::fs::read(library).unwrap();
            let request = dmd_attach::AttachRequest::new(&library, "/tmp/about-memory-0".as_ref());
            dmd_attach::attach(process, &request).map(|reply| format!("{reply:?}"))
        }
        None => dmd_attach::detach(process).map(|reply| format!("{reply:?}")),
    };
    match result {
        Ok(reply) => println!("{reply}"),
        Err(error) => {
            println!("error: {error}");
            return std::process::ExitCode::FAILURE;
        }
    }
    std::process::ExitCode::SUCCESS
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn main() {}
