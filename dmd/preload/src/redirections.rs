//! Applies a plan: rewrites the references to an allocator's functions, so that they lead to hooks. Either all
//! references are rewritten, or none.
//!
//! A word is replaced by one store, so other threads see the old or the new function. An instruction is not replaced in
//! one step: no other thread may run the code at that time.

use core::ffi::c_int;
use core::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicUsize, Ordering, fence};

#[cfg(target_arch = "aarch64")]
use dmd_redirect::encodings::aarch64 as encoding;
#[cfg(target_arch = "x86_64")]
use dmd_redirect::encodings::x86_64 as encoding;

use dmd_redirect::elf::ElfFile;
use dmd_redirect::{
    CodeReference, FileImage, FunctionCall, LoadedImage, RedirectPlan, Reference, ReferenceForm,
};

use engine::__private::engine_threads;

use crate::allocator_hooks;
use crate::loaded_objects::{LoadedObject, page_bytes};

/// The reason why a plan was not applied. The program runs on without hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirectFailure {
    /// All hooks are taken.
    NoHook,
    /// There is no memory near the program for code.
    NoRoom,
    /// The system refuses to change the program's memory.
    Protected,
    /// Code must change, and other threads may run it.
    ThreadsRun,
}

impl RedirectFailure {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::NoHook => "libdmd.so has too few hooks for its functions",
            Self::NoRoom => "there is no memory near its code",
            Self::Protected => {
                "the system refuses to change its code through /proc/self/mem (proc_mem.force_override, SELinux)"
            }
            Self::ThreadsRun => "its code cannot be changed while other threads run",
        }
    }
}

/// Whether other threads of the process may run code of the object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunningThreads {
    /// No other thread can be in the code.
    None,
    /// Other threads may be in the code: only words may be changed.
    Some,
    /// Another process stops all threads afterwards, and makes the changes of a plan with changes in code.
    Stopped,
}

impl RunningThreads {
    /// Whether the program has threads other than the calling one.
    pub(crate) fn now() -> Self {
        let before = engine_threads();
        let tasks = std::fs::read_dir("/proc/self/task").map_or(usize::MAX, Iterator::count);
        // If an engine thread starts or ends meanwhile, the two counts do not fit together: assume that threads run.
        if engine_threads() == before && tasks <= 1 + before { Self::None } else { Self::Some }
    }
}

/// A part of memory that was or will be changed.
#[derive(Clone, Copy)]
enum MemoryChange {
    Word { at: usize, old: usize, new: usize },
    Code { at: usize, old: [u8; 4], new: [u8; 4] },
}

/// The changes of a plan that was applied, or that another process applies afterwards ([`RunningThreads::Stopped`]).
/// They can be undone and redone.
pub(crate) struct AppliedPlan {
    changes: Vec<MemoryChange>,
    /// The addresses of functions, each with the address of its hook.
    moved: Vec<(usize, usize)>,
    /// Functions that libraries call, too.
    for_libraries: Vec<ProgramFunction>,
}

