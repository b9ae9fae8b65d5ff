//! Debug information whose author wants to keep the symbolizer busy, or to deceive it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use dmd_analyze::symbolize::{SymbolBound, SymbolOptions, SymbolProblem};

use super::separate::{compile_c, run};
use super::symbols::{Library, frames};

/// A library with a function `outer` of 4,096 bytes, and the debug information in `entries`. The numbers of its
/// abbreviations: 1 is the unit, 2 a function, 3 an inlined call, 4 a function that refers to another function, 5 a
/// block, 6 a namespace, 7 a function like 4 with an address range, 8 a function with a list of address ranges.
fn assemble(folder: &Path, entries: &str, ranges: &str) -> Library {
    let source = format!(
        r#".text
.globl outer
.type outer,@function
outer: .fill 4096,1,0x90
end: .size outer,4096
.section .debug_abbrev,"",@progbits
 .uleb128 1,0x11; .byte 1; .uleb128 0x03,0x08,0x11,0x01,0x12,0x07,0,0
 .uleb128 2,0x2e; .byte 1; .uleb128 0x03,0x08,0x11,0x01,0x12,0x07,0,0
 .uleb128 3,0x1d; .byte 1; .uleb128 0x31,0x13,0x11,0x01,0x12,0x07,0,0
 .uleb128 4,0x2e; .byte 0; .uleb128 0x31,0x13,0,0
 .uleb128 5,0x0b; .byte 1; .uleb128 0x11,0x01,0x12,0x07,0,0
 .uleb128 6,0x39; .byte 1; .uleb128 0x03,0x08,0,0
 .uleb128 7,0x2e; .byte 0; .uleb128 0x31,0x13,0x11,0x01,0x12,0x07,0,0
 .uleb128 8,0x2e; .byte 0; .uleb128 0x03,0x08,0x55,0x17,0,0
 .byte 0
.section .debug_info,"",@progbits
unit: .long unit_end-start
start: .2byte 4
 .long 0
 .byte 8
 .uleb128 1
 .asciz "small.c"
 .quad outer,end-outer
{entries}
 .byte 0
unit_end:
.section .debug_ranges,"",@progbits
{ranges}
"#
    );
    fs::write(folder.join("small.s"), source).unwrap();
    run(folder, &["cc", "-shared", "-nostdlib", "-Wl,--build-id=sha1", "small.s", "-o", "libsmall.so"]);
    Library::at(folder.join("libsmall.so"))
}

const FUNCTION: &str = ".uleb128 2\n.asciz \"outer\"\n.quad outer,end-outer\n";

/// A function that is inlined into itself `depth` times.
fn inlined(depth: usize) -> String {
    format!(
        "{FUNCTION}.rept {depth}\n.byte 3\n.long origin-unit\n.quad outer,end-outer\n.endr\n.fill {depth},1,0\n\
         .byte 0\norigin: .uleb128 2\n.asciz \"inner\"\n.quad 0,0\n.byte 0"
    )
}

/// The frames of places in `outer`, and the limits that the symbolizer exceeded.
fn look_up(library: &Library, places: u64, options: &SymbolOptions) -> (Vec<String>, Vec<SymbolBound>) {
    let offsets: Vec<u64> = (0..places).map(|place| library.outer + place).collect();
    let mut dump = library.dump_of(&library.build_id, &offsets);
    let notes = dump.symbolize(options);
    let path = library.path.display().to_string();
    assert!(notes.iter().all(|note| note.to_string().starts_with(&path)), "{notes:?}");
    let bounds = notes.iter().filter_map(|note| match note.problem {
        SymbolProblem::Bounded(bound) => Some(bound),
        _ => None,
    });
    (frames(dump), bounds.collect())
}

