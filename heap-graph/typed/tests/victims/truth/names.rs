//! Strings that are made in many ways, buffers of `vec![..]`, boxed arrays, and buffers whose elements changed in
//! place.

#![allow(dead_code, reason = "only the types and the blocks count")]

use std::borrow::Cow;
use std::hint::black_box;
use std::io::BufRead as _;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

#[inline(never)]
fn texts() -> Vec<String> {
    let text = black_box("a borrowed text");
    let mut all: Vec<String> = Vec::new();
    let mut add = |construct: &str, one: String| {
        truth::is(construct, one.as_ptr(), "str");
        all.push(one);
    };
    add("String: to_string", text.to_string());
    add("String: to_owned", text.to_owned());
    add("String: from", String::from(text));
    add("String: into", text.into());
    add("String: to_string of a literal", "literal".to_string());
    add("String: to_owned of a literal", "literal".to_owned());
    add("String: clone", black_box(String::from("clone me")).clone());
    add("String: format", format!("{text}!"));
    add("String: format of a literal", format!("lit"));
    add("String: push_str", {
        let mut one = String::new();
        one.push_str(text);
        one
    });
    add("String: concat", [text, text].concat());
    add("String: join", [text, text].join("-"));
    add("String: +", text.to_string() + text);
    add("String: collect of chars", text.chars().rev().collect());
    add("String: collect of texts", [text, text].into_iter().collect());
    add("String: repeat", text.repeat(3));
    add("String: to_uppercase", text.to_uppercase());
    add("String: replace", text.replace('a', "bb"));
    add("String: from_utf8_lossy", String::from_utf8_lossy(black_box(b"ab\xffcd")).into_owned());
    add("String: from_utf8", String::from_utf8(black_box(b"bytes".as_slice()).to_vec()).expect("valid"));
    add("String: Cow", Cow::Borrowed(text).into_owned());
    add("String: into_boxed_str", text.to_string().into_boxed_str().into_string());
    add("String: number", 12345.to_string());
    add("String: char", 'x'.to_string());
    add("String: bool", true.to_string());
    add("String: with_capacity", {
        let mut one = String::with_capacity(99);
        one.push('x');
        one
    });
    add("String: trim", "  a  ".trim().to_owned());
    add("String: split", text.split(' ').next_back().expect("a word").to_owned());
    add("String: Debug", format!("{:?}", Some(3)));
    add("String: from_utf16_lossy", String::from_utf16_lossy(&[65, 66]));
    add("String: read_line", {
        let mut one = String::new();
        (&mut &b"a line\n"[..]).read_line(&mut one).expect("a line");
        one
    });
    add("String: lines", b"x y\nz"[..].lines().next().expect("a line").expect("valid"));
    add("String: env", std::env::var("PATH").expect("it is set"));
    add("String: Path", std::path::Path::new("/a/b").to_string_lossy().into_owned());
    add("String: insert", {
        let mut one = String::default();
        one.insert(0, 'q');
        one
    });
    all
}

#[inline(never)]
fn boxed_texts() -> (Vec<Box<str>>, Vec<Arc<str>>) {
    let text = black_box("a borrowed text");
    let boxed: Vec<Box<str>> = vec![text.into(), text.to_string().into_boxed_str()];
    boxed.iter().for_each(|one| truth::is("Box<str>", one.as_ptr(), "str"));
    let shared: Vec<Arc<str>> = vec![text.into(), text.to_string().into()];
    shared.iter().for_each(|one| truth::is("Arc<str>", one.as_ptr(), "ArcInner<str>"));
    (boxed, shared)
}

#[inline(never)]
fn bytes() -> Vec<Vec<u8>> {
    let mut all =
        vec![vec![1; 40], black_box(b"bytes".as_slice()).to_vec(), String::from("text").into_bytes()];
    all.push(Vec::with_capacity(17));
    all.iter().for_each(|one| truth::is("Vec<u8>", one.as_ptr(), "[u8]"));
    all
}

pub struct Wrapped {
    pub inside: u64,
}

#[inline(never)]
fn in_place() -> Vec<Vec<Wrapped>> {
    let wrap = |count: u64| -> Vec<Wrapped> {
        let numbers: Vec<u64> = (0..count).collect();
        let all: Vec<Wrapped> = numbers.into_iter().map(|inside| Wrapped { inside: inside ^ 5 }).collect();
        truth::is("collect in place", all.as_ptr(), "[names::Wrapped]");
        all
    };
    (1..40).map(wrap).collect()
}

#[inline(never)]
fn listed() -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    for number in 0..50 {
        let mut one = vec![number, 2, 3, 4];
        if number % 2 == 0 {
            one.pop();
        }
        truth::is("vec![..]", one.as_ptr(), "[u32]");
        all.push(one);
    }
    all
}

#[inline(never)]
fn boxed_slices() -> (Vec<Box<[u16]>>, Vec<Box<[u16; 4]>>) {
    let slices: Vec<Box<[u16]>> = (0..5).map(|number| vec![number, 2, 3].into_boxed_slice()).collect();
    slices.iter().for_each(|one| truth::is("boxed slice of vec![..]", one.as_ptr(), "[u16]"));
    let arrays: Vec<Box<[u16; 4]>> = (0..5).map(|number| Box::new([number; 4])).collect();
    arrays.iter().for_each(|one| truth::is("boxed array", one.as_ptr(), "[u16; 4]"));
    (slices, arrays)
}

pub struct World {
    pub texts: Vec<String>,
    pub boxed_texts: (Vec<Box<str>>, Vec<Arc<str>>),
    pub bytes: Vec<Vec<u8>>,
    pub in_place: Vec<Vec<Wrapped>>,
    pub listed: Vec<Vec<u32>>,
    pub boxed_slices: (Vec<Box<[u16]>>, Vec<Box<[u16; 4]>>),
}

pub static WORLD: Mutex<Option<Box<World>>> = Mutex::new(None);
pub static ONCE: OnceLock<Vec<Wrapped>> = OnceLock::new();
pub static LAZY: LazyLock<Vec<Wrapped>> = LazyLock::new(|| wrapped("LazyLock"));
pub static UNUSED: OnceLock<Vec<Wrapped>> = OnceLock::new();

/// A buffer allocated for numbers. Only the static determines its type.
#[inline(never)]
fn wrapped(construct: &str) -> Vec<Wrapped> {
    let numbers: Vec<u64> = (0..black_box(30)).collect();
    let all: Vec<Wrapped> = numbers.into_iter().map(|inside| Wrapped { inside }).collect();
    truth::is(construct, all.as_ptr(), "[names::Wrapped]");
    all
}

fn main() {
    truth::open();
    let world = Box::new(World {
        texts: texts(),
        boxed_texts: boxed_texts(),
        bytes: bytes(),
        in_place: in_place(),
        listed: listed(),
        boxed_slices: boxed_slices(),
    });
    *WORLD.lock().expect("no panic") = Some(world);
    let _ = ONCE.set(wrapped("OnceLock"));
    black_box(LAZY.len());
    truth::wait();
    black_box((UNUSED.get().is_none(), ONCE.get()));
    std::process::exit(
        black_box(WORLD.lock().expect("no panic").as_ref().expect("set").texts.len() as i32) - 35,
    );
}
