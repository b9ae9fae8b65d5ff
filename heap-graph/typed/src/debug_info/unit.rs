//! Reads one unit of debug information: its entries for types, statics and vtables. Skips code.
//!
//! From the line information, it reads only the paths of the files that contain coroutine states.

use gimli::constants::{self as dw, DwTag};
use gimli::{
    Abbreviations, AttributeValue, DebugAddrBase, DebugStrOffsetsBase, DebugStrOffsetsIndex, EntriesRaw,
    LineProgramHeader, LittleEndian, UnitHeader,
};
use hashbrown::HashMap;

use super::code::UnitCode;
use super::names::LONGEST;
use super::read::{SectionSlice, UnitError, UnitReader};
use super::types::{
    DebugNameId, Discriminant, EnumVariant, Member, STATE, StaticItem, Type, TypeKind, TypeRef, VariantPart,
};
use crate::error::DebugInfoLimit;

/// The largest depth of nested entries.
const DEEPEST: isize = 256;

/// The owner of the entries inside another entry.
#[derive(Clone, Copy)]
enum EntryScope {
    Namespace(DebugNameId),
    Type(usize),
    Variants(usize),
    Variant(usize),
}

/// The attributes of an entry that are needed for types.
#[derive(Default)]
struct EntryAttributes<'s> {
    name: Option<AttributeValue<SectionSlice<'s>>>,
    of: TypeRef,
    containing: TypeRef,
    size: Option<u64>,
    align: u32,
    offset: u64,
    count: Option<u64>,
    upper: Option<u64>,
    discriminant: Option<Discriminant>,
    declaration: bool,
    location: Option<&'s [u8]>,
    file: Option<u64>,
    line: Option<u64>,
}

pub(super) struct UnitParser<'r, 's> {
    pub(super) reading: &'r mut UnitReader<'s>,
    pub(super) header: UnitHeader<SectionSlice<'s>>,
    pub(super) base: u64,
    strings: DebugStrOffsetsBase<usize>,
    addresses: DebugAddrBase<usize>,
    /// The position of the unit's table of files.
    lines: Option<gimli::DebugLineOffset<usize>>,
    folder: Option<AttributeValue<SectionSlice<'s>>>,
    /// The table of files, read at first use. The inner option is `None` if the table is damaged.
    files: Option<Option<LineProgramHeader<SectionSlice<'s>>>>,
    paths: HashMap<u64, Option<DebugNameId>>,
    root: UnitCode,
}

impl<'r, 's> UnitParser<'r, 's> {
    pub(super) fn new(
        reading: &'r mut UnitReader<'s>,
        header: UnitHeader<SectionSlice<'s>>,
        base: u64,
    ) -> Self {
        // The format defines the defaults of these bases: the position after the section's header.
        let format = header.format();
        let start = format.initial_length_size() as usize + 4;
        Self {
            reading,
            header,
            base,
            strings: DebugStrOffsetsBase(start),
            addresses: DebugAddrBase(start),
            lines: None,
            folder: None,
            files: None,
            paths: HashMap::new(),
            // This base is also after the section's header, but the header of lists of ranges is longer.
            root: UnitCode::new(start + 4),
        }
    }

