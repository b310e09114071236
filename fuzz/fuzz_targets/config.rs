//! Any bytes as `config.json`: a configuration or an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_model::load::config::Config;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(config) = Config::parse(bytes, false) {
        assert!(config.labels.len() <= bytes.len().max(4096));
    }
});
