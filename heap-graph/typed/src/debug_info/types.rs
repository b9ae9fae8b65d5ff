//! Types, as debug information describes them.

/// A type of a program, as an index into its [`DebugInfo`](super::DebugInfo).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(super) u32);

impl TypeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The offset of a type's entry in `.debug_info`; 0 means "no type".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeRef(pub(super) u64);

impl TypeRef {
    /// The reference to the same entry after all entries have moved by this offset.
    pub(super) fn moved(self, by: u64) -> Self {
        if self.0 == 0 { self } else { Self(self.0.saturating_add(by)) }
    }
}

/// The number of a name. Each name is stored once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct DebugNameId(pub(super) u32);

impl DebugNameId {
    pub(crate) fn number(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeKind {
    /// A number, an enumeration without data, or a function.
    Scalar,
    Pointer(TypeRef),
    Struct,
    Union,
    /// An array: the type of its elements, and their number. The number is `None` for the tail of an unsized type.
    Array(TypeRef, Option<u64>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) name: DebugNameId,
    pub(crate) offset: u64,
    pub(crate) of: TypeRef,
}

/// The name of the member with a coroutine's discriminant.
pub(super) const STATE: &str = "__state";

/// The number that selects a variant, as encoded in the variant's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Discriminant {
    pub(super) value: u128,
    /// The number of encoded bits. Compilers encode a negative number in as few bits as possible. Only the type of
    /// the discriminant shows whether the first bit is a sign.
    pub(super) bits: u32,
}

impl Discriminant {
    /// A discriminant whose value is complete, not cut to fewer bits.
    pub(super) fn whole(value: u128) -> Self {
        Self { value, bits: u128::BITS }
    }

    /// The value that a discriminant of this size in bytes has in memory.
    pub(crate) fn number(self, bytes: u64, is_signed: bool) -> u128 {
        let unknown = u128::BITS - self.bits.clamp(1, u128::BITS);
        let value = self.value << unknown;
        let value =
            if is_signed { (value.cast_signed() >> unknown).cast_unsigned() } else { value >> unknown };
        let cut = u128::BITS - (8 * bytes.clamp(1, 16)) as u32;
        value << cut >> cut
    }
}

/// A variant: its members, and the discriminant that selects it; `None` for the variant of all other discriminants.
#[derive(Clone, Debug, Default)]
pub(crate) struct EnumVariant {
    pub(crate) discriminant: Option<Discriminant>,
    pub(crate) members: Vec<Member>,
    /// For the state of a coroutine: the file and the line of its `await`, or of the start or end of the function.
    pub(crate) place: Option<(DebugNameId, u32)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct VariantPart {
    pub(crate) discriminant: Option<Member>,
    pub(crate) all: Vec<EnumVariant>,
}

#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) name: DebugNameId,
    pub(crate) kind: TypeKind,
    /// The size in bytes.
    pub(crate) size: u64,
    /// The alignment in bytes; 0 if the entry has none.
    pub(crate) align: u32,
    /// Whether the entry is a declaration without a definition.
    pub(crate) declared_only: bool,
    pub(crate) members: Vec<Member>,
    pub(crate) variants: Option<Box<VariantPart>>,
    pub(crate) parameters: Vec<(DebugNameId, TypeRef)>,
    /// For the type of a vtable: the type that the vtable belongs to.
    pub(crate) containing: TypeRef,
}

impl Type {
    /// The type with translated name ids, and with references moved by `by`.
    pub(super) fn moved(mut self, to: impl Fn(DebugNameId) -> DebugNameId, by: u64) -> Self {
        let member = |member: &mut Member| {
            member.name = to(member.name);
            member.of = member.of.moved(by);
        };
        self.name = to(self.name);
        self.containing = self.containing.moved(by);
        if let TypeKind::Pointer(of) | TypeKind::Array(of, _) = &mut self.kind {
            *of = of.moved(by);
        }
        self.members.iter_mut().for_each(member);
        self.parameters.iter_mut().for_each(|(name, of)| (*name, *of) = (to(*name), of.moved(by)));
        if let Some(variants) = self.variants.as_deref_mut() {
            variants.discriminant.iter_mut().for_each(member);
            for variant in &mut variants.all {
                variant.members.iter_mut().for_each(member);
                variant.place.iter_mut().for_each(|(path, _)| *path = to(*path));
            }
        }
        self
    }
}

/// A static with its address in the file, or a thread-local with its offset in each thread's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticItem {
    pub(crate) name: DebugNameId,
    pub(crate) address: u64,
    pub(crate) of_threads: bool,
    pub(crate) of: TypeRef,
}
