//! Prints the costs of a workload before the process ends, and writes the profiler's dump at that moment.

use std::error::Error;
use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;

/// The variable with the path of the profiler's dump; unset without a profiler.
const DUMP: &str = "PROFILERS_DUMP";

/// Prints the CPU seconds and the peak of resident memory of this process so far, and writes a dump if `DUMP` is set.
pub(crate) fn print(workload: &str, sum: u64) -> Result<(), Box<dyn Error>> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for a write.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    if failed != 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: the call above has succeeded, so it has filled the structure.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    println!("workload={workload} cpu={cpu:.6} peak_kib={} sum={sum:x}", peak_kib()?);
    match std::env::var(DUMP) {
        Ok(path) => dump(path),
        Err(_) => Ok(()),
    }
}

/// The peak of resident memory, in KiB. The peak from `getrusage` also includes the process that started this program.
fn peak_kib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn dump(path: String) -> Result<(), Box<dyn Error>> {
    let path = CString::new(path)?;
    // SAFETY: the literal ends in 0.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"DMDDump".as_ptr()) };
    if function.is_null() {
        return Err("this process has no function DMDDump: preload libdmd.so".into());
    }
    // SAFETY: `dmd.h` declares the function of this name with this type.
    let function: unsafe extern "C" fn(*const c_char) -> c_int = unsafe { std::mem::transmute(function) };
    // SAFETY: `path` is a C string, so it ends in 0.
    match unsafe { function(path.as_ptr()) } {
        0 => Ok(()),
        code => Err(format!("DMDDump says {code}").into()),
    }
}
