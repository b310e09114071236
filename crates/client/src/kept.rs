//! What a client keeps of a server beside its certificate: who it is to it, and its tokenizer.

use super::keep::{Keep, file_name};
use super::link::Link;
use primer_service::message::TokenizerFiles;
use primer_service::{ServiceError, hex, random};
use primer_text::TextEncoder;
use zeroize::Zeroizing;

/// Returns who this client is to a server: made once, and different for every server.
///
/// Several processes may come for the first time at once. The first to write wins, and none
/// overwrites: a process that greeted under another name would lose what it prepared under it.
pub(super) fn pseudonym(keep: &mut dyn Keep, address: &str) -> Result<[u8; 32], ServiceError> {
    let name = format!("pseudonyms/{}", file_name(address));
    let read = |keep: &dyn Keep| -> Result<Option<[u8; 32]>, ServiceError> {
        let Some(bytes) = keep.read(&name)?.map(Zeroizing::new) else {
            return Ok(None);
        };
        let bytes = bytes.as_slice().try_into();
        bytes.map(Some).map_err(|_| {
            let place = keep.place(&name);
            ServiceError::Options(format!("{place} does not hold a pseudonym of 32 bytes"))
        })
    };
    if let Some(made) = read(keep)? {
        return Ok(made);
    }
    let made = Zeroizing::new(random::<32>()?);
    match keep.create(&name, &*made)? {
        true => Ok(*made),
        false => read(keep)?.ok_or_else(|| {
            let place = keep.place(&name);
            ServiceError::Options(format!("{place} was deleted a moment ago"))
        }),
    }
}

/// Returns the server's tokenizer: from the cache, or fetched once.
pub(super) fn tokenizer(keep: &mut dyn Keep, link: &mut Link) -> Result<TextEncoder, ServiceError> {
    let (hash, _) = link.card.tokenizer;
    let name = format!("tokenizers/{}", hex(&hash));
    let cached = (keep.read(&name)?).filter(|bytes| *blake3::hash(bytes).as_bytes() == hash);
    let encoded = match cached {
        Some(bytes) => bytes,
        None => {
            let bytes = link.tokenizer()?;
            keep.write(&name, &bytes)?;
            bytes
        }
    };
    let files = TokenizerFiles::decode(&encoded)?;
    let config = files.config.as_deref();
    let text = if files.json {
        TextEncoder::from_json(&files.main, config)?
    } else {
        TextEncoder::from_vocabulary(&files.main, config)?
    };
    text.check_vocabulary(link.card.vocab as usize)?;
    Ok(text)
}

#[cfg(all(test, feature = "native"))]
mod tests {
    use super::*;
    use crate::native::files::Files;
    use primer_service::state::State;
    use std::sync::Barrier;

    fn pseudonym(state: &State, address: &str) -> Result<[u8; 32], ServiceError> {
        super::pseudonym(&mut Files::new(state.clone()), address)
    }

    #[test]
    fn first_processes_agree_on_a_pseudonym() {
        for _ in 0..20 {
            let dir = tempfile::tempdir().unwrap();
            let state = State::open(Some(dir.path())).unwrap();
            let start = Barrier::new(8);
            let all: Vec<[u8; 32]> = std::thread::scope(|scope| {
                let one = || {
                    start.wait();
                    pseudonym(&state, "a:1").unwrap()
                };
                let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
                all.into_iter().map(|t| t.join().unwrap()).collect()
            });
            assert!(all.iter().all(|other| *other == all[0]));
            assert_eq!(pseudonym(&state, "a:1").unwrap(), all[0]);
            assert_ne!(pseudonym(&state, "b:1").unwrap(), all[0]);
        }
    }

    #[test]
    fn a_damaged_pseudonym_is_named_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Some(dir.path())).unwrap();
        let path = state.dir("client/pseudonyms").unwrap().join("a_1");
        std::fs::write(&path, b"short").unwrap();
        let error = pseudonym(&state, "a:1").err().unwrap().to_string();
        assert!(
            error.contains("a_1") && error.contains("32 bytes"),
            "{error}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"short");
    }
}
