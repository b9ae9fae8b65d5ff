//! Plans for small files, which the tests write byte by byte.

#![allow(clippy::unwrap_used, reason = "a test")]

use dmd_redirect::elf::ElfFile;
use dmd_redirect::{AllocatorPlan, CodeReference, FileImage, ReferenceForm, plan_redirects};

const X86_64: u16 = 62;
const AARCH64: u16 = 183;
const CODE: u64 = 0x1000;
const DATA: u64 = 0x3000;

/// A file with code at [`CODE`], data at [`DATA`], and symbols (name, address, length). It is not relocatable, so its
/// data contains addresses as they are in memory.
fn file(machine: u16, code: &[u8], data: &[u64], symbols: &[(&str, u64, u64)]) -> Vec<u8> {
    let mut file = vec![0_u8; 64 + 2 * 56];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let put = |file: &mut Vec<u8>, at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    let code_at = file.len() as u64;
    file.extend_from_slice(code);
    file.resize(file.len().next_multiple_of(8), 0);
    let data_at = file.len() as u64;
    file.extend(data.iter().flat_map(|word| word.to_le_bytes()));
    let mut names = vec![0_u8];
    let symbols_at = file.len() as u64;
    file.extend_from_slice(&[0; 24]);
    for (name, address, length) in symbols {
        file.extend_from_slice(&(names.len() as u32).to_le_bytes());
        file.extend_from_slice(&[0x12, 0, 1, 0]);
        file.extend_from_slice(&address.to_le_bytes());
        file.extend_from_slice(&length.to_le_bytes());
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    }
    let names_at = file.len() as u64;
    file.extend_from_slice(&names);
    file.resize(file.len().next_multiple_of(8), 0);
    let sections_at = file.len() as u64;
    let section = |kind: u32, at: u64, length: u64, link: u32| {
        let mut section = [0_u8; 64];
        section[4..8].copy_from_slice(&kind.to_le_bytes());
        section[24..32].copy_from_slice(&at.to_le_bytes());
        section[32..40].copy_from_slice(&length.to_le_bytes());
        section[40..44].copy_from_slice(&link.to_le_bytes());
        section
    };
    file.extend_from_slice(&section(0, 0, 0, 0));
    file.extend_from_slice(&section(2, symbols_at, names_at - symbols_at, 2));
    file.extend_from_slice(&section(3, names_at, names.len() as u64, 0));
    put(&mut file, 16, &2_u16.to_le_bytes());
    put(&mut file, 18, &machine.to_le_bytes());
    put(&mut file, 32, &64_u64.to_le_bytes());
    put(&mut file, 40, &sections_at.to_le_bytes());
    put(&mut file, 54, &56_u16.to_le_bytes());
    put(&mut file, 56, &2_u16.to_le_bytes());
    put(&mut file, 58, &64_u16.to_le_bytes());
    put(&mut file, 60, &3_u16.to_le_bytes());
    let segments = [(5_u32, code_at, CODE, code.len() as u64), (6, data_at, DATA, data.len() as u64 * 8)];
    for (index, (flags, at, address, length)) in segments.into_iter().enumerate() {
        let header = 64 + index * 56;
        put(&mut file, header, &1_u32.to_le_bytes());
        put(&mut file, header + 4, &flags.to_le_bytes());
        for (field, value) in [(8, at), (16, address), (32, length), (40, length)] {
            put(&mut file, header + field, &value.to_le_bytes());
        }
    }
    file
}

fn plans(file: &[u8]) -> Vec<AllocatorPlan> {
    let Some(file) = ElfFile::parse(file) else { return Vec::new() };
    plan_redirects(&file, &file, &FileImage::new(file))
}

fn lines(file: &[u8]) -> Vec<String> {
    plans(file).iter().map(ToString::to_string).collect()
}

fn references(file: &[u8]) -> Vec<(u64, &'static str, ReferenceForm)> {
    let plans = plans(file);
    let [AllocatorPlan { plan: Ok(plan), .. }] = &plans[..] else { panic!("{plans:?}") };
    let references = plan.references.iter();
    references.map(|at| (at.at, plan.functions[usize::from(at.function)].function.name(), at.form)).collect()
}

/// The distance in an instruction whose last byte is before `end`.
fn distance(end: u64, target: u64) -> [u8; 4] {
    (target.wrapping_sub(end) as i32).to_le_bytes()
}

