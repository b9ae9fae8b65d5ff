//! Turns the nodes of a growing tree into the finished tree: with sums, names and order.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::measure::block::Edge;
use crate::measure::size_summary::SizeSummary;
use crate::small_sort::sort_by;

use super::growth::GrownNode;

#[derive(Clone, Debug)]
pub(super) struct SizeNodeData {
    pub(super) name: Cow<'static, str>,
    pub(super) edge: Option<Edge>,
    pub(super) type_name: &'static str,
    pub(super) count: u64,
    pub(super) own: SizeSummary,
    pub(super) total: SizeSummary,
    pub(super) depth: usize,
    /// The index after the last node below this one.
    pub(super) end: usize,
}

/// Finishes a tree. `bytes` is the result of the walk.
pub(super) fn finish(mut grown: Vec<GrownNode>, bytes: usize) -> Vec<SizeNodeData> {
    let mut totals: Vec<SizeSummary> = grown.iter().map(|node| node.own).collect();
    // Children have larger indices than their parents, so in reverse order each child is complete before it is added.
    for id in (1..grown.len()).rev() {
        let total = totals[id];
        totals[grown[id].parent as usize] += total;
    }
    let unnamed = bytes.saturating_sub(totals[0].usable);
    let unnamed = SizeSummary { asked: unnamed, usable: unnamed, blocks: 0 };
    grown[0].own += unnamed;
    totals[0] += unnamed;

    let mut children: Vec<Vec<usize>> = vec![Vec::new(); grown.len()];
    for (id, node) in grown.iter().enumerate().skip(1) {
        if totals[id] != SizeSummary::default() {
            children[node.parent as usize].push(id);
        }
    }
    let mut nodes: Vec<SizeNodeData> = Vec::new();
    // `open`: the indices in `nodes` of the current node's ancestors. `left`: the nodes still to visit, each with its
    // depth and name.
    let mut open: Vec<usize> = Vec::new();
    let mut left = vec![(0, 0, short_type_name((grown[0].type_name)()).into())];
    while let Some((id, depth, name)) = left.pop() {
        let place = nodes.len();
        open.drain(depth..).for_each(|parent: usize| nodes[parent].end = place);
        open.push(place);
        let node = &grown[id];
        nodes.push(SizeNodeData {
            name,
            edge: node.edge,
            type_name: (node.type_name)(),
            count: node.count,
            own: node.own,
            total: totals[id],
            depth,
            end: 0,
        });
        let mut named = named(&children[id], &grown);
        sort_by(&mut named, |(a, a_name), (b, b_name)| {
            totals[*b].usable.cmp(&totals[*a].usable).then_with(|| a_name.cmp(b_name))
        });
        left.extend(named.into_iter().rev().map(|(child, name)| (child, depth + 1, name)));
    }
    let end = nodes.len();
    open.into_iter().for_each(|parent| nodes[parent].end = end);
    nodes
}

/// Gives siblings different names: if one edge leads to several types, the name includes the type.
fn named(children: &[usize], grown: &[GrownNode]) -> Vec<(usize, Cow<'static, str>)> {
    let mut times: HashMap<Cow<'static, str>, usize> = HashMap::new();
    let name = |id: &usize| grown[*id].edge.map_or(Cow::Borrowed(""), edge_name);
    children.iter().for_each(|id| *times.entry(name(id)).or_default() += 1);
    let mut named: Vec<(usize, Cow<'static, str>)> = Vec::with_capacity(children.len());
    for id in children {
        let mut own = name(id);
        if times[&own] > 1 {
            own = format!("{own}: {}", short_type_name((grown[*id].type_name)())).into();
            if named.iter().any(|(_, other)| *other == own) {
                own = format!("{own} ({})", (grown[*id].type_name)()).into();
            }
        }
        named.push((*id, own));
    }
    named
}

fn edge_name(edge: Edge) -> Cow<'static, str> {
    match edge {
        Edge::Field(name) => name.into(),
        Edge::VariantField(variant, field) => format!("{variant}.{field}").into(),
        Edge::Element => "(elements)".into(),
        Edge::Key => "(keys)".into(),
        Edge::Value => "(values)".into(),
    }
}

/// Shortens a type name, such as `alloc::vec::Vec<alloc::string::String>` to `Vec<String>`.
fn short_type_name(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    let mut start = 0;
    for character in name.chars() {
        if short.ends_with("::") {
            short.truncate(start);
        }
        short.push(character);
        if !(character.is_alphanumeric() || matches!(character, '_' | ':')) {
            start = short.len();
        }
    }
    short
}
