//! Follows a plan through the bytes of a value. Finds the value's pointers, or the variants of its enums.

use dmd_analyze::short_type_name;
use hashbrown::HashMap;

use crate::debug_info::{DebugInfo, DebugNameId, Member, TypeId};
use crate::path::{FieldPathId, PathSegment, PathTable};
use crate::plan::{ElementCount, PlanCache, PlanGoal, PlanStep, PointerRole, Scalar, TargetPlan};

/// The smallest possible address of a block.
const LOWEST: u64 = 4096;

/// The maximum depth of nested values.
const DEEPEST: u32 = 128;

/// The bits in a task's state that mean: the future is finished, or it was cancelled.
const COMPLETED: u64 = 1 << 2;
const CLOSED: u64 = 1 << 3;

/// The contents of a block, or of a pointer's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypedContents {
    One(TypeId),
    /// A value whose last part is a slice of this many elements.
    Tail {
        of: TypeId,
        len: Option<u64>,
    },
    /// Elements from `first` on, in a ring of the block's size. Without a length, the whole block may contain
    /// elements.
    Slice {
        element: TypeId,
        first: u64,
        len: Option<u64>,
    },
    Table {
        entry: TypeId,
    },
    /// A header with the number of the elements, followed by room for elements.
    Headed {
        header: TypeId,
        element: TypeId,
    },
    /// A task of async-task: a header, the schedule function, and the future. `raw` is the type with the pointers to
    /// these parts.
    Task {
        raw: TypeId,
    },
    /// A value behind a prefix of this many bytes.
    Prefixed {
        of: TypeId,
        before: u64,
    },
    /// Values of an arena, with a footer at the end.
    Chunk {
        footer: TypeId,
    },
    /// Values of an arena behind a header.
    HeadedChunk {
        header: TypeId,
    },
    /// Values of an arena in a block of bytes, without a footer.
    FlatChunk {
        byte: TypeId,
    },
}

impl TypedContents {
    /// The type of the value, of the elements, of the entries, of the footer or of the header.
    pub(crate) fn element(self) -> TypeId {
        let (Self::One(of)
        | Self::Tail { of, .. }
        | Self::Slice { element: of, .. }
        | Self::Table { entry: of }
        | Self::Headed { element: of, .. }
        | Self::Task { raw: of }
        | Self::Prefixed { of, .. }
        | Self::Chunk { footer: of }
        | Self::HeadedChunk { header: of }
        | Self::FlatChunk { byte: of }) = self;
        of
    }

    /// Whether the contents are values of an arena.
    pub(crate) fn is_chunk(self) -> bool {
        matches!(self, Self::Chunk { .. } | Self::HeadedChunk { .. } | Self::FlatChunk { .. })
    }

    /// Whether both contents have the same form. Their types may differ.
    pub(crate) fn is_like(self, other: Self) -> bool {
        core::mem::discriminant(&self) == core::mem::discriminant(&other)
    }

    /// The contents as text, as a programmer writes them.
    pub(crate) fn text(self, info: &DebugInfo) -> String {
        let name = short_type_name(info.name(self.element()));
        match self {
            Self::One(_) | Self::Tail { .. } | Self::Task { .. } => name,
            Self::Slice { .. } => format!("[{name}]"),
            Self::Table { .. } => format!("table {name}"),
            Self::Headed { .. } => format!("ThinVec<[{name}]>"),
            Self::Prefixed { before, .. } => format!("[{before} bytes before] {name}"),
            Self::Chunk { footer: of } | Self::HeadedChunk { header: of } => {
                let name = info.name(of);
                format!("chunk of {}", name.split("::").next().unwrap_or(name))
            }
            Self::FlatChunk { .. } => format!("chunk [{name}]"),
        }
    }
}

