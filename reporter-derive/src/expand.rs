//! The impl. Everything wrong has been found before: writing it cannot fail.
//!
//! The type's own parameters and fields may be called anything, it may stand inside another macro, and its
//! crate may forbid lints. So all paths are absolute, even those of `bool` and `usize`; local names are
//! hygienic, and the one type parameter is fresh; every token points at the field it is for, but counts as
//! written by the derive, so that no lint and no macro's hygiene meets it.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, Generics, Ident, Member, Path, parse_quote};

use crate::ast::{Body, Field, Input};
use crate::attr::Rule;
use crate::bounds::{bounded, owns_nothing};
use crate::check::check;
use crate::group::{self, Joint, chain};
use crate::split;

/// The whole derive: tokens of a type to tokens of its impl, with the errors before it.
pub(crate) fn derive(tokens: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(tokens) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Vec::new();
    let input = Input::read(&input, &mut errors);
    check(&input, &mut errors);
    if errors.is_empty() {
        return expand(&input);
    }
    let messages = errors.iter().map(Error::to_compile_error);
    let stub = implementation(&input, &input.generics, &quote!(false), &quote!(0));
    let split_stub = split::stub(&input);
    quote!(#(#messages)* #stub #split_stub)
}

fn expand(input: &Input) -> TokenStream {
    let krate = krate(input);
    let needs_walk = input.fields().filter_map(|field| match field.rule {
        Rule::Measure if owns_nothing(&field.ty) => None,
        Rule::Measure => {
            let ty = of_the_derive(field.ty.to_token_stream());
            Some(quote_spanned!(at(field.span)=> <#ty as #krate::MallocSizeOf>::NEEDS_WALK))
        }
        Rule::With(_) | Rule::Each(_) => Some(quote!(true)),
        Rule::Ignore => None,
    });
    let needs_walk = chain(needs_walk.collect(), &quote!(||), &quote!(false));
    let sum = Joint { all: &|parts| chain(parts, &quote!(+), &quote!(0)), end: TokenStream::new() };
    let body = body(input, &|field, edge, value| part(field, input, edge, value), &sum);
    let sums = implementation(input, &bounded(input, &krate), &needs_walk, &body);
    let splits = split::expand(input);
    quote!(#sums #splits)
}

/// What is done with one field, given its edge and a reference to its value; nothing for a field that is of no
/// interest.
pub(crate) type Each<'a> = dyn Fn(&Field, &TokenStream, &TokenStream) -> Option<TokenStream> + 'a;

/// What is done with all fields: `each` with each of them, and `joint` puts these together.
pub(crate) fn body(input: &Input, each: &Each<'_>, joint: &Joint<'_>) -> TokenStream {
    let krate = krate(input);
    match &input.body {
        Body::Struct(fields) => {
            let parts = fields.iter().filter_map(|field| {
                let name = member_name(&field.member);
                let member = &field.member;
                let value = if input.packed {
                    // In one place, or the compiler proposes to clone what stands at the other.
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

fn implementation(
    input: &Input,
    generics: &Generics,
    needs_walk: &TokenStream,
    body: &TokenStream,
) -> TokenStream {
    let (krate, reading, ops) = (krate(input), reading(input), local("__ops", Span::call_site()));
    let ident = of_the_derive(input.ident.to_token_stream());
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    // Lints on bounds are for those that the user writes: a bound of the derive may repeat one of them.
    let impl_generics = of_the_derive(impl_generics.to_token_stream());
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::MallocSizeOf for #ident #type_generics #where_clause {
            const NEEDS_WALK: ::core::primitive::bool = #needs_walk;

            #[inline]
            fn size_of_excluding_this<#reading: #krate::Reading>(
                &self,
                #ops: &mut #krate::MallocSizeOfOps<#reading>,
            ) -> ::core::primitive::usize {
                #body
            }
        }
    }
}

pub(crate) fn krate(input: &Input) -> Path {
    input.attributes.krate.clone().unwrap_or_else(|| parse_quote!(::memory_reporter))
}

/// The method's type parameter, called as none of the type's own: items know no hygiene here.
pub(crate) fn reading(input: &Input) -> Ident {
    let mut name = "__R".to_owned();
    let taken = |name: &str| {
        input.generics.type_params().any(|parameter| parameter.ident == name)
            || input.generics.const_params().any(|parameter| parameter.ident == name)
    };
    while taken(&name) {
        name.push('_');
    }
    Ident::new(&name, Span::call_site())
}

/// A local name that no name of the user meets.
pub(crate) fn local(name: &str, span: Span) -> Ident {
    Ident::new(name, Span::mixed_site().located_at(span))
}

/// That place, as if the derive had written what stands there.
pub(crate) fn at(span: Span) -> Span {
    Span::call_site().located_at(span)
}

/// The user's tokens as the derive's own: lints that the user has set against naming deprecated fields and
/// types are for what the user writes.
pub(crate) fn of_the_derive(tokens: TokenStream) -> TokenStream {
    respanned(tokens, &at)
}

fn respanned(tokens: TokenStream, span: &impl Fn(Span) -> Span) -> TokenStream {
    tokens
        .into_iter()
        .map(|mut token| {
            let place = span(token.span());
            if let TokenTree::Group(group) = &token {
                token = Group::new(group.delimiter(), respanned(group.stream(), span)).into();
            }
            // `$crate` means the crate that its own span comes from.
            if !matches!(&token, TokenTree::Ident(ident) if ident == "$crate") {
                token.set_span(place);
            }
            token
        })
        .collect()
}

/// The call that measures one field. Only what an error is about points at the field: clippy takes a sum for
/// the user's own if both ends of it do.
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

pub(crate) fn member_name(member: &Member) -> String {
    match member {
        Member::Named(ident) => ident.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}
