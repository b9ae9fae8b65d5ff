//! Words that lead to freed memory, where a value of another type is now. In each case an `Old` is freed, and a `New`
//! of the same size gets its place.

#![allow(dead_code, reason = "only the types and the blocks count")]

use std::future::Future;
use std::hint::black_box;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

pub struct Old(pub [u64; 5], pub Box<u8>);
pub struct New(pub [u32; 11], pub u32);

fn old() -> Box<Old> {
    Box::new(Old([7; 5], Box::new(1)))
}

fn place(of: &Old) -> usize {
    std::ptr::from_ref(of) as usize
}

#[inline(never)]
fn new(construct: &str, freed: usize) -> Box<New> {
    let block = Box::new(New([9; 11], 1));
    truth::is(construct, &*block, "stale::New");
    assert_eq!(std::ptr::from_ref(&*block) as usize, freed, "{construct}: the block is not reused");
    block
}

/// A `vec![..]` whose last element was removed.
#[inline(never)]
fn popped() -> (Vec<Box<Old>>, Box<New>) {
    let mut all = vec![old(), old(), old()];
    black_box(&all);
    let at = place(&all.pop().expect("three"));
    truth::is("vec![..] after pop", all.as_ptr(), "[Box<stale::Old>]");
    (all, new("vec![..] after pop", at))
}

#[inline(never)]
fn truncated() -> (Vec<Box<Old>>, Vec<Box<New>>) {
    let mut all = vec![old(), old(), old(), old(), old()];
    black_box(&all);
    let at: Vec<usize> = all.iter().map(|one| place(one)).collect();
    all.truncate(2);
    truth::is("vec![..] after truncate", all.as_ptr(), "[Box<stale::Old>]");
    (all, (0..3).map(|number| new("vec![..] after truncate", at[4 - number])).collect())
}

pub struct Dangling {
    pub last: *const Old,
    pub count: u64,
}

#[inline(never)]
fn dangling() -> (Box<Dangling>, Box<New>) {
    let one = old();
    let at = place(&one);
    drop(one);
    (Box::new(Dangling { last: black_box(at as *const Old), count: 1 }), new("dangling raw pointer", at))
}

pub struct Manual {
    pub value: ManuallyDrop<Box<Old>>,
    pub done: bool,
}

#[inline(never)]
fn manual() -> (Box<Manual>, Box<New>) {
    let mut one = Box::new(Manual { value: ManuallyDrop::new(old()), done: false });
    let at = place(&one.value);
    // SAFETY: the value is not used afterwards.
    unsafe { ManuallyDrop::drop(&mut one.value) };
    one.done = true;
    (one, new("dropped ManuallyDrop", at))
}

struct Never;

