//! The functions of each allocator, with the places of sizes and blocks among their arguments.

use FunctionCall::{Allocate, AllocateInto, AllocateText, Free, Reallocate, ReallocateInto, ResizeInPlace};

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
    AllocateText {
        /// The room for the text. If it is not null, the function writes the text there, and allocates no block.
        room: Option<u8>,
    },
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
    /// Replaces the block at the place that the first argument points to, and returns 0. The second argument is the
    /// number of elements, the third is the size of one.
    ReallocateInto,
    /// Changes the size of the block in the first argument, which stays where it is. The wanted size is the second
    /// argument. Returns the usable size.
    ResizeInPlace,
}

/// A function of an allocator.
#[derive(Clone, Copy, Debug)]
pub struct AllocatorFunction {
    /// The place of the name in [`NAMES`]. References would take five times the room in `libdmd.so`, because the loader
    /// has to relocate each.
    name_start: u16,
    name_bytes: u8,
    /// The effect of the function on a block.
    pub call: FunctionCall,
}

impl AllocatorFunction {
    /// The name behind the family's prefix.
    pub fn name(&self) -> &'static str {
        core::str::from_utf8(self.name_in_table()).unwrap_or_default()
    }

    pub(crate) fn is_named(&self, name: &[u8]) -> bool {
        usize::from(self.name_bytes) == name.len() && self.name_in_table() == name
    }

    fn name_in_table(&self) -> &'static [u8] {
        let start = usize::from(self.name_start);
        NAMES.get(start..start + usize::from(self.name_bytes)).unwrap_or_default()
    }
}

const SIZE: FunctionCall = Allocate { size: 0, count: None };
const SIZE_SECOND: FunctionCall = Allocate { size: 1, count: None };
const COUNT_SIZE: FunctionCall = Allocate { size: 1, count: Some(0) };
const COUNT_SIZE_SECOND: FunctionCall = Allocate { size: 2, count: Some(1) };

const TEXT: FunctionCall = AllocateText { room: None };

const fn reallocate(block: u8, size: u8) -> FunctionCall {
    Reallocate { block, size, count: None, frees_on_failure: false }
}
const REALLOCATE: FunctionCall = reallocate(0, 1);
const REALLOCATE_COUNT: FunctionCall =
    Reallocate { block: 0, size: 2, count: Some(1), frees_on_failure: false };
const REALLOCATE_COUNT_SECOND: FunctionCall =
    Reallocate { block: 1, size: 3, count: Some(2), frees_on_failure: false };

const fn reallocate_or_free(block: u8, size: u8) -> FunctionCall {
    Reallocate { block, size, count: None, frees_on_failure: true }
}

/// A name with the effect of the function.
type NamedCall = (&'static str, FunctionCall);

/// All lists.
const LISTS: [&[NamedCall]; 8] = [
    JEMALLOC_CALLS,
    MIMALLOC_CALLS,
    SNMALLOC_CALLS,
    RPMALLOC_CALLS,
    TCMALLOC_CALLS,
    GPERFTOOLS_CALLS,
    RUST_CALLS,
    LIBRARY_CALLS,
];

/// The functions of [`LISTS`], and their names, without space between.
struct NameTable<const FUNCTIONS: usize, const BYTES: usize> {
    functions: [AllocatorFunction; FUNCTIONS],
    names: [u8; BYTES],
}

/// The numbers of functions in the lists before this one, and of bytes in their names.
const fn sizes_before(list: usize) -> (usize, usize) {
    let (mut functions, mut bytes, mut at) = (0, 0, 0);
    while at < list {
        let mut index = 0;
        while index < LISTS[at].len() {
            bytes += LISTS[at][index].0.len();
            index += 1;
        }
        functions += index;
        at += 1;
    }
    (functions, bytes)
}

const FUNCTION_COUNT: usize = sizes_before(LISTS.len()).0;
const NAME_BYTES: usize = sizes_before(LISTS.len()).1;

static TABLE: NameTable<FUNCTION_COUNT, NAME_BYTES> = {
    let empty = AllocatorFunction { name_start: 0, name_bytes: 0, call: Free };
    let mut table = NameTable { functions: [empty; FUNCTION_COUNT], names: [0; NAME_BYTES] };
    let (mut functions, mut bytes, mut list) = (0, 0, 0);
    while list < LISTS.len() {
        let mut index = 0;
        while index < LISTS[list].len() {
            let (name, call) = LISTS[list][index];
            let (name_start, name_bytes) = (bytes as u16, name.len() as u8);
            table.functions[functions] = AllocatorFunction { name_start, name_bytes, call };
            let (_, rest) = table.names.split_at_mut(bytes);
            rest.split_at_mut(name.len()).0.copy_from_slice(name.as_bytes());
            (functions, bytes, index) = (functions + 1, bytes + name.len(), index + 1);
        }
        list += 1;
    }
    table
};

static NAMES: &[u8] = &TABLE.names;

const _: () = assert!(NAME_BYTES <= u16::MAX as usize, "the place of a name has 16 bits");

/// The functions of one list.
const fn list(index: usize) -> &'static [AllocatorFunction] {
    let (_, rest) = TABLE.functions.split_at(sizes_before(index).0);
    rest.split_at(LISTS[index].len()).0
}

