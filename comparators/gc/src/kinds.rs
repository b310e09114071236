//! The messages of the comparator.

use primer_net::Kind;

pub(crate) const PLAN: Kind = Kind::new(0x70, "plan of a garbled model");
pub(crate) const BEGIN: Kind = Kind::new(0x71, "seed and zero wire of a garbled model");
pub(crate) const GARBLED: Kind = Kind::new(0x72, "garbled step");
pub(crate) const CORRECTIONS: Kind = Kind::new(0x73, "input corrections");
pub(crate) const LABELS: Kind = Kind::new(0x74, "input labels");
pub(crate) const DECODING: Kind = Kind::new(0x75, "decoding bits");
