//! Types with many fields and variants, and impls that use much stack: they compile, their sizes are right, and deep
//! values of them can be measured on a small stack.

use std::convert::Infallible;
use std::hint::black_box;
use std::mem::ManuallyDrop;

use heap_graph::HeapGraph;
use memory_reporter::{
    MallocSizeOf, MallocSizeOfOps, Reading, computed_size_of, malloc_size_of,
    measure::{add_size_of, size_summary},
    size_tree,
};

fn text(n: usize) -> String {
    "x".repeat(n)
}

/// Calls the macro with the tokens, doubled for each `x`.
macro_rules! doubled {
    ($macro:ident [] $($token:tt)*) => { $macro!($($token)*); };
    ($macro:ident [x $($x:tt)*] $($token:tt)*) => { doubled!($macro [$($x)*] $($token)* $($token)*); };
}

macro_rules! tuple {
    ($($ty:ident)*) => {
        #[derive(MallocSizeOf)]
        #[allow(dead_code, reason = "the test only checks that it compiles")]
        struct Thousands($($ty),*);
    };
}
doubled!(tuple [x x x x x x x x x x] u8 u8 u8 u8 u8 u8);

#[test]
fn six_thousand_fields() {
    const { assert!(size_of::<Thousands>() > 6000 && !Thousands::NEEDS_WALK) };
}

#[derive(Default)]
struct Sizes {
    first: usize,
    other: usize,
}