pub(crate) const JEMALLOC: &[AllocatorFunction] = list(0);
pub(crate) const MIMALLOC: &[AllocatorFunction] = list(1);
pub(crate) const SNMALLOC: &[AllocatorFunction] = list(2);
pub(crate) const RPMALLOC: &[AllocatorFunction] = list(3);
pub(crate) const TCMALLOC: &[AllocatorFunction] = list(4);
pub(crate) const GPERFTOOLS: &[AllocatorFunction] = list(5);
/// Rust's own functions: each call of a `GlobalAlloc` passes through them.
pub(crate) const RUST: &[AllocatorFunction] = list(6);
/// The names that an allocator's functions may have in addition, if the allocator replaces the C library's `malloc`:
/// the C library's functions, and the operators of C++.
pub(crate) const LIBRARY_NAMES: &[AllocatorFunction] = list(7);

const JEMALLOC_CALLS: &[NamedCall] = &[
    ("malloc", SIZE),
    ("calloc", COUNT_SIZE),
    ("realloc", REALLOCATE),
    ("free", Free),
    ("posix_memalign", AllocateInto),
    ("aligned_alloc", SIZE_SECOND),
    ("memalign", SIZE_SECOND),
    ("valloc", SIZE),
    ("pvalloc", SIZE),
    ("mallocx", SIZE),
    ("rallocx", REALLOCATE),
    ("xallocx", ResizeInPlace),
    ("dallocx", Free),
    ("sdallocx", Free),
    ("free_sized", Free),
    ("free_aligned_sized", Free),
];

const MIMALLOC_CALLS: &[NamedCall] = &[
    ("malloc", SIZE),
    ("malloc_small", SIZE),
    ("zalloc", SIZE),
    ("zalloc_small", SIZE),
    ("calloc", COUNT_SIZE),
    ("mallocn", COUNT_SIZE),
    ("malloc_aligned", SIZE),
    ("malloc_aligned_at", SIZE),
    ("zalloc_aligned", SIZE),
    ("zalloc_aligned_at", SIZE),
    ("calloc_aligned", COUNT_SIZE),
    ("calloc_aligned_at", COUNT_SIZE),
    ("realloc", REALLOCATE),
    ("rezalloc", REALLOCATE),
    ("expand", REALLOCATE),
    ("reallocf", reallocate_or_free(0, 1)),
    ("reallocn", REALLOCATE_COUNT),
    ("reallocarray", REALLOCATE_COUNT),
    ("reallocarr", ReallocateInto),
    ("recalloc", REALLOCATE_COUNT),
    ("realloc_aligned", REALLOCATE),
    ("realloc_aligned_at", REALLOCATE),
    ("rezalloc_aligned", REALLOCATE),
    ("rezalloc_aligned_at", REALLOCATE),
    ("recalloc_aligned", REALLOCATE_COUNT),
    ("recalloc_aligned_at", REALLOCATE_COUNT),
    ("umalloc", SIZE),
    ("umalloc_small", SIZE),
    ("uzalloc", SIZE),
    ("uzalloc_small", SIZE),
    ("ucalloc", COUNT_SIZE),
    ("umalloc_aligned", SIZE),
    ("uzalloc_aligned", SIZE),
    ("urealloc", REALLOCATE),
    ("ufree", Free),
    ("free", Free),
    ("free_small", Free),
    ("cfree", Free),
    ("free_size", Free),
    ("free_aligned", Free),
    ("free_size_aligned", Free),
    ("strdup", TEXT),
    ("strndup", TEXT),
    ("mbsdup", TEXT),
    ("realpath", AllocateText { room: Some(1) }),
    ("posix_memalign", AllocateInto),
    ("memalign", SIZE_SECOND),
    ("aligned_alloc", SIZE_SECOND),
    ("valloc", SIZE),
    ("pvalloc", SIZE),
    ("new", SIZE),
    ("new_nothrow", SIZE),
    ("new_aligned", SIZE),
    ("new_aligned_nothrow", SIZE),
    ("new_n", COUNT_SIZE),
    ("new_realloc", REALLOCATE),
    ("new_reallocn", REALLOCATE_COUNT),
    ("heap_malloc", SIZE_SECOND),
    ("heap_malloc_small", SIZE_SECOND),
    ("heap_zalloc", SIZE_SECOND),
    ("heap_calloc", COUNT_SIZE_SECOND),
    ("heap_mallocn", COUNT_SIZE_SECOND),
    ("heap_malloc_aligned", SIZE_SECOND),
    ("heap_malloc_aligned_at", SIZE_SECOND),
    ("heap_zalloc_aligned", SIZE_SECOND),
    ("heap_zalloc_aligned_at", SIZE_SECOND),
    ("heap_calloc_aligned", COUNT_SIZE_SECOND),
    ("heap_calloc_aligned_at", COUNT_SIZE_SECOND),
    ("heap_realloc", reallocate(1, 2)),
    ("heap_rezalloc", reallocate(1, 2)),
    ("heap_realloc_aligned", reallocate(1, 2)),
    ("heap_realloc_aligned_at", reallocate(1, 2)),
    ("heap_rezalloc_aligned", reallocate(1, 2)),
    ("heap_rezalloc_aligned_at", reallocate(1, 2)),
    ("heap_reallocf", reallocate_or_free(1, 2)),
    ("heap_reallocn", REALLOCATE_COUNT_SECOND),
    ("heap_recalloc", REALLOCATE_COUNT_SECOND),
    ("heap_recalloc_aligned", REALLOCATE_COUNT_SECOND),
    ("heap_strdup", TEXT),
    ("heap_strndup", TEXT),
    ("heap_realpath", AllocateText { room: Some(2) }),
    ("heap_zalloc_small", SIZE_SECOND),
    ("heap_alloc_new", SIZE_SECOND),
    ("heap_alloc_new_n", COUNT_SIZE_SECOND),
];

