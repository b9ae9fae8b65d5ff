//! Finds out, before a run or from a dump, whether the program allocates with functions that `libdmd.so` does not
//! replace, such as `_rjem_malloc`.

use core::fmt;
use std::fs::File;
use std::path::Path;

use object::read::ReadCache;
use object::{Object as _, ObjectSection as _};

use about_memory::launch::contains_dmd;
use dmd_analyze::Dump;

/// An allocator whose functions have their own names. `launch::check` rejects programs that contain a `malloc`.
struct KnownAllocator {
    name: &'static str,
    /// The starts of names in the symbol table. Several are needed: the linker drops functions that the program does
    /// not call, even `mi_malloc`.
    symbols: &'static [&'static [u8]],
    /// A text in the allocator's code. A stripped program still contains it.
    text: Option<&'static [u8]>,
    /// The type that implements `GlobalAlloc`, and the feature of the crate `dmd` that can read the allocator's blocks.
    rust: Option<(&'static str, &'static str)>,
}

static ALLOCATORS: [KnownAllocator; 6] = [
    KnownAllocator {
        name: "jemalloc",
        symbols: &[b"_rjem_"],
        text: Some(b"/etc/_rjem_malloc.conf\0"),
        rust: Some(("tikv_jemallocator::Jemalloc", "jemalloc07")),
    },
    KnownAllocator { name: "jemalloc", symbols: &[b"je_malloc"], text: None, rust: None },
    KnownAllocator {
        name: "mimalloc",
        symbols: &[b"mi_malloc", b"_mi_malloc_generic"],
        text: Some(b"mimalloc: warning: "),
        rust: Some(("mimalloc::MiMalloc", "mimalloc01")),
    },
    KnownAllocator {
        name: "snmalloc",
        symbols: &[b"sn_malloc", b"sn_rust_", b"snmalloc"],
        text: None,
        rust: None,
    },
    KnownAllocator { name: "rpmalloc", symbols: &[b"rpmalloc"], text: None, rust: None },
    KnownAllocator {
        name: "tcmalloc",
        symbols: &[b"tc_malloc", b"TCMallocInternal"],
        text: None,
        rust: None,
    },
];

/// Larger sections are not searched.
const MOST_BYTES: u64 = 1 << 28;

/// The allocator in a program. Its `Display` prints the warning.
pub(super) struct OwnAllocator {
    program: String,
    allocator: &'static KnownAllocator,
    is_rust: bool,
}

impl OwnAllocator {
    /// Searches the file of a program. Also returns `None` if the program contains the wrapper `dmd::Dmd`, because the
    /// wrapper records the blocks.
    pub(super) fn find(program: &Path) -> Option<Self> {
        Self::find_in(program, "")
    }

    /// Searches the file of the program that a dump or a recording describes. `None` if the file has changed since the
    /// program ran.
    pub(super) fn recorded(dump: &Dump) -> Option<Self> {
        let program = dump.modules().first()?;
        Self::find_in(Path::new(&program.path), &program.build_id)
    }

    fn find_in(program: &Path, build_id: &str) -> Option<Self> {
        // The dump may come from another person and name a pipe. Opening a pipe would wait.
        if !program.metadata().ok()?.is_file() {
            return None;
        }
        let file = ReadCache::new(File::open(program).ok()?);
        let executable = object::File::parse(&file).ok()?;
        let own_id = executable.build_id().ok()?.unwrap_or_default();
        let own_id: String = own_id.iter().map(|byte| format!("{byte:02x}")).collect();
        if !build_id.is_empty() && build_id != own_id {
            return None;
        }
        let section = |name| {
            let section = executable.section_by_name(name)?;
            if section.size() > MOST_BYTES { None } else { section.data().ok() }
        };
        let names = section(".strtab");
        let found = [names, section(".dynstr")].into_iter().flatten().find_map(by_symbol);
        let texts = section(".rodata").unwrap_or_default();
        // A symbol is certain evidence. Texts are searched only if the program has no symbol table.
        let found = found.or_else(|| if names.is_none() { by_text(texts) } else { None });
        let allocator = found?;
        if contains_dmd(program) {
            return None;
        }
        let is_rust = allocator.symbols.contains(&&b"_rjem_"[..])
            || contains(names.unwrap_or_default(), b"__rust_")
            || contains(texts, b"/rustc/");
        let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Some(Self { program, allocator, is_rust })
    }
}

impl fmt::Display for OwnAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &KnownAllocator { name, rust, .. } = self.allocator;
        write!(f, "{} contains an allocator, {name}: ", self.program)?;
        match rust {
            Some((path, feature)) if self.is_rust => write!(
                f,
                "DMD does not see its blocks. Wrap it: #[global_allocator] static A: dmd::Dmd<{path}> = \
                 dmd::Dmd::new({path}); (crate dmd, feature {feature})"
            ),
            None if self.is_rust => {
                f.write_str("DMD does not see its blocks. Wrap it in dmd::Dmd (crate dmd)")
            }
            _ => f.write_str("DMD does not see its blocks. Build the program with the C library's allocator"),
        }
    }
}

/// Returns the allocator that has a symbol in a table of names. A NUL precedes each name.
fn by_symbol(names: &[u8]) -> Option<&'static KnownAllocator> {
    let starts = names.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(at, _)| &names[at + 1..]);
    let is_of = |name: &[u8], allocator: &&KnownAllocator| {
        allocator.symbols.iter().any(|start| name.starts_with(start))
    };
    starts.into_iter().find_map(|name| ALLOCATORS.iter().find(|allocator| is_of(name, allocator)))
}

fn by_text(texts: &[u8]) -> Option<&'static KnownAllocator> {
    ALLOCATORS.iter().find(|allocator| allocator.text.is_some_and(|text| contains(texts, text)))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
