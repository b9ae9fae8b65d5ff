//! Writes the impls. Writing cannot fail, since `check` has found all faults.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{DeriveInput, Error, Generics, Ident};

use crate::ast::TypeInput;
use crate::attr::FieldRule;
use crate::body::{body, needs_walk, part};
use crate::bounds::{bounded, owns_nothing};
use crate::check::check;
use crate::group::{PartJoin, chain};
use crate::hygiene::{as_own_tokens, krate, local, reading};
use crate::mirror;
use crate::split;

/// The whole derive: turns a type's tokens into its impls. For a faulty type, returns the errors and then an empty
/// impl.
pub(crate) fn derive(tokens: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(tokens) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Vec::new();
    let input = TypeInput::read(&input, &mut errors);
    check(&input, &mut errors);
    if errors.is_empty() {
        return expand(&input);
    }
    let messages = errors.iter().map(Error::to_compile_error);
    let stub = implementation(&input, &input.generics, &quote!(false), &quote!(0));
    let split_stub = split::stub(&input);
    quote!(#(#messages)* #stub #split_stub)
}

fn expand(input: &TypeInput) -> TokenStream {
    let needs_walk = input.fields().filter_map(|field| match field.rule {
        FieldRule::Measure if owns_nothing(&field.ty) => None,
        FieldRule::Measure => Some(needs_walk(field, input)),
        FieldRule::With(_) | FieldRule::Each(_) | FieldRule::StatedBy(_) => Some(quote!(true)),
        FieldRule::Ignore => None,
    });
    let needs_walk = chain(needs_walk.collect(), &quote!(||), &quote!(false));
    let sum = PartJoin { all: &|parts| chain(parts, &quote!(+), &quote!(0)), end: TokenStream::new() };
    let body = body(input, &|field, edge, value| part(field, input, edge, value), &sum);
    let generics = bounded(input, &krate(input));
    let sums = implementation(input, &generics, &needs_walk, &body);
    let splits = split::expand(input);
    let size = input.attributes.size_method.as_ref().map(|name| size_method(input, &generics, name));
    quote!(#sums #splits #size)
}

/// The method that returns the bytes of a value and its heap.
fn size_method(input: &TypeInput, generics: &Generics, name: &Ident) -> TokenStream {
    let krate = krate(input);
    let ident = as_own_tokens(input.ident.to_token_stream());
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let impl_generics = as_own_tokens(impl_generics.to_token_stream());
    quote! {
        #[automatically_derived]
        impl #impl_generics #ident #type_generics #where_clause {
            /// The requested bytes of this value and of its heap. Each shared block counts once.
            pub fn #name(&self) -> ::core::primitive::usize {
                ::core::mem::size_of::<Self>() + #krate::computed_size_of(self)
            }
        }
    }
}

fn implementation(
    input: &TypeInput,
    generics: &Generics,
    needs_walk: &TokenStream,
    body: &TokenStream,
) -> TokenStream {
    if let Some(remote) = &input.attributes.remote {
        return mirror::implementation(input, remote, generics, body);
    }
    let (krate, reading, ops) = (krate(input), reading(input), local("__ops", Span::call_site()));
    let ident = as_own_tokens(input.ident.to_token_stream());
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    // A bound of the derive may repeat one of the user's bounds. Lints on bounds must not report such a bound.
    let impl_generics = as_own_tokens(impl_generics.to_token_stream());
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::MallocSizeOf for #ident #type_generics #where_clause {
            const NEEDS_WALK: ::core::primitive::bool = #needs_walk;

            fn size_of_excluding_this<#reading: #krate::Reading>(
                &self,
                #ops: &mut #krate::MallocSizeOfOps<#reading>,
            ) -> ::core::primitive::usize {
                #body
            }
        }
    }
}
