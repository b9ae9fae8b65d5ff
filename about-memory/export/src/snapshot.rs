//! Converts heap snapshots to [`StackProfile`]: nodes by the stacks that allocated them.

use std::time::Duration;

use heap_graph::census::{CensusError, CensusFrame, CensusKey, CensusStack, StackKey};
use heap_graph::{Breakdown, CensusReport, Graph, census as count_nodes};
use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::stack_profile::{NO_STACK, amount};
use crate::{
    ExportError, ProfileFrame, ProfileFrameId, ProfileStackId, ProfileValue, SampleLabels, StackProfile,
    StackProfileBuilder,
};

/// The maximum number of frames of a stack, as for recordings.
const MAX_FRAMES: usize = 512;

/// The reason why a heap snapshot cannot be converted to stacks.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SnapshotExportError {
    /// The nodes cannot be counted.
    #[error("{0}")]
    Census(CensusError),
    /// The bytes of equal nodes exceed 63 bits.
    #[error(transparent)]
    Export(#[from] ExportError),
}

/// The nodes that are reachable from the root, by allocation stack. The label `type` is their class or type. Bytes are
/// shallow sizes.
///
/// # Errors
///
/// Returns an error if the snapshot has more kinds of nodes than a census can hold, or if the bytes of equal nodes
/// exceed 63 bits.
pub fn stacks(graph: &Graph) -> Result<StackProfile, SnapshotExportError> {
    let count = || Box::new(Breakdown::Count { count: true, bytes: true, label: None });
    let by_type = || Breakdown::ObjectClass {
        then: count(),
        other: Box::new(Breakdown::InternalType { then: count() }),
    };
    let by_stack = Breakdown::AllocationStack { then: Box::new(by_type()), no_stack: Box::new(by_type()) };
    let mut builder = StackProfileBuilder::new(&[ProfileValue::LiveBlocks, ProfileValue::LiveBytes]);
    builder.facts().comment = "nodes of a heap snapshot".to_owned();
    builder.facts().time = graph.creation_time().map(Duration::from_micros);
    if let CensusReport::Stacks(stacks) =
        count_nodes(graph, &by_stack).map_err(SnapshotExportError::Census)?
    {
        let mut frames = FxHashMap::default();
        for (key, report) in &stacks {
            let stack = match key {
                StackKey::Stack(stack) => add_stack(stack, &mut frames, &mut builder),
                StackKey::Empty | StackKey::NoStack => {
                    let none =
                        builder.frame(&ProfileFrame { function: Some(NO_STACK), ..ProfileFrame::default() });
                    builder.stack(&[none])
                }
            };
            add(stack, None, report, &mut builder)?;
        }
    }
    Ok(builder.finish()?)
}

/// Adds the innermost [`MAX_FRAMES`] frames of a stack. A small file may contain many deep stacks with common callers.
fn add_stack<'s>(
    stack: &'s CensusStack,
    known: &mut FxHashMap<&'s CensusFrame, ProfileFrameId>,
    builder: &mut StackProfileBuilder,
) -> ProfileStackId {
    let frames = stack.frames().take(MAX_FRAMES).map(|at| {
        let frame = &at.frame;
        *known.entry(frame).or_insert_with(|| {
            let source = frame.source.to_string();
            let function = frame.function.as_ref().map(ToString::to_string);
            let known = |number: u32| (number > 0).then_some(number);
            builder.frame(&ProfileFrame {
                function: Some(function.as_deref().unwrap_or(&source)),
                file: Some(&source),
                line: known(frame.line),
                column: known(frame.column),
                ..ProfileFrame::default()
            })
        })
    });
    let frames: Vec<_> = frames.collect();
    builder.stack(&frames)
}

/// Adds the counts of a census whose groups are types.
fn add(
    stack: ProfileStackId,
    type_name: Option<&str>,
    report: &CensusReport,
    builder: &mut StackProfileBuilder,
) -> Result<(), ExportError> {
    if let CensusReport::Count(counts) = report {
        let labels = builder.labels(&SampleLabels { type_name, ..SampleLabels::default() });
        let amounts = [
            amount(ProfileValue::LiveBlocks, counts.count.unwrap_or_default())?,
            amount(ProfileValue::LiveBytes, counts.bytes.unwrap_or_default())?,
        ];
        builder.sample(stack, labels, None, &amounts);
    }
    for (key, report) in report.children() {
        let CensusKey::Text(name) = key else { continue };
        add(stack, Some(&name.to_string()), report, builder)?;
    }
    Ok(())
}
