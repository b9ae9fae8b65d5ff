//! Who holds memory: the site, type and crate of each record.

use super::ProgramOptions;
use super::line::{name, place, type_name};
use super::short_path::Workspace;
use crate::clean::Clean;
use crate::fold::Sited;
use crate::frame::Frame;
use crate::records::{Analysis, NO_STACK, Record};

/// The key by which a view tells holders of memory apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HolderKey {
    /// The innermost function on the allocation stack that the view does not fold.
    Site,
    /// The Rust type of the blocks, from their allocation stack; without one, the function that allocated.
    Type,
    /// The crate of the site.
    Crate,
}

impl HolderKey {
    /// The word for the key.
    pub fn name(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Type => "type",
            Self::Crate => "crate",
        }
    }
}

/// One holder, under one key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Holder {
    /// The whole name, which tells holders apart.
    pub(super) whole: String,
    /// The name to show.
    pub(super) name: String,
    /// The source line of a site.
    pub(super) place: String,
}

/// Finds the holders of an analysis.
pub(super) struct Holders<'a> {
    analysis: &'a Analysis,
    options: &'a ProgramOptions,
    workspace: Workspace,
}

impl<'a> Holders<'a> {
    pub(super) fn new(analysis: &'a Analysis, options: &'a ProgramOptions) -> Self {
        let workspace = Workspace::of(analysis.texts.iter().map(|text| text.frame()));
        Self { analysis, options, workspace }
    }

    /// The holder of a record under each key. The names have at most `width` characters.
    pub(super) fn of(&self, record: &Record, keys: &[HolderKey], width: usize) -> Vec<Holder> {
        let texts: Vec<_> = self.analysis.frames(record.alloc).collect();
        let frames: Vec<Frame<'_>> = texts.iter().map(|text| text.frame()).collect();
        let site = Sited::of(&frames, &self.options.folds).site().filter(|_| texts[0].as_str() != NO_STACK);
        let site = site.map(|site| &frames[site]);
        let plain = |name: String| Holder { whole: name.clone(), name, place: String::new() };
        let of_key = |key: &HolderKey| match (site, key) {
            (None, _) => plain("(no stack)".to_owned()),
            (Some(site), HolderKey::Site) => Holder {
                // Without a name, the place in the module tells sites apart.
                whole: match site.function {
                    Some(function) => Clean(function).to_string(),
                    None => name(site, usize::MAX, self.options),
                },
                name: name(site, width, self.options),
                place: place(site, &self.workspace, self.options),
            },
            (Some(site), HolderKey::Crate) => plain(Clean(&site.crate_name()).to_string()),
            (Some(_), HolderKey::Type) => match self.analysis.type_of(record.alloc) {
                Some(verdict) => Holder {
                    whole: Clean(&verdict.to_string()).to_string(),
                    name: type_name(verdict, self.options.width, self.options),
                    place: String::new(),
                },
                None => plain("?".to_owned()),
            },
        };
        keys.iter().map(of_key).collect()
    }
}
