//! Splits bodies with any number of parts into functions of bounded size.
//!
//! A debug build gives every local of a function its own place in the frame, and a walk has one frame on the stack
//! for each pointer that it follows. The compiler also recurses once for each level of a nested expression. So no
//! function measures more than `GROUP` parts, and no chain of operators has more than `GROUP` operands. A larger
//! body is a tree of closures. Each closure is called through a function, so that a debug build does not inline it.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Path;
use syn::ext::IdentExt;

use crate::ast::{EnumVariant, TypeField};
use crate::hygiene::{as_own_tokens, local, member_name};

const GROUP: usize = 16;

/// Joins the operands with the operator; `none` is the code for an empty list.
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

/// Returns the code that measures one field, from the field's edge and a reference to its value. `None` leaves the
/// field out.
pub(crate) type FieldCode<'a> = dyn Fn(&TypeField, &TokenStream, &TokenStream) -> Option<TokenStream> + 'a;

/// How to join parts.
pub(crate) struct PartJoin<'a> {
    /// Joins the parts of one function, at most `GROUP` of them.
    pub(crate) all: &'a dyn Fn(Vec<TokenStream>) -> TokenStream,
    /// The token that follows a part, such as `;`.
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

    /// Moves the body into a function of its own, as one part.
    fn group(&self, body: &TokenStream, krate: &Path) -> TokenStream {
        let (group, end) = (apart(body, krate), &self.end);
        quote!(#group #end)
    }
}

/// Wraps the body in a call of a separate function.
fn apart(body: &TokenStream, krate: &Path) -> TokenStream {
    quote!(#krate::__private::apart(|| #body))
}

/// An arm of a `match`.
struct MatchArm {
    /// The patterns of the variants, without bindings for their fields.
    patterns: Vec<TokenStream>,
    arm: TokenStream,
    /// The number of parts that this arm adds to the function with the `match`.
    parts: usize,
}

/// The enum and the value of a `match`.
pub(crate) struct MatchSubject {
    pub(crate) krate: Path,
    /// The expression that is matched.
    pub(crate) value: TokenStream,
    /// The path of the enum in patterns.
    pub(crate) path: TokenStream,
    /// The arm for variants that a mirror leaves out.
    pub(crate) rest: Option<TokenStream>,
}

/// A `match` over all variants of an enum. The enum has at least one variant, or is a mirror with `rest`.
pub(crate) fn variants(
    variants: &[EnumVariant],
    each: &FieldCode<'_>,
    joint: &PartJoin<'_>,
    subject: &MatchSubject,
) -> TokenStream {
    // The result for all other variants, in a `match` over some of the variants.
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

/// Groups neighboring arms that fit into one function.
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

/// Replaces several arms by one arm that calls a function with a `match` over their variants.
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
