//! Finds the file that was loaded, and its debug information, by build id.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use object::{Object as _, ObjectSegment as _};

use super::map::MappedFile;
use super::path_text::path_text;
use super::split::SplitPlaces;
use super::{SymbolOptions, SymbolProblem};
use crate::dump::LoadedModule;

/// The files that match the loaded file, and its debug information.
#[derive(Debug)]
pub(super) struct BinaryFiles {
    /// The file with functions and lines.
    pub(super) debug: PathBuf,
    /// The file with symbols, if it is not `debug`.
    pub(super) symbols: Option<PathBuf>,
    /// The file with debug information that several debug files share.
    pub(super) supplement: Option<PathBuf>,
    /// The places in which split debug information may be.
    pub(super) split: SplitPlaces,
    /// A debug file that the search rejected because it comes from another build.
    pub(super) other: Option<PathBuf>,
    /// The number to add to an offset in the dump. The sum is an address in the file.
    pub(super) base: u64,
    /// Whether the build id of the file was checked.
    pub(super) checked: bool,
}

/// The facts about a file that the search needs.
struct FileFacts {
    build_id: Option<String>,
    /// The address of the file's first segment.
    base: u64,
    /// The address of the first segment with code, minus its position in the file.
    code_base: u64,
    has_lines: bool,
    supplement: Option<(PathBuf, String)>,
    /// The name and checksum of the debug file to which the file links.
    link: Option<(OsString, u32)>,
}

impl BinaryFiles {
    /// Finds the files of a module. `module` is the dump's entry for the file. `time` is the time of the dump, in
    /// seconds since 1970.
    pub(super) fn find(
        file: &str,
        module: Option<&LoadedModule>,
        time: Option<u64>,
        options: &SymbolOptions,
    ) -> Result<Self, SymbolProblem> {
        let path = Path::new(file);
        let expected = module.map(|module| module.build_id.as_str()).filter(|id| !id.is_empty());
        // A dump of the crate `dmd` has addresses in the file. A dump of Firefox has distances from the start of the
        // file. A profile of pprof has positions in the file.
        let base = |known: &FileFacts| match module {
            Some(module) if module.has_file_offsets => known.code_base,
            Some(_) => 0,
            None => known.base,
        };
        let Some(expected) = expected else {
            let known = look(path).map_err(|error| problem(&error))?;
            if is_newer(path, time) {
                return Err(SymbolProblem::Newer);
            }
            let base = base(&known);
            let mut binary = Self::with_debug(path, known, options);
            binary.base = base;
            binary.checked = false;
            return Ok(binary);
        };
        let itself = look(path);
        if let Ok(known) = &itself
            && known.build_id.as_deref() != Some(expected)
        {
            return Self::elsewhere(path, expected, options)
                .ok_or_else(|| SymbolProblem::Changed(known.build_id.clone()));
        }
        match itself {
            Ok(known) => {
                let base = base(&known);
                Ok(Self { base, ..Self::with_debug(path, known, options) })
            }
            Err(error) => Self::elsewhere(path, expected, options).ok_or_else(|| problem(&error)),
        }
    }

    /// Collects the files of the loaded program. The program's lines may be in a separate debug file.
    fn with_debug(path: &Path, known: FileFacts, options: &SymbolOptions) -> Self {
        let mut binary = Self {
            debug: path.to_owned(),
            symbols: None,
            supplement: supplement(&known, options),
            split: SplitPlaces::default(),
            other: None,
            base: 0,
            checked: true,
        };
        if !known.has_lines {
            let id = known.build_id.as_deref();
            let named = id.into_iter().flat_map(|id| candidates(path, id, options));
            for candidate in named.chain(linked(path, &known, options)) {
                let Ok(found) = look(&candidate) else { continue };
                if !found.has_lines || candidate == path {
                    continue;
                }
                let same = match (id, &known.link) {
                    (Some(id), _) => found.build_id.as_deref() == Some(id),
                    (None, Some((_, checksum))) => checksum_of(&candidate).is_ok_and(|sum| sum == *checksum),
                    (None, None) => false,
                };
                if same {
                    binary.supplement = supplement(&found, options);
                    binary.symbols = Some(core::mem::replace(&mut binary.debug, candidate));
                    binary.other = None;
                    break;
                }
                binary.other.get_or_insert(candidate);
            }
        }
        binary.with_split(path, options)
    }

    /// The file with the debug information of a program. If `build_id` is not empty, only a file with this build id
    /// counts.
    pub(super) fn debug_of(path: &Path, build_id: &str, options: &SymbolOptions) -> Option<PathBuf> {
        let same = |known: &FileFacts| build_id.is_empty() || known.build_id.as_deref() == Some(build_id);
        match look(path).ok().filter(same) {
            Some(known) => Some(Self::with_debug(path, known, options).debug),
            None if build_id.is_empty() => None,
            None => Self::elsewhere(path, build_id, options).map(|found| found.debug),
        }
    }

    fn with_split(mut self, path: &Path, options: &SymbolOptions) -> Self {
        let mut files = vec![path.to_owned(), self.debug.clone()];
        files.extend(self.symbols.clone());
        files.dedup();
        self.split = SplitPlaces::new(files, &options.folders);
        self
    }

