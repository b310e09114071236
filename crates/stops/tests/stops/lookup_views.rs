//! What each party sees of a look-up: it is uniform for every index as long as the masks are.
//!
//! Every test of a distribution is made twice: on the protocol, where it must pass, and with a mask
//! set to zero, where it must fail. This shows that the test can fail.

use crate::lookup::gelu;
use crate::parties::{Damage, run, sound, stop_client, stop_server};
use primer_net::Medium;
use primer_ring::modulus::{self, P};
use primer_stops::{Lookups, Stop};
use primer_wire::kind::lookup::{CHOICES, DELTAS, PRODUCTS};

const BITS: u32 = 8;
const COUNT: usize = 20_000;
/// Bytes of a string.
const STRING: usize = 32;
const RESIDUES: usize = COUNT * 41 / 8;
const CELLS: usize = 32;

/// Computes the statistic of `CELLS` equally likely cells: 31 on average, with a deviation of 7.9.
fn chi_square(values: impl Iterator<Item = usize>) -> f64 {
    let mut counts = [0f64; CELLS];
    let mut total = 0.0;
    for value in values {
        counts[value] += 1.0;
        total += 1.0;
    }
    let expected = total / CELLS as f64;
    counts
        .iter()
        .map(|c| (c - expected).powi(2) / expected)
        .sum()
}

/// Passes a uniform sample except in one run of 10^8, and never a constant one.
pub(crate) fn is_uniform(values: impl Iterator<Item = usize>) -> bool {
    chi_square(values) < 100.0
}

pub(crate) fn cell_of_residue(residue: &u64) -> usize {
    (u128::from(*residue) * CELLS as u128 / u128::from(P)) as usize
}

/// What both parties receive online in look-ups of one and the same index with the same shares, and
/// the strings that they stored.
struct Views {
    deltas: Vec<u64>,
    products: Vec<u64>,
    choices: Vec<u64>,
    strings: [Vec<u8>; 2],
}

