//! Names and spans of the tokens that the derive writes.
//!
//! The type's parameters and fields may have any name, the type may stand inside another macro, and its crate may forbid
//! lints. So all paths are absolute, even those of `bool` and `usize`; local names are hygienic, and the one type
//! parameter is fresh; every token points at its field, but counts as written by the derive, so that neither lints nor a
//! macro's hygiene apply to it.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::{Ident, Member, Path, parse_quote};

use crate::ast::TypeInput;

pub(crate) fn krate(input: &TypeInput) -> Path {
    input.attributes.krate.clone().unwrap_or_else(|| parse_quote!(::memory_reporter))
}

/// The method's type parameter, whose name differs from all parameters of the type: items have no hygiene.
pub(crate) fn reading(input: &TypeInput) -> Ident {
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

/// A local name that cannot clash with a name of the user.
pub(crate) fn local(name: &str, span: Span) -> Ident {
    Ident::new(name, Span::mixed_site().located_at(span))
}

/// The same place, as if the derive had written the code there.
pub(crate) fn at(span: Span) -> Span {
    Span::call_site().located_at(span)
}

/// The user's tokens as the derive's own: lints against deprecated fields and types are for the user's code.
pub(crate) fn as_own_tokens(tokens: TokenStream) -> TokenStream {
    respanned(tokens, &at)
}

pub(crate) fn respanned(tokens: TokenStream, span: &impl Fn(Span) -> Span) -> TokenStream {
    tokens
        .into_iter()
        .map(|mut token| {
            let place = span(token.span());
            if let TokenTree::Group(group) = &token {
                token = Group::new(group.delimiter(), respanned(group.stream(), span)).into();
            }
            // `$crate` means the crate of its span, which must stay.
            if !matches!(&token, TokenTree::Ident(ident) if ident == "$crate") {
                token.set_span(place);
            }
            token
        })
        .collect()
}

/// A field's name, or its number.
pub(crate) fn member_name(member: &Member) -> String {
    match member {
        Member::Named(ident) => ident.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}
