//! Compiles a type to a *plan*: the positions of its pointers, or of its enums.
//!
//! Containers are recognized by the names of their members and parameters, not by offsets. A type in an unknown form
//! has a plan without pointers. The pointers of an ordinary type follow from its members.

mod compile;
mod container;

use std::rc::Rc;

use hashbrown::HashMap;

use crate::debug_info::{DebugInfo, DebugNameId, TypeId, TypeKind};
use crate::path::PathSegment;

/// A number inside a value: its offset and its size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) at: u64,
    pub(crate) size: u64,
}

/// The number of adjacent elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementCount {
    Fixed(u64),
    /// The sum of the number at a position (first field) and the second field, but at most the third field.
    Read(Scalar, u64, u64),
    /// The size of the block, or the pointer to it, determines the number.
    Tail,
}

/// The target of a pointer, before the pointer's value and its lengths are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetPlan {
    /// One value.
    One(TypeId),
    /// One value, which may be a part of another value.
    Reference(TypeId),
    /// Memory whose type is unknown: `*const ()`, `*const u8`.
    Opaque,
    /// The buffer of a vector or deque, or a slice.
    Slice {
        element: TypeId,
        first: Option<Scalar>,
        len: Option<Scalar>,
        capacity: Option<Scalar>,
        holding: PointerRole,
    },
    /// The buffer of a vector whose elements are removed one by one. The fields are the address of the first
    /// remaining element, and of the end.
    Rest { element: TypeId, first: Scalar, end: Scalar, capacity: Scalar },
    /// A value with a tail, such as `ArcInner<[T]>`. `len` is the length of the tail, if the pointer has it.
    Tail { of: TypeId, len: Option<Scalar> },
    /// A value whose vtable determines its type. `within` is the type around the value, such as `ArcInner`.
    Dyn { vtable: Scalar, within: Option<TypeId> },
    /// The control bytes of a hash table.
    Table { entry: TypeId, mask: Scalar },
    /// A header with the number of elements, followed by the elements.
    Headed { header: TypeId, element: TypeId },
}

/// Whether a pointer to elements owns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointerRole {
    /// The pointer borrows the elements, or its role is unknown.
    Borrows,
    /// The pointer frees the block of the elements, like a vector or a boxed slice.
    Owns,
    /// The pointer frees the block of the elements, and they are text, as for a `String` or a `Box<str>`.
    OwnsText,
}

/// A step of a plan. Offsets are relative to the start of the value.
#[derive(Clone, Debug)]
pub(crate) enum PlanStep {
    Pointer {
        at: u64,
        leads: TargetPlan,
    },
    /// A value inside this value. Its name is `None` if the name would not help a reader. The last part may contain
    /// the tail of the whole value.
    Part {
        at: u64,
        of: TypeId,
        name: Option<DebugNameId>,
        has_tail: bool,
    },
    Repeat {
        at: u64,
        stride: u64,
        count: ElementCount,
        of: TypeId,
        name: Option<PathSegment>,
    },
    /// The steps of the variant that a number selects. A variant without a number is selected by all other numbers.
    Switch {
        /// The enum or the coroutine, if the goal includes it.
        of: Option<TypeId>,
        discriminant: Option<Scalar>,
        cases: Vec<(Option<u128>, Vec<PlanStep>)>,
    },
    /// The steps `then` if the number is at most `most`, otherwise the steps `otherwise`.
    AtMost {
        number: Scalar,
        most: u64,
        then: Vec<PlanStep>,
        otherwise: Vec<PlanStep>,
    },
    /// The steps of a slot, if the slot has a value: if `(number ^ index) & mask` is 1. The index of the slot is its
    /// offset divided by `stride`.
    Full {
        number: Scalar,
        mask: u64,
        stride: u64,
        steps: Vec<PlanStep>,
    },
    /// The steps of a union. The bytes of the union may be a value of another type.
    Maybe(Vec<PlanStep>),
    /// A pointer that does not keep its target alive.
    Weak(Vec<PlanStep>),
}

/// The goal of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanGoal {
    Pointers,
    /// Finds the variants of enums and the states of coroutines.
    Variants,
    /// Finds the states of coroutines, and of the branches of `join!`.
    Coroutines,
}

