//! Hooks the allocators that the program and its libraries link statically.

use core::ffi::CStr;
use core::ptr::with_exposed_provenance_mut;
use std::sync::{Mutex, PoisonError};

use dmd_redirect::elf::{ElfFile, THIS_MACHINE};
use dmd_redirect::{AllocatorPlan, plan_redirects};
use engine::__private::{
    LINKED_MARK, LinkedAllocator, PreloadRecording, add_linked_allocator, may_record, own_allocations,
    recording, say,
};

use crate::injected::program_function;
use crate::loaded_objects::{LoadedObject, MappedFile, MemoryImage, PinnedObject, all, read_through_system};
use crate::malloc::set_program_realloc;
use crate::redirections::{AppliedPlan, ProgramFunction, RunningThreads, apply, redirect_library};

/// A loaded file that was looked at.
struct KnownObject {
    path: Vec<u8>,
    headers: usize,
    distance: usize,
    /// A word that was redirected to a hook for libraries.
    word: Option<(usize, usize)>,
    /// An object with hooks stays loaded: the program may have copied the address of a hook.
    _pin: Option<PinnedObject>,
}

impl KnownObject {
    fn is(&self, object: &LoadedObject) -> bool {
        (self.distance, self.headers) == (object.distance, object.headers()) && self.path == object.path
    }
}

/// All files that were looked at. The entry of an unloaded file stays until another file is loaded at its place.
static KNOWN: Mutex<Vec<KnownObject>> = Mutex::new(Vec::new());

/// The program's functions that libraries call in place of the C library's.
static FOR_LIBRARIES: Mutex<Vec<ProgramFunction>> = Mutex::new(Vec::new());

/// Hooks the allocators of all loaded files. Called once, before the program's own code runs.
pub(crate) fn hook_all() {
    if may_record() {
        own_allocations(|| hook_unknown(true, RunningThreads::None));
    }
    let own = program_function(c"realloc");
    if !all().iter().any(|object| is_this_library(object) && !object.contains(own.addr())) {
        return;
    }
    // The program defines `malloc` and its family itself, so it does not call the functions of this library.
    let hook = FOR_LIBRARIES.lock().ok().and_then(|functions| {
        functions.iter().find(|program| program.address == own.addr()).map(|program| program.hook)
    });
    set_program_realloc(hook.map_or(own, with_exposed_provenance_mut));
    if hook.is_none() && recording() == PreloadRecording::Yes {
        say("the program defines its own malloc: its blocks are not recorded");
    }
}

/// Hooks the allocators of files that were loaded since the last call.
pub(crate) fn hook_new(threads: RunningThreads) {
    own_allocations(|| hook_unknown(false, threads));
}

fn hook_unknown(is_start: bool, threads: RunningThreads) {
    // In the child of a fork, another thread of the parent may hold the lock for ever.
    let Ok(mut known) = KNOWN.try_lock() else { return };
    let objects = all();
    let mut for_libraries = FOR_LIBRARIES.lock().map(|functions| functions.clone()).unwrap_or_default();
    for (index, object) in objects.iter().enumerate() {
        let is_program = index == 0;
        let seen = known.iter().find(|known| known.is(object));
        // A library may have been unloaded, and loaded again at the same place.
        let is_new_again = |known: &KnownObject| {
            known.word.is_some_and(|(at, hook)| read_through_system(at).is_some_and(|value| value != hook))
        };
        if seen.is_some_and(|known| !is_new_again(known)) {
            continue;
        }
        // Wait until the loader has relocated the object, and keep it loaded.
        let pin = if is_start { None } else { object.pin() };
        if !is_start && !is_program && pin.is_none() {
            continue;
        }
        let applied = hook(object, is_program || !is_start, threads, &mut |allocator| {
            if let Some(obstacle) = &allocator.obstacle {
                say(&format!("{} inside {}: {obstacle}", allocator.name, allocator.place));
            }
            add_linked_allocator(allocator);
        });
        if is_program && is_start {
            for_libraries.extend(applied.iter().flat_map(AppliedPlan::for_libraries));
            if let Ok(mut functions) = FOR_LIBRARIES.lock() {
                functions.clone_from(&for_libraries);
            }
        }
        let is_caller = !for_libraries.is_empty() && !is_program && !is_this_library(object);
        let word = THIS_MACHINE.filter(|_| is_caller).and_then(|machine| {
            let image = MemoryImage { object, machine, is_relocatable: true };
            let file = object.file();
            let elf = file.as_ref().and_then(MappedFile::elf);
            redirect_library(object, elf.as_ref(), &image, &for_libraries)
        });
        let LoadedObject { path, distance, .. } = object;
        let (path, headers) = (path.clone(), object.headers());
        // The list has one entry for each place.
        known.retain(|known| known.distance != *distance || known.headers != headers);
        let pin = pin.filter(|_| !applied.is_empty());
        known.push(KnownObject { path, headers, distance: *distance, word, _pin: pin });
    }
}

