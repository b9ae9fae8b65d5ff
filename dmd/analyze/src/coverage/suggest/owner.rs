//! The owners of unreported memory. A suggestion contains all allocations of one owner, so that one reporter or one tag
//! covers them.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::site::{OwnerKey, StackFacts};
use super::{SuggestedSite, Suggestion};
use crate::names::Workspace;
use crate::records::BlockSums;

/// An owner, with the facts that advice needs.
#[derive(Clone, Debug)]
pub(super) struct MemoryOwner {
    pub(super) key: OwnerKey,
    /// The types of the program that need the derive: first the type with the most bytes.
    pub(super) types: Vec<String>,
    /// The first type in `types` that the program keeps in an `Arc`.
    pub(super) in_arc: Option<String>,
    /// At most two types that the program keeps in an `Arc`. They may belong to other owners.
    pub(super) other_arcs: Vec<String>,
    /// The functions of the program and their short places: first the place with the most bytes.
    pub(super) calls: Vec<(String, String)>,
    pub(super) features: BTreeSet<&'static str>,
    pub(super) in_future: bool,
    pub(super) is_cut: bool,
}

/// One function and type, with the bytes by place.
#[derive(Debug)]
struct SiteByPlace {
    site: SuggestedSite,
    places: BTreeMap<String, i128>,
}

#[derive(Debug, Default)]
struct OwnerGroup {
    sums: BlockSums,
    estimated: bool,
    /// The sites by function and type.
    sites: BTreeMap<(String, Option<String>), SiteByPlace>,
    calls: BTreeMap<(String, String), i128>,
    types: BTreeMap<String, i128>,
    features: BTreeSet<&'static str>,
    in_future: bool,
    is_cut: bool,
}

impl OwnerGroup {
    fn add(&mut self, facts: StackFacts) {
        let StackFacts { site, call, types, feature, in_future, is_cut, .. } = facts;
        let bytes = site.sums.usable();
        self.sums.add(site.sums);
        self.estimated |= site.estimated;
        types.into_iter().for_each(|name| *self.types.entry(name).or_default() += bytes);
        if let Some(call) = call {
            *self.calls.entry(call).or_default() += bytes;
        }
        self.features.extend(feature);
        self.in_future |= in_future;
        self.is_cut |= is_cut;
        let key = (site.function.clone(), site.type_name.clone());
        let place = site.place.clone();
        let places = BTreeMap::from([(place, bytes)]);
        self.add_site(key, SiteByPlace { site, places });
    }

    fn add_site(&mut self, key: (String, Option<String>), added: SiteByPlace) {
        match self.sites.get_mut(&key) {
            Some(known) => {
                known.site.sums.add(added.site.sums);
                known.site.estimated |= added.site.estimated;
                added
                    .places
                    .into_iter()
                    .for_each(|(place, bytes)| *known.places.entry(place).or_default() += bytes);
            }
            None => {
                self.sites.insert(key, added);
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.sums.add(other.sums);
        self.estimated |= other.estimated;
        // A function of a dependency can allocate for both owners.
        other.sites.into_iter().for_each(|(key, site)| self.add_site(key, site));
        other.calls.into_iter().for_each(|(call, bytes)| *self.calls.entry(call).or_default() += bytes);
        other.types.into_iter().for_each(|(name, bytes)| *self.types.entry(name).or_default() += bytes);
        self.features.extend(other.features);
        self.in_future |= other.in_future;
        self.is_cut |= other.is_cut;
    }

    fn suggestion(self, key: OwnerKey, in_arcs: &BTreeSet<String>, workspace: &Workspace) -> Suggestion {
        let mut types: Vec<(String, i128)> = self.types.into_iter().collect();
        types.sort_by_key(|(_, bytes)| Reverse(*bytes));
        let mut types: Vec<String> = types.into_iter().map(|(name, _)| name).collect();
        if let OwnerKey::Type(name) = &key {
            types.retain(|known| known != name);
            types.insert(0, name.clone());
        }
        let mut calls: Vec<((String, String), i128)> = self.calls.into_iter().collect();
        calls.sort_by_key(|(_, bytes)| Reverse(*bytes));
        let mut sites: Vec<SuggestedSite> = self.sites.into_values().map(SiteByPlace::at_largest).collect();
        sites.sort_by_key(|site| Reverse(site.sums.usable()));
        let owner = MemoryOwner {
            in_arc: types.iter().find(|name| in_arcs.contains(*name)).cloned(),
            types,
            key,
            other_arcs: in_arcs.iter().take(2).cloned().collect(),
            calls: calls
                .into_iter()
                .map(|((name, at), _)| (name, workspace.short(&at).into_owned()))
                .collect(),
            features: self.features,
            in_future: self.in_future,
            is_cut: self.is_cut,
        };
        Suggestion { sums: self.sums, estimated: self.estimated, sites, owner }
    }
}

impl SiteByPlace {
    fn at_largest(mut self) -> SuggestedSite {
        if let Some((place, _)) = self.places.into_iter().max_by_key(|(_, bytes)| *bytes) {
            self.site.place = place;
        }
        self.site
    }
}

/// The allocations by owner.
#[derive(Debug, Default)]
pub(super) struct OwnerGroups(BTreeMap<OwnerKey, OwnerGroup>);

impl OwnerGroups {
    pub(super) fn add(&mut self, facts: StackFacts) {
        self.0.entry(facts.key.clone()).or_default().add(facts);
    }

    /// Makes a suggestion for each owner. `in_arcs` contains the program's types that the program keeps in an `Arc`.
    pub(super) fn suggestions(
        mut self,
        in_arcs: &BTreeSet<String>,
        workspace: &Workspace,
    ) -> Vec<Suggestion> {
        self.merge_kept();
        self.0.into_iter().map(|(key, group)| group.suggestion(key, in_arcs, workspace)).collect()
    }

    /// Merges a type's memory into the memory of the owner that keeps values of the type: the owner's reporter also
    /// measures these values.
    fn merge_kept(&mut self) {
        let keys: Vec<OwnerKey> = self.0.keys().cloned().collect();
        for key in keys {
            let OwnerKey::Type(name) = &key else { continue };
            let keeps = |(other, group): (&OwnerKey, &OwnerGroup)| {
                let bytes = *group.types.get(name)?;
                let is_own = matches!(other, OwnerKey::Type(_) | OwnerKey::Function(_));
                (is_own && *other != key).then(|| (bytes, other.clone()))
            };
            let Some((_, keeper)) = self.0.iter().filter_map(keeps).max() else { continue };
            let Some(mut group) = self.0.remove(&key) else { continue };
            *group.types.entry(name.clone()).or_default() += group.sums.usable();
            self.0.entry(keeper).or_default().merge(group);
        }
    }
}
