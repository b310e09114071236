//! Every command that takes a scheme, with every scheme there is: one that joins is tried by all of
//! them without a line here.

use crate::lab;
use primer_lab::bench::Scheme;
use primer_testkit::command::json;
use primer_testkit::files::{random_qa, write};
use serde_json::Value;

/// A tiny model and a question of its kind.
struct Fixture {
    _dir: tempfile::TempDir,
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
            _dir: dir,
        }
    }

    fn eval(&self, scheme: Scheme, engine: &str) -> Value {
        let mut eval = lab();
        eval.args(["eval", "--model", &self.model, "--task", "squad"]);
        eval.args(["--data", &self.data, "--tokens", "8", "--engine", engine]);
        json(eval.args(["--scheme", scheme.name()]))
    }
}

#[test]
fn inspect_prints_the_costs_of_the_scheme_that_it_is_given() {
    let fixture = Fixture::new();
    let costs = Scheme::ALL.map(|scheme| {
        let mut inspect = lab();
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

/// Checks gates and bytes that the paper's activations and one-hot rows take at least.
#[test]
fn inspect_counts_circuits_of_the_paper() {
    let mut inspect = lab();
    inspect.args(["inspect", "--tokens", "30", "--scheme", "fp"]);
    let plan = json(&mut inspect);
    assert_eq!(plan["counts"]["stop_elements"]["activation"], 2 * 30 * 512);
    // 94 gates for each GELU alone.
    assert!(plan["and_gates"].as_u64().unwrap() > 94 * 2 * 30 * 512);
    assert!(plan["bytes"]["online_up"].as_u64().unwrap() > 30 * 8192 * 41 / 8);
    assert_eq!(plan["hint_bytes"], Value::Null);
}

/// Runs the embedded model through both parties, by each scheme.
#[test]
fn the_embedded_model_answers_privately_by_every_scheme() {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "dev.tsv", "sentence\tlabel\nan utter mess\t0\n");
    for scheme in Scheme::ALL {
        let mut eval = lab();
        eval.args([
            "eval", "--task", "sst2", "--data", &data, "--engine", "secure",
        ]);
        let found = json(eval.args(["--scheme", scheme.name()]));
        assert_eq!((&found["n"], &found["accuracy"]), (&1.into(), &1.0.into()));
        assert_eq!(found["agreement_with_float"], 1.0, "{scheme:?}");
        assert_eq!(found["agreement_with_fixed"], 1.0, "{scheme:?}");
    }
}

#[test]
fn the_comparator_of_polynomials_answers_in_the_clear() {
    let dir = tempfile::tempdir().unwrap();
    let text = "sentence\tlabel\na warm , funny film\t1\nan utter mess\t0\n\
        the plot is thin and the jokes are old\t0\none of the best films of the year\t1\n";
    let data = write(dir.path(), "dev.tsv", text);
    let mut eval = lab();
    eval.args(["eval", "--task", "sst2", "--data", &data, "--engine", "fhe"]);
    let found = json(eval.args(["--degrees", "high"]));
    assert_eq!(
        (&found["engine"], &found["degrees"]),
        (&"fhe".into(), &"high".into())
    );
    assert_eq!((&found["n"], &found["accuracy"]), (&4.into(), &1.0.into()));
    assert_eq!(found["agreement_with_float"], 1.0);
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
    let mut bench = lab();
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

/// Tells whether a client of a scheme is told about ranges.
fn tells_ranges(scheme: Scheme) -> bool {
    scheme == Scheme::Lean
}
