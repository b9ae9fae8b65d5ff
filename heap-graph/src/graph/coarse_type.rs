//! The five coarse types of nodes.

use core::fmt;

/// The coarse type of a node. The numbers are the numbers of the snapshot format.
///
/// In a Rust program, an object is a value of a struct, an enum or a container. A string is text. A script is code,
/// or describes code. A DOM node is a node of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums, reason = "Firefox rejects a snapshot with another coarse type")]
pub enum CoarseType {
    /// Any other node.
    #[default]
    Other = 0,
    /// An object.
    Object = 1,
    /// Code.
    Script = 2,
    /// Text.
    String = 3,
    /// A node of a document.
    DomNode = 4,
}

impl CoarseType {
    /// All coarse types, in the order of the format.
    pub const ALL: [Self; 5] = [Self::Other, Self::Object, Self::Script, Self::String, Self::DomNode];

    /// The coarse type with this number in a snapshot; `None` if the format does not define the number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// The number in a snapshot.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The key in a census report by coarse type.
    pub fn key(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Object => "objects",
            Self::Script => "scripts",
            Self::String => "strings",
            Self::DomNode => "domNode",
        }
    }
}

impl fmt::Display for CoarseType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}
