//! Debug information in separate files: one file for each unit (`.dwo`), or one package with all units (`.dwp`).
//!
//! Each unit has an id, so the look-up never uses files of another build.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::SplitDwarfLoad;
use gimli::{Dwarf, DwarfPackage, DwoId, RunTimeEndian, SectionId};
use object::{Object as _, ObjectSection as _};
use typed_arena::Arena;

use super::SymbolBound;
use super::allowance::{ByteAllowance, SPLIT, unpacked_size};
use super::bounds::{BoundedSlice, ReadingBounds};
use super::map::MappedFile;
use super::path_text::path_text;

/// The places in which files of split debug information may be.
#[derive(Clone, Debug, Default)]
pub(super) struct SplitPlaces {
    /// The program and its debug file.
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl SplitPlaces {
    pub(super) fn new(files: Vec<PathBuf>, folders: &[PathBuf]) -> Self {
        Self { files, folders: folders.to_vec() }
    }

    /// The paths of packages.
    fn packages(&self) -> impl Iterator<Item = PathBuf> {
        let beside = self.files.iter().map(|file| with_ending(file.as_os_str()).into());
        let names = self.files.iter().filter_map(|file| file.file_name());
        let kept = names.flat_map(|name| self.folders.iter().map(move |dir| dir.join(with_ending(name))));
        beside.chain(kept)
    }

    /// The paths of files that may have the unit that the compiler wrote to `path`.
    fn units(&self, path: &Path) -> impl Iterator<Item = PathBuf> {
        let beside = self.files.iter().filter_map(|file| file.parent());
        let folders = beside.chain(self.folders.iter().map(PathBuf::as_path));
        let name = path.file_name().unwrap_or_default().to_owned();
        core::iter::once(path.to_owned()).chain(folders.map(move |folder| folder.join(&name)))
    }
}

fn with_ending(name: &OsStr) -> OsString {
    let mut name = name.to_owned();
    name.push(".dwp");
    name
}

/// The contents of files of split debug information. This storage must live as long as the look-up uses the contents.
#[derive(Default)]
pub(super) struct SplitStorage {
    maps: Arena<MappedFile>,
    sections: Arena<Vec<u8>>,
    bounds: Arena<ReadingBounds>,
}

impl SplitStorage {
    /// Stores the limits of a file.
    pub(super) fn bounds(&self, bounds: ReadingBounds) -> &ReadingBounds {
        self.bounds.alloc(bounds)
    }

    /// Opens a file, and returns its sections by name. `None` if the file is not a readable object file, or exceeds the
    /// limit for unpacking.
    fn open<'s>(
        &'s self,
        path: &Path,
        bounds: &'s ReadingBounds,
        unpacking: &ByteAllowance,
    ) -> Option<impl Fn(SectionId) -> gimli::Result<BoundedSlice<'s>>> {
        let map: &MappedFile = self.maps.alloc(MappedFile::open(path).ok()?);
        let file = object::File::parse(&**map).ok()?;
        if !unpacking.take(unpacked_size(&file, SPLIT, SectionId::dwo_name)) {
            bounds.reach(SymbolBound::Unpacked(unpacking.most()));
            return None;
        }
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        Some(move |id: SectionId| {
            let section =
                id.dwo_name().filter(|_| SPLIT.contains(&id)).and_then(|name| file.section_by_name(name));
            let data = section.map(|section| section.uncompressed_data()).transpose();
            let data = match data.map_err(|_| gimli::Error::Io)?.unwrap_or_default() {
                std::borrow::Cow::Borrowed(data) => data,
                std::borrow::Cow::Owned(data) => self.sections.alloc(data),
            };
            Ok(BoundedSlice::section(data, endian, bounds))
        })
    }
}

/// The units of one program that are in other files.
pub(super) struct SplitUnits<'s> {
    storage: &'s SplitStorage,
    places: &'s SplitPlaces,
    bounds: &'s ReadingBounds,
    unpacking: &'s ByteAllowance,
    packages: OnceCell<Vec<DwarfPackage<BoundedSlice<'s>>>>,
    /// The units that were not found, each with its expected path.
    missing: RefCell<HashMap<u64, String>>,
}

#[allow(clippy::arc_with_non_send_sync, reason = "addr2line takes an Arc; each thread has its own")]
impl<'s> SplitUnits<'s> {
    pub(super) fn new(
        storage: &'s SplitStorage,
        places: &'s SplitPlaces,
        bounds: &'s ReadingBounds,
        unpacking: &'s ByteAllowance,
    ) -> Self {
        let (packages, missing) = (OnceCell::new(), RefCell::default());
        Self { storage, places, bounds, unpacking, packages, missing }
    }

    /// The expected path of a unit that was not found; `None` if it was found.
    pub(super) fn missing(&self, unit: DwoId) -> Option<String> {
        self.missing.borrow().get(&unit.0).cloned()
    }

    /// Loads the requested unit, if one of the files contains it.
    pub(super) fn load(
        &self,
        load: &SplitDwarfLoad<BoundedSlice<'s>>,
    ) -> Option<Arc<Dwarf<BoundedSlice<'s>>>> {
        let packages = self.packages.get_or_init(|| {
            let open = |path: PathBuf| {
                let section = self.storage.open(&path, self.bounds, self.unpacking)?;
                let empty = BoundedSlice::section(&[], RunTimeEndian::Little, self.bounds);
                DwarfPackage::load(section, empty).ok()
            };
            self.places.packages().filter_map(open).collect()
        });
        let packed = packages.iter().find_map(|package| package.find_cu(load.dwo_id, &load.parent).ok()?);
        if let Some(unit) = packed {
            return Some(Arc::new(unit));
        }
        let text = |part: &Option<BoundedSlice<'_>>| part.map(|part| path_text(part.slice()));
        let path = Path::new(&text(&load.comp_dir).unwrap_or_default()).join(text(&load.path)?);
        let unit = self.places.units(&path).find_map(|candidate| self.unit(&candidate, load));
        if unit.is_none() {
            self.missing.borrow_mut().insert(load.dwo_id.0, path.display().to_string());
        }
        unit
    }

    fn unit(
        &self,
        path: &Path,
        load: &SplitDwarfLoad<BoundedSlice<'s>>,
    ) -> Option<Arc<Dwarf<BoundedSlice<'s>>>> {
        let mut dwarf = Dwarf::load(self.storage.open(path, self.bounds, self.unpacking)?).ok()?;
        let header = dwarf.units().next().ok()??;
        let unit = dwarf.unit(header).ok()?;
        (unit.dwo_id == Some(load.dwo_id)).then(|| {
            dwarf.make_dwo(&load.parent);
            Arc::new(dwarf)
        })
    }
}
