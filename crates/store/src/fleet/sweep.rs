//! What has lost its counterpart: objects without a row, rows without an object.

use super::core::{BUNDLES, Core, ReplicaId, lock, parse_object};
use super::{keeper, rows, spending};
use crate::error::Result;
use crate::id::BundleId;
use crate::record::Fate;
use std::collections::{HashMap, HashSet};

/// How long a replica may be silent before it is taken for dead.
const LEASE: &str = "30 seconds";

/// What a sweep found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Objects without a bundle: of drafts that died, of spent bundles whose server died.
    pub objects: u64,
    /// Bundles without an object.
    pub bundles: u64,
    /// Objects that living replicas are writing or reading.
    pub in_use: u64,
}

impl Swept {
    /// Returns how many have lost their counterpart.
    pub fn orphans(&self) -> u64 {
        self.objects + self.bundles
    }
}

/// What the tables know of objects.
struct Known {
    alive: HashSet<ReplicaId>,
    /// Objects of bundles.
    stored: HashSet<String>,
    /// Objects that are to be deleted: of which bundle, and which replica spent it.
    owed: HashMap<String, (BundleId, Option<ReplicaId>)>,
}

/// Deletes orphans, or only counts them.
///
/// The order matters. Leases that ended are taken away first: from then on their drafts cannot be
/// published. Objects are listed next, then looked up in what this process is doing, then in the
/// tables: a draft that is published meanwhile is in one of the two.
pub(super) fn sweep(core: &Core, only_count: bool) -> Result<Swept> {
    if !only_count {
        bury_the_dead(core)?;
    }
    let before = known(core)?.stored;
    let objects: HashSet<String> = core.blobs.list_now(BUNDLES)?.into_iter().collect();
    let busy = lock(&core.busy).clone();
    let known = known(core)?;
    let me = core.replica();
    // Another living replica is at work on it.
    let others = |replica: &ReplicaId| *replica != me && known.alive.contains(replica);
    let mut swept = Swept::default();
    for name in &objects {
        let Some((_, writer)) = parse_object(name) else {
            continue;
        };
        if known.stored.contains(name) {
            continue;
        }
        let owed = known.owed.get(name);
        let worker = owed.map_or(Some(writer), |(_, spender)| *spender);
        if busy.contains_key(name) || worker.is_some_and(|replica| others(&replica)) {
            swept.in_use += 1;
            continue;
        }
        swept.objects += 1;
        if !only_count {
            match owed {
                Some((id, _)) => keeper::erase(core, *id, name)?,
                None => core.blobs.delete_now(name)?,
            }
        }
    }
    // Erased by a replica that died before it could note that.
    for (name, (id, spender)) in &known.owed {
        let at_work = busy.contains_key(name) || spender.is_some_and(|replica| others(&replica));
        if !only_count && !at_work && !objects.contains(name) {
            keeper::erase(core, *id, name)?;
        }
    }
    for name in before.intersection(&known.stored) {
        if !objects.contains(name) && !core.blobs.has(name)? {
            swept.bundles += 1;
            if let Some((id, _)) = parse_object(name).filter(|_| !only_count) {
                spending::bury(core, id, Fate::Damaged, None, crate::unix_now())?;
            }
        }
    }
    Ok(swept)
}

fn bury_the_dead(core: &Core) -> Result<()> {
    let sql = format!("DELETE FROM primer_replicas WHERE seen < now() - interval '{LEASE}'");
    core.database.with(async |client| {
        client.query_typed(&sql, &[]).await?;
        Ok(())
    })
}

fn known(core: &Core) -> Result<Known> {
    core.database.with(async |client| {
        // One snapshot of all of it.
        let look = client.build_transaction().read_only(true);
        let look = look.isolation_level(tokio_postgres::IsolationLevel::RepeatableRead);
        let look = look.start().await?;
        let sql =
            format!("SELECT id FROM primer_replicas WHERE seen >= now() - interval '{LEASE}'");
        let mut alive = HashSet::new();
        for row in look.query_typed(&sql, &[]).await? {
            alive.insert(rows::fixed(&row, "id")?);
        }
        let mut stored = HashSet::new();
        for row in look
            .query_typed("SELECT blob FROM primer_bundles", &[])
            .await?
        {
            stored.insert(row.try_get(0)?);
        }
        let sql = "SELECT id, blob, replica FROM primer_past WHERE blob IS NOT NULL";
        let mut owed = HashMap::new();
        for row in look.query_typed(sql, &[]).await? {
            let spender: Option<Vec<u8>> = row.try_get("replica")?;
            let spender = spender.and_then(|id| ReplicaId::try_from(id).ok());
            owed.insert(row.try_get("blob")?, (rows::id(&row)?, spender));
        }
        look.commit().await?;
        Ok(Known {
            alive,
            stored,
            owed,
        })
    })
}
