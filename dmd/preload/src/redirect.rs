//! Redirects all loaded objects' references to functions of the C library to the functions of this library, and back.
//!
//! An object reaches a function of another object through a word that the loader has set: a relocation with the
//! function's name contains the position of the word. The word holds the address of the real function, or of the
//! object's own stub, which looks the function up at the first call. One aligned store replaces this address by the
//! address of the function here, while the program's threads run. The loader, this library and words with other values
//! stay as they are.
//!
//! Functions that free are redirected first, so that each block that a function here has allocated is also freed here.
//! The way back has the reverse order.

use core::ffi::{CStr, c_int, c_void};
use core::ops::Range;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::fs;
use std::sync::{Mutex, PoisonError};

use crate::injected::{is_attached, program_address, program_function};
use crate::loaded_objects::{page_bytes, read_through_system};
use crate::{
    alone, children, confine, ending, later_objects, malloc, mappings, plugins, programs, thread_counts,
};

/// From the C library to this library, or back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Here,
    Back,
}

/// The result of a redirection.
pub(crate) struct RedirectCounts {
    /// The number of changed words.
    pub(crate) slots: usize,
    /// The number of objects with changed words.
    pub(crate) objects: usize,
}

/// The name of a function of the C library, with the function of this library that replaces it.
struct Hook {
    name: &'static CStr,
    here: *const c_void,
    /// Hooks with a smaller number are redirected first.
    order: u8,
}

// SAFETY: the pointers are addresses of functions.
unsafe impl Sync for Hook {}

const ENDS: u8 = 0;
const MOVES: u8 = 1;
const OTHERS: u8 = 2;

macro_rules! hooks {
    ($($order:ident: $($module:ident::$function:ident $(as $name:literal)?),*;)*) => {
        &[$($(Hook {
            name: hooks!(@name $function $($name)?),
            here: $module::$function as *const c_void,
            order: $order,
        },)*)*]
    };
    (@name $function:ident $name:literal) => { $name };
    (@name $function:ident) => {
        match CStr::from_bytes_with_nul(concat!(stringify!($function), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("the macro adds the 0"),
        }
    };
}

/// The functions of this library that replace functions of the C library. `__cxa_thread_atexit_impl` is left out: only
/// the engine threads need the function of this library, and they call it without a redirection.
static HOOKS: &[Hook] = hooks! {
    ENDS: malloc::free_attached as c"free", malloc::free_attached as c"cfree";
    MOVES: malloc::realloc, malloc::reallocarray;
    OTHERS: malloc::malloc, malloc::calloc, malloc::posix_memalign, malloc::aligned_alloc, malloc::memalign,
        malloc::valloc, malloc::pvalloc,
        alone::unshare, alone::setns, alone::setuid, alone::setgid, alone::seteuid, alone::setegid, alone::setreuid,
        alone::setregid, alone::setresuid, alone::setresgid, alone::setgroups, alone::initgroups, alone::capset,
        children::waitpid, children::wait3, children::wait4, children::waitid,
        confine::syscall, confine::prctl,
                mappings::mmap, mappings::mmap64, mappings::mremap, mappings::munmap,
        ending::sigaction, ending::signal,
        programs::execve, programs::execv, programs::execvp, programs::execvpe, programs::posix_spawn,
        programs::posix_spawnp,
        thread_counts::stat, thread_counts::stat64, thread_counts::lstat, thread_counts::lstat64,
        thread_counts::fstatat, thread_counts::fstatat64, thread_counts::statx, thread_counts::__xstat,
        thread_counts::__xstat64, thread_counts::__lxstat, thread_counts::__lxstat64, thread_counts::__fxstatat,
        thread_counts::__fxstatat64,
        later_objects::dlopen, later_objects::dlmopen, later_objects::dlvsym, plugins::dlsym;
};

/// The maximum number of hooks.
const MOST: usize = 64;

/// For the hook with the same index: the function that the program calls by the hook's name.
static REAL: [AtomicPtr<c_void>; MOST] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST];

