//! Blocks with a prefix before their value. Pointers lead to the value only.

#![allow(dead_code, reason = "only the types and the blocks count")]

use std::alloc::{Layout, alloc, handle_alloc_error};
use std::hint::black_box;
use std::ptr::NonNull;

/// A value whose type only its tag shows.
struct Erased;

#[repr(C)]
struct Object<T> {
    tag: u64,
    value: T,
}

struct Point([u64; 3]);

struct Name(String);

struct Extension {
    slots: Box<[u32]>,
    dictionary: Option<NonNull<Object<Erased>>>,
}

/// Its alignment is larger than that of the value, so the block ends with padding.
#[repr(align(16))]
struct Wide(u64);

/// Allocates one block for a prefix and a value. Returns the places of both.
#[inline(always)]
fn room<P, T>() -> (*mut P, *mut T) {
    let (layout, at) = Layout::new::<P>().extend(Layout::new::<T>()).expect("a small layout");
    let layout = layout.pad_to_align();
    // SAFETY: the layout has a size.
    let start = unsafe { alloc(layout) };
    if start.is_null() {
        handle_alloc_error(layout);
    }
    // SAFETY: the block contains this offset.
    (start.cast(), unsafe { start.add(at) }.cast())
}

impl<T> Object<T> {
    #[inline(never)]
    fn with_extension(tag: u64, value: T) -> NonNull<Object<Erased>> {
        let slots = vec![7; 5].into_boxed_slice();
        let at_slots = slots.as_ptr();
        let (prefix, place) = room::<Extension, Self>();
        // SAFETY: both places are in the new block.
        unsafe { prefix.write(Extension { slots, dictionary: None }) };
        // SAFETY: as above.
        unsafe { place.write(Self { tag, value }) };
        truth::is("owned by a prefix", at_slots, "[u32]");
        NonNull::new(place.cast()).expect("not null")
    }

    #[inline(never)]
    fn after_wide(tag: u64, value: T) -> NonNull<Object<Erased>> {
        let (prefix, place) = room::<Wide, Self>();
        // SAFETY: both places are in the new block.
        unsafe { prefix.write(Wide(tag)) };
        // SAFETY: as above.
        unsafe { place.write(Self { tag, value }) };
        NonNull::new(place.cast()).expect("not null")
    }
}

struct Node {
    next: Option<NonNull<Node>>,
    numbers: Vec<u16>,
}

struct Links {
    before: usize,
    after: usize,
}

/// No name on the stack contains the type of the value.
#[inline(never)]
fn linked(next: Option<NonNull<Node>>, number: u16) -> NonNull<Node> {
    let (links, node) = room::<Links, Node>();
    let numbers = vec![number; 9];
    truth::is("behind a prefix", numbers.as_ptr(), "[u16]");
    // SAFETY: both places are in the new block.
    unsafe { links.write(Links { before: 1, after: 2 }) };
    // SAFETY: as above.
    unsafe { node.write(Node { next, numbers }) };
    NonNull::new(node).expect("not null")
}

#[repr(C)]
struct Inner {
    first: u64,
    last: Last,
}

struct Last([u64; 2]);

/// Another field leads to the start of `Inner`, but without a type. The only pointer with a type is a reference to the
/// last field.
#[inline(never)]
fn with_reference(number: u64) -> (usize, &'static Last) {
    let (_, inner) = room::<u64, Inner>();
    // SAFETY: the place is in the new block.
    unsafe { inner.write(Inner { first: number, last: Last([number; 2]) }) };
    // SAFETY: the block is never freed.
    (inner as usize ^ usize::MAX, unsafe { &(*inner).last })
}

struct Left([u64; 2]);
struct Right([u64; 3]);

/// Two pointers lead to different offsets, and the values of both end where the block ends.
#[inline(never)]
fn disputed(number: u64) -> (NonNull<Left>, NonNull<Right>) {
    let (start, left) = room::<[u64; 2], Left>();
    // SAFETY: both places are in the new block.
    unsafe { start.write([number; 2]) };
    // SAFETY: as above.
    unsafe { left.write(Left([number; 2])) };
    let left = NonNull::new(left).expect("not null");
    // SAFETY: the block starts 16 bytes before the value.
    (left, unsafe { left.cast::<u64>().sub(1) }.cast())
}

static mut OBJECTS: Vec<NonNull<Object<Erased>>> = Vec::new();
static mut NODES: Option<NonNull<Node>> = None;
static mut LAST: Vec<(usize, &'static Last)> = Vec::new();
static mut DISPUTED: Vec<(NonNull<Left>, NonNull<Right>)> = Vec::new();

fn main() {
    truth::open();
    let mut objects = Vec::new();
    for number in 0..20 {
        let point = Object::with_extension(number, Point([number; 3]));
        truth::is("prefix and value", point.as_ptr(), "[24 bytes before] prefix::Object<prefix::Point>");
        let text = format!("name {number}");
        truth::is("behind a prefix", text.as_ptr(), "str");
        let name = Object::with_extension(number, Name(text));
        truth::is("prefix and value", name.as_ptr(), "[24 bytes before] prefix::Object<prefix::Name>");
        let small = Object::after_wide(number, 5_u64);
        truth::is("prefix and value", small.as_ptr(), "[16 bytes before] prefix::Object<u64>");
        let padded = Object::after_wide(number, Point([number; 3]).0.map(|one| one as u32));
        truth::is("padded value", padded.as_ptr(), "[16 bytes before] prefix::Object<[u32; 3]>");
        objects.extend([point, name, small, padded]);
    }
    let mut node = None;
    for number in 0..30 {
        let new = linked(node, number);
        truth::is("named by owners", new.as_ptr(), "[16 bytes before] prefix::Node");
        node = Some(new);
    }
    let mut last = Vec::new();
    let mut all = Vec::new();
    for number in 0..10 {
        let one = with_reference(number);
        truth::is("reference to a field", one.1, "in prefix::room");
        last.push(one);
        let one = disputed(number);
        truth::is("owners disagree", one.0.as_ptr(), "in prefix::room");
        all.push(one);
    }
    // SAFETY: the program has one thread.
    unsafe { (OBJECTS, NODES) = (objects, node) };
    // SAFETY: as above.
    unsafe { (LAST, DISPUTED) = (last, all) };
    truth::wait();
    black_box(&raw const OBJECTS);
    black_box(&raw const NODES);
    black_box(&raw const LAST);
    black_box(&raw const DISPUTED);
}