impl Future for Never {
    type Output = ();
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

static LAST: AtomicUsize = AtomicUsize::new(0);

/// A flag records whether the local is still initialized.
async fn flagged(is_dropped: bool, never: Never) -> u64 {
    let local = old();
    LAST.store(place(&local), Ordering::SeqCst);
    if is_dropped {
        drop(local);
    }
    never.await;
    3
}

type Task = Pin<Box<dyn Future<Output = u64> + Send>>;

#[inline(never)]
fn task() -> (Task, Box<New>) {
    let mut task: Task = Box::pin(flagged(black_box(true), Never));
    let _ = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let at = LAST.load(Ordering::SeqCst);
    (task, new("moved local of an async fn", at))
}

#[inline(never)]
fn half_read() -> (Box<std::vec::IntoIter<Box<Old>>>, Box<New>) {
    let mut rest = Box::new(vec![old(), old(), old(), old()].into_iter());
    let at = place(&rest.next().expect("four"));
    truth::is("half-read vec::IntoIter", rest.as_slice().as_ptr(), "[Box<stale::Old>]");
    (rest, new("half-read vec::IntoIter", at))
}

/// Room for inline values. Only some of them are initialized.
pub struct Inline {
    pub places: [MaybeUninit<Box<Old>>; 4],
    pub len: u32,
}

#[inline(never)]
fn inline() -> (Box<Inline>, Box<New>) {
    let places = [old(), old(), old(), old()].map(MaybeUninit::new);
    let mut all = Box::new(Inline { places, len: 4 });
    // SAFETY: the value is initialized.
    let last = unsafe { all.places[3].assume_init_read() };
    let at = place(&last);
    drop(last);
    all.len = 3;
    (all, new("MaybeUninit array", at))
}

#[repr(i32)]
#[derive(Clone, Copy)]
pub enum Short {
    First = -3,
    Second = -2,
}

#[repr(i64)]
#[derive(Clone, Copy)]
pub enum Long {
    First = -100,
    Second = 5,
}

/// The discriminant of `None` is a number that belongs to no variant of `Short` or `Long`.
pub struct Niches {
    pub short: Option<(Short, *const Old)>,
    pub long: Option<(Long, *const Old)>,
}

// SAFETY: the pointers are never followed.
unsafe impl Send for Niches {}

#[inline(never)]
fn emptied() -> (Vec<Niches>, Vec<Box<New>>) {
    let mut all = Vec::new();
    let mut blocks = Vec::new();
    for _ in 0..2 {
        let one = old();
        let at = place(&one);
        let pointer: *const Old = &*one;
        let filled = Niches { short: Some((Short::First, pointer)), long: Some((Long::Second, pointer)) };
        let mut niches = black_box(filled);
        (niches.short, niches.long) = (None, None);
        all.push(black_box(niches));
        drop(one);
        blocks.push(new("emptied Option with a niche", at));
    }
    (all, blocks)
}

#[inline(never)]
fn filled() -> Vec<Niches> {
    let pointer = || -> *const Old {
        let place = Box::into_raw(old());
        truth::is("filled Option with a niche", place, "stale::Old");
        place
    };
    let one = |_| Niches { short: Some((Short::Second, pointer())), long: Some((Long::First, pointer())) };
    (0..5).map(one).collect()
}

#[repr(u128)]
pub enum Wide {
    Pointer(Box<Old>) = 1 << 100,
    Number(u64) = 0,
}

#[inline(never)]
fn wide() -> (Vec<Wide>, Vec<Box<New>>) {
    let mut all = Vec::new();
    let mut blocks = Vec::new();
    for _ in 0..3 {
        let one = old();
        let at = place(&one);
        all.push(black_box(Wide::Number(at as u64)));
        drop(one);
        blocks.push(new("repr(u128)", at));
    }
    (all, blocks)
}

#[repr(i64)]
pub enum Signed {
    Pointer(Box<Signal>) = -1,
    Number(u64) = 255,
}

pub struct Signal(pub [u64; 9]);

#[inline(never)]
fn signed() -> Vec<Signed> {
    let pointer = |number| {
        let block = Box::new(Signal([number; 9]));
        truth::is("repr(i64) of -1", &*block, "stale::Signal");
        Signed::Pointer(block)
    };
    (0..6).map(|number| if number % 2 == 0 { pointer(number) } else { Signed::Number(number) }).collect()
}

/// A header that is the start of several types. A pointer to the header leads to a value of one of these types. One of
/// these types has the size of the header.
#[repr(C)]
pub struct Header {
    pub count: u64,
    pub kind: u64,
    pub rest: [u64; 2],
}

#[repr(C)]
pub struct Plain {
    pub header: [u64; 2],
    pub empty: [u64; 2],
}

#[repr(C)]
pub struct Long5 {
    pub header: [u64; 2],
    pub more: [u64; 5],
}

pub struct Erased(pub std::ptr::NonNull<Header>);

// SAFETY: the pointers are never followed.
unsafe impl Send for Erased {}

#[inline(never)]
fn erased() -> Vec<Erased> {
    let of = |number: u64| {
        let header = [number; 2];
        let place: *mut Header = if number % 2 == 0 {
            let block = Box::into_raw(Box::new(Plain { header, empty: [0; 2] }));
            truth::is("erased pointer", block, "stale::Plain");
            block.cast()
        } else {
            let block = Box::into_raw(Box::new(Long5 { header, more: [0; 5] }));
            truth::is("erased pointer", block, "stale::Long5");
            block.cast()
        };
        Erased(std::ptr::NonNull::new(place).expect("a block"))
    };
    (0..20).map(of).collect()
}

pub struct World {
    pub popped: (Vec<Box<Old>>, Box<New>),
    pub truncated: (Vec<Box<Old>>, Vec<Box<New>>),
    pub dangling: (Box<Dangling>, Box<New>),
    pub manual: (Box<Manual>, Box<New>),
    pub task: (Task, Box<New>),
    pub half_read: (Box<std::vec::IntoIter<Box<Old>>>, Box<New>),
    pub inline: (Box<Inline>, Box<New>),
    pub emptied: (Vec<Niches>, Vec<Box<New>>),
    pub filled: Vec<Niches>,
    pub wide: (Vec<Wide>, Vec<Box<New>>),
    pub signed: Vec<Signed>,
    pub erased: Vec<Erased>,
}

// SAFETY: the dangling pointer is never followed.
unsafe impl Send for World {}

pub static WORLD: Mutex<Option<Box<World>>> = Mutex::new(None);

fn main() {
    truth::open();
    let world = Box::new(World {
        popped: popped(),
        truncated: truncated(),
        dangling: dangling(),
        manual: manual(),
        task: task(),
        half_read: half_read(),
        inline: inline(),
        emptied: emptied(),
        filled: filled(),
        wide: wide(),
        signed: signed(),
        erased: erased(),
    });
    *WORLD.lock().expect("no panic") = Some(world);
    truth::wait();
    let world = WORLD.lock().expect("no panic");
    std::process::exit(black_box(world.as_ref().expect("it is set").popped.0.len() as i32) - 2);
}
