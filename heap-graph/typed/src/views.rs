//! Decides whether two contents are the same, or are two views of the same memory.

use crate::debug_info::{DebugInfo, TypeId, TypeKind};
use crate::plan::PointerRole;
use crate::walk::TypedContents;

/// Whether two contents have the same types. A value and a slice of values of its type count as the same.
pub(crate) fn is_same(info: &DebugInfo, one: TypedContents, other: TypedContents) -> bool {
    let form = |contents| match contents {
        TypedContents::Table { .. } => 1,
        TypedContents::Headed { .. } => 2,
        TypedContents::Task { .. } => 3,
        TypedContents::Prefixed { .. } => 4,
        _ => 0,
    };
    form(one) == form(other) && info.same_as(one.element()) == info.same_as(other.element())
}

/// Returns `said` if its length is known and the length of `known` is unknown; otherwise `None`.
pub(crate) fn more_precise(known: TypedContents, said: TypedContents) -> Option<TypedContents> {
    match (known, said) {
        (TypedContents::Slice { len: None, .. }, TypedContents::Slice { len: Some(_), .. })
        | (TypedContents::Tail { len: None, .. }, TypedContents::Tail { len: Some(_), .. }) => Some(said),
        _ => None,
    }
}

/// Whether a pointer to contents of the type `said` may point to contents of the type `known`. True if `said` is a byte,
/// the header before the elements, the first member of `known` or a type whose first member is `known`, text instead of
/// bytes, or a slice instead of an array.
pub(crate) fn is_view(info: &DebugInfo, known: TypedContents, said: TypedContents) -> bool {
    if let TypedContents::Headed { header, .. } = known
        && info.same_as(header) == info.same_as(said.element())
    {
        return true;
    }
    let (known, said) = (known.element(), said.element());
    let is_byte = |of: TypeId| info.size(of) <= 1;
    let as_text = |of: TypeId| info.name(of).replace("[u8]", "str");
    is_byte(said)
        || info.starts_with(known, said)
        || info.starts_with(said, known)
        || (info.name(known) != info.name(said) && as_text(known) == as_text(said))
        || is_unsized(info.name(known), info.name(said))
}

/// Whether the bytes of a value are text for a pointer: an `ArcInner<[u8]>` may be an `ArcInner<str>`.
pub(crate) fn is_text_of(info: &DebugInfo, known: TypedContents, said: TypedContents) -> bool {
    let [known_name, said_name] = [known, said].map(|contents| info.name(contents.element()));
    known.is_like(said) && known_name != said_name && known_name.replace("[u8]", "str") == said_name
}

/// Whether a value of the first type may have the second type behind a pointer with a length: a `Mutex<[u8; 4]>` may
/// be a `Mutex<[u8]>`.
fn is_unsized(known: &str, said: &str) -> bool {
    known.match_indices("; ").any(|(at, separator)| {
        let rest = &known[at + separator.len()..];
        let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
        rest.starts_with(']') && said.strip_prefix(&known[..at]).is_some_and(|said| said == rest)
    })
}

/// Whether `known` is a boxed array, and `said` is the buffer of a vector with the same elements. `vec![..]` allocates
/// its buffer as a boxed array.
pub(crate) fn is_list_of(info: &DebugInfo, known: TypedContents, said: TypedContents) -> bool {
    let (TypedContents::One(array), TypedContents::Slice { element, .. }) = (known, said) else {
        return false;
    };
    let TypeKind::Array(of, Some(_)) = info.get(array).kind else { return false };
    info.type_at(of).is_some_and(|of| info.same_as(of) == info.same_as(element))
}

/// Whether an owner of elements of another type proves that the type changed, so that it is not just another view. A
/// buffer keeps its address if its elements change in place, for example from numbers to structs with a number. The
/// types `MaybeUninit<T>` and `ManuallyDrop<T>` prove no change: they are less precise than `T`.
pub(crate) fn is_changed(
    info: &DebugInfo,
    known: TypedContents,
    said: TypedContents,
    holding: PointerRole,
) -> bool {
    let (TypedContents::Slice { element: known, .. }, TypedContents::Slice { element: said, .. }) =
        (known, said)
    else {
        return false;
    };
    const WRAPPERS: &[&str] =
        &["core::mem::maybe_uninit::MaybeUninit<", "core::mem::manually_drop::ManuallyDrop<"];
    holding != PointerRole::Borrows
        && !WRAPPERS.iter().any(|wrapper| info.name(said).starts_with(wrapper))
        && known != said
}