/// Redirects all references of a plan. Leaves a plan with changes in code to the other process if `threads` is
/// [`RunningThreads::Stopped`].
pub(crate) fn apply(
    object: &LoadedObject,
    plan: &RedirectPlan,
    threads: RunningThreads,
) -> Result<AppliedPlan, RedirectFailure> {
    let has_code = plan.references.iter().any(|reference| reference.form != ReferenceForm::Word);
    if has_code && threads == RunningThreads::Some {
        return Err(RedirectFailure::ThreadsRun);
    }
    let in_memory = |address: u64| object.distance.wrapping_add(address as usize);
    let mut hooks = TakenHooks::default();
    for (index, planned) in plan.functions.iter().enumerate() {
        let is_used = plan.for_libraries.iter().any(|exported| usize::from(exported.function) == index)
            || plan.references.iter().any(|reference| usize::from(reference.function) == index);
        let take = || {
            let usable_size = plan.usable_size.map(in_memory);
            allocator_hooks::take(
                in_memory(planned.address),
                planned.function.call,
                usable_size,
                plan.is_shims,
            )
        };
        hooks.entries.push(if is_used { take().ok_or(RedirectFailure::NoHook)? } else { 0 });
    }
    let entries = &hooks.entries;
    let mut stubs = if has_code { Some(NearStubs::map(object, entries.len())?) } else { None };
    let mut changes = Vec::new();
    // References to functions that free come first: while other threads run, a hook must free each block that a hook
    // has allocated.
    let is_free = |reference: &&Reference| {
        plan.functions[usize::from(reference.function)].function.call == FunctionCall::Free
    };
    let others = plan.references.iter().filter(|reference| !is_free(reference));
    for reference in plan.references.iter().filter(is_free).chain(others) {
        let index = usize::from(reference.function);
        if reference.form == ReferenceForm::Word {
            let old = in_memory(plan.functions[index].address);
            changes.push(MemoryChange::Word { at: in_memory(reference.at), old, new: entries[index] });
        } else {
            let stub = stubs.as_mut().map_or(0, |stubs| stubs.stub(index, entries[index]));
            add_code_changes(reference, in_memory(reference.at), stub, &mut changes)
                .ok_or(RedirectFailure::NoRoom)?;
        }
    }
    if let Some(stubs) = &stubs {
        stubs.write()?;
    }
    let for_libraries = plan.for_libraries.iter().map(|exported| {
        let index = usize::from(exported.function);
        let planned = &plan.functions[index];
        let is_free = planned.function.call == FunctionCall::Free;
        let address = in_memory(planned.address);
        ProgramFunction { name: exported.name, is_free, address, hook: entries[index] }
    });
    let for_libraries = for_libraries.collect();
    let functions = plan.functions.iter().zip(entries).filter(|(_, entry)| **entry != 0);
    let moved = functions.map(|(planned, entry)| (in_memory(planned.address), *entry)).collect();
    let is_left = has_code && threads == RunningThreads::Stopped;
    let mut memory = CodeMemory::open();
    let refused = changes.iter().position(|change| !is_left && !memory.write(object, *change));
    let may_run = refused.is_none_or(|done| {
        let kept = changes[..done].iter().rev().filter(|change| !memory.write(object, change.reversed()));
        let kept = kept.count();
        kept > 0 || done > 0 && threads != RunningThreads::None
    });
    if may_run {
        hooks.keep();
        if let Some(stubs) = stubs {
            stubs.keep();
        }
    }
    if refused.is_some() {
        Err(RedirectFailure::Protected)
    } else {
        Ok(AppliedPlan { changes, moved, for_libraries })
    }
}

/// The entries of hooks, 0 for functions without one. Unless they are kept, the hooks are given back: no reference leads
/// to them.
#[derive(Default)]
struct TakenHooks {
    entries: Vec<usize>,
}

impl TakenHooks {
    fn keep(mut self) {
        self.entries.clear();
    }
}

impl Drop for TakenHooks {
    fn drop(&mut self) {
        self.entries.iter().filter(|entry| **entry != 0).for_each(|entry| allocator_hooks::give_back(*entry));
    }
}

/// A function that a program's libraries call in place of the C library's, with its hook.
#[derive(Clone, Copy)]
pub(crate) struct ProgramFunction {
    name: &'static str,
    is_free: bool,
    pub(crate) address: usize,
    pub(crate) hook: usize,
}