const SNMALLOC_CALLS: &[NamedCall] = &[
    ("rust_alloc", SIZE_SECOND),
    ("rust_alloc_zeroed", SIZE_SECOND),
    ("rust_dealloc", Free),
    ("rust_realloc", reallocate(0, 3)),
    ("malloc", SIZE),
    ("calloc", COUNT_SIZE),
    ("realloc", REALLOCATE),
    ("free", Free),
    ("cfree", Free),
    ("memalign", SIZE_SECOND),
    ("aligned_alloc", SIZE_SECOND),
    ("posix_memalign", AllocateInto),
    ("reallocarray", REALLOCATE_COUNT),
];

const RPMALLOC_CALLS: &[NamedCall] = &[
    ("malloc", SIZE),
    ("zalloc", SIZE),
    ("calloc", COUNT_SIZE),
    ("realloc", REALLOCATE),
    ("free", Free),
    ("aligned_alloc", SIZE_SECOND),
    ("aligned_zalloc", SIZE_SECOND),
    ("aligned_calloc", COUNT_SIZE_SECOND),
    ("aligned_realloc", reallocate(0, 2)),
    ("memalign", SIZE_SECOND),
    ("posix_memalign", AllocateInto),
];

const TCMALLOC_CALLS: &[NamedCall] = &[
    ("BridgeTCMallocInternalNewAlignedNothrow", SIZE),
    ("BridgePrepareReallocAligned", REALLOCATE),
    ("TCMallocInternalNew", SIZE),
    ("TCMallocInternalNewAligned", SIZE),
    ("TCMallocInternalNewNothrow", SIZE),
    ("TCMallocInternalNewAlignedNothrow", SIZE),
    ("TCMallocInternalNewArray", SIZE),
    ("TCMallocInternalNewArrayNothrow", SIZE),
    ("TCMallocInternalNewArrayAligned", SIZE),
    ("TCMallocInternalMalloc", SIZE),
    ("TCMallocInternalCalloc", COUNT_SIZE),
    ("TCMallocInternalRealloc", REALLOCATE),
    ("TCMallocInternalMemalign", SIZE_SECOND),
    ("TCMallocInternalAlignedAlloc", SIZE_SECOND),
    ("TCMallocInternalPosixMemalign", AllocateInto),
    ("TCMallocInternalFree", Free),
    ("TCMallocInternalCfree", Free),
    ("TCMallocInternalFreeSized", Free),
    ("TCMallocInternalFreeAlignedSized", Free),
    ("TCMallocInternalSdallocx", Free),
    ("TCMallocInternalValloc", SIZE),
    ("TCMallocInternalPvalloc", SIZE),
    ("TCMallocInternalDeleteNothrow", Free),
    ("TCMallocInternalDeleteAlignedNothrow", Free),
    ("TCMallocInternalDeleteArrayNothrow", Free),
    ("TCMallocInternalDeleteArrayAlignedNothrow", Free),
    ("TCMallocInternalDelete", Free),
    ("TCMallocInternalDeleteSized", Free),
    ("TCMallocInternalDeleteAligned", Free),
    ("TCMallocInternalDeleteSizedAligned", Free),
    ("TCMallocInternalDeleteArray", Free),
    ("TCMallocInternalDeleteArraySized", Free),
    ("TCMallocInternalDeleteArrayAligned", Free),
    ("TCMallocInternalDeleteArraySizedAligned", Free),
];

