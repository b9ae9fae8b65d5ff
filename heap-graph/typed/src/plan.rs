//! A type compiled to the places of its pointers, or of its enums: the type's *plan*.
//!
//! Containers are known by the names of their members and parameters, never by offsets. What a plan does not
//! understand has no pointers there, and the pointers of an ordinary type follow from its members.

mod compile;
mod container;

use std::rc::Rc;

use hashbrown::HashMap;

use crate::debug_info::{DebugInfo, Kind, Member, NameId, TypeId};

/// A number inside of a value: its offset and its size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) at: u64,
    pub(crate) size: u64,
}

/// How many elements follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    Fixed(u64),
    /// The number at a place plus this, and at most that.
    Read(Scalar, u64, u64),
    /// As many as the block, or the pointer to it, says.
    Tail,
}

/// What a pointer leads to, before its value and lengths are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leads {
    /// One value.
    One(TypeId),
    /// Memory whose type is unknown: `*const ()`, `*const u8`.
    Opaque,
    /// The buffer of a vector or deque, or a slice.
    Slice { element: TypeId, first: Option<Scalar>, len: Option<Scalar>, capacity: Option<Scalar> },
    /// A value with a tail of this length: `ArcInner<[T]>`.
    Tail { of: TypeId, len: Scalar },
    /// A value behind a vtable, perhaps within a type such as `ArcInner`.
    Dyn { vtable: Scalar, within: Option<TypeId> },
    /// The control bytes of a hash table.
    Table { entry: TypeId, mask: Scalar },
}

/// A step of a plan. Offsets are relative to the value.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Pointer {
        at: u64,
        leads: Leads,
    },
    /// A value inside of this one. Its name is `None` if it says nothing.
    Part {
        at: u64,
        of: TypeId,
        name: Option<NameId>,
    },
    Repeat {
        at: u64,
        stride: u64,
        count: Count,
        of: TypeId,
        name: Option<&'static str>,
    },
    /// The steps of one of the variants; those without a number are for all other numbers.
    Switch {
        /// The enum or the coroutine, if these are wanted.
        of: Option<TypeId>,
        discriminant: Option<Scalar>,
        cases: Vec<(Option<u64>, Vec<Step>)>,
    },
    /// Steps of a union: its bytes may be something else.
    Maybe(Vec<Step>),
}

/// What a plan leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Pointers,
    /// The variants of enums and the states of coroutines.
    Variants,
    /// The states of coroutines.
    Coroutines,
}

/// The plans of types, each compiled when it is first needed.
#[derive(Debug)]
pub(crate) struct Plans<'i> {
    pub(crate) info: &'i DebugInfo,
    wanted: Wanted,
    known: HashMap<TypeId, Rc<[Step]>>,
}

impl<'i> Plans<'i> {
    pub(crate) fn new(info: &'i DebugInfo, wanted: Wanted) -> Self {
        Self { info, wanted, known: HashMap::new() }
    }

    /// The plan of a type; empty if it has nothing of what is wanted.
    pub(crate) fn of(&mut self, id: TypeId) -> Rc<[Step]> {
        self.within(id, 0)
    }

    /// Whether the last part of a type is a slice without a length.
    pub(crate) fn has_tail(&self, id: TypeId) -> bool {
        self.tail(id).is_some()
    }

    /// The last member of an unsized type, such as that of `ArcInner<[T]>`: debug information gives it the type of an
    /// element, which exceeds the size of the whole.
    fn tail(&self, id: TypeId) -> Option<Member> {
        let of = self.info.get(id);
        let last = of.members.iter().max_by_key(|member| member.offset).copied()?;
        let size = self.info.size(self.info.type_at(last.of)?);
        let exceeds = of.kind == Kind::Struct && last.offset.saturating_add(size) > of.size;
        (of.size > 0 && exceeds).then_some(last)
    }
}
