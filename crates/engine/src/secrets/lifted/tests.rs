//! Which values are lifted, and the relation of products that read them.

use super::super::{ClientProduct, client_terms, exchanges, kept, server_offline};
use super::*;
use crate::exchange::MaskSource;
use primer_model::synthetic::bert_shape;
use primer_ring::prg::Prg;
use std::collections::HashSet;
use std::sync::Arc;

fn graph() -> Graph {
    Graph::new(&bert_shape(2, 12, 3), 4)
}

/// Names of what is lifted.
fn lifted(graph: &Graph) -> HashSet<String> {
    let ids = graph.value_ids();
    let ids = ids.filter(|id| is_lifted(graph, *id));
    ids.map(|id| graph.value(id).name.clone()).collect()
}

#[test]
fn the_inputs_of_norms_are_lifted_and_nothing_else() {
    let graph = graph();
    let found = lifted(&graph);
    let centred = graph.values.iter().map(|value| value.name.clone());
    let centred: HashSet<String> = centred.filter(|name| name.ends_with(".centred")).collect();
    assert_eq!((found.len(), &found), (5, &centred));
    // A value that is shown, or that anything else reads, is not.
    let id = graph.value_ids().find(|id| is_lifted(&graph, *id));
    let mut shown = graph.clone();
    shown.outputs.push(id.unwrap());
    assert_eq!(lifted(&shown).len(), 4);
    let mut read = graph.clone();
    let also = read.steps.iter_mut().find_map(|step| match &mut step.op {
        Op::Mix { value, .. } => Some(value),
        _ => None,
    });
    *also.unwrap() = id.unwrap();
    assert_eq!(lifted(&read).len(), 4);
}

/// Checks that the query of each part of the client's share is sent once for both products.
#[test]
fn queries_are_shared() {
    let graph = graph();
    let products = graph.steps.iter();
    let products = products.filter_map(|step| Factors::of(&graph, step));
    let products: Vec<Factors> = products.filter(|factors| factors.lifted).collect();
    assert_eq!(products.len(), 10);
    for pair in products.chunks(2) {
        let id = pair[0].lifted().unwrap();
        assert_eq!(pair[1].lifted(), Some(id));
        let made = pair.iter();
        let made = made.map(|factors| exchanges(&graph, *factors, 1).unwrap());
        let made: Vec<_> = made.flatten().collect();
        let offers = made.iter().flat_map(|exchange| exchange.offers());
        let offers: Vec<_> = offers.map(|(mask, query)| (mask.source, query)).collect();
        let of = |source| offers.iter().filter(move |(from, _)| *from == source);
        for source in [MaskSource::Mask(id), MaskSource::Second(id)] {
            let queries: HashSet<_> = of(source).map(|(_, query)| query).collect();
            assert_eq!((of(source).count(), queries.len()), (2, 1));
        }
    }
}

/// Splits a matrix into shares: the client's, and the server's.
fn shared(of: &Share, rng: &mut Prg) -> [Share; 2] {
    let ours = Share::random(of.rows(), of.cols(), rng);
    let mut theirs = of.first_rows(of.rows());
    theirs.sub(&ours);
    [ours, theirs]
}

/// Checks the relation in the module's text, with shares of the mixed terms drawn instead of
/// computed.
#[test]
fn the_shares_add_up_to_the_product() {
    let graph = graph();
    let mut rng = Prg::new(&[3; 16]);
    let mut tried = 0;
    for step in &graph.steps {
        let Some(factors) = Factors::of(&graph, step).filter(|f| f.lifted) else {
            continue;
        };
        tried += 1;
        let squares = factors.left == factors.right;
        let draw = |id: ValueId, rng: &mut Prg| {
            let value = graph.value(id);
            Share::random(value.rows, value.cols, rng)
        };
        let [x_hat, r0, r1, u] = [(); 4].map(|()| draw(factors.left, &mut rng));
        let [g_hat, s, v] = [(); 3].map(|()| draw(factors.right, &mut rng));
        let (rows, cols) = (r0.rows(), r0.cols());
        let turned = Bits::random(rows * cols, &mut rng);
        let by = |a: &Share, b: &Share| {
            Share::from_fn(rows, cols, |t, c| {
                modulus::mul(a.get(t, c), b.get(t, c % b.cols()))
            })
        };
        // What the two exchanges compute.
        let (first, second) = match squares {
            true => (factors.product(1, &u, &r0), by(&r1, &u)),
            false => {
                let mut both = by(&u, &s);
                both.add(&by(&r0, &v));
                (both, by(&r1, &v))
            }
        };
        let [first, second] = [first, second].map(|mixed| shared(&mixed, &mut rng));
        let ([our_first, their_first], [our_second, their_second]) = (first, second);
        let answers = vec![our_first, our_second];
        let masks = match squares {
            true => (&r0, &r0),
            false => (&r0, &s),
        };
        let ours = client_terms(&graph, factors, masks, Some(&r1), answers);
        let theirs = server_offline(&graph, factors, vec![their_first, their_second]);
        let sizes = |kept: &[Share]| -> Vec<_> {
            kept.iter()
                .map(|share| (share.rows(), share.cols()))
                .collect()
        };
        let kept = kept(&graph, factors, step.output());
        assert_eq!(sizes(&ours), kept.client);
        assert_eq!(sizes(&theirs), kept.server);
        // Online.
        let r = Share::from_fn(rows, cols, |t, c| {
            let second = u64::from(turned.get(t * cols + c)) * r1.get(t, c);
            modulus::add(r0.get(t, c), second)
        });
        let minus = |a: &Share, b: &Share| {
            let mut out = a.first_rows(a.rows());
            out.sub(b);
            out
        };
        let plus = |a: &Share, b: &Share| {
            let mut out = a.first_rows(a.rows());
            out.add(b);
            out
        };
        let (d, e) = match squares {
            true => (minus(&x_hat, &u), minus(&x_hat, &u)),
            false => (minus(&x_hat, &u), minus(&g_hat, &v)),
        };
        let (x, y) = match squares {
            true => (plus(&x_hat, &r), plus(&x_hat, &r)),
            false => (plus(&x_hat, &r), plus(&g_hat, &s)),
        };
        let r = Arc::new(r);
        let product = ClientProduct {
            left: Arc::clone(&r),
            right: if squares { r } else { Arc::new(s) },
            constant: factors.constant(ours, Some(&turned)),
            negated: &[],
            mask: None,
        };
        let mut sum = product.reshare(factors, 1, (&d, &e), 0);
        let server = if squares { &x_hat } else { &g_hat };
        sum.add(&factors.product(1, &x_hat, server));
        sum.add(&factors.constant(theirs, Some(&turned)));
        assert_eq!(sum.data(), factors.product(1, &x, &y).data());
    }
    assert_eq!(tried, 10, "two for each norm");
}
