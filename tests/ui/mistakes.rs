//! Each mistake fails to compile with a message that explains what to do. `TRYBUILD=overwrite` rewrites the messages.

#[test]
fn mistakes() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("*/*.rs");
}
