//! A library with a C interface, written in Rust. Its types have the names of the program's types, but other layouts.

#![allow(dead_code, reason = "only the types and the blocks count")]

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_char, c_void};
use std::sync::Mutex;

pub struct Store {
    pub list: Vec<Box<item::Item>>,
    pub map: HashMap<String, Box<item::Leaf>>,
    pub tree: BTreeMap<u64, item::Kind>,
}

pub static STORE: Mutex<Option<Store>> = Mutex::new(None);

type Is = extern "C" fn(*const c_char, *const c_void, *const c_char);

#[unsafe(no_mangle)]
pub extern "C" fn plug_fill(count: u64, is: Is) {
    let names =
        ["item::Item", "item::Other", "[u16]", "[Box<item::Item>]", "table (String, Box<item::Leaf>)"];
    let names = names.map(|name| CString::new(name).expect("no zeros"));
    let [item, other, list_name, items, table] = &names;
    let is = |place: *const c_void, name: &CString| is(c"library".as_ptr(), place, name.as_ptr());
    let of = |number| {
        let leaf = Box::new(item::Other(1, 2, number));
        let one = Box::new(item::Item { leaf, number, list: vec![7; 6] });
        is((&raw const *one).cast(), item);
        is((&raw const *one.leaf).cast(), other);
        is(one.list.as_ptr().cast(), list_name);
        one
    };
    let list: Vec<Box<item::Item>> = (0..count).map(of).collect();
    is(list.as_ptr().cast(), items);
    let map: HashMap<String, Box<item::Leaf>> =
        (0..count).map(|number| (format!("plug {number}"), Box::new(item::Leaf(number, number)))).collect();
    is((&raw const *map.keys().next().expect("some")).cast(), table);
    let kind = |number| {
        if number % 2 == 0 {
            return item::Kind::One(number);
        }
        let leaf = Box::new(item::Other(3, 4, number));
        is((&raw const *leaf).cast(), other);
        item::Kind::Two(leaf)
    };
    let tree = (0..count).map(|number| (number, kind(number))).collect();
    *STORE.lock().expect("no panic") = Some(Store { list, map, tree });
}