#[test]
fn inlined_calls_nested_without_end_are_a_note_and_no_crash() {
    for threads in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let library = assemble(folder.path(), &inlined(100_000), "");
        let (found, bounds) = look_up(&library, 1, &SymbolOptions::new().threads(threads));
        assert_eq!(bounds, [SymbolBound::Nesting]);
        // The table of symbols still names the function.
        assert_eq!(found, [format!("outer[{} +0x{:x}]", library.path.display(), library.outer)]);
    }
}

#[test]
fn of_many_inlined_calls_the_innermost_and_the_function_itself_are_kept() {
    for (depth, kept) in [(200, 201), (300, 256)] {
        let folder = tempfile::tempdir().unwrap();
        let library = assemble(folder.path(), &inlined(depth), "");
        let mut dump = library.dump_of(&library.build_id, &[library.outer]);
        let notes = dump.symbolize(&SymbolOptions::new());
        assert_eq!(notes.is_empty(), depth == 200, "{notes:?}");
        let options = dmd_analyze::AnalyzeOptions::new().max_frames(1000);
        let text = dmd_analyze::Analysis::new(dump, &options).text(&[]).to_string();
        let found: Vec<&str> = text.lines().filter(|line| line.starts_with("    #")).collect();
        assert_eq!(found.len(), kept);
        assert!(found[0].contains("inner") && found[kept - 1].contains("outer"), "{found:?}");
    }
}

#[test]
fn what_is_nested_in_other_ways_is_looked_up() {
    let plain = format!("{FUNCTION}.byte 0");
    let blocks = format!(
        "{FUNCTION}.rept 20000\n.byte 5\n.quad outer,end-outer\n.endr\n.byte 3\n.long origin-unit\n\
         .quad outer,end-outer\n.byte 0\n.fill 20000,1,0\n.byte 0\norigin: .uleb128 2\n.asciz \"inner\"\n\
         .quad 0,0\n.byte 0"
    );
    let circle = "origin: .uleb128 4\n.long other-unit\nother: .uleb128 4\n.long origin-unit\n.uleb128 7\n\
                  .long origin-unit\n.quad outer,end-outer";
    for (entries, expected) in [(&*plain, "outer"), (&blocks, "inner"), (circle, "outer")] {
        let folder = tempfile::tempdir().unwrap();
        let library = assemble(folder.path(), entries, "");
        let (found, bounds) = look_up(&library, 1, &SymbolOptions::new());
        assert!(found[0].starts_with(expected), "{found:?}");
        assert_eq!(bounds, []);
    }
}

#[test]
fn names_are_cut_and_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = ".rept 20000\n.byte 6\n.asciz \"nnnnnnnn\"\n.endr\n".to_owned();
    for function in 0..100 {
        let _ = writeln!(entries, ".uleb128 2\n.asciz \"f{function}\"\n.quad outer+{function},1\n.byte 0");
    }
    entries += ".fill 20000,1,0";
    let library = assemble(folder.path(), &entries, "");
    let (found, bounds) = look_up(&library, 100, &SymbolOptions::new().threads(1));
    assert_eq!(bounds, [SymbolBound::NameLength]);
    let name = found[0].split([' ', '[']).next().unwrap();
    assert!(name.len() <= 1 << 16 && name.ends_with("nnnnnnnn::f0"), "{} {:?}", name.len(), &name[..40]);

    // All names together also have a limit.
    let (found, bounds) = look_up(&library, 100, &SymbolOptions::new().threads(1).max_bytes(200_000));
    assert_eq!(bounds, [SymbolBound::Text(200_000), SymbolBound::NameLength]);
    assert!(found.last().unwrap().starts_with("???["), "{:?}", found.last());
}

#[test]
fn a_list_that_many_functions_name_is_not_read_for_each() {
    let folder = tempfile::tempdir().unwrap();
    let entries = format!(".rept 5000\n.uleb128 8\n.asciz \"f\"\n.long 0\n.endr\n{FUNCTION}.byte 0");
    let ranges = ".rept 5000\n.quad 1,2\n.endr\n.quad 0,0";
    let library = assemble(folder.path(), &entries, ranges);
    let (found, bounds) = look_up(&library, 1, &SymbolOptions::new());
    assert_eq!(bounds, [SymbolBound::Work]);
    assert!(found[0].starts_with("outer["), "{found:?}");
}

