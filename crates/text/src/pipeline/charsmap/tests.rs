use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tokenizers::normalizers::Precompiled;
use tokenizers::{NormalizedString, Normalizer};

/// Lays out a table of rules wastefully: a block for every node of the trie.
fn table(rules: &[(&str, &str)]) -> Vec<u8> {
    let (mut units, mut texts) = (vec![0u32; 2 * BLOCK], Vec::new());
    let link = |from: usize, to: usize| u32::try_from((from ^ to) << 10).unwrap();
    units[0] = link(0, BLOCK);
    let mut bases = BTreeMap::from([(Vec::new(), BLOCK)]);
    for (letters, text) in rules {
        let mut at = 0;
        for end in 1..=letters.len() {
            let (before, &byte) = (&letters.as_bytes()[..end - 1], &letters.as_bytes()[end - 1]);
            at = bases[before] ^ usize::from(byte);
            let new = units.len();
            let base = *bases
                .entry(letters.as_bytes()[..end].to_vec())
                .or_insert(new);
            if base == new {
                units.resize(new + BLOCK, 0);
                units[at] = link(at, base) | u32::from(byte);
            }
        }
        units[at] |= 1 << 8;
        units[bases[letters.as_bytes()]] = 1 << 31 | u32::try_from(texts.len()).unwrap();
        texts.extend(text.bytes().chain([0]));
    }
    let mut table = u32::try_from(4 * units.len())
        .unwrap()
        .to_le_bytes()
        .to_vec();
    table.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
    table.extend(texts);
    table
}

fn growth(table: &[u8]) -> Checked<f64> {
    checked(&STANDARD.encode(table)).map(|(_, growth)| growth)
}

/// Returns what the library makes of a text.
fn normalised(table: &[u8], text: &str) -> String {
    let rules = Precompiled::from(table).unwrap();
    let mut text = NormalizedString::from(text);
    rules.normalize(&mut text).unwrap();
    text.get().to_owned()
}

const RULES: [(&str, &str); 5] = [
    ("\u{fb01}", "fi"),
    ("\u{fdfa}", "eighteen letters!!"),
    ("\t", " "),
    ("\u{ad}", ""),
    ("e\u{301}", "\u{e9}"),
];

#[test]
fn rules_are_found_and_measured() {
    let table = table(&RULES);
    // The longest text stands for three bytes.
    assert_eq!(growth(&table), Ok(6.0));
    let text = "\u{fb01}lm\t\u{fdfa} cafe\u{301} e\u{ad}\u{ad}";
    assert_eq!(
        normalised(&table, text),
        "film eighteen letters!! caf\u{e9} e"
    );
    let (written, _) = checked(&STANDARD.encode(&table)).unwrap();
    assert_eq!(STANDARD.decode(written).unwrap(), table);
}

#[test]
fn what_the_library_would_not_survive_is_refused() {
    let good = table(&RULES);
    let texts = good.len() - RULES.iter().map(|(_, text)| text.len() + 1).sum::<usize>();
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut table = good.clone();
        change(&mut table);
        growth(&table).expect_err("it should be refused")
    };
    let unit = |table: &mut Vec<u8>, at: usize, unit: u32| {
        table[4 + 4 * at..8 + 4 * at].copy_from_slice(&unit.to_le_bytes());
    };
    let tab = BLOCK ^ usize::from(b'\t');
    let text_of_tab = {
        let table = Table::read(&good).unwrap();
        table.base(tab).unwrap()
    };
    type Change<'a> = &'a dyn Fn(&mut Vec<u8>);
    let cases: [(Change<'_>, &str); 12] = [
        (&|t| t.truncate(3), "no trie"),
        (&|t| t[..4].fill(0), "a trie of 0 bytes"),
        (&|t| t[..4].fill(0xff), "a trie of 4294967295 bytes"),
        (&|t| t[0] = 4, "a trie of"),
        (&|t| t.truncate(texts - 1), "a trie of"),
        (&|t| t[texts] = 0xff, "no UTF-8"),
        // The first base, and one after a byte.
        (&|t| unit(t, 0, 0xffff_fc00), "out of itself"),
        (&|t| unit(t, tab, 0x00ff_fc00 | 9), "out of itself"),
        // A text after the end, and one that begins within a letter.
        (&|t| unit(t, text_of_tab, 1 << 31 | 99), "not there"),
        (&|t| unit(t, text_of_tab, u32::MAX), "not there"),
        (&|t| unit(t, text_of_tab, 1 << 31 | 26), "not there"),
        // A text that has no end.
        (
            &|t| {
                let end = u32::try_from(t.len() - texts).unwrap();
                unit(t, text_of_tab, 1 << 31 | end);
                t.extend([b'a'; MAX_TEXT + 1]);
            },
            "of more than 320",
        ),
    ];
    for (change, word) in cases {
        let message = refused(change);
        assert!(message.contains(word), "{message}");
    }
    assert!(checked("*").unwrap_err().contains("base 64"));
    let large = "A".repeat(MAX_TABLE * 4 / 3 + 8);
    assert!(checked(&large).unwrap_err().contains("the limit is 524288"));
}

/// Ends a search with its letters, even if the trie leads back to itself.
#[test]
fn circles_are_followed_as_far_as_a_search_goes() {
    let mut table = table(&[("a", "b"), ("c", "0123456789")]);
    // After an `a` everything begins again: the longest text stands for one letter or for more.
    let at = BLOCK ^ usize::from(b'a');
    let again = u32::try_from((at ^ BLOCK) << 10 | usize::from(b'a')).unwrap();
    table[4 + 4 * at..8 + 4 * at].copy_from_slice(&again.to_le_bytes());
    assert_eq!(growth(&table), Ok(10.0));
    assert_eq!(normalised(&table, "aac ca"), "aa0123456789 0123456789a");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Runs all that is accepted: it makes a text longer by no more than was said.
    #[test]
    fn accepted_tables_are_safe(
        edits in proptest::collection::vec(
            (any::<prop::sample::Index>(), any::<u8>(), 0u8..8),
            0..6,
        ),
        text in "[\\t\u{ad}\u{fb01}\u{fdfa}e\u{301}fb ]{0,12}",
    ) {
        let mut table = table(&RULES);
        let full: Vec<usize> = (0..table.len()).filter(|at| table[*at] != 0).collect();
        for (place, byte, everywhere) in edits {
            // Mostly at places that are in use.
            let at = match everywhere {
                0 => place.index(table.len()),
                _ => full[place.index(full.len())],
            };
            table[at] = byte;
        }
        if let Ok(growth) = growth(&table) {
            let found = normalised(&table, &text);
            prop_assert!(found.len() as f64 <= growth * text.len() as f64 + 1e-9);
        }
    }
}
