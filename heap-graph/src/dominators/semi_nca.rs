//! Semi-NCA finds semidominators like Lengauer and Tarjan, with path compression. From the semidominators, `climb`
//! finds immediate dominators by climbing the dominator tree that it has built so far.
//!
//! A depth-first walk numbers the nodes in the order in which it meets them. An ancestor has a smaller number than
//! its descendants. All code except the walk itself uses these numbers, so nodes that are close in the tree are close
//! in memory.
//!
//! With ten million nodes, nearly every random access misses the caches, so memory accesses take most of the time. This
//! module lays out rows in the order of the walk, sorts edges by regions, prefetches elements, and reuses arrays. At
//! its peak it uses about 50 bytes for each node in addition to the graph, if a node has three edges.

use super::NONE;
use super::climb::climb;
use crate::arrays::{huge, reuse};
use crate::graph::Graph;
use crate::prefetch::{AHEAD, prefetch};
use crate::progress::{CancelledError, LOOK, StepCounter, chunks};

/// A depth-first walk from the root that takes each node's edges from the last to the first.
pub(super) struct DepthFirstWalk {
    /// Nodes in the order in which the walk meets them.
    pub(super) preorder: Vec<u32>,
    /// Nodes in the order in which the walk leaves them.
    pub(super) postorder: Vec<u32>,
    /// For each number: the number of the node from which the walk met this node.
    parents: Vec<u32>,
    /// Edges to nodes that the walk had already met, without edges to the root and edges from a node to itself.
    others: Vec<SideEdge>,
    /// An array whose memory may be reused.
    spare: Vec<u32>,
}

/// An edge that is not in the walk's tree, with the numbers of its nodes.
struct SideEdge {
    from: u32,
    to: u32,
}

/// A node that the walk has met but not left, and the edges that it has not taken yet.
struct OpenNode {
    node: u32,
    number: u32,
    next: usize,
    end: usize,
}

impl DepthFirstWalk {
    /// Walks the graph. Counts three steps for each node.
    pub(super) fn new(graph: &Graph, steps: &mut StepCounter<'_>) -> Result<Self, CancelledError> {
        if WalkRows::<u32>::fit(graph) {
            Self::along(WalkRows::<u32>::new(graph, steps)?, graph, steps)
        } else {
            Self::along(WalkRows::<u64>::new(graph, steps)?, graph, steps)
        }
    }

    fn along<W: RowWord>(
        (mut rows, spare): (WalkRows<W>, [Vec<u32>; 3]),
        graph: &Graph,
        steps: &mut StepCounter<'_>,
    ) -> Result<Self, CancelledError> {
        let nodes = graph.node_count();
        let [preorder, postorder, parents] = spare.map(|array| emptied(array, nodes));
        let mut walk = Self {
            preorder,
            postorder,
            parents,
            // The array does not grow if the root reaches all nodes.
            others: huge(Vec::with_capacity((graph.edge_count() + 1).saturating_sub(nodes))),
            spare: Vec::new(),
        };
        let mut stack = Vec::new();
        stack.extend(walk.meet(&mut rows, 0, NONE));
        let mut next_look = LOOK;
        while let Some(OpenNode { node, number, next, end }) = stack.last_mut() {
            if next == end {
                walk.postorder.push(*node);
                stack.pop();
                continue;
            }
            let (to, from) = (rows.words[*next].below(), *number);
            *next += 1;
            let rest = &rows.words[*next..*end];
            if let Some(ahead) = rest.get(AHEAD) {
                prefetch(&rows.words, ahead.below());
            }
            if let Some(ahead) = rest.get(1) {
                rows.prefetch_below(ahead.below());
            }
            match rows.number(to) {
                None => {
                    stack.extend(walk.meet(&mut rows, to, from));
                    if walk.preorder.len() == next_look {
                        steps.steps(LOOK)?;
                        next_look += LOOK;
                    }
                }
                Some(0) => {}
                Some(number) if number == from => {}
                Some(number) => walk.others.push(SideEdge { from, to: number }),
            }
        }
        steps.steps(walk.preorder.len() + LOOK - next_look)?;
        walk.spare = W::spare(rows.words);
        Ok(walk)
    }

