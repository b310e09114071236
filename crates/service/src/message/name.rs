//! The name of a bundle on the wire: its sixteen bytes.

use crate::BundleId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<S: Serializer>(id: &BundleId, out: S) -> Result<S::Ok, S::Error> {
    id.as_bytes().serialize(out)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<BundleId, D::Error> {
    <[u8; 16]>::deserialize(input).map(BundleId::from_bytes)
}
