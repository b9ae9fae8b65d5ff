//! Chooses the type that the compiler's error names if a field has a type without `MallocSizeOf`.
//!
//! The compiler ends an error about `MallocSizeOf` with a list of other types that implement the trait. It prints no
//! such list for a trait whose only impl has `do_not_recommend`, and such an error names the `Self` of that trait.
//! memory-reporter has two such traits. `<Foreign as Measurable>::Itself` is `Foreign` if it can be measured.
//! `<Foreign as MeasurableIn<Vec<Foreign>>>::Itself` is `Vec<Foreign>` if that type can be measured; otherwise the
//! error names `Foreign`.
//!
//! The derive knows types by their names only, and a user may have a `Vec` of their own. So the condition is the type
//! of the field itself, and a name only decides which part of this type the error names. Two parts, as in
//! `HashMap<Key, Value>`, need a condition each: `HashMap<Key, ()>` and `HashMap<(), Value>`. So the derive refuses a
//! field that is valid only if its type is a user's own `HashMap`, `BTreeMap` or `Result` that does not accept `()`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{GenericArgument, Ident, Path, PathArguments, Type, TypePath, parse_quote};

use crate::ast::TypeInput;
use crate::bounds::is_of_parameter;
use crate::hygiene::{as_own_tokens, at, krate};

/// The type of a field, written so that an error names the part without an impl.
pub(crate) fn blaming(ty: &Type, input: &TypeInput) -> TokenStream {
    let parameters: Vec<&Ident> = input.generics.type_params().map(|parameter| &parameter.ident).collect();
    // Bounds that the user wrote may be about a whole type, without bounds on its parts.
    let has_bounds = input.attributes.bound.is_some() || input.generics.where_clause.is_some();
    let mut parts = Vec::new();
    add_parts(ty, &parameters, has_bounds, &mut parts);

    let (krate, whole) = (krate(input), as_own_tokens(ty.to_token_stream()));
    match &parts[..] {
        [part] if has_bounds || !matches!(ty, Type::Tuple(_)) => part.checked(&krate, "Itself", None),
        parts => parts.iter().fold(whole, |checked, part| part.checked(&krate, "And", Some(checked))),
    }
}

/// A part of a field's type that may have no impl.
struct BlamedPart {
    part: Type,
    /// The type around the part that can be measured only if the part can. `None` stands for the part itself.
    within: Option<Type>,
}

