//! A process with as many scopes as there are numbers.

use std::hint::black_box;

use allocators::Counting;
use memory_reporter::scopes::{Scope, ScopeError};
use memory_reporter::tags::Tag;

memory_reporter::global_allocator!(Counting);

#[test]
fn one_scope_too_many_is_refused_by_name() {
    let scopes: Vec<Scope> = (0..65_534).map(|i| Scope::named(format!("scope {i}"))).collect();
    let blocks: Vec<Box<[u8]>> =
        scopes.iter().map(|scope| scope.run(|| black_box(vec![0; 100].into_boxed_slice()))).collect();
    let refused = Scope::named("one too many");
    assert_eq!(refused.run(|| 3), 3);
    let error = refused.figures().unwrap_err();
    assert_eq!(error, ScopeError::NoRoom { scope: "one too many".to_owned() });
    assert!(error.to_string().contains("`one too many`") && error.to_string().contains("65,534"), "{error}");
    // A path has no room either, and its scope goes on.
    assert_eq!(Tag::new("explicit/one-too-many"), Tag::NONE);
    // Nested scopes need a number of their own.
    let (outer, inner) = (&scopes[0], &scopes[1]);
    outer.run(|| inner.run(|| drop(black_box(Box::new(1)))));
    assert_eq!(inner.figures(), Err(ScopeError::Uncounted));
    assert!(outer.figures().is_ok());
    for scope in &scopes[2..] {
        let figures = scope.figures().unwrap();
        assert_eq!((figures.allocations, figures.retained_bytes), (1, 100), "{}", scope.name());
    }
    // A number is free again when the scope is dropped and its last block is freed.
    let mut scopes = scopes;
    drop((refused, scopes.pop()));
    assert!(matches!(Scope::named("too early").figures(), Err(ScopeError::NoRoom { .. })));
    drop(blocks);
    assert_eq!(Scope::named("in time").figures().map(|figures| figures.allocations), Ok(0));
}
