//! Finds the entries that describe the same type.
//!
//! Each unit repeats the types that it uses, and only the names show that the entries describe the same type. Two
//! versions of a crate may have types of the same name and size. These types differ if their members differ, or the
//! members of their members. So entries are first grouped by name and size. The groups are then split until the
//! members of all entries in a group belong to the same groups.

use core::ops::Range;

use hashbrown::HashMap;

use super::side_by_side::side_by_side;
use super::types::{Member, Type, TypeId, TypeKind, TypeRef};
use super::{DebugInfo, DebugNameId};

/// The maximum number of rounds. Types that differ only at a deeper level stay in one class.
const MOST_ROUNDS: usize = 32;

/// The smallest number of types for which a thread is worthwhile.
const WORTH_A_THREAD: usize = 1 << 12;

/// The reference of a part without a type.
const NONE: u32 = u32::MAX;

/// Returns, for each type, the first type of its class.
pub(super) fn find(info: &DebugInfo, threads: usize) -> Vec<TypeId> {
    let count = info.types.len();
    let mut first: HashMap<(DebugNameId, u64), u32> = HashMap::with_capacity(count / 4);
    let mut classes: Vec<u32> = (0..count as u32)
        .map(|index| {
            let id = TypeId(index);
            let Type { name, declared_only, .. } = *info.get(id);
            if declared_only { index } else { *first.entry((name, info.size(id))).or_insert(index) }
        })
        .collect();
    let mut known = first.len();
    drop(first);
    let all: Vec<_> = (0..count).collect();
    let parts: Vec<_> = all.chunks(count.div_ceil(threads).max(WORTH_A_THREAD)).collect();
    let read = side_by_side(&parts, |part| TypeForms::read(info, part));
    let mut next: HashMap<(u32, u64), u32> = HashMap::with_capacity(count / 4);
    for _ in 0..MOST_ROUNDS {
        next.clear();
        let mut refined = Vec::with_capacity(count);
        for forms in &read {
            for form in 0..forms.own.len() {
                let index = refined.len();
                let key = (classes[index], forms.hash(form, &classes));
                refined.push(match info.types[index].declared_only {
                    true => index as u32,
                    false => *next.entry(key).or_insert(index as u32),
                });
            }
        }
        classes = refined;
        if next.len() == known {
            break;
        }
        known = next.len();
    }
    classes.into_iter().map(TypeId).collect()
}

/// The members of types, and hashes of their structure.
#[derive(Default)]
struct TypeForms {
    /// For each type, a hash of its structure without the types of its parts.
    own: Vec<u64>,
    /// The end of each type's parts in `parts`.
    ends: Vec<u32>,
    /// The types of the parts.
    parts: Vec<u32>,
}

impl TypeForms {
    fn read(info: &DebugInfo, types: &[usize]) -> Self {
        let mut all = Self::default();
        for index in types {
            all.add(info, &info.types[*index]);
        }
        all
    }

    fn add(&mut self, info: &DebugInfo, of: &Type) {
        let mut form = 0;
        let mut part = |form: &mut u64, what: u64, of: TypeRef| {
            *form = mixed(*form, what);
            self.parts.push(info.type_at(of).map_or(NONE, |id| id.0));
        };
        match of.kind {
            TypeKind::Scalar => form = mixed(form, 1),
            TypeKind::Struct => form = mixed(form, 2),
            TypeKind::Union => form = mixed(form, 3),
            TypeKind::Pointer(target) => part(&mut form, 4, target),
            TypeKind::Array(element, count) => {
                part(&mut form, count.map_or(5, |count| count.wrapping_add(6)), element);
            }
        }
        let mut member = |form: &mut u64, member: &Member| {
            *form = mixed(*form, member.offset);
            part(form, member.name.0.into(), member.of);
        };
        of.members.iter().for_each(|one| member(&mut form, one));
        if let Some(variants) = of.variants.as_deref() {
            form = mixed(form, 7);
            variants.discriminant.iter().for_each(|one| member(&mut form, one));
            for variant in &variants.all {
                form = mixed(form, variant.discriminant.map_or(8, |number| number.value as u64));
                variant.members.iter().for_each(|one| member(&mut form, one));
            }
        }
        for (name, of) in &of.parameters {
            part(&mut form, name.0.into(), *of);
        }
        self.own.push(form);
        self.ends.push(self.parts.len() as u32);
    }

    /// A hash of a type's structure and of the classes of its parts.
    fn hash(&self, index: usize, classes: &[u32]) -> u64 {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let parts: Range<usize> = start as usize..self.ends[index] as usize;
        let class = |part: &u32| classes.get(*part as usize).copied().unwrap_or(NONE);
        self.parts[parts].iter().fold(self.own[index], |hash, part| mixed(hash, class(part).into()))
    }
}

fn mixed(hash: u64, with: u64) -> u64 {
    let product = (hash.rotate_left(29) ^ with).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ (product >> 32)
}
