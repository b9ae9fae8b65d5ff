//! The owners of blocks, as frames for formats without labels.

use super::{ProfileStackId, SampleLabels, SampleLabelsId, StackProfile};

/// The owner of a sample's blocks: whether reporters reported them, and which reporters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct BlockOwner<'t> {
    /// `unreported`, `once` or `twice`.
    pub kind: Option<&'t str>,
    /// The reporter.
    pub reporter: Option<&'t str>,
}

impl<'t> BlockOwner<'t> {
    /// The frames that represent the owner, the kind first.
    pub fn frames(&self) -> impl Iterator<Item = String> + use<'t> {
        let kind = self.kind.map(|kind| match kind {
            "once" | "twice" => format!("reported {kind}"),
            kind => kind.to_owned(),
        });
        kind.into_iter().chain(self.reporter.map(|reporter| format!("reported by {reporter}")))
    }
}

/// The owners of all labels.
pub(crate) struct OwnerTable<'t> {
    /// The owners, sorted.
    pub(crate) all: Vec<BlockOwner<'t>>,
    /// The index of the owner for each labels id.
    of_labels: Vec<u32>,
}

impl OwnerTable<'_> {
    /// The index of the owner for these labels.
    pub(crate) fn index(&self, labels: SampleLabelsId) -> usize {
        self.of_labels[labels.0 as usize] as usize
    }
}

/// The sums of the blocks of one stack and one owner.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OwnerSum<'a> {
    /// The stack.
    pub stack: ProfileStackId,
    /// The owner.
    pub owner: BlockOwner<'a>,
    /// A sum for each of [`StackProfile::values`].
    pub sums: &'a [i128],
}

/// The sums of each stack and owner.
#[derive(Debug)]
pub struct OwnerSums<'t> {
    owners: Vec<BlockOwner<'t>>,
    keys: Vec<(ProfileStackId, u32)>,
    sums: Vec<i128>,
    width: usize,
}

impl OwnerSums<'_> {
    /// The sums, sorted by stack, then by owner. No two elements have the same stack and owner.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = OwnerSum<'_>> + Clone {
        self.keys.iter().enumerate().map(|(index, (stack, owner))| OwnerSum {
            stack: *stack,
            owner: self.owners[*owner as usize],
            sums: &self.sums[index * self.width..(index + 1) * self.width],
        })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The owners, sorted, and for each element the index of its owner.
    pub(crate) fn owners(&self) -> (&[BlockOwner<'_>], impl Iterator<Item = usize>) {
        (&self.owners, self.keys.iter().map(|(_, owner)| *owner as usize))
    }
}

impl StackProfile {
    pub(crate) fn owners(&self) -> OwnerTable<'_> {
        // Ids are in the order of texts, and labels are in the order of kinds and reporters.
        let mut all: Vec<BlockOwner<'_>> = Vec::new();
        let mut last = None;
        let mut of_labels = Vec::with_capacity(self.labels.len());
        for (index, stored) in self.labels.iter().enumerate() {
            let ids = (stored.kind, stored.reporter);
            if last.replace(ids) != Some(ids) {
                let SampleLabels { kind, reporter, .. } = self.labels(SampleLabelsId(index as u32));
                all.push(BlockOwner { kind, reporter });
            }
            of_labels.push(all.len() as u32 - 1);
        }
        OwnerTable { all, of_labels }
    }

    /// The sums of each stack and owner, over all sizes and other labels.
    pub fn owned(&self) -> OwnerSums<'_> {
        let owners = self.owners();
        let width = self.values.len();
        let mut keys: Vec<(ProfileStackId, u32)> = Vec::new();
        let mut sums: Vec<i128> = Vec::new();
        // The owners of one stack, each with the index of a sample.
        let mut of_stack: Vec<(u32, usize)> = Vec::new();
        let mut samples = self.keys.iter().enumerate().peekable();
        while let Some((index, key)) = samples.next() {
            of_stack.push((owners.index(key.labels) as u32, index));
            if samples.peek().is_some_and(|(_, next)| next.stack == key.stack) {
                continue;
            }
            of_stack.sort_unstable();
            for (owner, index) in of_stack.drain(..) {
                if keys.last() != Some(&(key.stack, owner)) {
                    keys.push((key.stack, owner));
                    sums.resize(sums.len() + width, 0);
                }
                let start = sums.len() - width;
                let amounts = &self.amounts[index * width..(index + 1) * width];
                sums[start..].iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += i128::from(*amount));
            }
        }
        OwnerSums { owners: owners.all, keys, sums, width }
    }
}
