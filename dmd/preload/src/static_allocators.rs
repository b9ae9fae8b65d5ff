//! Hooks the allocators that the program and its libraries link statically.

use core::ffi::CStr;

use dmd_redirect::elf::ElfFile;
use dmd_redirect::{AllocatorPlan, RefusalReason, plan_redirects};
use engine::__private::{LINKED_MARK, may_record, own_allocations, say};

use crate::loaded_objects::{LoadedObject, MappedFile, MemoryImage, all};
use crate::redirections::{RunningThreads, apply};

/// Hooks the allocators of all loaded files. Called once, before the program's own code runs.
pub(crate) fn hook_all() {
    if !may_record() {
        return;
    }
    own_allocations(|| {
        for (index, object) in all().iter().enumerate() {
            hook(object, index == 0);
        }
    });
}

/// Whether this library is the object.
fn is_this_library(object: &LoadedObject) -> bool {
    object.contains((hook_all as fn()) as usize)
}

fn hook(object: &LoadedObject, is_program: bool) {
    if is_this_library(object) {
        return;
    }
    let Some(file) = object.file() else { return };
    let Some(elf) = file.elf() else { return };
    if elf.symbols().is_none() && !is_program {
        return;
    }
    let image = MemoryImage { object, machine: elf.machine(), is_relocatable: elf.is_relocatable() };
    let mut plans = plan_redirects(&elf, &elf, &image);
    if plans.iter().any(|plan| matches!(plan.plan, Err(RefusalReason::Stripped)))
        && let Some(debug) = debug_file(&elf)
        && let Some(symbols) = debug.elf()
    {
        plans = plan_redirects(&elf, &symbols, &image);
    }
    // A program with the wrapper `dmd::Dmd` records its blocks itself.
    if plans.is_empty() || elf.contains_text(LINKED_MARK) {
        return;
    }
    plans.iter().for_each(|plan| hook_family(object, plan));
}

fn hook_family(object: &LoadedObject, plan: &AllocatorPlan) {
    let name = plan.family.name;
    let failure = match &plan.plan {
        Ok(redirects) => match apply(object, redirects, RunningThreads::None) {
            // The hooks stay for as long as the process runs.
            Ok(_) => return,
            Err(failure) => failure.text().to_owned(),
        },
        Err(reason) => reason.to_string(),
    };
    say(&format!("the blocks of {name} are not recorded: {failure}"));
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
