//! The relation, and what each side sees.

use super::*;
use crate::masks::tests::looks_uniform;
use primer_ring::prg::Prg;

const SIZES: Sizes = Sizes {
    tokens: 3,
    heads: 2,
    width: 5,
};
const SHIFT: u32 = 4;

fn minus(a: &Share, b: &Share) -> Share {
    let mut out = a.first_rows(a.rows());
    out.sub(b);
    out
}

/// The model's part: `W` and `u`.
struct Weights {
    weight: Matrix<i16>,
    bias: Share,
}

impl Weights {
    fn draw(rng: &mut Prg) -> Self {
        let Sizes { heads, width, .. } = SIZES;
        Self {
            weight: Matrix::from_fn(width, heads * width, |_, _| modulus::random(rng) as i16),
            bias: Share::random(1, heads * width, rng),
        }
    }

    /// Computes `x·W`.
    fn image(&self, x: &Share) -> Share {
        product_mod(x, &Packed::new(&self.weight), &mut Scratch::default()).into()
    }

    /// Computes `x·W + u`.
    fn biased(&self, x: &Share) -> Share {
        let mut image = self.image(x);
        image.add(&Share::from_fn(x.rows(), self.bias.cols(), |_, c| {
            self.bias.get(0, c)
        }));
        image
    }
}

/// Everything that is drawn, for one inference.
struct Drawn {
    /// The client's share of `x`, and its mask of the result.
    r: Arc<Share>,
    t: Arc<Share>,
    /// The server's masks: of its answers, and of what it opens.
    s: Share,
    parts: Share,
    v: Share,
    u: Share,
}

impl Drawn {
    fn new(rng: &mut Prg) -> Self {
        let Sizes {
            tokens,
            heads,
            width,
        } = SIZES;
        let mut draw = |(rows, cols)| Share::random(rows, cols, rng);
        Self {
            r: Arc::new(draw((tokens, width))),
            t: Arc::new(draw((heads * tokens, tokens))),
            s: draw(SIZES.image()),
            parts: draw(SIZES.mixed()),
            v: draw((tokens, width)),
            u: draw(SIZES.image()),
        }
    }
}

/// What each side receives in one run, and the server's share at the end.
struct Views {
    image: Share,
    parts: Share,
    e: Share,
    d: Share,
    reshared: Share,
    result: Share,
}

fn copy(share: &Share) -> Share {
    share.first_rows(share.rows())
}

/// Runs the protocol with its homomorphic products in the clear.
fn run(model: &Weights, x: &Share, drawn: &Drawn) -> Views {
    let mut image = model.image(&drawn.r);
    image.add(&drawn.s);
    let fresh = SIZES.fresh(&model.weight, &drawn.v, &drawn.u);
    let mut parts = Share::from(product_residues(&drawn.r, &fresh));
    parts.add(&drawn.parts);
    let answers = vec![copy(&image), copy(&parts)];
    let [constant, known] = client_offline(SIZES, &drawn.r, answers);

    let x_hat = minus(x, &drawn.r);
    let y_hat = minus(&model.biased(&x_hat), &drawn.s);
    let (e, d) = (minus(&x_hat, &drawn.v), minus(&y_hat, &drawn.u));
    let client = ClientMerged {
        input: Arc::clone(&drawn.r),
        image: known,
        constant,
        mask: Arc::clone(&drawn.t),
    };
    let reshared = client.reshare(SIZES, (&e, &d), SHIFT);
    let mut result = SIZES.scores(&y_hat, &x_hat);
    result.add(&correct(SIZES, &drawn.s, &drawn.v, &drawn.parts));
    result.shift(SHIFT);
    result.add(&reshared);
    Views {
        image,
        parts,
        e,
        d,
        reshared,
        result,
    }
}

