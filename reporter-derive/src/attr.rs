//! The attributes `#[malloc_size_of(...)]` on the type, its variants and its fields.

use proc_macro2::TokenTree;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Error, ExprPath, Ident, LitStr, Member, Meta, Path, Result, Token, Type, TypePath,
    WherePredicate,
};

const EXAMPLE: &str = "expected words in parentheses, such as `#[malloc_size_of(ignore = \"reason\")]`";

/// How the derive measures a field.
pub(crate) enum FieldRule {
    Measure,
    Ignore,
    With(ExprPath),
    Each(ExprPath),
    StatedBy(ExprPath),
}

impl FieldRule {
    pub(crate) fn is_ignored(&self) -> bool {
        matches!(self, Self::Ignore)
    }

    /// Whether a function of the user measures the field. The field's type then needs no `MallocSizeOf`.
    pub(crate) fn is_function(&self) -> bool {
        matches!(self, Self::With(_) | Self::Each(_) | Self::StatedBy(_))
    }
}

/// The field of the type's `sizes` to which the derive adds this field.
#[derive(Default)]
pub(crate) struct SizeDestination {
    pub(crate) add_to: Option<Member>,
    pub(crate) split: Option<()>,
    /// The attribute word that sets this destination, for the position of an error.
    pub(crate) word: Option<Ident>,
}

/// The attributes of a field or variant.
pub(crate) struct FieldAttributes {
    pub(crate) rule: FieldRule,
    pub(crate) destination: SizeDestination,
    /// The function that returns a private field of a mirrored type.
    pub(crate) getter: Option<ExprPath>,
}

/// The item that has an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttributePlace {
    Container,
    Variant,
    Field,
}

#[derive(Default)]
pub(crate) struct ContainerAttributes {
    pub(crate) bound: Option<Vec<WherePredicate>>,
    pub(crate) krate: Option<Path>,
    pub(crate) sizes: Option<Type>,
    /// The name of the method that returns the size of a value.
    pub(crate) size_method: Option<Ident>,
    /// The foreign type that the type mirrors.
    pub(crate) remote: Option<TypePath>,
    /// The word `rest`, if the mirror leaves out fields or variants.
    pub(crate) rest: Option<Ident>,
}

impl ContainerAttributes {
    pub(crate) fn read(attributes: &[Attribute], errors: &mut Vec<Error>) -> Self {
        let mut found = Self::default();
        read(attributes, errors, |word, input| {
            if word == "bound" {
                let text: LitStr = value(word, input, "bound = \"T: Bound\"")?;
                let predicates = text.parse_with(Punctuated::<_, Token![,]>::parse_terminated);
                let predicates = predicates.map_err(|error| {
                    Error::new(text.span(), format!("expected bounds, as in `bound = \"T: Bound\"`: {error}"))
                })?;
                once(word, &mut found.bound, predicates.into_iter().collect())
            } else if word == "crate" {
                let path = value(word, input, "crate = path::to::memory_reporter")?;
                once(word, &mut found.krate, path)
            } else if word == "sizes" {
                let sizes = value(word, input, "sizes = TheSizes")?;
                once(word, &mut found.sizes, sizes)
            } else if word == "size_method" {
                let name = value(word, input, "size_method = size")?;
                once(word, &mut found.size_method, name)
            } else if word == "remote" {
                let remote = value(word, input, "remote = path::to::Type")?;
                once(word, &mut found.remote, remote)
            } else if word == "rest" {
                reason(word, input, "rest = \"why the other fields are not measured\"")?;
                once(word, &mut found.rest, word.clone())
            } else {
                Err(unknown(word, AttributePlace::Container))
            }
        });
        found
    }
}

/// Reads the attributes of a field or variant.
pub(crate) fn read_field(
    attributes: &[Attribute],
    place: AttributePlace,
    errors: &mut Vec<Error>,
) -> FieldAttributes {
    let mut found = None;
    let mut destination = SizeDestination::default();
    let mut getter = None;
    read(attributes, errors, |word, input| {
        if place == AttributePlace::Field && (word == "add_to" || word == "split") {
            destination.word.get_or_insert_with(|| word.clone());
            return if word == "split" {
                once(word, &mut destination.split, ())
            } else {
                let FieldName(name) = value(word, input, "add_to = a_field_of_the_sizes")?;
                once(word, &mut destination.add_to, name)
            };
        }
        if place == AttributePlace::Field && word == "getter" {
            let path = value(word, input, "getter = path::to::function")?;
            return once(word, &mut getter, path);
        }
        let rule = if word == "ignore" {
            reason(word, input, "ignore = \"why it is not measured\"")?;
            FieldRule::Ignore
        } else if place == AttributePlace::Field && word == "with" {
            FieldRule::With(value(word, input, "with = path::to::function")?)
        } else if place == AttributePlace::Field && word == "each" {
            FieldRule::Each(value(word, input, "each = path::to::function")?)
        } else if place == AttributePlace::Field && word == "stated_by" {
            FieldRule::StatedBy(value(word, input, "stated_by = path::to::function")?)
        } else if place == AttributePlace::Field && word == "conditional" {
            // The word `conditional` only documents the default: the rule is the same as without the word.
            FieldRule::Measure
        } else {
            return Err(unknown(word, place));
        };
        if found.replace(rule).is_some() {
            return Err(Error::new(
                word.span(),
                "a field takes only one of `ignore`, `with`, `each`, `stated_by` and `conditional`, and only once",
            ));
        }
        Ok(())
    });
    FieldAttributes { rule: found.unwrap_or(FieldRule::Measure), destination, getter }
}

