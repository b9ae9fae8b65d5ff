//! Scopes: each figure equals a number that the test computes, whatever other tests do at the same time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;

use allocators::{Counting, Random};
use memory_reporter::scopes::{HeapFigures, Scope};
use memory_reporter::tags::{Tag, TaggedFuture, spawn_tagged};
use memory_reporter::{CollectOptions, collect_reports, tag};

memory_reporter::global_allocator!(Counting);

fn figures(scope: &Scope) -> HeapFigures {
    scope.figures().expect("an allocator is declared")
}

fn buffer(bytes: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(bytes))
}

/// The amount at a path; 0 if there is no report.
fn amount(path: &str) -> usize {
    let set = collect_reports(&CollectOptions::new());
    set.iter().filter(|report| report.path == path).map(|report| report.amount as usize).sum()
}

/// Allocates and frees in a way whose figures are known: `n` blocks of 1 to `n` bytes, of which every third stays, and
/// one block that grows from `n` to `2 n` bytes.
fn closed_form(n: usize) -> (Vec<Vec<u8>>, HeapFigures) {
    let mut kept: Vec<Vec<u8>> = Vec::with_capacity(n);
    let (kept, scope) = Scope::measure(move || {
        for size in 1..=n {
            let block = buffer(size);
            if size % 3 == 0 {
                kept.push(block);
            }
        }
        let mut grown = buffer(n);
        grown.reserve_exact(2 * n);
        drop(black_box(grown));
        kept
    });
    (kept, scope.figures().expect("an allocator is declared"))
}

fn check_closed_form(n: usize) {
    let (kept, figures) = closed_form(n);
    let (n, thirds) = (n as u64, n as u64 / 3);
    let kept_bytes = 3 * thirds * (thirds + 1) / 2;
    assert_eq!(figures.allocations, n + 1);
    assert_eq!(figures.reallocations, 1);
    assert_eq!(figures.frees, n - thirds + 1);
    assert_eq!(figures.bytes, n * (n + 1) / 2 + n + 2 * n);
    assert_eq!((figures.retained_blocks, figures.retained_bytes), (thirds, kept_bytes));
    assert_eq!(figures.net_bytes, kept_bytes as i64);
    // The largest sum is at the reallocation, since `2 n` is more than any other block.
    assert_eq!(figures.peak_bytes, kept_bytes + 2 * n);
    assert!(figures.usable_bytes >= figures.bytes);
    drop(kept);
}

/// 200 tests, each with other numbers. They run on all threads of the test's process.
macro_rules! closed_forms {
    ($($name:ident: $hundreds:literal)*) => {
        $(mod $name {
            closed_forms!(@tens $hundreds, a 0, b 10, c 20, d 30, e 40, f 50, g 60, h 70, i 80, j 90);
        })*
    };
    (@tens $hundreds:literal, $($name:ident $tens:literal),*) => {
        $(mod $name {
            closed_forms!(@ones $hundreds + $tens, a 1, b 2, c 3, d 4, e 5, f 6, g 7, h 8, i 9, j 10);
        })*
    };
    (@ones $base:expr, $($name:ident $one:literal),*) => {
        $(#[test]
        fn $name() {
            for round in 0..20 {
                super::super::check_closed_form($base + $one + round * 10);
            }
        })*
    };
}

closed_forms!(first: 0 second: 100);

#[test]
fn figures_of_a_scope_are_those_of_its_code() {
    let before = buffer(500);
    let (values, scope) = Scope::measure(|| {
        let values = vec![buffer(100), buffer(200)];
        drop(buffer(1000));
        values
    });
    let figures = scope.figures().unwrap();
    let list = (2 * size_of::<Vec<u8>>()) as u64;
    assert_eq!((figures.allocations, figures.reallocations, figures.frees), (4, 0, 1));
    assert_eq!((figures.bytes, figures.peak_bytes), (1300 + list, 1300 + list));
    assert_eq!((figures.retained_blocks, figures.retained_bytes), (3, 300 + list));
    drop((values, before));
    // The end of the call is over, so its figures stay. The scope itself goes on.
    assert_eq!(scope.figures().unwrap(), figures);
    assert_eq!((self::figures(scope.scope()).retained_blocks, self::figures(scope.scope()).frees), (0, 4));
}

