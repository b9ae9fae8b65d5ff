//! The table of allocators: the names by which a file shows that it contains one.

use crate::elf::Symbol;
use crate::functions::{
    AllocatorFunction, GPERFTOOLS, JEMALLOC, LIBRARY_NAMES, MIMALLOC, RPMALLOC, RUST, SNMALLOC, TCMALLOC,
};

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
    /// Functions that only the allocator's own functions call, at the end of their fast paths. Another caller contains
    /// a copy of such a function. A name that ends in `*` stands for all names with this start.
    pub inner: &'static [&'static str],
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
        let base = base_name(name);
        let rest = base.strip_prefix(self.prefix.as_bytes());
        let in_c = name_in_c(name);
        self.own_code.iter().any(|own| name.starts_with(own.as_bytes()) || in_c.starts_with(own.as_bytes()))
            || rest.is_some_and(|rest| self.functions.iter().any(|function| function.is_named(rest)))
    }

    /// Whether only the allocator's own code refers to a function by name.
    pub(crate) fn is_private(&self, symbol: &Symbol<'_>) -> bool {
        let is_public = !self.prefix.is_empty() && symbol.name.starts_with(self.prefix.as_bytes());
        self.is_own_code(symbol.name) && (symbol.is_local || !is_public)
    }

    /// Whether a symbol is data of the allocator. Only the allocator calls the functions in such data, for example in
    /// mimalloc's list of functions that stay in the file.
    pub(crate) fn is_own_data(&self, symbol: &Symbol<'_>) -> bool {
        !symbol.is_function && symbol.name.starts_with(self.marker.as_bytes())
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

/// A symbol's name without the suffix that compilers add to the names of a function's parts and copies.
pub(crate) fn base_name(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == b'.').next().unwrap_or(name)
}

/// Whether a name is in a list. A name in the list that ends in `*` stands for all names with this start.
pub(crate) fn listed(list: &'static [&'static str], name: &[u8]) -> Option<&'static str> {
    let is_listed = |listed: &&str| match listed.strip_suffix('*') {
        Some(start) => name.starts_with(start.as_bytes()),
        None => listed.as_bytes() == name,
    };
    list.iter().find(|entry| is_listed(entry)).copied()
}

/// The function of the C library or of C++ with this name, if an allocator may replace it.
pub(crate) fn library_function(name: &[u8]) -> Option<&'static AllocatorFunction> {
    LIBRARY_NAMES.iter().find(|function| function.is_named(name))
}

/// The name of a C++ function outside of namespaces, without its length and the types of its arguments: an allocator's
/// file in C may be compiled as C++. Other names stay as they are.
pub(crate) fn name_in_c(name: &[u8]) -> &[u8] {
    let Some(rest) = name.strip_prefix(b"_Z") else { return name };
    let rest = rest.strip_prefix(b"L").unwrap_or(rest);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 { name } else { &rest[digits..] }
}

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
        inner: &["_rjem_je_malloc_default", "_rjem_je_free_default", "_rjem_je_sdallocx_default"],
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
        inner: &["je_malloc_default", "je_free_default", "je_sdallocx_default"],
        marker: "je_arena_",
        own_code: &[
            "je_",
            "experimental_batch_alloc",
            "fallback_implILb",
            "newImplILb",
            "handleOOM",
            "imalloc_fastpath",
        ],
        text: Some(b"/etc/malloc.conf\0"),
    },
    // jemalloc in place of the C library's functions.
    AllocatorFamily {
        name: "jemalloc",
        prefix: "",
        functions: JEMALLOC,
        usable_size: Some("malloc_usable_size"),
        unsupported: &[],
        inner: &[
            "je_malloc_default",
            "je_free_default",
            "je_sdallocx_default",
            "_rjem_je_malloc_default",
            "_rjem_je_free_default",
            "_rjem_je_sdallocx_default",
        ],
        marker: "mallocx",
        own_code: &[
            "_rjem_",
            "je_",
            "experimental_batch_alloc",
            "fallback_implILb",
            "newImplILb",
            "handleOOM",
            "imalloc_fastpath",
        ],
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
            "ureallocn",
            "heap_recalloc_aligned_at",
            "wcsdup",
            "dupenv_s",
            "wdupenv_s",
        ],
        inner: &[
            "_mi_malloc_generic*",
            "_mi_theap_malloc_zero*",
            "_mi_theap_realloc_zero*",
            "_mi_heap_malloc_zero*",
            "_mi_heap_realloc_zero*",
            "_mi_page_malloc*",
            "_mi_free_generic*",
            "mi_free_generic*",
            "mi_free_block*",
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
        inner: &[],
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
        inner: &[],
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
        inner: &[],
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
        inner: &[],
        marker: "tc_version",
        own_code: &[
            "_ZN8tcmalloc",
            "_ZN15MallocExtension",
            "_ZN22TCMallocImplementation",
            "_ZN13TCMallocGuard",
        ],
        text: None,
    },
    AllocatorFamily {
        name: "the Rust allocator",
        prefix: "",
        functions: RUST,
        usable_size: None,
        unsupported: &[],
        inner: &[],
        marker: "",
        own_code: &[],
        text: None,
    },
];
