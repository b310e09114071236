//! What a server logs is chosen by `PRIMER_LOG`, as a level or by module, and `--log json` writes
//! one object a line.

use primer_testkit::TEXTS;
use primer_testkit::command::json;
use primer_testkit::process::{Server, client, primer};
use serde_json::Value;

#[test]
fn levels_of_modules_and_lines_of_json() {
    let dir = tempfile::tempdir().unwrap();
    for (name, levels, heard) in [
        ("silent", "warn", false),
        ("module", "warn,primer_server=info", true),
        ("unreadable", "primer=loud", true),
    ] {
        let state = dir.path().join(name);
        let mut command = primer();
        command.env("PRIMER_LOG", levels).arg("serve");
        command.args(["--json", "--log", "json", "--listen", "127.0.0.1:0"]);
        command.arg("--state").arg(&state);
        let server = Server::spawn(command, &state);
        let asker = dir.path().join(format!("{name}-client"));
        json(client("classify", &server, &asker).arg(TEXTS[0].0));
        assert_eq!(server.terminate().code(), Some(0));
        let log = std::fs::read_to_string(state.with_extension("log")).unwrap();
        let lines = log.lines().filter(|line| line.starts_with('{'));
        let lines: Vec<Value> = lines.map(|l| serde_json::from_str(l).unwrap()).collect();
        let inferred = |line: &Value| line["fields"]["message"] == "inferred";
        assert_eq!(lines.iter().any(inferred), heard, "{levels}: {log}");
        assert_eq!(lines.is_empty(), !heard, "{levels}: {log}");
    }
}
