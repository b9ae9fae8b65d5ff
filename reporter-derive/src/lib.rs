//! `#[derive(MallocSizeOf)]` for the memory-reporter crate.

use proc_macro::TokenStream;

/// Derives `MallocSizeOf`.
#[proc_macro_derive(MallocSizeOf, attributes(malloc_size_of))]
pub fn derive(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