/// The last part of a type. It extends to the end of the block.
#[derive(Clone, Copy, Debug)]
struct TypeTail {
    /// The index of the member that is the last part.
    member: usize,
    kind: TailKind,
}

#[derive(Clone, Copy, Debug)]
enum TailKind {
    /// Elements. The pointer to the value contains their number.
    Slice(TypeId),
    /// Elements, perhaps fewer than the block has room for.
    Open(TypeId),
    /// A value with its own tail.
    Part,
}

/// The maximum number of types that are examined for the tail of one type.
const MOST_TAILS: u32 = 64;

/// The plans of types. Each is compiled at its first use.
#[derive(Debug)]
pub(crate) struct PlanCache<'i> {
    pub(crate) info: &'i DebugInfo,
    wanted: PlanGoal,
    known: HashMap<TypeId, Rc<[PlanStep]>>,
}

impl<'i> PlanCache<'i> {
    pub(crate) fn new(info: &'i DebugInfo, wanted: PlanGoal) -> Self {
        Self { info, wanted, known: HashMap::new() }
    }

    /// The plan of a type; empty if no part of the type leads to the goal.
    pub(crate) fn plan(&mut self, id: TypeId) -> Rc<[PlanStep]> {
        self.within(id, 0)
    }

    /// Whether the last part of a type is a slice without a length.
    pub(crate) fn has_tail(&self, id: TypeId) -> bool {
        self.tail(id).is_some()
    }

    /// Whether a type is unsized, so that a pointer to it contains the length of its last part. A type that ends in
    /// an array without elements is sized.
    fn is_unsized(&self, mut id: TypeId) -> bool {
        for _ in 0..MOST_TAILS {
            let Some(TypeTail { member, kind }) = self.tail(id) else { return false };
            match kind {
                TailKind::Slice(_) => return true,
                TailKind::Open(_) => return false,
                TailKind::Part => match self.info.type_at(self.info.get(id).members[member].of) {
                    Some(part) => id = part,
                    None => return false,
                },
            }
        }
        false
    }

    /// The last member of a type with a tail, such as `ArcInner<[T]>`. For an unsized type, debug information gives
    /// this member the type of an element, so it exceeds the size of the whole. As in C, an array without elements at
    /// the end of a type means as many elements as fit in the block. The member may itself be a value with a tail, as
    /// in `ArcInner<Mutex<[T]>>`.
    fn tail(&self, id: TypeId) -> Option<TypeTail> {
        self.tail_within(id, &mut { MOST_TAILS })
    }

    /// The last member, like `tail`. Examines at most `left` types: many members may be at one offset, and each of
    /// these members may have a tail.
    fn tail_within(&self, id: TypeId, left: &mut u32) -> Option<TypeTail> {
        *left = left.checked_sub(1)?;
        let of = self.info.get(id);
        if of.kind != TypeKind::Struct || of.variants.is_some() {
            return None;
        }
        let start = of.members.iter().map(|member| member.offset).max()?;
        // A marker of size 0 may be at the same offset.
        let mut last = of.members.iter().enumerate().filter(|(_, member)| member.offset == start);
        last.find_map(|(member, last)| {
            let last_type = self.info.type_at(last.of)?;
            let end = start.saturating_add(self.info.size(last_type));
            let kind = match self.info.get(last_type).kind {
                // A type without other members is a marker, not a header of elements.
                TypeKind::Array(element, Some(0)) if start == of.size && of.size > 0 => {
                    TailKind::Open(self.info.type_at(element)?)
                }
                _ if end > of.size => TailKind::Slice(last_type),
                _ if end == of.size && self.tail_within(last_type, left).is_some() => TailKind::Part,
                _ => return None,
            };
            Some(TypeTail { member, kind })
        })
    }

    /// The position of the number of elements in the header of a vector.
    pub(crate) fn header_len(&self, header: TypeId) -> Option<Scalar> {
        let len = self.info.member(header, "_len").or_else(|| self.info.member(header, "len"))?;
        Some(self.scalar(&len))
    }
}
