//! x
pub mod ciphertext;
pub mod error;
pub mod kernel;
pub mod keys;
pub mod ntt;
pub mod params;
pub mod poly;
pub mod prime;
pub mod sample;
pub mod simd;
pub mod slots;
pub mod switch;

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::{modulus, prg::Prg};
    #[test]
    fn rotates() {
        let params = params::Params::products();
        let mut rng = Prg::new(&[3; 16]);
        let sk = keys::SecretKey::generate(&params, &mut rng);
        let m: Vec<u64> = (0..8192).map(|_| modulus::random(&mut rng)).collect();
        let ct = ciphertext::SeededCiphertext::encrypt_slots(&sk, &m, &mut rng).expand(&params);
        assert!(ct.decrypt_slots(&sk).unwrap() == m);
        let gk = keys::GaloisKeys::generate(&sk, [1, -5, 4000], &mut rng);
        for r in [1, -5, 4000] {
            let t = switch::rotate(&gk, &ct, r).unwrap().decrypt_slots(&sk).unwrap();
            for i in 0..4096 {
                let j = (i as i32 + r).rem_euclid(4096) as usize;
                assert_eq!(t[i], m[j]);
                assert_eq!(t[4096 + i], m[4096 + j]);
            }
        }
    }
}
