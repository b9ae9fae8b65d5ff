//! Compiles types whose pointers and enums follow from their members.

use std::rc::Rc;

use super::{ElementCount, PlanCache, PlanGoal, PlanStep, Scalar, TailKind, TargetPlan};
use crate::debug_info::{DebugNameId, EnumVariant, Member, TypeId, TypeKind, TypeRef};
use crate::path::PathSegment;

/// The maximum depth of nested values. Pointers in deeper values are left out.
pub(super) const DEEPEST: u32 = 128;

/// Crates whose members mean little to the author of a program.
const LIBRARIES: &[&str] = &["alloc::", "core::", "std::", "hashbrown::"];

impl PlanCache<'_> {
    pub(super) fn within(&mut self, id: TypeId, depth: u32) -> Rc<[PlanStep]> {
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        if depth >= DEEPEST {
            return Rc::new([]);
        }
        // An empty plan is set first, since a damaged type may contain itself.
        self.known.insert(id, Rc::new([]));
        let steps: Rc<[PlanStep]> = self.compile(id, depth).into();
        self.known.insert(id, steps.clone());
        steps
    }

    fn compile(&mut self, id: TypeId, depth: u32) -> Vec<PlanStep> {
        let info = self.info;
        let of = info.get(id);
        match of.kind {
            TypeKind::Scalar => Vec::new(),
            TypeKind::Pointer(target) => {
                let leads = match self.thin(target) {
                    TargetPlan::One(of) if info.name(id).starts_with('&') => TargetPlan::Reference(of),
                    leads => leads,
                };
                self.pointer(0, leads)
            }
            TypeKind::Array(element, count) => {
                let Some(element) = info.type_at(element) else { return Vec::new() };
                let count = count.map_or(ElementCount::Tail, ElementCount::Fixed);
                self.repeat(0, element, count, None, depth).into_iter().collect()
            }
            TypeKind::Union => {
                let steps = self.members(id, &of.members, depth);
                if steps.is_empty() { steps } else { vec![PlanStep::Maybe(steps)] }
            }
            TypeKind::Struct => {
                if let Some(steps) = self.container(id, depth) {
                    return steps;
                }
                let mut steps = self.members(id, &of.members, depth);
                if let Some(variants) = &of.variants {
                    let discriminant = variants.discriminant.map(|member| self.scalar(&member));
                    let is_signed = variants.discriminant.is_some_and(|member| self.is_signed(&member));
                    let bytes = discriminant.map_or(0, |scalar| scalar.size);
                    let variant = |one: &EnumVariant| {
                        let number = one.discriminant.map(|number| number.number(bytes, is_signed));
                        (number, self.variant(one, depth))
                    };
                    let all: Vec<_> = variants.all.iter().map(variant).collect();
                    let is_wanted = match self.wanted {
                        PlanGoal::Pointers => false,
                        PlanGoal::Variants => all.len() > 1,
                        PlanGoal::Coroutines => info.is_coroutine(id) || info.is_maybe_done(id),
                    };
                    if is_wanted || all.iter().any(|(_, steps)| !steps.is_empty()) {
                        let of = is_wanted.then_some(id);
                        steps.push(PlanStep::Switch { of, discriminant, cases: all });
                    }
                }
                steps
            }
        }
    }

    /// The step of a pointer, if the goal is pointers.
    pub(super) fn pointer(&self, at: u64, leads: TargetPlan) -> Vec<PlanStep> {
        match self.wanted {
            PlanGoal::Pointers => vec![PlanStep::Pointer { at, leads }],
            PlanGoal::Variants | PlanGoal::Coroutines => Vec::new(),
        }
    }

    /// The target of a pointer without a length or a vtable.
    fn thin(&self, target: TypeRef) -> TargetPlan {
        match self.info.type_at(target) {
            Some(target) if self.info.size(target) > 0 && !self.is_byte(target) => {
                match self.has_tail(target) {
                    true => TargetPlan::Tail { of: target, len: None },
                    false => TargetPlan::One(target),
                }
            }
            _ => TargetPlan::Opaque,
        }
    }

    fn is_byte(&self, id: TypeId) -> bool {
        matches!(self.info.name(id), "u8" | "i8") || self.info.name(id).ends_with("::c_void")
    }

    fn is_signed(&self, member: &Member) -> bool {
        const SIGNED: &[&str] = &["i8", "i16", "i32", "i64", "i128", "isize"];
        self.info.type_at(member.of).is_some_and(|of| SIGNED.contains(&self.info.name(of)))
    }

    fn variant(&mut self, one: &EnumVariant, depth: u32) -> Vec<PlanStep> {
        let mut steps = Vec::new();
        for member in &one.members {
            // The name of a variant, such as `Some`, means something even in libraries.
            self.part(member, Some(member.name), false, depth, &mut steps);
        }
        steps
    }

    pub(super) fn members(&mut self, id: TypeId, members: &[Member], depth: u32) -> Vec<PlanStep> {
        let info = self.info;
        let of_library = !self.shows_members(id);
        let alone = members.len() == 1;
        let tail = self.tail(id);
        let mut steps = Vec::new();
        for (index, member) in members.iter().enumerate() {
            let text = info.text(member.name);
            // The fields of tuples and tuple structs are `__0`, `__1`.
            let is_number = text.starts_with("__");
            let shown = !(of_library || text.is_empty() || (is_number && alone));
            let name = shown.then_some(member.name);
            let tail = tail.filter(|tail| tail.member == index).map(|tail| tail.kind);
            if let Some(TailKind::Slice(element) | TailKind::Open(element)) = tail {
                let elements = self.repeat(
                    member.offset,
                    element,
                    ElementCount::Tail,
                    name.map(PathSegment::Name),
                    depth,
                );
                let elements = elements.into_iter();
                match tail {
                    Some(TailKind::Open(_)) => {
                        steps.extend(elements.map(|elements| PlanStep::Maybe(vec![elements])));
                    }
                    _ => steps.extend(elements),
                }
                continue;
            }
            self.part(member, name, tail.is_some(), depth, &mut steps);
        }
        steps
    }

    /// Whether the members of a type mean something to the author of a program.
    pub(super) fn shows_members(&self, id: TypeId) -> bool {
        !LIBRARIES.iter().any(|library| self.info.name(id).starts_with(library))
    }

    fn part(
        &mut self,
        member: &Member,
        name: Option<DebugNameId>,
        has_tail: bool,
        depth: u32,
        steps: &mut Vec<PlanStep>,
    ) {
        let Some(of) = self.info.type_at(member.of) else { return };
        if !self.within(of, depth + 1).is_empty() {
            steps.push(PlanStep::Part { at: member.offset, of, name, has_tail });
        }
    }

    /// The step that repeats the plan of an element; `None` if the element's plan is empty.
    pub(super) fn repeat(
        &mut self,
        at: u64,
        element: TypeId,
        count: ElementCount,
        name: Option<PathSegment>,
        depth: u32,
    ) -> Option<PlanStep> {
        let stride = self.info.size(element);
        let some = stride > 0 && !self.within(element, depth + 1).is_empty();
        some.then_some(PlanStep::Repeat { at, stride, count, of: element, name })
    }

    pub(super) fn scalar(&self, member: &Member) -> Scalar {
        let size = self.info.type_at(member.of).map_or(0, |of| self.info.size(of));
        Scalar { at: member.offset, size }
    }
}
