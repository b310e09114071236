//! The relation, and what the server sees.

use super::*;
use crate::masks::tests::looks_uniform;
use crate::scheme::Scheme;
use primer_model::synthetic::bert_shape;
use primer_paper_plan::Form;
use primer_plan::shape::{Head, Pooling};
use primer_ring::prg::Prg;

/// Runs something on every product of two small graphs, which have all kinds between them.
fn each(run: impl Fn(&Graph, &Step, Factors)) {
    let classifier = bert_shape(1, 12, 3);
    let mut sentences = classifier.clone();
    sentences.head = Head::Sentence {
        pooling: Pooling::Mean,
        normalised: false,
    };
    let mut seen = Vec::new();
    for graph in [&classifier, &sentences].map(|shape| Form::Separate.graph(shape, 4)) {
        for step in &graph.steps {
            let Some(factors) = Factors::of(&Scheme::Fp.recipe(), step) else {
                continue;
            };
            run(&graph, step, factors);
            if !seen.contains(&factors.kind) {
                seen.push(factors.kind);
            }
        }
    }
    assert_eq!(seen.len(), 5, "one for each variant of Bilinear");
}

fn share(graph: &Graph, id: ValueId, rng: &mut Prg) -> Arc<Share> {
    let value = graph.value(id);
    Arc::new(Share::random(value.rows, value.cols, rng))
}

/// Makes a client's material for random factors, with a mask of the caller's.
fn product(
    graph: &Graph,
    step: &Step,
    factors: Factors,
    mask: impl Fn(usize, usize, &mut Prg) -> Share,
    rng: &mut Prg,
) -> ClientProduct {
    let value = graph.value(step.output());
    ClientProduct {
        left: share(graph, factors.left, rng),
        right: share(graph, factors.right, rng),
        constant: Share::zeros(value.rows, value.cols),
        mask: Arc::new(mask(value.rows, value.cols, rng)),
    }
}

/// Checks the relation in the module's text, with the mixed terms in the clear.
#[test]
fn the_shares_add_up_to_the_product() {
    each(|graph, step, factors| {
        let heads = graph.shape.heads;
        let mut rng = Prg::new(&[3; 16]);
        let draw = |rng: &mut Prg| {
            let x = share(graph, factors.left, rng);
            // The factors of squares are one value.
            let y = match factors.left == factors.right {
                true => Arc::clone(&x),
                false => share(graph, factors.right, rng),
            };
            (x, y)
        };
        let ((x, y), (r, s), (u, v)) = (draw(&mut rng), draw(&mut rng), draw(&mut rng));
        let minus = |a: &Share, b: &Share| {
            let mut out = a.first_rows(a.rows());
            out.sub(b);
            out
        };
        let (x_hat, y_hat) = (minus(&x, &r), minus(&y, &s));
        let mut material = product(graph, step, factors, Share::random, &mut rng);
        (material.left, material.right) = (Arc::clone(&r), Arc::clone(&s));
        material.constant = factors.product(heads, &r, &s);
        material.constant.add(&factors.product(heads, &u, &s));
        material.constant.add(&factors.product(heads, &r, &v));
        let mask = Arc::clone(&material.mask);
        let (d, e) = (minus(&x_hat, &u), minus(&y_hat, &v));
        let mut sum = material.reshare(factors, heads, Some((&d, &e)), 0);
        sum.add(&factors.product(heads, &x_hat, &y_hat));
        sum.add(&mask);
        assert_eq!(sum.data(), factors.product(heads, &x, &y).data());
    });
}

/// Checks the paper's form: the mixed terms are those of the server's shares, and nothing is
/// opened.
#[test]
fn encrypted_products_add_up_too() {
    each(|graph, step, factors| {
        let heads = graph.shape.heads;
        let mut rng = Prg::new(&[6; 16]);
        let mut material = product(graph, step, factors, Share::random, &mut rng);
        if factors.left == factors.right {
            material.right = Arc::clone(&material.left);
        }
        let (r, s) = (Arc::clone(&material.left), Arc::clone(&material.right));
        let x_hat = share(graph, factors.left, &mut rng);
        let y_hat = match factors.left == factors.right {
            true => Arc::clone(&x_hat),
            false => share(graph, factors.right, &mut rng),
        };
        material.constant = factors.product(heads, &r, &s);
        material.constant.add(&factors.product(heads, &x_hat, &s));
        material.constant.add(&factors.product(heads, &r, &y_hat));
        let mask = Arc::clone(&material.mask);
        let mut sum = material.reshare(factors, heads, None, 0);
        sum.add(&factors.product(heads, &x_hat, &y_hat));
        sum.add(&mask);
        let (mut x, mut y) = (
            x_hat.first_rows(x_hat.rows()),
            y_hat.first_rows(y_hat.rows()),
        );
        x.add(&r);
        y.add(&s);
        assert_eq!(sum.data(), factors.product(heads, &x, &y).data());
    });
}

/// Returns what the server gets back when the client's factors and the opened differences never
/// change.
fn reshared(mask: impl Fn(usize, usize, &mut Prg) -> Share) -> Vec<Vec<u64>> {
    let views = std::cell::RefCell::new(Vec::new());
    each(|graph, step, factors| {
        let mut drawn = Prg::new(&[4; 16]);
        let mut view = Vec::new();
        while view.len() < 6400 {
            let mut fixed = Prg::new(&[9; 16]);
            let (d, e) = (
                share(graph, factors.left, &mut fixed),
                share(graph, factors.right, &mut fixed),
            );
            let mut material = product(graph, step, factors, Share::random, &mut fixed);
            let value = graph.value(step.output());
            material.mask = Arc::new(mask(value.rows, value.cols, &mut drawn));
            let heads = graph.shape.heads;
            // The same two elements every time: a product that never changes.
            let share = material.reshare(factors, heads, Some((&d, &e)), 3);
            view.extend([share.get(0, 0), share.get(value.rows - 1, value.cols - 1)]);
        }
        views.borrow_mut().push(view);
    });
    views.into_inner()
}

#[test]
fn the_server_sees_uniform_products() {
    for view in reshared(Share::random) {
        assert!(looks_uniform(&view));
    }
    for view in reshared(|rows, cols, _| Share::zeros(rows, cols)) {
        assert!(!looks_uniform(&view), "a missing mask must be noticed");
    }
}
