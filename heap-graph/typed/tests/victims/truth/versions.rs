//! Two versions of a crate, whose types have the same names and the same sizes, and a library with one of them.

#![allow(dead_code, reason = "only the types and the blocks count")]

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};

pub struct World {
    pub first: Vec<Box<item1::Item>>,
    pub second: Vec<Box<item2::Item>>,
    pub first_kinds: Vec<item1::Kind>,
    pub second_kinds: Vec<item2::Kind>,
    pub closures: Vec<Box<dyn Fn() -> u64 + Send + Sync>>,
    pub first_shared: Vec<Arc<item1::Item>>,
    pub second_shared: Vec<Arc<item2::Item>>,
    pub first_tree: BTreeMap<u64, item1::Kind>,
    pub second_tree: BTreeMap<u64, item2::Kind>,
}

pub static WORLD: OnceLock<World> = OnceLock::new();

fn first_parts(construct: &str, of: &item1::Item) {
    truth::is(construct, &*of.leaf, "item::Leaf");
    truth::is(construct, of.list.as_ptr(), "[u32]");
}

fn second_parts(construct: &str, of: &item2::Item) {
    truth::is(construct, &*of.leaf, "item::Other");
    truth::is(construct, of.list.as_ptr(), "[u16]");
}

#[inline(never)]
fn first(count: u64) -> Vec<Box<item1::Item>> {
    let of = |number| {
        let leaf = Box::new(item1::Leaf(number, number));
        let one = Box::new(item1::Item { leaf, number, list: vec![7; 6] });
        truth::is("first version", &*one, "item::Item");
        first_parts("first version", &one);
        one
    };
    (0..count).map(of).collect()
}

#[inline(never)]
fn second(count: u64) -> Vec<Box<item2::Item>> {
    let of = |number| {
        let leaf = Box::new(item2::Other(1, 2, number));
        let one = Box::new(item2::Item { leaf, number, list: vec![7; 6] });
        truth::is("second version", &*one, "item::Item");
        second_parts("second version", &one);
        one
    };
    (0..count).map(of).collect()
}

fn first_kind(construct: &str, number: u64) -> item1::Kind {
    if number % 2 != 0 {
        return item1::Kind::Two(number);
    }
    let leaf = Box::new(item1::Leaf(number, number));
    truth::is(construct, &*leaf, "item::Leaf");
    item1::Kind::One(leaf)
}

fn second_kind(construct: &str, number: u64) -> item2::Kind {
    if number % 2 != 0 {
        return item2::Kind::One(number);
    }
    let leaf = Box::new(item2::Other(1, 1, number));
    truth::is(construct, &*leaf, "item::Other");
    item2::Kind::Two(leaf)
}

#[inline(never)]
fn closures() -> Vec<Box<dyn Fn() -> u64 + Send + Sync>> {
    let mut all: Vec<Box<dyn Fn() -> u64 + Send + Sync>> = Vec::new();
    for number in 0..10 {
        let one = item1::boxed(number);
        truth::is("behind closures, first version", &*one, "item::Item");
        first_parts("behind closures, first version", &one);
        all.push(Box::new(move || one.number));
        let one = item2::boxed(number);
        truth::is("behind closures, second version", &*one, "item::Item");
        second_parts("behind closures, second version", &one);
        all.push(Box::new(move || one.number));
    }
    all
}

/// Like `truth::is`, for calls from the library: the arguments are C strings.
extern "C" fn is_plugged(construct: *const c_char, place: *const c_void, name: *const c_char) {
    // SAFETY: the library passes texts that end with a 0.
    let text = |text| unsafe { std::ffi::CStr::from_ptr(text) }.to_str().expect("a text");
    truth::is(text(construct), place, text(name));
}

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

fn plug() {
    let path = CString::new(std::env::args().nth(3).expect("a library")).expect("no zeros");
    // SAFETY: the library belongs to this test; 2 is `RTLD_NOW`.
    let library = unsafe { dlopen(path.as_ptr(), 2) };
    assert!(!library.is_null(), "the library is there");
    // SAFETY: the handle refers to a loaded library.
    let fill = unsafe { dlsym(library, c"plug_fill".as_ptr()) };
    type Fill = extern "C" fn(u64, extern "C" fn(*const c_char, *const c_void, *const c_char));
    // SAFETY: the library has this function with this signature.
    let fill: Fill = unsafe { std::mem::transmute(fill) };
    fill(30, is_plugged);
}

fn main() {
    truth::open();
    let (first, second) = (first(50), second(60));
    let first_kinds: Vec<_> = (0..20).map(|number| first_kind("enum, first version", number)).collect();
    let second_kinds: Vec<_> = (0..20).map(|number| second_kind("enum, second version", number)).collect();
    let shared = |number| {
        let one = Arc::new(*item1::boxed(number));
        first_parts("shared, first version", &one);
        truth::is("shared, first version", &*one, "ArcInner<item::Item>");
        one
    };
    let first_shared: Vec<_> = (0..10).map(shared).collect();
    let shared = |number| {
        let one = Arc::new(*item2::boxed(number));
        second_parts("shared, second version", &one);
        truth::is("shared, second version", &*one, "ArcInner<item::Item>");
        one
    };
    let second_shared: Vec<_> = (0..10).map(shared).collect();
    let first_tree = (0..40).map(|number| (number, first_kind("tree, first version", number))).collect();
    let second_tree = (0..40).map(|number| (number, second_kind("tree, second version", number))).collect();
    let closures = closures();
    let _ = WORLD.set(World {
        first,
        second,
        first_kinds,
        second_kinds,
        closures,
        first_shared,
        second_shared,
        first_tree,
        second_tree,
    });
    plug();
    truth::wait();
    let sum: u64 = WORLD.get().expect("it is set").closures.iter().map(|one| one()).sum();
    println!("{sum}");
}
