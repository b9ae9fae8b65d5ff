//! Converts a profile of another program to a dump, so that the views of dumps show it.

use dmd_analyze::profile::DumpBuilder;
use dmd_analyze::{CallFrame, Dump, LoadedModule, Mode};

use crate::stack_profile::{ProfileValue, StackProfile};

/// Converts a profile with live blocks to a dump of mode live, and a profile with allocated blocks only to a dump of mode
/// cumulative. Each block gets the mean size of its sample's blocks. If the profile names its sampling period in bytes,
/// the amounts are marked as estimates. `None` if the profile has neither blocks nor bytes,
/// or negative amounts.
pub fn dump(profile: &StackProfile) -> Option<Dump> {
    let pair = |blocks, bytes| Some((profile.index_of(blocks)?, profile.index_of(bytes)?));
    let live = pair(ProfileValue::LiveBlocks, ProfileValue::LiveBytes).map(|pair| (Mode::Live, pair));
    let allocated = || pair(ProfileValue::AllocatedBlocks, ProfileValue::AllocatedBytes);
    let (mode, (blocks, bytes)) = live.or_else(|| Some((Mode::Cumulative, allocated()?)))?;
    let mut builder = DumpBuilder::new(mode);
    if let Some(mean) = profile.facts().sample_bytes {
        builder.sample(mean);
    }
    for module in profile.modules() {
        builder.module(LoadedModule {
            path: module.path.clone(),
            build_id: module.build_id.clone(),
            has_file_offsets: module.has_file_offsets,
            ..LoadedModule::default()
        });
    }
    for sample in profile.samples() {
        let amount = |index: usize| u64::try_from(sample.amounts[index]).ok();
        let (blocks, bytes) = (amount(blocks)?, amount(bytes)?);
        if bytes == 0 {
            continue;
        }
        let frames = profile.stack(sample.stack).iter().map(|frame| {
            let frame = profile.frame(*frame);
            let mut call = CallFrame::default();
            (call.function, call.system_name, call.file) = (frame.function, frame.system_name, frame.file);
            (call.line, call.column, call.inlined) = (frame.line, frame.column, frame.inlined);
            call.module = frame.module.map(|module| &*profile.modules()[module.index()].path);
            call.offset = frame.offset;
            call
        });
        let stack = builder.stack(frames);
        // Profilers round small numbers of blocks down to 0.
        builder.weighted_blocks(stack, blocks.max(1), bytes);
    }
    builder.finish().ok()
}
