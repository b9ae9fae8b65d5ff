//! Forms of instructions, as assemblers write them.

#![allow(clippy::unwrap_used, reason = "a test")]

use dmd_redirect::encodings::{aarch64, x86_64};

#[test]
fn lengths_of_instructions() {
    // Bytes and lengths as `objdump` shows them.
    let instructions: &[&[u8]] = &[
        &[0x90],
        &[0xc3],
        &[0x55],
        &[0x41, 0x57],
        &[0x48, 0x89, 0xe5],
        &[0xf3, 0x0f, 0x1e, 0xfa],                         // endbr64
        &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],    // nop
        &[0x0f, 0x1f, 0x44, 0, 0],                         // nop
        &[0x66, 0x90],                                     // xchg ax, ax
        &[0xe8, 1, 2, 3, 4],                               // call
        &[0x67, 0xe8, 1, 2, 3, 4],                         // addr32 call
        &[0xff, 0x15, 1, 2, 3, 4],                         // call [rip]
        &[0xe9, 1, 2, 3, 4],                               // jmp
        &[0xeb, 0x10],                                     // jmp
        &[0x74, 0x10],                                     // je
        &[0x0f, 0x84, 1, 2, 3, 4],                         // je
        &[0x48, 0x8d, 0x05, 1, 2, 3, 4],                   // lea rax, [rip]
        &[0x4c, 0x8b, 0x25, 1, 2, 3, 4],                   // mov r12, [rip]
        &[0x48, 0x8b, 0x44, 0x24, 0x10],                   // mov rax, [rsp + 16]
        &[0x8b, 0x84, 0xc8, 1, 2, 3, 4],                   // mov eax, [rax + rcx * 8 + ...]
        &[0x8b, 0x04, 0x25, 1, 2, 3, 4],                   // mov eax, [...]
        &[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8],             // movabs rax
        &[0xb8, 1, 2, 3, 4],                               // mov eax
        &[0x66, 0xb8, 1, 2],                               // mov ax
        &[0x48, 0xc7, 0xc0, 1, 2, 3, 4],                   // mov rax
        &[0x66, 0xc7, 0x00, 1, 2],                         // mov word [rax]
        &[0xc6, 0x05, 1, 2, 3, 4, 9],                      // mov byte [rip]
        &[0x48, 0x83, 0xec, 0x08],                         // sub rsp
        &[0x48, 0x81, 0xec, 1, 2, 3, 4],                   // sub rsp
        &[0xf6, 0x40, 0x10, 0x01],                         // test byte [rax + 16]
        &[0xf6, 0xd8],                                     // neg al
        &[0xf7, 0xc1, 1, 2, 3, 4],                         // test ecx
        &[0x48, 0xf7, 0xe1],                               // mul rcx
        &[0x48, 0x69, 0xc1, 1, 2, 3, 4],                   // imul
        &[0x48, 0x6b, 0xc1, 0x18],                         // imul
        &[0xf0, 0x48, 0x0f, 0xb1, 0x0d, 1, 2, 3, 4],       // lock cmpxchg [rip], rcx
        &[0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0],       // mov rax, fs:[0]
        &[0x66, 0x48, 0x8d, 0x3d, 1, 2, 3, 4],             // lea rdi, [rip], of a thread-local
        &[0x0f, 0x11, 0x44, 0x24, 0x20],                   // movups
        &[0xf2, 0x0f, 0x10, 0x05, 1, 2, 3, 4],             // movsd
        &[0x66, 0x0f, 0x70, 0xc0, 0xee],                   // pshufd
        &[0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x08],             // palignr
        &[0x66, 0x0f, 0x38, 0x00, 0xc1],                   // pshufb
        &[0x0f, 0xba, 0xe0, 0x05],                         // bt
        &[0x0f, 0xa4, 0xc2, 0x03],                         // shld
        &[0xc5, 0xf8, 0x77],                               // vzeroupper
        &[0xc5, 0xfc, 0x11, 0x44, 0x24, 0x20],             // vmovups
        &[0xc5, 0xf9, 0x70, 0xc0, 0xee],                   // vpshufd
        &[0xc4, 0xe2, 0xfb, 0xf7, 0xc1],                   // shrx
        &[0xc4, 0xe3, 0xfb, 0xf0, 0xc1, 0x20],             // rorx
        &[0xc4, 0xe3, 0x7d, 0x39, 0xc1, 0x01],             // vextracti128
        &[0x62, 0xf1, 0x7c, 0x48, 0x11, 0x44, 0x24, 0x01], // vmovups zmm
        &[0x62, 0xf3, 0x7d, 0x48, 0x3b, 0xc1, 0x01],       // vextracti32x8
        &[0x0f, 0x0b],                                     // ud2
        &[0x0f, 0x05],                                     // syscall
        &[0xc2, 0x08, 0x00],                               // ret 8
        &[0x6a, 0x01],                                     // push
        &[0x68, 1, 2, 3, 4],                               // push
    ];
    let mut function = Vec::new();
    for instruction in instructions {
        assert_eq!(x86_64::length(instruction), Some(instruction.len()), "{instruction:02x?}");
        function.extend_from_slice(instruction);
        assert!(x86_64::is_instruction_end(&function, function.len()));
        assert!(instruction.len() == 1 || !x86_64::is_instruction_end(&function, function.len() - 1));
    }
    // Instructions that 64-bit code does not have, and code that ends too early.
    for invalid in
        [&[0x06][..], &[0x0e], &[0x82, 0xc0, 0], &[0xea, 0, 0, 0, 0, 0, 0], &[0xe8, 1, 2], &[0x66; 16]]
    {
        assert_eq!(x86_64::length(invalid), None, "{invalid:02x?}");
    }
}