/// Whether the object is this library.
fn is_this_library(object: &LoadedObject) -> bool {
    object.contains((hook_all as fn()) as usize)
}

/// Hooks the allocators of a file. `each` gets each allocator that is found. If `without_symbols` is false, a file
/// without a symbol table is skipped: most libraries that are loaded at the start have neither a symbol table nor an
/// allocator.
fn hook(
    object: &LoadedObject,
    without_symbols: bool,
    threads: RunningThreads,
    each: &mut dyn FnMut(LinkedAllocator),
) -> Vec<AppliedPlan> {
    let file = if is_this_library(object) { None } else { object.file() };
    let Some(elf) = file.as_ref().and_then(MappedFile::elf) else { return Vec::new() };
    if elf.symbols().is_none() && !without_symbols {
        return Vec::new();
    }
    let image = MemoryImage { object, machine: elf.machine(), is_relocatable: elf.is_relocatable() };
    let mut plans = plan_redirects(&elf, &elf, &image);
    if elf.symbols().is_none()
        && let Some(debug) = debug_file(&elf)
        && let Some(symbols) = debug.elf()
    {
        plans = plan_redirects(&elf, &symbols, &image);
    }
    // A program with the wrapper `dmd::Dmd` records its blocks itself.
    if plans.is_empty() || elf.contains_text(LINKED_MARK) {
        return Vec::new();
    }
    let hooked = plans.iter().map(|plan| hook_family(object, plan, threads));
    let applied = hooked.filter_map(|(allocator, applied)| {
        each(allocator);
        applied
    });
    applied.collect()
}

fn hook_family(
    object: &LoadedObject,
    plan: &AllocatorPlan,
    threads: RunningThreads,
) -> (LinkedAllocator, Option<AppliedPlan>) {
    let name = plan.family.name;
    let (mut functions, mut references) = (0, 0);
    let applied = match &plan.plan {
        Ok(redirects) => {
            (functions, references) = (redirects.used_functions(), redirects.references.len());
            apply(object, redirects, threads).map_err(|failure| failure.text().to_owned())
        }
        Err(reason) => Err(reason.to_string()),
    };
    let obstacle = applied.as_ref().err().map(|reason| format!("{}: {reason}", plan.family.gap()));
    let path = String::from_utf8_lossy(&object.path);
    let place = match path.rsplit('/').next() {
        _ if plan.is_imported() => "a library".to_owned(),
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => "the program".to_owned(),
    };
    (LinkedAllocator { name, place, functions, references, obstacle }, applied.ok())
}

/// A file of an attached program, with its hooked allocators.
struct AttachedObject {
    object: LoadedObject,
    /// The plans, each with the name of its allocator.
    plans: Vec<(&'static str, AppliedPlan)>,
}

impl AttachedObject {
    fn is_same(&self, object: &LoadedObject) -> bool {
        (self.object.distance, &self.object.path) == (object.distance, &object.path)
    }

