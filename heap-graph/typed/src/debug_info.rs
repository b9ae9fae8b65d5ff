//! The types, statics and vtables of a program, from its debug information (DWARF 4 and 5).
//!
//! The reader skips entries for code. It stores members, variants and parameters unchanged. They are interpreted when
//! a type is used.

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

/// The largest total size of all compressed sections after unpacking, in bytes.
const MOST_UNPACKED: u64 = 1 << 30;

/// The largest number of reading threads. More threads would store more copies of the same names.
const MOST_THREADS: usize = 16;

/// The smallest number of names for which a thread is worthwhile.
const WORTH_A_THREAD: usize = 1 << 10;

/// The largest number of parts that are searched in one type.
const MOST_PARTS: u32 = 256;

/// The largest depth of nested arrays whose size is computed.
const DEEPEST_ARRAY: u32 = 16;

/// The types and statics of a program, from its debug information.
#[derive(Debug)]
pub struct DebugInfo {
    names: NameTable,
    types: Vec<Type>,
    offsets: Vec<u64>,
    statics: Vec<StaticItem>,
    /// The type of each vtable, by the vtable's address in the file.
    vtables: HashMap<u64, TypeId>,
    /// The addresses of vtables that the compiler merged: several types of the same size may have the same functions.
    shared_vtables: HashSet<u64>,
    /// The first type of each name, without declarations.
    by_name: HashMap<DebugNameId, TypeId>,
    /// Further types with the same name, such as a type of another version of a crate.
    further_by_name: HashMap<DebugNameId, Vec<TypeId>>,
    /// For each type, the first type with the same name, size and members.
    same_as: Vec<TypeId>,
    /// The location of each unit's entries and code.
    units: UnitTable,
    /// Types by the short form of their names. If several types are equal, only the first is listed.
    by_short_name: HashMap<String, Vec<TypeId>>,
    /// Closure types, by the loose form of their names.
    by_loose_name: HashMap<String, Vec<TypeId>>,
    /// The start of thread-locals, relative to each thread's register; `None` if it is unknown.
    thread_memory: Option<i64>,
    /// The number of control bytes that a hash table compares at once.
    group: u64,
}