const GPERFTOOLS_CALLS: &[NamedCall] = &[
    ("malloc", SIZE),
    ("calloc", COUNT_SIZE),
    ("realloc", REALLOCATE),
    ("free", Free),
    ("free_sized", Free),
    ("cfree", Free),
    ("memalign", SIZE_SECOND),
    ("posix_memalign", AllocateInto),
    ("valloc", SIZE),
    ("new", SIZE),
    ("new_nothrow", SIZE),
    ("newarray", SIZE),
    ("newarray_nothrow", SIZE),
    ("pvalloc", SIZE),
    ("new_aligned", SIZE),
    ("new_aligned_nothrow", SIZE),
    ("newarray_aligned", SIZE),
    ("newarray_aligned_nothrow", SIZE),
    ("delete_nothrow", Free),
    ("delete_aligned", Free),
    ("delete_aligned_nothrow", Free),
    ("delete_sized_aligned", Free),
    ("deletearray_nothrow", Free),
    ("deletearray_aligned", Free),
    ("deletearray_aligned_nothrow", Free),
    ("deletearray_sized_aligned", Free),
    ("delete", Free),
    ("delete_sized", Free),
    ("deletearray", Free),
    ("deletearray_sized", Free),
];

const RUST_CALLS: &[NamedCall] = &[
    ("__rust_alloc", SIZE),
    ("__rust_alloc_zeroed", SIZE),
    ("__rust_dealloc", Free),
    ("__rust_realloc", reallocate(0, 3)),
];

const LIBRARY_CALLS: &[NamedCall] = &[
    ("malloc", SIZE),
    ("calloc", COUNT_SIZE),
    ("realloc", REALLOCATE),
    ("free", Free),
    ("cfree", Free),
    ("vfree", Free),
    ("reallocf", reallocate_or_free(0, 1)),
    ("reallocarray", REALLOCATE_COUNT),
    ("reallocarr", ReallocateInto),
    ("strdup", TEXT),
    ("strndup", TEXT),
    ("posix_memalign", AllocateInto),
    ("__posix_memalign", AllocateInto),
    ("aligned_alloc", SIZE_SECOND),
    ("memalign", SIZE_SECOND),
    ("valloc", SIZE),
    ("pvalloc", SIZE),
    ("_aligned_malloc", SIZE),
    ("__libc_malloc", SIZE),
    ("__libc_calloc", COUNT_SIZE),
    ("__libc_realloc", REALLOCATE),
    ("__libc_free", Free),
    ("__libc_cfree", Free),
    ("__libc_memalign", SIZE_SECOND),
    ("__libc_valloc", SIZE),
    ("__libc_pvalloc", SIZE),
    // operator new, new[]: plain, nothrow, aligned, aligned nothrow
    ("_Znwm", SIZE),
    ("_Znam", SIZE),
    ("_ZnwmRKSt9nothrow_t", SIZE),
    ("_ZnamRKSt9nothrow_t", SIZE),
    ("_ZnwmSt11align_val_t", SIZE),
    ("_ZnamSt11align_val_t", SIZE),
    ("_ZnwmSt11align_val_tRKSt9nothrow_t", SIZE),
    ("_ZnamSt11align_val_tRKSt9nothrow_t", SIZE),
    // operator delete, delete[]: plain, nothrow, sized, aligned, sized and aligned, aligned nothrow
    ("_ZdlPv", Free),
    ("_ZdaPv", Free),
    ("_ZdlPvRKSt9nothrow_t", Free),
    ("_ZdaPvRKSt9nothrow_t", Free),
    ("_ZdlPvm", Free),
    ("_ZdaPvm", Free),
    ("_ZdlPvSt11align_val_t", Free),
    ("_ZdaPvSt11align_val_t", Free),
    ("_ZdlPvmSt11align_val_t", Free),
    ("_ZdaPvmSt11align_val_t", Free),
    ("_ZdlPvSt11align_val_tRKSt9nothrow_t", Free),
    ("_ZdaPvSt11align_val_tRKSt9nothrow_t", Free),
];