impl BlamedPart {
    /// An associated type of this part that exists only if the part can be measured.
    fn checked(&self, krate: &Path, item: &str, argument: Option<TokenStream>) -> TokenStream {
        let own = |ty: &Type| as_own_tokens(ty.to_token_stream());
        let part = own(&self.part);
        // The compiler points at the code from the first token to the last token.
        let (first, last) = (at(self.part.span()), part.clone().into_iter().last());
        let last = last.map_or(first, |token| token.span());
        let item = Ident::new(item, last);
        let item = argument.map_or_else(|| item.to_token_stream(), |ty| quote_spanned!(last=> #item<#ty>));
        let name = match &self.within {
            Some(within) => {
                let within = own(within);
                quote!(MeasurableIn<#within>)
            }
            None => quote!(Measurable),
        };
        let start = quote_spanned!(first=> <);
        quote!(#start #part as #krate::__private::#name>::#item)
    }
}

fn add_parts(ty: &Type, parameters: &[&Ident], has_bounds: bool, blamed: &mut Vec<BlamedPart>) {
    let whole = || BlamedPart { part: ty.clone(), within: None };
    let (mut parts, mut is_std) = (Vec::new(), true);
    match contents(&mut ty.clone(), parameters) {
        TypeContents::Unknown => return blamed.push(whole()),
        // No crate has tuples of its own, so each element is checked alone.
        TypeContents::Inside(elements) if matches!(ty, Type::Tuple(_)) && !has_bounds => {
            return elements.iter().for_each(|element| add_parts(element, parameters, has_bounds, blamed));
        }
        _ => visit(&mut ty.clone(), parameters, &mut is_std, &mut |part| parts.push(part.clone())),
    }
    match parts.len() {
        0 if is_std => {}
        1 => blamed.extend(parts.into_iter().map(|part| BlamedPart { part, within: Some(ty.clone()) })),
        2.. if !has_bounds => blamed.extend(
            parts
                .into_iter()
                .enumerate()
                .map(|(nth, part)| BlamedPart { part, within: Some(with_one_part(ty, nth, parameters)) }),
        ),
        _ => blamed.push(whole()),
    }
}

/// The type with one of its parts. An argument beside the one with this part becomes `()`, if it has a part of its own.
fn with_one_part(ty: &Type, kept: usize, parameters: &[&Ident]) -> Type {
    let mut within = ty.clone();
    keep_part(&mut within, kept, parameters);
    within
}

fn keep_part(ty: &mut Type, kept: usize, parameters: &[&Ident]) {
    let (TypeContents::Inside(inside) | TypeContents::OfContainer(inside)) = contents(ty, parameters) else {
        return;
    };
    let mut before = 0;
    for argument in inside {
        let mut parts = 0;
        visit(argument, parameters, &mut true, &mut |_| parts += 1);
        if (before..before + parts).contains(&kept) {
            keep_part(argument, kept - before, parameters);
        } else if parts > 0 {
            *argument = parse_quote!(());
        }
        before += parts;
    }
}

/// Calls `each` with the parts that may have no impl, and sets `is_std` to `false` for a container that may be another
/// crate's.
fn visit(ty: &mut Type, parameters: &[&Ident], is_std: &mut bool, each: &mut dyn FnMut(&mut Type)) {
    let inside = match contents(ty, parameters) {
        TypeContents::Measurable => return,
        TypeContents::Unknown => return each(ty),
        TypeContents::Inside(inside) => inside,
        TypeContents::OfContainer(inside) => {
            *is_std = false;
            inside
        }
    };
    for part in inside {
        visit(part, parameters, is_std, each);
    }
}

/// The derive's knowledge of a type, from its name.
enum TypeContents<'a> {
    /// Certainly has an impl.
    Measurable,
    Unknown,
    /// Has an impl if all these types have one.
    Inside(Vec<&'a mut Type>),
    /// The same for a type of std that other crates have under the same name, such as `Mutex`.
    OfContainer(Vec<&'a mut Type>),
}

fn contents<'a>(ty: &'a mut Type, parameters: &[&Ident]) -> TypeContents<'a> {
    match ty {
        Type::Reference(_) | Type::Ptr(_) | Type::FnPtr(_) | Type::Never(_) => TypeContents::Measurable,
        Type::Array(array) => TypeContents::Inside(vec![&mut array.elem]),
        Type::Slice(slice) => TypeContents::Inside(vec![&mut slice.elem]),
        Type::Paren(paren) => TypeContents::Inside(vec![&mut paren.elem]),
        Type::Group(group) => TypeContents::Inside(vec![&mut group.elem]),
        Type::Tuple(tuple) if tuple.elems.len() <= MOST_ELEMENTS => {
            TypeContents::Inside(tuple.elems.iter_mut().collect())
        }
        // The derive bounds the parameters.
        Type::Path(path) if is_of_parameter(path, parameters) => TypeContents::Measurable,
        Type::Path(TypePath { qself: None, path, .. }) => contents_of_path(path),
        _ => TypeContents::Unknown,
    }
}

fn contents_of_path(path: &mut Path) -> TypeContents<'_> {
    let is_std = path.segments.first().is_some_and(|first| STD.iter().any(|name| first.ident == name));
    let is_one_name = path.leading_colon.is_none() && path.segments.len() == 1;
    let Some(last) = path.segments.last_mut().filter(|_| is_std || is_one_name) else {
        return TypeContents::Unknown;
    };
    if MEASURABLE.iter().any(|name| last.ident == name) {
        return TypeContents::Measurable;
    }
    let container = CONTAINERS.iter().find(|(name, ..)| last.ident == name);
    let (Some((_, measured, is_only_in_std)), PathArguments::AngleBracketed(arguments)) =
        (container, &mut last.arguments)
    else {
        return TypeContents::Unknown;
    };
    let types = arguments.args.iter_mut().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    let inside: Vec<&mut Type> = types.take(*measured).collect();
    match inside.len() {
        0 => TypeContents::Unknown,
        _ if is_std || *is_only_in_std => TypeContents::Inside(inside),
        _ => TypeContents::OfContainer(inside),
    }
}

const STD: [&str; 3] = ["std", "alloc", "core"];

/// The longest tuple with an impl.
const MOST_ELEMENTS: usize = 12;

/// Types with an impl, for any arguments.
#[rustfmt::skip]
const MEASURABLE: [&str; 21] = [
    "bool", "char", "str", "String", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128",
    "isize", "f32", "f64", "PhantomData", "Weak", "NonNull",
];

/// Containers of std, the number of arguments that they measure, and whether other crates rarely use the name. `Pin` is
/// missing, since it has impls for some pointers only.
const CONTAINERS: [(&str, usize, bool); 18] = [
    ("Vec", 1, true),
    ("VecDeque", 1, true),
    ("LinkedList", 1, true),
    ("BinaryHeap", 1, true),
    ("BTreeSet", 1, true),
    ("BTreeMap", 2, true),
    ("HashSet", 1, false),
    ("HashMap", 2, false),
    ("Option", 1, true),
    ("Result", 2, false),
    ("Box", 1, true),
    ("Rc", 1, true),
    ("Arc", 1, false),
    ("RefCell", 1, true),
    ("OnceCell", 1, false),
    ("OnceLock", 1, false),
    ("Mutex", 1, false),
    ("RwLock", 1, false),
];
