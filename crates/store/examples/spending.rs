//! What spending a bundle of the embedded model takes, in a directory and in a store that replicas
//! share, in turns: `scripts/fleet figures`.

#[path = "../tests/common/mod.rs"]
mod common;

use common::rig::Rig;
use common::{NOW, PEER, add, id, meta};
use primer_store::{BundleStore, Store, StoreError};
use std::time::Instant;

const BUNDLES: u64 = 200;
const BYTES: usize = 600_000;

fn main() -> Result<(), StoreError> {
    let Some(rig) = Rig::start() else {
        return Ok(());
    };
    let stores = [Store::open(rig.dir.path().join("own"))?, rig.join("one")];
    let mut seconds = [Vec::new(), Vec::new()];
    for n in 0..BUNDLES {
        for (store, seconds) in stores.iter().zip(&mut seconds) {
            add(store, meta(id(n)), BYTES);
            let started = Instant::now();
            let spent = store.spend(id(n), &PEER, NOW)?;
            seconds.push(started.elapsed().as_secs_f64());
            drop(spent);
        }
    }
    for (name, mut seconds) in ["directory", "shared"].into_iter().zip(seconds) {
        seconds.sort_by(f64::total_cmp);
        let (least, median) = (seconds[0], seconds[seconds.len() / 2]);
        println!(
            "{name}: spending takes {:.1} ms at least, {:.1} ms in the median of {BUNDLES}",
            least * 1e3,
            median * 1e3
        );
    }
    Ok(())
}
