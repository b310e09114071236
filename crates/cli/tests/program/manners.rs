//! Settings from the environment and a file, completions, manual pages, colours.

use primer_testkit::TEXTS;
use primer_testkit::command::{fails, json, stderr};
use primer_testkit::files::write;
use primer_testkit::process::{Server, primer};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns what a command that must succeed prints.
fn text(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Makes a command with a configuration.
fn with(config: &str, args: &[&str]) -> Command {
    let mut command = primer();
    command.env("PRIMER_CONFIG", config).args(args);
    command
}

/// Returns the server that a command would take, told by failing to reach it.
fn server_of(command: &mut Command) -> String {
    let message = fails(command, 1, &["cannot connect to"]);
    let rest = message.split("cannot connect to ").nth(1).unwrap();
    rest.split(": ").next().unwrap().to_owned()
}

#[test]
fn what_is_typed_goes_before_the_environment_and_that_before_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let text = format!(
        "[client]\nserver = \"127.0.0.1:1\"\nstate = {state:?}\nattempts = 1\n\
         [prepare]\nserver = \"127.0.0.1:2\"\n"
    );
    let config = write(dir.path(), "config.toml", text);
    let config = config.as_str();
    let classify = &["classify", "x"][..];
    assert_eq!(server_of(&mut with(config, classify)), "127.0.0.1:1");
    assert!(state.join("client").exists());
    // A command's own table goes before what is shared.
    assert_eq!(server_of(&mut with(config, &["prepare"])), "127.0.0.1:2");
    let environment = &mut with(config, &["prepare"]);
    assert_eq!(
        server_of(environment.env("PRIMER_SERVER", "127.0.0.1:3")),
        "127.0.0.1:3"
    );
    let typed = &mut with(config, &["prepare", "--server", "127.0.0.1:4"]);
    assert_eq!(
        server_of(typed.env("PRIMER_SERVER", "127.0.0.1:3")),
        "127.0.0.1:4"
    );
    // The file of --config goes before that of the variable; without any there is none.
    let args = ["--config", config, "classify", "x"];
    assert_eq!(server_of(&mut with("/nowhere", &args)), "127.0.0.1:1");
    fails(&mut with("", classify), 2, &["--server"]);
    fails(
        &mut with("/nowhere", classify),
        1,
        &["/nowhere", "No such file"],
    );
    // The usual place.
    let home = dir.path().join("home");
    std::fs::create_dir_all(home.join("primer")).unwrap();
    std::fs::copy(config, home.join("primer/config.toml")).unwrap();
    let mut usual = primer();
    usual
        .env_remove("PRIMER_CONFIG")
        .env("XDG_CONFIG_HOME", &home);
    assert_eq!(server_of(usual.args(classify)), "127.0.0.1:1");
    // What is shared serves commands below others, too.
    let listed = json(with(config, &["bundles", "list"]).stdin(Stdio::null()));
    assert_eq!(listed["bundles"].as_array().unwrap().len(), 0);
    let output = with(config, &["bundles", "list"]).output().unwrap();
    assert!(stderr(&output).contains(state.to_str().unwrap()));
    let mut elsewhere = with(config, &["bundles", "list"]);
    let output = elsewhere.env("PRIMER_STATE", "/nowhere").output().unwrap();
    assert!(stderr(&output).contains("/nowhere/client/store"));
}

#[test]
fn both_sides_run_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("server");
    let tokens = dir.path().join("tokens");
    let token = text(primer().args(["token", "new"]).arg(&tokens));
    let token_file = write(dir.path(), "token", token);
    let serving = format!(
        "[serve]\nlisten = \"127.0.0.1:0\"\njson = true\nstate = {state:?}\n\
         token-file = {tokens:?}\nmax-tokens = 16\nreveal = \"label\"\n"
    );
    let config = write(dir.path(), "server.toml", serving);
    let server = Server::spawn(with(&config, &["serve"]), &state);
    let asking = format!(
        "[client]\nserver = {:?}\ntrust-fingerprint = {:?}\nstate = {:?}\n\
         token-file = {token_file:?}\n[classify]\njsonl = true\n",
        server.address,
        server.fingerprint,
        dir.path().join("client"),
    );
    let config = write(dir.path(), "client.toml", asking);
    let line = text(&mut with(&config, &["classify", TEXTS[0].0]));
    let found: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&found["label"], &found["line"]),
        (&TEXTS[0].1.into(), &1.into())
    );
    assert!(found["score"].is_null());
    // A flag that is typed has the setting that it conflicts with give way.
    let found = json(&mut with(&config, &["classify", TEXTS[0].0]));
    assert!(found["label"] == TEXTS[0].1 && found.get("line").is_none());
    // So does the file's token to one in the environment.
    let mut other = with(&config, &["classify", TEXTS[0].0]);
    fails(other.env("PRIMER_TOKEN", "another"), 1, &[]);
}

/// Checks a file.
fn check(dir: &Path, text: &str) -> Command {
    let mut check = primer();
    check.args(["config", "check", &write(dir, "config.toml", text)]);
    check
}

