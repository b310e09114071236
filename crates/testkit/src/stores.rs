//! The stores of a server and its clients, compared after the fact.

use primer_store::{BundleStore, Fate, Store};
use std::collections::HashMap;
use std::path::Path;

/// Returns how often each bundle was given out, by the tombstones of the store of a role.
pub fn spends(state: &Path, role: &str) -> HashMap<String, u32> {
    let store = Store::open(state.join(role).join("store")).unwrap();
    let history = store.history().unwrap();
    let spent = history.into_iter().filter(|p| p.fate == Fate::Spent);
    spent.map(|p| (p.id.to_string(), p.spends)).collect()
}

/// Checks, from both stores, that no bundle was used twice and that the server used none that its
/// clients kept.
pub fn check_stores(server: &Path, clients: &[&Path]) {
    let served = spends(server, "server");
    let mut asked = HashMap::new();
    for client in clients {
        for (id, times) in spends(client, "client") {
            assert_eq!(times, 1, "the client spent {id} more than once");
            assert!(asked.insert(id, ()).is_none(), "two clients share a bundle");
        }
    }
    for (id, times) in &served {
        assert_eq!(*times, 1, "the server spent {id} more than once");
        assert!(
            asked.contains_key(id),
            "the server spent {id}, which no client spent"
        );
    }
}

/// Counts the bundles in the store of a role that can be used.
pub fn unspent(state: &Path, role: &str) -> usize {
    let store = Store::open(state.join(role).join("store")).unwrap();
    store.list().unwrap().len()
}

/// Returns how many files are in the directory of bundles of a role's store.
pub fn bundle_files(state: &Path, role: &str) -> usize {
    let dir = state.join(role).join("store/bundles");
    std::fs::read_dir(dir).unwrap().count()
}
