//! Folded stacks.

use memory_export::folded::write;
use memory_export::{ExportError, ProfileValue};

use crate::inputs;

#[test]
fn sums_are_those_of_the_stacks() {
    for (name, stacks) in inputs::ordinary() {
        println!("{name}");
        let mut file = Vec::new();
        write(&stacks, &mut file).unwrap();
        let text = String::from_utf8(file).unwrap();
        let sum: i128 =
            text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<i128>().unwrap()).sum();
        assert_eq!(Some(sum), stacks.total(ProfileValue::LiveBytes));
        assert!(!text.contains(['\r', '\u{202e}', '\u{1}']));
    }
}

#[test]
fn names_keep_their_places() {
    let mut file = Vec::new();
    write(&inputs::one_block(), &mut file).unwrap();
    assert_eq!(String::from_utf8(file).unwrap(), "app::main;app::load 100\n");
    let error = write(&inputs::with_amounts(1, -5), Vec::new()).unwrap_err();
    assert!(matches!(error, ExportError::Negative(..)));
}
