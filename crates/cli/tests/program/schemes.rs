//! Every command that takes a scheme, with every scheme there is: one that joins is tried by all of
//! them without a line here.

use crate::process::{Server, client, fails, json, primer, random_qa, write};
use primer::Scheme;
use primer_protocol::scheme::When;
use serde_json::Value;
use std::path::Path;

/// A tiny model and a question of its kind.
struct Fixture {
    dir: tempfile::TempDir,
    model: String,
    data: String,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let squad = serde_json::json!({"data": [{"title": "t", "paragraphs": [{
            "context": "a film",
            "qas": [{"id": "q", "question": "Who?",
                     "answers": [{"text": "a", "answer_start": 0}]}],
        }]}]});
        Self {
            model: random_qa(dir.path()),
            data: write(dir.path(), "squad.json", squad.to_string()),
            dir,
        }
    }

    fn state(&self, scheme: Scheme, role: &str) -> std::path::PathBuf {
        self.dir.path().join(format!("{}-{role}", scheme.name()))
    }

    fn eval(&self, scheme: Scheme, engine: &str) -> Value {
        let mut eval = primer();
        eval.args(["eval", "--model", &self.model, "--task", "squad"]);
        eval.args(["--data", &self.data, "--tokens", "8", "--engine", engine]);
        json(eval.args(["--scheme", scheme.name()]))
    }
}

#[test]
fn inspect_prints_the_costs_of_the_scheme_that_it_is_given() {
    let fixture = Fixture::new();
    let costs = Scheme::ALL.map(|scheme| {
        let mut inspect = primer();
        inspect.args(["inspect", "--model", &fixture.model, "--tokens", "8"]);
        let plan = json(inspect.args(["--scheme", scheme.name()]));
        assert_eq!(plan["scheme"], scheme.name());
        assert!(plan["and_gates"].as_u64().unwrap() > 0, "{scheme:?}");
        plan["bytes"].to_string()
    });
    for (index, cost) in costs.iter().enumerate() {
        assert!(!costs[..index].contains(cost), "the costs of two schemes");
    }
}

#[test]
fn eval_runs_in_the_clear_and_through_the_protocol() {
    let fixture = Fixture::new();
    for scheme in Scheme::ALL {
        let fixed = fixture.eval(scheme, "fixed");
        assert_eq!(fixed["n"], 1);
        let secure = fixture.eval(scheme, "secure");
        assert_eq!(secure["agreement_with_fixed"], 1.0, "{scheme:?}");
        let as_fixed = tells_ranges(scheme).then_some(1.0);
        assert_eq!(secure["flags_as_fixed"], serde_json::json!(as_fixed));
        assert_eq!(
            fixed["answers_out_of_range"],
            secure["answers_out_of_range"]
        );
        assert_eq!(fixed["told"].is_object(), tells_ranges(scheme), "{fixed}");
        let error = &fixed["logit_error"];
        assert!(
            error["mean"].as_f64() <= error["largest"].as_f64(),
            "{error}"
        );
        let flagged = tells_ranges(scheme).then_some(0);
        assert_eq!(
            secure["answers_out_of_range"],
            serde_json::json!(flagged),
            "{scheme:?}"
        );
    }
}

#[test]
fn bench_measures_all_of_them_in_one_call() {
    let fixture = Fixture::new();
    let mut bench = primer();
    bench.args(["bench", "--model", &fixture.model, "--tokens", "8"]);
    let names = Scheme::ALL.map(Scheme::name);
    let table = json(bench.args(["--schemes", &names.join(",")]));
    let rows = table["results"].as_array().unwrap();
    let measured: Vec<_> = rows.iter().map(|row| row["scheme"].as_str()).collect();
    assert_eq!(measured, names.map(Some));
    for row in rows {
        assert!(row["max_abs_logit_error"].as_f64().unwrap() < 0.1, "{row}");
        let told = tells_ranges(row["scheme"].as_str().unwrap().parse().unwrap());
        assert_eq!(
            row["in_range"],
            serde_json::json!(told.then_some(true)),
            "{row}"
        );
    }
}

/// Served, prepared ahead, listed, asked; or refused by name, where a scheme prepares nothing.
#[test]
fn a_service_runs_on_every_scheme_that_prepares() {
    let fixture = Fixture::new();
    let mut served = 0;
    for scheme in Scheme::ALL {
        let state = fixture.state(scheme, "server");
        let serve = ["--model", &fixture.model, "--scheme", scheme.name()];
        if scheme.recipe().when == When::Online {
            let mut refused = primer();
            refused.args(["serve", "--listen", "127.0.0.1:0", "--state"]);
            fails(refused.arg(&state).args(serve), 1, &[scheme.name()]);
            continue;
        }
        let server = Server::start(&state, &serve);
        let found = ask(&server, &fixture.state(scheme, "client"));
        let told = tells_ranges(scheme).then_some(true);
        assert_eq!(
            found["in_range"],
            serde_json::json!(told),
            "{scheme:?}: {found}"
        );
        served += 1;
    }
    assert!(served > 0);
}

/// Whether a client of a scheme is told about ranges.
fn tells_ranges(scheme: Scheme) -> bool {
    scheme == Scheme::Lean
}

fn ask(server: &Server, state: &Path) -> Value {
    let mut prepare = client("prepare", server, state);
    let made = json(prepare.args(["--count", "1", "--tokens", "8"]));
    assert_eq!(made["prepared"], 1);
    let listed = || json(primer().args(["bundles", "list", "--state"]).arg(state));
    assert_eq!(listed()["bundles"].as_array().unwrap().len(), 1);
    let mut answer = client("answer", server, state);
    answer.args(["--question", "Who?", "--context", "a film"]);
    let found = json(&mut answer);
    assert!(found["score"].as_f64().unwrap() > 0.0, "{found}");
    assert_eq!(listed()["bundles"].as_array().unwrap().len(), 0);
    found
}
