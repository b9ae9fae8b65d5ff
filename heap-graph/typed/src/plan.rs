//! A type compiled to the places of its pointers, or of its enums: the type's *plan*.
//!
//! Containers are known by the names of their members and parameters, never by offsets. What a plan does not
//! understand has no pointers there, and the pointers of an ordinary type follow from its members.

mod compile;
mod container;

use std::rc::Rc;

use hashbrown::HashMap;

use crate::debug_info::{DebugInfo, Kind, NameId, TypeId};

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
    /// A header with the number of the elements, and the elements.
    Headed { header: TypeId, element: TypeId },
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
    /// The first steps if a number is at most this, and otherwise the second ones.
    AtMost {
        number: Scalar,
        most: u64,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
    /// Steps of a union: its bytes may be something else.
    Maybe(Vec<Step>),
    /// A pointer that does not keep its target alive.
    Weak(Vec<Step>),
}

/// What a plan leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Pointers,
    /// The variants of enums and the states of coroutines.
    Variants,
    /// The states of coroutines, and of the branches of `join!`.
    Coroutines,
}

/// The last part of a type, which is as long as its block.
#[derive(Clone, Copy, Debug)]
struct Tail {
    at: u64,
    element: TypeId,
    /// Perhaps not all elements that there is room for are there.
    is_open: bool,
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
    /// element, which exceeds the size of the whole. As in C, an array without elements at the end of a type stands for as
    /// many as the block has.
    fn tail(&self, id: TypeId) -> Option<Tail> {
        let of = self.info.get(id);
        if of.size == 0 || of.kind != Kind::Struct {
            return None;
        }
        let last = of.members.iter().max_by_key(|member| member.offset)?;
        let last_type = self.info.type_at(last.of)?;
        let is_open = last.offset == of.size;
        match self.info.get(last_type).kind {
            Kind::Array(element, Some(0)) if is_open => {
                Some(Tail { at: last.offset, element: self.info.type_at(element)?, is_open })
            }
            _ => {
                let exceeds = last.offset.saturating_add(self.info.size(last_type)) > of.size;
                exceeds.then_some(Tail { at: last.offset, element: last_type, is_open: false })
            }
        }
    }

    /// Where the header of a vector has its number of elements.
    pub(crate) fn header_len(&self, header: TypeId) -> Option<Scalar> {
        let len = self.info.member(header, "_len").or_else(|| self.info.member(header, "len"))?;
        Some(self.scalar(&len))
    }
}
