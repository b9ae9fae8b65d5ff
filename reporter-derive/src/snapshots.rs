//! Compares the expansion of each shape of type with golden text in `reporter-derive/snapshots`. `UPDATE_GOLDEN=1`
//! rewrites the golden text.

use std::fs;
use std::path::PathBuf;

use quote::quote;

use crate::expand::derive;

fn check(name: &str, input: proc_macro2::TokenStream) {
    let expansion = prettyplease::unparse(&syn::parse2(derive(input)).expect("an item"));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("snapshots/{name}.rs.golden"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &expansion).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(expansion, expected, "{name}");
}

#[test]
fn structs() {
    check(
        "unit",
        quote!(
            struct Unit;
        ),
    );
    check(
        "tuple",
        quote!(
            struct Tuple(String, #[malloc_size_of(ignore = "a reason")] u8);
        ),
    );
    check(
        "named",
        quote!(
            struct Named {
                first: String,
                r#type: Vec<u8>,
            }
        ),
    );
    check(
        "packed",
        quote!(
            #[repr(C, packed(2))]
            struct Packed {
                small: u8,
                large: u64,
            }
        ),
    );
}

/// Types in the form in which the compiler blames the part without an impl.
#[test]
fn parts_without_an_impl() {
    check(
        "parts",
        quote!(
            struct Parts {
                sites: HashMap<Key, Vec<Page>>,
                pair: (Page, std::sync::Mutex<Key>, Option<u8>),
                boxed: Option<Box<dyn Shape>>,
                locked: Mutex<u8>,
            }
        ),
    );
}

#[test]
fn enums() {
    check(
        "empty_enum",
        quote!(
            enum Empty {}
        ),
    );
    check(
        "enum",
        quote! {
            enum Shape {
                Nothing,
                Text(String),
                Both { first: String, #[malloc_size_of(ignore = "a reason")] second: u8 },
                #[malloc_size_of(ignore = "a reason")]
                Ignored(String),
            }
        },
    );
}

/// A type with more parts than one function measures.
#[test]
fn large_types() {
    let fields = (0..20).map(|i| quote::format_ident!("f{i}"));
    check("large_struct", quote!(struct Large { #(#fields: u8),* }));
    let variants = (0..17).map(|i| quote::format_ident!("V{i}"));
    let fields = (0..18).map(|_| quote!(u8));
    check("large_enum", quote!(enum Large { #(#variants(u8),)* Wide(#(#fields),*), Nothing }));
    let variants = (0..17).map(|i| quote::format_ident!("V{i}"));
    check(
        "large_split",
        quote! {
            #[malloc_size_of(sizes = Sizes)]
            enum Large {
                #(#variants(#[malloc_size_of(split)] Tab),)*
            }
        },
    );
}

#[test]
fn splits() {
    check(
        "split",
        quote! {
            #[malloc_size_of(sizes = Sizes)]
            enum Page<T> {
                Text(#[malloc_size_of(add_to = text)] T, u32),
                Tabs {
                    #[malloc_size_of(split)]
                    first: Tab,
                    #[malloc_size_of(add_to = other, split)]
                    others: Vec<Tab>,
                },
            }
        },
    );
}

#[test]
fn generics() {
    check(
        "generics",
        quote! {
            struct Generic<'a, T: Clone, U, V, const N: usize> where U: Copy {
                parts: [T; N],
                marker: PhantomData<V>,
                #[malloc_size_of(ignore = "a reason")]
                borrowed: &'a [U],
            }
        },
    );
    check(
        "bound",
        quote!(
            #[malloc_size_of(bound = "T: Mine, Vec<T>: Ours")]
            struct Bound<T>(Vec<T>);
        ),
    );
}

#[test]
fn foreign_types() {
    check(
        "foreign",
        quote! {
            #[malloc_size_of(crate = crate::renamed)]
            struct Foreign {
                #[malloc_size_of(with = measure::one)]
                one: other::Type,
                #[malloc_size_of(each = measure::one)]
                many: Vec<other::Type>,
            }
        },
    );
}

#[test]
fn mirrors() {
    check(
        "mirror",
        quote! {
            #[malloc_size_of(remote = other::Picture<T>)]
            pub(crate) struct Picture<T> {
                pixels: Vec<T>,
                #[malloc_size_of(with = measure::one)]
                palette: other::Palette,
                #[malloc_size_of(ignore = "a reason")]
                width: u32,
            }
        },
    );
    check(
        "mirror_with_getter",
        quote! {
            #[malloc_size_of(remote = other::Text)]
            struct Text {
                #[malloc_size_of(getter = other::Text::as_string)]
                text: String,
            }
        },
    );
    check(
        "mirror_of_an_enum",
        quote! {
            #[malloc_size_of(remote = other::Shape)]
            enum Shape {
                Nothing,
                Text(String, #[malloc_size_of(ignore = "a reason")] u8),
            }
        },
    );
    check(
        "mirror_with_rest",
        quote! {
            #[malloc_size_of(remote = other::Shape, rest = "a reason")]
            enum Shape {
                Text(String),
            }
        },
    );
}

#[test]
fn stated_figures() {
    check(
        "stated_by",
        quote! {
            struct Search {
                #[malloc_size_of(stated_by = other::Index::memory_usage)]
                index: other::Index,
            }
        },
    );
}

#[test]
fn errors_are_followed_by_an_empty_impl() {
    check(
        "errors",
        quote!(
            struct Wrong<T> {
                #[malloc_size_of(ignore)]
                a: T,
                #[malloc_size_of(skip)]
                b: u8,
            }
        ),
    );
}
