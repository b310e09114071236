//! A process on one core, and the memory that it took.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps this process on one of the cores that it may use: the first, the second and so on. Says
/// whether there was one to keep it on; with a single core the parties share it.
pub(super) fn pin(which: usize) -> bool {
    let Ok(allowed) = sched_getaffinity(None) else {
        return false;
    };
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|c| allowed.is_set(*c))
        .collect();
    if cores.len() < 2 {
        return false;
    }
    let mut one = CpuSet::new();
    one.set(cores[which % cores.len()]);
    sched_setaffinity(None, &one).is_ok()
}

/// Returns the most memory that this process has held at a time, in bytes; 0 where the system does
/// not tell.
pub(super) fn peak_rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    #[test]
    fn memory_is_told() {
        let before = super::peak_rss();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(super::peak_rss() >= before.max(block.len() as u64));
    }
}
