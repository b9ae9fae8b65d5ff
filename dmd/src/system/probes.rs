//! Static probes (USDT) for profilers of a whole host, which read them with BPF: `alloc` and `free` of sampled blocks.
//!
//! A probe is an instruction without an effect. A note in the file (`.note.stapsdt`) contains its address, the places of
//! its arguments, and the address of a counter of listeners. While no profiler listens, a probe costs the read of this
//! counter, and only for sampled blocks. The functions of the probes are not generic and never inlined, so each file
//! has each note once.
//!
//! - `otel_memory:alloc(block, size, weighted_bytes)` and `otel_memory:free(block)` are the probes of OpenTelemetry's
//!   design 00003 for memory profiling. Their names are not final there. `weighted_bytes` is size / (1 - exp(-size /
//!   mean)): the sum over all calls is an unbiased estimate of the allocated bytes.
//! - `ddheap:alloc` and `ddheap:free` are the same for the profilers of Datadog.

use core::arch::naked_asm;
use core::sync::atomic::{AtomicU16, Ordering};

use dmd_format::sample;

/// The number of listeners of each probe. The kernel changes it.
#[used]
#[unsafe(link_section = ".probes")]
static ALLOC_LISTENERS: AtomicU16 = AtomicU16::new(0);
#[used]
#[unsafe(link_section = ".probes")]
static FREE_LISTENERS: AtomicU16 = AtomicU16::new(0);

/// A note about the probe at the label 990.
macro_rules! note {
    ($provider:literal, $probe:literal, $arguments:literal) => {
        concat!(
            ".pushsection .note.stapsdt, \"\", %note\n",
            ".balign 4\n",
            ".4byte 992f - 991f, 994f - 993f, 3\n",
            "991: .asciz \"stapsdt\"\n",
            "992: .balign 4\n",
            "993: .8byte 990b\n",
            ".8byte _.stapsdt.base\n",
            ".8byte {listeners}\n",
            ".asciz \"",
            $provider,
            "\"\n",
            ".asciz \"",
            $probe,
            "\"\n",
            ".asciz \"",
            $arguments,
            "\"\n",
            "994: .balign 4\n",
            ".popsection\n",
        )
    };
}

/// The place from which readers compute how far a tool has moved the file's addresses.
macro_rules! base {
    () => {
        ".pushsection .stapsdt.base, \"aG\", %progbits, .stapsdt.base, comdat\n\
         .weak _.stapsdt.base\n\
         .hidden _.stapsdt.base\n\
         _.stapsdt.base: .space 1\n\
         .size _.stapsdt.base, 1\n\
         .popsection"
    };
}

/// The probe of a new sampled block.
#[unsafe(naked)]
extern "C" fn alloc_probe(block: usize, requested: usize, weighted: u64) {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "990: nop",
        "ret",
        note!("otel_memory", "alloc", "8@%rdi 8@%rsi 8@%rdx"),
        note!("ddheap", "alloc", "8@%rdi 8@%rsi 8@%rdx"),
        base!(),
        listeners = sym ALLOC_LISTENERS,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "990: nop",
        "ret",
        note!("otel_memory", "alloc", "8@x0 8@x1 8@x2"),
        note!("ddheap", "alloc", "8@x0 8@x1 8@x2"),
        base!(),
        listeners = sym ALLOC_LISTENERS,
    );
}

/// The probe of the end of a sampled block.
#[unsafe(naked)]
extern "C" fn free_probe(block: usize) {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "990: nop",
        "ret",
        note!("otel_memory", "free", "8@%rdi"),
        note!("ddheap", "free", "8@%rdi"),
        listeners = sym FREE_LISTENERS,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "990: nop",
        "ret",
        note!("otel_memory", "free", "8@x0"),
        note!("ddheap", "free", "8@x0"),
        listeners = sym FREE_LISTENERS,
    );
}

/// Calls the probe of a new block, if a profiler listens. `mean` is the mean distance of the sample in bytes.
#[inline(always)]
pub(crate) fn block_began(address: usize, requested: usize, mean: u64) {
    if ALLOC_LISTENERS.load(Ordering::Relaxed) != 0 {
        call_alloc(address, requested, mean);
    }
}

#[cold]
#[inline(never)]
fn call_alloc(address: usize, requested: usize, mean: u64) {
    let weight = sample::weight(requested as u64, mean);
    alloc_probe(address, requested, (weight * requested as f64).round() as u64);
}

/// Calls the probe of a block's end, if a profiler listens.
#[inline(always)]
pub(crate) fn block_ended(address: usize) {
    if FREE_LISTENERS.load(Ordering::Relaxed) != 0 {
        free_probe(address);
    }
}
