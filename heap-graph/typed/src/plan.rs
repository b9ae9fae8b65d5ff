//! A type compiled to the places of its pointers, or of its enums: the type's *plan*.
//!
//! Containers are known by the names of their members and parameters, never by offsets. Where a
//! plan does not understand a type, it has no pointers. The pointers of an ordinary type follow from its members.

mod compile;
mod container;

use std::rc::Rc;

use hashbrown::HashMap;

use crate::debug_info::{DebugInfo, DebugNameId, TypeId, TypeKind};
use crate::path::PathSegment;

/// A number inside of a value: its offset and its size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) at: u64,
    pub(crate) size: u64,
}

/// How many elements follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementCount {
    Fixed(u64),
    /// The number at a place plus this, and at most that.
    Read(Scalar, u64, u64),
    /// The number comes from the size of the block, or from the pointer to it.
    Tail,
}

/// The target of a pointer, before the pointer's value and lengths are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetPlan {
    /// One value.
    One(TypeId),
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
    /// The buffer of a vector whose elements are taken out one by one: the addresses of the first that is left and of the
    /// end.
    Rest { element: TypeId, first: Scalar, end: Scalar, capacity: Scalar },
    /// A value with a tail, of this length if the pointer has it: `ArcInner<[T]>`.
    Tail { of: TypeId, len: Option<Scalar> },
    /// A value behind a vtable, perhaps within a type such as `ArcInner`.
    Dyn { vtable: Scalar, within: Option<TypeId> },
    /// The control bytes of a hash table.
    Table { entry: TypeId, mask: Scalar },
    /// A header with the number of the elements, and the elements.
    Headed { header: TypeId, element: TypeId },
}

/// Whether a pointer to elements owns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointerRole {
    /// It borrows them, or this is unknown.
    Borrows,
    /// It frees their block: that of a vector, of a boxed slice.
    Owns,
    /// It frees their block, and they are text: that of a `String`, of a `Box<str>`.
    OwnsText,
}

/// A step of a plan. Offsets are relative to the value.
#[derive(Clone, Debug)]
pub(crate) enum PlanStep {
    Pointer {
        at: u64,
        leads: TargetPlan,
    },
    /// A value inside of this one. Its name is `None` if it means nothing to a reader. The last part may have the tail of the whole.
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
    /// The steps of one of the variants; those without a number are for all other numbers.
    Switch {
        /// The enum or the coroutine, if these are wanted.
        of: Option<TypeId>,
        discriminant: Option<Scalar>,
        cases: Vec<(Option<u128>, Vec<PlanStep>)>,
    },
    /// The first steps if a number is at most this, and otherwise the second ones.
    AtMost {
        number: Scalar,
        most: u64,
        then: Vec<PlanStep>,
        otherwise: Vec<PlanStep>,
    },
    /// The steps of a place if it has a value: if the bits of the mask are 1 in a number, after those bits were flipped that
    /// are set in the place's index. The index follows from the offset and the distance of places.
    Full {
        number: Scalar,
        mask: u64,
        stride: u64,
        steps: Vec<PlanStep>,
    },
    /// Steps of a union: its bytes may be something else.
    Maybe(Vec<PlanStep>),
    /// A pointer that does not keep its target alive.
    Weak(Vec<PlanStep>),
}

/// The goal of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanGoal {
    Pointers,
    /// The variants of enums and the states of coroutines.
    Variants,
    /// The states of coroutines, and of the branches of `join!`.
    Coroutines,
}

/// The last part of a type. It extends to the end of the block.
#[derive(Clone, Copy, Debug)]
struct TypeTail {
    /// The index of the member.
    member: usize,
    kind: TailKind,
}

#[derive(Clone, Copy, Debug)]
enum TailKind {
    /// Elements; the pointer to the value has their number.
    Slice(TypeId),
    /// Perhaps not all elements that there is room for are there.
    Open(TypeId),
    /// A value that has a tail.
    Part,
}

/// The maximum number of types that are looked at for the tail of one.
const MOST_TAILS: u32 = 64;

/// The plans of types, each compiled when it is first needed.
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

    /// The plan of a type; empty if the type has no part that leads to the goal.
    pub(crate) fn plan(&mut self, id: TypeId) -> Rc<[PlanStep]> {
        self.within(id, 0)
    }

    /// Whether the last part of a type is a slice without a length.
    pub(crate) fn has_tail(&self, id: TypeId) -> bool {
        self.tail(id).is_some()
    }

    /// Whether a type has no size of its own: a pointer to it has the length of its last part. A type that ends in an
    /// array without elements has a size.
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

    /// The last member of an unsized type, such as that of `ArcInner<[T]>`: debug information gives it the type of an
    /// element, which exceeds the size of the whole. As in C, an array without elements at the end of a type stands for as
    /// many as the block has. The member may be a value that ends so itself, as in `ArcInner<Mutex<[T]>>`.
    fn tail(&self, id: TypeId) -> Option<TypeTail> {
        self.tail_within(id, &mut { MOST_TAILS })
    }

    /// Many members may be at one place, each with a tail to look for, so all look-ups together have a limit.
    fn tail_within(&self, id: TypeId, left: &mut u32) -> Option<TypeTail> {
        *left = left.checked_sub(1)?;
        let of = self.info.get(id);
        if of.kind != TypeKind::Struct || of.variants.is_some() {
            return None;
        }
        let start = of.members.iter().map(|member| member.offset).max()?;
        // A marker without a size may be at the same place.
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

    /// Where the header of a vector has its number of elements.
    pub(crate) fn header_len(&self, header: TypeId) -> Option<Scalar> {
        let len = self.info.member(header, "_len").or_else(|| self.info.member(header, "len"))?;
        Some(self.scalar(&len))
    }
}
