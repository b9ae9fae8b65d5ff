//! Checks of types and attributes that the parser accepts.

use syn::spanned::Spanned;
use syn::{Error, Type};

use crate::ast::{TypeBody, TypeField, TypeInput};
use crate::hygiene::member_name;

pub(crate) fn check(input: &TypeInput, errors: &mut Vec<Error>) {
    if let TypeBody::Enum(_) = input.body
        && input.packed
    {
        errors.push(Error::new(input.ident.span(), "an enum cannot be packed"));
    }
    check_mirror(input, errors);
    for field in input.fields() {
        check_destination(field, input, errors);
        if input.packed && (field.rule.is_function() || field.destination.split.is_some()) {
            errors.push(Error::new(
                field.span,
                "a field of a packed struct cannot be borrowed: use plain `Copy` fields, or `ignore`",
            ));
        }
    }
}

/// Rejects the attributes `getter` and `rest` on types that are not mirrors, and attributes that a mirror cannot
/// have.
fn check_mirror(input: &TypeInput, errors: &mut Vec<Error>) {
    let is_enum = matches!(input.body, TypeBody::Enum(_));
    for getter in input.fields().filter_map(|field| field.getter.as_ref()) {
        let message = if input.attributes.remote.is_none() {
            "`getter` is for mirrors: write `#[malloc_size_of(remote = path::to::Type)]` on the type"
        } else if is_enum {
            "the fields of an enum's variants are public: `getter` has no effect"
        } else {
            continue;
        };
        errors.push(Error::new(getter.span(), message));
    }
    if let Some(rest) = &input.attributes.rest
        && input.attributes.remote.is_none()
    {
        errors.push(Error::new(
            rest.span(),
            "`rest` is for mirrors: write `#[malloc_size_of(remote = path::to::Type)]` on the type",
        ));
    }
    if let Some(remote) = &input.attributes.remote {
        if input.attributes.sizes.is_some() {
            errors.push(Error::new(
                remote.span(),
                "a mirror has one size: `remote` and `sizes` exclude each other",
            ));
        }
        if let Some(name) = &input.attributes.size_method {
            errors.push(Error::new(
                name.span(),
                "a mirror has no values: `remote` and `size_method` exclude each other",
            ));
        }
        if input.packed {
            errors.push(Error::new(remote.span(), "a packed type cannot be mirrored"));
        }
    }
}

/// Requires that each field of a type with sizes is added to one of the sizes, or ignored for a reason: no field is
/// lost silently.
fn check_destination(field: &TypeField, input: &TypeInput, errors: &mut Vec<Error>) {
    let Some(word) = &field.destination.word else {
        if input.attributes.sizes.is_some() && !field.rule.is_ignored() && !is_plain(&field.ty) {
            let name = member_name(&field.member);
            errors.push(Error::new(
                field.span,
                format!(
                    "no size contains the field `{name}`: write `add_to = name`, `split` or `ignore = \"reason\"`"
                ),
            ));
        }
        return;
    };
    let message = if input.attributes.sizes.is_none() {
        format!(
            "`{word}` needs the type of the sizes: write `#[malloc_size_of(sizes = TheSizes)]` on the type"
        )
    } else if field.rule.is_ignored() {
        format!("the field is ignored: `{word}` has no effect")
    } else if field.destination.split.is_some() && field.rule.is_function() {
        "`split` leaves the field to its own `AddSizeOf`: `with`, `each` and `stated_by` have no effect"
            .to_owned()
    } else {
        return;
    };
    errors.push(Error::new(word.span(), message));
}

/// Whether the type is a number, `bool`, `char` or a phantom type, so that it owns no heap. Only the last segment
/// of the path counts.
fn is_plain(ty: &Type) -> bool {
    const PLAIN: [&str; 18] = [
        "bool",
        "char",
        "u8",
        "u16",
        "u32",
        "u64",
        "u128",
        "usize",
        "i8",
        "i16",
        "i32",
        "i64",
        "i128",
        "isize",
        "f32",
        "f64",
        "PhantomData",
        "PhantomPinned",
    ];
    match ty {
        Type::Path(path) => {
            path.path.segments.last().is_some_and(|last| PLAIN.iter().any(|p| last.ident == p))
        }
        _ => false,
    }
}
