//! The bounds of the impl. They are for type parameters, never for field types: in a recursive type, a bound on a
//! field type would depend on itself.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    AngleBracketedGenericArguments, GenericArgument, Generics, Ident, Path, PathArguments, Type,
    TypeParamBound, TypePath, WherePredicate, parse_quote,
};

use crate::ast::TypeInput;
use crate::attr::FieldRule;

/// The type's generics with the bounds of the attribute. Without the attribute, each parameter (`T`) and each type
/// of a parameter (`T::Item`) that a measured field owns gets the bound `MallocSizeOf`.
pub(crate) fn bounded(input: &TypeInput, krate: &Path) -> Generics {
    let mut generics = input.generics.clone();
    let bounds = match &input.attributes.bound {
        Some(bounds) => bounds.clone(),
        None => derived(input, krate),
    };
    if !bounds.is_empty() {
        generics.make_where_clause().predicates.extend(bounds);
    }
    generics
}

fn derived(input: &TypeInput, krate: &Path) -> Vec<WherePredicate> {
    let parameters: Vec<&Ident> = input.generics.type_params().map(|parameter| &parameter.ident).collect();
    let mut owned = OwnedParameters { parameters, found: Vec::new() };
    for field in input.fields().filter(|field| matches!(field.rule, FieldRule::Measure)) {
        owned.add_type(&field.ty);
    }
    // The impl copies the fields of a packed struct.
    let copy = input.packed.then(|| quote!(+ ::core::marker::Copy));
    owned.found.iter().map(|ty| parse_quote!(#ty: #krate::MallocSizeOf #copy)).collect()
}

/// Types of std that own no value of their type parameter.
const POINTERS: [&str; 4] = ["PhantomData", "NonNull", "AtomicPtr", "Weak"];

/// Whether the type owns nothing, for any parameters: a function pointer, or a type that contains only function
/// pointers. Impls cannot cover all function pointers: each signature with lifetimes is a separate type.
pub(crate) fn owns_nothing(ty: &Type) -> bool {
    match ty {
        Type::FnPtr(_) => true,
        Type::Array(array) => owns_nothing(&array.elem),
        Type::Paren(paren) => owns_nothing(&paren.elem),
        Type::Group(group) => owns_nothing(&group.elem),
        Type::Tuple(tuple) => !tuple.elems.is_empty() && tuple.elems.iter().all(owns_nothing),
        Type::Path(path) => match path.path.segments.last() {
            Some(last) if path.qself.is_none() && last.ident == "Option" => match &last.arguments {
                PathArguments::AngleBracketed(arguments) => {
                    matches!(arguments.args.first(), Some(GenericArgument::Type(ty)) if owns_nothing(ty))
                }
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}

/// The parameters (`T`) and the types of parameters (`T::Item`) that fields own, in order of occurrence.
struct OwnedParameters<'a> {
    parameters: Vec<&'a Ident>,
    found: Vec<Type>,
}

impl OwnedParameters<'_> {
    fn add_type(&mut self, ty: &Type) {
        match ty {
            // These types own nothing, so the types that they contain need not be measurable.
            Type::Reference(_) | Type::Ptr(_) | Type::FnPtr(_) | Type::Never(_) => {}
            Type::Array(array) => self.add_type(&array.elem),
            Type::Slice(slice) => self.add_type(&slice.elem),
            Type::Paren(paren) => self.add_type(&paren.elem),
            Type::Group(group) => self.add_type(&group.elem),
            Type::Tuple(tuple) => tuple.elems.iter().for_each(|element| self.add_type(element)),
            Type::Path(path) => self.add_path(path),
            Type::TraitObject(object) => object.bounds.iter().for_each(|bound| match bound {
                // A closure does not own its arguments and result.
                TypeParamBound::Trait(bound) if is_closure(&bound.path) => {}
                bound => self.add_named_in(bound.to_token_stream()),
            }),
            // For other types, such as macros, take every parameter that their tokens name.
            other => self.add_named_in(other.to_token_stream()),
        }
    }

    fn add_named_in(&mut self, tokens: TokenStream) {
        for parameter in self.parameters.clone() {
            if names(tokens.clone(), parameter) {
                self.add(parse_quote!(#parameter));
            }
        }
    }

    fn add_path(&mut self, ty: &TypePath) {
        let segments = &ty.path.segments;
        if segments.last().is_some_and(|last| POINTERS.iter().any(|pointer| last.ident == pointer)) {
            return;
        }
        if is_of_parameter(ty, &self.parameters) {
            return self.add(Type::Path(ty.clone()));
        }
        if ty.qself.is_some() {
            return;
        }
        for segment in segments {
            if let PathArguments::AngleBracketed(arguments) = &segment.arguments {
                self.add_arguments(arguments);
            }
        }
    }

    fn add_arguments(&mut self, arguments: &AngleBracketedGenericArguments) {
        for argument in &arguments.args {
            match argument {
                GenericArgument::Type(ty) => self.add_type(ty),
                GenericArgument::AssocType(assoc) => self.add_type(&assoc.ty),
                _ => {}
            }
        }
    }

    fn add(&mut self, ty: Type) {
        let text = ty.to_token_stream().to_string();
        if !self.found.iter().any(|found| found.to_token_stream().to_string() == text) {
            self.found.push(ty);
        }
    }
}

/// Whether the path is a parameter, or a type of a parameter, such as `T::Item` and `<T as Trait>::Type`. Such a type
/// belongs to `T`, but a value of this type need not contain a `T`.
pub(crate) fn is_of_parameter(ty: &TypePath, parameters: &[&Ident]) -> bool {
    match &ty.qself {
        Some(own) => parameters.iter().any(|parameter| names(own.ty.to_token_stream(), parameter)),
        None => {
            ty.path.leading_colon.is_none()
                && ty.path.segments.first().is_some_and(|first| parameters.contains(&&first.ident))
        }
    }
}

/// Whether the path is a closure trait with its arguments in parentheses, such as `Fn(A)`.
fn is_closure(path: &Path) -> bool {
    path.segments.last().is_some_and(|last| matches!(last.arguments, PathArguments::Parenthesized(_)))
}

fn names(tokens: TokenStream, parameter: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == *parameter,
        TokenTree::Group(group) => names(group.stream(), parameter),
        _ => false,
    })
}