/// Runs such look-ups with the client's and the server's stored material changed.
fn views(damage: [Damage<'_>; 2], mask: impl Fn() -> u64 + Sync) -> Views {
    let stop = Lookups::new(&gelu(BITS, 3, [0; 2]), COUNT as u64).unwrap();
    let (server, client) = (vec![5; COUNT], vec![77; COUNT]);
    let masks: Vec<u64> = (0..COUNT).map(|_| mask()).collect();
    // The client's view of the true server.
    let ((deltas, products, ours), _) = run(
        Medium::Memory,
        |p| {
            let mut stored = Vec::new();
            stop_client(&stop).prepare(&mut p.client(), &client, &masks, &mut stored)?;
            let (mut deltas, mut products) = (vec![0; COUNT], vec![0; COUNT]);
            p.channel
                .recv_residues(DELTAS, BITS, 1 << BITS, &mut deltas)?;
            p.channel.recv_residues(PRODUCTS, 41, P, &mut products)?;
            stored.truncate(COUNT * STRING);
            Ok((deltas, products, stored))
        },
        |p| {
            let mut stored = Vec::new();
            stop_server(&stop).prepare(&mut p.server(), &mut stored)?;
            damage[1](&mut stored);
            stop_server(&stop).request(p.channel, &mut &stored[..], &server)?;
            Ok(p.channel.flush()?)
        },
    )
    .unwrap();
    // The server's view of the true client.
    let (_, (choices, theirs)) = run(
        Medium::Memory,
        |p| {
            let mut stored = Vec::new();
            stop_client(&stop).prepare(&mut p.client(), &client, &masks, &mut stored)?;
            damage[0](&mut stored);
            let pending = stop_client(&stop).listen(p.channel, &mut &stored[..], &[], &masks)?;
            pending.answer(p.channel)
        },
        |p| {
            let mut stored = Vec::new();
            stop_server(&stop).prepare(&mut p.server(), &mut stored)?;
            stop_server(&stop).request(p.channel, &mut &stored[..], &server)?;
            let mut choices = vec![0; 2 * COUNT];
            p.channel.recv_residues(CHOICES, 41, P, &mut choices)?;
            stored.truncate(COUNT * STRING);
            Ok((choices, stored))
        },
    )
    .unwrap();
    Views {
        deltas,
        products,
        choices,
        strings: [ours, theirs],
    }
}

impl Views {
    /// Returns the cells of one of the two messages of every look-up. Both have the same mask, so
    /// together they are not a sample of independent values.
    fn cells_of(&self, choice: usize) -> impl Iterator<Item = usize> {
        let of = self.choices[choice..].iter().step_by(2);
        of.map(cell_of_residue)
    }
}

fn random_mask() -> u64 {
    modulus::random(&mut primer_ring::prg::Prg::from_os())
}

#[test]
fn each_party_sees_uniform_messages() {
    let views = views([&sound; 2], random_mask);
    assert!(is_uniform(views.deltas.iter().map(|d| *d as usize % CELLS)));
    assert!(is_uniform(views.deltas.iter().map(|d| *d as usize / 8)));
    assert!(is_uniform(views.products.iter().map(cell_of_residue)));
    for choice in [0, 1] {
        assert!(is_uniform(views.cells_of(choice)), "choice {choice}");
    }
    for strings in &views.strings {
        assert!(is_uniform(
            strings.iter().map(|byte| usize::from(*byte) / 8)
        ));
    }
}

#[test]
fn without_offsets_the_shifts_show_the_share() {
    let zero = |stored: &mut Vec<u8>| stored[COUNT * STRING..][..COUNT].fill(0);
    let views = views([&sound, &zero], random_mask);
    assert!(!is_uniform(
        views.deltas.iter().map(|d| *d as usize % CELLS)
    ));
    assert!(views.deltas.iter().all(|delta| *delta == 5));
}

#[test]
fn without_pads_the_products_show_themselves() {
    // The server's pairs come after its offsets.
    let pads = COUNT * STRING + COUNT;
    let zero = |stored: &mut Vec<u8>| stored[pads..][..2 * RESIDUES].fill(0);
    let views = views([&sound, &zero], random_mask);
    assert!(!is_uniform(views.products.iter().map(cell_of_residue)));
}

/// Leaves out masks and pads: the server could then read what the client's string selects. It takes
/// the message of its choice, masked by the new mask, and cannot read the other, masked by a pad.
#[test]
fn without_masks_and_pads_the_choices_show_themselves() {
    let pads = COUNT * STRING + COUNT / 8;
    let zero = |stored: &mut Vec<u8>| stored[pads..][..3 * RESIDUES].fill(0);
    let bare = views([&zero, &sound], || 0);
    assert!(
        [0, 1]
            .iter()
            .all(|&choice| !is_uniform(bare.cells_of(choice)))
    );
    // Either of them is enough against an observer without the pads.
    for (damage, mask) in [
        (&zero as Damage<'_>, random_mask as fn() -> u64),
        (&sound, || 0),
    ] {
        let views = views([damage, &sound], mask);
        for choice in [0, 1] {
            assert!(is_uniform(views.cells_of(choice)), "choice {choice}");
        }
    }
}

/// Checks that the sign, which says which of the strings has more ones, is a fair coin over many
/// look-ups of the same index.
#[test]
fn the_sign_is_a_fair_coin() {
    let stop = Lookups::new(&gelu(BITS, 3, [0; 2]), COUNT as u64).unwrap();
    let client = vec![77; COUNT];
    let masks = vec![0; COUNT];
    let (ours, theirs) = run(
        Medium::Memory,
        |p| {
            let mut stored = Vec::new();
            stop_client(&stop).prepare(&mut p.client(), &client, &masks, &mut stored)?;
            Ok(stored)
        },
        |p| {
            let mut stored = Vec::new();
            stop_server(&stop).prepare(&mut p.server(), &mut stored)?;
            Ok(stored)
        },
    )
    .unwrap();
    assert_eq!(ours.len() as u64, stop.stored().client);
    let ones = |strings: &[u8]| -> Vec<i64> {
        let strings = strings[..COUNT * STRING].chunks_exact(STRING);
        let ones = strings.map(|s| s.iter().map(|b| i64::from(b.count_ones())).sum());
        ones.collect()
    };
    let signs = ones(&theirs).into_iter().zip(ones(&ours));
    let signs: Vec<i64> = signs.map(|(s, c)| s - c).collect();
    assert!(signs.iter().all(|sign| sign.abs() == 1));
    let sum: i64 = signs.iter().sum();
    // Six standard deviations of the sum of as many fair coins.
    assert!((sum as f64).abs() < 6.0 * (COUNT as f64).sqrt(), "{sum}");
}
