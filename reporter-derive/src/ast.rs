//! The derive's view of a type: its generics, fields and variants.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, ExprPath, Fields, Generics, Ident, Member, Type, Visibility};

use crate::attr::{self, ContainerAttributes, FieldRule, SizeDestination};

/// The type for which the derive writes an impl.
pub(crate) struct TypeInput {
    pub(crate) ident: Ident,
    pub(crate) visibility: Visibility,
    pub(crate) generics: Generics,
    pub(crate) attributes: ContainerAttributes,
    pub(crate) packed: bool,
    pub(crate) body: TypeBody,
}

pub(crate) enum TypeBody {
    Struct(Vec<TypeField>),
    Enum(Vec<EnumVariant>),
}

pub(crate) struct EnumVariant {
    pub(crate) ident: Ident,
    pub(crate) fields: Vec<TypeField>,
}

pub(crate) struct TypeField {
    pub(crate) member: Member,
    pub(crate) ty: Type,
    pub(crate) rule: FieldRule,
    pub(crate) destination: SizeDestination,
    /// In a mirror: the function that returns the foreign type's field.
    pub(crate) getter: Option<ExprPath>,
    pub(crate) span: Span,
}

impl TypeInput {
    /// Reads the type. Appends faults to `errors`.
    pub(crate) fn read(input: &DeriveInput, errors: &mut Vec<Error>) -> Self {
        let attributes = ContainerAttributes::read(&input.attrs, errors);
        let body = match &input.data {
            Data::Struct(data) => TypeBody::Struct(fields(&data.fields, errors)),
            Data::Enum(data) => TypeBody::Enum(
                data.variants
                    .iter()
                    .map(|variant| {
                        let whole = attr::read_field(&variant.attrs, attr::AttributePlace::Variant, errors);
                        let mut fields = fields(&variant.fields, errors);
                        if whole.rule.is_ignored() {
                            for field in &mut fields {
                                if !matches!(field.rule, FieldRule::Measure) || field.destination.word.is_some() {
                                    errors.push(Error::new(
                                        field.span,
                                        "the whole variant is ignored: the attribute of this field has no effect",
                                    ));
                                }
                                field.rule = FieldRule::Ignore;
                                field.destination = SizeDestination::default();
                            }
                        }
                        EnumVariant { ident: variant.ident.clone(), fields }
                    })
                    .collect(),
            ),
            Data::Union(data) => {
                errors.push(Error::new(
                    data.union_token.span,
                    "the compiler does not know the active field of a union: implement `MallocSizeOf` by hand",
                ));
                TypeBody::Struct(Vec::new())
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
    pub(crate) fn fields(&self) -> impl Iterator<Item = &TypeField> {
        let (own, variants) = match &self.body {
            TypeBody::Struct(fields) => (fields.as_slice(), [].as_slice()),
            TypeBody::Enum(variants) => ([].as_slice(), variants.as_slice()),
        };
        own.iter().chain(variants.iter().flat_map(|variant| &variant.fields))
    }
}

fn fields(fields: &Fields, errors: &mut Vec<Error>) -> Vec<TypeField> {
    fields
        .iter()
        .zip(fields.members())
        .map(|(field, member)| {
            let said = attr::read_field(&field.attrs, attr::AttributePlace::Field, errors);
            TypeField {
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
