//! The table of allocators: the names of their functions, and the places of sizes and blocks among the arguments.

use FunctionCall::{Allocate, AllocateInto, AllocateText, Free, Reallocate, ResizeInPlace};

/// Hooks pass this many arguments on. No function of the table has more.
pub const MAX_ARGUMENTS: usize = 5;

/// The effect of a function on a block, and the places of the function's arguments, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionCall {
    /// Returns a new block, or null.
    Allocate {
        /// The size in bytes, or the size of one element.
        size: u8,
        /// The number of elements.
        count: Option<u8>,
    },
    /// Writes the address of a new block to the first argument, and returns 0. The size is the third argument.
    AllocateInto,
    /// Returns a new text that ends in 0, or null.
    AllocateText,
    /// Ends the block in the first argument, which may be null.
    Free,
    /// Returns the block with a new size, perhaps elsewhere, or null.
    Reallocate {
        /// The block, which may be null.
        block: u8,
        /// The new size in bytes, or the size of one element.
        size: u8,
        /// The number of elements.
        count: Option<u8>,
        /// Whether the function frees the block if it returns null.
        frees_on_failure: bool,
    },
    /// Changes the size of the block in the first argument, which stays where it is. The wanted size is the second
    /// argument. Returns the usable size.
    ResizeInPlace,
}

const SIZE: FunctionCall = Allocate { size: 0, count: None };
const SIZE_SECOND: FunctionCall = Allocate { size: 1, count: None };
const COUNT_SIZE: FunctionCall = Allocate { size: 1, count: Some(0) };
const COUNT_SIZE_SECOND: FunctionCall = Allocate { size: 2, count: Some(1) };

const fn reallocate(block: u8, size: u8) -> FunctionCall {
    Reallocate { block, size, count: None, frees_on_failure: false }
}
const REALLOCATE: FunctionCall = reallocate(0, 1);
const REALLOCATE_COUNT: FunctionCall =
    Reallocate { block: 0, size: 2, count: Some(1), frees_on_failure: false };

/// A function of an allocator.
#[derive(Clone, Copy, Debug)]
pub struct AllocatorFunction {
    /// The name behind the family's prefix.
    pub name: &'static str,
    /// The effect of the function on a block.
    pub call: FunctionCall,
}

const fn function(name: &'static str, call: FunctionCall) -> AllocatorFunction {
    AllocatorFunction { name, call }
}

/// An allocator with the names of its functions.
#[derive(Debug)]
pub struct AllocatorFamily {
    /// The name in messages.
    pub name: &'static str,
    /// Precedes the names of all functions of the table.
    pub prefix: &'static str,
    /// The functions that allocate and free blocks.
    pub functions: &'static [AllocatorFunction],
    /// The function that returns the usable size of a live block.
    pub usable_size: Option<&'static str>,
    /// Functions whose effect on blocks no hook can follow. If a program calls one of them, the allocator is not
    /// hooked. A name that ends in `*` stands for all names with this start, except for those in `functions`.
    pub unsupported: &'static [&'static str],
    /// The start of a name that each program with this allocator contains, and no other program.
    pub marker: &'static str,
    /// The starts of names of the allocator's own code. Its calls of its own functions stay as they are. The functions
    /// themselves are also its own code.
    pub own_code: &'static [&'static str],
    /// A text in the allocator's code, by which a stripped program is recognized.
    pub text: Option<&'static [u8]>,
}

impl AllocatorFamily {
    /// Whether a function with this name belongs to the allocator. A dot and more may follow the name.
    pub(crate) fn is_own_code(&self, name: &[u8]) -> bool {
        // A crate of Rust may have the name of the allocator's namespace in C++.
        let is_hash =
            |part: &[u8]| part.starts_with(b"17h") && matches!(part.get(19..), Some(b"E" | [b'E', b'.', ..]));
        if name.starts_with(b"_ZN") && name.windows(3).enumerate().any(|(at, _)| is_hash(&name[at..])) {
            return false;
        }
        let base = name.split(|byte| *byte == b'.').next().unwrap_or(name);
        let rest = base.strip_prefix(self.prefix.as_bytes());
        self.own_code.iter().any(|own| name.starts_with(own.as_bytes()))
            || rest.is_some_and(|rest| self.functions.iter().any(|function| function.name.as_bytes() == rest))
    }