pub(crate) fn is_packed(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("repr")).any(|attribute| {
        let mut packed = false;
        // The compiler checks `repr`; the derive only looks for the word `packed`.
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

/// Calls `each` with each word of the attributes. An error in one word does not hide the errors in later words.
fn read(
    attributes: &[Attribute],
    errors: &mut Vec<Error>,
    mut item: impl FnMut(&Ident, ParseStream<'_>) -> Result<()>,
) {
    for attribute in attributes {
        if attribute.path().is_ident("ignore_malloc_size_of") {
            errors.push(Error::new_spanned(attribute, "write `#[malloc_size_of(ignore = \"reason\")]`"));
        } else if attribute.path().is_ident("malloc_size_of") {
            let Meta::List(list) = &attribute.meta else {
                errors.push(Error::new_spanned(attribute, EXAMPLE));
                continue;
            };
            if list.tokens.is_empty() {
                errors.push(Error::new_spanned(
                    attribute,
                    "the attribute is empty: write a word, as in `#[malloc_size_of(ignore = \"reason\")]`",
                ));
            }
            let outcome = attribute.parse_args_with(|input: ParseStream<'_>| {
                while !input.is_empty() {
                    let outcome = one(input, &mut item);
                    errors.extend(outcome.err());
                    // After an error, continue with the next word.
                    while !input.is_empty() && !input.peek(Token![,]) {
                        input.parse::<TokenTree>()?;
                    }
                    input.parse::<Option<Token![,]>>()?;
                }
                Ok(())
            });
            errors.extend(outcome.err());
        }
    }
}

fn one(input: ParseStream<'_>, item: impl FnOnce(&Ident, ParseStream<'_>) -> Result<()>) -> Result<()> {
    let word = Ident::parse_any(input).map_err(|error| Error::new(error.span(), EXAMPLE))?;
    item(&word, input)?;
    if !input.is_empty() && !input.peek(Token![,]) {
        return Err(input.error(format!("unexpected text after `{word}`: put a comma between two words")));
    }
    Ok(())
}

fn once<T>(word: &Ident, slot: &mut Option<T>, value: T) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new(word.span(), format!("`{word}` is given twice"))),
    }
}

/// Reads a reason, which must not be empty.
fn reason(word: &Ident, input: ParseStream<'_>, example: &str) -> Result<()> {
    let reason: LitStr = value(word, input, example)?;
    if reason.value().trim().is_empty() {
        return Err(Error::new(
            reason.span(),
            "the reason is empty: write why the field or variant is not measured",
        ));
    }
    Ok(())
}

fn value<T: syn::parse::Parse>(word: &Ident, input: ParseStream<'_>, example: &str) -> Result<T> {
    let wanted = |_| Error::new(word.span(), format!("write `#[malloc_size_of({example})]`"));
    input.parse::<Token![=]>().map_err(wanted)?;
    input.parse().map_err(wanted)
}

/// A field's name, bare or in quotes.
struct FieldName(Member);

impl syn::parse::Parse for FieldName {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(LitStr) { input.parse::<LitStr>()?.parse().map(Self) } else { input.parse().map(Self) }
    }
}

fn unknown(word: &Ident, place: AttributePlace) -> Error {
    let known = match place {
        AttributePlace::Container => {
            "a type takes `bound = \"...\"`, `crate = path`, `sizes = Type`, `size_method = name`, `remote = path` and `rest = \"reason\"`"
        }
        AttributePlace::Variant => "a variant takes `ignore = \"reason\"`",
        AttributePlace::Field => {
            "a field takes `ignore = \"reason\"`, `with = path`, `each = path`, `stated_by = path`, `conditional`, `add_to = name`, `split` and `getter = path`"
        }
    };
    let skips = ["skip", "skip_all", "ignored", "ignore_malloc_size_of"].iter().any(|other| word == other);
    let message = if skips && place != AttributePlace::Container {
        "write `ignore = \"reason\"`: a reason is required".to_owned()
    } else {
        format!("unknown word `{word}`: {known}")
    };
    Error::new(word.span(), message)
}
