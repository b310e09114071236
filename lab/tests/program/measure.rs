//! Costs between two processes, and the page that shows them beside the paper's.

use crate::lab;
use primer_testkit::command::{fails, json};
use primer_testkit::files::{random_qa, repository, write};

#[test]
fn a_model_is_measured_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let model = random_qa(dir.path());
    let page = dir.path().join("page.html");
    let mut command = lab();
    command.args([
        "bench",
        "--model",
        &model,
        "--tokens",
        "8",
        "--schemes",
        "fp,fpc",
    ]);
    let table = json(command.args(["--runs", "2", "--report"]).arg(&page));
    assert_eq!(table["model"], "random-qa", "without the way to it");
    let rows = table["results"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let number = |name: &str| row[name].as_f64().unwrap();
        let sum = |name: &str| -> f64 {
            let steps = row["steps"].as_array().unwrap().iter();
            steps.map(|step| step[name].as_f64().unwrap()).sum()
        };
        for phase in ["offline_s", "online_s"] {
            assert!(number(phase) > 0.0);
            assert!((number(phase) - sum(phase)).abs() < 1e-9, "{phase}");
        }
        for name in [
            "plaintext_s",
            "rounds_online",
            "peak_rss_client",
            "peak_rss_server",
            "and_gates",
        ] {
            assert!(number(name) > 0.0, "{name}");
        }
        assert_eq!(row["extrapolated"], false);
        assert!(number("max_abs_logit_error") < 0.1, "{row}");
    }
    assert!(
        table["command"]
            .as_str()
            .unwrap()
            .starts_with("primer-lab bench --model")
    );
    assert!(!table["commit"].as_str().unwrap().is_empty());
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("</html>"));
    for name in ["schemes", "steps-offline", "steps-online", "bytes"] {
        let figure = format!("<figure id=\"{name}-random-qa-8\">");
        assert!(html.contains(&figure), "{figure}");
    }
    for title in ["Schemes", "Seconds by step", "What crosses the link"] {
        let title = format!("<h2>{title}: random-qa, 8 tokens");
        assert!(html.contains(&title), "{title}");
    }
    for row in rows {
        // The figures themselves, in the order of the table.
        let [offline, online] = ["offline_s", "online_s"].map(|of| seconds(&row[of]));
        let scheme = row["scheme"].as_str().unwrap();
        let cells = format!("<tr><td>{scheme}</td><td>{offline}</td><td>{online}</td>");
        assert!(html.contains(&cells), "{cells}");
        let rounds = format!("<td>{}</td>", row["rounds_online"]);
        assert!(html.contains(&rounds), "{rounds}");
    }
    let basis = "<td>whole, median of 2 [1]</td>";
    assert_eq!(html.matches(basis).count(), 4, "two schemes in two tables");

    // The same figures, shown again without measuring.
    let results = write(dir.path(), "result.json", table.to_string());
    let again = dir.path().join("again.html");
    let mut report = lab();
    report.args(["report", &results, "--out"]).arg(&again);
    report.arg("--tables").arg(dir.path().join("tables.md"));
    let output = report.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_to_string(&again).unwrap(), html);
    let tables = std::fs::read_to_string(dir.path().join("tables.md")).unwrap();
    assert!(
        tables.contains("## Schemes: random-qa, 8 tokens"),
        "{tables}"
    );
}

/// Checks that what both parties took down becomes a picture of the scheme that was run.
#[test]
fn an_online_phase_is_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let model = random_qa(dir.path());
    for scheme in ["lean", "fp"] {
        let picture = dir.path().join(scheme);
        let mut command = lab();
        command.args(["bench", "--model", &model, "--tokens", "8"]);
        command.args(["--schemes", scheme, "--timeline"]);
        json(command.arg(&picture));
        let svg = std::fs::read_to_string(&picture).unwrap();
        let about = format!("random-qa, 2 of 2 layers, 8 tokens, scheme {scheme}, link loopback");
        assert!(svg.contains(&about), "{svg}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let model = random_qa(dir.path());
    let bench = |args: &[&str]| {
        let mut command = lab();
        command.arg("bench").args(args);
        command
    };
    fails(
        &mut bench(&["--model", "bert-huge"]),
        1,
        &["bert-huge", "minilm"],
    );
    fails(
        &mut bench(&["--model", &model, "--growth"]),
        2,
        &["--growth", "shapes"],
    );
    fails(
        &mut bench(&["--model", "bert-tiny", "--growth"]),
        2,
        &["up to 4", "bert-tiny has 3"],
    );
    fails(&mut bench(&["--schemes", "fp,magic"]), 2, &["magic"]);
    fails(&mut bench(&["--link", "moon"]), 2, &["moon", "wan"]);
    fails(&mut bench(&["--with", "x.json"]), 2, &["--report"]);
    fails(
        &mut bench(&["--schemes", "fp,gc", "--link", "wan"]),
        2,
        &["scheme gc", "link wan"],
    );
    let nowhere = dir.path().join("missing/report.html").display().to_string();
    fails(
        &mut bench(&["--report", &nowhere]),
        1,
        &["creating", "missing"],
    );
    let other = write(dir.path(), "other.json", "{\"results\": 3}");
    fails(
        &mut bench(&["--report", "--with", &other]),
        1,
        &["other.json", "not a result"],
    );
    fails(lab().args(["report", &other]), 1, &["other.json"]);
    let missing = dir.path().join("missing").display().to_string();
    let message = fails(lab().args(["report", &missing]), 1, &[&missing]);
    let said = message.matches("No such file or directory").count();
    assert_eq!(said, 1, "a cause is said once: {message}");
    let data = repository("docs/results/data");
    let mut full = lab();
    full.arg("report").arg(data).args(["--out", "/dev/full"]);
    fails(&mut full, 1, &["/dev/full: No space left"]);
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let named = empty.display().to_string();
    fails(lab().arg("report").arg(&empty), 1, &["no result", &named]);
}

/// Formats seconds as a page shows them: fewer digits from ten on, which a busy machine may take.
fn seconds(value: &serde_json::Value) -> String {
    let seconds = value.as_f64().unwrap();
    match seconds < 10.0 {
        true => format!("{seconds:.2}"),
        false => format!("{seconds:.1}"),
    }
}
