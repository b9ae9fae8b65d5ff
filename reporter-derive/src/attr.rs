//! What the attributes say: `#[malloc_size_of(...)]` on the type, its variants and its fields.

use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, LitStr, Path, Result, Token, WherePredicate};

/// How a field is measured.
pub(crate) enum Rule {
    Measure,
    Ignore,
    With(Path),
    Each(Path),
}

impl Rule {
    pub(crate) fn is_ignored(&self) -> bool {
        matches!(self, Self::Ignore)
    }
}

/// Where an attribute stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Container,
    Variant,
    Field,
}

#[derive(Default)]
pub(crate) struct ContainerAttributes {
    pub(crate) bound: Option<Vec<WherePredicate>>,
    pub(crate) krate: Option<Path>,
}

impl ContainerAttributes {
    pub(crate) fn read(attributes: &[Attribute], errors: &mut Vec<Error>) -> Self {
        let mut found = Self::default();
        read(attributes, errors, |meta| {
            if meta.path.is_ident("bound") {
                let text = string(&meta, "bound = \"T: Bound\"")?;
                let predicates = text.parse_with(Punctuated::<_, Token![,]>::parse_terminated)?;
                once(&meta, &mut found.bound, predicates.into_iter().collect())
            } else if meta.path.is_ident("crate") {
                let path = path(&meta, "crate = path::to::memory_reporter")?;
                once(&meta, &mut found.krate, path)
            } else {
                Err(unknown(&meta, Place::Container))
            }
        });
        found
    }
}

/// The rule of a field or variant.
pub(crate) fn read_rule(attributes: &[Attribute], place: Place, errors: &mut Vec<Error>) -> Rule {
    let mut found = None;
    read(attributes, errors, |meta| {
        let rule = if meta.path.is_ident("ignore") {
            let reason = string(&meta, "ignore = \"why it is not measured\"")?;
            if reason.value().trim().is_empty() {
                return Err(Error::new(reason.span(), "the reason is empty: say why it is not measured"));
            }
            Rule::Ignore
        } else if place == Place::Field && meta.path.is_ident("with") {
            Rule::With(path(&meta, "with = path::to::function")?)
        } else if place == Place::Field && meta.path.is_ident("each") {
            Rule::Each(path(&meta, "each = path::to::function")?)
        } else {
            return Err(unknown(&meta, place));
        };
        if found.replace(rule).is_some() {
            return Err(meta.error("only one of `ignore`, `with` and `each` can hold, and only once"));
        }
        Ok(())
    });
    found.unwrap_or(Rule::Measure)
}

pub(crate) fn is_packed(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("repr")).any(|attribute| {
        let mut packed = false;
        // What `repr` says is the compiler's to judge: only the word is looked for.
        let _ = attribute.parse_nested_meta(|meta| {
            packed |= meta.path.is_ident("packed");
            if meta.input.peek(syn::token::Paren) {
                let content;
                syn::parenthesized!(content in meta.input);
                content.parse::<proc_macro2::TokenStream>()?;
            }
            Ok(())
        });
        packed
    })
}

fn read(
    attributes: &[Attribute],
    errors: &mut Vec<Error>,
    mut item: impl FnMut(ParseNestedMeta<'_>) -> Result<()>,
) {
    for attribute in attributes {
        if attribute.path().is_ident("ignore_malloc_size_of") {
            errors.push(Error::new_spanned(attribute, "write `#[malloc_size_of(ignore = \"reason\")]`"));
        } else if attribute.path().is_ident("malloc_size_of") {
            let mut nothing = true;
            let outcome = attribute.parse_nested_meta(|meta| {
                nothing = false;
                item(meta)
            });
            if let Err(error) = outcome {
                errors.push(error);
            } else if nothing {
                errors.push(Error::new_spanned(attribute, "the attribute says nothing"));
            }
        }
    }
}

fn once<T>(meta: &ParseNestedMeta<'_>, slot: &mut Option<T>, value: T) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(meta.error(format!("`{}` is given twice", word(meta)))),
    }
}

fn string(meta: &ParseNestedMeta<'_>, example: &str) -> Result<LitStr> {
    let wanted = || meta.error(format!("write `#[malloc_size_of({example})]`"));
    meta.value().map_err(|_| wanted())?.parse().map_err(|_| wanted())
}

fn path(meta: &ParseNestedMeta<'_>, example: &str) -> Result<Path> {
    let wanted = || meta.error(format!("write `#[malloc_size_of({example})]`"));
    meta.value().map_err(|_| wanted())?.parse().map_err(|_| wanted())
}

fn unknown(meta: &ParseNestedMeta<'_>, place: Place) -> Error {
    let known = match place {
        Place::Container => "a type takes `bound = \"...\"` and `crate = path`",
        Place::Variant => "a variant takes `ignore = \"reason\"`",
        Place::Field => "a field takes `ignore = \"reason\"`, `with = path` and `each = path`",
    };
    let skips = ["skip", "skip_all", "ignored"].iter().any(|word| meta.path.is_ident(word));
    if skips && place != Place::Container {
        return meta.error("write `ignore = \"reason\"`: a reason is required");
    }
    meta.error(format!("`{}` is not known here: {known}", word(meta)))
}

fn word(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}