/// For the hook with the same index: the address in words that are not for calls. In a program at a fixed address, it
/// may be the address of a stub in the executable instead of the function. The word that the stub reads is redirected.
static ADDRESSES: [AtomicPtr<c_void>; MOST] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST];

/// The number of objects that the loader had added until the last redirection. It is one less if an object was not
/// ready, so that a later look redirects again.
static SEEN: AtomicU64 = AtomicU64::new(0);
/// The number of times that a look at new objects was repeated because one of them was not ready.
static REPEATED: AtomicUsize = AtomicUsize::new(0);
const MOST_REPEATED: usize = 1000;

/// A word of an object that refers to the function of a hook.
#[derive(Clone, Copy)]
struct FunctionSlot {
    place: usize,
    hook: usize,
    /// Whether the object's stub would set the word at the first call.
    is_lazy: bool,
    /// Whether only calls use the word.
    is_for_calls: bool,
}

/// Words that a stub may have set to the real function after they were redirected: the stub's thread had read the old
/// value before.
static LAZY: Mutex<Vec<FunctionSlot>> = Mutex::new(Vec::new());

/// A loaded object with words to change.
struct SlotObject {
    /// The pages that the loader made read-only after it set the words.
    read_only: Range<usize>,
}

/// The words to change, and the objects and pages that decide which words these are.
struct SlotSearch {
    direction: Direction,
    /// Objects at these addresses are left out: the loader, the kernel's object and this library.
    left_out: [usize; 3],
    /// The read-only mappings of the process.
    read_only: Vec<Range<usize>>,
    slots: Vec<FunctionSlot>,
    objects: Vec<SlotObject>,
    /// Whether an object has a word that the loader has not set yet.
    is_early: bool,
    added: u64,
    result: Result<RedirectCounts, String>,
}

/// Redirects all objects. All words change, or none does.
///
/// # Errors
///
/// Returns the reason if the system does not allow the change.
pub(crate) fn redirect(direction: Direction) -> Result<RedirectCounts, String> {
    // Later calls do not look names up again: a failed look-up would remove an error that the program has not yet read
    // with `dlerror`.
    if REAL[0].load(Ordering::Relaxed).is_null() {
        for ((real, address), hook) in REAL.iter().zip(&ADDRESSES).zip(HOOKS) {
            address.store(program_address(hook.name), Ordering::Relaxed);
            real.store(program_function(hook.name), Ordering::Relaxed);
        }
    }
    // SAFETY: `getauxval` reads a vector that does not change.
    let auxiliary = |key| unsafe { libc::getauxval(key) } as usize;
    let mut search = SlotSearch {
        direction,
        left_out: [
            auxiliary(libc::AT_BASE),
            auxiliary(libc::AT_SYSINFO_EHDR),
            crate::injected::file_of((&raw const SEEN).cast()).addr(),
        ],
        read_only: read_only_mappings(),
        slots: Vec::new(),
        objects: Vec::new(),
        is_early: false,
        added: 0,
        result: Ok(RedirectCounts { slots: 0, objects: 0 }),
    };
    // SAFETY: the callback has the type that the loader calls, and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(with_loader_held), (&raw mut search).cast()) };
    if search.result.is_ok() {
        let again = search.is_early && REPEATED.fetch_add(1, Ordering::Relaxed) < MOST_REPEATED;
        SEEN.store(search.added - u64::from(again), Ordering::Relaxed);
    }
    search.result
}

/// The addresses of the program's functions that allocate and free, each with the address of the function here.
pub(crate) fn moved() -> impl Iterator<Item = (usize, usize)> {
    const ALLOCATES: usize = 11;
    HOOKS[..ALLOCATES].iter().zip(&REAL).filter_map(|(hook, real)| {
        let real = real.load(Ordering::Relaxed).addr();
        (real != 0).then_some((real, hook.here.addr()))
    })
}

