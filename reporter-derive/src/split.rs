//! Writes the second impl, `AddSizeOf`, for a type with `sizes = Sizes`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Generics;

use crate::ast::{TypeField, TypeInput};
use crate::body::{body, part};
use crate::bounds::bounded;
use crate::group::PartJoin;
use crate::hygiene::{as_own_tokens, at, krate, local, reading};

/// The impl, or no tokens for a type without sizes.
pub(crate) fn expand(input: &TypeInput) -> TokenStream {
    let statements = PartJoin { all: &|parts| quote!({ #(#parts)* }), end: quote!(;) };
    let body = body(input, &|field, edge, value| statement(field, input, edge, value), &statements);
    implementation(input, &bounded(input, &krate(input)), &body)
}

/// An empty impl, for a type with errors.
pub(crate) fn stub(input: &TypeInput) -> TokenStream {
    implementation(input, &input.generics, &TokenStream::new())
}

fn implementation(input: &TypeInput, generics: &Generics, body: &TokenStream) -> TokenStream {
    let Some(sizes_type) = &input.attributes.sizes else { return TokenStream::new() };
    let (krate, reading) = (krate(input), reading(input));
    let (ops, sizes) = (local("__ops", Span::call_site()), local("__sizes", Span::call_site()));
    let ident = as_own_tokens(quote::ToTokens::to_token_stream(&input.ident));
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let impl_generics = as_own_tokens(quote::ToTokens::to_token_stream(&impl_generics));
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::__private::AddSizeOf<#sizes_type> for #ident #type_generics #where_clause {
            fn add_size_of_excluding_this<#reading: #krate::Reading>(
                &self,
                #ops: &mut #krate::MallocSizeOfOps<#reading>,
                #sizes: &mut #sizes_type,
            ) {
                #body
            }
        }
    }
}

/// The statement that measures one field and adds its bytes to a size.
fn statement(
    field: &TypeField,
    input: &TypeInput,
    edge: &TokenStream,
    value: &TokenStream,
) -> Option<TokenStream> {
    let (krate, reading) = (krate(input), reading(input));
    let here = Span::call_site();
    let (ops, sizes) = (local("__ops", here), local("__sizes", here));
    let (whole, each, bytes) = (local("__whole", here), local("__each", here), local("__bytes", here));
    let measured = quote!(#krate::MallocSizeOfOps::<#reading>);
    let sizes_type = input.attributes.sizes.as_ref();
    // The path has the field's span, so that the error about a type without `AddSizeOf` points at the field.
    let hand_on = |value| {
        let add = quote_spanned!(at(field.span)=> <_ as #krate::__private::AddSizeOf<#sizes_type>>::add_size_of_excluding_this);
        quote!({ #add(#value, #ops, #sizes); 0 })
    };
    match (&field.destination.add_to, field.destination.split.is_some()) {
        (None, false) => None,
        (Some(name), false) => {
            let part = part(field, input, edge, value)?;
            Some(quote!(#sizes.#name += #part;))
        }
        (None, true) => {
            let inner = hand_on(&whole);
            Some(quote!(#measured::part_with(#ops, #edge, #value, |#whole, #ops| #inner);))
        }
        (Some(name), true) => {
            let inner = hand_on(&each);
            Some(quote! {
                let #bytes = #measured::part_with(#ops, #edge, #value, |#whole, #ops| {
                    #krate::__private::MallocSizeOfEach::size_of_each(#whole, #ops, |#each, #ops| #inner)
                });
                #sizes.#name += #bytes;
            })
        }
    }
}
