//! A server's tokenizer: a true `tokenizer.json` of each family with changes, one with a changed
//! table of rules (`Precompiled`), or any bytes; `vocab.txt` and `tokenizer_config.json` with
//! changes; all of it as it is sent. What is accepted tokenises texts, within the limit of tokens
//! or with an error.
#![no_main]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use libfuzzer_sys::fuzz_target;
use primer::service::message::TokenizerFiles;
use primer_fuzz::{Script, edited};
use primer_text::{TextEncoder, Truncate};

const TRUE: [&str; 3] = [
    r###"{"added_tokens":[{"id":0,"content":"[PAD]","single_word":false,"lstrip":false,
"rstrip":false,"normalized":false,"special":true}],"normalizer":{"type":"BertNormalizer",
"clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
"pre_tokenizer":{"type":"BertPreTokenizer"},"post_processor":{"type":"TemplateProcessing",
"single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],
"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],
"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]}}},
"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",
"max_input_chars_per_word":100,"vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"a":3,"##a":4,"b":5}}}"###,
    r###"{"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,
"use_regex":true},"post_processor":{"type":"RobertaProcessing","sep":["b",2],"cls":["a",1],
"trim_offsets":true,"add_prefix_space":false},"model":{"type":"BPE","dropout":null,
"unk_token":null,"fuse_unk":false,"byte_fallback":false,"vocab":{"[PAD]":0,"a":1,"b":2,"ab":3},
"merges":["a b"]}}"###,
    r###"{"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Replace",
"pattern":{"String":"a"},"content":"bb"}]},"pre_tokenizer":{"type":"Metaspace",
"replacement":"_","prepend_scheme":"always"},"model":{"type":"Unigram","unk_id":0,
"vocab":[["[UNK]",0.0],["[PAD]",0.0],["_b",-1.0],["b",-2.0]],"byte_fallback":false}}"###,
];

const VOCABULARY: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##a\nb\nab\n";

const CONFIG: &str = r#"{"do_lower_case":true,"strip_accents":null,"tokenize_chinese_chars":true,
"model_max_length":32}"#;

/// Makes a table of rules for four letters, as sentencepiece lays one out: the trie's length, its
/// units, the texts. Also returns the places of its nonzero bytes.
fn table() -> (Vec<u8>, Vec<usize>) {
    let mut units = vec![0u32; 512];
    units[0] = 256 << 10;
    let mut texts = Vec::new();
    for (letter, text) in [
        ("b", "bb"),
        ("\t", " "),
        ("\u{ad}", ""),
        ("\u{fdfa}", "a long one"),
    ] {
        let mut base = 256;
        let mut at = 0;
        for byte in letter.bytes() {
            at = base ^ usize::from(byte);
            base = units.len();
            units.resize(base + 256, 0);
            units[at] = ((at ^ base) << 10) as u32 | u32::from(byte);
        }
        units[at] |= 1 << 8;
        units[base] = 1 << 31 | texts.len() as u32;
        texts.extend(text.bytes().chain([0]));
    }
    let mut table = (4 * units.len() as u32).to_le_bytes().to_vec();
    table.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
    table.extend(texts);
    let marks = (0..table.len()).filter(|at| table[*at] != 0).collect();
    (table, marks)
}

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    let choice = usize::from(script.byte());
    let changed =
        |true_file: &str, script: &mut Script<'_>| edited(true_file.as_bytes(), &[0], script);
    let encoder = match choice % 8 {
        3 => TextEncoder::from_json(script.0, None),
        4 => TextEncoder::from_vocabulary(&changed(VOCABULARY, &mut script), None),
        5 => {
            let config = changed(CONFIG, &mut script);
            TextEncoder::from_vocabulary(VOCABULARY.as_bytes(), Some(&config))
        }
        // As a client gets it from a server.
        6 => {
            let files = TokenizerFiles {
                main: VOCABULARY.as_bytes().to_vec(),
                json: false,
                config: Some(CONFIG.as_bytes().to_vec()),
            };
            let encoded = edited(&files.encode(), &[0], &mut script);
            let Ok(files) = TokenizerFiles::decode(&encoded) else {
                return;
            };
            match files.json {
                true => TextEncoder::from_json(&files.main, files.config.as_deref()),
                false => TextEncoder::from_vocabulary(&files.main, files.config.as_deref()),
            }
        }
        7 => {
            let (table, marks) = table();
            let table = STANDARD.encode(edited(&table, &marks, &mut script));
            let rules = format!(r#"{{"type":"Precompiled","precompiled_charsmap":"{table}"}}"#);
            let file = TRUE[2].replace(r#"{"type":"NFKC"}"#, &rules);
            TextEncoder::from_json(file.as_bytes(), None)
        }
        family => TextEncoder::from_json(&changed(TRUE[family], &mut script), None),
    };
    let Ok(encoder) = encoder else {
        return;
    };
    let long = "ab\u{fdfa} \u{65e5}\t\u{ad}".repeat(200);
    for (first, second) in [("a b", None), (&*long, None), ("aab", Some(&*long))] {
        if let Ok(input) = encoder.encode(first, second, 32, Truncate::LongestFirst) {
            assert!(input.tokens() <= 32, "{} tokens", input.tokens());
            assert_eq!(input.ids.len(), input.types.len());
        }
    }
    let _ = encoder.check_vocabulary(8);
});
