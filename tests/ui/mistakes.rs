//! Each mistake fails to compile, and the message says what to do. `TRYBUILD=overwrite` rewrites the messages.

#[test]
fn mistakes() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("*/*.rs");
}
