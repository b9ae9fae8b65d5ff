//! Names and spans of the tokens that the derive writes.
//!
//! The type's parameters and fields may have any name, a macro may contain the type, and the user's crate may
//! forbid lints. So all paths are absolute, even the paths of `bool` and `usize`. Local names are hygienic, and the
//! type parameter of the derived method gets a fresh name. Every token has the source position of its field, but counts
//! as code of the derive, so that neither lints nor a macro's hygiene apply to the token.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::{Ident, Member, Path, parse_quote};

use crate::ast::TypeInput;

pub(crate) fn krate(input: &TypeInput) -> Path {
    input.attributes.krate.clone().unwrap_or_else(|| parse_quote!(::memory_reporter))
}

/// The name of the method's type parameter. It differs from the names of all parameters of the type, since items
/// have no hygiene.
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

/// A local name that cannot clash with the user's names.
pub(crate) fn local(name: &str, span: Span) -> Ident {
    Ident::new(name, Span::mixed_site().located_at(span))
}

/// The same source position, but with the hygiene of the derive's own code.
pub(crate) fn at(span: Span) -> Span {
    Span::call_site().located_at(span)
}

/// The user's tokens with spans of the derive, so that lints against deprecated fields and types do not apply to
/// them.
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
            // `$crate` means the crate of its span, so this token keeps its span.
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
