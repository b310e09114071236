//! Where connections come from, and how many from each.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// Where connections come from, as far as one may be taken for another: an address, or a network of
/// the newer kind, of which one person has many addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Origin(IpAddr);

impl Origin {
    pub(super) fn of(peer: Option<IpAddr>) -> Self {
        // Gone before it was asked: together with others of that kind.
        Self::network(peer.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)))
    }

    pub(super) fn network(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(ip) => {
                let network = ip.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            address => address,
        })
    }
}

/// How many connections each source has.
pub(super) struct Crowd(HashMap<Origin, usize>);

impl Crowd {
    pub(super) fn of(sources: impl Iterator<Item = Origin>) -> Self {
        let mut sizes = HashMap::new();
        for origin in sources {
            *sizes.entry(origin).or_default() += 1;
        }
        Self(sizes)
    }

    pub(super) fn size(&self, origin: Origin) -> usize {
        self.0.get(&origin).copied().unwrap_or(0)
    }
}