    /// The first part of the message about an allocator that is not hooked: which blocks are missing. The reason
    /// follows.
    pub fn gap(&self) -> &'static str {
        if core::ptr::eq(self, &raw const FAMILIES[SHIMS]) {
            "blocks that it does not take from malloc are not recorded"
        } else {
            "its blocks are not recorded"
        }
    }
}

const JEMALLOC: &[AllocatorFunction] = &[
    function("malloc", SIZE),
    function("calloc", COUNT_SIZE),
    function("realloc", REALLOCATE),
    function("free", Free),
    function("posix_memalign", AllocateInto),
    function("aligned_alloc", SIZE_SECOND),
    function("memalign", SIZE_SECOND),
    function("valloc", SIZE),
    function("pvalloc", SIZE),
    function("mallocx", SIZE),
    function("rallocx", REALLOCATE),
    function("xallocx", ResizeInPlace),
    function("dallocx", Free),
    function("sdallocx", Free),
    function("free_sized", Free),
    function("free_aligned_sized", Free),
];

const MIMALLOC: &[AllocatorFunction] = &[
    function("malloc", SIZE),
    function("malloc_small", SIZE),
    function("zalloc", SIZE),
    function("zalloc_small", SIZE),
    function("calloc", COUNT_SIZE),
    function("mallocn", COUNT_SIZE),
    function("malloc_aligned", SIZE),
    function("malloc_aligned_at", SIZE),
    function("zalloc_aligned", SIZE),
    function("zalloc_aligned_at", SIZE),
    function("calloc_aligned", COUNT_SIZE),
    function("calloc_aligned_at", COUNT_SIZE),
    function("realloc", REALLOCATE),
    function("rezalloc", REALLOCATE),
    function("expand", REALLOCATE),
    function("reallocf", Reallocate { block: 0, size: 1, count: None, frees_on_failure: true }),
    function("reallocn", REALLOCATE_COUNT),
    function("reallocarray", REALLOCATE_COUNT),
    function("recalloc", REALLOCATE_COUNT),
    function("realloc_aligned", REALLOCATE),
    function("realloc_aligned_at", REALLOCATE),
    function("rezalloc_aligned", REALLOCATE),
    function("rezalloc_aligned_at", REALLOCATE),
    function("recalloc_aligned", REALLOCATE_COUNT),
    function("recalloc_aligned_at", REALLOCATE_COUNT),
    function("umalloc", SIZE),
    function("umalloc_small", SIZE),
    function("uzalloc", SIZE),
    function("uzalloc_small", SIZE),
    function("ucalloc", COUNT_SIZE),
    function("umalloc_aligned", SIZE),
    function("uzalloc_aligned", SIZE),
    function("urealloc", REALLOCATE),
    function("ufree", Free),
    function("free", Free),
    function("free_small", Free),
    function("cfree", Free),
    function("free_size", Free),
    function("free_aligned", Free),
    function("free_size_aligned", Free),
    function("strdup", AllocateText),
    function("strndup", AllocateText),
    function("posix_memalign", AllocateInto),
    function("memalign", SIZE_SECOND),
    function("aligned_alloc", SIZE_SECOND),
    function("valloc", SIZE),
    function("pvalloc", SIZE),
    function("new", SIZE),
    function("new_nothrow", SIZE),
    function("new_aligned", SIZE),
    function("new_aligned_nothrow", SIZE),
    function("new_n", COUNT_SIZE),
    function("new_realloc", REALLOCATE),
    function("new_reallocn", REALLOCATE_COUNT),
    function("heap_malloc", SIZE_SECOND),
    function("heap_malloc_small", SIZE_SECOND),
    function("heap_zalloc", SIZE_SECOND),
    function("heap_calloc", COUNT_SIZE_SECOND),
    function("heap_mallocn", COUNT_SIZE_SECOND),
    function("heap_malloc_aligned", SIZE_SECOND),
    function("heap_malloc_aligned_at", SIZE_SECOND),
    function("heap_zalloc_aligned", SIZE_SECOND),
    function("heap_zalloc_aligned_at", SIZE_SECOND),
    function("heap_calloc_aligned", COUNT_SIZE_SECOND),
    function("heap_calloc_aligned_at", COUNT_SIZE_SECOND),
    function("heap_realloc", reallocate(1, 2)),
    function("heap_rezalloc", reallocate(1, 2)),
    function("heap_realloc_aligned", reallocate(1, 2)),
    function("heap_realloc_aligned_at", reallocate(1, 2)),
    function("heap_rezalloc_aligned", reallocate(1, 2)),
    function("heap_strdup", AllocateText),
    function("heap_zalloc_small", SIZE_SECOND),
    function("heap_alloc_new", SIZE_SECOND),
    function("heap_alloc_new_n", COUNT_SIZE_SECOND),
];