/// The target of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointerTarget {
    Opaque,
    /// The address is the start of these contents, usually also of a block.
    Start {
        contents: TypedContents,
        bytes: Option<u64>,
        /// Whether the target certainly has this type. With a merged vtable, it may have another type of the same size.
        certain: bool,
        holding: PointerRole,
    },
    /// The address is the start of the control bytes of this many buckets.
    Table {
        entry: TypeId,
        buckets: u64,
    },
}

/// A pointer in a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundPointer {
    pub(crate) value: u64,
    pub(crate) path: FieldPathId,
    pub(crate) target: PointerTarget,
    /// Whether the pointer is certainly initialized. Otherwise it may be a stale word.
    pub(crate) sure: bool,
    /// Whether the pointer does not keep its target alive.
    pub(crate) weak: bool,
    /// Whether the pointer is a reference, which may lead to any part of a value.
    pub(crate) is_reference: bool,
}

impl FoundPointer {
    /// Whether the pointer owns its target, for a target with elements.
    pub(crate) fn holding(&self) -> PointerRole {
        match self.target {
            PointerTarget::Start { holding, .. } => holding,
            _ => PointerRole::Borrows,
        }
    }

    /// Whether the target certainly has the type of `target`.
    pub(crate) fn certain(&self) -> bool {
        !matches!(self.target, PointerTarget::Start { certain: false, .. })
    }
}

/// An enum or a coroutine in a value, with its current variant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundVariant {
    pub(crate) of: TypeId,
    /// The offset from the start of the bytes that the walk reads: a block, or a part of it.
    pub(crate) at: u64,
    /// The index of the current variant.
    pub(crate) variant: usize,
    /// Whether the value is certainly initialized.
    pub(crate) sure: bool,
}

/// Finds the pointers of values, or their enums.
#[derive(Debug)]
pub(crate) struct ValueWalk<'i> {
    pub(crate) plans: PlanCache<'i>,
    pub(crate) paths: PathTable,
    /// The difference between addresses in memory and in the program's file.
    pub(crate) bias: u64,
    pub(crate) found: Vec<FoundPointer>,
    /// The found variants. An enum precedes the enums inside it.
    pub(crate) variants: Vec<FoundVariant>,
    /// The number of steps that are left for the value.
    left: u64,
    /// The type and the start of the whole value, if the contents are one value.
    whole: Option<(TypeId, u64)>,
    /// The offsets and the names of the members of whole values, in ascending order.
    members: HashMap<TypeId, Vec<(u64, DebugNameId)>>,
}

/// A value: its bytes, and the length of its tail if the pointer contains it.
#[derive(Clone, Copy)]
struct ValueBytes<'b> {
    bytes: &'b [u8],
    tail: Option<u64>,
}

impl ValueBytes<'_> {
    /// The value of a part that is not the last part.
    fn without_tail(self) -> Self {
        Self { tail: Some(0), ..self }
    }

    fn read(&self, at: u64, size: u64) -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        // Uses the lower half of a longer number.
        let size = size.min(8) as usize;
        let from = self.bytes.get(at..at.checked_add(size)?)?;
        let mut word = [0; 8];
        word[..size].copy_from_slice(from);
        Some(u64::from_le_bytes(word))
    }

    fn scalar(&self, at: u64, scalar: Scalar) -> Option<u64> {
        self.read(at.checked_add(scalar.at)?, scalar.size).filter(|_| scalar.size > 0)
    }

    /// Reads a number of at most 16 bytes.
    fn wide(&self, at: u64, scalar: Scalar) -> Option<u128> {
        let low = self.scalar(at, scalar)?;
        let size = scalar.size.min(16).saturating_sub(8);
        let high = if size > 0 { self.read(at.checked_add(scalar.at)?.checked_add(8)?, size)? } else { 0 };
        Some(u128::from(high) << 64 | u128::from(low))
    }
}

impl<'i> ValueWalk<'i> {
    pub(crate) fn new(info: &'i DebugInfo, bias: u64, wanted: PlanGoal) -> Self {
        let plans = PlanCache::new(info, wanted);
        Self {
            plans,
            paths: PathTable::default(),
            bias,
            found: Vec::new(),
            variants: Vec::new(),
            left: 0,
            whole: None,
            members: HashMap::new(),
        }
    }