macro_rules! many {
    ($($name:ident)*) => {
        /// An enum with many variants and with `sizes`.
        #[derive(MallocSizeOf)]
        #[malloc_size_of(sizes = Sizes)]
        enum Many {
            Next(#[malloc_size_of(add_to = other, split)] Box<Many>),
            $($name {
                #[malloc_size_of(add_to = first)]
                text: String,
                #[malloc_size_of(add_to = other)]
                bytes: Vec<u8>,
            },)*
            Last,
        }

        #[derive(MallocSizeOf)]
        #[allow(non_snake_case, reason = "the names come from the variants")]
        struct Wide {
            $($name: String,)*
            next: Option<Box<Wide>>,
        }

        #[derive(MallocSizeOf)]
        #[allow(non_snake_case, reason = "the names come from the variants")]
        enum Alone {
            All { $($name: String,)* }
        }

        #[derive(MallocSizeOf)]
        #[allow(non_snake_case, clippy::large_enum_variant, reason = "the names come from the variants")]
        enum Uneven {
            Few(String, String),
            Never(Infallible),
            #[malloc_size_of(ignore = "the test checks the attribute")]
            Ignored(#[allow(dead_code, reason = "never read")] String),
            All { $($name: String,)* },
            Nothing,
        }

        #[derive(MallocSizeOf)]
        #[repr(C, packed)]
        #[allow(non_snake_case, reason = "the names come from the variants")]
        struct Packed<T> {
            $($name: T,)*
        }

        fn each() -> Vec<Many> {
            let mut n = 0;
            vec![$({ n += 1; Many::$name { text: text(n), bytes: vec![0; 1000 * n] } },)* Many::Last]
        }

        fn wide() -> Wide {
            let mut n = 0;
            Wide { $($name: { n += 1; text(n) },)* next: None }
        }

        fn empty() -> Wide {
            Wide { $($name: String::new(),)* next: None }
        }

        fn alone() -> Alone {
            let mut n = 0;
            Alone::All { $($name: { n += 1; text(n) },)* }
        }

        fn uneven() -> [Uneven; 5] {
            let mut n = 0;
            let all = Uneven::All { $($name: { n += 1; text(n) },)* };
            let never = |never: Infallible| Uneven::Never(never);
            let _ = never;
            [all, Uneven::Few(text(1), text(2)), Uneven::Ignored(text(9)), Uneven::Nothing, Uneven::Nothing]
        }

        fn packed() -> Packed<u32> {
            Packed { $($name: stringify!($name).len() as u32,)* }
        }
    };
}
many!(
        A1 A2 A3 A4 A5 A6 A7 A8 B1 B2 B3 B4 B5 B6 B7 B8
        C1 C2 C3 C4 C5 C6 C7 C8 D1 D2 D3 D4 D5 D6 D7 D8
        E1 E2 E3 E4 E5 E6 E7 E8 F1 F2 F3 F4 F5 F6 F7 F8
        G1 G2 G3 G4 G5 G6 G7 G8 H1 H2 H3 H4 H5 H6 H7 H8
        I1 I2 I3 I4 I5 I6 I7 I8 J1 J2 J3 J4 J5 J6 J7 J8
        K1 K2 K3 K4 K5 K6 K7 K8 L1 L2 L3 L4 L5 L6 L7 L8
        M1 M2 M3 M4 M5 M6 M7 M8 N1 N2 N3 N4 N5 N6 N7 N8
        O1 O2 O3 O4 O5 O6 O7 O8 P1 P2 P3 P4 P5 P6 P7 P8
);

const VARIANTS: usize = 128;
/// The sum 1 + 2 + ... + `VARIANTS`.
const SUM: usize = VARIANTS * (VARIANTS + 1) / 2;

#[test]
fn every_field_of_large_types_counts() {
    let each = each();
    assert_eq!(each.len(), VARIANTS + 1);
    assert_eq!(each.iter().map(computed_size_of).sum::<usize>(), 1001 * SUM);
    for (i, value) in each.iter().take(VARIANTS).enumerate() {
        assert_eq!(computed_size_of(value), 1001 * (i + 1));
        let mut sizes = Sizes::default();
        add_size_of(value, &mut sizes);
        assert_eq!((sizes.first, sizes.other), (i + 1, 1000 * (i + 1)));
        assert_eq!(size_tree(value).total().asked, 1001 * (i + 1));
    }
    assert_eq!(computed_size_of(&wide()), SUM);
    assert_eq!(size_tree(&wide()).total().blocks, VARIANTS);
    assert_eq!(computed_size_of(&alone()), SUM);
    assert_eq!(computed_size_of(&uneven()), SUM + 3);
    assert_eq!(computed_size_of(&packed()), 0);
    const { assert!(Many::NEEDS_WALK && Wide::NEEDS_WALK && Uneven::NEEDS_WALK) };
    const { assert!(!<Packed<u32> as MallocSizeOf>::NEEDS_WALK) };
}

fn on_a_small_stack(walk: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(walk).expect("a thread");
    thread.join().expect("the walk must not fail");
}

/// A list, and its bytes. The list is never dropped, since the stack is too small for that.
fn list<T>(depth: usize, mut last: T, next: impl Fn(Box<T>) -> T) -> (ManuallyDrop<T>, usize) {
    for _ in 0..depth {
        last = next(Box::new(last));
    }
    (ManuallyDrop::new(last), depth * size_of::<T>())
}

fn every_reading<T: MallocSizeOf>(value: &T) -> [usize; 4] {
    [
        malloc_size_of(value),
        size_summary(value).asked,
        size_tree(value).total().asked,
        MallocSizeOfOps::computed().erased(|ops| value.size_of_excluding_this(ops)),
    ]
}

#[test]
fn lists_of_large_types_are_measured_on_a_small_stack() {
    on_a_small_stack(|| {
        let (many, bytes) = list(300_000, Many::Last, Many::Next);
        assert_eq!(computed_size_of(&*many), bytes);
        let (many, bytes) = list(50_000, Many::Last, Many::Next);
        assert_eq!(every_reading(&*many), [bytes; 4]);
        let heap = HeapGraph::collect(|roots| roots.add("many", &*many));
        assert!(heap.graph().node_count() > 50_000);
        let mut sizes = Sizes::default();
        add_size_of(&*many, &mut sizes);
        assert_eq!((sizes.first, sizes.other), (0, bytes));
        let (wide, bytes) = list(20_000, empty(), |next| Wide { next: Some(next), ..empty() });
        assert_eq!(computed_size_of(&*wide), bytes);
        assert_eq!(every_reading(&*wide), [bytes; 4]);
    });
}

/// Uses more stack than the library reserves for unknown impls.
struct Greedy {
    next: Option<Box<Self>>,
    erased: Option<Box<dyn Shape>>,
}

trait Shape: memory_reporter::measure::ErasedMallocSizeOf {}
memory_reporter::malloc_size_of_dyn!(Shape);
impl Shape for Greedy {}

impl Greedy {
    const LAST: Self = Self { next: None, erased: None };
}

impl MallocSizeOf for Greedy {
    #[inline(never)]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let mut buffer = [0_u8; 400 << 10];
        black_box(&mut buffer);
        ops.field("next", &self.next) + ops.field("erased", &self.erased) + usize::from(buffer[0])
    }
}

#[inline(never)]
fn greedy<R: Reading>(boxed: &Option<Box<Foreign>>, ops: &mut MallocSizeOfOps<R>) -> usize {
    let mut buffer = [0_u8; 400 << 10];
    black_box(&mut buffer);
    ops.field("boxed", boxed) + usize::from(buffer[0])
}

#[derive(MallocSizeOf)]
struct Foreign {
    #[malloc_size_of(with = greedy)]
    next: Option<Box<Foreign>>,
}

/// A chain of small steps. Each step has a value behind `dyn` that uses much stack.
#[derive(MallocSizeOf)]
struct Spine {
    greedy: Option<Box<dyn Shape>>,
    next: Option<Box<Spine>>,
}

#[test]
fn impls_that_take_much_stack_are_given_it() {
    on_a_small_stack(|| {
        let (greedy, bytes) = list(100, Greedy::LAST, |next| Greedy { next: Some(next), ..Greedy::LAST });
        assert_eq!(computed_size_of(&*greedy), bytes);
        assert_eq!(every_reading(&*greedy), [bytes; 4]);
        let (foreign, bytes) = list(100, Foreign { next: None }, |next| Foreign { next: Some(next) });
        assert_eq!(computed_size_of(&*foreign), bytes);
        assert_eq!(every_reading(&*foreign), [bytes; 4]);
        let (erased, bytes) = list(100, Greedy::LAST, |next| Greedy { erased: Some(next), ..Greedy::LAST });
        assert_eq!(computed_size_of(&*erased), bytes);
        let shape = || -> Option<Box<dyn Shape>> {
            Some(Box::new(Greedy { next: Some(Box::new(Greedy::LAST)), ..Greedy::LAST }))
        };
        let last = Spine { greedy: shape(), next: None };
        let (spine, bytes) = list(5_000, last, |next| Spine { greedy: shape(), next: Some(next) });
        assert_eq!(computed_size_of(&*spine), bytes + 5_001 * 2 * size_of::<Greedy>());
    });
}
