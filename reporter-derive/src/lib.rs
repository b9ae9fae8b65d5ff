//! `#[derive(MallocSizeOf)]` for the crate memory-reporter, which re-exports it.
//!
//! Stages: `ast` (what the type looks like), `attr` (what its attributes say), `check` (what cannot be
//! meant), `bounds` and `expand` (the impl, which cannot fail). All errors are told at once, and an empty impl follows
//! them, so that they are not buried under errors about a missing impl.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;

mod ast;
mod attr;
mod bounds;
mod check;
mod expand;
mod group;
mod split;

/// Derives `MallocSizeOf` for structs and enums: the sum of what the fields own.
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
/// - `ignore = "reason"`: not measured. The reason is required, and is for whoever reads the code. Also on
///   a variant, for all of its fields.
/// - `with = path`: measured by `fn<R: Reading>(&Field, &mut MallocSizeOfOps<R>) -> usize`.
/// - `each = path`: a container (anything that is `MallocSizeOfEach`) whose elements are measured by such a
///   function; for maps it takes a pair `(&K, &V)` first.
///
/// - `conditional`: a shared pointer is counted by whoever reaches it first, as it is without saying so. If
///   somebody else always reports it, `ignore = "reason"` is what to write.
/// - `add_to = name` (or `"name"`): the field is added to that field of the type's `sizes`.
/// - `split`: the field is added to the type's `sizes` by its own `AddSizeOf`. With `add_to`, the field is a
///   container (`MallocSizeOfEach`): its own blocks go to the field named, and each element is split.
///
/// # Attributes of a type
///
/// - `sizes = Type`: implement `AddSizeOf<Type>` too, which adds the fields to several numbers instead of
///   one. Each field then says where it goes, or is ignored; only numbers, `bool`, `char` and `PhantomData`
///   need not.
/// - `bound = "T: Bound, ..."`: in place of the bounds that are otherwise put on each type parameter that a
///   measured field owns, `T: MallocSizeOf`, or of which it owns a type, `T::Item: MallocSizeOf`; `""` for
///   none. References, raw pointers, `NonNull`, `AtomicPtr`, `Weak`, functions and `PhantomData` own nothing and
///   bind nothing.
/// - `crate = path`: where memory-reporter is, if not at `::memory_reporter`.
///
/// Recursive types work, and so do types with thousands of fields or variants. The fields of a `repr(packed)`
/// struct must be `Copy`, or be ignored.
///
/// # Recursion through an associated type
///
/// If `F::Member` can be a type that holds `Parent<F>` itself, the bound `F::Member: MallocSizeOf` goes in a
/// circle, and the compiler says "overflow evaluating the requirement". Put the bound on the associated type, and
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
/// If the trait is another crate's, measure the field by a function: `each = path` with a `bound` on a trait of
/// yours.
#[proc_macro_derive(MallocSizeOf, attributes(malloc_size_of, ignore_malloc_size_of))]
pub fn derive_malloc_size_of(input: TokenStream) -> TokenStream {
    expand::derive(input.into()).into()
}

#[cfg(test)]
mod snapshots;
