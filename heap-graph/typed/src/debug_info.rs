//! The types, statics and vtables of a program, from its debug information (DWARF 4 and 5).
//!
//! Entries for code are skipped. Members, variants and parameters are read as they are; what they mean is decided
//! where a type is needed.

mod classes;
mod code;
mod library;
mod loose_name;
mod names;
mod read;
mod side_by_side;
mod task_parts;
mod thread_memory;
mod types;
mod unit;
mod units;

use std::borrow::Cow;
use std::num::NonZero;
use std::thread;

use dmd_analyze::short_type_name;
use gimli::{DwarfSections, EndianSlice, LittleEndian};
use hashbrown::{HashMap, HashSet};
use object::{Architecture, Object as _, ObjectSection as _};

use crate::error::{DebugInfoLimit, TypedError};
pub use library::Library;
pub(crate) use library::{ClassEntries, CodePlace};
use library::{InfoParts, UnitTable};
use loose_name::loose;
use names::NameTable;
use side_by_side::side_by_side;
pub use types::TypeId;
pub(crate) use types::{DebugNameId, EnumVariant, Member, StaticItem, Type, TypeKind, TypeRef};

/// The maximum of bytes of all compressed sections when unpacked.
const MOST_UNPACKED: u64 = 1 << 30;

/// The maximum number of threads that read: each repeats some names of the others.
const MOST_THREADS: usize = 16;

/// The number of names that are worth a thread.
const WORTH_A_THREAD: usize = 1 << 10;

/// The maximum number of parts of a type among which one is looked for.
const MOST_PARTS: u32 = 256;

/// The maximum depth of arrays in arrays whose size is computed.
const DEEPEST_ARRAY: u32 = 16;

/// The types and statics of a program, from its debug information.
#[derive(Debug)]
pub struct DebugInfo {
    names: NameTable,
    types: Vec<Type>,
    offsets: Vec<u64>,
    statics: Vec<StaticItem>,
    /// The type behind each vtable, by its address in the file.
    vtables: HashMap<u64, TypeId>,
    /// Vtables that the compiler merged, as types of one size have the same functions.
    shared_vtables: HashSet<u64>,
    /// The first type of each name that is more than a declaration.
    by_name: HashMap<DebugNameId, TypeId>,
    /// Further types of a name, such as that of another version of a crate.
    further_by_name: HashMap<DebugNameId, Vec<TypeId>>,
    /// For each type, the first type of the same name, size and members.
    same_as: Vec<TypeId>,
    /// Where the entries and the code of units are.
    units: UnitTable,
    /// Types by the short form of their names; only the first of equal ones.
    by_short_name: HashMap<String, Vec<TypeId>>,
    /// Types with closures, by the loose form of their names.
    by_loose_name: HashMap<String, Vec<TypeId>>,
    /// The start of thread-locals, relative to each thread's register.
    thread_memory: Option<i64>,
    /// The number of control bytes of a hash table that the processor compares at once.
    group: u64,
}