    /// The plans that can be applied or undone now: code can change only while no other thread runs.
    fn changeable(&self, threads: RunningThreads) -> impl Iterator<Item = &AppliedPlan> {
        let plans = self.plans.iter().map(|(_, plan)| plan);
        plans.filter(move |plan| threads == RunningThreads::None || !plan.has_code())
    }
}

static ATTACHED: Mutex<Vec<AttachedObject>> = Mutex::new(Vec::new());

/// The changes that the process that attaches makes while all threads are stopped. It reads them here.
static CHANGES: Mutex<Vec<[usize; 4]>> = Mutex::new(Vec::new());

/// Hooks the allocators of the loaded files `objects` of a program that runs already. Returns a line for each
/// allocator: `hooked NAME`, `unhooked NAME: REASON`, or `later NAME`; in the last case a line `changes ADDRESS COUNT`
/// refers to the changes that are left. Lines `moved FUNCTION HOOK` and `moved-later FUNCTION HOOK` contain addresses.
pub(crate) fn attach_to(objects: Vec<LoadedObject>, threads: RunningThreads) -> String {
    let mut attached = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner);
    attached.retain(|known| objects.iter().any(|object| known.is_same(object)));
    let mut text = String::new();
    let mut due = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    due.clear();
    for known in &*attached {
        known.changeable(threads).for_each(|plan| _ = plan.redo(&known.object));
        for (name, plan) in &known.plans {
            let is_due = threads == RunningThreads::Stopped && plan.has_code() && !plan.is_in_effect();
            text.push_str(&format!("{} {name}\n", if is_due { "later" } else { "hooked" }));
            if is_due {
                due.extend(plan.as_words());
            }
        }
    }
    for (index, object) in objects.into_iter().enumerate() {
        if attached.iter().any(|known| known.is_same(&object)) {
            continue;
        }
        let mut names = Vec::new();
        let plans = hook(&object, index == 0, threads, &mut |allocator| match &allocator.obstacle {
            None => {
                names.push(allocator.name);
                add_linked_allocator(allocator);
            }
            Some(obstacle) => text.push_str(&format!("unhooked {}: {obstacle}\n", allocator.name)),
        });
        for (name, plan) in names.iter().zip(&plans) {
            let is_due = threads == RunningThreads::Stopped && plan.has_code();
            text.push_str(&format!("{} {name}\n", if is_due { "later" } else { "hooked" }));
            if is_due {
                due.extend(plan.as_words());
            }
        }
        // Without a plan, the object stays unknown, so that the next attachment tries again: the reason for a refusal may
        // exist only now.
        if !plans.is_empty() {
            attached.push(AttachedObject { object, plans: names.into_iter().zip(plans).collect() });
        }
    }
    if !due.is_empty() {
        text.push_str(&format!("changes {} {}\n", due.as_ptr().expose_provenance(), due.len()));
    }
    for (_, plan) in attached.iter().flat_map(|known| &known.plans) {
        let key = if plan.is_in_effect() { "moved" } else { "moved-later" };
        plan.moved().for_each(|(old, new)| text.push_str(&format!("{key} {old} {new}\n")));
    }
    text
}

/// Undoes [`attach_to`]. If other threads run, hooks in code stay, but record nothing any more.
pub(crate) fn detach(threads: RunningThreads) {
    let objects = all();
    let attached = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner);
    for known in attached.iter().filter(|known| objects.iter().any(|object| known.is_same(object))) {
        known.changeable(threads).for_each(|plan| _ = plan.undo(&known.object));
    }
}

/// The separate debug file of a stripped file.
fn debug_file(file: &ElfFile<'_>) -> Option<MappedFile> {
    let id = file.build_id()?;
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = format!("/usr/lib/debug/.build-id/{first:02x}/{rest}.debug\0");
    let debug = MappedFile::open(CStr::from_bytes_until_nul(path.as_bytes()).ok()?)?;
    (debug.elf()?.build_id()? == id).then_some(debug)
}