    pub(super) fn read(mut self, abbreviations: &Abbreviations) -> Result<(), UnitError> {
        let header = self.header;
        let mut entries = header.entries_raw(abbreviations, None)?;
        let mut inside: Vec<(isize, EntryScope)> = Vec::new();
        let mut skipped: Option<isize> = None;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            let at = self.base + entries.next_offset().0 as u64;
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            let attributes = abbreviation.attributes();
            self.reading.work(1 + attributes.len() as u64)?;
            if skipped.is_some_and(|above| depth > above) {
                entries.skip_attributes(attributes)?;
                continue;
            }
            skipped = None;
            if depth > DEEPEST {
                return Err(UnitError::Bound(DebugInfoLimit::Nesting));
            }
            while inside.last().is_some_and(|(above, _)| *above >= depth) {
                inside.pop();
            }
            let tag = abbreviation.tag();
            if matches!(tag, dw::DW_TAG_subprogram | dw::DW_TAG_imported_declaration) {
                skipped = Some(depth);
                entries.skip_attributes(attributes)?;
                continue;
            }
            let entry = self.entry(&mut entries, attributes, depth == 0)?;
            if depth == 0 {
                if self.reading.only_rust && self.root.is_foreign() {
                    return Ok(());
                }
                let root = self.root;
                self.reading.units.push(self.base);
                root.add_code(self.reading, self.header.encoding(), self.addresses, self.base)?;
            }
            let within = inside.last().map(|(_, inside)| *inside);
            if let Some(next) = self.add(tag, at, &entry, within)? {
                inside.push((depth, next));
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        entries: &mut EntriesRaw<'_, SectionSlice<'s>>,
        attributes: &[gimli::AttributeSpecification],
        is_root: bool,
    ) -> Result<EntryAttributes<'s>, UnitError> {
        let mut entry = EntryAttributes::default();
        for one in attributes {
            let attribute = entries.read_attribute(*one)?;
            let value = attribute.value();
            match attribute.name() {
                dw::DW_AT_name => entry.name = Some(value),
                dw::DW_AT_type => entry.of = self.reference(&value),
                dw::DW_AT_containing_type => entry.containing = self.reference(&value),
                dw::DW_AT_byte_size => entry.size = value.udata_value(),
                dw::DW_AT_alignment => {
                    entry.align = value.udata_value().and_then(|align| align.try_into().ok()).unwrap_or(0);
                }
                dw::DW_AT_data_member_location => entry.offset = value.udata_value().unwrap_or(0),
                dw::DW_AT_count => entry.count = value.udata_value(),
                dw::DW_AT_upper_bound => entry.upper = value.udata_value(),
                dw::DW_AT_discr_value => {
                    entry.discriminant = discriminant(&value);
                }
                dw::DW_AT_declaration => entry.declaration = true,
                dw::DW_AT_location => {
                    if let AttributeValue::Exprloc(expression) = value {
                        entry.location = Some(expression.0.slice());
                    }
                }
                dw::DW_AT_decl_file => {
                    entry.file = match value {
                        AttributeValue::FileIndex(index) => Some(index),
                        _ => value.udata_value(),
                    }
                }
                dw::DW_AT_decl_line => entry.line = value.udata_value(),
                name if is_root && self.root.read(name, &value) => {}
                dw::DW_AT_comp_dir if is_root => self.folder = Some(value),
                dw::DW_AT_stmt_list if is_root => {
                    if let AttributeValue::DebugLineRef(offset) = value {
                        self.lines = Some(offset);
                    }
                }
                dw::DW_AT_str_offsets_base if is_root => {
                    if let AttributeValue::DebugStrOffsetsBase(base) = value {
                        self.strings = base;
                    }
                }
                dw::DW_AT_addr_base if is_root => {
                    if let AttributeValue::DebugAddrBase(base) = value {
                        self.addresses = base;
                    }
                }
                _ => {}
            }
        }
        Ok(entry)
    }

    fn reference(&self, value: &AttributeValue<SectionSlice<'s>>) -> TypeRef {
        match value {
            AttributeValue::UnitRef(offset) => TypeRef(self.base.saturating_add(offset.0 as u64)),
            AttributeValue::DebugInfoRef(offset) => TypeRef(offset.0 as u64),
            _ => TypeRef(0),
        }
    }