#[test]
fn compressed_debug_information_is_unpacked_up_to_a_bound() {
    let outer = |name: String| format!("long {name}(volatile long *x) {{ return *x * 3; }}\n");
    let source: String =
        (0..200).map(|i| outer(format!("f{i}"))).chain([outer("outer".to_owned())]).collect();
    let folder = tempfile::tempdir().unwrap();
    let library = Library::at(compile_c(folder.path(), &source, &["-g"]));
    // Sections that are not compressed have no limit.
    let (found, bounds) = look_up(&library, 1, &SymbolOptions::new().max_bytes(1000));
    assert!(found[0].starts_with("outer (") && bounds.is_empty(), "{found:?} {bounds:?}");

    run(folder.path(), &["objcopy", "--compress-debug-sections=zlib", "libsmall.so"]);
    let (found, bounds) = look_up(&library, 1, &SymbolOptions::new());
    assert!(found[0].starts_with("outer (") && bounds.is_empty(), "{found:?} {bounds:?}");
    let (found, bounds) = look_up(&library, 1, &SymbolOptions::new().max_bytes(1000));
    assert_eq!(bounds, [SymbolBound::Unpacked(1000)]);
    assert!(found[0].starts_with("outer["), "{found:?}");
}

/// The demangling libraries parse these names as `float`, `char*`, and paths.
#[test]
fn names_of_c_stay_as_they_are() {
    let names = ["f", "d", "Pc", "Ss", "RNvC1a1b", "ZN1a1bE"];
    for flags in [&["-g0"][..], &["-g"], &["-g", "-xc++"]] {
        let folder = tempfile::tempdir().unwrap();
        let c = |name: &&str| format!("extern long {name}(long); long {name}(long x) {{ return x * 3; }}\n");
        let functions: String = names.iter().chain(&["outer"]).map(c).collect();
        let source =
            if flags.contains(&"-xc++") { format!("extern \"C\" {{ {functions} }}") } else { functions };
        let library = Library::at(compile_c(folder.path(), &source, flags));
        let bytes = fs::read(&library.path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        for name in names {
            use object::{Object as _, ObjectSymbol as _};
            let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
            let mut dump = library.dump_of(&library.build_id, &[symbol.address()]);
            dump.symbolize(&SymbolOptions::new());
            let found = frames(dump);
            let named = found[0].split([' ', '[']).next().unwrap();
            assert_eq!(named, name, "{flags:?}");
        }
    }
}

/// Compilers mangle some functions, such as inlined constructors, in forms that no symbol has.
#[test]
fn what_mangled_names_do_not_tell_debug_information_does() {
    const SOURCE: &str = "
        namespace app { struct Cache { long *list; Cache(long n); }; }
        __attribute__((always_inline)) inline app::Cache::Cache(long n) { list = new long[n]; }
        extern \"C\" void *outer(long n) { return new app::Cache(n * 3); }";
    let folder = tempfile::tempdir().unwrap();
    let library = Library::at(compile_c(folder.path(), SOURCE, &["-g", "-xc++"]));
    let (found, _) = look_up(&library, 64, &SymbolOptions::new());
    assert!(!found.iter().any(|frame| frame.starts_with("_Z")), "{found:?}");
    let all: Vec<u64> = (0..64).map(|byte| library.outer + byte).collect();
    let constructors = all.iter().filter(|place| {
        let mut dump = library.dump_of(&library.build_id, &[**place]);
        dump.symbolize(&SymbolOptions::new());
        frames(dump)[0].starts_with("app::Cache::Cache")
    });
    assert!(constructors.count() > 0);
}