/// Redirects the words of [`LAZY`] that a stub has set to the real function. Only an engine thread calls this function,
/// some time after a redirection.
pub(crate) fn redirect_late_stubs() {
    // The lock is held until the end, so that the way back does not start meanwhile.
    let mut lazy = LAZY.lock().unwrap_or_else(PoisonError::into_inner);
    for slot in lazy.drain(..) {
        let real = REAL[slot.hook].load(Ordering::Relaxed).addr();
        if is_attached() && read_through_system(slot.place) == Some(real) {
            word(slot.place).store(HOOKS[slot.hook].here.expose_provenance(), Ordering::SeqCst);
        }
    }
}

/// Whether the loader has added objects since the last redirection. Calls the loader.
pub(crate) fn has_new_objects() -> bool {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, added: *mut c_void) -> c_int {
        // SAFETY: the loader passes a record that is valid during the call.
        let now = unsafe { (*info).dlpi_adds };
        // SAFETY: `has_new_objects` passes its variable, and waits during the call.
        unsafe { added.cast::<u64>().write(now) };
        1
    }
    let mut added = 0_u64;
    // SAFETY: the callback has the type that the loader calls, and `added` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut added).cast()) };
    added != SEEN.load(Ordering::Relaxed)
}

/// Finds all words and changes them. The loader calls this function, and keeps all objects loaded until it returns.
unsafe extern "C" fn with_loader_held(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: the loader passes a record that is valid during the call.
    let added = unsafe { (*info).dlpi_adds };
    // SAFETY: the callback has the type that the loader calls, and the search outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(add_object), search) };
    // SAFETY: `redirect` passes its search and waits; the call above has ended.
    let search = unsafe { &mut *search.cast::<SlotSearch>() };
    search.added = added;
    search.result = search.change();
    1
}

unsafe extern "C" fn add_object(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: the loader passes a record that is valid during the call.
    let info = unsafe { &*info };
    // SAFETY: `with_loader_held` passes the search on and waits.
    let search = unsafe { &mut *search.cast::<SlotSearch>() };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's record has this many headers.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    search.add(info.dlpi_addr as usize, headers);
    0
}

/// The tables of an object that relocations need.
#[derive(Default)]
struct ObjectTables {
    symbols: usize,
    strings: usize,
    /// The addresses and sizes of two tables of relocations: the table for calls of functions, and the table of all
    /// other relocations.
    relocations: [(usize, usize); 2],
}

const SYMBOL_TABLE: i64 = 6;
const STRING_TABLE: i64 = 5;
const RELA: i64 = 7;
const RELA_SIZE: i64 = 8;
const PLT_RELA: i64 = 23;
const PLT_RELA_SIZE: i64 = 2;
const GNU_RELRO: u32 = 0x6474_e552;

/// The kinds of relocations that set a word to the address of a function: at the first call through a stub, or when the
/// object is loaded.
#[cfg(target_arch = "x86_64")]
mod kind {
    pub(super) const JUMP_SLOT: u64 = 7;
    pub(super) const AT_ONCE: [u64; 2] = [6, 1];
}
#[cfg(target_arch = "aarch64")]
mod kind {
    pub(super) const JUMP_SLOT: u64 = 1026;
    pub(super) const AT_ONCE: [u64; 2] = [1025, 257];
}
use kind::{AT_ONCE, JUMP_SLOT};