    /// If the file is not at its path: finds a copy of the file, or the file's debug file.
    fn elsewhere(path: &Path, id: &str, options: &SymbolOptions) -> Option<Self> {
        let mut found: Vec<(PathBuf, FileFacts)> = candidates(path, id, options)
            .filter_map(|candidate| look(&candidate).ok().map(|known| (candidate, known)))
            .filter(|(_, known)| known.build_id.as_deref() == Some(id))
            .collect();
        found.sort_by_key(|(_, known)| !known.has_lines);
        let mut found = found.into_iter();
        let (debug, known) = found.next()?;
        let supplement = supplement(&known, options);
        let symbols = found.next().map(|(path, _)| path);
        let split = SplitPlaces::default();
        let found = Self { debug, symbols, supplement, split, other: None, base: 0, checked: true };
        Some(found.with_split(path, options))
    }
}

/// The paths at which a file with this build id may be.
fn candidates<'o>(path: &Path, id: &str, options: &'o SymbolOptions) -> impl Iterator<Item = PathBuf> + 'o {
    let mut names = Vec::new();
    if id.len() > 2 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let (start, rest) = id.split_at(2);
        names.push(PathBuf::from(format!(".build-id/{start}/{rest}.debug")));
        names.push(PathBuf::from(format!(".build-id/{start}/{rest}")));
        for folder in ["", "buildid/"] {
            for file in ["debuginfo", "executable"] {
                names.push(PathBuf::from(format!("{folder}{id}/{file}")));
            }
        }
    }
    if let Some(name) = path.file_name() {
        let mut debug = name.to_owned();
        debug.push(".debug");
        if let Ok(below) = path.strip_prefix("/") {
            names.push(below.with_file_name(&debug));
            names.push(below.to_owned());
        }
        names.push(debug.into());
        names.push(name.into());
    }
    options.folders.iter().flat_map(move |folder| names.clone().into_iter().map(|name| folder.join(name)))
}

/// The paths at which the debug file of a link may be.
fn linked<'o>(
    path: &Path,
    known: &FileFacts,
    options: &'o SymbolOptions,
) -> impl Iterator<Item = PathBuf> + 'o {
    let mut found = Vec::new();
    if let Some((name, _)) = &known.link
        && let Some(folder) = path.parent()
    {
        found.extend([folder.join(name), folder.join(".debug").join(name)]);
        let below = folder.strip_prefix("/").unwrap_or(folder);
        for other in &options.folders {
            found.extend([other.join(below).join(name), other.join(name)]);
        }
    }
    found.into_iter()
}

/// The checksum of a file, as a link to a debug file contains it: the CRC of gzip.
fn checksum_of(path: &Path) -> io::Result<u32> {
    let mut file = File::open(path)?;
    let mut sum = flate2::Crc::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(sum.sum()),
            length => sum.update(&piece[..length]),
        }
    }
}

fn supplement(known: &FileFacts, options: &SymbolOptions) -> Option<PathBuf> {
    let (path, id) = known.supplement.as_ref()?;
    core::iter::once(path.clone())
        .chain(candidates(path, id, options))
        .find(|path| look(path).is_ok_and(|known| known.build_id.as_ref() == Some(id)))
}

fn look(path: &Path) -> io::Result<FileFacts> {
    // Map the file instead of reading it: a note may be as large as the file.
    let file = MappedFile::open(path)?;
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, "not a program or library");
    let object = object::File::parse(&*file).map_err(invalid)?;
    let build_id = object.build_id().map_err(invalid)?.map(hexadecimal);
    let base = object.segments().map(|segment| segment.address()).min().unwrap_or_default() & !0xfff;
    let code = object.segments().find(|segment| segment.permissions().executable());
    let code_base = code.map_or(0, |code| code.address().wrapping_sub(code.file_range().0));
    let has_lines = [".debug_info", ".zdebug_info"].iter().any(|name| object.section_by_name(name).is_some());
    let supplement = object.gnu_debugaltlink().ok().flatten().map(|(link, id)| {
        let link = PathBuf::from(String::from_utf8_lossy(link).into_owned());
        (path.parent().unwrap_or(path).join(link), hexadecimal(id))
    });
    let link = object.gnu_debuglink().ok().flatten();
    let link = link.map(|(name, checksum)| (path_text(name), checksum));
    // Reject a link to another folder.
    let link = link.filter(|(name, _)| Path::new(name).file_name() == Some(name.as_os_str()));
    Ok(FileFacts { build_id, base, code_base, has_lines, supplement, link })
}

/// The digits of a build id. Most build ids have 20 bytes; bytes after the 256th are ignored.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().take(256).map(|byte| format!("{byte:02x}")).collect()
}

fn problem(error: &io::Error) -> SymbolProblem {
    match error.kind() {
        io::ErrorKind::NotFound => SymbolProblem::Missing,
        _ => SymbolProblem::Unreadable(error.to_string()),
    }
}

fn is_newer(path: &Path, time: Option<u64>) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    // The dump's time has whole seconds.
    match (modified, time) {
        (Ok(modified), Some(time)) => UNIX_EPOCH
            .checked_add(Duration::from_secs(time.saturating_add(1)))
            .is_some_and(|dumped| modified > dumped),
        _ => false,
    }
}