#[test]
fn instructions_before_the_first_jump() {
    let push = [0x55];
    let call = [0xe8, 1, 2, 3, 4];
    for (jump, runs) in [
        (&[0x74, 0x10][..], false),         // je
        (&[0x0f, 0x84, 1, 2, 3, 4], false), // je
        (&[0xe3, 0x10], false),             // jrcxz
        (&[0xe9, 1, 2, 3, 4], true),        // jmp
        (&[0xeb, 0x10], true),              // jmp
        (&[0xff, 0x25, 1, 2, 3, 4], true),  // jmp [rip]
        (&[0xff, 0xe0], true),              // jmp rax
        (&[0xc3], true),                    // ret
        (&[0xcc], true),                    // int3
        (&[0x06], false),                   // no instruction
    ] {
        let code = [&push[..], &call, jump, &call].concat();
        let expected = push.len() + call.len() + if runs { jump.len() } else { 0 };
        assert_eq!(x86_64::straight_bytes(&code), expected, "{jump:02x?}");
    }
    // call [rip] returns
    assert_eq!(x86_64::straight_bytes(&[0xff, 0x15, 1, 2, 3, 4, 0xc3, 0x90]), 7);
    assert_eq!(x86_64::straight_bytes(&[]), 0);
}

#[test]
fn forms_with_a_distance() {
    use x86_64::Certainty::{Certain, NeedsDecoding};

    for (code, at, form) in [
        (&[0x67, 0xe8, 0, 0, 0, 0][..], 2, Some(Certain)),
        (&[0x00, 0xe8, 0, 0, 0, 0, 0x90], 2, Some(Certain)),
        (&[0x00, 0xe8, 0, 0, 0, 0, 0x91], 2, Some(NeedsDecoding)),
        (&[0xe9, 0, 0, 0, 0, 0x90], 1, Some(Certain)),
        (&[0xe9, 0, 0, 0, 0], 1, Some(NeedsDecoding)),
        (&[0x0f, 0x84, 0, 0, 0, 0], 2, Some(NeedsDecoding)),
        (&[0x0e, 0x84, 0, 0, 0, 0], 2, None),
        (&[0x48, 0x8d, 0x3d, 0, 0, 0, 0], 3, Some(Certain)),
        (&[0x4c, 0x8d, 0x25, 0, 0, 0, 0], 3, Some(Certain)),
        // `mov` reads a word, so it does not refer to the function itself.
        (&[0x48, 0x8b, 0x3d, 0, 0, 0, 0], 3, None),
        (&[0x48, 0x8d, 0x7d, 0, 0, 0, 0], 3, None),
        (&[0xff, 0x15, 0, 0, 0, 0], 2, None),
    ] {
        assert_eq!(x86_64::distance_form(code, at), form, "{code:02x?}");
    }
    assert_eq!(x86_64::target(5_i32.to_le_bytes(), 0x1000), 0x1009);
    assert_eq!(x86_64::target((-0x1004_i32).to_le_bytes(), 0x1000), 0);
    for target in [0, 0x1004, 0x7fff_0000, 0x1000 + 4 + i32::MAX as u64] {
        let distance = x86_64::distance(0x1000, target).unwrap();
        assert_eq!(x86_64::target(distance, 0x1000), target);
    }
    assert_eq!(x86_64::distance(0x1000, 0x1000 + 5 + i32::MAX as u64), None);
    assert_eq!(&x86_64::stub(0x1122_3344_5566_7788)[..8], [0xff, 0x25, 0, 0, 0, 0, 0x88, 0x77]);
}

