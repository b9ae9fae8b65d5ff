//! The body of a method: the code for each field of a type.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Path, Type};

use crate::ast::{TypeBody, TypeField, TypeInput};
use crate::attr::FieldRule;
use crate::blame::blaming;
use crate::bounds::owns_nothing;
use crate::group::{self, FieldCode, MatchSubject, PartJoin};
use crate::hygiene::{at, krate, local, member_name, reading, respanned};
use crate::mirror;

/// The code for all fields: `each` returns the code for one field, and `joint` joins these parts.
pub(crate) fn body(input: &TypeInput, each: &FieldCode<'_>, joint: &PartJoin<'_>) -> TokenStream {
    let krate = krate(input);
    match &input.body {
        TypeBody::Struct(fields) => {
            let parts = fields.iter().filter_map(|field| {
                let name = member_name(&field.member);
                let member = &field.member;
                let value = if input.attributes.remote.is_some() {
                    mirror::field(field)
                } else if input.packed {
                    // All tokens have the same span. With two different spans, the compiler suggests cloning the value.
                    respanned(quote!(&{ self.#member }), &|_| Span::call_site())
                } else {
                    respanned(quote!(&self.#member), &|_| at(field.span))
                };
                each(field, &quote!(#krate::__private::Edge::Field(#name)), &value)
            });
            let parts = joint.parts(parts.collect(), &krate);
            let bind = input.attributes.remote.as_ref().map(|remote| mirror::bind(remote, input, fields));
            quote!(#bind #parts)
        }
        TypeBody::Enum(variants) => {
            let subject = subject(input, krate);
            if variants.is_empty() && subject.rest.is_none() {
                let value = subject.value;
                return quote!(match *#value {});
            }
            let measured = group::variants(variants, each, joint, &subject);
            let named = input.attributes.remote.as_ref().filter(|_| subject.rest.is_none());
            let named = named.map(|remote| mirror::name_variants(remote, variants));
            quote!(#named #measured)
        }
    }
}

/// The value that the `match` examines, and its enum: the type itself, or the foreign enum that the type mirrors.
fn subject(input: &TypeInput, krate: Path) -> MatchSubject {
    let Some(remote) = &input.attributes.remote else {
        return MatchSubject { krate, value: quote!(self), path: quote!(Self), rest: None };
    };
    let ops = local("__ops", Span::call_site());
    let rest = input.attributes.rest.as_ref().map(|_| {
        quote! {
            #[allow(unreachable_patterns)]
            _ => #krate::MallocSizeOfOps::skip::<#remote>(#ops, #krate::__private::SkipReason::Opaque),
        }
    });
    MatchSubject { krate, value: mirror::value(), path: mirror::pattern_path(remote), rest }
}

/// Whether a field's type can own heap.
pub(crate) fn needs_walk(field: &TypeField, input: &TypeInput) -> TokenStream {
    impl_item(field, input, "NEEDS_WALK")
}

/// Names an item of the impl of the field's type. The derived impls of `MallocSizeOf` and `AddSizeOf` name all items
/// with the same tokens and spans. The compiler shows equal errors only once, so a type without an impl gives one
/// error.
fn impl_item(field: &TypeField, input: &TypeInput, item: &str) -> TokenStream {
    let (krate, ty) = (krate(input), blaming(&field.ty, input));
    let item = Ident::new(item, at(field.span));
    quote_spanned!(at(field.span)=> <#ty as #krate::MallocSizeOf>::#item)
}

/// The call that measures one field. Only the part that can cause an error has the field's span: clippy treats a sum as
/// the user's own code if both ends of the sum have the span of a field.
pub(crate) fn part(
    field: &TypeField,
    input: &TypeInput,
    edge: &TokenStream,
    value: &TokenStream,
) -> Option<TokenStream> {
    let (krate, reading, ops) = (krate(input), reading(input), local("__ops", Span::call_site()));
    let measured = quote!(#krate::MallocSizeOfOps::<#reading>);
    let checked = input.attributes.remote.as_ref().map(|_| mirror::same_type_reference(field, input, value));
    let value = checked.as_ref().unwrap_or(value);
    match &field.rule {
        FieldRule::Ignore => None,
        FieldRule::Measure if owns_nothing(&field.ty) => {
            Some(quote!(#measured::plain_part(#ops, #edge, #value)))
        }
        FieldRule::Measure => {
            let (needs_walk, walk) =
                (needs_walk(field, input), impl_item(field, input, "size_of_excluding_this"));
            Some(quote!(#measured::typed_part(#ops, #edge, #value, #needs_walk, #walk)))
        }
        // The function may take the field itself or a value behind the field. The compiler infers from the function
        // which of the two it takes.
        FieldRule::With(path) | FieldRule::Each(path) if is_pointer_or_lock(&field.ty) => {
            let name = if matches!(field.rule, FieldRule::With(_)) { "measure_with" } else { "measure_each" };
            let name = Ident::new(name, at(field.span));
            let reach = quote_spanned!(at(field.span)=> #krate::__private::#name);
            let part = local("__value", path.span());
            Some(quote! {
                #measured::part_with(#ops, #edge, #value, |#part, #ops| #reach(#part, #ops, &#path))
            })
        }
        FieldRule::With(path) => {
            let (part, ops_in) = (local("__value", path.span()), local("__ops", path.span()));
            Some(quote! {
                #measured::part_with(#ops, #edge, #value, |#part, #ops_in| #path(#part, #ops_in))
            })
        }
        FieldRule::StatedBy(path) => {
            let (part, ops_in) = (local("__value", path.span()), local("__ops", path.span()));
            let bytes = respanned(quote!(#krate::__private::bytes), &|_| at(path.span()));
            Some(quote! {
                #measured::part_with(#ops, #edge, #value, |#part, #ops_in| {
                    #measured::stated(#ops_in, #part, #bytes(#path(#part)))
                })
            })
        }
        FieldRule::Each(path) => {
            let (part, each) = (local("__value", field.span), local("__each", path.span()));
            let ops_in = local("__ops", path.span());
            Some(quote! {
                #measured::part_with(#ops, #edge, #value, |#part, #ops| {
                    #krate::__private::MallocSizeOfEach::size_of_each(#part, #ops, |#each, #ops_in| #path(#each, #ops_in))
                })
            })
        }
    }
}

/// Whether the type has the name of a pointer or lock, behind which `with` and `each` may find their value.
fn is_pointer_or_lock(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|last| POINTERS_AND_LOCKS.iter().any(|name| last.ident == name))
}

const POINTERS_AND_LOCKS: [&str; 8] =
    ["Arc", "Rc", "Box", "Mutex", "RwLock", "RefCell", "FairMutex", "ReentrantMutex"];