    /// Adds the item that an entry describes. Returns the owner for the entries inside it.
    fn add(
        &mut self,
        tag: DwTag,
        at: u64,
        entry: &EntryAttributes<'s>,
        within: Option<EntryScope>,
    ) -> Result<Option<EntryScope>, UnitError> {
        let kind = match tag {
            dw::DW_TAG_namespace => {
                let name = self.path(entry, within)?;
                return Ok(Some(EntryScope::Namespace(name)));
            }
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type => TypeKind::Struct,
            dw::DW_TAG_union_type => TypeKind::Union,
            dw::DW_TAG_base_type | dw::DW_TAG_enumeration_type | dw::DW_TAG_subroutine_type => {
                TypeKind::Scalar
            }
            dw::DW_TAG_pointer_type => TypeKind::Pointer(entry.of),
            dw::DW_TAG_array_type => TypeKind::Array(entry.of, None),
            dw::DW_TAG_variable => {
                self.add_static(entry, within)?;
                return Ok(None);
            }
            _ => return self.add_part(tag, entry, within),
        };
        let size = entry.size.unwrap_or(if matches!(kind, TypeKind::Pointer(_)) { 8 } else { 0 });
        let name = self.path(entry, within)?;
        let index = self.reading.types.len();
        self.reading.types.push(Type {
            name,
            kind,
            size,
            align: entry.align,
            declared_only: entry.declaration,
            members: Vec::new(),
            variants: None,
            parameters: Vec::new(),
            containing: entry.containing,
        });
        self.reading.offsets.push(at);
        Ok(Some(EntryScope::Type(index)))
    }

    /// Adds a part of a type.
    fn add_part(
        &mut self,
        tag: DwTag,
        entry: &EntryAttributes<'s>,
        within: Option<EntryScope>,
    ) -> Result<Option<EntryScope>, UnitError> {
        let (Some(EntryScope::Type(index))
        | Some(EntryScope::Variants(index))
        | Some(EntryScope::Variant(index))) = within
        else {
            return Ok(None);
        };
        let is_type = matches!(within, Some(EntryScope::Type(_)));
        match tag {
            dw::DW_TAG_subrange_type if is_type => {
                if let TypeKind::Array(_, count) = &mut self.reading.types[index].kind {
                    *count = entry.count.or_else(|| entry.upper?.checked_add(1));
                }
            }
            dw::DW_TAG_template_type_parameter if is_type => {
                let name = self.name(entry)?;
                self.reading.types[index].parameters.push((name, entry.of));
            }
            dw::DW_TAG_member => {
                let member = Member { name: self.name(entry)?, offset: entry.offset, of: entry.of };
                let place = match within {
                    Some(EntryScope::Variant(_)) if self.is_coroutine(index) => self.place(entry)?,
                    _ => None,
                };
                let all = &mut self.reading.types[index];
                match (within, all.variants.as_deref_mut()) {
                    (Some(EntryScope::Variants(_)), Some(variants)) => variants.discriminant = Some(member),
                    (Some(EntryScope::Variant(_)), Some(variants)) => {
                        if let Some(variant) = variants.all.last_mut() {
                            variant.members.push(member);
                            variant.place = variant.place.or(place);
                        }
                    }
                    _ => all.members.push(member),
                }
            }
            dw::DW_TAG_variant_part if is_type => {
                self.reading.types[index].variants = Some(Box::new(VariantPart::default()));
                return Ok(Some(EntryScope::Variants(index)));
            }
            dw::DW_TAG_variant if matches!(within, Some(EntryScope::Variants(_))) => {
                if let Some(variants) = self.reading.types[index].variants.as_deref_mut() {
                    variants
                        .all
                        .push(EnumVariant { discriminant: entry.discriminant, ..EnumVariant::default() });
                }
                return Ok(Some(EntryScope::Variant(index)));
            }
            _ => {}
        }
        Ok(None)
    }

    fn add_static(
        &mut self,
        entry: &EntryAttributes<'s>,
        within: Option<EntryScope>,
    ) -> Result<(), UnitError> {
        let address = |location| Some((self.address(location)?, false));
        let thread_local = |location| Some((self.thread_local(location)?, true));
        let place = entry.location.and_then(|location| address(location).or_else(|| thread_local(location)));
        let Some((address, of_threads)) = place else { return Ok(()) };
        let name = self.path(entry, within)?;
        let one = StaticItem { name, address, of_threads, of: entry.of };
        let is_vtable = self.reading.names.get(name).ends_with("{vtable}");
        if is_vtable {
            self.reading.vtables.push(one);
        } else {
            self.reading.statics.push(one);
        }
        Ok(())
    }