#[test]
fn branches_of_aarch64() {
    // bl .+0x1000; b .-4
    assert_eq!(aarch64::branch_target(0x9400_0400, 0x4000), Some(0x5000));
    assert_eq!(aarch64::branch_target(0x17ff_ffff, 0x4000), Some(0x3ffc));
    // ret; adrp; b.eq; cbz; tbz; blr
    for other in [0xd65f_03c0, 0x9000_0000, 0x5400_0040, 0xb400_0040, 0x3600_0040, 0xd63f_0000] {
        assert_eq!(aarch64::branch_target(other, 0x4000), None, "{other:x}");
    }
    // b; b.eq; cbz w0; cbnz x0; tbz; tbnz; br x16
    for jump in [0x1400_0400, 0x5400_0040, 0x3400_0040, 0xb500_0040, 0x3600_0040, 0xb700_0040, 0xd61f_0200] {
        assert!(aarch64::is_jump(jump), "{jump:x}");
    }
    // bl; blr; ret; adrp; add; nop; ldr (literal)
    for other in [0x9400_0400, 0xd63f_0000, 0xd65f_03c0, 0x9000_0000, 0x9100_1108, 0xd503_201f, 0x5800_0070] {
        assert!(!aarch64::is_jump(other), "{other:x}");
    }
    for target in [0, 0x4000, 0x800_3ffc, 0x400_0000] {
        for instruction in [0x9400_0400, 0x1400_0000] {
            let changed = aarch64::with_branch_target(instruction, 0x4000, target).unwrap();
            assert_eq!(aarch64::branch_target(changed, 0x4000), Some(target));
            assert_eq!(changed >> 26, instruction >> 26);
        }
    }
    assert_eq!(aarch64::with_branch_target(0x9400_0400, 0x4000, 0x800_4000), None);
    assert_eq!(aarch64::with_branch_target(0x9400_0400, 0x4000, 0x4002), None);
}

#[test]
fn pairs_of_aarch64() {
    // adrp x0, .+0x1000; adrp x8, .-0x1000
    assert_eq!(aarch64::page_target(0xb000_0000, 0x40_0123), Some((0x40_1000, 0)));
    assert_eq!(aarch64::page_target(0xf0ff_ffe8, 0x40_0123), Some((0x3f_f000, 8)));
    // adr x0, .+4 is not `adrp`
    assert_eq!(aarch64::page_target(0x1000_0020, 0x40_0000), None);
    assert_eq!(aarch64::near_target(0x1000_0020, 0x40_0000), Some(0x40_0004));
    // add x0, x1, #0x123
    assert_eq!(aarch64::added_bytes(0x9104_8c20), Some((0x123, 1)));
    // add x0, x1, #0x123, lsl #12; add w0, w1, #0x123; sub x0, x1, #0x123
    for other in [0x9144_8c20, 0x1104_8c20, 0xd104_8c20] {
        assert_eq!(aarch64::added_bytes(other), None, "{other:x}");
    }
    for target in [0x12_3456, 0x7fff_f000, 0x40_0fff] {
        let page = aarch64::with_page(0xb000_0008, 0x40_0123, target).unwrap();
        assert_eq!(aarch64::page_target(page, 0x40_0123), Some((target & !0xfff, 8)));
        let add = aarch64::with_added(0x9104_8c20, target);
        assert_eq!(aarch64::added_bytes(add), Some((target & 0xfff, 1)));
    }
    assert_eq!(aarch64::with_page(0xb000_0008, 0, 1 << 33), None);
    // bti c; ldr x16, .+12; br x16
    let stub = aarch64::stub(0x1122_3344_5566_7788);
    assert_eq!(&stub[4..8], 0x5800_0070_u32.to_le_bytes());
    assert_eq!(&stub[16..], 0x1122_3344_5566_7788_u64.to_le_bytes());
}
