//! The types, classes, coarse types and allocation stacks of the nodes of a walk. Nodes share equal descriptions.

use hashbrown::HashMap;

use super::found_node::{FoundNode, KindId};
use super::naming::BlockTypes;
use super::options::LiveGraphOptions;
use super::sites::AllocationSites;
use crate::graph::{
    CoarseType, FrameTable, GraphBuilder, GraphFrameId, GraphText, GraphTextId, NodeId, NodeParts, TextTable,
};

#[derive(Clone, Copy, Debug)]
struct NodeTypes {
    type_name: GraphTextId,
    class_name: Option<GraphTextId>,
    coarse_type: CoarseType,
}

/// The kinds, texts and frames of a walk.
pub(super) struct NodeDescriptions<'a> {
    coarse_type: fn(&BlockTypes<'_>) -> CoarseType,
    /// The builder that stores the texts and frames. The walk adds no nodes to this builder.
    builder: GraphBuilder,
    kinds: Vec<NodeTypes>,
    /// The kinds, by the names of their types.
    kind_ids: HashMap<(&'static str, &'static str), KindId>,
    sites: Option<&'a dyn AllocationSites>,
    /// The stacks, by the number of the site.
    stacks: HashMap<u64, Option<GraphFrameId>>,
}

impl<'a> NodeDescriptions<'a> {
    /// Descriptions with only the root's kind.
    pub(super) fn new(options: LiveGraphOptions<'a>) -> Self {
        let mut descriptions = Self {
            coarse_type: options.coarse_type,
            builder: GraphBuilder::new(),
            kinds: Vec::new(),
            kind_ids: HashMap::new(),
            sites: options.sites(),
            stacks: HashMap::new(),
        };
        let type_name = descriptions.text("roots");
        let root = NodeTypes { type_name, class_name: None, coarse_type: CoarseType::Other };
        descriptions.kinds.push(root);
        descriptions
    }

    pub(super) fn text(&mut self, text: &str) -> GraphTextId {
        self.builder.text(text).expect("a program has fewer than 2^32 names")
    }

    pub(super) fn text_of(&self, text: GraphTextId) -> GraphText<'_> {
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
        self.kinds.push(NodeTypes { type_name, class_name, coarse_type });
        let id = KindId(u32::try_from(self.kinds.len() - 1).expect("a program has fewer than 2^32 types"));
        self.kind_ids.insert((types.owner, types.content), id);
        id
    }

    /// The innermost frame of the stack that allocated the block around this address; `None` if it is unknown.
    pub(super) fn stack(&mut self, address: usize) -> Option<GraphFrameId> {
        let sites = self.sites?;
        let site = sites.site(address)?;
        if let Some(known) = self.stacks.get(&site) {
            return *known;
        }
        let few = "a program has fewer than 2^32 frames";
        let youngest =
            Some(self.builder.stack(&sites.frames(site)).expect(few).unwrap_or(GraphFrameId::EMPTY_STACK));
        self.stacks.insert(site, youngest);
        youngest
    }

    /// The description of a node in a graph or a file.
    pub(super) fn parts(&self, found: &FoundNode) -> NodeParts {
        let kind = self.kinds[found.kind.0 as usize];
        NodeParts {
            coarse_type: kind.coarse_type,
            class_name: kind.class_name,
            allocation_stack: found.stack,
            ..NodeParts::new(NodeId(found.id), found.size, kind.type_name)
        }
    }

    pub(super) fn names(&self) -> (&TextTable, &FrameTable) {
        (&self.builder.texts, &self.builder.frames)
    }

    /// Takes the builder, with all texts and frames and without nodes.
    pub(super) fn take_builder(&mut self) -> GraphBuilder {
        core::mem::take(&mut self.builder)
    }
}
