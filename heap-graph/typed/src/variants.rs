//! Counts the bytes that values of enums and coroutines do not use because another variant is larger.
//!
//! Padding counts as unused. Enums inside a variant count separately.

use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashMap;

use crate::debug_info::{DebugInfo, EnumVariant, Member, TypeId, TypeKind};
use crate::infer::TypedHeap;
use crate::memory::{MemoryReader, MemorySource};
use crate::plan::PlanGoal;
use crate::walk::ValueWalk;

/// The sums over all values of one enum.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EnumValues {
    pub(crate) values: u64,
    /// The number of blocks with values of the enum.
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
    pub(crate) unused_bytes: u64,
    /// The last block with values of the enum.
    last: Option<usize>,
}

/// For each variant, the bytes by which the largest variant exceeds it; `None` if the type of a member is unknown.
type VariantExcess = Option<Rc<[u64]>>;

/// The values of all enums in initialized memory of the heap.
pub(crate) fn values(heap: &TypedHeap<'_>, memory: &dyn MemorySource) -> BTreeMap<TypeId, EnumValues> {
    let info = heap.walk.info();
    let mut walk = ValueWalk::new(info, heap.walk.bias, PlanGoal::Variants);
    let mut known: HashMap<TypeId, VariantExcess> = HashMap::new();
    let mut all: BTreeMap<TypeId, EnumValues> = BTreeMap::new();
    let mut reader = MemoryReader::new(memory);
    for (index, block) in heap.blocks.iter().enumerate() {
        let Some(contents) = heap.contents[index] else { continue };
        if !walk.has_any(contents) {
            continue;
        }
        walk.block(reader.read(block.address, block.requested), contents);
        for found in walk.variants.iter().filter(|found| found.sure) {
            let Some(excess) = known.entry(found.of).or_insert_with(|| excess(info, found.of)) else {
                continue;
            };
            let Some(unused) = excess.get(found.variant) else { continue };
            let sum = all.entry(info.same_as(found.of)).or_default();
            sum.values += 1;
            sum.blocks += u64::from(sum.last.replace(index) != Some(index));
            sum.bytes += info.size(found.of);
            sum.unused_bytes += unused;
        }
    }
    all
}

fn excess(info: &DebugInfo, of: TypeId) -> VariantExcess {
    let variants = info.get(of).variants.as_deref()?;
    let used =
        |variant| used(info, variant, variants.discriminant.as_ref()).map(|used| used.min(info.size(of)));
    let used: Vec<u64> = variants.all.iter().map(used).collect::<Option<_>>()?;
    let most = used.iter().copied().max()?;
    Some(used.into_iter().map(|used| most - used).collect())
}

/// The bytes of a variant's members and of the discriminant. The discriminant may be inside a member.
fn used(info: &DebugInfo, variant: &EnumVariant, discriminant: Option<&Member>) -> Option<u64> {
    let mut places = Vec::new();
    let mut add = |at: u64, of: TypeId| places.push((at, at.saturating_add(info.size(of))));
    if let Some(discriminant) = discriminant {
        add(discriminant.offset, info.type_at(discriminant.of)?);
    }
    for member in &variant.members {
        let of = info.type_at(member.of)?;
        if info.get(of).kind != TypeKind::Struct {
            add(member.offset, of);
        }
        // The size of a variant's own type is the size of the whole enum, so its members are added up.
        for part in &info.get(of).members {
            add(member.offset.saturating_add(part.offset), info.type_at(part.of)?);
        }
    }
    places.sort_unstable();
    let (mut used, mut end) = (0, 0);
    for (from, to) in places {
        used += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    Some(used)
}
