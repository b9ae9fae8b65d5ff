//! `uuid`: exact; plain data.

use uuid::{NonNilUuid, Uuid};

use crate::measure::impls::plain::plain;

plain!([] Uuid, [] NonNilUuid);
