//! Debug information in other files, split off by the compiler or by a tool.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dmd_analyze::symbolize::SymbolOptions;

use super::symbols::{Library, SOURCE, compile, frames, notes};

const C_SOURCE: &str = "\
static inline __attribute__((always_inline)) long inner(volatile long *x) {
    return *x + 1;
}
long outer(volatile long *x) {
    return inner(x) * 3;
}
";

/// Variables that move between registers have lists of locations. The index of a package contains the section of these
/// lists.
const WITH_LOCATIONS: &str = r#"
#![crate_type = "cdylib"]
#[inline(always)]
fn inner(x: u64) -> u64 {
    let mut sum = x;
    for step in 0..std::hint::black_box(x) {
        sum = sum.rotate_left(step as u32) ^ std::hint::black_box(step);
    }
    sum + 1
}
#[unsafe(no_mangle)]
pub extern "C" fn outer(x: u64) -> u64 {
    inner(x)
}
"#;

pub(super) fn run(folder: &Path, command: &[&str]) {
    let output = Command::new(command[0]).args(&command[1..]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles a C library in `folder`, with these flags.
pub(super) fn compile_c(folder: &Path, source: &str, flags: &[&str]) -> PathBuf {
    fs::write(folder.join("small.c"), source).unwrap();
    let object = ["-c", "-O1", "-fPIC", "small.c", "-o", "small.o"];
    run(folder, &[&["cc"][..], flags, &object].concat());
    let build_id = if flags.contains(&"-fno-ident") { "-Wl,--build-id=none" } else { "-Wl,--build-id=sha1" };
    run(folder, &["cc", "-shared", build_id, "small.o", "-o", "libsmall.so"]);
    folder.join("libsmall.so")
}

/// The frames of all places in the function `outer`, and the notes of the symbolizer.
fn look_up(library: &Library, options: &SymbolOptions) -> (Vec<String>, Vec<String>) {
    let all: Vec<u64> = (0..8).map(|byte| library.outer + byte).collect();
    let mut dump = library.dump_of(&library.build_id, &all);
    let said = notes(&mut dump, options);
    (frames(dump), said)
}

fn has(frames: &[String], function: &str) -> bool {
    frames.iter().any(|frame| frame.starts_with(&format!("{function} (")))
}

/// The files in a folder that have this extension.
fn with_ending(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|is| is == ending)).collect()
}

#[test]
fn what_a_compiler_split_off_is_found() {
    let rust = |split: &'static str, source: &'static str| {
        move |folder: &Path| compile(folder, source, &["-g", &format!("-Csplit-debuginfo={split}")])
    };
    let c = |version: &'static str| {
        move |folder: &Path| compile_c(folder, C_SOURCE, &["-g", version, "-gsplit-dwarf"])
    };
    type Compile<'a> = &'a dyn Fn(&Path) -> PathBuf;
    let compilers: [(&str, Compile<'_>, &str); 5] = [
        ("dwp", &rust("packed", SOURCE), "small::"),
        ("dwp", &rust("packed", WITH_LOCATIONS), "small::"),
        ("dwo", &rust("unpacked", SOURCE), "small::"),
        ("dwo", &c("-gdwarf-4"), ""),
        ("dwo", &c("-gdwarf-5"), ""),
    ];
    for (ending, compile, path) in compilers {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::at(compile(folder.path()));
        let split = with_ending(folder.path(), ending);
        let [split] = &split[..] else { panic!("{ending}: {split:?}") };
        let (found, said) = look_up(&library, &SymbolOptions::new());
        let (inner, outer) = (format!("{path}inner"), format!("{path}outer"));
        assert!(has(&found, &inner) && has(&found, &outer), "{ending}: {found:?}");
        assert!(said.is_empty(), "{said:?}");

        // The file may be in another folder.
        let kept = folder.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::rename(split, kept.join(split.file_name().unwrap())).unwrap();
        let (found, _) = look_up(&library, &SymbolOptions::new().folder(&kept));
        assert!(has(&found, &inner) && has(&found, &outer), "{ending}: {found:?}");

        // For a missing file, the symbolizer does not invent frames.
        let (found, said) = look_up(&library, &SymbolOptions::new());
        assert!(!has(&found, &inner) && found.iter().all(|frame| frame.starts_with("outer")), "{found:?}");
        let [said] = &said[..] else { panic!("{said:?}") };
        assert!(said.starts_with(&format!("{}: ", library.path.display())), "{said}");
        assert!(said.ends_with(" not found or changed: 8 frames without inlined calls"), "{said}");
    }
}