    /// The address of a location, if the location is only an address (`DW_OP_addr`, `DW_OP_addrx`).
    fn address(&self, location: &[u8]) -> Option<u64> {
        match location.split_first()? {
            (0x03, address) => Some(u64::from_le_bytes(address.try_into().ok()?)),
            (0xa1, index) => self.addressed(index),
            _ => None,
        }
    }

    fn is_coroutine(&self, index: usize) -> bool {
        let variants = self.reading.types[index].variants.as_deref();
        let discriminant = variants.and_then(|variants| variants.discriminant);
        discriminant.is_some_and(|member| self.reading.names.get(member.name) == STATE)
    }

    /// The file and the line of an entry; `None` if the entry does not contain them, or if the table of files is
    /// damaged.
    fn place(&mut self, entry: &EntryAttributes<'s>) -> Result<Option<(DebugNameId, u32)>, UnitError> {
        let (Some(file), Some(line)) = (entry.file, entry.line.and_then(|line| u32::try_from(line).ok()))
        else {
            return Ok(None);
        };
        let path = match self.paths.get(&file) {
            Some(known) => *known,
            None => {
                let path = self.file(file)?;
                self.paths.insert(file, path);
                path
            }
        };
        Ok(path.map(|path| (path, line)))
    }

    /// The path of a file of the unit.
    fn file(&mut self, index: u64) -> Result<Option<DebugNameId>, UnitError> {
        let folder = self.folder.and_then(|folder| self.string(folder).ok());
        if self.files.is_none() {
            let compiler = folder.map(|folder| SectionSlice::new(folder, LittleEndian));
            let program = |lines| {
                self.reading.dwarf.debug_line.program(lines, self.header.address_size(), compiler, None).ok()
            };
            let files = self.lines.and_then(program).map(|program| program.header().clone());
            self.reading.work(files.as_ref().map_or(0, |files| files.header_length() as u64))?;
            self.files = Some(files);
        }
        let Some(Some(files)) = &self.files else { return Ok(None) };
        let Some(file) = files.file(index) else { return Ok(None) };
        let mut path = Vec::new();
        for part in [folder, file.directory(files).and_then(|part| self.string(part).ok())]
            .into_iter()
            .flatten()
            .chain(self.string(file.path_name()).ok())
        {
            match part {
                [b'/', ..] => path.clear(),
                _ if path.is_empty() || path.ends_with(b"/") => {}
                _ => path.push(b'/'),
            }
            path.extend_from_slice(part);
        }
        path.truncate(LONGEST);
        self.reading.work(path.len() as u64 / 16)?;
        let path = String::from_utf8_lossy(&path);
        self.reading.names.intern(&path).map(Some).ok_or(UnitError::Bound(DebugInfoLimit::Names))
    }

