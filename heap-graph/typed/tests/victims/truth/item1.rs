//! A crate in its first version.

pub struct Leaf(pub u64, pub u64);

#[repr(C)]
pub struct Item {
    pub leaf: Box<Leaf>,
    pub number: u64,
    pub list: Vec<u32>,
}

pub enum Kind {
    One(Box<Leaf>),
    Two(u64),
}

pub fn boxed(number: u64) -> Box<Item> {
    Box::new(Item { leaf: Box::new(Leaf(number, number)), number, list: vec![1; 5] })
}
