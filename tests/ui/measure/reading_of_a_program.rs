use memory_reporter::measure::{WalkObserver, WalkState, WalkedBlock};

#[derive(Default)]
struct Counting(WalkState, usize);

impl WalkObserver for Counting {
    unsafe fn block(&mut self, block: WalkedBlock) -> usize {
        self.1 += 1;
        block.layout.size()
    }

    fn state(&mut self) -> &mut WalkState {
        &mut self.0
    }
}

fn main() {}
