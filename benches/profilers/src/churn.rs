//! w1 and w2: blocks that are allocated and freed at random. The stack changes from block to block. There are a few
//! thousand different stacks.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::mpsc;

use crate::Done;

/// A generator of pseudo-random numbers (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    #[inline(always)]
    pub(crate) fn next(&mut self) -> u64 {
        let mut x = self.0;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0 = x;
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Live blocks. Each operation drops one of them and allocates another in its place.
struct Churn {
    blocks: Vec<Option<Box<[MaybeUninit<u8>]>>>,
    random: Random,
    left: u64,
    sum: u64,
}

impl Churn {
    fn new(live: usize, left: u64, seed: u64) -> Self {
        Self { blocks: (0..live).map(|_| None).collect(), random: Random::new(seed), left, sum: 0 }
    }

    /// A random size, distributed like the sizes of nodes and strings: mostly 16 to 128 bytes, up to 2 KiB.
    #[inline(always)]
    fn size(&mut self) -> usize {
        let bits = self.random.next();
        let shift = 4 + (bits & 3) + ((bits >> 2) & (bits >> 3) & 3);
        ((1 << shift) + ((bits >> 32) as usize & ((1 << shift) - 1))).min(2048)
    }

    #[inline(always)]
    fn step(&mut self) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let at = (((self.random.next() >> 32) * self.blocks.len() as u64) >> 32) as usize;
        let size = self.size();
        self.blocks[at] = None;
        let mut block = Box::new_uninit_slice(size);
        self.sum = self.sum.wrapping_add(u64::from(*block[0].write(at as u8)));
        self.blocks[at] = Some(black_box(block));
    }
}

/// Eight functions that call each other. Each function reads three bits of `path` to select the next function. A stack
/// has `depth` frames of these functions, then frames of a small tree of calls. Each call in the tree allocates.
macro_rules! functions {
    ($($name:ident $salt:literal),*) => {
        $(
            #[inline(never)]
            fn $name(churn: &mut Churn, path: u64, depth: u32, tree: u32) -> u64 {
                // The value is used after the calls, so that no call is a tail call.
                let mut local = [path ^ $salt, u64::from(depth), u64::from(tree), $salt];
                black_box(&mut local);
                let sum = if depth > 0 {
                    NEXT[path as usize & 7](churn, path.rotate_right(3), depth - 1, tree)
                } else {
                    churn.step();
                    let mut sum = 0;
                    if tree > 0 {
                        sum ^= NEXT[(path >> 7) as usize & 7](churn, path.rotate_right(5), 0, tree - 1);
                    }
                    if tree % 2 == 1 {
                        sum ^= NEXT[(path >> 11) as usize & 7](churn, path.rotate_right(9), 0, tree - 1);
                    }
                    sum
                };
                black_box(&mut local);
                sum.wrapping_add(local[3]).rotate_left(1)
            }
        )*
        static NEXT: [fn(&mut Churn, u64, u32, u32) -> u64; 8] = [$($name),*];
    };
}
functions!(parse 1, lower 2, visit 3, expand 4, resolve 5, emit 6, fold 7, rewrite 8);

/// One of 64 paths: stacks repeat, as in real programs.
fn path(pick: u64) -> u64 {
    ((pick & 63) + 1).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn descend(churn: &mut Churn, path: u64, depth: u32, tree: u32) -> u64 {
    NEXT[(path >> 61) as usize](churn, path, depth, tree)
}

/// At scale 1: 20 million allocations, 200,000 live blocks, 20 to 30 frames.
pub(crate) fn one_thread(scale: f64) -> Done {
    let mut churn = Churn::new(200_000, (20e6 * scale) as u64, 1);
    let mut picks = Random::new(76);
    let mut sum = 0;
    while churn.left > 0 {
        let path = path(picks.next());
        sum ^= descend(&mut churn, path, 14 + (path >> 40) as u32 % 5, 8);
    }
    (sum ^ churn.sum, Box::new(churn))
}

const THREADS: usize = 4;
const BATCH: u64 = 256;

type Batch = Vec<Box<[u8]>>;

/// At scale 1: four threads with 2.5 million allocations each. Another thread frees half of the blocks.
pub(crate) fn four_threads(scale: f64) -> Done {
    let batches = ((2.5e6 * scale / (2 * BATCH) as f64) as u64).max(1);
    let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::sync_channel(16)).unzip();
    receivers.rotate_right(1);
    let threads: Vec<_> = senders
        .into_iter()
        .zip(receivers)
        .zip(100..)
        .map(|((sender, receiver), seed)| {
            std::thread::spawn(move || churn_and_pass_on(batches, seed, sender, &receiver))
        })
        .collect();
    let done: Vec<_> = threads.into_iter().filter_map(|thread| thread.join().ok()).collect();
    (done.iter().fold(0, |all, (sum, _)| all ^ sum), Box::new(done))
}

fn churn_and_pass_on(
    batches: u64,
    seed: u64,
    sender: mpsc::SyncSender<Batch>,
    receiver: &mpsc::Receiver<Batch>,
) -> (u64, Churn) {
    let mut churn = Churn::new(10_000, 0, seed);
    let mut sum = 0;
    for batch in 0..batches {
        churn.left = BATCH;
        while churn.left > 0 {
            let path = path(batch.wrapping_mul(31) + churn.left);
            sum ^= descend(&mut churn, path, 8, 6);
        }
        let mut blocks = Vec::with_capacity(BATCH as usize);
        for block in 0..BATCH as u32 {
            sum ^= make(&mut churn, &mut blocks, 6 + (block & 3));
        }
        // Sending fails only if the neighbor has panicked.
        _ = sender.send(blocks);
        if batch > 8
            && let Ok(blocks) = receiver.try_recv()
        {
            sum ^= blocks.len() as u64;
        }
    }
    drop(sender);
    sum = receiver.iter().fold(sum, |sum, blocks| sum ^ blocks.len() as u64);
    (sum, churn)
}

#[inline(never)]
fn make(churn: &mut Churn, blocks: &mut Batch, depth: u32) -> u64 {
    let mut local = [depth; 4];
    black_box(&mut local);
    let size = if depth > 0 {
        make(churn, blocks, depth - 1)
    } else {
        let size = churn.size();
        blocks.push(vec![7; size].into_boxed_slice());
        size as u64
    };
    black_box(&mut local);
    size + u64::from(local[0])
}