    pub(crate) fn info(&self) -> &'i DebugInfo {
        self.plans.info
    }

    /// Whether contents have a part that leads to the goal. Other contents are not read.
    pub(crate) fn has_any(&mut self, contents: TypedContents) -> bool {
        if let TypedContents::Task { raw } = contents {
            let parts = self.info().task_parts(raw);
            return parts.is_some_and(|parts| {
                [parts.header, parts.schedule.1, parts.future.1]
                    .iter()
                    .any(|of| !self.plans.plan(*of).is_empty())
            });
        }
        !self.plans.plan(contents.element()).is_empty()
    }

    fn start(&mut self, bytes: &[u8]) {
        self.found.clear();
        self.variants.clear();
        self.left = 64 + 16 * bytes.len() as u64;
        self.whole = None;
    }

    /// Finds the parts of a value that the goal includes.
    pub(crate) fn part(&mut self, bytes: &[u8], of: TypeId) {
        self.start(bytes);
        self.value(ValueBytes { bytes, tail: None }, of, 0, PathTable::EMPTY, true, 0);
    }

    /// Finds the parts of a block's contents that the goal includes.
    pub(crate) fn block(&mut self, bytes: &[u8], contents: TypedContents) {
        self.start(bytes);
        if let TypedContents::One(of) | TypedContents::Tail { of, .. } = contents {
            self.whole = Some((of, 0));
        }
        match contents {
            TypedContents::One(of) => {
                self.value(ValueBytes { bytes, tail: None }, of, 0, PathTable::EMPTY, true, 0);
            }
            TypedContents::Tail { of, len } => {
                self.value(ValueBytes { bytes, tail: len }, of, 0, PathTable::EMPTY, true, 0);
            }
            TypedContents::Slice { element, first, len } => {
                let stride = self.info().size(element);
                let Some(places) = (bytes.len() as u64).checked_div(stride).filter(|places| *places > 0)
                else {
                    return;
                };
                let path = self.paths.add(PathTable::EMPTY, PathSegment::Element);
                for number in 0..len.unwrap_or(places).min(places) {
                    let place = first.wrapping_add(number) % places;
                    // The next element follows, so there is no tail.
                    let value = ValueBytes { bytes, tail: Some(0) };
                    self.value(value, element, place * stride, path, len.is_some(), 0);
                }
            }
            TypedContents::Table { entry } => self.table(bytes, entry),
            TypedContents::Headed { header, element } => {
                let (value, start) = (ValueBytes { bytes, tail: None }, self.info().size(header));
                let len = self.plans.header_len(header).and_then(|len| value.scalar(0, len));
                let places =
                    (bytes.len() as u64).saturating_sub(start).checked_div(self.info().size(element));
                let path = self.paths.add(PathTable::EMPTY, PathSegment::Element);
                for number in 0..len.unwrap_or(0).min(places.unwrap_or(0)) {
                    let at = start + number * self.info().size(element);
                    self.value(ValueBytes { tail: Some(0), ..value }, element, at, path, true, 0);
                }
            }
            TypedContents::Task { raw } => {
                let Some(parts) = self.info().task_parts(raw) else { return };
                let value = ValueBytes { bytes, tail: Some(0) };
                self.value(value, parts.header, 0, PathTable::EMPTY, true, 0);
                let (at, of) = parts.schedule;
                self.value(value, of, at, PathTable::EMPTY, true, 0);
                let state = value.scalar(0, Scalar { at: parts.state, size: 8 });
                if state.is_some_and(|state| state & (COMPLETED | CLOSED) == 0) {
                    let (at, of) = parts.future;
                    self.value(value, of, at, PathTable::EMPTY, true, 0);
                }
            }
            TypedContents::Prefixed { of, before } => {
                self.whole = Some((of, before));
                self.value(ValueBytes { bytes, tail: None }, of, before, PathTable::EMPTY, true, 0);
            }
            TypedContents::Chunk { footer } => {
                let at = (bytes.len() as u64).saturating_sub(self.info().size(footer));
                self.whole = Some((footer, at));
                self.value(ValueBytes { bytes, tail: None }, footer, at, PathTable::EMPTY, true, 0);
            }
            TypedContents::HeadedChunk { header } => {
                self.whole = Some((header, 0));
                self.value(ValueBytes { bytes, tail: Some(0) }, header, 0, PathTable::EMPTY, true, 0);
            }
            TypedContents::FlatChunk { .. } => {}
        }
    }

    /// Reads the entries of a table. They are before the control bytes, in reverse order. A control byte below 0x80
    /// marks a full bucket.
    fn table(&mut self, bytes: &[u8], entry: TypeId) {
        let stride = self.info().size(entry);
        let Some((buckets, control)) = self.info().buckets(bytes.len() as u64, entry) else { return };
        let path = self.paths.add(PathTable::EMPTY, PathSegment::Element);
        for bucket in 0..buckets {
            let full = bytes.get((control + bucket) as usize).is_some_and(|byte| *byte < 0x80);
            if full {
                let at = control - (bucket + 1) * stride;
                self.value(ValueBytes { bytes, tail: Some(0) }, entry, at, path, true, 0);
            }
        }
    }

    fn value(
        &mut self,
        value: ValueBytes<'_>,
        of: TypeId,
        at: u64,
        path: FieldPathId,
        sure: bool,
        depth: u32,
    ) {
        let plan = self.plans.plan(of);
        self.steps(value, &plan, at, path, sure, depth);
    }

    fn steps(
        &mut self,
        value: ValueBytes<'_>,
        steps: &[PlanStep],
        at: u64,
        path: FieldPathId,
        sure: bool,
        depth: u32,
    ) {
        if depth > DEEPEST {
            return;
        }
        for step in steps {
            let Some(left) = self.left.checked_sub(1) else { return };
            self.left = left;
            match step {
                PlanStep::Pointer { at: offset, leads } => {
                    let Some(word) = at.checked_add(*offset) else { continue };
                    let Some(address) = value.read(word, 8).filter(|address| *address >= LOWEST) else {
                        continue;
                    };
                    if let Some(target) = self.target(value, at, address, *leads) {
                        let path = if path == PathTable::EMPTY { self.member(word) } else { path };
                        let is_reference = matches!(leads, TargetPlan::Reference(_));
                        let pointer =
                            FoundPointer { value: address, path, target, sure, weak: false, is_reference };
                        self.found.push(pointer);
                    }
                }
                PlanStep::Part { at: offset, of, name, has_tail } => {
                    let path = name.map_or(path, |name| self.paths.add(path, PathSegment::Name(name)));
                    let value = if *has_tail { value } else { value.without_tail() };
                    self.value(value, *of, at.saturating_add(*offset), path, sure, depth + 1);
                }
                PlanStep::Repeat { at: offset, stride, count, of, name } => {
                    let start = at.saturating_add(*offset);
                    let after = (value.bytes.len() as u64).saturating_sub(start) / stride;
                    let count = match count {
                        ElementCount::Fixed(count) => *count,
                        ElementCount::Read(scalar, more, most) => {
                            let Some(count) = value.scalar(at, *scalar) else { continue };
                            count.saturating_add(*more).min(*most)
                        }
                        ElementCount::Tail => value.tail.unwrap_or(after),
                    };
                    let path = name.map_or(path, |name| self.paths.add(path, name));
                    let path = self.paths.add(path, PathSegment::Element);
                    let value = value.without_tail();
                    for number in 0..count.min(after) {
                        self.value(value, *of, start + number * stride, path, sure, depth + 1);
                    }
                }
                PlanStep::Switch { of, discriminant, cases } => {
                    let chosen = match discriminant.map(|scalar| value.wide(at, scalar)) {
                        None => (!cases.is_empty()).then_some(0),
                        Some(None) => None,
                        Some(number) => {
                            let other = || cases.iter().position(|(case, _)| case.is_none());
                            cases.iter().position(|(case, _)| *case == number).or_else(other)
                        }
                    };
                    let Some(variant) = chosen else { continue };
                    if let Some(of) = *of {
                        self.variants.push(FoundVariant { of, at, variant, sure });
                    }
                    self.steps(value, &cases[variant].1, at, path, sure, depth + 1);
                }
                PlanStep::AtMost { number, most, then, otherwise } => {
                    let Some(number) = value.scalar(at, *number) else { continue };
                    let steps = if number <= *most { then } else { otherwise };
                    self.steps(value, steps, at, path, sure, depth + 1);
                }
                PlanStep::Full { number, mask, stride, steps } => {
                    let Some(number) = value.scalar(at, *number) else { continue };
                    if (number ^ (at / stride)) & mask == 1 {
                        self.steps(value, steps, at, path, sure, depth + 1);
                    }
                }
                PlanStep::Maybe(steps) => self.steps(value, steps, at, path, false, depth + 1),
                PlanStep::Weak(steps) => {
                    let before = self.found.len();
                    self.steps(value, steps, at, path, sure, depth + 1);
                    self.found[before..].iter_mut().for_each(|found| found.weak = true);
                }
            }
        }
    }

    /// The path of a pointer at this offset, if the pointer has no path of its own. It is the name of the member that
    /// contains the pointer. Empty if no named member contains it.
    fn member(&mut self, at: u64) -> FieldPathId {
        let Some((of, start)) = self.whole else { return PathTable::EMPTY };
        let info = self.info();
        let members = self.members.entry(of).or_insert_with(|| {
            let has_size = |member: &&Member| info.type_at(member.of).is_some_and(|of| info.size(of) > 0);
            let named = info.get(of).members.iter().filter(has_size);
            let mut members: Vec<_> = named.map(|member| (member.offset, member.name)).collect();
            members.sort_by_key(|(offset, _)| *offset);
            members
        });
        let before = members.partition_point(|(offset, _)| start.saturating_add(*offset) <= at);
        match before.checked_sub(1).map(|last| members[last].1) {
            Some(name) if !info.text(name).is_empty() => {
                self.paths.add(PathTable::EMPTY, PathSegment::Name(name))
            }
            _ => PathTable::EMPTY,
        }
    }

    /// The target of a pointer; `None` if it has no target, like the pointer of an empty vector.
    fn target(
        &self,
        value: ValueBytes<'_>,
        at: u64,
        address: u64,
        leads: TargetPlan,
    ) -> Option<PointerTarget> {
        let holding = PointerRole::Borrows;
        let start = |contents, bytes| Some(PointerTarget::Start { contents, bytes, certain: true, holding });
        let info = self.info();
        match leads {
            TargetPlan::Opaque => Some(PointerTarget::Opaque),
            TargetPlan::One(of) | TargetPlan::Reference(of) => {
                start(TypedContents::One(of), Some(info.size(of)))
            }
            TargetPlan::Slice { element, first, len, capacity, holding } => {
                let read = |scalar: Option<Scalar>| scalar.and_then(|scalar| value.scalar(at, scalar));
                let capacity = read(capacity);
                let size = info.size(element);
                if capacity == Some(0) || size == 0 {
                    return None;
                }
                let contents =
                    TypedContents::Slice { element, first: read(first).unwrap_or(0), len: read(len) };
                let is_borrow = capacity.is_none();
                let count = capacity.or_else(|| read(len).filter(|_| is_borrow));
                let bytes = count.map(|count| count.saturating_mul(size));
                Some(PointerTarget::Start { contents, bytes, certain: true, holding })
            }
            TargetPlan::Rest { element, first, end, capacity } => {
                let read = |scalar| value.scalar(at, scalar);
                let (size, capacity) = (info.size(element), read(capacity).filter(|capacity| *capacity > 0)?);
                let (first, end) = (read(first)?, read(end)?);
                let before = first.checked_sub(address)?.checked_div(size)?;
                let len = end.checked_sub(first)?.checked_div(size)?;
                let contents = TypedContents::Slice { element, first: before, len: Some(len) };
                let bytes = Some(capacity.saturating_mul(size));
                Some(PointerTarget::Start { contents, bytes, certain: true, holding: PointerRole::Owns })
            }
            TargetPlan::Tail { of, len } => {
                let len = len.and_then(|len| value.scalar(at, len));
                start(TypedContents::Tail { of, len }, None)
            }
            TargetPlan::Dyn { vtable, within } => {
                let vtable = value.scalar(at, vtable)?;
                let Some((of, certain)) = info.behind_vtable(vtable.wrapping_sub(self.bias)) else {
                    return Some(PointerTarget::Opaque);
                };
                let of = match within {
                    None => Some(of),
                    Some(within) => self.wrapped(within, of),
                };
                match of {
                    Some(of) => {
                        let bytes = Some(info.size(of));
                        Some(PointerTarget::Start {
                            contents: TypedContents::One(of),
                            bytes,
                            certain,
                            holding,
                        })
                    }
                    None => Some(PointerTarget::Opaque),
                }
            }
            TargetPlan::Table { entry, mask } => {
                let buckets = value.scalar(at, mask)?.checked_add(1)?;
                // An empty table points to a static, not to a block.
                (buckets > 1).then_some(PointerTarget::Table { entry, buckets })
            }
            TargetPlan::Headed { header, element } => start(TypedContents::Headed { header, element }, None),
        }
    }

    /// The type `ArcInner<Mutex<Job>>`, from the type `ArcInner<Mutex<dyn Run>>` and the type `Job`.
    fn wrapped(&self, within: TypeId, of: TypeId) -> Option<TypeId> {
        let info = self.info();
        let name = info.name(within);
        let (start, end) = erased(name)?;
        let name = format!("{}{}{}", &name[..start], info.name(of), &name[end..]);
        info.with_name_and_part(&name, of)
    }
}

