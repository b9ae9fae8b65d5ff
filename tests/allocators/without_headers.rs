//! Shared values under allocators that put no headers between blocks.

use std::collections::HashSet;
use std::rc::{self, Rc};
use std::sync::{Arc, Weak};

use memory_reporter::{computed_size_of, malloc_size_of};

/// Without headers between blocks, a value of size 0 has the address of the next block.
#[test]
fn a_shared_value_without_size_hides_no_other_block() {
    let mut ends = (Vec::<Arc<()>>::new(), Vec::<Rc<()>>::new(), Vec::<Arc<str>>::new());
    let mut weak = (Vec::<Weak<()>>::new(), Vec::<rc::Weak<[u64]>>::new());
    let mut owners = Vec::new();
    for _ in 0..100 {
        let mut own = || owners.push(triomphe::Arc::new(Box::new([0_u8; 1000])));
        ends.0.push(Arc::new(()));
        own();
        ends.1.push(Rc::new(()));
        own();
        ends.2.push(Arc::from(""));
        own();
        weak.0.push(Arc::downgrade(&Arc::new(())));
        own();
        weak.1.push(Rc::downgrade(&Rc::from([].as_slice())));
        own();
    }
    let starts: HashSet<usize> = owners.iter().map(|arc| arc.heap_ptr().addr()).collect();
    let after = |arc: &Arc<()>| starts.contains(&Arc::as_ptr(arc).addr());
    assert!(ends.0.iter().any(after), "no block starts at the address of a value");
    let computed = computed_size_of(&ends) + computed_size_of(&weak) + computed_size_of(&owners);
    let measured = malloc_size_of(&ends) + malloc_size_of(&weak) + malloc_size_of(&owners);
    assert!(computed > 500 * 1000);
    let together = (ends, weak, owners);
    assert_eq!((computed_size_of(&together), malloc_size_of(&together)), (computed, measured));
    // The walk recognizes a block at each later reference to it.
    let (ends, ..) = together;
    let clones: Vec<_> = ends.0.iter().cloned().chain(ends.0.iter().cloned()).collect();
    let once = computed_size_of(&ends) + computed_size_of(&clones) - 100 * 16;
    assert_eq!(computed_size_of(&(ends, clones)), once);
}
