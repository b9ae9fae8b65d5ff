//! Cuts stacks to the frames by which records are compared.

use crate::allocators::AllocatorFrames;
use crate::dump::Dump;
use crate::fold::{Folds, Sited};
use crate::frames::{TextId, Texts};
use crate::options::{AnalyzeOptions, By};
use crate::stacks::{StackId, Stacks};

/// The cut traces of a dump.
pub(super) struct Cut {
    /// The stack of each trace.
    pub(super) stacks: Vec<StackId>,
    /// The innermost frame of each trace that is not an allocator's. Empty unless the options request a table of
    /// modules.
    pub(super) owners: Vec<Option<TextId>>,
}

impl Cut {
    /// Takes the frames out of a dump. Adds their texts to `texts`, and its cut traces to `stacks`.
    pub(super) fn new(
        dump: &mut Dump,
        options: &AnalyzeOptions,
        texts: &mut Texts,
        stacks: &mut Stacks,
    ) -> Self {
        let has_modules = dump.has_modules();
        let (read, mut text_of) = core::mem::take(&mut dump.frames).into_texts();
        if texts.len() == 0 {
            *texts = read;
        } else {
            let ours: Vec<TextId> = read.iter().map(|text| texts.add(text.as_str())).collect();
            text_of.iter_mut().for_each(|text| *text = ours[text.index()]);
        }
        let marks = |which: AllocatorFrames| texts.iter().map(|text| which.has(text)).collect();
        let dropped: Vec<bool> = match (options.ignore_alloc_fns, has_modules) {
            (false, _) => Vec::new(),
            (true, false) => marks(AllocatorFrames::C),
            (true, true) => marks(AllocatorFrames::CAndRust),
        };
        let with_owners = options.by.contains(&By::Module);
        let of_libraries: Vec<bool> = if with_owners { marks(AllocatorFrames::CAndRust) } else { Vec::new() };
        let folds = if options.fold && has_modules {
            let folds = Folds::new();
            texts.iter().map(|text| folds.of(&text.frame())).collect()
        } else {
            Vec::new()
        };
        let has = |marks: &[bool], text: TextId| marks.get(text.index()).copied().unwrap_or(false);
        let mut cut = Self { stacks: Vec::with_capacity(dump.traces.len()), owners: Vec::new() };
        let mut frames = Vec::new();
        for range in &dump.traces {
            let calls = &dump.calls[range.start as usize..range.end as usize];
            let all = || calls.iter().map(|frame| text_of[frame.index()]);
            frames.clear();
            if folds.is_empty() {
                frames.extend(all().skip_while(|text| has(&dropped, *text)).take(options.max_frames));
            } else {
                let shown =
                    Sited::of_folds(calls.len(), |at| folds[text_of[calls[at].index()].index()]).shown;
                let inner = all().take_while(|text| has(&dropped, *text)).count();
                let kept = match &shown[shown.partition_point(|at| *at < inner)..] {
                    [] => &shown[..],
                    kept => kept,
                };
                frames.extend(kept.iter().map(|at| text_of[calls[*at].index()]).take(options.max_frames));
            }
            cut.stacks.push(stacks.add(&frames));
            if with_owners {
                cut.owners.push(all().find(|text| !has(&of_libraries, *text)).or(all().next()));
            }
        }
        cut
    }
}
