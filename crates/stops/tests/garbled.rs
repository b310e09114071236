//! Garbled stops between two parties: right results, declared bytes, stored material.

mod common;

use common::{run, share};
use primer_garble::stop::Stop;
use primer_net::Transport;
use primer_plan::function::{
    Activation, Function, Gelu, InverseRoot, Softmax, SoftmaxScratch, Tanh,
};
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_stops::{ClientMaterial, Cost, Job, ServerMaterial, StopsError};
use rand_core::Rng;
use std::io::{Read, Seek, Write};
use std::sync::Arc;

fn job(function: &Function, row: usize, instances: u64) -> Job {
    Job::new(Arc::new(Stop::new(function, row).unwrap()), instances).unwrap()
}

fn values(job: &Job, seed: u8) -> Vec<i64> {
    let mut prg = Prg::new(&[seed; 16]);
    let m = job.stop().ring_bits();
    (0..job.elements())
        .map(|_| (prg.next_u64() as i64) >> (64 - m) >> (prg.next_u32() % m))
        .collect()
}

/// Runs a job on values; the sum of both parties' results, and the bytes that passed.
fn results(transport: Transport, job: &Job, values: &[i64]) -> (Vec<i64>, Cost) {
    let mut prg = Prg::new(&[77; 16]);
    let (server_shares, client_shares) = share(values, job.stop().ring_bits(), &mut prg);
    let masks: Vec<u64> = (0..job.outputs())
        .map(|_| modulus::random(&mut prg))
        .collect();
    let (cost, results) = run(
        transport,
        |p| {
            let mut seen = p.channel.meter().report().total();
            let mut stored = Vec::new();
            let material = ClientMaterial::prepare(
                p.channel,
                &mut p.receiver,
                job,
                &client_shares,
                &mut stored,
            )?;
            assert_eq!(stored.len() as u64, job.stored_len());
            let (offline_up, offline_down) = p.passed(&mut seen);
            let mut source = &stored[..];
            material.finish(p.channel, &mut source, &masks)?;
            assert!(source.is_empty());
            let (online_up, online_down) = p.passed(&mut seen);
            Ok(Cost {
                offline_up,
                offline_down,
                online_up,
                online_down,
            })
        },
        |p| {
            let material = ServerMaterial::prepare(p.channel, &mut p.sender, job, &mut p.prg)?;
            material.finish(p.channel, &server_shares)
        },
    )
    .unwrap();
    let open = |(&a, &r): (&u64, &u64)| modulus::to_signed(modulus::add(a, r));
    (results.iter().zip(&masks).map(open).collect(), cost)
}

fn check(transport: Transport, job: &Job, reference: impl Fn(&[i64]) -> Vec<i64>) {
    let values = values(job, 3);
    let (got, cost) = results(transport, job, &values);
    let want: Vec<i64> = values
        .chunks(job.stop().row())
        .flat_map(reference)
        .collect();
    assert!(got == want, "{}", job.stop().name());
    assert_eq!(cost, job.cost(), "{}", job.stop().name());
}

#[test]
fn every_stop_over_memory() {
    let gelu = Gelu::new(Activation::GeluTanh, 16, 8, 9);
    for instances in [0, 1, 8, 100] {
        let job = job(&Function::Gelu(gelu.clone()), 1, instances);
        check(Transport::Memory, &job, |x| vec![gelu.apply(x[0])]);
    }
    let relu = Function::Relu {
        ring_bits: 13,
        fraction: 0,
    };
    check(Transport::Memory, &job(&relu, 1, 50), |x| vec![x[0].max(0)]);
    let root = InverseRoot::new(22, 1.0);
    let function = Function::InverseRoot(root.clone());
    check(Transport::Memory, &job(&function, 1, 30), |x| {
        vec![root.apply(x[0])]
    });
    let tanh = Tanh::new(16, 10);
    let function = Function::Tanh(tanh.clone());
    check(Transport::Memory, &job(&function, 1, 30), |x| {
        vec![tanh.apply(x[0])]
    });
    let softmax = Softmax::new(15, 5, 0, 0);
    let function = Function::Softmax(softmax.clone());
    for (row, instances) in [(1, 3), (7, 12), (30, 9)] {
        check(Transport::Memory, &job(&function, row, instances), |x| {
            let mut out = vec![0; x.len()];
            softmax.apply(x, &mut out, &mut SoftmaxScratch::default());
            out
        });
    }
}

#[test]
fn over_tcp_and_tls() {
    let gelu = Gelu::new(Activation::GeluErf, 16, 8, 9);
    let job = job(&Function::Gelu(gelu.clone()), 1, 500);
    for transport in [Transport::Tcp, Transport::Tls] {
        check(transport, &job, |x| vec![gelu.apply(x[0])]);
    }
}

#[test]
fn jobs_of_many_chunks() {
    // 16-bit ReLU: 65,536 elements fill a chunk of the offline phase.
    let relu = Function::Relu {
        ring_bits: 16,
        fraction: 0,
    };
    let job = job(&relu, 1, 2 * 65_536 + 1003);
    check(Transport::Memory, &job, |x| vec![x[0].max(0)]);
}