#[test]
fn zeroed_and_aligned_blocks_count() {
    #[repr(align(256))]
    struct Aligned(#[allow(dead_code, reason = "only its size counts")] [u8; 256]);
    let (values, scope) = Scope::measure(|| (vec![0_u8; 5000], Box::new(Aligned([0; 256])), Box::new(1_u8)));
    let figures = scope.figures().unwrap();
    assert_eq!((figures.allocations, figures.bytes), (3, 5000 + 256 + 1));
    drop(values);
}

#[test]
fn a_scope_without_allocations_has_zeros() {
    let ((), scope) = Scope::measure(|| ());
    assert_eq!(scope.figures().unwrap(), HeapFigures::default());
}

#[test]
fn nested_scopes_count_in_all_outer_scopes() {
    let (outer, inner) = (Scope::named("outer"), Scope::named("inner"));
    let (first, second, third) = outer.run(|| {
        let first = buffer(100);
        let second = inner.run(|| buffer(1000));
        // A scope inside itself counts once.
        let third = outer.run(|| inner.run(|| outer.run(|| buffer(10_000))));
        (first, second, third)
    });
    let [outer_figures, inner_figures] = [&outer, &inner].map(figures);
    assert_eq!((outer_figures.allocations, outer_figures.bytes), (3, 11_100));
    assert_eq!((inner_figures.allocations, inner_figures.bytes), (2, 11_000));
    drop((second, third));
    assert_eq!(figures(&outer).retained_bytes, 100);
    assert_eq!(figures(&inner).retained_bytes, 0);
    assert_eq!(figures(&outer).peak_bytes, 11_100);
    drop(first);
    // The inner scope outside of the outer one.
    drop(inner.run(|| buffer(50)));
    assert_eq!((figures(&outer).bytes, figures(&inner).bytes), (11_100, 11_050));
}

#[test]
fn overlapping_guards_end_in_any_order() {
    let (first, second, third) = (Scope::named("first"), Scope::named("second"), Scope::named("third"));
    let in_first = first.enter();
    let in_second = second.enter();
    drop(buffer(10));
    let in_third = third.enter();
    drop(in_first);
    drop(buffer(100));
    drop(in_third);
    drop(buffer(1000));
    drop(in_second);
    drop(buffer(10_000));
    assert_eq!([&first, &second, &third].map(|scope| figures(scope).bytes), [10, 1110, 100]);
}

#[test]
fn another_thread_frees_the_blocks_of_a_scope() {
    let (value, scope) = Scope::measure(|| buffer(4096));
    assert_eq!(scope.figures().unwrap().retained_blocks, 1);
    thread::spawn(move || drop(value)).join().unwrap();
    let later = figures(scope.scope());
    assert_eq!((later.retained_blocks, later.frees, later.net_bytes), (0, 1, 0));
}

#[test]
fn net_has_the_blocks_of_others_and_retained_does_not() {
    let (old, other) = (buffer(300), Scope::named("other"));
    let others = other.run(|| buffer(700));
    let (kept, scope) = Scope::measure(|| {
        drop((old, others));
        buffer(100)
    });
    let figures = scope.figures().unwrap();
    assert_eq!((figures.retained_bytes, figures.net_bytes, figures.frees), (100, 100 - 1000, 0));
    assert_eq!(self::figures(&other).frees, 1);
    drop(kept);
}

#[test]
fn a_block_from_outside_belongs_to_the_scope_in_which_it_grows() {
    let (mut grown, mut shrunk) = (buffer(100), buffer(1000));
    let other = Scope::named("other");
    let mut others = other.run(|| buffer(50));
    let ((), scope) = Scope::measure(|| {
        grown.reserve_exact(300);
        shrunk.shrink_to(400);
        others.reserve_exact(80);
    });
    let figures = scope.figures().unwrap();
    assert_eq!((figures.allocations, figures.reallocations), (0, 3));
    assert_eq!(figures.bytes, 300 + 400 + 80);
    assert_eq!((figures.retained_blocks, figures.retained_bytes), (1, 300));
    assert_eq!(figures.net_bytes, 200 - 600 + 30);
    assert_eq!(self::figures(&other).retained_bytes, 80);
    drop((grown, shrunk, others));
    assert_eq!(self::figures(scope.scope()).retained_blocks, 0);
}

#[test]
fn the_peak_is_the_scope_s_own() {
    // Frees of older blocks make no room for the peak.
    let old = buffer(100_000);
    let ((), scope) = Scope::measure(|| {
        drop(old);
        drop(buffer(5000));
        drop(buffer(3000));
    });
    assert_eq!(scope.figures().unwrap().peak_bytes, 5000);
}

#[test]
fn a_panic_ends_the_scope() {
    let scope = Scope::named("panics");
    let result = catch_unwind(AssertUnwindSafe(|| {
        scope.run(|| {
            let kept = buffer(100);
            let _freed = buffer(200);
            std::panic::resume_unwind(Box::new(kept));
        });
    }));
    drop(buffer(10_000));
    let after = figures(&scope);
    // The box of the panic and the buffer in it.
    assert_eq!((after.retained_blocks, after.retained_bytes), (2, 100 + size_of::<Vec<u8>>() as u64));
    drop(result);
    assert_eq!(figures(&scope).retained_blocks, 0);
}

#[test]
fn tags_and_scopes_nest_in_both_orders() {
    let scope = Scope::named("beside tags");
    let path = "explicit/scopes/tagged";
    let in_tag = tag(path);
    let first = scope.run(|| buffer(1024));
    drop(in_tag);
    let second = scope.run(|| {
        let _tag = tag(path);
        assert_eq!(Tag::current(), Tag::new(path));
        let second = buffer(2048);
        let _none = Tag::NONE.enter();
        drop(buffer(8));
        second
    });
    assert_eq!(Tag::current(), Tag::NONE);
    assert_eq!((figures(&scope).allocations, figures(&scope).bytes), (3, 1024 + 2048 + 8));
    let tagged = amount(path);
    assert!((3072..3072 + 64).contains(&tagged), "{tagged}");
    drop((first, second));
    assert_eq!((amount(path), figures(&scope).retained_blocks), (0, 0));
}

#[test]
fn threads_and_jobs_are_in_the_scope_where_asked() {
    let scope = Scope::named("threads");
    let job = scope.wrap(|| buffer(20));
    let plain = scope.run(|| thread::spawn(|| buffer(10_000)));
    let (spawned, inherited) = scope.run(|| {
        let _tag = tag("explicit/scopes/inherited");
        (scope.spawn(|| buffer(300)), spawn_tagged(|| (buffer(4000), Tag::current())))
    });
    let inherited = inherited.join().unwrap();
    assert_eq!(inherited.1, Tag::new("explicit/scopes/inherited"));
    let kept = [thread::spawn(job).join().unwrap(), spawned.join().unwrap(), inherited.0];
    let plain = plain.join().unwrap();
    let held = figures(&scope);
    // The scope also made three threads, whose memory is small.
    assert!((4320..4320 + 2500).contains(&held.retained_bytes), "{held:?}");
    drop((kept, plain));
}

fn poll<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Waits once.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[test]
fn futures_count_at_each_poll_and_at_their_end() {
    let (first, second) = (Scope::named("first future"), Scope::named("second future"));
    let task = |bytes: usize| async move {
        let kept = buffer(bytes);
        Yield(false).await;
        drop(buffer(2 * bytes));
        Yield(false).await;
        drop(kept);
        buffer(3 * bytes)
    };
    let mut one = Box::pin(first.future(task(100)));
    let mut two = Box::pin(second.future(task(1000)));
    assert!(poll(&mut one).is_pending());
    assert!(poll(&mut two).is_pending());
    let mut one = thread::spawn(move || {
        assert!(poll(&mut one).is_pending());
        one
    })
    .join()
    .unwrap();
    assert!(poll(&mut two).is_pending());
    let Poll::Ready(kept) = poll(&mut one) else { panic!("the first future ends") };
    drop((one, two));
    let [first, second] = [&first, &second].map(figures);
    assert_eq!((first.allocations, first.bytes, first.peak_bytes), (3, 600, 300));
    assert_eq!((first.retained_bytes, first.net_bytes), (300, 300));
    // The drop of the second future frees its buffer in the scope.
    assert_eq!((second.allocations, second.frees, second.retained_blocks), (2, 2, 0));
    assert_eq!((second.net_bytes, second.peak_bytes), (0, 3000));
    drop(kept);
    let tagged = Scope::named("tagged").run(|| TaggedFuture::new(async { buffer(1) }));
    drop(tagged);
}

#[test]
fn threads_in_one_scope_exchange_blocks() {
    const THREADS: usize = 8;
    let scope = Scope::named("exchange");
    let own: Vec<Scope> = (0..THREADS).map(|i| Scope::named(format!("thread {i}"))).collect();
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel::<Vec<u8>>()).unzip();
    let made: Vec<(u64, u64)> = thread::scope(|threads| {
        let running: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(i, receiver)| {
                let (senders, scope, own) = (senders.clone(), &scope, &own[i]);
                threads.spawn(move || {
                    let mut random = Random::new(i as u64 + 1);
                    let (mut blocks, mut bytes) = (0, 0);
                    for _ in 0..3000 {
                        let size = 1 + random.below(500) as usize;
                        let block = scope.run(|| own.run(|| buffer(size)));
                        (blocks, bytes) = (blocks + 1, bytes + size as u64);
                        // The thread may have ended: then the block ends here.
                        let _ = senders[random.below(THREADS as u64) as usize].send(block);
                        while let Ok(foreign) = receiver.try_recv() {
                            drop(foreign);
                        }
                    }
                    drop(senders);
                    receiver.iter().for_each(drop);
                    (blocks, bytes)
                })
            })
            .collect();
        drop(senders);
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (own, (blocks, bytes)) in own.iter().zip(&made) {
        let figures = figures(own);
        assert_eq!((figures.allocations, figures.bytes), (*blocks, *bytes));
        assert_eq!((figures.frees, figures.retained_bytes, figures.net_bytes), (*blocks, 0, 0));
    }
    let all = figures(&scope);
    assert_eq!(all.allocations, made.iter().map(|made| made.0).sum::<u64>());
    assert_eq!(all.bytes, made.iter().map(|made| made.1).sum::<u64>());
    assert_eq!((all.retained_blocks, all.retained_bytes), (0, 0));
    assert!(all.peak_bytes > 0 && all.peak_bytes <= all.bytes);
}

/// Compares scopes with a model: random allocations, frees and changes of size under random scopes.
#[test]
fn random_code_has_the_figures_of_a_model() {
    let mut random = Random::new(7);
    let scopes: Vec<Scope> = (0..4).map(|i| Scope::named(format!("model {i}"))).collect();
    let mut model = vec![HeapFigures::default(); scopes.len()];
    let mut blocks: Vec<(Option<usize>, Vec<u8>)> = Vec::with_capacity(1000);
    let raise =
        |figures: &mut HeapFigures| figures.peak_bytes = figures.peak_bytes.max(figures.retained_bytes);
    for _ in 0..20_000 {
        let acting = Some(random.below(5) as usize).filter(|acting| *acting < scopes.len());
        let _guard = acting.map(|acting| scopes[acting].enter());
        let size = 1 + random.below(300) as usize;
        let index = random.below(blocks.len() as u64 + 1) as usize;
        match random.below(3) {
            0 if index < blocks.len() && size > blocks[index].1.capacity() => {
                let (owner, block) = &mut blocks[index];
                let old = block.capacity();
                block.reserve_exact(size);
                if let Some(acting) = acting {
                    model[acting].reallocations += 1;
                    model[acting].bytes += size as u64;
                    model[acting].net_bytes += size as i64 - old as i64;
                }
                match *owner {
                    Some(owner) => {
                        model[owner].retained_bytes += (size - old) as u64;
                        if Some(owner) != acting {
                            model[owner].net_bytes += size as i64 - old as i64;
                        }
                        raise(&mut model[owner]);
                    }
                    None => {
                        *owner = acting;
                        if let Some(acting) = acting {
                            model[acting].retained_blocks += 1;
                            model[acting].retained_bytes += size as u64;
                            raise(&mut model[acting]);
                        }
                    }
                }
            }
            1 if index < blocks.len() => {
                let (owner, block) = blocks.swap_remove(index);
                let size = block.capacity() as u64;
                drop(block);
                if let Some(owner) = owner {
                    model[owner].frees += 1;
                    model[owner].retained_blocks -= 1;
                    model[owner].retained_bytes -= size;
                    model[owner].net_bytes -= size as i64;
                }
                if let Some(acting) = acting.filter(|acting| owner != Some(*acting)) {
                    model[acting].net_bytes -= size as i64;
                }
            }
            _ if blocks.len() < blocks.capacity() => {
                blocks.push((acting, buffer(size)));
                if let Some(acting) = acting {
                    model[acting].allocations += 1;
                    model[acting].bytes += size as u64;
                    model[acting].retained_blocks += 1;
                    model[acting].retained_bytes += size as u64;
                    model[acting].net_bytes += size as i64;
                    raise(&mut model[acting]);
                }
            }
            _ => {}
        }
    }
    for (scope, mut model) in scopes.iter().zip(model) {
        let figures = figures(scope);
        model.usable_bytes = figures.usable_bytes;
        assert_eq!(figures, model, "{}", scope.name());
    }
}

#[test]
fn numbers_of_scopes_are_used_again() {
    let held: RefCell<BTreeMap<u32, Vec<u8>>> = RefCell::default();
    // More scopes than numbers. Some blocks outlive their scopes.
    for i in 0..100_000_u32 {
        let (block, scope) = Scope::measure(|| buffer(1 + i as usize % 50));
        let figures = scope.figures().unwrap();
        assert_eq!((figures.allocations, figures.bytes), (1, 1 + u64::from(i) % 50), "{i}");
        if i % 100 == 0 {
            held.borrow_mut().insert(i, block);
        }
        if i % 1000 == 999 {
            held.borrow_mut().pop_first();
        }
    }
}
