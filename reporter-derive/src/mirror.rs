//! A mirror is a local type that repeats the fields of a foreign type, with `remote = path`.
//!
//! A mirror gets a function that measures the foreign type, instead of an impl. The compiler checks the mirror
//! against the foreign type: a pattern names every field of both types, and each field passes through a function
//! that requires equal types.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Generics, PathArguments, TypePath};

use crate::ast::{EnumVariant, TypeBody, TypeField, TypeInput};
use crate::hygiene::{as_own_tokens, at, krate, local, member_name, reading};

/// Writes the function `measure` of a mirror.
pub(crate) fn implementation(
    input: &TypeInput,
    remote: &TypePath,
    generics: &Generics,
    body: &TokenStream,
) -> TokenStream {
    let (krate, reading, ops) = (krate(input), reading(input), local("__ops", Span::call_site()));
    let (ident, visibility, value) =
        (as_own_tokens(input.ident.to_token_stream()), &input.visibility, value());
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let impl_generics = as_own_tokens(impl_generics.to_token_stream());
    let used = used(input);
    quote! {
        #[automatically_derived]
        impl #impl_generics #ident #type_generics #where_clause {
            /// The bytes of heap that a value of the mirrored type owns, without the value itself.
            #visibility fn measure<#reading: #krate::Reading>(
                #value: &#remote,
                #ops: &mut #krate::MallocSizeOfOps<#reading>,
            ) -> ::core::primitive::usize {
                #used
                #body
            }
        }
    }
}

/// The name of the function's argument.
pub(crate) fn value() -> TokenStream {
    local("__remote", Span::call_site()).into_token_stream()
}

/// The path of the foreign type in patterns, without type arguments.
pub(crate) fn pattern_path(remote: &TypePath) -> TokenStream {
    let mut path = remote.path.clone();
    if let Some(last) = path.segments.last_mut() {
        last.arguments = PathArguments::None;
    }
    path.into_token_stream()
}

/// A `let` that names all fields of a foreign struct and binds the measured fields.
pub(crate) fn bind(remote: &TypePath, input: &TypeInput, fields: &[TypeField]) -> TokenStream {
    let path = pattern_path(remote);
    let is_partial = input.attributes.rest.is_some() || fields.iter().any(|field| field.getter.is_some());
    let rest = is_partial.then(|| quote!(..));
    let bindings = fields.iter().filter(|field| field.getter.is_none()).map(|field| {
        let member = as_own_tokens(field.member.to_token_stream());
        let binding = if field.rule.is_ignored() { quote!(_) } else { binding(field) };
        quote!(#member: #binding,)
    });
    let value = value();
    // With the user's spans, the compiler lists missing fields by name. In a pattern with a macro's spans, the
    // compiler reports these fields as inaccessible.
    let pattern = quote_spanned!(remote.span()=> #path { #(#bindings)* #rest });
    quote!(let #pattern = #value;)
}

fn binding(field: &TypeField) -> TokenStream {
    local(&format!("__field_{}", member_name(&field.member)), field.span).into_token_stream()
}

/// A reference to a field of a foreign struct.
pub(crate) fn field(field: &TypeField) -> TokenStream {
    match &field.getter {
        Some(getter) => {
            let value = value();
            quote!(#getter(#value))
        }
        None => binding(field),
    }
}

/// A reference to a field. The compiler rejects it if its type differs from the type of the mirror's field.
pub(crate) fn same_type_reference(
    field: &TypeField,
    input: &TypeInput,
    reference: &TokenStream,
) -> TokenStream {
    let (krate, ty) = (krate(input), as_own_tokens(field.ty.to_token_stream()));
    let check = quote_spanned!(at(field.span)=> #krate::__private::as_mirror_type::<#ty, _>);
    quote!(#check(#reference))
}

/// The statement that names all variants of a foreign enum and their fields.
pub(crate) fn name_variants(remote: &TypePath, variants: &[EnumVariant]) -> TokenStream {
    let (path, value) = (pattern_path(remote), value());
    let arms = variants.iter().map(|variant| {
        let ident = as_own_tokens(variant.ident.to_token_stream());
        let members = variant.fields.iter().map(|field| as_own_tokens(field.member.to_token_stream()));
        quote!(#path::#ident { #(#members: _),* } => {})
    });
    quote!(match #value { #(#arms)* })
}

/// Code that never runs. It constructs and reads the mirror; without it the compiler would warn about dead code.
fn used(input: &TypeInput) -> TokenStream {
    let (shapes, is_enum) = match &input.body {
        TypeBody::Struct(fields) => (vec![(quote!(Self), fields.as_slice())], false),
        TypeBody::Enum(variants) => {
            let shape = |variant: &EnumVariant| as_own_tokens(variant.ident.to_token_stream());
            let shapes = variants.iter().map(|variant| {
                let ident = shape(variant);
                (quote!(Self::#ident), variant.fields.as_slice())
            });
            (shapes.collect(), true)
        }
    };
    let each = shapes.into_iter().map(|(path, fields)| {
        let members: Vec<_> =
            fields.iter().map(|field| as_own_tokens(field.member.to_token_stream())).collect();
        let bindings: Vec<_> = fields.iter().map(binding).collect();
        let types = fields.iter().map(|field| as_own_tokens(field.ty.to_token_stream()));
        let rest = is_enum.then(|| quote!(#[allow(unreachable_patterns)] _ => {}));
        let construct =
            is_enum.then(|| quote!(let _ = |#(#bindings: #types),*| #path { #(#members: #bindings),* };));
        quote! {
            #construct
            let _ = |__mirror: &Self| match __mirror {
                #path { #(#members: #bindings),* } => { #(let _ = #bindings;)* }
                #rest
            };
        }
    });
    quote!(#(#each)*)
}
