//! What a workload took, told before the process ends, and what its profiler knows at that moment.

use std::error::Error;
use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;

/// Where a dump of the profiler is to go, if there is a profiler.
const DUMP: &str = "PROFILERS_DUMP";

/// CPU seconds and the peak of resident memory of this process so far, and a dump if one is wanted.
pub(crate) fn print(workload: &str, sum: u64) -> Result<(), Box<dyn Error>> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: a place for the answer.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    if failed != 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: zeroed, and filled above.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    println!("workload={workload} cpu={cpu:.6} peak_kib={} sum={sum:x}", peak_kib()?);
    match std::env::var(DUMP) {
        Ok(path) => dump(path),
        Err(_) => Ok(()),
    }
}

/// Not what `getrusage` tells: that includes the peak of whoever started this program.
fn peak_kib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn dump(path: String) -> Result<(), Box<dyn Error>> {
    let path = CString::new(path)?;
    // SAFETY: a name that ends in 0.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"DMDDump".as_ptr()) };
    if function.is_null() {
        return Err("no DMDDump in this process".into());
    }
    // SAFETY: what `dmd.h` declares under that name.
    let function: unsafe extern "C" fn(*const c_char) -> c_int = unsafe { std::mem::transmute(function) };
    // SAFETY: a path that ends in 0.
    match unsafe { function(path.as_ptr()) } {
        0 => Ok(()),
        code => Err(format!("DMDDump says {code}").into()),
    }
}