    /// The name of an entry, without the names of its enclosing entries.
    fn text(&self, entry: &EntryAttributes<'s>) -> Result<&'s [u8], UnitError> {
        entry.name.map_or(Ok(&[]), |name| self.string(name))
    }

    /// The offset of a location in a thread's memory. The location must consist of a constant (`DW_OP_const4u`,
    /// `DW_OP_const8u`, `DW_OP_addrx` or `DW_OP_constx`) and `DW_OP_form_tls_address` or its GNU form.
    fn thread_local(&self, location: &[u8]) -> Option<u64> {
        let (0x9b | 0xe0, constant) = location.split_last()? else { return None };
        match constant.split_first()? {
            (0x0c, offset) => Some(u32::from_le_bytes(offset.try_into().ok()?).into()),
            (0x0e, offset) => Some(u64::from_le_bytes(offset.try_into().ok()?)),
            (0xa1 | 0xa2, index) => self.addressed(index),
            _ => None,
        }
    }

    /// The entry with this index in the table of addresses.
    fn addressed(&self, index: &[u8]) -> Option<u64> {
        let mut index = SectionSlice::new(index, LittleEndian);
        let number = gimli::Reader::read_uleb128(&mut index).ok()?;
        let number = gimli::DebugAddrIndex(usize::try_from(number).ok()?);
        let all = index.is_empty().then_some(&self.reading.dwarf.debug_addr)?;
        all.get_address(8, self.addresses, number).ok()
    }

    /// The text of an attribute or of a table.
    fn string(&self, value: AttributeValue<SectionSlice<'s>>) -> Result<&'s [u8], UnitError> {
        let sections = &self.reading.dwarf;
        let by_index = |index: DebugStrOffsetsIndex<usize>| -> gimli::Result<SectionSlice<'s>> {
            let offset =
                sections.debug_str_offsets.get_str_offset(self.header.format(), self.strings, index)?;
            sections.debug_str.get_str(offset)
        };
        let text = match value {
            AttributeValue::String(text) => text,
            AttributeValue::DebugStrRef(offset) => sections.debug_str.get_str(offset)?,
            AttributeValue::DebugLineStrRef(offset) => sections.debug_line_str.get_str(offset)?,
            AttributeValue::DebugStrOffsetsIndex(index) => by_index(index)?,
            _ => return Ok(&[]),
        };
        let text = text.slice();
        Ok(&text[..text.len().min(LONGEST)])
    }

    fn name(&mut self, entry: &EntryAttributes<'s>) -> Result<DebugNameId, UnitError> {
        let text = self.text(entry)?;
        // The search for the end of a long text also counts as work.
        self.reading.work(text.len() as u64 / 16)?;
        let text = String::from_utf8_lossy(text);
        self.reading.names.intern(&text).ok_or(UnitError::Bound(DebugInfoLimit::Names))
    }

    /// The name with its path. Types that are not items, such as `(A, B)`, have no path.
    fn path(
        &mut self,
        entry: &EntryAttributes<'s>,
        within: Option<EntryScope>,
    ) -> Result<DebugNameId, UnitError> {
        let text = self.text(entry)?;
        self.reading.work(text.len() as u64 / 16)?;
        let above = match within {
            Some(EntryScope::Namespace(name)) => Some(name),
            Some(EntryScope::Type(index) | EntryScope::Variants(index) | EntryScope::Variant(index)) => {
                Some(self.reading.types[index].name)
            }
            None => None,
        };
        let text = String::from_utf8_lossy(text);
        let is_item = !text.is_empty() && !text.starts_with(['&', '*', '(', '[', '<']);
        let full = match above.map(|above| self.reading.names.get(above)) {
            Some(above) if is_item && !above.is_empty() && above.len() + text.len() < LONGEST => {
                format!("{above}::{text}").into()
            }
            _ => text,
        };
        self.reading.work(full.len() as u64 / 16)?;
        self.reading.names.intern(&full).ok_or(UnitError::Bound(DebugInfoLimit::Names))
    }
}

/// Decodes a discriminant in any form that compilers use.
fn discriminant(value: &AttributeValue<SectionSlice<'_>>) -> Option<Discriminant> {
    let short = |value: u64, bits| Discriminant { value: value.into(), bits };
    Some(match value {
        AttributeValue::Data1(value) => short((*value).into(), 8),
        AttributeValue::Data2(value) => short((*value).into(), 16),
        AttributeValue::Data4(value) => short((*value).into(), 32),
        AttributeValue::Data8(value) => short(*value, 64),
        AttributeValue::Udata(value) => Discriminant::whole((*value).into()),
        AttributeValue::Sdata(value) => Discriminant::whole(i128::from(*value).cast_unsigned()),
        AttributeValue::Block(bytes) => {
            let bytes = bytes.slice();
            let kept = bytes.len().min(16);
            let mut word = [0; 16];
            word[..kept].copy_from_slice(&bytes[..kept]);
            Discriminant { value: u128::from_le_bytes(word), bits: 8 * kept as u32 }
        }
        _ => return None,
    })
}