#[test]
fn what_was_split_off_of_another_build_is_not_used() {
    for (kind, ending) in [("packed", "dwp"), ("unpacked", "dwo")] {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let flags = ["-g", &format!("-Csplit-debuginfo={kind}")];
        let library = Library::at(compile(folders[0].path(), SOURCE, &flags));
        compile(folders[1].path(), &SOURCE.replace("+ 1", "+ 77"), &flags);
        let (ours, other) = (with_ending(folders[0].path(), ending), with_ending(folders[1].path(), ending));
        fs::copy(&other[0], &ours[0]).unwrap();
        let (found, said) = look_up(&library, &SymbolOptions::new());
        assert!(!has(&found, "small::inner"), "{kind}: {found:?}");
        assert!(said[0].contains(".dwo not found or changed: "), "{said:?}");

        fs::write(&ours[0], "no debug information").unwrap();
        let (_, said) = look_up(&library, &SymbolOptions::new());
        assert!(said[0].contains(".dwo not found or changed: "), "{said:?}");
    }
}

/// Moves a library's debug information to another file, and adds a link to it.
fn take_off(folder: &Path) {
    run(folder, &["objcopy", "--only-keep-debug", "libsmall.so", "small.debug"]);
    run(folder, &["objcopy", "--strip-debug", "--add-gnu-debuglink=small.debug", "libsmall.so"]);
}

#[test]
fn a_linked_debug_file_is_found_and_must_be_of_the_same_build() {
    // Try a library with a build id, and a library without a build id.
    for flags in [&["-g"][..], &["-g", "-fno-ident"]] {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::at(compile_c(folder.path(), C_SOURCE, flags));
        take_off(folder.path());
        let has_id = !library.build_id.is_empty();
        assert_eq!(has_id, flags.len() == 1);
        // For a library without a build id, the notes also report that the file was not checked. Take only the note
        // about the debug file.
        let of_debug = |said: Vec<String>| said.into_iter().find(|line| line.contains("small.debug"));
        let debug = folder.path().join("small.debug");
        let found_at = |place: &Path, options: &SymbolOptions| {
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            let kept = fs::read(&debug).unwrap();
            fs::rename(&debug, place).unwrap();
            let (found, said) = look_up(&library, options);
            assert!(has(&found, "inner") && has(&found, "outer"), "{}: {found:?}", place.display());
            assert_eq!(of_debug(said), None);
            fs::remove_file(place).unwrap();
            fs::write(&debug, kept).unwrap();
        };
        let plain = SymbolOptions::new();
        found_at(&folder.path().join("small.debug"), &plain);
        found_at(&folder.path().join(".debug/small.debug"), &plain);
        let kept = folder.path().join("kept");
        found_at(&kept.join("small.debug"), &SymbolOptions::new().folder(&kept));
        let below = folder.path().strip_prefix("/").unwrap();
        found_at(&kept.join(below).join("small.debug"), &SymbolOptions::new().folder(&kept));

        fs::remove_file(&debug).unwrap();
        let (found, said) = look_up(&library, &plain);
        assert!(found.iter().all(|frame| frame.starts_with("outer[")), "{found:?}");
        assert_eq!(of_debug(said), None);

        let other = tempfile::tempdir().unwrap();
        compile_c(other.path(), &C_SOURCE.replace("+ 1", "+ 77"), flags);
        take_off(other.path());
        fs::rename(other.path().join("small.debug"), &debug).unwrap();
        let (found, said) = look_up(&library, &plain);
        assert!(found.iter().all(|frame| frame.starts_with("outer[")), "{found:?}");
        let path = library.path.display();
        let expected =
            format!("{path}: {} comes from another build: 8 frames without lines", debug.display());
        assert_eq!(of_debug(said), Some(expected));
    }
}
