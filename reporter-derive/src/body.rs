//! The body of a method: the code for each field of a type.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::spanned::Spanned;

use crate::ast::{Body, Field, Input};
use crate::attr::Rule;
use crate::bounds::owns_nothing;
use crate::group::{self, Each, Joint};
use crate::hygiene::{at, krate, local, member_name, reading, respanned};

/// The code for all fields: `each` gives that of one field, and `joint` joins them.
pub(crate) fn body(input: &Input, each: &Each<'_>, joint: &Joint<'_>) -> TokenStream {
    let krate = krate(input);
    match &input.body {
        Body::Struct(fields) => {
            let parts = fields.iter().filter_map(|field| {
                let name = member_name(&field.member);
                let member = &field.member;
                let value = if input.packed {
                    // With one span only, or the compiler proposes to clone the value at the other.
                    respanned(quote!(&{ self.#member }), &|_| Span::call_site())
                } else {
                    respanned(quote!(&self.#member), &|_| at(field.span))
                };
                each(field, &quote!(#krate::Edge::Field(#name)), &value)
            });
            joint.parts(parts.collect(), &krate)
        }
        Body::Enum(variants) if variants.is_empty() => quote!(match *self {}),
        Body::Enum(variants) => group::variants(variants, each, joint, &krate),
    }
}

/// The call that measures one field. Only the part that an error is about has the field's span: clippy takes a sum for
/// the user's own code if both ends of it have one.
pub(crate) fn part(
    field: &Field,
    input: &Input,
    edge: &TokenStream,
    value: &TokenStream,
) -> Option<TokenStream> {
    let (krate, reading, ops) = (krate(input), reading(input), local("__ops", Span::call_site()));
    let measured = quote!(#krate::MallocSizeOfOps::<#reading>);
    match &field.rule {
        Rule::Ignore => None,
        Rule::Measure if owns_nothing(&field.ty) => Some(quote!(#measured::plain_part(#ops, #edge, #value))),
        Rule::Measure => Some(quote!(#measured::part(#ops, #edge, #value))),
        Rule::With(path) => {
            let (part, ops_in) = (local("__value", path.span()), local("__ops", path.span()));
            Some(quote! {
                #measured::part_with(#ops, #edge, #value, |#part, #ops_in| #path(#part, #ops_in))
            })
        }
        Rule::Each(path) => {
            let (part, each) = (local("__value", field.span), local("__each", path.span()));
            let ops_in = local("__ops", path.span());
            Some(quote! {
                #measured::part_with(#ops, #edge, #value, |#part, #ops| {
                    #krate::MallocSizeOfEach::size_of_each(#part, #ops, |#each, #ops_in| #path(#each, #ops_in))
                })
            })
        }
    }
}