#[test]
fn the_shares_add_up_to_the_scores() {
    let mut rng = Prg::new(&[3; 16]);
    for _ in 0..5 {
        let model = Weights::draw(&mut rng);
        let x = Share::random(SIZES.tokens, SIZES.width, &mut rng);
        let drawn = Drawn::new(&mut rng);
        let mut result = run(&model, &x, &drawn).result;
        result.add(&drawn.t);
        // Element by element, as the relation is written.
        let y = model.biased(&x);
        let (n, width) = (SIZES.tokens, SIZES.width);
        let expected = Share::from_fn(result.rows(), n, |r, key| {
            let (h, i) = (r / n, r % n);
            let sum = (0..width).fold(0, |sum, c| {
                modulus::add(sum, modulus::mul(y.get(i, h * width + c), x.get(key, c)))
            });
            modulus::mul(sum, 1 << SHIFT)
        });
        assert_eq!(result.data(), expected.data());
    }
}

/// Returns, over many runs on one input with one model, the first and the last element of what
/// `see` makes of a run. `draw` says which masks are new each time.
fn views<const N: usize>(
    draw: impl Fn(&mut Drawn, Drawn),
    see: impl Fn(&Weights, &Drawn, Views) -> [Share; N],
) -> [bool; N] {
    let mut fixed = Prg::new(&[8; 16]);
    let model = Weights::draw(&mut fixed);
    let x = Share::random(SIZES.tokens, SIZES.width, &mut fixed);
    let mut drawn = Drawn::new(&mut fixed);
    let mut rng = Prg::new(&[9; 16]);
    let mut seen = [const { Vec::new() }; N];
    for _ in 0..2000 {
        draw(&mut drawn, Drawn::new(&mut rng));
        let found = see(&model, &drawn, run(&model, &x, &drawn));
        for (seen, share) in seen.iter_mut().zip(found) {
            let data = share.data();
            seen.extend([data[0], data[data.len() - 1]]);
        }
    }
    seen.map(|values| looks_uniform(&values))
}

/// Checks that the server knows all of its own masks; the client's is the only new one.
#[test]
fn the_server_sees_uniform_shares() {
    let see = |_: &Weights, _: &Drawn, views: Views| [views.reshared];
    assert_eq!(views(|old, new| old.t = new.t, see), [true]);
    assert_eq!(views(|_, _| (), see), [false], "a missing mask is noticed");
}

/// Returns everything that the client could put together from its messages. Each line would be a
/// fixed function of the model, the input and the client's own mask, were it not for one mask of
/// the server's.
fn client_sees(model: &Weights, drawn: &Drawn, views: Views) -> [Share; 5] {
    let Views {
        image, parts, e, d, ..
    } = views;
    let mut y = copy(&image);
    y.add(&d);
    let (n, heads) = (SIZES.tokens, SIZES.heads);
    let mut by_query = SIZES.scores(&model.image(&drawn.r), &e);
    by_query.add(&Share::from_fn(heads * n, n, |r, j| {
        parts.get(r % n, (r / n) * n + j)
    }));
    let mut by_key = SIZES.scores(&y, &drawn.r);
    by_key.add(&Share::from_fn(heads * n, n, |r, j| {
        parts.get(j, (heads + r / n) * n + r % n)
    }));
    [image, e, y, by_query, by_key]
}

#[test]
fn the_client_sees_uniform_messages() {
    // S, V, U, and the two halves of the second answer's mask.
    let renew: [fn(&mut Drawn, &Drawn); 5] = [
        |old, new| old.s = copy(&new.s),
        |old, new| old.v = copy(&new.v),
        |old, new| old.u = copy(&new.u),
        |old, new| renew_half(&mut old.parts, &new.parts, 0),
        |old, new| renew_half(&mut old.parts, &new.parts, 1),
    ];
    let all = views(
        |old, new| renew.iter().for_each(|mask| mask(old, &new)),
        client_sees,
    );
    assert_eq!(all, [true; 5]);
    for missing in 0..5 {
        let others = renew.iter().enumerate().filter(|(i, _)| *i != missing);
        let others: Vec<_> = others.collect();
        let seen = views(
            |old, new| others.iter().for_each(|(_, mask)| mask(old, &new)),
            client_sees,
        );
        let mut expected = [true; 5];
        expected[missing] = false;
        assert_eq!(seen, expected, "mask {missing} is missing");
    }
}

fn renew_half(old: &mut Share, new: &Share, half: usize) {
    let width = old.cols() / 2;
    for r in 0..old.rows() {
        old.row_mut(r)[half * width..][..width]
            .copy_from_slice(&new.row(r)[half * width..][..width]);
    }
}