    /// Gives the node of this row the next number. Returns `None` if the node has no edges and is not the root: the
    /// walk has then already left it.
    #[inline]
    fn meet<W: RowWord>(&mut self, rows: &mut WalkRows<W>, row: usize, parent: u32) -> Option<OpenNode> {
        let number = self.preorder.len() as u32;
        let (node, edges) = rows.meet(row, number);
        self.preorder.push(node);
        self.parents.push(parent);
        if edges.is_empty() && number != 0 {
            self.postorder.push(node);
            return None;
        }
        for to in rows.words[edges.clone()].iter().take(AHEAD) {
            prefetch(&rows.words, to.below());
        }
        Some(OpenNode { node, number, next: edges.start, end: edges.end })
    }

    /// Returns, for each number, the number of the immediate dominator. The root's dominator is the root itself. Also
    /// returns an array to reuse, so that the system clears less new memory. Counts two steps for each node.
    pub(super) fn dominators(
        &mut self,
        steps: &mut StepCounter<'_>,
    ) -> Result<(Vec<u32>, Vec<u32>), CancelledError> {
        let parents = core::mem::take(&mut self.parents);
        let (others, spare) = (core::mem::take(&mut self.others), core::mem::take(&mut self.spare));
        let regions = EdgeRegions::new(&others, parents.len(), spare);
        let mut forest = LinkedForest::new(&parents, reuse(others));
        let mut semidominators = huge(Vec::with_capacity(parents.len()));
        semidominators.extend_from_slice(&parents);
        let mut predecessors = Predecessors::new();
        for (region, part) in chunks(0..parents.len()).enumerate().rev() {
            steps.steps(part.len())?;
            predecessors.gather(regions.edges(region), part.start);
            for number in part.rev() {
                let mut semidominator = semidominators[number];
                let linked = number as u32 + 1;
                for place in predecessors.places(number).rev() {
                    let before = &predecessors.before;
                    prefetch(&forest.nodes, before[place.saturating_sub(2 * AHEAD)] as usize);
                    let soon = forest.nodes[before[place.saturating_sub(AHEAD)] as usize].ancestor;
                    prefetch(&forest.nodes, soon as usize);
                    // The root has the smallest number, so the loop can stop.
                    if semidominator == 0 {
                        break;
                    }
                    // A source with a smaller number is an ancestor: otherwise the walk would have met this node by
                    // the source's edge.
                    semidominator = semidominator.min(forest.least(before[place], linked));
                }
                forest.nodes[number].least = semidominator;
                semidominators[number] = semidominator;
            }
        }
        drop((forest, regions));
        // The root's semidominator is `NONE`: the root has no parent, and `others` has no edges to it. `climb` does not
        // read it.
        Ok((climb(parents, &semidominators, steps)?, semidominators))
    }
}

/// The edges that are not in the walk's tree, grouped by regions of `LOOK` target numbers. Sorting first by regions,
/// and later by numbers within each region, writes to so few places at a time that they fit in a processor's caches.
struct EdgeRegions {
    /// For each edge, the number of its source and the number of its target.
    pairs: Vec<u32>,
    /// The end of each region's part of `pairs`.
    ends: Vec<usize>,
}

impl EdgeRegions {
    fn new(others: &[SideEdge], nodes: usize, mut pairs: Vec<u32>) -> Self {
        let mut ends = vec![0; nodes.div_ceil(LOOK)];
        for other in others {
            ends[other.to as usize / LOOK] += 2;
        }
        let mut sum = 0;
        for end in &mut ends {
            // `end` is the start of the part here. Filling the part moves it to the part's end.
            sum += core::mem::replace(end, sum);
        }
        pairs.clear();
        pairs.resize(sum, 0);
        for other in others {
            let end = &mut ends[other.to as usize / LOOK];
            pairs[*end] = other.from;
            pairs[*end + 1] = other.to;
            *end += 2;
        }
        Self { pairs, ends }
    }

