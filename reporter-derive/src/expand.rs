//! The impl. Everything wrong has been found before: writing it cannot fail.
//!
//! All names are hygienic by prefix (`__R`, `__ops`, `__field_0`) and all paths absolute, since the type's
//! own parameters and fields may be called anything.

use proc_macro2::{TokenStream, TokenTree};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{DeriveInput, Error, Generics, Ident, Member, Path, Type, WherePredicate, parse_quote};

use crate::ast::{Body, Field, Input, Variant};
use crate::attr::Rule;
use crate::check::check;

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
    quote!(#(#messages)* #stub)
}

fn expand(input: &Input) -> TokenStream {
    let krate = krate(input);
    let needs_walk = input.fields().filter_map(|field| {
        let ty = &field.ty;
        match field.rule {
            Rule::Measure => Some(quote_spanned!(field.span=> <#ty as #krate::MallocSizeOf>::NEEDS_WALK)),
            Rule::With(_) | Rule::Each(_) => Some(quote!(true)),
            Rule::Ignore => None,
        }
    });
    let needs_walk = joined(needs_walk, quote!(||), quote!(false));
    let body = match &input.body {
        Body::Struct(fields) => {
            let parts = fields.iter().filter_map(|field| {
                let member = &field.member;
                let name = member_name(member);
                let value = if input.packed { quote!(&{ self.#member }) } else { quote!(&self.#member) };
                part(field, &krate, &quote!(#krate::Edge::Field(#name)), &value)
            });
            joined(parts, quote!(+), quote!(0))
        }
        Body::Enum(variants) if variants.is_empty() => quote!(match *self {}),
        Body::Enum(variants) => {
            let arms = variants.iter().map(|variant| arm(variant, &krate));
            quote!(match self { #(#arms)* })
        }
    };
    implementation(input, &bounded(input, &krate), &needs_walk, &body)
}

fn implementation(
    input: &Input,
    generics: &Generics,
    needs_walk: &TokenStream,
    body: &TokenStream,
) -> TokenStream {
    let (krate, ident) = (krate(input), &input.ident);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        #[allow(deprecated, unused_qualifications, reason = "fields may be deprecated, and paths must be absolute")]
        impl #impl_generics #krate::MallocSizeOf for #ident #type_generics #where_clause {
            const NEEDS_WALK: bool = #needs_walk;

            #[inline]
            #[allow(unused_variables, reason = "plain data needs no ops")]
            fn size_of_excluding_this<__R: #krate::Reading>(
                &self,
                __ops: &mut #krate::MallocSizeOfOps<__R>,
            ) -> usize {
                #body
            }
        }
    }
}

fn krate(input: &Input) -> Path {
    input.attributes.krate.clone().unwrap_or_else(|| parse_quote!(::memory_reporter))
}

fn arm(variant: &Variant, krate: &Path) -> TokenStream {
    let ident = &variant.ident;
    let variant_name = ident.unraw().to_string();
    let measured = variant.fields.iter().filter(|field| !field.rule.is_ignored());
    let (bindings, parts): (Vec<_>, Vec<_>) = measured
        .filter_map(|field| {
            let member = &field.member;
            let name = member_name(member);
            let binding = binding(member);
            let edge = quote!(#krate::Edge::VariantField(#variant_name, #name));
            let part = part(field, krate, &edge, &quote!(#binding))?;
            Some((quote!(#member: #binding), part))
        })
        .unzip();
    let sum = joined(parts.into_iter(), quote!(+), quote!(0));
    quote!(Self::#ident { #(#bindings,)* .. } => #sum,)
}

/// The call that measures one field.
fn part(field: &Field, krate: &Path, edge: &TokenStream, value: &TokenStream) -> Option<TokenStream> {
    let ops = quote!(#krate::MallocSizeOfOps::<__R>);
    match &field.rule {
        Rule::Ignore => None,
        Rule::Measure => Some(quote_spanned!(field.span=> #ops::part(__ops, #edge, #value))),
        Rule::With(path) => Some(quote! {
            #ops::part_with(__ops, #edge, #value, |__value, __ops| #path(__value, __ops))
        }),
        Rule::Each(path) => Some(quote! {
            #ops::part_with(__ops, #edge, #value, |__value, __ops| {
                #krate::MallocSizeOfEach::size_of_each(__value, __ops, |__each, __ops| #path(__each, __ops))
            })
        }),
    }
}

fn joined(
    mut parts: impl Iterator<Item = TokenStream>,
    operator: TokenStream,
    none: TokenStream,
) -> TokenStream {
    let Some(first) = parts.next() else { return none };
    quote!(#first #(#operator #parts)*)
}

fn member_name(member: &Member) -> String {
    match member {
        Member::Named(ident) => ident.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

fn binding(member: &Member) -> Ident {
    format_ident!("__field_{}", member_name(member))
}

/// The type's generics with the bounds of the impl: those asked for, or `MallocSizeOf` for each type
/// parameter that a measured field names.
fn bounded(input: &Input, krate: &Path) -> Generics {
    let mut generics = input.generics.clone();
    let bounds: Vec<WherePredicate> = match &input.attributes.bound {
        Some(bounds) => bounds.clone(),
        None => input
            .generics
            .type_params()
            .map(|parameter| &parameter.ident)
            .filter(|parameter| {
                input.fields().any(|field| {
                    matches!(field.rule, Rule::Measure)
                        && !is_phantom(&field.ty)
                        && names(&field.ty, parameter)
                })
            })
            .map(|parameter| parse_quote!(#parameter: #krate::MallocSizeOf))
            .collect(),
    };
    if !bounds.is_empty() {
        generics.make_where_clause().predicates.extend(bounds);
    }
    generics
}

fn is_phantom(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|s| s.ident == "PhantomData"))
}

fn names(ty: &Type, parameter: &Ident) -> bool {
    fn within(tokens: TokenStream, parameter: &Ident) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => ident == *parameter,
            TokenTree::Group(group) => within(group.stream(), parameter),
            _ => false,
        })
    }
    within(quote!(#ty), parameter)
}
