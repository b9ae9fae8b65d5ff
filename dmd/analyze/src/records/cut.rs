//! Cuts stacks down to the frames by which records are compared.

use super::options::{AnalyzeOptions, TableKey};
use super::stacks::{CutStackId, CutStackTable};
use crate::dump::{Dump, FrameTextId, FrameTexts};
use crate::names::{AllocatorFrames, FoldReason, FoldRules, FoldedStack, TypeNames};

/// The cut traces of a dump.
pub(super) struct CutStacks {
    /// The cut stack of each trace.
    pub(super) stacks: Vec<CutStackId>,
    /// The site of each trace: see [`FoldedStack`]. Empty unless the options request a table of modules.
    pub(super) owners: Vec<Option<FrameTextId>>,
}

impl CutStacks {
    /// Moves the frames out of a dump: their texts go to `texts`, and the cut traces to `stacks`.
    pub(super) fn new(
        dump: &mut Dump,
        options: &AnalyzeOptions,
        types: &TypeNames,
        texts: &mut FrameTexts,
        stacks: &mut CutStackTable,
    ) -> Self {
        let has_modules = dump.has_modules();
        let (read, mut text_of) = core::mem::take(&mut dump.frames).into_texts();
        if texts.len() == 0 {
            *texts = read;
        } else {
            let ours: Vec<FrameTextId> = read.iter().map(|text| texts.add(text.as_str())).collect();
            text_of.iter_mut().for_each(|text| *text = ours[text.index()]);
        }
        if options.without_lines {
            let all: Vec<FrameTextId> = texts.ids().map(|text| texts.add_without_line(text)).collect();
            text_of.iter_mut().for_each(|text| *text = all[text.index()]);
        }
        let marks = |which: AllocatorFrames| texts.iter().map(|text| which.has(text)).collect();
        let dropped: Vec<bool> = match (options.ignore_alloc_fns, has_modules) {
            (false, _) => Vec::new(),
            (true, false) => marks(AllocatorFrames::C),
            (true, true) => marks(AllocatorFrames::CAndRust),
        };
        let with_owners = options.by.contains(&TableKey::Module);
        let with_folds = options.fold && has_modules;
        let folds: Vec<Option<FoldReason>> = if with_folds || with_owners {
            let folds = FoldRules::new();
            texts.iter().map(|text| folds.reason(&text.frame())).collect()
        } else {
            Vec::new()
        };
        let of_types: Vec<Option<FrameTextId>> = if options.type_frames {
            let verdicts = types.verdicts();
            verdicts.map(|verdict| verdict.type_name().map(|name| texts.add_type(&name))).collect()
        } else {
            Vec::new()
        };
        let has = |marks: &[bool], text: FrameTextId| marks.get(text.index()).copied().unwrap_or(false);
        let mut cut = Self { stacks: Vec::with_capacity(dump.traces.len()), owners: Vec::new() };
        let mut frames = Vec::new();
        for (trace, range) in dump.traces.iter().enumerate() {
            let calls = &dump.calls[range.start as usize..range.end as usize];
            let all = || calls.iter().map(|frame| text_of[frame.index()]);
            let sited = (with_folds || with_owners).then(|| {
                FoldedStack::with_reasons(calls.len(), |at| folds[text_of[calls[at].index()].index()])
            });
            frames.clear();
            frames.extend(types.number(trace).and_then(|number| *of_types.get(number)?));
            if let Some(FoldedStack { shown, .. }) = sited.as_ref().filter(|_| with_folds) {
                let inner = all().take_while(|text| has(&dropped, *text)).count();
                let kept = match &shown[shown.partition_point(|at| *at < inner)..] {
                    [] => &shown[..],
                    kept => kept,
                };
                frames.extend(kept.iter().map(|at| text_of[calls[*at].index()]).take(options.max_frames));
            } else {
                frames.extend(all().skip_while(|text| has(&dropped, *text)).take(options.max_frames));
            }
            cut.stacks.push(stacks.add(&frames));
            if with_owners {
                cut.owners.push(sited.and_then(|sited| Some(text_of[calls[sited.site()?].index()])));
            }
        }
        cut
    }
}
