//! A type as the derive sees it.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, ExprPath, Fields, Generics, Ident, Member, Type, Visibility};

use crate::attr::{self, ContainerAttributes, Destination, Rule};

/// The type for which the derive writes an impl.
pub(crate) struct Input {
    pub(crate) ident: Ident,
    pub(crate) visibility: Visibility,
    pub(crate) generics: Generics,
    pub(crate) attributes: ContainerAttributes,
    pub(crate) packed: bool,
    pub(crate) body: Body,
}

pub(crate) enum Body {
    Struct(Vec<Field>),
    Enum(Vec<Variant>),
}

pub(crate) struct Variant {
    pub(crate) ident: Ident,
    pub(crate) fields: Vec<Field>,
}

pub(crate) struct Field {
    pub(crate) member: Member,
    pub(crate) ty: Type,
    pub(crate) rule: Rule,
    pub(crate) destination: Destination,
    /// In a mirror: the function that gives the foreign type's field.
    pub(crate) getter: Option<ExprPath>,
    pub(crate) span: Span,
}

impl Input {
    /// Reads the type; faults go to `errors`.
    pub(crate) fn read(input: &DeriveInput, errors: &mut Vec<Error>) -> Self {
        let attributes = ContainerAttributes::read(&input.attrs, errors);
        let body = match &input.data {
            Data::Struct(data) => Body::Struct(fields(&data.fields, errors)),
            Data::Enum(data) => Body::Enum(
                data.variants
                    .iter()
                    .map(|variant| {
                        let whole = attr::read_field(&variant.attrs, attr::Place::Variant, errors);
                        let mut fields = fields(&variant.fields, errors);
                        if whole.rule.is_ignored() {
                            for field in &mut fields {
                                if !matches!(field.rule, Rule::Measure) || field.destination.word.is_some() {
                                    errors.push(Error::new(
                                        field.span,
                                        "the whole variant is ignored: what is said of this field has no effect",
                                    ));
                                }
                                field.rule = Rule::Ignore;
                                field.destination = Destination::default();
                            }
                        }
                        Variant { ident: variant.ident.clone(), fields }
                    })
                    .collect(),
            ),
            Data::Union(data) => {
                errors.push(Error::new(
                    data.union_token.span,
                    "a union does not say which of its fields is alive: implement `MallocSizeOf` by hand",
                ));
                Body::Struct(Vec::new())
            }
        };
        Self {
            ident: input.ident.clone(),
            visibility: input.vis.clone(),
            generics: input.generics.clone(),
            attributes,
            packed: attr::is_packed(&input.attrs),
            body,
        }
    }

    /// All fields of all variants.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        let (own, variants) = match &self.body {
            Body::Struct(fields) => (fields.as_slice(), [].as_slice()),
            Body::Enum(variants) => ([].as_slice(), variants.as_slice()),
        };
        own.iter().chain(variants.iter().flat_map(|variant| &variant.fields))
    }
}

fn fields(fields: &Fields, errors: &mut Vec<Error>) -> Vec<Field> {
    fields
        .iter()
        .zip(fields.members())
        .map(|(field, member)| {
            let said = attr::read_field(&field.attrs, attr::Place::Field, errors);
            Field {
                member,
                ty: field.ty.clone(),
                rule: said.rule,
                destination: said.destination,
                getter: said.getter,
                span: field.ty.span(),
            }
        })
        .collect()
}
