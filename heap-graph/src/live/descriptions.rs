//! What the nodes of a walk are: type, class, coarse type and allocation stack, each kept once.

use hashbrown::HashMap;

use super::found::{Found, KindId};
use super::naming::BlockTypes;
use super::options::LiveOptions;
use super::sites::AllocationSites;
use crate::graph::{CoarseType, FrameId, Frames, GraphBuilder, NodeId, NodeParts, Text, TextId, Texts};

#[derive(Clone, Copy, Debug)]
struct Kind {
    type_name: TextId,
    class_name: Option<TextId>,
    coarse_type: CoarseType,
}

/// The kinds, texts and frames of a walk.
pub(super) struct Descriptions<'a> {
    coarse_type: fn(&BlockTypes<'_>) -> CoarseType,
    /// Keeps the texts and frames; the walk adds no node to it.
    builder: GraphBuilder,
    kinds: Vec<Kind>,
    /// By the names of the types.
    kind_ids: HashMap<(&'static str, &'static str), KindId>,
    sites: Option<&'a dyn AllocationSites>,
    /// By the number of the site.
    stacks: HashMap<u64, Option<FrameId>>,
}

impl<'a> Descriptions<'a> {
    /// Descriptions of the root only.
    pub(super) fn new(options: LiveOptions<'a>) -> Self {
        let mut descriptions = Self {
            coarse_type: options.coarse_type,
            builder: GraphBuilder::new(),
            kinds: Vec::new(),
            kind_ids: HashMap::new(),
            sites: options.sites(),
            stacks: HashMap::new(),
        };
        let type_name = descriptions.text("roots");
        let root = Kind { type_name, class_name: None, coarse_type: CoarseType::Other };
        descriptions.kinds.push(root);
        descriptions
    }

    pub(super) fn text(&mut self, text: &str) -> TextId {
        self.builder.text(text).expect("a program has less than 2^32 names")
    }

    pub(super) fn text_of(&self, text: TextId) -> Text<'_> {
        self.builder.texts.get(text)
    }

    pub(super) fn kind(&mut self, types: BlockTypes<'static>) -> KindId {
        if let Some(known) = self.kind_ids.get(&(types.owner, types.content)) {
            return *known;
        }
        let type_name = self.text(types.type_name());
        let class_name = self.text(&types.class_name());
        let coarse_type = (self.coarse_type)(&types);
        let class_name = (coarse_type == CoarseType::Object).then_some(class_name);
        self.kinds.push(Kind { type_name, class_name, coarse_type });
        let id = KindId(u32::try_from(self.kinds.len() - 1).expect("a program has less than 2^32 types"));
        self.kind_ids.insert((types.owner, types.content), id);
        id
    }

    /// The youngest frame of the stack that allocated the block around this address.
    pub(super) fn stack(&mut self, address: usize) -> Option<FrameId> {
        let sites = self.sites?;
        let site = sites.site(address)?;
        if let Some(known) = self.stacks.get(&site) {
            return *known;
        }
        let few = "a program has less than 2^32 frames";
        let youngest =
            Some(self.builder.stack(&sites.frames(site)).expect(few).unwrap_or(FrameId::EMPTY_STACK));
        self.stacks.insert(site, youngest);
        youngest
    }

    /// What a graph or a file says about a node.
    pub(super) fn parts(&self, found: &Found) -> NodeParts {
        let kind = self.kinds[found.kind.0 as usize];
        NodeParts {
            coarse_type: kind.coarse_type,
            class_name: kind.class_name,
            allocation_stack: found.stack,
            ..NodeParts::new(NodeId(found.id), found.size, kind.type_name)
        }
    }

    pub(super) fn names(&self) -> (&Texts, &Frames) {
        (&self.builder.texts, &self.builder.frames)
    }

    /// Takes out the builder, which knows all texts and frames and has no nodes.
    pub(super) fn take_builder(&mut self) -> GraphBuilder {
        core::mem::take(&mut self.builder)
    }
}
