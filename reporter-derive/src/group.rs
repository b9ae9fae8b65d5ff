//! Bodies of any number of parts, in functions of bounded size.
//!
//! A debug build gives every local of a function a place of its own in the frame, and a walk has a frame on the stack
//! for each pointer that it follows. The compiler, too, recurses as deep as an expression is nested. So no
//! function measures more than `GROUP` parts, and no chain of operators has more operands: larger bodies are trees of
//! closures, each called through a function, so that a debug build does not inline it.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Path;
use syn::ext::IdentExt;

use crate::ast::{EnumVariant, TypeField};
use crate::hygiene::{as_own_tokens, local, member_name};

const GROUP: usize = 16;

/// Operands with the same operator between all of them.
pub(crate) fn chain(
    mut operands: Vec<TokenStream>,
    operator: &TokenStream,
    none: &TokenStream,
) -> TokenStream {
    let flat = |operands: &[TokenStream]| match operands {
        [] => none.clone(),
        [first, others @ ..] => quote!(#first #(#operator #others)*),
    };
    while operands.len() > GROUP {
        operands = operands
            .chunks(GROUP)
            .map(|chunk| {
                let chunk = flat(chunk);
                quote!((#chunk))
            })
            .collect();
    }
    flat(&operands)
}

/// The code for one field, from its edge and a reference to its value; `None` for a field that is left out.
pub(crate) type FieldCode<'a> = dyn Fn(&TypeField, &TokenStream, &TokenStream) -> Option<TokenStream> + 'a;

/// How to join parts.
pub(crate) struct PartJoin<'a> {
    /// Joins all parts of a function, at most `GROUP`.
    pub(crate) all: &'a dyn Fn(Vec<TokenStream>) -> TokenStream,
    /// The token after an expression that is a part.
    pub(crate) end: TokenStream,
}

impl PartJoin<'_> {
    /// Joins any number of parts.
    pub(crate) fn parts(&self, mut parts: Vec<TokenStream>, krate: &Path) -> TokenStream {
        while parts.len() > GROUP {
            parts = parts.chunks(GROUP).map(|chunk| self.group(&(self.all)(chunk.to_vec()), krate)).collect();
        }
        (self.all)(parts)
    }

    /// A part that is a function of its own.
    fn group(&self, body: &TokenStream, krate: &Path) -> TokenStream {
        let (group, end) = (apart(body, krate), &self.end);
        quote!(#group #end)
    }
}

/// In a function of its own.
fn apart(body: &TokenStream, krate: &Path) -> TokenStream {
    quote!(#krate::__private::apart(|| #body))
}

/// An arm of a `match`.
struct MatchArm {
    /// The variants, without their fields.
    patterns: Vec<TokenStream>,
    arm: TokenStream,
    /// The number of parts that it adds to its function.
    parts: usize,
}

/// The enum that a match is about.
pub(crate) struct MatchSubject {
    pub(crate) krate: Path,
    /// The value that is matched.
    pub(crate) value: TokenStream,
    /// The enum, as patterns name it.
    pub(crate) path: TokenStream,
    /// The arm for variants that a mirror leaves out.
    pub(crate) rest: Option<TokenStream>,
}

/// A match over all variants of an enum that has variants.
pub(crate) fn variants(
    variants: &[EnumVariant],
    each: &FieldCode<'_>,
    joint: &PartJoin<'_>,
    subject: &MatchSubject,
) -> TokenStream {
    // For a match over some of the variants only.
    let nothing = (joint.all)(Vec::new());
    let is_all = variants.len() == 1 && subject.rest.is_none();
    let others = if is_all { TokenStream::new() } else { quote!(_ => #nothing,) };
    let mut arms: Vec<MatchArm> =
        variants.iter().map(|variant| arm(variant, &others, each, joint, subject)).collect();
    let empty = arms.extract_if(.., |arm| arm.parts == 0).map(|arm| arm.arm).collect::<TokenStream>();
    while parts(&arms) > GROUP {
        arms = together(arms).into_iter().map(|arms| grouped(arms, &others, subject)).collect();
    }
    let arms = arms.into_iter().map(|arm| arm.arm);
    let (value, rest) = (&subject.value, &subject.rest);
    quote!(match #value { #(#arms)* #empty #rest })
}

fn parts(arms: &[MatchArm]) -> usize {
    arms.iter().map(|arm| arm.parts).sum()
}

/// Neighbours that fit into one function.
fn together(arms: Vec<MatchArm>) -> Vec<Vec<MatchArm>> {
    let mut groups: Vec<Vec<MatchArm>> = Vec::new();
    for arm in arms {
        match groups.last_mut() {
            Some(group) if parts(group) + arm.parts <= GROUP => group.push(arm),
            _ => groups.push(vec![arm]),
        }
    }
    groups
}

/// One arm for several variants.
fn grouped(arms: Vec<MatchArm>, others: &TokenStream, subject: &MatchSubject) -> MatchArm {
    let value = &subject.value;
    let (patterns, arms): (Vec<_>, Vec<_>) = arms.into_iter().map(|arm| (arm.patterns, arm.arm)).unzip();
    let patterns = patterns.concat();
    let body = apart(&quote!(match #value { #(#arms)* #others }), &subject.krate);
    MatchArm { arm: quote!(#(#patterns)|* => #body,), patterns, parts: 1 }
}

fn arm(
    variant: &EnumVariant,
    others: &TokenStream,
    each: &FieldCode<'_>,
    joint: &PartJoin<'_>,
    subject: &MatchSubject,
) -> MatchArm {
    let MatchSubject { krate, value, path, .. } = subject;
    let ident = as_own_tokens(variant.ident.to_token_stream());
    let variant_name = variant.ident.unraw().to_string();
    let measured = variant.fields.iter().filter(|field| !field.rule.is_ignored());
    let fields: Vec<(TokenStream, TokenStream)> = measured
        .filter_map(|field: &TypeField| {
            let name = member_name(&field.member);
            let member = as_own_tokens(field.member.to_token_stream());
            let binding = local(&format!("__field_{name}"), field.span);
            let edge = quote!(#krate::__private::Edge::VariantField(#variant_name, #name));
            let part = each(field, &edge, &quote!(#binding))?;
            Some((quote!(#member: #binding), part))
        })
        .collect();
    let arm = |fields: &[(TokenStream, TokenStream)]| {
        let (bindings, parts): (Vec<_>, Vec<_>) = fields.iter().cloned().unzip();
        let parts = (joint.all)(parts);
        quote!(#path::#ident { #(#bindings,)* .. } => #parts,)
    };
    let pattern = quote!(#path::#ident { .. });
    let whole = if fields.len() <= GROUP {
        arm(&fields)
    } else {
        let groups = fields.chunks(GROUP).map(|fields| {
            let arm = arm(fields);
            joint.group(&quote!(match #value { #arm #others }), krate)
        });
        let parts = joint.parts(groups.collect(), krate);
        quote!(#pattern => #parts,)
    };
    MatchArm { patterns: vec![pattern], arm: whole, parts: fields.len().min(GROUP) }
}
