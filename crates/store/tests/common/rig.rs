//! A shared store on this machine: a real PostgreSQL, which `scripts/fleet` starts on a cluster of
//! its own, and a directory for blobs.

use super::{NOW, PEER, id};
use primer_store::fleet::{FleetOptions, Keys};
use primer_store::{BundleStore, Fate, Store, StoreError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::{TempDir, tempdir};

/// A database and a directory for blobs.
pub(crate) struct Rig {
    pub(crate) dir: TempDir,
    url: String,
}

impl Rig {
    pub(crate) fn start() -> Option<Self> {
        let dir = tempdir().unwrap();
        let started = fleet(dir.path(), "start", "");
        if started.status.code() == Some(77) {
            let why = String::from_utf8_lossy(&started.stderr);
            println!("skipped, because {}", why.trim());
            return None;
        }
        assert!(started.status.success(), "{started:?}");
        let url = String::from_utf8(started.stdout).unwrap();
        let url = url.trim().to_owned();
        Some(Self { dir, url })
    }

    pub(crate) fn postgres(&self, action: &str, sql: &str) -> String {
        let done = fleet(self.dir.path(), action, sql);
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        self.postgres("sql", sql).trim().to_owned()
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.dir.path().join("blobs")
    }

    pub(crate) fn objects(&self) -> Vec<PathBuf> {
        let all = std::fs::read_dir(self.blobs().join("bundles"));
        all.map(|all| all.map(|file| file.unwrap().path()).collect())
            .unwrap_or_default()
    }

    pub(crate) fn options(&self, name: &str, keys: &str) -> FleetOptions {
        FleetOptions {
            database: self.url.clone(),
            authority: None,
            blobs: format!("file://{}", self.blobs().display()),
            keys: Keys::from_text(keys).unwrap(),
            name: name.into(),
            witness: Some(self.dir.path().join(format!("{name}.epoch"))),
        }
    }

    pub(crate) fn join(&self, name: &str) -> Store {
        self.try_join(name).unwrap()
    }

    pub(crate) fn try_join(&self, name: &str) -> Result<Store, StoreError> {
        Store::connect(self.options(name, &key(1)))
    }

    /// Saves a copy of database and blobs, of one moment.
    pub(crate) fn save(&self, copy: &str) {
        self.postgres("stop", "");
        self.postgres("save", copy);
        copy_files(&self.blobs(), &self.dir.path().join(copy));
        self.postgres("start", "");
    }

    /// Restores a copy of database and blobs.
    pub(crate) fn restore(&self, copy: &str) {
        self.postgres("stop", "");
        self.postgres("restore", copy);
        std::fs::remove_dir_all(self.blobs()).unwrap();
        copy_files(&self.dir.path().join(copy), &self.blobs());
        self.postgres("start", "");
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = script().arg("down").arg(self.dir.path()).output();
    }
}

fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let to = to.join(file.file_name());
        match file.file_type().unwrap().is_dir() {
            true => copy_files(&file.path(), &to),
            false => drop(std::fs::copy(file.path(), to).unwrap()),
        }
    }
}

fn script() -> Command {
    Command::new(primer_testkit::files::repository("scripts/fleet"))
}

fn fleet(dir: &Path, action: &str, sql: &str) -> std::process::Output {
    let mut command = script();
    command.args(["postgres", action]).arg(dir).arg(sql);
    command.output().unwrap()
}

pub(crate) fn key(n: u8) -> String {
    format!("{n:02x}").repeat(32)
}

pub(crate) fn all(store: &Store, n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut spent = store.spend(id(n), &PEER, NOW).unwrap();
    assert_eq!(spent.attachment(), b"plan");
    spent.read_to_end(&mut out).unwrap();
    out
}

pub(crate) fn gone(error: Option<StoreError>, wanted: Fate) -> bool {
    matches!(error, Some(StoreError::Gone { fate, .. }) if fate == wanted)
}
