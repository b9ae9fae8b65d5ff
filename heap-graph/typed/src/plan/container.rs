//! Containers of the standard library and of some crates. They are recognized by the names of their members.
//!
//! A container whose members have other names counts as an ordinary type.

use super::compile::DEEPEST;
use super::{ElementCount, PlanCache, PlanStep, PointerRole, Scalar, TargetPlan};
use crate::debug_info::{Member, TypeId, TypeKind};
use crate::path::PathSegment;

/// The slots of channels.
const CHANNELS: &[&str] = &[
    "std::sync::mpmc::array::Slot",
    "std::sync::mpmc::list::Slot",
    "crossbeam_channel::flavors::array::Slot",
    "crossbeam_channel::flavors::list::Slot",
];

/// The bits of a slot's state: the value was written, and the value was read.
const WRITTEN: u64 = 1;
const READ: u64 = 2;

/// Vectors whose elements are in the chunk of an arena.
const ARENA_VECTORS: &[&str] = &["bumpalo::collections::vec::Vec", "oxc_allocator::vec2::raw_vec::RawVec"];

impl PlanCache<'_> {
    /// The steps of a container; `None` if the type is not a container, or has another form.
    pub(super) fn container(&mut self, id: TypeId, depth: u32) -> Option<Vec<PlanStep>> {
        let name = self.info.name(id);
        let is = |path: &str| name.strip_prefix(path).is_some_and(|rest| rest.starts_with('<'));
        if is("alloc::vec::Vec")
            || is("alloc::collections::vec_deque::VecDeque")
            || is("alloc::raw_vec::RawVec")
        {
            return self.vector(id, 0, PointerRole::Owns);
        }
        if name == "alloc::string::String" {
            let vector = self.info.member(id, "vec")?;
            return self.vector(self.info.type_at(vector.of)?, vector.offset, PointerRole::OwnsText);
        }
        if is("alloc::vec::into_iter::IntoIter") {
            return self.rest(id);
        }
        if is("hashbrown::raw::RawTable") || is("hashbrown::raw::inner::RawTable") {
            return self.table(id);
        }
        if is("alloc::collections::btree::node::LeafNode") {
            return self.leaf(id, 0, depth);
        }
        if is("alloc::collections::btree::node::InternalNode") {
            return self.internal(id, depth);
        }
        if is("smallvec::SmallVec") {
            return self.small(id, depth);
        }
        if is("thin_vec::ThinVec") {
            return self.thin_vec(id);
        }
        if is("alloc::sync::ArcInner") || is("alloc::rc::RcInner") || is("alloc::rc::RcBox") {
            return self.counted(id, depth);
        }
        if is("alloc::sync::Weak") || is("alloc::rc::Weak") {
            return self.weak(id, depth);
        }
        if is("std::sync::once_lock::OnceLock") || is("std::sync::lazy_lock::LazyLock") {
            return self.once(id, depth);
        }
        if is("tokio::sync::once_cell::OnceCell") {
            return self.flagged(id, depth);
        }
        if CHANNELS.iter().any(|path| is(path)) {
            return self.channel_slot(id, depth);
        }
        if ARENA_VECTORS.iter().any(|path| is(path)) {
            return self.arena_vector(id);
        }
        if name == "compact_str::repr::Repr" {
            return self.compact_string(id);
        }
        self.fat(id)
    }

    /// `Vec { buf, len }`, `VecDeque { head, len, buf }`, `RawVec { inner }`.
    fn vector(&self, id: TypeId, start: u64, holding: PointerRole) -> Option<Vec<PlanStep>> {
        let info = self.info;
        let element = info.parameter(id, "T")?;
        let (at, buffer) = match info.member(id, "buf") {
            Some(member) => (start.saturating_add(member.offset), info.type_at(member.of)?),
            None => (start, id),
        };
        let inner = info.member(buffer, "inner")?;
        let inner_type = info.type_at(inner.of)?;
        let at = at + inner.offset;
        let pointer = at + info.member(inner_type, "ptr")?.offset;
        let capacity = info.member(inner_type, "cap").map(|member| self.number(at, &member));
        let number = |name| info.member(id, name).map(|member| self.number(start, &member));
        let leads =
            TargetPlan::Slice { element, first: number("head"), len: number("len"), capacity, holding };
        Some(self.pointer(pointer, leads))
    }

    /// `Vec { buf: RawVec { ptr, cap }, len }`, or `RawVec { ptr, len, cap }`. The elements are in the chunk of an
    /// arena.
    fn arena_vector(&self, id: TypeId) -> Option<Vec<PlanStep>> {
        let info = self.info;
        let element = info.parameter(id, "T")?;
        let (at, buffer) = match info.member(id, "buf") {
            Some(member) => (member.offset, info.type_at(member.of)?),
            None => (0, id),
        };
        let pointer = at + info.member(buffer, "ptr")?.offset;
        let capacity = Some(self.number(at, &info.member(buffer, "cap")?));
        let len = info.member(id, "len").map(|member| self.number(0, &member));
        let holding = PointerRole::Owns;
        Some(self.pointer(pointer, TargetPlan::Slice { element, first: None, len, capacity, holding }))
    }

    /// `IntoIter { buf, cap, ptr, end }`: the elements before `ptr` have been moved out.
    fn rest(&self, id: TypeId) -> Option<Vec<PlanStep>> {
        let info = self.info;
        let element = info.parameter(id, "T")?;
        let number = |name| info.member(id, name).map(|member| self.number(0, &member));
        let leads = TargetPlan::Rest {
            element,
            first: number("ptr")?,
            end: number("end")?,
            capacity: number("cap")?,
        };
        Some(self.pointer(info.member(id, "buf")?.offset, leads))
    }

    /// `OnceLock { once, value: UnsafeCell<MaybeUninit<T>> }` and
    /// `LazyLock { once, data: UnsafeCell<Data { value, f }> }`: the state of a finished `Once` is 0. In older versions
    /// of std, 0 is the state of a `Once` that has not started. There, the value of a finished `Once` is not certain.
    fn once(&mut self, id: TypeId, depth: u32) -> Option<Vec<PlanStep>> {
        let info = self.info;
        let number = self.number(0, &info.member(id, "once")?);
        let (at, of) = match (info.member(id, "value"), info.member(id, "data")) {
            (Some(value), _) => (value.offset, info.type_at(value.of)?),
            (None, Some(data)) => {
                let union = self.initialized(info.type_at(data.of)?);
                let value = info.member(union, "value")?;
                (data.offset.saturating_add(value.offset), info.type_at(value.of)?)
            }
            _ => return None,
        };
        let of = self.initialized(of);
        let otherwise = self.members(id, &info.get(id).members, depth);
        if self.within(of, depth + 1).is_empty() {
            return (number.size <= 8).then_some(otherwise);
        }
        let then = vec![PlanStep::Part { at, of, name: None, has_tail: false }];
        (number.size <= 8).then(|| vec![PlanStep::AtMost { number, most: 0, then, otherwise }])
    }

    /// `OnceCell { value_set, value: UnsafeCell<MaybeUninit<T>> }`.
    fn flagged(&mut self, id: TypeId, depth: u32) -> Option<Vec<PlanStep>> {
        let info = self.info;
        let number = self.number(0, &info.member(id, "value_set")?);
        let value = info.member(id, "value")?;
        let of = self.initialized(info.type_at(value.of)?);
        let mut steps = Vec::new();
        if !self.within(of, depth + 1).is_empty() {
            let part = PlanStep::Part { at: value.offset, of, name: None, has_tail: false };
            steps.push(PlanStep::Full { number, mask: 1, stride: u64::MAX, steps: vec![part] });
        }
        let others: Vec<_> =
            info.get(id).members.iter().copied().filter(|member| member.name != value.name).collect();
        steps.extend(self.members(id, &others, depth));
        Some(steps)
    }

    /// The position of a number that is a member of a value at an offset.
    fn number(&self, at: u64, member: &Member) -> Scalar {
        let scalar = self.scalar(member);
        Scalar { at: at.saturating_add(scalar.at), ..scalar }
    }

    /// `RawTable { table: RawTableInner { ctrl, bucket_mask } }`.
    fn table(&self, id: TypeId) -> Option<Vec<PlanStep>> {
        let info = self.info;
        let entry = info.parameter(id, "T")?;
        let table = info.member(id, "table")?;
        let inner = info.type_at(table.of)?;
        let at = table.offset.saturating_add(info.member(inner, "ctrl")?.offset);
        let mask = self.number(table.offset, &info.member(inner, "bucket_mask")?);
        Some(self.pointer(at, TargetPlan::Table { entry, mask }))
    }

    /// `LeafNode { keys, vals, len }`. Leaves out the pointer to the parent: it does not keep the parent alive.
    fn leaf(&mut self, id: TypeId, at: u64, depth: u32) -> Option<Vec<PlanStep>> {
        let info = self.info;
        let len = self.number(at, &info.member(id, "len")?);
        let mut steps = Vec::new();
        for (member, name) in [("keys", "keys"), ("vals", "values")] {
            let member = info.member(id, member)?;
            let (slot, most) = self.array(&member)?;
            let element = self.initialized(slot);
            let count = ElementCount::Read(len, 0, most);
            steps.extend(self.repeat(
                at.saturating_add(member.offset),
                element,
                count,
                Some(PathSegment::Word(name)),
                depth,
            ));
        }
        Some(steps)
    }

    /// `InternalNode { data: LeafNode, edges }`, with one edge more than keys.
    fn internal(&mut self, id: TypeId, depth: u32) -> Option<Vec<PlanStep>> {
        let info = self.info;
        let data = info.member(id, "data")?;
        let leaf = info.type_at(data.of)?;
        let mut steps = self.leaf(leaf, data.offset, depth)?;
        let len = self.number(data.offset, &info.member(leaf, "len")?);
        let edges = info.member(id, "edges")?;
        let (slot, most) = self.array(&edges)?;
        let element = self.initialized(slot);
        steps.extend(self.repeat(
            edges.offset,
            element,
            ElementCount::Read(len, 1, most),
            Some(PathSegment::Word("nodes")),
            depth,
        ));
        Some(steps)
    }

    /// `SmallVec { capacity, data }`: the elements are inline if the capacity is at most the number of inline
    /// elements.
    fn small(&mut self, id: TypeId, depth: u32) -> Option<Vec<PlanStep>> {
        let info = self.info;
        let capacity = self.number(0, &info.member(id, "capacity")?);
        let array = info.parameter(id, "A")?;
        let TypeKind::Array(element, Some(most)) = info.get(array).kind else { return None };
        let element = info.type_at(element)?;
        let data = info.member(id, "data")?;
        let (inline_at, heap_at, heap) = self.small_parts(info.type_at(data.of)?, data.offset)?;
        let pointer = info.member(heap, "ptr").or_else(|| info.member(heap, "__0"))?;
        let len = info.member(heap, "len").or_else(|| info.member(heap, "__1"))?;
        let len = self.number(heap_at, &len);
        let inline = self.repeat(inline_at, element, ElementCount::Read(capacity, 0, most), None, depth);
        let then: Vec<_> = inline.into_iter().collect();
        let holding = PointerRole::Owns;
        let capacity_read = Some(capacity);
        let leads =
            TargetPlan::Slice { element, first: None, len: Some(len), capacity: capacity_read, holding };
        let otherwise = self.pointer(heap_at.saturating_add(pointer.offset), leads);
        if then.is_empty() && otherwise.is_empty() {
            return Some(Vec::new());
        }
        Some(vec![PlanStep::AtMost { number: capacity, most, then, otherwise }])
    }

    /// `ArcInner { strong, weak, data }`: without a strong reference the value has been dropped, and only its memory
    /// remains.
    fn counted(&mut self, id: TypeId, depth: u32) -> Option<Vec<PlanStep>> {
        let info = self.info;
        let strong = self.number(0, &info.member(id, "strong")?);
        let otherwise = self.members(id, &info.get(id).members, depth);
        if otherwise.is_empty() {
            return Some(Vec::new());
        }
        Some(vec![PlanStep::AtMost { number: strong, most: 0, then: Vec::new(), otherwise }])
    }

    /// `Slot { stamp, msg }` of a ring, or `Slot { msg, state }` of a list. After a value is read, its words stay in
    /// the slot and are stale. The stamp of an empty slot is its index plus an even number. The stamp of a slot with a
    /// value is one larger.
    fn channel_slot(&mut self, id: TypeId, depth: u32) -> Option<Vec<PlanStep>> {
        let info = self.info;
        let value = info.member(id, "msg")?;
        let of = self.initialized(info.type_at(value.of)?);
        let state = |name| info.member(id, name).map(|member| self.number(0, &member));
        let (number, mask, stride) = match (state("stamp"), state("state")) {
            (Some(stamp), None) => (stamp, 1, Some(info.size(id)).filter(|size| *size > 0)?),
            (None, Some(state)) => (state, WRITTEN | READ, u64::MAX),
            _ => return None,
        };
        if self.within(of, depth + 1).is_empty() {
            return Some(Vec::new());
        }
        let name = self.shows_members(id).then_some(value.name);
        let steps = vec![PlanStep::Part { at: value.offset, of, name, has_tail: false }];
        Some(vec![PlanStep::Full { number, mask, stride, steps }])
    }

    /// `Weak { ptr }`: a pointer that does not keep its target alive.
    fn weak(&mut self, id: TypeId, depth: u32) -> Option<Vec<PlanStep>> {
        self.info.member(id, "ptr")?;
        let steps = self.members(id, &self.info.get(id).members, depth);
        Some(if steps.is_empty() { steps } else { vec![PlanStep::Weak(steps)] })
    }

    /// `Repr(*const (), usize, u32, u16, u8, LastByte)` of compact strings. It contains either a pointer to a buffer,
    /// the length and (in the bytes before the last byte) the capacity, or the text itself. Inline text does not look
    /// like a pointer to a buffer of the given capacity.
    fn compact_string(&self, id: TypeId) -> Option<Vec<PlanStep>> {
        let info = self.info;
        let last = info.get(id).members.iter().max_by_key(|member| member.offset)?;
        let is_last = info.name(info.type_at(last.of)?).ends_with("::LastByte");
        let [pointer, len, capacity] = ["__0", "__1", "__2"].map(|name| info.member(id, name));
        let (pointer, len, at) = (pointer?, self.number(0, &len?), capacity?.offset);
        let size = last.offset.checked_sub(at).filter(|size| is_last && (1..=8).contains(size))?;
        let capacity = Some(Scalar { at, size });
        let element = info.with_name("u8")?;
        let holding = PointerRole::OwnsText;
        let leads = TargetPlan::Slice { element, first: None, len: Some(len), capacity, holding };
        let steps = self.pointer(pointer.offset, leads);
        Some(if steps.is_empty() { steps } else { vec![PlanStep::Maybe(steps)] })
    }

    /// `ThinVec { ptr: NonNull<Header { _len, _cap }> }`. The elements follow the header.
    fn thin_vec(&self, id: TypeId) -> Option<Vec<PlanStep>> {
        let element = self.info.parameter(id, "T")?;
        let pointer = self.info.member(id, "ptr")?;
        let header = self.pointee(self.info.type_at(pointer.of)?)?;
        self.header_len(header)?;
        Some(self.pointer(pointer.offset, TargetPlan::Headed { header, element }))
    }

    /// The target of a pointer. The pointer may be inside `NonNull` or another type with one member.
    fn pointee(&self, mut id: TypeId) -> Option<TypeId> {
        for _ in 0..DEEPEST {
            let of = self.info.get(id);
            match (of.kind, &of.members[..]) {
                (TypeKind::Pointer(target), _) => return self.info.type_at(target),
                (TypeKind::Struct, [only]) => id = self.info.type_at(only.of)?,
                _ => break,
            }
        }
        None
    }

    /// The offset of the inline elements, the offset of the heap part, and the type of the heap part.
    fn small_parts(&self, data: TypeId, at: u64) -> Option<(u64, u64, TypeId)> {
        let info = self.info;
        let variant = |name: &str| -> Option<Member> {
            let variants = info.get(data).variants.as_ref()?;
            let mut members = variants.all.iter().flat_map(|variant| &variant.members);
            members.find(|member| info.text(member.name) == name).copied()
        };
        let sum = |offset: u64| at.saturating_add(offset);
        if let (Some(inline), Some(heap)) = (info.member(data, "inline"), info.member(data, "heap")) {
            return Some((sum(inline.offset), sum(heap.offset), info.type_at(heap.of)?));
        }
        let (inline, heap) = (variant("Inline")?, variant("Heap")?);
        let inside =
            info.type_at(inline.of).and_then(|of| info.member(of, "__0")).map_or(0, |one| one.offset);
        Some((sum(inline.offset.saturating_add(inside)), sum(heap.offset), info.type_at(heap.of)?))
    }

    /// The element type and the number of elements of a member that is an array.
    fn array(&self, member: &Member) -> Option<(TypeId, u64)> {
        let of = self.info.type_at(member.of)?;
        let TypeKind::Array(element, Some(count)) = self.info.get(of).kind else { return None };
        Some((self.info.type_at(element)?, count))
    }

    /// The type inside `MaybeUninit` and similar types, for slots that are known to be initialized.
    fn initialized(&self, mut id: TypeId) -> TypeId {
        for _ in 0..DEEPEST {
            let name = self.info.name(id);
            let wraps = [
                "core::mem::maybe_uninit::MaybeUninit<",
                "core::mem::manually_drop::ManuallyDrop<",
                "core::cell::UnsafeCell<",
            ];
            if !wraps.iter().any(|wrap| name.starts_with(wrap)) {
                break;
            }
            match self.info.member(id, "value").and_then(|value| self.info.type_at(value.of)) {
                Some(inside) => id = inside,
                None => break,
            }
        }
        id
    }

    /// A pointer with a length, `{ data_ptr, length }`, or with a vtable, `{ pointer, vtable }`.
    fn fat(&self, id: TypeId) -> Option<Vec<PlanStep>> {
        let info = self.info;
        let target = |member: &Member| {
            let TypeKind::Pointer(target) = info.get(info.type_at(member.of)?).kind else { return None };
            info.type_at(target)
        };
        if let (Some(pointer), Some(length)) = (info.member(id, "data_ptr"), info.member(id, "length")) {
            let len = self.scalar(&length);
            let target = target(&pointer)?;
            let leads = match self.is_unsized(target) {
                true => TargetPlan::Tail { of: target, len: Some(len) },
                false => {
                    let holding = match info.name(id).strip_prefix("alloc::boxed::Box<") {
                        Some(of) if of.starts_with("str,") || of == "str>" => PointerRole::OwnsText,
                        Some(_) => PointerRole::Owns,
                        None => PointerRole::Borrows,
                    };
                    TargetPlan::Slice {
                        element: target,
                        first: None,
                        len: Some(len),
                        capacity: None,
                        holding,
                    }
                }
            };
            return Some(self.pointer(pointer.offset, leads));
        }
        let (pointer, vtable) = (info.member(id, "pointer")?, info.member(id, "vtable")?);
        let within = target(&pointer).filter(|of| !info.get(*of).members.is_empty());
        let leads = TargetPlan::Dyn { vtable: self.scalar(&vtable), within };
        Some(self.pointer(pointer.offset, leads))
    }
}
