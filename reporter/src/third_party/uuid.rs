//! `uuid`: exact; plain data.

use uuid::{NonNilUuid, Uuid};

use crate::impls::plain::plain;

plain!([] Uuid, [] NonNilUuid);
