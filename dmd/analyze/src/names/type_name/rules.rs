//! The library functions that allocate, with the types of their blocks, as data.
//!
//! The innermost library function that has the type among its generic arguments names the block. A rule contains the
//! function's module and, if the name contains it, the owner type. Debug information with only lines has no owner
//! types. There, the number of generic arguments distinguishes, for example, `RawVec<T, A>::grow_one` from
//! `RawVecInner<A>::grow_one`.

use super::BlockShape;

/// Functions that allocate blocks of one type.
#[derive(Debug)]
pub(super) struct TypeRule {
    /// The modules that define the functions, separated by spaces.
    pub(super) modules: &'static str,
    /// The type to which the functions belong.
    pub(super) owner: &'static str,
    /// The functions, separated by spaces; empty for all.
    pub(super) functions: &'static str,
    /// The generic arguments that the function needs.
    pub(super) arguments: ArgumentRule,
    pub(super) shape: BlockShape,
    pub(super) gives: TypeSource,
    /// Whether the functions run code of the program, or of element types, that may also allocate. Then the rule holds
    /// only if the line of the call is known, because then all calls between the function and the allocator are known.
    pub(super) runs_others: bool,
}

/// The generic arguments by which a rule selects one of several functions with the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentRule {
    /// At least this many arguments, or any number if the name contains the owner.
    AtLeast(usize),
    /// The owner's arguments. The name must contain the owner with its arguments.
    OfOwner,
    /// Exactly one argument.
    One,
}

