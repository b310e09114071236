//! The hints of models that tests serve. One takes seconds to build, so all of them are kept beside
//! what is compiled, from one run of the tests to the next, and found again by their contents.

use primer::hints::{ServerHint, secret};
use primer::source::Model;
use primer::state::State;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::NamedTempFile;

/// A server's half of a state directory that all tests share, with the secret of their hints.
static SHARED: LazyLock<PathBuf> = LazyLock::new(|| {
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(3).unwrap();
    let state = State::open(Some(&target.join("tmp/testkit"))).unwrap();
    let dir = state.dir("server").unwrap();
    // Always the same, and whole or not there: other tests begin at this moment too.
    let mut key = NamedTempFile::new_in(&dir).unwrap();
    key.write_all(&[6; 32]).unwrap();
    key.persist(dir.join("hint.key")).unwrap();
    dir
});

/// The embedded model's hint.
static EMBEDDED: LazyLock<PathBuf> = LazyLock::new(|| {
    let model = Model::load(None).unwrap();
    let integers = model.prepare(None, None, |_, _| ()).unwrap();
    let (name, secret) = (model.short_name(), secret(&SHARED, None).unwrap());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let served = (&*name, &integers);
    let found = ServerHint::find_or_build(&hints(), served, &secret, threads, |_, _| ());
    found.unwrap().file
});

/// Returns the directory where servers of this process find and build hints.
pub fn hints() -> PathBuf {
    SHARED.join("hints")
}

/// Gives a state directory the secret of the shared hints, unless it has one of its own; tells
/// whether it has the shared one now.
pub fn share_secret(state: &Path) -> bool {
    let (shared, own) = (SHARED.join("hint.key"), state.join("server/hint.key"));
    if !own.exists() {
        std::fs::create_dir_all(state.join("server")).unwrap();
        std::fs::copy(&shared, &own).unwrap();
    }
    std::fs::read(shared).unwrap() == std::fs::read(own).unwrap()
}

/// Gives a state directory the embedded model's hint, unless it has a secret of its own: what a
/// process finds that is told of no other directory.
pub fn give_hint(state: &Path) {
    if state.join("server/hint.key").exists() {
        return;
    }
    let own = state.join("server/hints");
    std::fs::create_dir_all(&own).unwrap();
    for part in ["hint", "digits", "json"] {
        let from = EMBEDDED.with_extension(part);
        let to = own.join(from.file_name().unwrap());
        // No test writes into it: one file serves all, where one file system does.
        if std::fs::hard_link(&from, &to).is_err() {
            std::fs::copy(from, to).unwrap();
        }
    }
    share_secret(state);
}
