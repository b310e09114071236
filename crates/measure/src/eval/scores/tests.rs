use super::*;

/// Checks SQuAD 2.0, where no answer is one, and SQuAD 1.1, where there always is some. Left out,
/// the rule would make every question without an answer wrong.
#[test]
fn no_answer_wins_where_its_score_is_higher_by_more_than_the_threshold() {
    let context = "In Paris.";
    let example = |accepted: &str| Example {
        first: "Where?".into(),
        second: Some(context.into()),
        gold: Gold::Answers {
            id: String::new(),
            texts: vec![accepted.into()],
        },
    };
    let examples = [example("Paris"), example("")];
    // Two windows of the first question; in one of them none seems better, which does not count.
    let window = |example, first: f64, best: f64| {
        let logits = vec![vec![first, first], vec![0.0, 0.0], vec![best, best]];
        EvalAnswer {
            example,
            float: logits.clone(),
            logits,
            fixed: None,
            out_of_range: Vec::new(),
            in_range: None,
            fixed_in_range: None,
            input: Input {
                ids: vec![0; 3],
                types: vec![0; 3],
                length: 3,
                removed: 0,
                second: vec![None, Some((0, 2)), Some((3, 8))],
            },
            commit: None,
        }
    };
    let answers = [
        window(0, 9.0, 1.0),
        window(0, 1.0, 4.0),
        window(1, 3.0, 2.5),
    ];
    let scores = |task, null_threshold| {
        let request = Request {
            task,
            null_threshold,
            ..request()
        };
        let scores = Scores::new(&request, &Head::Span, &examples, &answers);
        let Predicted::Texts(texts) = scores.predicted else {
            panic!("answers are texts");
        };
        (texts.join("|"), scores.accuracy)
    };
    assert_eq!(scores(Task::Squad2, 0.0), ("Paris|".into(), 1.0));
    assert_eq!(scores(Task::Squad2, 1.0), ("Paris|Paris".into(), 0.5));
    assert_eq!(scores(Task::Squad2, -7.0), ("|".into(), 0.5));
    let always = ("Paris|Paris".into(), 0.5);
    assert_eq!(scores(Task::Squad2, f64::INFINITY), always);
    assert_eq!(scores(Task::Squad, 0.0), always);
}

fn request() -> Request {
    Request {
        model: None,
        calibration: None,
        prepared: None,
        scheme: &crate::Lean,
        task: Task::Squad2,
        data: "squad.json".into(),
        engine: Engine::Float,
        truncation: super::super::Truncation::Shares,
        limit: None,
        tokens: None,
        pad: 0,
        stride: 64,
        null_threshold: 0.0,
        threads: 1,
        journal: None,
    }
}

#[test]
fn each_way_to_compute_is_compared_on_the_same_examples() {
    let logits = |label: usize| vec![(0..3).map(|i| f64::from(u8::from(i == label))).collect()];
    // Right, what was answered, float, integers.
    let cases = [(0, 0, 0, 0), (1, 2, 1, 2), (2, 2, 2, 2), (0, 1, 1, 1)];
    let example = |&(gold, ..): &(usize, usize, usize, usize)| Example {
        first: String::new(),
        second: None,
        gold: Gold::Label(gold),
    };
    let answer =
        |(example, &(_, ours, float, fixed)): (usize, &(usize, usize, usize, usize))| EvalAnswer {
            example,
            logits: logits(ours),
            float: logits(float),
            fixed: Some(logits(fixed)),
            out_of_range: Vec::new(),
            in_range: Some(ours != 2),
            fixed_in_range: None,
            input: Input {
                ids: Vec::new(),
                types: Vec::new(),
                length: 0,
                removed: 0,
                second: Vec::new(),
            },
            commit: None,
        };
    let examples: Vec<Example> = cases.iter().map(example).collect();
    let mut answers: Vec<EvalAnswer> = cases.iter().enumerate().map(answer).collect();
    let gold = [0, 1, 2, 0];
    let report = |answers: &[EvalAnswer]| {
        let of = |inputs: &[Outputs<'_>], _: &Example| argmax(&inputs[0].0[0]);
        let score = |predicted: &[usize]| task::accuracy_and_f1(predicted, &gold, 3, 1);
        Scores::of(&examples, answers, of, score, Predicted::Labels)
    };
    let all = report(&answers);
    assert_eq!((all.accuracy, all.accuracy_of_float), (0.5, 0.75));
    assert_eq!((all.with_float, all.with_fixed), (0.75, Some(1.0)));
    assert_eq!(flagged(&answers), Some(2));
    assert_eq!(all.wrong, [false, true, false, false]);
    assert!(matches!(all.predicted, Predicted::Labels(labels) if labels == [0, 2, 2, 1]));
    answers[3].fixed = None;
    answers[3].in_range = None;
    assert_eq!(flagged(&answers), None, "not of a part only");
    assert_eq!(report(&answers).with_fixed, None, "not of a part only");
}