    fn edges(&self, region: usize) -> &[[u32; 2]] {
        let start = region.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.pairs[start..self.ends[region]].as_chunks().0
    }
}

/// The source numbers of a region's edges, by target number.
struct Predecessors {
    /// The region's first number.
    start: usize,
    /// The start of each number's part of `before`, and the end of the last part.
    first: Box<[u32; LOOK + 1]>,
    before: Vec<u32>,
}

impl Predecessors {
    fn new() -> Self {
        Self { start: 0, first: Box::new([0; LOOK + 1]), before: Vec::new() }
    }

    /// Loads the edges of another region.
    fn gather(&mut self, edges: &[[u32; 2]], start: usize) {
        self.start = start;
        self.first.fill(0);
        for [_, to] in edges {
            self.first[*to as usize - start] += 1;
        }
        let mut sum = 0;
        for end in &mut *self.first {
            sum += *end;
            *end = sum;
        }
        self.before.resize(edges.len(), 0);
        for [from, to] in edges {
            let first = &mut self.first[*to as usize - start];
            *first -= 1;
            self.before[*first as usize] = *from;
        }
    }

    fn places(&self, number: usize) -> core::ops::Range<usize> {
        let place = number - self.start;
        self.first[place] as usize..self.first[place + 1] as usize
    }
}

/// An empty array in the memory of `array`, with room for `capacity` elements.
fn emptied(mut array: Vec<u32>, capacity: usize) -> Vec<u32> {
    array.clear();
    array.reserve_exact(capacity);
    array
}

/// The graph laid out for the walk: a node's number is directly before its edges, and an edge leads to a place in the
/// same array. So a step along an edge needs one random access to memory. With the graph's own arrays, a step would
/// need three random accesses.
///
/// The row of a node contains the node, and then the places of the rows of its edges' targets, the last edge first.
/// When the walk meets the node, its number replaces the node. The upper bits of a word are flags: whether the walk has
/// met the node, whether it has edges, and whether an edge ends the row.
struct WalkRows<W> {
    words: Vec<W>,
}

/// A word of a row. The first word contains a node or a number and two flags. Each further word contains a place and
/// a flag.
trait RowWord: Copy {
    /// The number of bits.
    const BITS: u32;

    fn new(bits: u64) -> Self;
    fn bits(self) -> u64;
    /// Turns an unused array into an array to reuse, which may be empty.
    fn spare(words: Vec<Self>) -> Vec<u32>;

    /// A number without flags.
    fn number(number: usize) -> Self {
        Self::new(number as u64)
    }

    fn get(self) -> usize {
        self.bits() as usize
    }

    /// In a first word: the walk has met the node. In a further word: the row ends here.
    fn flag() -> u64 {
        1 << (Self::BITS - 1)
    }

    /// In a first word: the node has edges.
    fn has_edges() -> u64 {
        1 << (Self::BITS - 2)
    }

    /// In a further word: the place of the row that the edge leads to.
    fn below(self) -> usize {
        (self.bits() & !Self::flag()) as usize
    }

    fn has(self, flag: u64) -> bool {
        self.bits() & flag != 0
    }
}

impl RowWord for u32 {
    const BITS: u32 = Self::BITS;

    fn new(bits: u64) -> Self {
        bits as Self
    }

    fn bits(self) -> u64 {
        self.into()
    }

    fn spare(words: Vec<Self>) -> Vec<u32> {
        words
    }
}

impl RowWord for u64 {
    const BITS: u32 = Self::BITS;

    fn new(bits: u64) -> Self {
        bits
    }

    fn bits(self) -> u64 {
        self
    }

    fn spare(_: Vec<Self>) -> Vec<u32> {
        Vec::new()
    }
}

impl<W: RowWord> WalkRows<W> {
    /// The number of words in the rows of a graph.
    fn len(graph: &Graph) -> usize {
        graph.node_count() + graph.edge_count()
    }

