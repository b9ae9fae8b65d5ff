//! Serializes a tree with serde. Writing recurses at most 60 levels, the depth of a tree.

use serde_core::ser::{Serialize, SerializeSeq, SerializeStruct, Serializer};

use super::{SizeNode, SizeTree};

impl Serialize for SizeTree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.root().serialize(serializer)
    }
}

impl Serialize for SizeNode<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let total = self.total();
        let mut object = serializer.serialize_struct("SizeNode", 7)?;
        object.serialize_field("name", self.name())?;
        object.serialize_field("type", self.type_name())?;
        object.serialize_field("bytes", &total.usable)?;
        object.serialize_field("slop", &total.slop())?;
        object.serialize_field("blocks", &total.blocks)?;
        object.serialize_field("count", &self.count())?;
        object.serialize_field("children", &JsonChildren(*self))?;
        object.end()
    }
}

struct JsonChildren<'a>(SizeNode<'a>);

impl Serialize for JsonChildren<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        self.0.children().try_for_each(|child| list.serialize_element(&child))?;
        list.end()
    }
}
