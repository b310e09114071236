//! Every kind of message there is, in one table.
//!
//! A frame begins with the code of its kind, and a receiver names the kind that it expects. Two
//! messages with one code could be mistaken for one another, whichever crates they belong to: one
//! connection carries the service, the protocol, its stops and its transfers in turn. So codes are
//! not chosen where messages are sent. [`Kind`] has no public constructor; a message takes its
//! kind from this table, and the build fails if two of its lines share a code or a name.
//!
//! This crate knows nothing else of those messages: not what is in them, nor when they are sent.
//!
//! A code is what both parties of a session have to agree on. A change of one raises
//! [`VERSION`](crate::VERSION), or programs of different ages misunderstand each other.

use std::fmt;

/// The kind of a message: a code on the wire, a name in errors.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind {
    code: u8,
    name: &'static str,
}

impl Kind {
    /// Makes a kind that is not in the table, to be sent as a hostile peer would.
    pub(crate) const fn unlisted(code: u8) -> Self {
        let name = "unlisted";
        Self { code, name }
    }

    /// Returns the code on the wire.
    pub const fn code(self) -> u8 {
        self.code
    }

    /// Returns the name in errors.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (kind {})", self.name, self.code)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Declares conversations, each a module with its kinds as constants, and lists all kinds. Beside
/// the name of a conversation stands the directory of the crate that sends and receives them, or of
/// two that speak it, each with its own like.
macro_rules! kinds {
    ($(
        $(#[$doc:meta])*
        $conversation:ident, $user:literal $(and $other:literal)? {
            $($constant:ident = $code:literal $name:literal,)+
        }
    )+) => {
        $(
            $(#[$doc])*
            #[doc = concat!("\n\nIn `", $user, "`", $(" and `", $other, "`",)? ".")]
            pub mod $conversation {
                use super::Kind;
                $(
                    #[doc = concat!("The kind of a message: ", $name, ".")]
                    pub const $constant: Kind = Kind { code: $code, name: $name };
                )+
            }
        )+

        const TABLE: &[Kind] = &[$($($conversation::$constant,)+)+];

        #[cfg(test)]
        const USERS: &[(&str, &str)] = &[$(
            (stringify!($conversation), $user),
            $((stringify!($conversation), $other),)?
        )+];
    };
}

kinds! {
    /// Tests and measurements of channels: no program sends these.
    trial, "crates/wire" {
        FIRST = 0x01 "first of a trial",
        SECOND = 0x02 "second of a trial",
        THIRD = 0x03 "third of a trial",
    }

    /// Base transfers.
    base, "crates/ot" {
        KEYS = 0x20 "base transfer keys",
        ANSWERS = 0x21 "base transfer answers",
    }

    /// Extension of transfers, and products by them.
    transfer, "crates/ot" {
        EXTENSION = 0x22 "transfer extension columns",
        CORRECTIONS = 0x23 "transfer corrections",
        CORRELATION = 0x25 "product correlation",
        PRODUCTS = 0x26 "masked products",
        TREES = 0x27 "extension trees",
    }

    /// Shares of one-hot vectors.
    one_hot, "crates/ot" {
        CORRECTIONS = 0x28 "one-hot corrections",
        BLOCKS = 0x2b "one-hot blocks",
    }

    /// Products of bits.
    bit_product, "crates/ot" {
        CORRELATION = 0x29 "bit product correlation",
        OPENED = 0x2a "opened bits",
    }

    /// Stops by garbled circuits.
    garbled, "crates/stops" {
        NONCE = 0x30 "garbling nonce",
        GARBLED = 0x31 "garbled circuits",
        LABELS = 0x32 "server labels",
        RESULTS = 0x33 "masked results",
    }

    /// Stops by look-ups.
    lookup, "crates/stops" {
        DELTAS = 0x34 "look-up shifts",
        PRODUCTS = 0x35 "look-up products",
        CHOICES = 0x36 "look-up results",
    }

    /// The comparison of range flags.
    flags, "crates/stops" {
        SEED = 0x37 "range flag subsets",
        LABELS = 0x38 "range flag labels",
    }

    /// Late stops.
    late, "crates/stops" {
        RESULTS = 0x39 "late results",
    }

    /// Stops by circuits that the client garbles.
    client_garbled, "crates/stops" {
        MASKS = 0x3c "masks of client-garbled outputs",
        CHOICES = 0x3d "masked choices of labels",
        LABELS = 0x3e "labels of client-garbled circuits",
    }

    /// Lifts.
    lift, "crates/stops" {
        CHOICES = 0x3a "choices of a lift",
        TURNED = 0x3b "turned bits of a lift",
    }

    /// Sessions of the private protocol: handshake, keys, products, input and output.
    protocol, "crates/engine" and "paper/schemes" {
        HELLO = 0x40 "hello",
        WELCOME = 0x41 "welcome",
        PUBLIC_KEY = 0x42 "public key",
        GALOIS_KEYS = 0x43 "rotation keys",
        ENCRYPTED = 0x44 "encrypted mask",
        ANSWER = 0x45 "homomorphic answer",
        INPUT = 0x46 "masked input",
        PADDING = 0x47 "masked padding",
        OPENED = 0x48 "opened difference",
        RESHARED = 0x49 "share of a product",
        OUTPUT = 0x4a "share of a result",
        MASK_SECRET = 0x4b "secret of masks",
        INPUT_CORRECTION = 0x4c "correction of the input's mask",
        INPUT_BITS = 0x4d "masked input bits",
        COUNTED = 0x4e "masked bits of what counts",
    }

    /// The service around the private protocol.
    service, "crates/service" {
        GREETING = 0x50 "greeting",
        RECEPTION = 0x51 "reception",
        REQUEST = 0x52 "request",
        REPLY = 0x53 "reply",
        TOKENIZER = 0x54 "tokenizer",
        SPENT = 0x55 "spent",
        HINT_INDEX = 0x56 "hashes of a hint",
        HINT_CHUNK = 0x57 "chunk of a hint",
    }

    /// The comparator that uses homomorphic encryption alone.
    fhe, "paper/fhe" {
        KEY = 0x60 "evaluation key",
        CIPHERTEXT = 0x61 "encrypted vector",
        ANSWER = 0x62 "encrypted logits",
    }

    /// The comparator that garbles a whole model.
    gc, "paper/gc" {
        PLAN = 0x70 "plan of a garbled model",
        BEGIN = 0x71 "seed and zero wire of a garbled model",
        GARBLED = 0x72 "garbled step",
        CORRECTIONS = 0x73 "input corrections",
        LABELS = 0x74 "input labels",
        DECODING = 0x75 "decoding bits",
    }
}

const _: () = {
    let mut i = 0;
    while i < TABLE.len() {
        let mut j = 0;
        while j < i {
            let (one, other) = (TABLE[i], TABLE[j]);
            assert!(one.code != other.code, "two kinds of message share a code");
            assert!(
                !same(one.name, other.name),
                "two kinds of message share a name"
            );
            j += 1;
        }
        i += 1;
    }
};

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    #[test]
    fn kinds_print_their_name_and_code() {
        assert_eq!(garbled::LABELS.to_string(), "`server labels` (kind 50)");
        assert!(same("a", "a") && !same("a", "ab") && !same("ab", "a") && !same("ab", "ac"));
    }

    fn sources(under: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(under).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    /// Checks which crate has a conversation: others would take it for one of theirs.
    #[test]
    fn conversations_are_those_of_the_crates_in_the_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut found = BTreeSet::new();
        for group in ["crates", "paper"] {
            for entry in std::fs::read_dir(root.join(group)).unwrap() {
                let package = entry.unwrap().file_name().into_string().unwrap();
                let package = format!("{group}/{package}");
                if !root.join(&package).join("Cargo.toml").exists() {
                    continue; // Pages, and what else lies beside packages.
                }
                let mut files = Vec::new();
                sources(&root.join(&package).join("src"), &mut files);
                for file in files {
                    let text = std::fs::read_to_string(file).unwrap();
                    for part in text.split("primer_wire::kind::").skip(1) {
                        let end = part.find(|c: char| c != '_' && !c.is_alphanumeric());
                        found.insert((part[..end.unwrap()].to_owned(), package.clone()));
                    }
                }
            }
        }
        // Tests of any crate may try a channel, and this file searches for no name at all.
        found.retain(|(conversation, _)| !["trial", ""].contains(&conversation.as_str()));
        let listed = USERS
            .iter()
            .filter(|(conversation, _)| *conversation != "trial");
        let listed =
            listed.map(|(conversation, user)| (conversation.to_string(), user.to_string()));
        assert_eq!(found, listed.collect());
    }
}
