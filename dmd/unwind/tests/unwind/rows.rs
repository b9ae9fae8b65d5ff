//! Compares every row of every function in the libraries of this process with the row that gimli computes.

use dmd_unwind::Sections;
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection,
};
use object::{Object, ObjectSection};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The files of this process's code.
fn mapped_files() -> BTreeSet<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .filter(|line| line.contains(" r-xp "))
        .filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])))
        .filter(|path| path.is_file())
        .collect()
}

/// The text of a row, in the format of `Sections::row`.
fn written(cfa: &CfaRule<usize>, rules: &[(u16, RegisterRule<usize>)], signal: bool) -> String {
    let mut text = match cfa {
        CfaRule::RegisterAndOffset { register, offset } => format!("cfa={}{offset:+}", register.0),
        CfaRule::Expression(_) => String::from("cfa=expression"),
    };
    for (register, rule) in rules {
        match rule {
            RegisterRule::Undefined => write!(text, " {register}=undefined"),
            RegisterRule::SameValue => write!(text, " {register}=kept"),
            RegisterRule::Offset(offset) => write!(text, " {register}=[cfa{offset:+}]"),
            RegisterRule::ValOffset(offset) => write!(text, " {register}=cfa{offset:+}"),
            RegisterRule::Register(source) => write!(text, " {register}={}", source.0),
            RegisterRule::Expression(_) => write!(text, " {register}=[expression]"),
            RegisterRule::ValExpression(_) => write!(text, " {register}=expression"),
            other => panic!("{other:?}"),
        }
        .unwrap();
    }
    if signal {
        text.push_str(" signal");
    }
    text
}

/// Compares the rows of a file, and returns their number.
fn compare(path: &Path) -> usize {
    let data = std::fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let (Some(header), Some(frames)) =
        (file.section_by_name(".eh_frame_hdr"), file.section_by_name(".eh_frame"))
    else {
        return 0;
    };
    let text = file.section_by_name(".text").map_or(0, |section| section.address());
    let ours = Sections {
        header_address: header.address() as usize,
        header: header.data().unwrap(),
        frames_address: frames.address() as usize,
        frames: frames.data().unwrap(),
    };
    assert_eq!(ours.frames_address(), Some(ours.frames_address), "{}", path.display());
    let section = EhFrame::new(ours.frames, LittleEndian);
    let bases = BaseAddresses::default()
        .set_eh_frame_hdr(header.address())
        .set_eh_frame(frames.address())
        .set_text(text);
    let mut context = UnwindContext::new();
    let mut entries = section.entries(&bases);
    let mut rows = 0;
    while let Some(entry) = entries.next().unwrap() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
        let mut table = fde.rows(&section, &bases, &mut context).unwrap();
        while let Some(row) = table.next_row().unwrap() {
            let (start, end) = (row.start_address(), row.end_address().min(fde.end_address()));
            if start >= end {
                continue;
            }
            let mut rules: Vec<_> = row
                .registers()
                .filter(|rule| rule.0.0 <= 16)
                .map(|rule| (rule.0.0, rule.1.clone()))
                .collect();
            rules.sort_by_key(|rule| rule.0);
            let expected = written(row.cfa(), &rules, fde.is_signal_trampoline());
            for pc in [start, end - 1] {
                let got = ours.row(pc as usize);
                assert_eq!(got.as_deref(), Some(&*expected), "{} at {pc:#x}", path.display());
            }
            rows += 1;
        }
    }
    rows
}

#[test]
fn rows_are_those_of_gimli() {
    let files = mapped_files();
    assert!(files.len() >= 3, "{files:?}");
    let rows: usize = files.iter().map(|path| compare(path)).sum();
    assert!(rows > 40_000, "{rows} rows");
}

#[test]
fn functions_are_found_without_the_sorted_table() {
    let path = std::env::current_exe().unwrap();
    let data = std::fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let header = file.section_by_name(".eh_frame_hdr").unwrap();
    let frames = file.section_by_name(".eh_frame").unwrap();
    let whole = Sections {
        header_address: header.address() as usize,
        header: header.data().unwrap(),
        frames_address: frames.address() as usize,
        frames: frames.data().unwrap(),
    };
    // Change the header so that it has no table.
    let mut bytes = whole.header.to_vec();
    bytes[2] = 0xff;
    bytes[3] = 0xff;
    let bare = Sections { header: &bytes, ..whole };
    let text = file.section_by_name(".text").unwrap();
    let mut found = 0;
    for pc in (text.address()..text.address() + text.size()).step_by(text.size() as usize / 60) {
        let expected = whole.row(pc as usize);
        found += usize::from(expected.is_some());
        assert_eq!(bare.row(pc as usize), expected, "{pc:#x}");
    }
    assert!(found > 40, "{found}");
}