const SNMALLOC: &[AllocatorFunction] = &[
    function("rust_alloc", SIZE_SECOND),
    function("rust_alloc_zeroed", SIZE_SECOND),
    function("rust_dealloc", Free),
    function("rust_realloc", reallocate(0, 3)),
    function("malloc", SIZE),
    function("calloc", COUNT_SIZE),
    function("realloc", REALLOCATE),
    function("free", Free),
    function("cfree", Free),
    function("memalign", SIZE_SECOND),
    function("aligned_alloc", SIZE_SECOND),
    function("posix_memalign", AllocateInto),
    function("reallocarray", REALLOCATE_COUNT),
];

const RPMALLOC: &[AllocatorFunction] = &[
    function("malloc", SIZE),
    function("zalloc", SIZE),
    function("calloc", COUNT_SIZE),
    function("realloc", REALLOCATE),
    function("free", Free),
    function("aligned_alloc", SIZE_SECOND),
    function("aligned_zalloc", SIZE_SECOND),
    function("aligned_calloc", COUNT_SIZE_SECOND),
    function("aligned_realloc", reallocate(0, 2)),
    function("memalign", SIZE_SECOND),
    function("posix_memalign", AllocateInto),
];

const TCMALLOC: &[AllocatorFunction] = &[
    function("BridgeTCMallocInternalNewAlignedNothrow", SIZE),
    function("BridgePrepareReallocAligned", REALLOCATE),
    function("TCMallocInternalNew", SIZE),
    function("TCMallocInternalNewAligned", SIZE),
    function("TCMallocInternalNewNothrow", SIZE),
    function("TCMallocInternalNewAlignedNothrow", SIZE),
    function("TCMallocInternalNewArray", SIZE),
    function("TCMallocInternalNewArrayNothrow", SIZE),
    function("TCMallocInternalNewArrayAligned", SIZE),
    function("TCMallocInternalMalloc", SIZE),
    function("TCMallocInternalCalloc", COUNT_SIZE),
    function("TCMallocInternalRealloc", REALLOCATE),
    function("TCMallocInternalMemalign", SIZE_SECOND),
    function("TCMallocInternalAlignedAlloc", SIZE_SECOND),
    function("TCMallocInternalPosixMemalign", AllocateInto),
    function("TCMallocInternalFree", Free),
    function("TCMallocInternalCfree", Free),
    function("TCMallocInternalFreeSized", Free),
    function("TCMallocInternalFreeAlignedSized", Free),
    function("TCMallocInternalSdallocx", Free),
    function("TCMallocInternalValloc", SIZE),
    function("TCMallocInternalPvalloc", SIZE),
    function("TCMallocInternalDeleteNothrow", Free),
    function("TCMallocInternalDeleteAlignedNothrow", Free),
    function("TCMallocInternalDeleteArrayNothrow", Free),
    function("TCMallocInternalDeleteArrayAlignedNothrow", Free),
    function("TCMallocInternalDelete", Free),
    function("TCMallocInternalDeleteSized", Free),
    function("TCMallocInternalDeleteAligned", Free),
    function("TCMallocInternalDeleteSizedAligned", Free),
    function("TCMallocInternalDeleteArray", Free),
    function("TCMallocInternalDeleteArraySized", Free),
    function("TCMallocInternalDeleteArrayAligned", Free),
    function("TCMallocInternalDeleteArraySizedAligned", Free),
];

const GPERFTOOLS: &[AllocatorFunction] = &[
    function("malloc", SIZE),
    function("calloc", COUNT_SIZE),
    function("realloc", REALLOCATE),
    function("free", Free),
    function("free_sized", Free),
    function("cfree", Free),
    function("memalign", SIZE_SECOND),
    function("posix_memalign", AllocateInto),
    function("valloc", SIZE),
    function("new", SIZE),
    function("new_nothrow", SIZE),
    function("newarray", SIZE),
    function("newarray_nothrow", SIZE),
    function("pvalloc", SIZE),
    function("new_aligned", SIZE),
    function("new_aligned_nothrow", SIZE),
    function("newarray_aligned", SIZE),
    function("newarray_aligned_nothrow", SIZE),
    function("delete_nothrow", Free),
    function("delete_aligned", Free),
    function("delete_aligned_nothrow", Free),
    function("delete_sized_aligned", Free),
    function("deletearray_nothrow", Free),
    function("deletearray_aligned", Free),
    function("deletearray_aligned_nothrow", Free),
    function("deletearray_sized_aligned", Free),
    function("delete", Free),
    function("delete_sized", Free),
    function("deletearray", Free),
    function("deletearray_sized", Free),
];