/// The way in which the type of a block follows from the generic arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypeSource {
    /// The first argument.
    First,
    /// A slice of the first argument. An argument that is already a slice or `str` stays unchanged.
    Slice,
    /// A slice of the elements of the first argument, an array.
    SliceOfArray,
    /// The first two arguments as a pair.
    Pair,
    /// The first argument and `()` as a pair.
    FirstAndUnit,
    /// The first argument inside of this type.
    Within(&'static str),
    /// A slice of the first argument inside of this type.
    SliceWithin(&'static str),
    /// The first four arguments inside of this type.
    FourWithin(&'static str),
    /// This type.
    Always(&'static str),
}

const NEW: &str = "box_new new new_in new_uninit new_uninit_in new_zeroed new_zeroed_in pin pin_in try_new \
    try_new_in try_new_uninit try_new_uninit_in try_new_zeroed try_new_zeroed_in";
const NEW_SLICE: &str = "new_uninit_slice new_uninit_slice_in new_zeroed_slice new_zeroed_slice_in try_new_uninit_slice \
    try_new_zeroed_slice";
const CLONE_BOX: &str = "clone_from_ref clone_from_ref_in try_clone_from_ref try_clone_from_ref_in";
const GROW_VEC: &str = "append append_elements insert insert_mut push push_mut reserve reserve_exact shrink_to \
    shrink_to_fit split_off try_reserve try_reserve_exact with_capacity_in";
const FILL_VEC: &str = "clone extend extend_desugared extend_from_slice extend_trusted extend_with from_iter resize \
    resize_with spec_extend";
const WITH_CAPACITY: &str = "with_capacity try_with_capacity";
const GROW_DEQUE: &str = "grow insert push_back push_back_mut push_front push_front_mut reserve reserve_exact \
    with_capacity_in";
const GROW_STRING: &str = "insert insert_str push push_str reserve reserve_exact shrink_to_fit with_capacity write_char \
    write_str";
const FOR_LAYOUT: &str = "allocate_for_layout try_allocate_for_layout";
const FOR_SLICE: &str = "allocate_for_slice allocate_for_slice_in copy_from_slice from_slice new_uninit_slice \
    new_zeroed_slice";
const GROW_TABLE: &str = "insert insert_entry new_uninitialized reserve reserve_rehash resize shrink_to try_with_capacity \
    with_capacity with_capacity_in";
const GROW_MAP: &str = "entry find_or_find_insert_index find_or_find_insert_slot insert insert_entry or_default \
    or_insert reserve rustc_entry shrink_to_fit try_reserve with_capacity with_capacity_and_hasher \
    with_capacity_and_hasher_in";
const GROW_SMALL: &str = "grow insert push reserve reserve_exact reserve_one_unchecked shrink_to_fit try_grow try_reserve \
    with_capacity";
const GROW_THIN: &str =
    "header_with_capacity insert push reallocate reserve reserve_exact shrink_to_fit with_capacity";
const MAPS: &str = "hashbrown::map hashbrown::rustc_entry std::collections::hash::map";
const SETS: &str = "hashbrown::set std::collections::hash::set";
const ITERATORS: &str = "alloc::vec alloc::vec::spec_from_iter alloc::vec::spec_from_iter_nested";
const TABLES: &str = "hashbrown::raw hashbrown::raw::inner";

use ArgumentRule::{AtLeast, OfOwner, One};

/// Makes a rule for functions that run only library code.
const fn rule(
    modules: &'static str,
    owner: &'static str,
    functions: &'static str,
    arguments: ArgumentRule,
    shape: BlockShape,
    gives: TypeSource,
) -> TypeRule {
    TypeRule { modules, owner, functions, arguments, shape, gives, runs_others: false }
}

impl TypeRule {
    /// Makes the same rule for functions that also run code of the program or of element types.
    const fn runs_others(self) -> Self {
        Self { runs_others: true, ..self }
    }
}

/// The rules. The first rule that matches a function counts.
pub(super) const RULES: &[TypeRule] = &[
    rule(
        "alloc::raw_vec allocator_api2::stable::raw_vec",
        "RawVec",
        "",
        AtLeast(2),
        BlockShape::Slice,
        TypeSource::Slice,
    ),
    rule("alloc::vec", "Vec", GROW_VEC, AtLeast(2), BlockShape::Slice, TypeSource::Slice),
    rule("alloc::vec", "Vec", WITH_CAPACITY, AtLeast(1), BlockShape::Slice, TypeSource::Slice),
    rule("alloc::vec", "Vec", "into_boxed_slice", AtLeast(2), BlockShape::BoxedSlice, TypeSource::Slice),
    rule("alloc::vec", "Vec", "from_elem", AtLeast(1), BlockShape::Slice, TypeSource::Slice).runs_others(),
    rule(ITERATORS, "Vec", FILL_VEC, AtLeast(2), BlockShape::Slice, TypeSource::Slice).runs_others(),
    rule("alloc::vec::spec_extend", "Vec", FILL_VEC, AtLeast(2), BlockShape::Slice, TypeSource::Slice)
        .runs_others(),
    rule(
        "alloc::slice []",
        "[]",
        "to_owned to_vec to_vec_in repeat",
        AtLeast(1),
        BlockShape::Slice,
        TypeSource::Slice,
    )
    .runs_others(),
    rule(
        "alloc::collections::vec_deque",
        "VecDeque",
        GROW_DEQUE,
        AtLeast(2),
        BlockShape::Slice,
        TypeSource::Slice,
    ),
    rule(
        "alloc::collections::vec_deque",
        "VecDeque",
        WITH_CAPACITY,
        AtLeast(1),
        BlockShape::Slice,
        TypeSource::Slice,
    ),
    rule(
        "alloc::collections::binary_heap",
        "BinaryHeap",
        "push",
        AtLeast(2),
        BlockShape::Slice,
        TypeSource::Slice,
    )
    .runs_others(),
    rule(
        "alloc::string",
        "String",
        "into_boxed_str",
        AtLeast(0),
        BlockShape::BoxedSlice,
        TypeSource::Always("str"),
    ),
    rule("alloc::string", "String", GROW_STRING, AtLeast(0), BlockShape::Slice, TypeSource::Always("str")),
    rule("alloc::string", "String", "", AtLeast(0), BlockShape::Slice, TypeSource::Always("str"))
        .runs_others(),
    rule(
        "alloc::str str",
        "str",
        "repeat to_lowercase to_owned to_uppercase replace replacen",
        AtLeast(0),
        BlockShape::Slice,
        TypeSource::Always("str"),
    )
    .runs_others(),
    rule(
        "alloc::fmt alloc::fmt::format",
        "",
        "format format_inner",
        AtLeast(0),
        BlockShape::Slice,
        TypeSource::Always("str"),
    )
    .runs_others(),
    rule("alloc::boxed", "Box", NEW, AtLeast(1), BlockShape::One, TypeSource::First),
    rule("alloc::boxed", "Box", NEW_SLICE, AtLeast(1), BlockShape::BoxedSlice, TypeSource::Slice),
    rule("alloc::boxed", "Box", CLONE_BOX, AtLeast(1), BlockShape::One, TypeSource::First).runs_others(),
    rule("alloc::sync", "Arc", "new pin", AtLeast(1), BlockShape::One, TypeSource::Within("ArcInner")),
    rule("alloc::sync", "Arc", FOR_LAYOUT, AtLeast(1), BlockShape::One, TypeSource::Within("ArcInner")),
    rule("alloc::sync", "Arc", FOR_SLICE, AtLeast(1), BlockShape::One, TypeSource::SliceWithin("ArcInner")),
    rule("alloc::sync", "Arc", "from", OfOwner, BlockShape::One, TypeSource::Within("ArcInner")),
    rule("alloc::rc", "Rc", "new pin", AtLeast(1), BlockShape::One, TypeSource::Within("RcInner")),
    rule("alloc::rc", "Rc", FOR_LAYOUT, AtLeast(1), BlockShape::One, TypeSource::Within("RcInner")),
    rule("alloc::rc", "Rc", FOR_SLICE, AtLeast(1), BlockShape::One, TypeSource::SliceWithin("RcInner")),
    rule("alloc::rc", "Rc", "from", OfOwner, BlockShape::One, TypeSource::Within("RcInner")),
    rule(TABLES, "RawTable", GROW_TABLE, AtLeast(2), BlockShape::Table, TypeSource::First),
    rule(TABLES, "RawTable", "", AtLeast(2), BlockShape::Table, TypeSource::First).runs_others(),
    rule(MAPS, "HashMap", GROW_MAP, AtLeast(2), BlockShape::Table, TypeSource::Pair).runs_others(),
    rule(SETS, "HashSet", GROW_MAP, AtLeast(1), BlockShape::Table, TypeSource::FirstAndUnit).runs_others(),
    rule("smallvec", "SmallVec", GROW_SMALL, One, BlockShape::Slice, TypeSource::SliceOfArray),
    rule("thin_vec", "ThinVec", GROW_THIN, AtLeast(1), BlockShape::One, TypeSource::SliceWithin("ThinVec")),
    rule(
        "compact_str::repr::heap compact_str::repr::heap::heap_capacity compact_str::repr::heap::inline_capacity",
        "HeapBuffer",
        "",
        AtLeast(0),
        BlockShape::Slice,
        TypeSource::Always("str"),
    ),
    rule(
        "tokio::sync::mpsc::block",
        "Block",
        "new",
        AtLeast(1),
        BlockShape::One,
        TypeSource::Within("tokio::sync::mpsc::block::Block"),
    ),
    rule(
        "crossbeam_channel::flavors::list",
        "Block",
        "new",
        AtLeast(1),
        BlockShape::One,
        TypeSource::Within("crossbeam_channel::flavors::list::Block"),
    ),
    rule(
        "async_task::raw",
        "RawTask",
        "allocate",
        AtLeast(4),
        BlockShape::One,
        TypeSource::FourWithin("async_task::raw::RawTask"),
    ),
    rule(
        "crossbeam_deque::deque",
        "Block",
        "new",
        AtLeast(1),
        BlockShape::One,
        TypeSource::Within("crossbeam_deque::deque::Block"),
    ),
];

/// Functions through which every Rust allocation passes. Inner calls belong to an allocator.
pub(super) const ENTRIES: &str = "alloc alloc_zeroed exchange_malloc realloc";

/// The module of the entries.
pub(super) const ENTRY_MODULE: &str = "alloc::alloc";

/// The start of symbols that the entries call, with or without the module `__rustc`.
pub(super) const ENTRY_SYMBOLS: &str = "__rust_alloc __rust_realloc __rdl_ __rg_";

/// Modules that only pass a call on to the allocator. Their inner modules do the same.
pub(super) const ALLOCATORS: &str = "__rustc alloc::alloc allocator_api2::stable::alloc core::alloc dmd hashbrown::alloc \
    hashbrown::raw::alloc memory_reporter::allocator std::alloc std::sys::alloc";

/// Part of the name of a method of `&A`, for an allocator `A`. `&A` is not a path, so the name has no module.
pub(super) const OF_REFERENCES: &str = " as core::alloc::Allocator>::";

/// Functions of C's allocator.
pub(super) const IN_C: &str = "aligned_alloc calloc malloc memalign posix_memalign realloc reallocarray";

/// Functions of collections whose names lack the type; functions with the type call them. Each entry is a module and a
/// list of functions, separated by spaces. The module includes its inner modules. An empty list means all functions
/// with at most one generic argument; `{closure}` means all closures.
pub(super) const INNER: &[(&str, &str)] = &[
    ("alloc::raw_vec", ""),
    ("allocator_api2::stable::raw_vec", ""),
    ("hashbrown::raw", ""),
    ("hashbrown::raw::inner", ""),
    ("alloc::boxed", "box_new_uninit {closure}"),
    ("alloc::sync", "{closure}"),
    ("alloc::rc", "{closure}"),
    ("alloc::vec::spec_from_elem", "from_elem"),
];
