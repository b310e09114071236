//! The bytes of every message, as they were.
//!
//! Both ends of a test are built from the same sources, so a field that moves or a variant in
//! front of others breaks no conversation there; it breaks one between programs of different ages.
//! So a value of every message, and of every variant of each enumeration in it, is sent, and its
//! frame compared with `golden.txt`; and what lies there is received as that value. A variant
//! without an example does not compile ([`every`]).
//!
//! The file begins with the version of the service. A change that is meant: raise
//! [`VERSION`], then
//! `PRIMER_BLESS=1 cargo test -p primer-service golden` writes the new bytes, and the difference
//! belongs into the same commit. Bytes that have changed under the same version are not written.

/// Lists one value of every variant, with its name.
macro_rules! every {
    ($type:ident: $($variant:ident $(($($values:tt)*))? $({$($fields:tt)*})?;)+) => {{
        let name = |value: &$type| match value {
            $($type::$variant { .. } => stringify!($variant),)+
        };
        let values = [$($type::$variant $(($($values)*))? $({$($fields)*})?),+];
        values.map(|value| (name(&value).to_owned(), value))
    }};
}

mod examples;

use super::*;
use crate::{VERSION, hex};
use examples::{OTHER_VERSION, card, cards, id, refusals};
use primer_hint::published::{CHUNK_BYTES, Index};
use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use zeroize::Zeroizing;

/// Takes what a channel sends.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<u8>>>);

impl Write for Recorder {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What was found, and what the file has.
struct Golden {
    found: String,
    kept: BTreeMap<String, Vec<u8>>,
}

impl Golden {
    fn line(&mut self, name: &str, bytes: &[u8]) {
        self.found += &format!("{name}: {}\n", hex(bytes));
    }

