//! The messages of this layer.

use primer_net::Kind;

pub(crate) const HELLO: Kind = Kind::new(0x40, "hello");
pub(crate) const WELCOME: Kind = Kind::new(0x41, "welcome");
pub(crate) const PUBLIC_KEY: Kind = Kind::new(0x42, "public key");
pub(crate) const GALOIS_KEYS: Kind = Kind::new(0x43, "rotation keys");
pub(crate) const ENCRYPTED: Kind = Kind::new(0x44, "encrypted mask");
pub(crate) const ANSWER: Kind = Kind::new(0x45, "homomorphic answer");
pub(crate) const INPUT: Kind = Kind::new(0x46, "masked input");
pub(crate) const PADDING: Kind = Kind::new(0x47, "masked padding");
pub(crate) const OPENED: Kind = Kind::new(0x48, "opened difference");
pub(crate) const RESHARED: Kind = Kind::new(0x49, "share of a product");
pub(crate) const OUTPUT: Kind = Kind::new(0x4a, "share of a result");
