//! Adds a dump's stacks to a profile.

use std::collections::HashMap;

use dmd_analyze::Dump;

use crate::stack_profile::NO_STACK;
use crate::{ProfileFrame, ProfileFrameId, ProfileModuleId, ProfileStackId, StackProfileBuilder};

/// The ids of a dump's stacks in a profile.
pub(crate) struct DumpStackIds {
    all: Vec<ProfileStackId>,
    /// The id for blocks whose stack was not recorded.
    none: ProfileStackId,
}

impl DumpStackIds {
    /// Adds all stacks. Without `addresses`, frames that look equal to a reader are merged.
    pub(crate) fn new(dump: &Dump, addresses: bool, builder: &mut StackProfileBuilder) -> Self {
        let mut modules: HashMap<&str, ProfileModuleId> = HashMap::new();
        for module in dump.modules() {
            let id = builder.module(&module.path, &module.build_id);
            modules.entry(&module.path).or_insert(id);
        }
        let frames: Vec<ProfileFrameId> = dump
            .frames()
            .map(|frame| {
                let dmd_analyze::CallFrame { function, file, line, column, .. } = frame;
                let read = ProfileFrame { function, file, line, column, ..ProfileFrame::default() };
                if function.is_some() && !addresses {
                    return builder.frame(&read);
                }
                let module =
                    frame.module.map(|path| *modules.entry(path).or_insert_with(|| builder.module(path, "")));
                builder.frame(&ProfileFrame {
                    system_name: frame.system_name,
                    module,
                    offset: frame.offset,
                    inlined: frame.inlined,
                    ..read
                })
            })
            .collect();
        let none = builder.frame(&ProfileFrame { function: Some(NO_STACK), ..ProfileFrame::default() });
        let none = builder.stack(&[none]);
        let mut calls = Vec::new();
        let all = dump.frame_indices().map(|stack| {
            calls.clear();
            calls.extend(stack.map(|index| frames[index]));
            if calls.is_empty() { none } else { builder.stack(&calls) }
        });
        Self { all: all.collect(), none }
    }

    pub(crate) fn get(&self, stack: Option<usize>) -> ProfileStackId {
        stack.map_or(self.none, |stack| self.all[stack])
    }
}