impl DebugInfo {
    /// Reads the debug information of a program's file, on as many threads as the system has processors for. A file without
    /// any gives no types.
    ///
    /// # Errors
    ///
    /// [`TypedError::NotAProgram`], [`TypedError::DebugInfo`] or [`TypedError::Bounded`].
    pub fn read(file: &[u8]) -> Result<Self, TypedError> {
        Self::read_on(file, thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// As [`read`](Self::read), on at most this many threads, and at most 16. The result is the same for any number.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_on(file: &[u8], threads: usize) -> Result<Self, TypedError> {
        Self::read_files(file, &[], threads)
    }

    /// As [`read`](Self::read), and reads the types in Rust of shared libraries, too. The thread-locals of libraries are
    /// left out.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), also for a library.
    pub fn read_with(file: &[u8], libraries: &[Library<'_>]) -> Result<Self, TypedError> {
        Self::read_files(file, libraries, thread::available_parallelism().map_or(1, NonZero::get))
    }

    fn read_files(file: &[u8], libraries: &[Library<'_>], threads: usize) -> Result<Self, TypedError> {
        let threads = threads.clamp(1, MOST_THREADS);
        let (mut parts, architecture) = Self::read_file(file, threads, false)?;
        for library in libraries {
            let (of_library, _) = Self::read_file(library.file, threads, true)?;
            parts.append(of_library, library)?;
        }
        let mut info = Self::from_parts(parts, threads);
        info.thread_memory = thread_memory::offset(file, architecture);
        info.group = match architecture {
            Architecture::X86_64 | Architecture::LoongArch64 => 16,
            _ => 8,
        };
        Ok(info)
    }

    /// The parts of one file.
    fn read_file(
        file: &[u8],
        threads: usize,
        only_rust: bool,
    ) -> Result<(InfoParts, Architecture), TypedError> {
        let not_a_program = |error: object::Error| TypedError::NotAProgram(error.to_string());
        let object = object::File::parse(file).map_err(not_a_program)?;
        if !object.is_little_endian() || !object.is_64() {
            return Err(TypedError::NotAProgram(
                "only 64-bit little-endian programs have types here".to_owned(),
            ));
        }
        let mut left = MOST_UNPACKED;
        let sections = DwarfSections::load(|id| -> Result<Cow<'_, [u8]>, TypedError> {
            let Some(section) = object.section_by_name(id.name()) else { return Ok(Cow::Borrowed(&[])) };
            let data = section.compressed_data().map_err(not_a_program)?;
            if data.format != object::CompressionFormat::None {
                left = left
                    .checked_sub(data.uncompressed_size)
                    .ok_or(TypedError::Bounded(0, DebugInfoLimit::Unpacked))?;
            }
            data.decompress().map_err(not_a_program)
        })?;
        let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
        let parts = InfoParts::from_readers(units::read_all(&dwarf, threads, only_rust)?);
        Ok((parts, object.architecture()))
    }

    fn from_parts(parts: InfoParts, threads: usize) -> Self {
        let InfoParts { names, types, offsets, statics, vtables, units } = parts;
        let mut info = Self {
            names,
            types,
            offsets,
            statics,
            vtables: HashMap::new(),
            shared_vtables: HashSet::new(),
            by_name: HashMap::new(),
            further_by_name: HashMap::new(),
            same_as: Vec::new(),
            units,
            by_short_name: HashMap::new(),
            by_loose_name: HashMap::new(),
            thread_memory: None,
            group: 16,
        };
        info.name_arrays();
        info.index(threads);
        for vtable in vtables {
            if let Some(owner) = info.type_at(vtable.of).and_then(|id| info.type_at(info.get(id).containing))
            {
                let before = info.vtables.insert(vtable.address, owner);
                if before.is_some_and(|before| info.same_as(before) != info.same_as(owner)) {
                    info.shared_vtables.insert(vtable.address);
                }
            }
        }
        info
    }

    /// The number of buckets and the offset of the control bytes of a hash table in a block of this size.
    ///
    /// As the crate hashbrown lays it out: entries, a control byte for each, and those of one more group.
    pub(crate) fn buckets(&self, bytes: u64, entry: TypeId) -> Option<(u64, u64)> {
        let entry = self.size(entry);
        let mut buckets: u64 = 2;
        loop {
            let control = buckets.checked_mul(entry)?.checked_next_multiple_of(self.group)?;
            let all = control.checked_add(buckets)?.checked_add(self.group)?;
            if all >= bytes {
                return (all == bytes).then_some((buckets, control));
            }
            buckets = buckets.checked_mul(2)?;
        }
    }

    /// Arrays have no names in debug information.
    fn name_arrays(&mut self) {
        for index in 0..self.types.len() {
            let TypeKind::Array(element, count) = self.types[index].kind else { continue };
            let Some(element) = self.at(element) else { continue };
            let inner = self.names.get(self.types[element.index()].name);
            let name = match count {
                _ if inner.is_empty() || inner.len() > 4096 => continue,
                Some(count) => format!("[{inner}; {count}]"),
                None => format!("[{inner}]"),
            };
            if let Some(name) = self.names.intern(&name) {
                self.types[index].name = name;
            }
        }
    }

    fn index(&mut self, threads: usize) {
        for index in 0..self.types.len() {
            let Type { name, declared_only, .. } = self.types[index];
            if !declared_only && !self.names.get(name).is_empty() {
                self.by_name.entry(name).or_insert(TypeId(index as u32));
            }
        }
        self.same_as = classes::find(self, threads);
        let mut shown = Vec::new();
        for index in 0..self.types.len() {
            let id = TypeId(index as u32);
            let Type { name, declared_only, .. } = self.types[index];
            if self.same_as[index] == id && !declared_only && !self.names.get(name).is_empty() {
                if self.by_name.get(&name).is_some_and(|first| *first != id) {
                    self.further_by_name.entry(name).or_default().push(id);
                }
                shown.push(id);
            }
        }
        let short = |id: &TypeId| {
            let short = short_type_name(self.name(*id));
            (*id, loose(&short), short)
        };
        // Shortening names takes about as long as reading them.
        let parts: Vec<_> = shown.chunks(shown.len().div_ceil(threads).max(WORTH_A_THREAD)).collect();
        let all = side_by_side(&parts, |part| part.iter().map(short).collect::<Vec<_>>());
        for (id, loose, short) in all.into_iter().flatten() {
            if let Some(loose) = loose {
                self.by_loose_name.entry(loose).or_default().push(id);
            }
            self.by_short_name.entry(short).or_default().push(id);
        }
    }

    /// All types, in the order of the file.
    pub fn types(&self) -> impl Iterator<Item = TypeId> {
        (0..self.types.len() as u32).map(TypeId)
    }

    /// The number of types.
    pub fn type_count(&self) -> usize {
        self.types.len()
    }

    /// The number of vtables whose types are known.
    pub fn vtable_count(&self) -> usize {
        self.vtables.len()
    }

    /// The full name of a type, as debug information has it.
    pub fn name(&self, id: TypeId) -> &str {
        self.names.get(self.types[id.index()].name)
    }

    /// The size of a type in bytes.
    pub fn size(&self, id: TypeId) -> u64 {
        self.size_within(id, DEEPEST_ARRAY)
    }

    fn size_within(&self, id: TypeId, depth: u32) -> u64 {
        let of = &self.types[id.index()];
        match of.kind {
            TypeKind::Array(element, Some(count)) if depth > 0 && of.size == 0 => {
                let element = self.type_at(element).map_or(0, |element| self.size_within(element, depth - 1));
                element.saturating_mul(count)
            }
            _ => of.size,
        }
    }

    /// Whether the allocator sees no difference between two types: their sizes and their alignments are equal.
    pub(crate) fn same_layout(&self, one: TypeId, other: TypeId) -> bool {
        let layout = |id| (self.size(id), self.align(id, DEEPEST_ARRAY));
        layout(one) == layout(other)
    }

    /// Numbers and pointers have no alignment in debug information: it is their size.
    fn align(&self, id: TypeId, depth: u32) -> u64 {
        let of = &self.types[id.index()];
        match of.kind {
            TypeKind::Array(element, _) if depth > 0 => {
                self.type_at(element).map_or(0, |element| self.align(element, depth - 1))
            }
            TypeKind::Scalar | TypeKind::Pointer(_) if of.align == 0 => of.size,
            _ => of.align.into(),
        }
    }

    /// The types with this short name, each once. The path to a closure or to an `async` function may be that of a symbol.
    pub fn with_short_name(&self, name: &str) -> &[TypeId] {
        let by_loose_name = || self.by_loose_name.get(&loose(name)?);
        self.by_short_name.get(name).or_else(by_loose_name).map_or(&[], Vec::as_slice)
    }

    /// Whether a type has exactly this short name.
    pub(crate) fn has_short_name(&self, name: &str) -> bool {
        self.by_short_name.contains_key(name)
    }

    /// The type with this full name; of several, the first.
    pub(crate) fn with_name(&self, name: &str) -> Option<TypeId> {
        self.names.find(name).and_then(|name| self.by_name.get(&name)).copied()
    }

    /// The type with this full name that contains a value of another type.
    pub(crate) fn with_name_and_part(&self, name: &str, part: TypeId) -> Option<TypeId> {
        let name = self.names.find(name)?;
        let first = *self.by_name.get(&name)?;
        let Some(further) = self.further_by_name.get(&name) else { return Some(first) };
        let mut all = std::iter::once(&first).chain(further);
        all.find(|id| self.has_part(**id, part, &mut { MOST_PARTS })).copied().or(Some(first))
    }

    /// Whether a value of a type has one of another type in it. `left` bounds the values that are looked at.
    fn has_part(&self, id: TypeId, part: TypeId, left: &mut u32) -> bool {
        let of = self.get(id);
        let element = match of.kind {
            TypeKind::Array(element, _) => Some(element),
            _ => None,
        };
        let mut inside = of.members.iter().map(|member| member.of).chain(element);
        inside.any(|inside| {
            let Some(inside) = self.type_at(inside) else { return false };
            let Some(next) = left.checked_sub(1) else { return false };
            *left = next;
            self.same_as(inside) == self.same_as(part) || self.has_part(inside, part, left)
        })
    }

    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.types[id.index()]
    }

    pub(crate) fn text(&self, name: DebugNameId) -> &str {
        self.names.get(name)
    }

    pub(crate) fn statics(&self) -> &[StaticItem] {
        &self.statics
    }

    /// The addresses of a static, or of a thread-local in each thread. `bias` is that of the program, `threads` what
    /// the threads' registers say.
    pub(crate) fn places(&self, of: &StaticItem, bias: u64, threads: &[u64]) -> Vec<u64> {
        if !of.of_threads {
            return vec![of.address.wrapping_add(bias)];
        }
        let Some(start) = self.thread_memory else { return Vec::new() };
        threads.iter().map(|thread| thread.wrapping_add_signed(start).wrapping_add(of.address)).collect()
    }

    /// A static as the programmer knows it: `static app::STORE`, `thread-local app::CACHE`.
    pub(crate) fn static_name(&self, of: &StaticItem) -> String {
        let name = self.text(of.name);
        match of.of_threads {
            false => format!("static {name}"),
            // The macro has its own items inside.
            true => format!("thread-local {}", name.split("::{constant#").next().unwrap_or(name)),
        }
    }

    fn at(&self, reference: TypeRef) -> Option<TypeId> {
        self.offsets.binary_search(&reference.0).ok().map(|index| TypeId(index as u32))
    }

    /// The type that a reference means. A declaration stands for the type of its name.
    pub(crate) fn type_at(&self, reference: TypeRef) -> Option<TypeId> {
        let id = self.at(reference)?;
        match &self.types[id.index()] {
            Type { declared_only: true, name, .. } => self.by_name.get(name).copied().or(Some(id)),
            _ => Some(id),
        }
    }

    /// The first of the types with this one's name, size and members: units repeat types.
    pub(crate) fn same_as(&self, id: TypeId) -> TypeId {
        self.same_as[id.index()]
    }

    /// Whether the first member of a type, or the first member of that, is of another type, or an array of it.
    pub(crate) fn starts_with(&self, mut id: TypeId, other: TypeId) -> bool {
        for _ in 0..16 {
            if self.same_as(id) == self.same_as(other) {
                return true;
            }
            let first = match self.get(id).kind {
                TypeKind::Array(element, _) => Some(element),
                _ => self.get(id).members.iter().find(|member| member.offset == 0).map(|member| member.of),
            };
            match first.and_then(|first| self.type_at(first)) {
                Some(first) => id = first,
                None => return false,
            }
        }
        false
    }

    /// Whether a type is an array of another one, or an array of such arrays.
    pub(crate) fn is_array_of(&self, mut id: TypeId, other: TypeId) -> bool {
        // Damaged debug information may have an array of itself.
        for _ in 0..16 {
            let TypeKind::Array(element, _) = self.get(id).kind else { return false };
            let Some(element) = self.type_at(element) else { return false };
            if self.same_as(element) == self.same_as(other) {
                return true;
            }
            id = element;
        }
        false
    }

    /// Whether a type is that of an `async` function, block or closure, or of another coroutine.
    pub(crate) fn is_coroutine(&self, id: TypeId) -> bool {
        let variants = self.get(id).variants.as_deref();
        let discriminant = variants.and_then(|variants| variants.discriminant);
        discriminant.is_some_and(|member| self.text(member.name) == types::STATE)
    }

    /// The type behind the vtable at an address of the file, and whether no other type has the same vtable.
    pub(crate) fn behind_vtable(&self, address: u64) -> Option<(TypeId, bool)> {
        let of = self.vtables.get(&address)?;
        Some((*of, !self.shared_vtables.contains(&address)))
    }

    pub(crate) fn member(&self, id: TypeId, name: &str) -> Option<Member> {
        self.get(id).members.iter().copied().find(|member| self.names.get(member.name) == name)
    }

    pub(crate) fn parameter(&self, id: TypeId, name: &str) -> Option<TypeId> {
        let mut all = self.get(id).parameters.iter();
        let (_, of) = all.find(|(parameter, _)| self.names.get(*parameter) == name)?;
        self.type_at(*of)
    }
}