impl SlotSearch {
    fn add(&mut self, bias: usize, headers: &[libc::Elf64_Phdr]) {
        let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let start_of = |header: &libc::Elf64_Phdr| bias.wrapping_add(header.p_vaddr as usize);
        let start = loads().map(start_of).min().unwrap_or(0) & !(page_bytes() - 1);
        let end = loads().map(|header| start_of(header) + header.p_memsz as usize).max().unwrap_or(0);
        if self.left_out.iter().any(|address| (start..end).contains(address)) {
            return;
        }
        let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else { return };
        let tables = tables(start_of(dynamic), dynamic.p_memsz as usize / 16, bias, start..end);
        let relro = headers.iter().find(|header| header.p_type == GNU_RELRO).map_or(0..0, |header| {
            let page = page_bytes();
            let first = start_of(header) & !(page - 1);
            first..(start_of(header) + header.p_memsz as usize) & !(page - 1)
        });
        // These pages become read-only when the loader has set all words of the object.
        if !relro.is_empty() && !self.is_read_only(&relro) {
            self.is_early = true;
            return;
        }
        let before = self.slots.len();
        for (at, bytes) in tables.relocations {
            for place in (at..at + bytes).step_by(size_of::<[u64; 3]>()) {
                // SAFETY: the object's own table has this many relocations of three words.
                let [offset, info, addend] =
                    unsafe { core::ptr::with_exposed_provenance::<[u64; 3]>(place).read() };
                let (kind, symbol) = (info & 0xffff_ffff, (info >> 32) as usize);
                if symbol == 0 || addend != 0 || (kind != JUMP_SLOT && !AT_ONCE.contains(&kind)) {
                    continue;
                }
                let Some(hook) = tables.hook(symbol) else { continue };
                let place = bias.wrapping_add(offset as usize);
                if !place.is_multiple_of(size_of::<usize>()) || !(start..end).contains(&place) {
                    continue;
                }
                let value = word(place).load(Ordering::Relaxed);
                let here = HOOKS[hook].here.addr();
                let [real, address] =
                    [&REAL, &ADDRESSES].map(|functions| functions[hook].load(Ordering::Relaxed).addr());
                let is_for_calls = kind == JUMP_SLOT;
                // If the object itself defines the function, the word may hold that function, and must not change.
                let is_lazy = is_for_calls && (start..end).contains(&value) && !tables.defines(symbol);
                let is_due = match self.direction {
                    Direction::Here => value == real || value == address || is_lazy,
                    Direction::Back => value == here,
                };
                if is_due && real != 0 {
                    self.slots.push(FunctionSlot { place, hook, is_lazy, is_for_calls });
                } else if value < page_bytes() || (kind == JUMP_SLOT && value < end - start) {
                    self.is_early = true;
                }
            }
        }
        if self.slots.len() > before {
            self.objects.push(SlotObject { read_only: relro });
        }
    }

    fn is_read_only(&self, pages: &Range<usize>) -> bool {
        self.read_only.iter().any(|range| range.start <= pages.start && pages.end <= range.end)
    }

    /// Changes the words.
    fn change(&self) -> Result<RedirectCounts, String> {
        let counts = RedirectCounts { slots: self.slots.len(), objects: self.objects.len() };
        let mut lazy = LAZY.lock().unwrap_or_else(PoisonError::into_inner);
        if self.direction == Direction::Back {
            lazy.clear();
        }
        for (number, object) in self.objects.iter().enumerate() {
            if let Err(error) = protect(&object.read_only, libc::PROT_READ | libc::PROT_WRITE) {
                for changed in &self.objects[..number] {
                    _ = protect(&changed.read_only, libc::PROT_READ);
                }
                return Err(format!(
                    "the system does not let its relocations be changed (mprotect: {error})"
                ));
            }
        }
        for order in match self.direction {
            Direction::Here => [ENDS, MOVES, OTHERS],
            Direction::Back => [OTHERS, MOVES, ENDS],
        } {
            for slot in self.slots.iter().filter(|slot| HOOKS[slot.hook].order == order) {
                let value = match self.direction {
                    Direction::Here => HOOKS[slot.hook].here.expose_provenance(),
                    Direction::Back if slot.is_for_calls => {
                        REAL[slot.hook].load(Ordering::Relaxed).expose_provenance()
                    }
                    Direction::Back => ADDRESSES[slot.hook].load(Ordering::Relaxed).expose_provenance(),
                };
                word(slot.place).store(value, Ordering::SeqCst);
            }
        }
        for object in &self.objects {
            _ = protect(&object.read_only, libc::PROT_READ);
        }
        lazy.extend(self.slots.iter().filter(|slot| slot.is_lazy && self.direction == Direction::Here));
        Ok(counts)
    }
}