/// Redirects a library's references to the program's functions: the words that hold their addresses, and the words that
/// the library's stubs would set at the first call. Returns a word that was redirected, and its hook.
pub(crate) fn redirect_library(
    object: &LoadedObject,
    file: Option<&ElfFile<'_>>,
    image: &dyn LoadedImage,
    functions: &[ProgramFunction],
) -> Option<(usize, usize)> {
    let in_memory = |address: u64| object.distance.wrapping_add(address as usize);
    let mut words: Vec<(usize, usize, usize)> = Vec::new();
    image.for_each_word(&mut |at, value| {
        let value = in_memory(value);
        if let Some(index) = functions.iter().position(|program| program.address == value) {
            words.push((index, in_memory(at), value));
        }
    });
    for (index, program) in functions.iter().enumerate() {
        let slots = file.map(|file| FileImage::new(*file).imported_slots(program.name.as_bytes()));
        for at in slots.into_iter().flatten().map(in_memory) {
            if at.is_multiple_of(8) && object.contains(at) && object.contains(at + 7) {
                // SAFETY: the word is in a segment of the library, which stays loaded during the call, and aligned.
                let value = unsafe { AtomicUsize::from_ptr(with_exposed_provenance_mut(at)) };
                let value = value.load(Ordering::Relaxed);
                if object.contains(value) {
                    words.push((index, at, value));
                }
            }
        }
    }
    // Functions that free come first: while other threads run, a hook must free each block that a hook has allocated.
    let mut memory = CodeMemory::open();
    for is_free in [true, false] {
        for (index, at, old) in &words {
            let program = functions[*index];
            if program.is_free == is_free {
                memory.write(object, MemoryChange::Word { at: *at, old: *old, new: program.hook });
            }
        }
    }
    words.first().map(|(index, at, _)| (*at, functions[*index].hook))
}

impl AppliedPlan {
    /// The functions that libraries call in place of the C library's.
    pub(crate) fn for_libraries(&self) -> &[ProgramFunction] {
        &self.for_libraries
    }

    /// Writes back what was there before. Returns false if a part could not be written.
    pub(crate) fn undo(&self, object: &LoadedObject) -> bool {
        let mut memory = CodeMemory::open();
        let refused =
            self.changes.iter().rev().filter(|change| !memory.write(object, change.reversed())).count();
        refused == 0
    }

    /// Redirects again what [`undo`](Self::undo) has written back. Returns false if a part could not be written.
    pub(crate) fn redo(&self, object: &LoadedObject) -> bool {
        let mut memory = CodeMemory::open();
        let refused = self.changes.iter().filter(|change| !memory.write(object, **change)).count();
        refused == 0
    }

    /// The addresses of functions, each with the address of its hook.
    pub(crate) fn moved(&self) -> impl Iterator<Item = (usize, usize)> {
        self.moved.iter().copied()
    }

    /// The changes for another process: for each the address, the old and the new contents, and their number of bytes.
    pub(crate) fn as_words(&self) -> impl Iterator<Item = [usize; 4]> {
        let word = |code: [u8; 4]| u32::from_ne_bytes(code) as usize;
        self.changes.iter().map(move |change| match *change {
            MemoryChange::Word { at, old, new } => [at, old, new, size_of::<usize>()],
            MemoryChange::Code { at, old, new } => [at, word(old), word(new), size_of_val(&old)],
        })
    }

    /// Whether all references lead to the hooks.
    pub(crate) fn is_in_effect(&self) -> bool {
        self.changes.iter().all(|change| match *change {
            MemoryChange::Word { at, new, .. } => {
                // SAFETY: the search found this word in an object that stays loaded.
                unsafe { with_exposed_provenance::<usize>(at).read_volatile() == new }
            }
            MemoryChange::Code { at, new, .. } => read_code(at) == new,
        })
    }

    /// Whether the plan has changes in code. They are possible only while no other thread runs.
    pub(crate) fn has_code(&self) -> bool {
        self.changes.iter().any(|change| matches!(change, MemoryChange::Code { .. }))
    }
}

impl MemoryChange {
    fn reversed(self) -> Self {
        match self {
            Self::Word { at, old, new } => Self::Word { at, old: new, new: old },
            Self::Code { at, old, new } => Self::Code { at, old: new, new: old },
        }
    }
}

