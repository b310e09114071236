//! A server's hint: built once, found again, and built again if it is not what it was.

use super::{ServerHint, secret};
use crate::source::Model;
use primer_hint::published::Identity;
use primer_hint::server::HintSecret;
use primer_model::quantise::IntModel;
use primer_service::ServiceError;
use primer_service::hints::stored::StoredHint;
use primer_store::fleet::Keys;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A small model, whose hint takes no time.
static MODEL: LazyLock<IntModel> = LazyLock::new(|| {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/fixtures");
    let model = Model::load(Some(&fixtures.join("family/distilbert"))).unwrap();
    model.prepare(None, None, |_, _| ()).unwrap()
});

fn made(dir: &Path, with: &HintSecret) -> Result<ServerHint, ServiceError> {
    ServerHint::find_or_build(dir, ("a model", &MODEL), with, 2, |_, _| ())
}

fn file(dir: &Path, ending: &str) -> PathBuf {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let mut files = files.filter(|path| path.to_string_lossy().ends_with(ending));
    files.next().unwrap()
}

/// Builds the same hint after every fault that a file may have; it is found after that.
#[test]
fn a_hint_is_built_once_and_again_if_it_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let (dir, with) = (dir.path(), HintSecret::new([5; 32]));
    let first = made(dir, &with).unwrap();
    let identity = *first.published.identity();
    assert!(first.built && first.multipliers.identity() == &identity);
    let found = made(dir, &with).unwrap();
    assert!(!found.built && *found.published.identity() == identity);
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file(dir, ".digits")), 0o600);
    let flip = |path: PathBuf| {
        let file = fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        let (at, mut byte) = (file.metadata().unwrap().len() - 100, [0]);
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    };
    let faults: [&dyn Fn(); 5] = [
        &|| flip(file(dir, ".hint")),
        &|| flip(file(dir, ".digits")),
        &|| fs::write(file(dir, ".json"), "{}").unwrap(),
        &|| fs::remove_file(file(dir, ".digits")).unwrap(),
        &|| {
            let hint = fs::File::options().write(true).open(file(dir, ".hint"));
            hint.unwrap().set_len(1_000_000).unwrap();
        },
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        fault();
        let again = made(dir, &with).unwrap();
        assert!(again.built, "fault {number} was not noticed");
        assert_eq!(*again.published.identity(), identity);
        assert!(!made(dir, &with).unwrap().built);
    }
    // Another secret makes another hint beside it.
    let other = made(dir, &HintSecret::new([6; 32])).unwrap();
    assert!(*other.published.identity() != identity);
    let kept = StoredHint::all(dir).unwrap();
    assert!(kept.len() == 2 && kept.iter().all(|kept| kept.complete));
    kept.iter().try_for_each(StoredHint::delete).unwrap();
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
}

/// Dies in the middle: parts are left, which nothing takes for a hint. A process that fails
/// leaves nothing.
#[test]
fn a_build_that_is_cut_leaves_no_hint() {
    let dir = tempfile::tempdir().unwrap();
    let (dir, with) = (dir.path(), HintSecret::new([5; 32]));
    let dies = |done, all| assert!(done < all / 2, "in the middle");
    let died = catch_unwind(AssertUnwindSafe(|| {
        ServerHint::find_or_build(dir, ("a model", &MODEL), &with, 2, dies).map(drop)
    }));
    assert!(died.is_err());
    let kept = StoredHint::all(dir).unwrap();
    assert!(kept.len() == 1 && !kept[0].complete && kept[0].there > 0);
    let built = made(dir, &with).unwrap();
    assert!(built.built);
    let left = fs::read_dir(dir).unwrap().count();
    assert_eq!(left, 3, "the hint, its multipliers and its record");
    drop(built);
    // The directory of the parts is not one.
    StoredHint::all(dir).unwrap()[0].delete().unwrap();
    let blocked = file_of(dir, "digits.part");
    fs::create_dir(&blocked).unwrap();
    let error = made(dir, &with).err().unwrap().to_string();
    assert!(error.contains("digits.part"), "{error}");
    fs::remove_dir(&blocked).unwrap();
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
}

fn file_of(dir: &Path, ending: &str) -> PathBuf {
    let with = HintSecret::new([5; 32]);
    let build = primer_engine::hints::Build::new(&*MODEL, &with).unwrap();
    dir.join(primer_service::hex(build.name()))
        .with_extension(ending)
}

/// Checks that replicas with one store key make one hint; a server of its own makes a key and keeps
/// it.
#[test]
fn replicas_have_the_same_secret() {
    let identity = |with: &HintSecret| -> Identity {
        let dir = tempfile::tempdir().unwrap();
        *made(dir.path(), with).unwrap().published.identity()
    };
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let keys = |digits: &str| Keys::from_text(&digits.repeat(32)).unwrap();
    let shared = dirs
        .each_ref()
        .map(|dir| secret(dir.path(), Some(&keys("0a"))).unwrap());
    assert_eq!(identity(&shared[0]), identity(&shared[1]));
    assert!(!dirs[0].path().join("hint.key").exists());
    let name = |with: HintSecret| with.name(&[b"x"]);
    let [first, again] = [(); 2].map(|()| name(secret(dirs[0].path(), None).unwrap()));
    assert_eq!(first, again);
    assert_ne!(first, name(secret(dirs[1].path(), None).unwrap()));
    assert_ne!(
        first,
        name(secret(dirs[0].path(), Some(&keys("0b"))).unwrap())
    );
    let path = dirs[0].path().join("hint.key");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    for spoil in [&|| fs::write(&path, "short").unwrap() as (), &|| {
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap() as ()
    }] as [&dyn Fn(); 2]
    {
        spoil();
        let error = secret(dirs[0].path(), None).err().unwrap().to_string();
        assert!(error.contains("hint.key"), "{error}");
    }
}
