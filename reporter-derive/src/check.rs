//! What parses but cannot be meant.

use syn::Error;

use crate::ast::{Body, Input};
use crate::attr::Rule;

pub(crate) fn check(input: &Input, errors: &mut Vec<Error>) {
    if let Body::Enum(_) = input.body
        && input.packed
    {
        errors.push(Error::new(input.ident.span(), "an enum cannot be packed"));
    }
    for field in input.fields() {
        if input.packed && matches!(field.rule, Rule::With(_) | Rule::Each(_)) {
            errors.push(Error::new(
                field.span,
                "a field of a packed struct has no address to measure it at: only plain `Copy` fields and `ignore` will do",
            ));
        }
    }
}