#[test]
fn argmax_is_shown_to_the_client_only() {
    let stop = Arc::new(Stop::argmax(16, 3).unwrap());
    let job = Job::new(stop, 20).unwrap();
    let values = values(&job, 9);
    let (server, client) = share(&values, 16, &mut Prg::new(&[1; 16]));
    let (positions, nothing) = run(
        Transport::Memory,
        |p| {
            let mut stored = Vec::new();
            let material =
                ClientMaterial::prepare(p.channel, &mut p.receiver, &job, &client, &mut stored)?;
            let mut seen = p.channel.meter().report().total();
            let positions = material.show(p.channel, &mut &stored[..])?;
            assert_eq!(
                p.passed(&mut seen),
                (job.cost().online_up, job.cost().online_down)
            );
            Ok(positions)
        },
        |p| {
            let material = ServerMaterial::prepare(p.channel, &mut p.sender, &job, &mut p.prg)?;
            material.finish(p.channel, &server)
        },
    )
    .unwrap();
    assert!(nothing.is_empty());
    for (row, position) in values.chunks(3).zip(positions) {
        let best = *row.iter().max().unwrap();
        assert_eq!(row.iter().position(|&x| x == best), Some(position));
    }
}

#[test]
fn material_survives_storage() {
    let gelu = Gelu::new(Activation::GeluErf, 16, 8, 9);
    let job = job(&Function::Gelu(gelu.clone()), 1, 40);
    let values = values(&job, 4);
    let (server, client) = share(&values, 16, &mut Prg::new(&[2; 16]));
    let masks = vec![12_345; 40];
    let ((), results) = run(
        Transport::Memory,
        |p| {
            let mut file = tempfile::tempfile().unwrap();
            ClientMaterial::prepare(p.channel, &mut p.receiver, &job, &client, &mut file)?;
            file.flush().unwrap();
            file.rewind().unwrap();
            ClientMaterial::stored(&job).finish(p.channel, &mut file, &masks)?;
            assert_eq!(file.read(&mut [0]).unwrap(), 0);
            Ok(())
        },
        |p| {
            let material = ServerMaterial::prepare(p.channel, &mut p.sender, &job, &mut p.prg)?;
            let material = ServerMaterial::from_bytes(&job, &material.into_bytes())?;
            material.finish(p.channel, &server)
        },
    )
    .unwrap();
    for (result, x) in results.iter().zip(values) {
        assert_eq!(
            modulus::to_signed(modulus::add(*result, 12_345)),
            gelu.apply(x)
        );
    }
    let wrong = ServerMaterial::from_bytes(&job, &[0; 31]).err().unwrap();
    assert_eq!(
        wrong.to_string(),
        "the material of GELU has 31 bytes instead of 352"
    );
}

#[test]
fn results_look_random_to_both() {
    // The same value with a mask of zero: what the client sends differs run by run, because of A.
    let relu = Function::Relu {
        ring_bits: 8,
        fraction: 0,
    };
    let job = job(&relu, 1, 64);
    let shares = vec![5; 64];
    let (sent, _) = run(
        Transport::Memory,
        |p| {
            let mut stored = Vec::new();
            let c =
                ClientMaterial::prepare(p.channel, &mut p.receiver, &job, &shares, &mut stored)?;
            c.finish(p.channel, &mut &stored[..], &[0; 64])?;
            Ok(stored)
        },
        |p| {
            let material = ServerMaterial::prepare(p.channel, &mut p.sender, &job, &mut p.prg)?;
            let bytes = material.into_bytes();
            let mut masks: Vec<&[u8]> = bytes[32..].chunks(8).collect();
            masks.sort_unstable();
            masks.dedup();
            assert_eq!(masks.len(), 64);
            ServerMaterial::from_bytes(&job, &bytes)?.finish(p.channel, &shares)
        },
    )
    .unwrap();
    // Active labels of equal bits differ too.
    let labels: Vec<&[u8]> = sent[..64 * 8 * 16].chunks(16).collect();
    let mut distinct = labels.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), labels.len());
}

#[test]
fn impossible_jobs_are_refused_before_anything_is_allocated() {
    let relu = Function::Relu {
        ring_bits: 16,
        fraction: 0,
    };
    let stop = Arc::new(Stop::new(&relu, 1).unwrap());
    for instances in [1 << 60, u64::MAX, 1 << 34] {
        let error = Job::new(Arc::clone(&stop), instances).unwrap_err();
        assert!(matches!(error, StopsError::Limit { .. }), "{error}");
    }
    let error = Job::new(stop, 1 << 60).unwrap_err().to_string();
    let gates = 15u128 << 60;
    let want = format!(
        "{} instances of ReLU are {gates} AND gates, the limit is 8589934592",
        1u64 << 60
    );
    assert_eq!(error, want);
}
