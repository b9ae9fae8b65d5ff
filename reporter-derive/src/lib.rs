//! `#[derive(MallocSizeOf)]` for the crate memory-reporter, which re-exports the derive.
//!
//! Stages: `ast` (reads the type), `attr` (reads its attributes), `check` (rejects types and attributes that cannot
//! work), `bounds`, `body`, `split`, `mirror` and `expand` (write the impls and cannot fail). The derive reports
//! all errors at once. After the errors it adds an empty impl, so that the compiler does not also report a missing
//! impl.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;

mod ast;
mod attr;
mod blame;
mod body;
mod bounds;
mod check;
mod expand;
mod group;
mod hygiene;
mod mirror;
mod split;

/// Derives `MallocSizeOf` for structs and enums: the impl adds up the heap memory that the fields own.
///
/// ```
/// use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};
///
/// # mod foreign { pub struct Blob { pub bytes: Vec<u8> } }
/// #[derive(MallocSizeOf)]
/// struct Document {
///     title: String,
///     #[malloc_size_of(ignore = "borrowed from the loader, which reports it")]
///     source: *const u8,
///     #[malloc_size_of(with = blob)]
///     body: foreign::Blob,
///     #[malloc_size_of(each = blob)]
///     attachments: Vec<foreign::Blob>,
/// }
///
/// fn blob<R: Reading>(blob: &foreign::Blob, ops: &mut MallocSizeOfOps<R>) -> usize {
///     ops.field("bytes", &blob.bytes)
/// }
///
/// let document = Document {
///     title: "abc".into(),
///     source: core::ptr::null(),
///     body: foreign::Blob { bytes: vec![0; 10] },
///     attachments: vec![foreign::Blob { bytes: vec![0; 20] }],
/// };
/// assert_eq!(memory_reporter::computed_size_of(&document), 3 + 10 + size_of::<Vec<u8>>() + 20);
/// ```
///
/// # Attributes of a field: `#[malloc_size_of(...)]`
///
/// - `ignore = "reason"`: the derive does not measure the field. The reason is required, for readers of the code.
///   On a variant, `ignore` applies to all of its fields.
/// - `with = path`: the function `fn<R: Reading>(&TypeField, &mut MallocSizeOfOps<R>) -> usize` measures the field.
/// - `each = path`: the field is a container (any `MallocSizeOfEach`), and a function as for `with` measures each
///   element. For maps, the first argument of the function is a pair `(&K, &V)`.
///
///   If the field is an `Arc`, `Rc`, `Box`, `Mutex`, `RwLock` or `RefCell`, the function of `with` or `each` may also
///   take the value inside: `with = blob` measures an `Arc<RwLock<Blob>>`, and `each = blob` a `Mutex<Vec<Blob>>`. The
///   blocks of the pointers count, and held locks are skipped. The value in a lock must not contain borrowed data.
/// - `stated_by = path`: the function `fn(&TypeField) -> integer` states the field's bytes, as `memory_usage()` of
///   many crates does. A report shows how many of its bytes are stated.
/// - `conditional`: documents the default for a shared pointer: the first walk that reaches the pointer counts its
///   block. If another reporter always reports the block, write `ignore = "reason"`.
/// - `add_to = name` (or `"name"`): the derive adds the field's bytes to the field `name` of the type's `sizes`.
/// - `split`: the `AddSizeOf` impl of the field's type adds the field's bytes to the type's `sizes`. Together with
///   `add_to`, the field is a container (`MallocSizeOfEach`): the container's own blocks count for the field `name`,
///   and each element is split.
///
/// # Attributes of a type
///
/// - `sizes = Type`: the derive also implements `AddSizeOf<Type>`, which adds the fields to several numbers instead
///   of one. Each field then needs `add_to`, `split` or `ignore`, except numbers, `bool`, `char`, `PhantomData` and
///   `PhantomPinned`.
/// - `bound = "T: Bound, ..."`: replaces the default bounds; `""` means no bounds. By default, each type parameter
///   that a measured field owns gets `T: MallocSizeOf`, and each type of a parameter gets `T::Item: MallocSizeOf`.
///   References, raw pointers, `NonNull`, `AtomicPtr`, `Weak`, functions and `PhantomData` own nothing and need no
///   bound.
/// - `size_method = name`: the derive also writes `pub fn name(&self) -> usize`, which returns the requested bytes of the
///   value and its heap, by the walk. Use it instead of a hand-written `size()`.
/// - `crate = path`: the path of memory-reporter, if it is not `::memory_reporter`.
///
/// # Mirrors of foreign types
///
/// `remote = path::to::Type` on a type makes the type a mirror: it repeats the public fields or the variants of a
/// foreign type, and no code constructs it. Instead of an impl, a mirror gets a function `measure`, for
/// `with = Mirror::measure` and `each = Mirror::measure`. The compiler reports missing fields and variants, unknown
/// fields and variants, and fields of a wrong type.
///
/// - `rest = "reason"` on the mirror: the mirror leaves out fields or variants. The walk records a left-out variant
///   as skipped.
/// - `getter = path` on a field of a mirrored struct: the function `fn(&Type) -> &TypeField` returns the field. The
///   mirror may then leave out other private fields.
///
/// ```
/// use memory_reporter::{MallocSizeOf, computed_size_of};
///
/// # mod foreign { pub struct Picture { pub pixels: Vec<u8>, pub width: u32 } }
/// #[derive(MallocSizeOf)]
/// #[malloc_size_of(remote = foreign::Picture)]
/// struct Picture {
///     pixels: Vec<u8>,
///     width: u32,
/// }
///
/// #[derive(MallocSizeOf)]
/// struct Album {
///     #[malloc_size_of(each = Picture::measure)]
///     pictures: Vec<foreign::Picture>,
/// }
///
/// let album = Album { pictures: vec![foreign::Picture { pixels: vec![0; 100], width: 10 }] };
/// assert_eq!(computed_size_of(&album), size_of::<foreign::Picture>() + 100);
/// ```
///
/// Recursive types and types with thousands of fields or variants work. The fields of a `repr(packed)` struct must
/// be `Copy` or ignored.
///
/// # Recursion through an associated type
///
/// If `F::Member` can be a type that contains `Parent<F>` itself, the bound `F::Member: MallocSizeOf` depends on
/// itself, and the compiler reports "overflow evaluating the requirement". Put the bound on the associated type, and
/// write `bound = ""`:
///
/// ```
/// use memory_reporter::MallocSizeOf;
///
/// trait Family {
///     type Member: MallocSizeOf;
/// }
///
/// #[derive(MallocSizeOf)]
/// #[malloc_size_of(bound = "")]
/// struct Parent<F: Family> {
///     children: Vec<F::Member>,
/// }
///
/// struct Same;
///
/// impl Family for Same {
///     type Member = Parent<Self>;
/// }
///
/// let parent = Parent::<Same> { children: vec![Parent { children: vec![] }] };
/// assert_eq!(memory_reporter::computed_size_of(&parent), size_of::<Parent<Same>>());
/// ```
///
/// If the trait belongs to another crate, measure the field by a function: use `each = path`, and a `bound` on your
/// own trait.
#[proc_macro_derive(MallocSizeOf, attributes(malloc_size_of, ignore_malloc_size_of))]
pub fn derive_malloc_size_of(input: TokenStream) -> TokenStream {
    expand::derive(input.into()).into()
}

#[cfg(test)]
mod snapshots;