fn read_code(at: usize) -> [u8; 4] {
    // SAFETY: the search found a reference in these 4 bytes of the program's code, which is readable.
    unsafe { with_exposed_provenance::<[u8; 4]>(at).read_unaligned() }
}

/// Adds the changes for a reference in code. Returns `None` if the stub is too far away.
fn add_code_changes(
    reference: &Reference,
    at: usize,
    stub: usize,
    changes: &mut Vec<MemoryChange>,
) -> Option<()> {
    let ReferenceForm::Code(form) = reference.form else { return None };
    let mut change = |at, new| changes.push(MemoryChange::Code { at, old: read_code(at), new });
    match form {
        #[cfg(target_arch = "x86_64")]
        CodeReference::Distance => change(at, encoding::distance(at as u64, stub as u64)?),
        #[cfg(target_arch = "x86_64")]
        CodeReference::Immediate => change(at, u32::try_from(stub).ok()?.to_le_bytes()),
        #[cfg(target_arch = "aarch64")]
        CodeReference::Branch => {
            let branch = u32::from_le_bytes(read_code(at));
            change(at, encoding::with_branch_target(branch, at as u64, stub as u64)?.to_le_bytes());
        }
        #[cfg(target_arch = "aarch64")]
        CodeReference::PagePair(distance) => {
            let page = u32::from_le_bytes(read_code(at));
            change(at, encoding::with_page(page, at as u64, stub as u64)?.to_le_bytes());
            let at = at + usize::from(distance);
            let add = u32::from_le_bytes(read_code(at));
            change(at, encoding::with_added(add, stub as u64).to_le_bytes());
        }
        _ => return None,
    }
    Some(())
}

/// Pages with jumps to hooks, near an object: a distance in the object's code does not reach the hooks themselves. The
/// pages are unmapped unless they are kept.
struct NearStubs {
    start: usize,
    code: Vec<u8>,
}

const STRIDE: usize = encoding::STUB_BYTES.next_multiple_of(16);
#[cfg(target_arch = "x86_64")]
const REACH: u64 = encoding::DISTANCE_REACH;
#[cfg(target_arch = "aarch64")]
const REACH: u64 = encoding::BRANCH_REACH;

/// This many places are tried below an object, and as many above it.
const PLACES: usize = 512;
/// The distance between two of these places: a multiple of every page size.
const STEP: usize = 64 << 10;

impl NearStubs {
    fn map(object: &LoadedObject, count: usize) -> Result<Self, RedirectFailure> {
        let (start, end) = object.range();
        let bytes = (count * STRIDE).next_multiple_of(page_bytes());
        // Below the object first: the heap of `brk` grows above the program.
        let (first, next) = (start & !(STEP - 1), end.next_multiple_of(STEP));
        let below =
            (1..=PLACES).map_while(|step| first.checked_sub(step * STEP)).filter(|place| *place >= STEP);
        let above = (1..=PLACES).map_while(|step| next.checked_add(step * STEP));
        let reaches = |place: &usize| (end.max(*place + bytes) - start.min(*place)) as u64 <= REACH;
        for place in below.chain(above).filter(reaches) {
            // SAFETY: with this flag, the call maps new pages only where no others are.
            let mapped = unsafe {
                libc::mmap(
                    with_exposed_provenance_mut(place),
                    bytes,
                    libc::PROT_READ | libc::PROT_EXEC,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                    -1,
                    0,
                )
            };
            if mapped.addr() == place {
                return Ok(Self { start: mapped.expose_provenance(), code: vec![0; bytes] });
            }
            if mapped != libc::MAP_FAILED {
                // A kernel before 4.17 takes the address as a hint.
                // SAFETY: the call above has just made this mapping.
                unsafe { libc::munmap(mapped, bytes) };
            }
        }
        Err(RedirectFailure::NoRoom)
    }

    /// The address of the jump to an entry.
    fn stub(&mut self, index: usize, entry: usize) -> usize {
        let at = index * STRIDE;
        self.code[at..at + encoding::STUB_BYTES].copy_from_slice(&encoding::stub(entry as u64));
        self.start + at
    }

