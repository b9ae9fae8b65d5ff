//! Computes immediate dominators from semidominators, by climbing.
//!
//! A node's immediate dominator is the nearest of its parent's dominators that is not below the node's semidominator.
//! All nodes are numbers of a depth-first walk. An ancestor has a smaller number than the node, so the ancestor's
//! dominator is already known.

use crate::progress::{CancelledError, StepCounter, chunks};

/// The average number of upward steps for each node. Beyond it, [`climb`] switches from steps to jumps. Heaps need
/// less than one step.
const PATIENCE: usize = 4;

/// Turns parents, by number, into the numbers of the immediate dominators. The root's dominator is the root itself.
/// Counts one step of progress for each node.
pub(super) fn climb(
    parents: Vec<u32>,
    semidominators: &[u32],
    steps: &mut StepCounter<'_>,
) -> Result<Vec<u32>, CancelledError> {
    let mut dominators = parents;
    dominators[0] = 0;
    let mut left = PATIENCE * dominators.len();
    let mut jumps: Option<JumpTable> = None;
    for part in chunks(1..dominators.len()) {
        steps.steps(part.len())?;
        for number in part {
            let semidominator = semidominators[number];
            let mut dominator = dominators[number];
            if let Some(jumps) = &mut jumps {
                dominator = jumps.climb(&dominators, dominator, semidominator);
                jumps.push(dominator);
            } else {
                while dominator > semidominator {
                    dominator = dominators[dominator as usize];
                    left = left.saturating_sub(1);
                }
                if left == 0 {
                    jumps = Some(JumpTable::new(&dominators[..number], dominator));
                }
            }
            dominators[number] = dominator;
        }
    }
    Ok(dominators)
}

/// A distant ancestor of each node, by the method of Eugene Myers (An Applicative Random-Access Stack, 1983). The
/// number of jumps to any ancestor is at most proportional to the logarithm of the depth.
struct JumpTable {
    depths: Vec<u32>,
    far: Vec<u32>,
}

impl JumpTable {
    /// Computes the jumps for the nodes with a known dominator, and for the next node, whose dominator is `next`.
    fn new(dominators: &[u32], next: u32) -> Self {
        let mut jumps = Self { depths: vec![0], far: vec![0] };
        dominators[1..].iter().for_each(|dominator| jumps.push(*dominator));
        jumps.push(next);
        jumps
    }

    fn push(&mut self, dominator: u32) {
        let depth = |node: u32| self.depths[node as usize];
        let once = self.far[dominator as usize];
        let twice = self.far[once as usize];
        let is_even = depth(dominator) - depth(once) == depth(once) - depth(twice);
        self.depths.push(depth(dominator) + 1);
        self.far.push(if is_even { twice } else { dominator });
    }

    /// The nearest ancestor that is not below the semidominator.
    fn climb(&self, dominators: &[u32], mut node: u32, semidominator: u32) -> u32 {
        while node > semidominator {
            let far = self.far[node as usize];
            node = if far > semidominator { far } else { dominators[node as usize] };
        }
        node
    }
}
