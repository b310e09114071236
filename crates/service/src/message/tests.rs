//! Bounds, round trips, and arbitrary bytes.

use super::*;
use crate::BundleId;
use crate::hints::MAX_HINT;
use primer_engine::Reveal;
use primer_hint::params::hint_bytes;
use primer_hint::published::{CHUNK_BYTES, Identity, Index};
use primer_plan::shape::{Family, Head};

fn card() -> Card {
    Card {
        model: "a model".into(),
        generation: [1; 16],
        family: Family::Bert,
        head: Head::classify(vec!["no".into(), "yes".into()]),
        vocab: 100,
        types: 2,
        buckets: vec![8, 16],
        reveal: Reveal::Outputs,
        answer_bits: vec![43, 43],
        tokenizer: ([2; 32], 10),
        hint: hint(GROUP),
        max_stored: 1,
        idle_seconds: 1,
    }
}

/// Bytes of the smallest hint.
const GROUP: u64 = hint_bytes(1) as u64;

fn hint(bytes: u64) -> Identity {
    Identity {
        name: [3; 32],
        bytes,
        root: [4; 32],
    }
}

fn across<T>(
    send: impl FnOnce(&mut Channel),
    receive: impl FnOnce(&mut Channel) -> Result<T, ServiceError>,
) -> Result<T, ServiceError> {
    let options = primer_wire::Options {
        capacity: 4 << 20,
        ..primer_wire::Options::default()
    };
    let (mut left, mut right) = Channel::memory_pair(&options);
    send(&mut left);
    receive(&mut right)
}

fn received(card: Card) -> Result<Card, ServiceError> {
    let send = |channel: &mut Channel| Reception::Card(Box::new(card)).send(channel).unwrap();
    across(send, Reception::receive)
}

#[test]
fn cards_pass_and_senseless_ones_do_not() {
    assert_eq!(received(card()).unwrap(), card());
    let spoil: [fn(&mut Card); 14] = [
        |c| c.model = "\u{1b}[2J".into(),
        |c| c.model = "x".repeat(257),
        |c| c.head = Head::classify(Vec::new()),
        |c| {
            c.head = Head::Tokens {
                labels: vec!["a\nb".into()],
            }
        },
        |c| c.buckets.clear(),
        |c| c.buckets = vec![16, 8],
        |c| c.buckets = vec![0, 8],
        |c| c.buckets = vec![8, 513],
        |c| c.answer_bits.truncate(1),
        |c| c.vocab = 0,
        |c| c.tokenizer.1 = MAX_TOKENIZER as u32 + 1,
        |c| c.hint = hint(0),
        |c| c.hint = hint(GROUP + 1),
        |c| c.hint = hint(MAX_HINT / GROUP * GROUP + GROUP),
    ];
    for (index, spoil) in spoil.into_iter().enumerate() {
        let mut card = card();
        spoil(&mut card);
        let error = received(card).err();
        assert!(
            matches!(error, Some(ServiceError::Nonsense { .. })),
            "{index}"
        );
    }
    assert_eq!(card().bucket(9), Some(16));
    assert_eq!(card().bucket(17), None);
}

#[test]
fn fewer_bundles_are_prepared_together_where_answers_are_wide() {
    let together = |bits: u32| {
        let mut card = card();
        card.answer_bits = vec![44, bits];
        [card.batch(8, 100), card.batch(16, 100)]
    };
    assert_eq!(together(44), [32, 16]);
    assert_eq!(together(224), [32, 16]);
    assert_eq!(together(225), [32, 15]);
    assert_eq!(together(5_131), [32, 1]);
    // One answer could carry the whole secret: nothing is kept by preparing it alone.
    assert_eq!(together(12_983), [32, 1]);
    assert_eq!(together(12_984), [32, 16]);
}

#[test]
fn refusals_arrive_as_errors_and_cannot_paint_the_terminal() {
    let refuse = |refusal: Refusal| {
        let send = |channel: &mut Channel| Reply::Refused(refusal).send(channel).unwrap();
        across(send, Reply::receive).err().unwrap()
    };
    let id = BundleId::from_bytes([7; 16]);
    let error = refuse(Refusal::Spent(id));
    assert_eq!(
        error.to_string(),
        format!("the server refused: bundle {id} is spent")
    );
    assert!(matches!(
        refuse(Refusal::Failed("a\u{7}".into())),
        ServiceError::Nonsense { .. }
    ));
}

#[test]
fn tokenizers_are_checked_against_their_card() {
    let files = TokenizerFiles {
        main: b"[PAD]\n".to_vec(),
        json: false,
        config: None,
    };
    let bytes = files.encode();
    assert!(TokenizerFiles::decode(&bytes).unwrap() == files);
    assert!(TokenizerFiles::decode(&bytes[1..]).is_err());
    let mut card = card();
    card.tokenizer = (*blake3::hash(&bytes).as_bytes(), bytes.len() as u32);
    let pass = |card: &Card| {
        let send = |channel: &mut Channel| send_tokenizer(channel, &bytes).unwrap();
        across(send, |channel| receive_tokenizer(channel, card))
    };
    assert!(pass(&card).is_ok());
    card.tokenizer.0[0] ^= 1;
    assert!(matches!(pass(&card), Err(ServiceError::Nonsense { .. })));
}

#[test]
fn hints_are_checked_against_their_card() {
    let bytes: Vec<u8> = (0..CHUNK_BYTES + 7).map(|i| (i / 5) as u8).collect();
    let index = Index::of(&[1; 32], &bytes);
    let indexed = |identity: &Identity| {
        let send = |channel: &mut Channel| send_hint_index(channel, &index).unwrap();
        across(send, |channel| receive_hint_index(channel, identity))
    };
    let mut identity = index.identity();
    assert_eq!(indexed(&identity).unwrap(), index);
    identity.root[0] ^= 1;
    assert!(matches!(
        indexed(&identity),
        Err(ServiceError::Nonsense { .. })
    ));
    let chunk = |number, bytes: &[u8]| {
        let send = |channel: &mut Channel| {
            send_hint_chunk(channel, bytes).unwrap();
            channel.flush().unwrap();
        };
        across(send, |channel| receive_hint_chunk(channel, &index, number))
    };
    assert!(chunk(0, &bytes[..CHUNK_BYTES]).unwrap() == bytes[..CHUNK_BYTES]);
    assert!(chunk(1, &bytes[CHUNK_BYTES..]).is_ok());
    assert!(chunk(0, &bytes[CHUNK_BYTES..]).is_err());
    let lie = chunk(0, &bytes[7..]).unwrap_err();
    assert!(matches!(lie, ServiceError::Nonsense { .. }), "{lie}");
}

#[test]
fn arbitrary_bytes_are_an_error_or_a_message() {
    let mut rng = primer_ring::prg::Prg::new(&[4; 16]);
    let mut bytes = [0u8; 96];
    for round in 0..3000 {
        rng.fill(&mut bytes);
        decode_any(&bytes[..round % 97]);
    }
    assert!(decode_any(&[4, 1]) && !decode_any(&[4, 2]) && !decode_any(&[]));
}