    /// Whether the nodes and places of this graph leave the flag bits free.
    fn fit(graph: &Graph) -> bool {
        graph.node_count() as u64 <= W::has_edges() && Self::len(graph) as u64 <= W::flag()
    }

    /// Builds the rows, and returns arrays to reuse. Counts two steps for each node.
    fn new(graph: &Graph, steps: &mut StepCounter<'_>) -> Result<(Self, [Vec<u32>; 3]), CancelledError> {
        let (places, [above, ends]) = Self::places(graph, steps)?;
        let mut words = huge(vec![W::number(0); Self::len(graph)]);
        let referents = graph.all_referents();
        for part in chunks(0..graph.node_count()) {
            steps.steps(part.len())?;
            for node in part {
                if let Some(ahead) = places.get(node + AHEAD) {
                    prefetch(&words, ahead.get());
                }
                let edges = graph.edge_range(node as u32);
                let start = places[node].get();
                let row = &mut words[start..=start + edges.len()];
                row[0] = W::new(node as u64 | if edges.is_empty() { 0 } else { W::has_edges() });
                for (word, edge) in row[1..].iter_mut().zip(edges.rev()) {
                    if let Some(ahead) = referents.get(edge + AHEAD) {
                        prefetch(&places, *ahead as usize);
                    }
                    *word = places[referents[edge] as usize];
                }
                if let [_, .., last] = row {
                    *last = W::new(last.bits() | W::flag());
                }
            }
        }
        Ok((Self { words }, [above, ends, W::spare(places)]))
    }

    /// The start of each node's row. The row of a node follows the row of the first node that leads to it. If several
    /// rows follow one row, the rows of its later edges come first. So when the walk meets a node by the first edge to
    /// it, the walk continues with the next row. Counts one step for each node.
    fn places(graph: &Graph, steps: &mut StepCounter<'_>) -> Result<(Vec<W>, [Vec<u32>; 2]), CancelledError> {
        let (nodes, referents) = (graph.node_count(), graph.all_referents());
        // For each node, the first node with an edge to it. The loop finds the first node only if the nodes are in
        // the order of a breadth-first walk, as in most files: there, the first edge to each node leads to the next
        // new node. Other nodes get the root.
        let mut above = huge(Vec::with_capacity(nodes));
        above.push(0);
        // The number of words in each node's row. The next loop adds the words of all rows below the node.
        let mut ends = huge(Vec::with_capacity(nodes));
        for part in chunks(0..nodes) {
            steps.steps(part.len())?;
            for node in part {
                let edges = graph.edge_range(node as u32);
                ends.push(W::number(1 + edges.len()));
                for to in &referents[edges] {
                    if *to as usize >= above.len() && node < *to as usize {
                        above.resize(*to as usize, 0);
                        above.push(node as u32);
                    }
                }
            }
        }
        above.resize(nodes, 0);
        for node in (1..nodes).rev() {
            let words = ends[node].get();
            let end = &mut ends[above[node] as usize];
            *end = W::number(end.get() + words);
        }
        // From here on, `ends` contains, for each node with a place, the end of the space for the rows below it.
        let mut places = huge(Vec::with_capacity(nodes));
        places.push(W::number(0));
        for node in 1..nodes {
            let words = ends[node].get();
            let end = &mut ends[above[node] as usize];
            let next = end.get();
            *end = W::number(next - words);
            places.push(*end);
            ends[node] = W::number(next);
        }
        Ok((places, [above, W::spare(ends)]))
    }

    /// Prefetches the row of the first edge, unless the walk has met the row's node.
    #[inline]
    fn prefetch_below(&self, row: usize) {
        let first = self.words[row];
        if !first.has(W::flag()) && first.has(W::has_edges()) {
            prefetch(&self.words, self.words[row + 1].below());
        }
    }

    /// The number of the row's node; `None` if the walk has not met it yet.
    #[inline]
    fn number(&self, row: usize) -> Option<u32> {
        let first = self.words[row];
        first.has(W::flag()).then(|| first.below() as u32)
    }