#[test]
fn everything_in_a_file_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let good = "[serve]\nlisten = \"0.0.0.0:1\"\nmax-sessions = 3\njson = false\n\
                client-fingerprint = [\"ROW\", \"ROW\"]\n[bundles.list]\nrole = \"server\"\n"
        .replace("ROW", &"ab".repeat(32));
    let said = text(&mut check(dir.path(), &good));
    assert!(said.contains("5 settings, all of them fine"), "{said}");
    for (wrong, words) in [
        ("[serve]\nlisten = 3 4\n", &["line 2"][..]),
        ("[server]\n", &["[server]"]),
        ("quick = true\n", &["quick"]),
        ("[serve]\nmax-session = 3\n", &["[serve]", "max-session"]),
        ("[serve]\ntokens = \"x\"\n", &["[serve]", "tokens"]),
        (
            "[serve]\nmax-sessions = 0\n",
            &["[serve]", "--max-sessions", "1..=4096"],
        ),
        ("[serve]\njson = 1\n", &["[serve] json", "true or false"]),
        (
            "[serve]\nlisten = true\n",
            &["[serve] listen", "not true or false"],
        ),
        ("[serve]\ncert = \"x\"\n", &["[serve]", "--key"]),
        (
            "[classify]\njson = true\njsonl = true\n",
            &["[classify]", "--jsonl"],
        ),
        ("[client]\ncount = 3\n", &["[client]", "count"]),
        ("[bundles.lst]\n", &["bundles.lst"]),
        ("[bench-party]\n", &["bench-party"]),
    ] {
        let words = [&["config.toml"], words].concat();
        fails(&mut check(dir.path(), wrong), 1, &words);
        // A command refuses it as well.
        let config = dir.path().join("config.toml").display().to_string();
        fails(&mut with(&config, &["inspect"]), 1, &words);
    }
}

#[test]
fn the_example_has_every_flag_and_passes() {
    let dir = tempfile::tempdir().unwrap();
    let example = text(primer().args(["config", "example"]));
    let said = text(&mut check(dir.path(), &example));
    assert!(said.contains("0 settings"), "{said}");
    for command in ["serve", "classify", "prepare", "eval", "bench"] {
        let help = text(primer().args([command, "--help"]));
        // Flags are indented, sentences about them are not.
        let flags = help
            .lines()
            .filter_map(|line| line.strip_prefix("      --"));
        let flags: Vec<&str> = flags.collect();
        assert!(flags.len() > 3, "{help}");
        for flag in flags {
            let flag = flag.split([' ', '=']).next().unwrap();
            if ["help", "config", "quiet", "version"].contains(&flag) {
                continue;
            }
            let key = format!("\n#{flag} = ");
            assert!(example.contains(&key), "{command} --{flag} is missing");
        }
    }
    // What is set as it stands there is right: three commands listen, one reveals.
    let listen = example
        .replace("\n#listen = ", "\nlisten = ")
        .replace("\n#reveal", "\nreveal");
    let said = text(&mut check(dir.path(), &listen));
    assert!(said.contains("4 settings"), "{said}");
}

#[test]
fn shells_and_manuals_are_served() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(primer().args(["completions", shell]));
        for word in ["classify", "jsonl", "token"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let page = text(primer().arg("man"));
    assert!(page.contains(".TH primer 1"), "{page}");
    let dir = tempfile::tempdir().unwrap();
    let man = dir.path().join("man1");
    assert!(primer().arg("man").arg(&man).status().unwrap().success());
    for name in ["primer.1", "primer-serve.1", "primer-token-new.1"] {
        assert!(man.join(name).exists(), "{name}");
    }
    assert!(!man.join("primer-bench-party.1").exists());
}

#[test]
fn colours_are_for_terminals() {
    let lines: [&[&str]; 4] = [
        &["--help"],
        &["explode"],
        &["inspect", "--model", "x"],
        &["inspect"],
    ];
    for args in lines {
        let output = primer()
            .args(args)
            .env("TERM", "xterm-256color")
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert!(!said.is_empty() && !said.contains(&0x1b), "{args:?}");
    }
}

#[test]
fn systemd_is_told_when_a_service_answers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let hidden = format!("primer-test-{}", std::process::id());
    let abstract_name = SocketAddr::from_abstract_name(&hidden).unwrap();
    for (name, socket) in [
        (path.display().to_string(), UnixDatagram::bind(&path)),
        (
            format!("@{hidden}"),
            UnixDatagram::bind_addr(&abstract_name),
        ),
    ] {
        let socket = socket.unwrap();
        let patience = Some(std::time::Duration::from_secs(60));
        socket.set_read_timeout(patience).unwrap();
        let state = dir.path().join("state");
        let mut command = primer();
        command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--state"]);
        command.arg(&state).env("NOTIFY_SOCKET", name);
        let server = Server::spawn(command, &state);
        let mut said = [0; 64];
        let length = socket.recv(&mut said).unwrap();
        assert_eq!(&said[..length], b"READY=1");
        assert!(server.terminate().success());
    }
}