impl ObjectTables {
    /// Whether the object itself defines a symbol.
    fn defines(&self, symbol: usize) -> bool {
        let entry = core::ptr::with_exposed_provenance::<libc::Elf64_Sym>(self.symbols).wrapping_add(symbol);
        // SAFETY: the loader has used this entry of the table to set a word.
        unsafe { entry.read() }.st_shndx != 0
    }

    /// The hook with the name of a symbol.
    fn hook(&self, symbol: usize) -> Option<usize> {
        const SYMBOL_BYTES: usize = 24;
        let entry = core::ptr::with_exposed_provenance::<u32>(self.symbols + symbol * SYMBOL_BYTES);
        // SAFETY: the loader has used this entry of the table to set the word.
        let name = unsafe { entry.read() } as usize;
        let name = core::ptr::with_exposed_provenance::<core::ffi::c_char>(self.strings + name);
        // SAFETY: the loader has used this name, which ends in 0.
        let first = unsafe { name.read() } as u8;
        if !HOOKS.iter().any(|hook| hook.name.to_bytes()[0] == first) {
            return None;
        }
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(name) };
        HOOKS.iter().position(|hook| hook.name == name)
    }
}

/// Reads the dynamic section. glibc's loader has replaced most of its file addresses by addresses in memory.
fn tables(at: usize, count: usize, bias: usize, object: Range<usize>) -> ObjectTables {
    let mut tables = ObjectTables::default();
    let address = |value: usize| if object.contains(&value) { value } else { bias.wrapping_add(value) };
    for number in 0..count {
        let entry = core::ptr::with_exposed_provenance::<[usize; 2]>(at + 16 * number);
        // SAFETY: the header of the object's dynamic section has given its size, and the section stays mapped.
        let [tag, value] = unsafe { entry.read() };
        match tag as i64 {
            0 => break,
            SYMBOL_TABLE => tables.symbols = address(value),
            STRING_TABLE => tables.strings = address(value),
            PLT_RELA => tables.relocations[0].0 = address(value),
            PLT_RELA_SIZE => tables.relocations[0].1 = value,
            RELA => tables.relocations[1].0 = address(value),
            RELA_SIZE => tables.relocations[1].1 = value,
            _ => {}
        }
    }
    tables
}

fn word(place: usize) -> &'static AtomicUsize {
    let place = core::ptr::with_exposed_provenance::<AtomicUsize>(place);
    // SAFETY: all callers pass an aligned word that a relocation of a loaded object names. The loader keeps the object
    // loaded while `dl_iterate_phdr` runs.
    unsafe { &*place }
}

fn protect(pages: &Range<usize>, protection: c_int) -> Result<(), std::io::Error> {
    if pages.is_empty() {
        return Ok(());
    }
    let start = core::ptr::with_exposed_provenance_mut(pages.start);
    // SAFETY: the pages belong to an object that the loader keeps loaded. They were read-only after relocation, and
    // only this function and the loader's own relocation, which has ended, change them.
    if unsafe { libc::mprotect(start, pages.len(), protection) } == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// The mappings that the program cannot write, joined where they touch.
fn read_only_mappings() -> Vec<Range<usize>> {
    let maps = fs::read("/proc/self/maps").unwrap_or_default();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for line in maps.split(|byte| *byte == b'\n') {
        let mut words = line.split(|byte| *byte == b' ');
        let (Some(range), Some(rights)) = (words.next(), words.next()) else { continue };
        let mut ends = range
            .split(|byte| *byte == b'-')
            .filter_map(|digits| usize::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        let (Some(start), Some(end)) = (ends.next(), ends.next()) else { continue };
        if rights.get(1) == Some(&b'w') {
            continue;
        }
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => ranges.push(start..end),
        }
    }
    ranges
}
