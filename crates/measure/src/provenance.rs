//! Where a figure comes from: machine, commit and command.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// What has to stand beside a figure for another to measure it again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// Processor, cores that may be used, memory.
    pub machine: String,
    /// The commit that the program was built from, with a `+` if files had changed since.
    pub commit: String,
    /// What was typed.
    pub command: String,
}

impl Provenance {
    /// Returns that of this process.
    pub fn here() -> Self {
        Self {
            machine: machine(),
            commit: env!("PRIMER_COMMIT").to_owned(),
            command: command(std::env::args()),
        }
    }
}

/// Writes the arguments as a shell would take them, with the program by its name alone.
fn command(mut args: impl Iterator<Item = String>) -> String {
    let program = args.next().unwrap_or_default();
    let name = Path::new(&program).file_name();
    let name = name.map_or_else(
        || program.clone(),
        |name| name.to_string_lossy().into_owned(),
    );
    let quoted = args.map(|arg| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,/:+".contains(c);
        if !arg.is_empty() && arg.chars().all(plain) {
            arg
        } else {
            format!("'{}'", arg.replace('\'', "'\\''"))
        }
    });
    let mut words = vec![name];
    words.extend(quoted);
    words.join(" ")
}

fn machine() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = field(&cpus, "model name").unwrap_or(std::env::consts::ARCH);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = field(&memory, "MemTotal").and_then(|v| v.strip_suffix(" kB")?.parse::<f64>().ok());
    let memory = kib.map_or(String::new(), |kib| {
        format!(", {:.0} GiB", kib / f64::from(1 << 20))
    });
    format!("{model}, {cores} cores{memory}")
}

/// Returns the value of the first line `name : value` of a list.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_again() {
        let args = ["/somewhere/target/primer", "classify", "it's fine", ""];
        let typed = command(args.into_iter().map(String::from));
        assert_eq!(typed, r"primer classify 'it'\''s fine' ''");
        let args = ["./primer-lab", "bench"].map(String::from);
        assert_eq!(command(args.into_iter()), "primer-lab bench");
    }

    #[test]
    fn lists_of_the_system() {
        let text = "processor\t: 0\nmodel name\t: Some CPU: fast\n";
        assert_eq!(field(text, "model name"), Some("Some CPU: fast"));
        assert_eq!(field(text, "bogomips"), None);
        assert!(!Provenance::here().machine.is_empty());
    }
}
