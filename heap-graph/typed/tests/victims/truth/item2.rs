//! The crate in its second version: its types have the same names and sizes as before, but other layouts.

pub struct Other(pub u32, pub u32, pub u64);
pub struct Leaf(pub u64, pub u64);

#[repr(C)]
pub struct Item {
    pub leaf: Box<Other>,
    pub number: u64,
    pub list: Vec<u16>,
}

pub enum Kind {
    One(u64),
    Two(Box<Other>),
}

pub fn boxed(number: u64) -> Box<Item> {
    Box::new(Item { leaf: Box::new(Other(1, 2, number)), number, list: vec![1; 9] })
}
