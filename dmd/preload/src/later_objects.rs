//! Objects that the program loads after `about-memory attach`. A program that has loaded an object calls the loader
//! again to find the object's functions. The functions here see these calls, and first redirect the references of new
//! objects.
//!
//! The loader finds out which object calls it from the return address. So these functions have no frame when they pass
//! the call on. Nothing happens after the call: what the start code of a new object allocates is not recorded.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use engine::__private::{is_engine_thread, keeping_errno};

use crate::injected::{is_attached, program_function};

/// The function that redirects the references of new objects; null before [`start`].
static LOOK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Whether a thread looks at new objects.
static LOOKING: AtomicBool = AtomicBool::new(false);

macro_rules! looks_first {
    ($($name:ident $text:literal, $real:ident, $place:ident;)*) => {$(
        extern "C" fn $real() -> *mut c_void {
            look();
            $place.load(Ordering::Relaxed)
        }

        static $place: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

        /// Redirects the references of new objects, and behaves as the loader's function of this name.
        ///
        /// # Safety
        ///
        /// The contract of the loader's function.
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "call {}",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "jmp rax",
                ".cfi_endproc",
                sym $real,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                ".cfi_startproc",
                "stp x29, x30, [sp, #-48]!",
                ".cfi_def_cfa_offset 48",
                ".cfi_offset x29, -48",
                ".cfi_offset x30, -40",
                "stp x0, x1, [sp, #16]",
                "str x2, [sp, #32]",
                "bl {}",
                "mov x16, x0",
                "ldp x0, x1, [sp, #16]",
                "ldr x2, [sp, #32]",
                "ldp x29, x30, [sp], #48",
                ".cfi_def_cfa_offset 0",
                ".cfi_restore x29",
                ".cfi_restore x30",
                "br x16",
                ".cfi_endproc",
                sym $real,
            );
        }
    )*

        /// Finds the loader's functions. The functions here call `look`, and then pass each call on to them.
        pub(crate) fn start(look: fn()) {
            $($place.store(program_function($text), Ordering::Relaxed);)*
            LOOK.store(look as *mut c_void, Ordering::Relaxed);
        }
    };
}

looks_first! {
    dlopen c"dlopen", real_dlopen, DLOPEN;
    dlmopen c"dlmopen", real_dlmopen, DLMOPEN;
    dlvsym c"dlvsym", real_dlvsym, DLVSYM;
}

/// Redirects the references of new objects, if an attachment exists.
pub(crate) fn look() {
    let look = LOOK.load(Ordering::Relaxed);
    if look.is_null() || !is_attached() || is_engine_thread() {
        return;
    }
    // SAFETY: `start` stores a function of this type, and the pointer is not null.
    let look: fn() = unsafe { core::mem::transmute(look) };
    // The redirection itself calls the loader, and must not start another redirection.
    if !LOOKING.swap(true, Ordering::Acquire) {
        keeping_errno(look);
        LOOKING.store(false, Ordering::Release);
    }
}