    /// Gives the row's node a number. Returns the node and the places of its edges.
    #[inline]
    fn meet(&mut self, row: usize, number: u32) -> (u32, core::ops::Range<usize>) {
        let first = core::mem::replace(&mut self.words[row], W::new(u64::from(number) | W::flag()));
        let node = (first.bits() & !W::has_edges()) as u32;
        let edges = row + 1;
        if !first.has(W::has_edges()) {
            return (node, edges..edges);
        }
        let before_last = self.words[edges..].iter().take_while(|word| !word.has(W::flag())).count();
        (node, edges..edges + before_last + 1)
    }
}

/// The linked part of the walk's tree: the nodes with numbers from a minimum upwards.
struct LinkedForest {
    nodes: Vec<LinkedNode>,
    path: Vec<u32>,
}

#[derive(Clone, Copy)]
struct LinkedNode {
    ancestor: u32,
    /// The least semidominator on the path to `ancestor`, without `ancestor` itself.
    least: u32,
}

impl LinkedForest {
    fn new(parents: &[u32], mut nodes: Vec<LinkedNode>) -> Self {
        let linked = |(number, parent): (usize, &u32)| LinkedNode {
            // The root has no ancestor. It gets 0, which is less than every linked number.
            ancestor: if number == 0 { 0 } else { *parent },
            least: number as u32,
        };
        nodes.extend(parents.iter().enumerate().map(linked));
        Self { nodes, path: Vec::new() }
    }

    /// The least semidominator from `number` to the top of its linked tree. Compresses the path.
    #[inline]
    fn least(&mut self, number: u32, linked: u32) -> u32 {
        let node = self.nodes[number as usize];
        if node.ancestor < linked {
            return node.least;
        }
        self.compress(number, linked)
    }

    fn compress(&mut self, number: u32, linked: u32) -> u32 {
        let mut at = number;
        while self.nodes[at as usize].ancestor >= linked {
            self.path.push(at);
            at = self.nodes[at as usize].ancestor;
        }
        let mut above = self.nodes[at as usize];
        while let Some(at) = self.path.pop() {
            let node = &mut self.nodes[at as usize];
            node.ancestor = above.ancestor;
            node.least = node.least.min(above.least);
            above = *node;
        }
        above.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{GraphBuilder, NodeId, NodeParts};
    use crate::progress::AnalysisProgress;

    /// Graphs of more than 2^31 words or more than 2^30 nodes have wide rows. Narrow and wide rows must give the same
    /// walk.
    #[test]
    fn rows_of_both_widths_give_the_same_walk() {
        let mut random = 1_u64;
        let mut below = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        for nodes in 1..60 {
            let mut builder = GraphBuilder::new();
            let name = builder.text("Node").expect("there is room");
            for node in 0..nodes {
                builder.node(NodeParts::new(NodeId(node), 1, name)).expect("there is room");
                for _ in 0..below(5) {
                    builder.edge(NodeId(below(nodes)), None).expect("there is room");
                }
            }
            let graph = builder.finish().expect("each edge leads to a node");
            let progress = AnalysisProgress::new();
            let mut steps = StepCounter::new(&progress, 0);
            let narrow = WalkRows::<u32>::new(&graph, &mut steps).expect("nobody cancels");
            let mut narrow = DepthFirstWalk::along(narrow, &graph, &mut steps).expect("nobody cancels");
            let wide = WalkRows::<u64>::new(&graph, &mut steps).expect("nobody cancels");
            let mut wide = DepthFirstWalk::along(wide, &graph, &mut steps).expect("nobody cancels");
            assert_eq!(narrow.preorder, wide.preorder);
            assert_eq!(narrow.postorder, wide.postorder);
            let (narrow, _) = narrow.dominators(&mut steps).expect("nobody cancels");
            let (wide, _) = wide.dominators(&mut steps).expect("nobody cancels");
            assert_eq!(narrow, wide);
        }
    }
}