impl DebugInfo {
    /// Reads the debug information of a program's file, with one thread for each processor, but at most 16. A file
    /// without debug information results in no types.
    ///
    /// # Errors
    ///
    /// Returns [`TypedError::NotAProgram`] if the file is not a supported program, [`TypedError::DebugInfo`] if the
    /// debug information is damaged, and [`TypedError::Bounded`] if it exceeds a limit.
    pub fn read(file: &[u8]) -> Result<Self, TypedError> {
        Self::read_on(file, thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// Like [`read`](Self::read), on at most `threads` threads, and at most 16. The result does not depend on the
    /// number of threads.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`read`](Self::read).
    pub fn read_on(file: &[u8], threads: usize) -> Result<Self, TypedError> {
        Self::read_files(file, &[], threads)
    }

    /// Like [`read`](Self::read), but also reads the Rust types of shared libraries. Leaves out the thread-locals of
    /// libraries.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`read`](Self::read). A library may also cause these errors.
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

    /// Reads the parts of one file.
    fn read_file(
        file: &[u8],
        threads: usize,
        only_rust: bool,
    ) -> Result<(InfoParts, Architecture), TypedError> {
        let not_a_program = |error: object::Error| TypedError::NotAProgram(error.to_string());
        let object = object::File::parse(file).map_err(not_a_program)?;
        if !object.is_little_endian() || !object.is_64() {
            return Err(TypedError::NotAProgram(
                "only 64-bit little-endian programs are supported".to_owned(),
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

    /// The number of buckets and the offset of the control bytes, for a hash table in a block of this size.
    ///
    /// The layout is the layout of the crate hashbrown: the entries, a control byte for each entry, and one more
    /// group of control bytes.
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

    /// Gives names to arrays. Debug information has no names for them.
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
        // Uses several threads, since shortening names takes about as long as reading them.
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

    /// The number of vtables with a known type.
    pub fn vtable_count(&self) -> usize {
        self.vtables.len()
    }

    /// The full name of a type, as in debug information.
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

    /// Whether two types have the same size and alignment, so that the allocator cannot distinguish them.
    pub(crate) fn same_layout(&self, one: TypeId, other: TypeId) -> bool {
        let layout = |id| (self.size(id), self.align(id, DEEPEST_ARRAY));
        layout(one) == layout(other)
    }

    /// The alignment of a type. Debug information has no alignment for numbers and pointers; their size is used.
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

    /// The types with this short name, each once. The name may also be a symbol's path to a closure or an `async`
    /// function.
    pub fn with_short_name(&self, name: &str) -> &[TypeId] {
        let by_loose_name = || self.by_loose_name.get(&loose(name)?);
        self.by_short_name.get(name).or_else(by_loose_name).map_or(&[], Vec::as_slice)
    }

    /// Whether a type has exactly this short name.
    pub(crate) fn has_short_name(&self, name: &str) -> bool {
        self.by_short_name.contains_key(name)
    }

    /// The first type with this full name.
    pub(crate) fn with_name(&self, name: &str) -> Option<TypeId> {
        self.names.find(name).and_then(|name| self.by_name.get(&name)).copied()
    }

    /// The types that may be the footer of a chunk of an arena, in the order of their names.
    pub(crate) fn chunk_footers(&self) -> Vec<TypeId> {
        let mut found: Vec<(&str, TypeId)> = self
            .by_name
            .iter()
            .map(|(name, id)| (self.names.get(*name), *id))
            .filter(|(name, _)| name.ends_with("::ChunkFooter"))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// The type with this full name that contains a value of the type `part`. If the search finds no such type, the
    /// first type with the name.
    pub(crate) fn with_name_and_part(&self, name: &str, part: TypeId) -> Option<TypeId> {
        let name = self.names.find(name)?;
        let first = *self.by_name.get(&name)?;
        let Some(further) = self.further_by_name.get(&name) else { return Some(first) };
        let mut all = std::iter::once(&first).chain(further);
        all.find(|id| self.has_part(**id, part, &mut { MOST_PARTS })).copied().or(Some(first))
    }

    /// Whether a value of a type contains a value of another type. `left` limits the number of values to examine.
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

    /// The address of a static, or the addresses of a thread-local in each thread. `bias` is the program's bias, and
    /// `threads` contains the threads' registers for thread-locals.
    pub(crate) fn places(&self, of: &StaticItem, bias: u64, threads: &[u64]) -> Vec<u64> {
        if !of.of_threads {
            return vec![of.address.wrapping_add(bias)];
        }
        let Some(start) = self.thread_memory else { return Vec::new() };
        threads.iter().map(|thread| thread.wrapping_add_signed(start).wrapping_add(of.address)).collect()
    }

    /// The name of a static for display: `static app::STORE`, `thread-local app::CACHE`.
    pub(crate) fn static_name(&self, of: &StaticItem) -> String {
        let name = self.text(of.name);
        match of.of_threads {
            false => format!("static {name}"),
            // The path continues with items of the macro `thread_local!`, which the name for display leaves out.
            true => format!("thread-local {}", name.split("::{constant#").next().unwrap_or(name)),
        }
    }

    fn at(&self, reference: TypeRef) -> Option<TypeId> {
        self.offsets.binary_search(&reference.0).ok().map(|index| TypeId(index as u32))
    }

    /// The type that a reference leads to. For a declaration, it is the type with the declaration's name.
    pub(crate) fn type_at(&self, reference: TypeRef) -> Option<TypeId> {
        let id = self.at(reference)?;
        match &self.types[id.index()] {
            Type { declared_only: true, name, .. } => self.by_name.get(name).copied().or(Some(id)),
            _ => Some(id),
        }
    }

    /// The first type with this type's name, size and members. Units repeat types.
    pub(crate) fn same_as(&self, id: TypeId) -> TypeId {
        self.same_as[id.index()]
    }

    /// Whether a type starts with another type: its first member, or a first member deeper inside, is of the type
    /// `other` or an array of `other`.
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

    /// Whether a type is an array of another type, directly or through nested arrays.
    pub(crate) fn is_array_of(&self, mut id: TypeId, other: TypeId) -> bool {
        // Bounded: in damaged debug information, an array may contain itself.
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

    /// Whether a type belongs to an `async` function, block or closure, or to another coroutine.
    pub(crate) fn is_coroutine(&self, id: TypeId) -> bool {
        let variants = self.get(id).variants.as_deref();
        let discriminant = variants.and_then(|variants| variants.discriminant);
        discriminant.is_some_and(|member| self.text(member.name) == types::STATE)
    }

    /// The type of the vtable at an address of the file, and whether the vtable belongs to this type alone.
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