/// Rust's own functions: each call of a `GlobalAlloc` passes through them.
const RUST: &[AllocatorFunction] = &[
    function("__rust_alloc", SIZE),
    function("__rust_alloc_zeroed", SIZE),
    function("__rust_dealloc", Free),
    function("__rust_realloc", reallocate(0, 3)),
];

/// The index of Rust's own functions in [`FAMILIES`]. These functions are hooked only if the program has no other
/// family.
pub(crate) const SHIMS: usize = 8;

/// All allocators. The symbols of Rust's own functions differ by compiler; the table contains their plain names.
pub static FAMILIES: [AllocatorFamily; 9] = [
    AllocatorFamily {
        name: "jemalloc",
        prefix: "_rjem_",
        functions: JEMALLOC,
        usable_size: Some("malloc_usable_size"),
        unsupported: &[],
        marker: "_rjem_je_",
        own_code: &["_rjem_"],
        text: Some(b"/etc/_rjem_malloc.conf\0"),
    },
    AllocatorFamily {
        name: "jemalloc",
        prefix: "je_",
        functions: JEMALLOC,
        usable_size: Some("malloc_usable_size"),
        unsupported: &[],
        marker: "je_arena_",
        own_code: &["je_", "experimental_batch_alloc"],
        text: Some(b"/etc/malloc.conf\0"),
    },
    // jemalloc in place of the C library's functions.
    AllocatorFamily {
        name: "jemalloc",
        prefix: "",
        functions: JEMALLOC,
        usable_size: Some("malloc_usable_size"),
        unsupported: &[],
        marker: "mallocx",
        own_code: &["_rjem_", "je_", "experimental_batch_alloc"],
        text: None,
    },
    AllocatorFamily {
        name: "mimalloc",
        prefix: "mi_",
        functions: MIMALLOC,
        usable_size: Some("usable_size"),
        unsupported: &[
            "heap_destroy",
            "subproc_destroy",
            "theap_*",
            "realpath",
            "reallocarr",
            "ureallocn",
            "heap_recalloc",
            "heap_recalloc_aligned",
            "heap_recalloc_aligned_at",
            "heap_rezalloc_aligned_at",
            "heap_reallocn",
            "heap_reallocf",
            "heap_strndup",
            "heap_realpath",
            "wcsdup",
            "mbsdup",
            "dupenv_s",
            "wdupenv_s",
        ],
        marker: "_mi_",
        own_code: &["mi_", "_mi_"],
        text: Some(b"mimalloc: warning: "),
    },
    AllocatorFamily {
        name: "snmalloc",
        prefix: "sn_",
        functions: SNMALLOC,
        usable_size: Some("rust_usable_size"),
        unsupported: &[],
        marker: "_ZN8snmalloc",
        own_code: &["sn_rust_", "_ZN8snmalloc", "_ZNK8snmalloc"],
        text: None,
    },
    AllocatorFamily {
        name: "rpmalloc",
        prefix: "rp",
        functions: RPMALLOC,
        usable_size: Some("malloc_usable_size"),
        unsupported: &["malloc_heap_*"],
        marker: "rpmalloc_",
        own_code: &["rpmalloc_", "rpaligned_", "_rpmalloc"],
        text: None,
    },
    AllocatorFamily {
        name: "tcmalloc",
        prefix: "",
        functions: TCMALLOC,
        usable_size: None,
        unsupported: &[],
        marker: "TCMallocInternal",
        own_code: &["TCMallocInternal", "BridgeTCMalloc", "BridgePrepare", "_ZN8tcmalloc"],
        text: None,
    },
    AllocatorFamily {
        name: "tcmalloc",
        prefix: "tc_",
        functions: GPERFTOOLS,
        usable_size: Some("malloc_size"),
        unsupported: &[],
        marker: "tc_version",
        own_code: &["_ZN8tcmalloc"],
        text: None,
    },
    AllocatorFamily {
        name: "the Rust allocator",
        prefix: "",
        functions: RUST,
        usable_size: None,
        unsupported: &[],
        marker: "",
        own_code: &[],
        text: None,
    },
];
