//! Measures the cost of a walk, in comparison with framehop and the `backtrace` crate: nanoseconds for a stack and for
//! a frame, the minimum of many rounds.
//!
//! ```sh
//! cargo run --release -p dmd-unwind --example unwind_cost
//! RUSTFLAGS=-Cforce-frame-pointers cargo run --release -p dmd-unwind --example unwind_cost
//! ```
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark, run manually")]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod measure {
    use dmd_unwind::{Registers, StackRange, fill};
    use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
    use framehop::{ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, Unwinder};
    use object::{Object, ObjectSection};
    use std::ffi::{CString, c_int, c_long, c_void};
    use std::hint::black_box;
    use std::path::Path;
    use std::process::Command;
    use std::time::Instant;

    const MOST: usize = 128;
    type Framehop = UnwinderX86_64<Vec<u8>, MayAllocateDuringUnwind>;

    struct Out {
        pcs: [usize; MOST],
        len: usize,
    }

    enum Walker<'a> {
        Ours(&'a mut StackRange),
        Framehop(&'a Framehop, &'a mut CacheX86_64<MayAllocateDuringUnwind>),
        Backtrace,
    }

    impl Walker<'_> {
        #[inline(never)]
        fn walk(&mut self, out: &mut Out) {
            match self {
                Walker::Ours(stack) => {
                    out.len = fill(&Registers::here(), stack, &mut out.pcs).0;
                }
                Walker::Framehop(unwinder, cache) => {
                    let (pc, sp, fp): (u64, u64, u64);
                    // SAFETY: the assembly reads three registers.
                    unsafe {
                        std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) fp);
                    }
                    let mut read = |address: u64| {
                        // SAFETY: framehop reads saved registers from a stack for which its rules are right.
                        Ok(unsafe { *std::ptr::with_exposed_provenance::<u64>(address as usize) })
                    };
                    let registers = UnwindRegsX86_64::new(pc, sp, fp);
                    let mut frames = unwinder.iter_frames(pc, registers, cache, &mut read);
                    out.len = 0;
                    // The first frame is this function itself.
                    while let Ok(Some(frame)) = frames.next() {
                        if out.len == MOST {
                            break;
                        }
                        out.pcs[out.len] = frame.address() as usize;
                        out.len += 1;
                    }
                }
                Walker::Backtrace => {
                    out.len = 0;
                    // SAFETY: the program has one thread.
                    unsafe {
                        backtrace::trace_unsynchronized(|frame| {
                            out.pcs[out.len] = frame.ip().addr();
                            out.len += 1;
                            out.len < MOST
                        });
                    }
                }
            }
        }
    }

    /// Frames of several sizes. One frame in three has places for several calls, and `path` decides which function
    /// calls which. So different paths are different stacks.
    #[inline(never)]
    fn small(path: u64, depth: u32, end: &mut dyn FnMut()) -> u64 {
        black_box(descend(path, depth, end)) + 1
    }

    #[inline(never)]
    fn large(path: u64, depth: u32, end: &mut dyn FnMut()) -> u64 {
        let local = black_box([path; 60]);
        let inner = descend(path, depth, end);
        black_box(&local);
        inner + local[7]
    }

    #[inline(never)]
    fn saving(path: u64, depth: u32, end: &mut dyn FnMut()) -> u64 {
        let values = [black_box(1u64), black_box(2), black_box(3), black_box(4), black_box(5)];
        let [a, b, c, d, e] = values;
        let inner = descend(path, depth, end);
        inner + a * b + c * d + e
    }

    #[inline(never)]
    fn descend(path: u64, depth: u32, end: &mut dyn FnMut()) -> u64 {
        if depth == 0 {
            end();
            return black_box(1);
        }
        let (next, rest) = (path % 4, path / 4);
        let inner = match next {
            0 => small(rest, depth - 1, end),
            1 => large(rest, depth - 1, end),
            2 => saving(rest, depth - 1, end),
            _ => descend(rest, depth - 1, end) + 1,
        };
        black_box(inner) + 1
    }

    fn framehop() -> Framehop {
        let mut unwinder = Framehop::new();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut done: Vec<&str> = Vec::new();
        for line in maps.lines() {
            let Some(path) = line.find('/').map(|at| &line[at..]) else { continue };
            if done.contains(&path) {
                continue;
            }
            done.push(path);
            let base = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
            let ends = maps.lines().filter(|line| line.ends_with(path));
            let end = ends.map(|line| line.split(['-', ' ']).nth(1).unwrap()).next_back().unwrap();
            let end = u64::from_str_radix(end, 16).unwrap();
            unwinder.add_module(module(Path::new(path), base, end));
        }
        unwinder
    }

    fn module(path: &Path, base: u64, end: u64) -> Module<Vec<u8>> {
        let data = std::fs::read(path).unwrap();
        let file = object::File::parse(&*data).unwrap();
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            let range = section.address()..section.address() + section.size();
            Some((range, section.data().ok()?.to_vec()))
        };
        let (text, frames, header) = (section(".text"), section(".eh_frame"), section(".eh_frame_hdr"));
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: text.clone().map(|section| section.0),
            text: text.map(|section| section.1),
            eh_frame_svma: frames.clone().map(|section| section.0),
            eh_frame: frames.map(|section| section.1),
            eh_frame_hdr_svma: header.clone().map(|section| section.0),
            eh_frame_hdr: header.map(|section| section.1),
            ..Default::default()
        };
        Module::new(path.display().to_string(), base..end, base, info)
    }

    type Next = extern "C" fn(*mut c_void) -> c_long;
    type Pass = extern "C" fn(c_int, Next, *mut c_void) -> c_long;

    /// A function in a library that could be unloaded. The function calls back. The library's file lives as long as
    /// the folder.
    fn library() -> (tempfile::TempDir, Pass) {
        let folder = tempfile::tempdir().unwrap();
        let (source, library) = (folder.path().join("pass.c"), folder.path().join("pass.so"));
        std::fs::write(&source, include_str!("../tests/unwind/functions.c")).unwrap();
        let options = ["-O2", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o"];
        let status = Command::new("cc").args(options).arg(&library).arg(&source).status().unwrap();
        assert!(status.success());
        let name = CString::new(library.to_str().unwrap()).unwrap();
        // SAFETY: the library has only the compiler's own constructors.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        // SAFETY: the library is open, and the name ends in 0.
        let function = unsafe { libc::dlsym(handle, c"pass".as_ptr()) };
        assert!(!function.is_null());
        // SAFETY: the function has this type.
        let function = unsafe { std::mem::transmute::<*mut c_void, Pass>(function) };
        (folder, function)
    }

    /// Three mixes of four shapes of frames: all shapes are usual; one shape realigns its stack; the CFA of one shape
    /// counts from rbx.
    const SHAPES: [(&str, [c_int; 4]); 3] = [
        ("through a library", [0, 1, 2, 3]),
        ("... with realigned stacks", [0, 5, 2, 3]),
        ("... with frames from rbx", [0, 9, 2, 3]),
    ];

    struct Chain<'a> {
        pass: Pass,
        shapes: [c_int; 4],
        left: u32,
        end: &'a mut dyn FnMut(),
    }

    /// Every third frame belongs to the program, the others belong to the library.
    extern "C" fn chain(argument: *mut c_void) -> c_long {
        // SAFETY: the argument points to the chain that was passed.
        let chained = unsafe { &mut *argument.cast::<Chain<'_>>() };
        if chained.left == 0 {
            (chained.end)();
            return 1;
        }
        chained.left -= 1;
        let shape = chained.shapes[chained.left as usize % 4];
        (chained.pass)(shape, chain, argument) + 1
    }

    fn library_cost(walker: &mut Walker<'_>, pass: Pass, shapes: [c_int; 4]) -> (f64, f64) {
        let mut out = Out { pcs: [0; MOST], len: 0 };
        let mut least = f64::MAX;
        for _ in 0..40 {
            let mut end = || {
                let start = Instant::now();
                for _ in 0..2000 {
                    walker.walk(&mut out);
                }
                least = least.min(start.elapsed().as_nanos() as f64 / 2000.0);
            };
            let mut chained = Chain { pass, shapes, left: 12, end: &mut end };
            chain((&raw mut chained).cast());
        }
        (least, out.len as f64)
    }

    /// Returns the nanoseconds of a walk, the minimum of the rounds, and the number of frames of the stack.
    fn cost(walker: &mut Walker<'_>, paths: &[u64], walks: u32) -> (f64, f64) {
        let mut out = Out { pcs: [0; MOST], len: 0 };
        let mut least = f64::MAX;
        let mut frames = 0;
        for _ in 0..40 {
            let mut spent = 0;
            frames = 0;
            for &path in paths {
                descend(path, 20, &mut || {
                    let start = Instant::now();
                    for _ in 0..walks {
                        walker.walk(&mut out);
                    }
                    spent += start.elapsed().as_nanos();
                });
                frames += out.len;
            }
            least = least.min(spent as f64 / f64::from(walks) / paths.len() as f64);
        }
        (least, frames as f64 / paths.len() as f64)
    }

    pub(crate) fn run() {
        let mut range = StackRange::new();
        let (_folder, pass) = library();
        let unwinder = framehop();
        let mut cache = CacheX86_64::new_in();
        let one = [0x1b_d8e4_2c93];
        let many: Vec<u64> = (0..512u64).map(|path| path.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8).collect();
        let start = Instant::now();
        let mut out = Out { pcs: [0; MOST], len: 0 };
        Walker::Ours(&mut range).walk(&mut out);
        let first = start.elapsed().as_nanos();
        println!("the process's first walk, {} rules compiled: {first} ns", out.len);
        println!("{:<44} {:>9} {:>9} {:>9}", "", "ns/stack", "frames", "ns/frame");
        for (what, paths, walks) in [("one stack", &one[..], 2000), ("512 stacks in turn", &many[..], 1)] {
            let row = |name: &str, mut walker: Walker<'_>| {
                let (nanoseconds, frames) = cost(&mut walker, paths, walks);
                println!(
                    "{:<44} {nanoseconds:>9.1} {frames:>9.1} {:>9.2}",
                    format!("{what}: {name}"),
                    nanoseconds / frames
                );
            };
            row("ours", Walker::Ours(&mut range));
            row("framehop", Walker::Framehop(&unwinder, &mut cache));
            row("backtrace", Walker::Backtrace);
        }
        for (what, shapes) in SHAPES {
            for (name, mut walker) in [
                ("ours", Walker::Ours(&mut range)),
                ("framehop", Walker::Framehop(&unwinder, &mut cache)),
                ("backtrace", Walker::Backtrace),
            ] {
                let (nanoseconds, frames) = library_cost(&mut walker, pass, shapes);
                let name = format!("{what}: {name}");
                println!("{name:<44} {nanoseconds:>9.1} {frames:>9.1} {:>9.2}", nanoseconds / frames);
            }
        }
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() {
    measure::run();
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {
    println!("measured on x86-64 Linux only");
}