    /// Sends a message, and receives the one that the file has under its name.
    fn message<T: PartialEq>(
        &mut self,
        name: &str,
        send: impl FnOnce(&mut Channel) -> Result<(), ServiceError>,
        receive: impl FnOnce(&mut Channel) -> Result<T, ServiceError>,
        expected: T,
    ) {
        let recorder = Recorder::default();
        let mut channel = Channel::over(recorder.clone(), Cursor::new(Vec::new()));
        send(&mut channel).unwrap();
        drop(channel);
        self.line(name, &recorder.0.lock().unwrap());
        // One that is new, or that another version had, is told by the comparison of all lines.
        if let Some(bytes) = self.kept.get(name) {
            let mut channel = Channel::over(std::io::sink(), Cursor::new(bytes.clone()));
            match receive(&mut channel) {
                Ok(received) => assert!(received == expected, "{name}: {CHANGED}"),
                Err(error) => panic!("{name}: {error}; {CHANGED}"),
            }
        }
    }
}

const CHANGED: &str = "a message of the service is not what it was, so programs of other ages \
                       misunderstand it; if that is meant, raise VERSION in \
                       crates/wire/src/version.rs and see the top of this test";

/// Takes a refusal that arrives as an error.
fn refusal<T>(received: Result<T, ServiceError>) -> Result<Refusal, ServiceError> {
    match received {
        Err(ServiceError::Refused(refusal)) => Ok(refusal),
        Err(error) => Err(error),
        Ok(_) => nonsense("no refusal".into()),
    }
}

fn greetings(golden: &mut Golden) {
    for (name, token) in [("without", None), ("with", Some("a token"))] {
        let pseudonym = std::array::from_fn(|i| 0x80 + i as u8);
        let greeting = Greeting {
            version: OTHER_VERSION,
            pseudonym,
            token: token.map(|token| Zeroizing::new(token.to_owned())),
        };
        golden.message(
            &format!("Greeting.{name}"),
            |channel| greeting.send(channel),
            |channel| {
                let Greeting {
                    version,
                    pseudonym,
                    token,
                } = Greeting::receive(channel)?;
                Ok((version, pseudonym, token.map(|token| token.to_string())))
            },
            (OTHER_VERSION, pseudonym, token.map(str::to_owned)),
        );
    }
    let receptions = every!(Reception: Card(Box::new(card())); Refused(Refusal::Token););
    for (name, reception) in receptions {
        let name = format!("Reception.{name}");
        match &reception {
            Reception::Card(card) => golden.message(
                &name,
                |channel| reception.send(channel),
                Reception::receive,
                (**card).clone(),
            ),
            Reception::Refused(reason) => golden.message(
                &name,
                |channel| reception.send(channel),
                |channel| refusal(Reception::receive(channel)),
                reason.clone(),
            ),
        }
    }
    for (name, card) in cards() {
        let reception = Reception::Card(Box::new(card.clone()));
        let send = |channel: &mut Channel| reception.send(channel);
        golden.message(&format!("Card.{name}"), send, Reception::receive, card);
    }
}

fn requests(golden: &mut Golden) {
    let requests = every!(Request:
        Tokenizer;
        Prepare { id: id(5), tokens: 128, bundles: 4, session: Some([0x55; 32]) };
        Infer { id: id(6), fingerprint: std::array::from_fn(|i| 0xa0 + i as u8) };
        List;
        Forget(id(7));
        Bye;
        HintIndex;
        HintChunks { first: 70, count: 64 };
    );
    for (name, request) in requests {
        let send = |channel: &mut Channel| request.send(channel);
        golden.message(&format!("Request.{name}"), send, Request::receive, request);
    }
    for (name, spent) in [("no", false), ("yes", true)] {
        let send = |channel: &mut Channel| send_spent(channel, spent);
        golden.message(&format!("Spent.{name}"), send, receive_spent, spent);
    }
}

fn replies(golden: &mut Golden) {
    let replies = every!(Reply:
        Go;
        Committed;
        Ready;
        Agreed;
        Listing(vec![HeldBundle { id: id(8), age: 70_000 }, HeldBundle { id: id(9), age: 0 }]);
        Done;
        Refused(Refusal::Full);
        Hint;
    );
    let more = refusals().into_iter();
    let more = more.map(|(name, refusal)| (format!("Refused.{name}"), Reply::Refused(refusal)));
    for (name, reply) in replies.into_iter().chain(more) {
        let name = format!("Reply.{name}");
        let send = |channel: &mut Channel| reply.send(channel);
        match &reply {
            Reply::Refused(reason) => golden.message(
                &name,
                send,
                |channel| refusal(Reply::receive(channel)),
                reason.clone(),
            ),
            _ => golden.message(&name, send, Reply::receive, reply.clone()),
        }
    }
}

fn tokenizers(golden: &mut Golden) {
    for (name, json, config) in [("vocabulary", false, None), ("json", true, Some("{}"))] {
        let files = TokenizerFiles {
            main: "[PAD]\né\n".into(),
            json,
            config: config.map(Into::into),
        };
        let encoded = files.encode();
        let mut card = card();
        card.tokenizer = (*blake3::hash(&encoded).as_bytes(), encoded.len() as u32);
        golden.message(
            &format!("Tokenizer.{name}"),
            |channel| send_tokenizer(channel, &encoded),
            |channel| TokenizerFiles::decode(&receive_tokenizer(channel, &card)?),
            files,
        );
    }
}

fn hints(golden: &mut Golden) {
    let bytes: Vec<u8> = (0..CHUNK_BYTES + 9).map(|i| (i / 3) as u8).collect();
    let index = Index::of(&[0x33; 32], &bytes);
    golden.message(
        "HintIndex",
        |channel| send_hint_index(channel, &index),
        |channel| receive_hint_index(channel, &index.identity()),
        index.clone(),
    );
    let last = &bytes[CHUNK_BYTES..];
    golden.message(
        "HintChunk",
        |channel| {
            send_hint_chunk(channel, last)?;
            Ok(channel.flush()?)
        },
        |channel| receive_hint_chunk(channel, &index, 1),
        last.to_vec(),
    );
}

#[test]
fn messages_are_what_they_were() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/message/golden.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let read = |line: &str| {
        let (name, digits) = line.split_once(": ").expect("a name, a colon and digits");
        let pairs = digits.as_bytes().chunks(2);
        let pairs = pairs.map(|pair| std::str::from_utf8(pair).unwrap());
        let bytes = pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap());
        (name.to_owned(), bytes.collect::<Vec<u8>>())
    };
    let kept: BTreeMap<String, Vec<u8>> = text.lines().map(read).collect();
    let version = VERSION.to_be_bytes();
    let same_version = kept.get("VERSION").is_some_and(|kept| *kept == version);
    let bless = std::env::var_os("PRIMER_BLESS").is_some();
    let mut golden = Golden {
        found: String::new(),
        kept: match bless && !same_version {
            // What another version said is not received any more.
            true => BTreeMap::new(),
            false => kept,
        },
    };
    golden.line("VERSION", &version);
    greetings(&mut golden);
    requests(&mut golden);
    replies(&mut golden);
    tokenizers(&mut golden);
    hints(&mut golden);
    // Not a message, but both ends derive it.
    golden.line("bundle_of", bundle_of(id(10), 3).as_bytes());

    let found: BTreeMap<String, Vec<u8>> = golden.found.lines().map(read).collect();
    assert_eq!(
        found.len(),
        golden.found.lines().count(),
        "names are unique"
    );
    for (name, bytes) in &golden.kept {
        assert_eq!(
            found.get(name).map(|found| hex(found)),
            Some(hex(bytes)),
            "{name}: {CHANGED}"
        );
    }
    if bless {
        std::fs::write(&path, &golden.found).unwrap();
    } else {
        assert_eq!(
            text, golden.found,
            "there are new messages; see the top of this test"
        );
    }
}