/// `mi_malloc` and `mi_free` are 16 bytes each. `main` calls each, jumps, and computes the address of `mi_free`.
fn x86_64() -> (Vec<u8>, Vec<(&'static str, u64, u64)>) {
    let (malloc, free, main) = (CODE, CODE + 16, CODE + 32);
    let mut code = vec![0xcc; 32];
    // mi_malloc calls mi_free: the allocator's own call stays.
    code[..5].copy_from_slice(&[&[0xe8][..], &distance(malloc + 5, free)].concat());
    let mut add = |before: &[u8], target: u64, after: &[u8]| {
        let end = CODE + (code.len() + before.len() + 4) as u64;
        code.extend([before, &distance(end, target), after].concat());
        end - 4
    };
    let places = [
        add(&[0xe8], malloc, &[]),
        add(&[0x67, 0xe8], malloc, &[]),
        add(&[0x48, 0x8d, 0x3d], free, &[]),
        add(&[0x0f, 0x84], free, &[]),
        add(&[0xe9], free, &[0x90]),
    ];
    assert_eq!(places, [0x1021, 0x1027, 0x102e, 0x1034, 0x1039]);
    // mov edi, mi_free
    code.extend([&[0xbf][..], &(free as u32).to_le_bytes()].concat());
    code.push(0xc3);
    let length = code.len() as u64 - 32;
    (
        code,
        vec![
            ("mi_malloc", malloc, 16),
            ("mi_free", free, 16),
            ("main", main, length),
            ("_mi_page", malloc, 0),
        ],
    )
}

#[test]
fn words_and_code_of_x86_64() {
    let (code, symbols) = x86_64();
    let file = file(X86_64, &code, &[7, CODE, CODE + 1, CODE + 16], &symbols);
    let (word, near) = (ReferenceForm::Word, ReferenceForm::Code(CodeReference::Distance));
    assert_eq!(
        references(&file),
        [
            (DATA + 8, "malloc", word),
            (DATA + 24, "free", word),
            (0x1021, "malloc", near),
            (0x1027, "malloc", near),
            (0x102e, "free", near),
            (0x1034, "free", near),
            (0x1039, "free", near),
            (0x103f, "free", ReferenceForm::Code(CodeReference::Immediate)),
        ]
    );
    assert_eq!(
        lines(&file),
        ["mimalloc inside the program: its blocks are recorded, too (2 functions, 8 references)"]
    );
}

#[test]
fn code_of_aarch64() {
    let words = [
        0xd65f_03c0_u32, // mi_malloc: ret
        0xd65f_03c0,     // mi_free: ret
        0x97ff_fffe,     // main: bl mi_malloc
        0x17ff_fffe,     // b mi_free
        0x9000_0008,     // adrp x8, page of the code
        0x9100_1108,     // add x8, x8, #4
        0xaa01_03e0,     // mov x0, x1
        0x9000_0009,     // adrp x9, page of the code
        0xf940_0529,     // ldr x9, [x9, #8]
        0x9100_1129,     // add x9, x9, #4: x9 has another value
    ];
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let symbols = [
        ("_rjem_malloc", CODE, 4),
        ("_rjem_sdallocx", CODE + 4, 4),
        ("main", CODE + 8, 32),
        ("_rjem_je_arena", CODE, 0),
    ];
    let file = file(AARCH64, &code, &[CODE], &symbols);
    let branch = ReferenceForm::Code(CodeReference::Branch);
    assert_eq!(
        references(&file),
        [
            (DATA, "malloc", ReferenceForm::Word),
            (CODE + 8, "malloc", branch),
            (CODE + 12, "sdallocx", branch),
            (CODE + 16, "sdallocx", ReferenceForm::Code(CodeReference::PagePair(4))),
        ]
    );
}

/// An `add` far behind its `adrp`, or one that a jump can reach, may compute the address of a function.
#[test]
fn unclear_code_of_aarch64_is_refused() {
    const NOP: u32 = 0xd503_201f;
    let lines_with = |rest: &[u32]| {
        // _rjem_malloc: ret; _rjem_sdallocx: ret; main: bl _rjem_malloc; adrp x8, page of the code
        let words = [&[0xd65f_03c0_u32, 0xd65f_03c0, 0x97ff_fffe, 0x9000_0008], rest].concat();
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let symbols = [
            ("_rjem_malloc", CODE, 4),
            ("_rjem_sdallocx", CODE + 4, 4),
            ("main", CODE + 8, words.len() as u64 * 4 - 8),
            ("_rjem_je_arena", CODE, 0),
        ];
        lines(&file(AARCH64, &code, &[CODE], &symbols))
    };
    // add x0, x8, #4; ldr x8, [x8, #8]; b.eq .+8
    let (add, load, jump) = (0x9100_1100, 0xf940_0508, 0x5400_0040);
    let is_unclear = |rest: &[u32]| lines_with(rest)[0].contains("it is unclear whether the code calls");
    assert!(is_unclear(&[&[NOP; 20][..], &[add]].concat()));
    assert!(is_unclear(&[NOP, add]));
    assert!(is_unclear(&[jump, load, add]));
    assert!(!is_unclear(&[load, jump, add]));
    assert!(!is_unclear(&[load, add]));
    assert!(!is_unclear(&[&[NOP; 1100][..], &[add]].concat()));
}

#[test]
fn what_cannot_be_redirected_is_refused() {
    let (code, symbols) = x86_64();
    let with = |more: &[(&'static str, u64, u64)]| [&symbols[..], more].concat();
    // The program does not refer to the functions.
    let (unused, functions) = (vec![0xc3; 64], &[symbols[0], symbols[1], symbols[3]][..]);
    assert!(lines(&file(X86_64, &unused, &[], functions)).is_empty());
    // Two functions have one name.
    let line = &lines(&file(X86_64, &code, &[], &with(&[("mi_free", CODE + 17, 1)])))[0];
    assert!(line.contains("two functions have the name mi_free"), "{line}");
    // A function that a hook cannot follow is called.
    let line = &lines(&file(X86_64, &code, &[CODE + 20], &with(&[("mi_heap_destroy", CODE + 20, 1)])))[0];
    assert!(line.contains("the program calls mi_heap_destroy, "), "{line}");
    // The program has functions with the same names, but does not contain the allocator.
    assert!(lines(&file(X86_64, &code, &[], &symbols[..3])).is_empty());
    // A compiler made a copy of a function, which the program calls.
    let line = &lines(&file(X86_64, &code, &[CODE + 20], &with(&[("mi_free.constprop.0", CODE + 20, 1)])))[0];
    assert!(line.contains("its functions are inlined"), "{line}");
    // The program calls a function that only the allocator calls, so it contains a copy of one of the callers.
    for name in ["_mi_malloc_generic", "_mi_theap_malloc_zero_ex", "_Z18_mi_malloc_genericPvm"] {
        let line = &lines(&file(X86_64, &code, &[CODE + 20], &with(&[(name, CODE + 20, 1)])))[0];
        assert!(line.contains("its functions are inlined"), "{line}");
    }
    // Only allocations are called: the program ends without a free.
    let line = &lines(&file(X86_64, &unused, &[CODE], functions))[0];
    assert_eq!(line, "mimalloc inside the program: its blocks are recorded, too (1 function, 1 reference)");
    // No function that frees is left.
    let functions = [("mi_malloc", CODE, 1), ("_mi_page", CODE, 0)];
    let line = &lines(&file(X86_64, &unused, &[CODE], &functions))[0];
    assert!(line.contains("its functions are inlined"), "{line}");
    // The function is outside of the code.
    let line = &lines(&file(
        X86_64,
        &unused,
        &[CODE, DATA],
        &[("mi_malloc", CODE, 1), ("mi_free", DATA, 1), ("_mi_page", CODE, 0)],
    ))[0];
    assert!(line.contains("mi_free is not in the program's code"), "{line}");
    // Bytes that look like a call are in the middle of an instruction: mov eax, imm32; nop ...
    let mut hidden = vec![0xcc; 32];
    hidden.extend([&[0xb8, 0, 0, 0, 0xe8][..], &distance(CODE + 41, CODE), &[0xc3]].concat());
    let symbols =
        [("mi_malloc", CODE, 16), ("mi_free", CODE + 16, 16), ("main", CODE + 32, 10), ("_mi_page", CODE, 0)];
    let line = &lines(&file(X86_64, &hidden, &[CODE + 16], &symbols))[0];
    assert!(line.contains("it is unclear whether the code calls mi_malloc"), "{line}");
}

/// An allocator's own operator refers to its private functions. A program's own operator calls `malloc`: that call leads
/// to the hook.
#[test]
fn a_programs_own_operators_are_not_the_allocators() {
    let (malloc, free, private, new) = (CODE, CODE + 16, CODE + 32, CODE + 48);
    let symbols = [
        ("malloc", malloc, 16),
        ("mi_malloc", malloc, 16),
        ("free", free, 16),
        ("mi_free", free, 16),
        ("_mi_try_new_handler", private, 16),
        ("_Znwm", new, 16),
        ("_ZdlPv", new + 16, 16),
        ("strdup", new + 32, 16),
        ("main", new + 48, 16),
    ];
    let build = |from_new: u64, from_delete: u64| {
        let mut code = vec![0xcc; 112];
        let calls = [
            (new, from_new),
            (new + 16, from_delete),
            (new + 48, new),
            (new + 53, new + 16),
            (new + 58, new + 32),
        ];
        for (at, target) in calls {
            let place = (at - CODE) as usize;
            code[place..place + 5].copy_from_slice(&[&[0xe8][..], &distance(at + 5, target)].concat());
        }
        file(X86_64, &code, &[], &symbols)
    };
    let near = ReferenceForm::Code(CodeReference::Distance);
    // A header before each block. `strdup` takes its blocks from a pool.
    let own = build(malloc, free);
    assert_eq!(references(&own), [(new + 1, "malloc", near), (new + 17, "free", near)]);
    let allocators = build(private, private);
    assert_eq!(references(&allocators), [(new + 49, "_Znwm", near), (new + 54, "_ZdlPv", near)]);
}

/// jemalloc's part in C++ calls its private functions in C. Compilers give its functions different names.
#[test]
fn callers_in_the_part_of_jemalloc_in_cpp_are_its_own() {
    let (code, mut symbols) = x86_64();
    symbols.truncate(3);
    (symbols[0].0, symbols[1].0) = ("malloc", "free");
    let caller = CODE + 4;
    let mut code = code;
    let inner = CODE + code.len() as u64;
    code.extend([0xcc; 16]);
    let at = CODE + code.len() as u64;
    code.extend([&[0xe8][..], &distance(at + 5, inner)].concat());
    symbols.extend([("mallocx", caller, 1), ("je_malloc_default", inner, 16)]);
    for (name, is_own) in [
        ("_Z13fallback_implILb0EEPvm", true),
        ("_ZL13fallback_implILb1EEPvm", true),
        ("_Z13fallback_mainv", false),
    ] {
        let line = &lines(&file(X86_64, &code, &[], &[&symbols[..], &[(name, at, 5)]].concat()))[0];
        assert_eq!(line.contains("its blocks are recorded"), is_own, "{line}");
    }
}

/// A copy of Rust's own functions need not have all their branches. Only the part before the first jump is in each copy.
#[test]
fn rusts_functions_are_hooked_without_copies_only() {
    const ALLOC: &str = "_RNvCs1_7___rustc12___rust_alloc";
    const DEALLOC: &str = "_RNvCs1_7___rustc14___rust_dealloc";
    // 16 bytes for each: alloc, dealloc, inner_alloc, inner_dealloc, inner_large; then main. `before` precedes the call
    // of `inner_alloc` in alloc.
    let at = |index: u64| CODE + index * 16;
    let program = |before: &[u8], in_main: &[u64]| {
        let mut code = vec![0xcc; 80];
        let mut put = |place: u64, before: &[u8], target: u64| {
            let end = place + before.len() as u64 + 5;
            let bytes = [before, &[0xe8], &distance(end, target), &[0xc3]].concat();
            let start = (place - CODE) as usize;
            if start >= code.len() {
                code.extend_from_slice(&bytes[..bytes.len() - 1]);
            } else {
                code[start..start + bytes.len()].copy_from_slice(&bytes);
            }
        };
        put(at(0), before, at(2));
        put(at(1), &[], at(3));
        for (index, target) in in_main.iter().enumerate() {
            put(at(5) + index as u64 * 5, &[], *target);
        }
        let names = [ALLOC, DEALLOC, "inner_alloc", "inner_dealloc", "inner_large"];
        let mut symbols: Vec<_> = names.iter().zip(0..).map(|(name, index)| (*name, at(index), 16)).collect();
        symbols.push(("main", at(5), in_main.len() as u64 * 5));
        file(X86_64, &code, &[at(0), at(1)], &symbols)
    };
    let hooked =
        ["the Rust allocator inside the program: its blocks are recorded, too (2 functions, 2 references)"];
    assert_eq!(lines(&program(&[], &[])), hooked);
    // main calls another function of the allocator.
    assert_eq!(lines(&program(&[], &[at(4)])), hooked);
    let is_refused = |file: &[u8]| lines(file)[0].contains("inlined into their callers");
    // A copy of one of the functions.
    assert!(is_refused(&program(&[], &[at(2)])));
    assert!(is_refused(&program(&[], &[at(3)])));
    // A condition precedes the call: a copy need not contain it.
    assert!(is_refused(&program(&[0x48, 0x83, 0xfe, 0x10, 0x77, 0x06], &[])));
}

/// Each number in a file is untrusted.
#[test]
fn damaged_files_have_plans_or_none() {
    let (code, symbols) = x86_64();
    let whole = file(X86_64, &code, &[CODE, CODE + 16], &symbols);
    for length in 0..whole.len() {
        plans(&whole[..length]);
    }
    for at in 0..whole.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            plans(&damaged);
        }
    }
}