/// The range of the `dyn` type in a name: `dyn Run`, or `(dyn Run + Send)` with its parentheses.
fn erased(name: &str) -> Option<(usize, usize)> {
    let dynamic = name.find("dyn ")?;
    let mut depth = 0_usize;
    let mut last = b' ';
    let mut end = name.len();
    for (at, byte) in name.bytes().enumerate().skip(dynamic) {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' if last == b'-' => {}
            b'>' | b')' | b']' | b',' if depth == 0 => {
                end = at;
                break;
            }
            b'>' | b')' | b']' => depth -= 1,
            _ => {}
        }
        last = byte;
    }
    let in_parentheses = name[..dynamic].ends_with('(') && name[end..].starts_with(')');
    Some(if in_parentheses { (dynamic - 1, end + 1) } else { (dynamic, end) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_erased_type_of_a_name_is_found() {
        for (name, expected) in [
            ("ArcInner<dyn app::Run>", Some("dyn app::Run")),
            ("ArcInner<(dyn app::Run + Send)>", Some("(dyn app::Run + Send)")),
            ("a::Box<b::Object<dyn c::Native>>", Some("dyn c::Native")),
            ("A<dyn Fn(u8, C<u8>) -> B<u8>, u8>", Some("dyn Fn(u8, C<u8>) -> B<u8>")),
            ("dyn app::Run", Some("dyn app::Run")),
            ("A<(dyn ", Some("dyn ")),
            ("ArcInner<app::Job>", None),
        ] {
            assert_eq!(erased(name).map(|(start, end)| &name[start..end]), expected, "{name}");
        }
    }
}
