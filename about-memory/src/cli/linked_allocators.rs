//! The allocators that a program links statically. Before a run: whether `libdmd.so` will record their blocks. After a
//! run: the allocators whose blocks a dump or a recording lacks. `libdmd.so` decides with the same code.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use about_memory::launch::contains_dmd;
use dmd_analyze::program::bytes;
use dmd_analyze::{Dump, DumpAllocator};
use dmd_redirect::elf::ElfFile;
use dmd_redirect::{AllocatorPlan, FileImage, plan_redirects};

/// Larger files are not read.
const MOST_BYTES: u64 = 2 << 30;

/// Returns a line for each allocator in the file of a program. A program that contains the wrapper `dmd::Dmd` records
/// its blocks itself: it gets no line.
pub(super) fn plan_lines(program: &Path) -> Vec<String> {
    let plans = plans(program, "");
    plans.iter().map(|plan| plan.to_string()).collect()
}

/// Whether `libdmd.so` hooks the `malloc` that a program defines for itself and its libraries.
pub(super) fn has_hooks_for_malloc(program: &Path) -> bool {
    plans(program, "").iter().any(|plan| plan.plan.as_ref().is_ok_and(|plan| !plan.for_libraries.is_empty()))
}

/// Returns a line for each allocator whose blocks are missing in a dump or a recording, a line if blocks from before an
/// attachment are missing, and a line if ends of blocks are missing.
pub(super) fn gap_lines(dump: &Dump) -> Vec<String> {
    let mut lines: Vec<String> = if dump.allocators().is_empty() {
        // A recording does not list the allocators. The file of the program shows them, if its build id is the same.
        let program = dump.modules().first();
        let plans = program.map(|program| plans(Path::new(&program.path), &program.build_id));
        let refused = plans.into_iter().flatten().filter(|plan| plan.plan.is_err());
        refused.map(|plan| plan.to_string()).collect()
    } else {
        let gaps = dump.allocators().iter().filter_map(|allocator| {
            let obstacle = allocator.obstacle.as_ref()?;
            let DumpAllocator { name, place, .. } = allocator;
            Some(format!("{name} inside {place}: {obstacle}"))
        });
        gaps.collect()
    };
    if dump.older_bytes() > 0 {
        let older = dump.older_bytes();
        let recorded: f64 =
            dump.blocks().map(|blocks| (blocks.all_requested() + blocks.all_slop()) as f64).sum();
        let share = older as f64 / (older as f64 + recorded) * 100.0;
        let when = if dump.sample().is_some() { "at the attachment" } else { "now" };
        lines.push(format!(
            "blocks from before the attachment are not shown: {} {when}, about {share:.0} % of the heap",
            bytes(older.into())
        ));
    }
    if dump.unseen_frees() > 0 && !dump.allocators().is_empty() {
        lines.push(format!(
            "DMD did not see the end of {} blocks: its figures for live blocks are too high",
            dump.unseen_frees()
        ));
    }
    lines
}

fn plans(program: &Path, build_id: &str) -> Vec<AllocatorPlan> {
    let Some(bytes) = contents(program) else { return Vec::new() };
    let Some(file) = ElfFile::parse(&bytes) else { return Vec::new() };
    if !build_id.is_empty() && hexadecimal(file.build_id().unwrap_or_default()) != build_id {
        return Vec::new();
    }
    let debug = file.symbols().is_none().then(|| debug_file(&file)).flatten();
    let symbols = debug.as_deref().and_then(ElfFile::parse);
    let plans = plan_redirects(&file, &symbols.unwrap_or(file), &FileImage::new(file));
    if plans.is_empty() || contains_dmd(program) { Vec::new() } else { plans }
}

/// The contents of a regular file. The dump may come from another person and name any path: opening a pipe would wait
/// for its writer, and a file of the kernel may contain any number of bytes although its size is 0.
fn contents(path: &Path) -> Option<Vec<u8>> {
    let about = path.metadata().ok().filter(|about| about.is_file() && about.len() <= MOST_BYTES)?;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(about.len()).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the contents of the debug file with the build id of this file. `libdmd.so` looks for it in the same folder.
fn debug_file(file: &ElfFile<'_>) -> Option<Vec<u8>> {
    let id = hexadecimal(file.build_id()?);
    let path = format!("/usr/lib/debug/.build-id/{}/{}.debug", id.get(..2)?, id.get(2..)?);
    let bytes = contents(Path::new(&path))?;
    (hexadecimal(ElfFile::parse(&bytes)?.build_id()?) == id).then_some(bytes)
}