    fn write(&self) -> Result<(), RedirectFailure> {
        let written = CodeMemory::open().write_code(self.start, &self.code);
        if written { Ok(()) } else { Err(RedirectFailure::Protected) }
    }

    fn keep(mut self) {
        self.code.clear();
    }
}

impl Drop for NearStubs {
    fn drop(&mut self) {
        if !self.code.is_empty() {
            // SAFETY: `map` made this mapping, and no code refers to it.
            unsafe { libc::munmap(with_exposed_provenance_mut(self.start), self.code.len()) };
        }
    }
}

/// Writes to code and to constant data of this process.
struct CodeMemory {
    /// `/proc/self/mem`; negative if it cannot be opened. Writes there also reach pages that are not writable.
    file: c_int,
}

impl CodeMemory {
    fn open() -> Self {
        // SAFETY: the path ends in 0.
        let file = unsafe { libc::open(c"/proc/self/mem".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        Self { file }
    }

    fn write(&mut self, object: &LoadedObject, change: MemoryChange) -> bool {
        match change {
            MemoryChange::Word { at, old, new } => self.write_word(at, old, new, object.protection(at)),
            MemoryChange::Code { at, old, new } => read_code(at) == old && self.write_code(at, &new),
        }
    }

    fn write_word(&mut self, at: usize, old: usize, new: usize, protection: c_int) -> bool {
        let word = with_exposed_provenance_mut::<usize>(at);
        // SAFETY: the search found this word, which is aligned, in a segment of the object.
        let word = unsafe { AtomicUsize::from_ptr(word) };
        if protection & libc::PROT_WRITE != 0 {
            return word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        }
        if word.load(Ordering::Relaxed) != old {
            return false;
        }
        if protect(at, 8, protection | libc::PROT_WRITE) {
            word.store(new, Ordering::Release);
            // An error does not matter: the program also runs if the page stays writable.
            protect(at, 8, protection);
            return true;
        }
        self.write_file(at, &new.to_ne_bytes())
    }

    /// Writes through the kernel: the protection of code stays as it is. A system that forbids this might also refuse
    /// to make a page executable again.
    fn write_code(&mut self, at: usize, code: &[u8]) -> bool {
        let written = self.write_file(at, code);
        if written {
            make_executable(at, code.len());
        }
        written
    }

    fn write_file(&mut self, at: usize, bytes: &[u8]) -> bool {
        // SAFETY: the bytes are valid for a read. The kernel checks the descriptor and the place.
        let written =
            unsafe { libc::pwrite(self.file, bytes.as_ptr().cast(), bytes.len(), at as libc::off_t) };
        written == bytes.len().cast_signed()
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        if self.file >= 0 {
            // SAFETY: `open` opened the descriptor.
            unsafe { libc::close(self.file) };
        }
    }
}

/// Changes the protection of the pages of some bytes.
fn protect(at: usize, bytes: usize, protection: c_int) -> bool {
    let page = page_bytes();
    let start = at & !(page - 1);
    let length = (at + bytes).next_multiple_of(page) - start;
    let start = if start == 0 { null_mut() } else { with_exposed_provenance_mut(start) };
    // SAFETY: the callers pass pages of the program whose protection they know.
    unsafe { libc::mprotect(start, length, protection) == 0 }
}

/// Makes written code visible to the processor's fetches of instructions.
fn make_executable(at: usize, bytes: usize) {
    fence(Ordering::SeqCst);
    #[cfg(target_arch = "aarch64")]
    for line in (at & !3..at + bytes).step_by(4) {
        // SAFETY: the instructions only write back and drop cached copies of this word.
        unsafe {
            core::arch::asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", "dsb ish", "isb", in(reg) line);
        }
    }
    #[cfg(not(target_arch = "aarch64"))]
    let _ = (at, bytes);
}
