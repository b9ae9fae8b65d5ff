//! Types with equal layouts, for which the compiler keeps only one function, and blocks whose type differs from the
//! type that their stacks name. Unlike for other victims, a test compiles this program with optimization.

#![allow(dead_code, reason = "only the types and the blocks count")]

use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::process::exit;

struct Metre([u64; 3]);
struct Foot([u64; 3]);

/// Distinguishes functions of the two units that must not be merged.
trait Unit: Sized {
    const LENGTH: u64;
    fn of(lengths: [u64; 3]) -> Self;
}

impl Unit for Metre {
    const LENGTH: u64 = 10_000;
    fn of(lengths: [u64; 3]) -> Self {
        Self(lengths)
    }
}

impl Unit for Foot {
    const LENGTH: u64 = 3_048;
    fn of(lengths: [u64; 3]) -> Self {
        Self(lengths)
    }
}

/// The compiled code is the same for [`Metre`] and [`Foot`].
#[inline(never)]
fn boxed<T>(value: T) -> Box<T> {
    Box::new(value)
}

/// The compiled code differs, since each unit has another [`Unit::LENGTH`].
#[inline(never)]
fn lengths<T: Unit>(count: u64) -> Vec<Box<T>> {
    (0..count).map(|number| boxed(T::of([number * T::LENGTH; 3]))).collect()
}

struct Red([u64; 5]);
struct Blue([u64; 5]);

/// Three types of 16 bytes. They are aligned to 8, to 4 and to 8.
struct Pair(u64, u64);
struct Quad([u32; 4]);
struct Coin(u64, u64);

#[inline(never)]
fn room<T>() -> Vec<T> {
    Vec::with_capacity(black_box(7))
}

/// A vector whose buffer was allocated for another element type.
#[inline(never)]
fn taken<T>() -> ManuallyDrop<Vec<T>> {
    let mut room = ManuallyDrop::new(room::<Pair>());
    // SAFETY: the elements have the same size as the original elements, the length is 0, and the buffer is never
    // freed.
    ManuallyDrop::new(unsafe { Vec::from_raw_parts(room.as_mut_ptr().cast(), 0, room.capacity()) })
}

/// A vector whose buffer was allocated as a box.
#[inline(never)]
fn of_box<T>() -> ManuallyDrop<Vec<T>> {
    let place = Box::into_raw(boxed(Pair(1, 2))).cast();
    // SAFETY: there is room for one element of this size, the length is 0, and the buffer is never freed.
    ManuallyDrop::new(unsafe { Vec::from_raw_parts(place, 0, 1) })
}

/// A block for a `Metre`, allocated while a `Vec<Coin>` grows. A pointer to a `Vec<u8>` leads to the block. `Vec<Coin>`
/// and `Vec<u8>` have only the allocator in common, which does not prove that functions were merged.
#[inline(never)]
fn of_vector() -> ManuallyDrop<Box<Vec<u8>>> {
    let mut place = None;
    let mut coins = Vec::new();
    coins.resize_with(black_box(1), || {
        place = Some(boxed(Metre([1; 3])));
        Coin(1, 2)
    });
    black_box(&coins);
    let place = Box::into_raw(place.expect("one coin")).cast::<Vec<u8>>();
    // SAFETY: there is room for one vector, and its type allows these words. The vector is never read or freed.
    ManuallyDrop::new(unsafe { Box::from_raw(place) })
}

struct Store {
    metres: Vec<Box<Metre>>,
    feet: Vec<Box<Foot>>,
    red: Box<Red>,
    blue: Box<Blue>,
    pairs: Vec<Pair>,
    quads: ManuallyDrop<Vec<Quad>>,
    coins: ManuallyDrop<Vec<Coin>>,
    bytes: ManuallyDrop<Box<Vec<u8>>>,
}

fn main() {
    let store = Box::new(Store {
        metres: lengths(30),
        feet: lengths(40),
        red: boxed(Red([1; 5])),
        blue: boxed(Blue([2; 5])),
        pairs: room(),
        quads: taken(),
        coins: of_box(),
        bytes: of_vector(),
    });
    black_box(&store);
    exit(black_box(&store).metres.len() as i32 - 30);
}
