//! Figures of this process and of this build, under the names that Prometheus' own clients use, so
//! that ready-made dashboards find them.
//!
//! They are read from `/proc` when the page is asked for; where that is missing, they are zero.

use super::metrics::{Count, Level};
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// What is told of the process.
#[derive(Default)]
pub(crate) struct Process {
    cpu: Count<f64>,
    resident: Level,
    threads: Level,
    open_fds: Level,
    max_fds: Level,
}

impl Process {
    /// Registers all of it, and what does not change.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let process = Self::default();
        let started = Level::default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        started.set(now.map_or(0, |since| since.as_secs()));
        registry.register(
            "process_start_time_seconds",
            "When the server was started, in seconds since 1970",
            started,
        );
        registry.register(
            "process_cpu_seconds_total",
            "Processor time in user and system",
            process.cpu.clone(),
        );
        registry.register(
            "process_resident_memory_bytes",
            "Resident memory",
            process.resident.clone(),
        );
        registry.register("process_threads", "Threads", process.threads.clone());
        registry.register(
            "process_open_fds",
            "Open file descriptors",
            process.open_fds.clone(),
        );
        registry.register(
            "process_max_fds",
            "File descriptors that may be open",
            process.max_fds.clone(),
        );
        let build = Family::<[(&str, &str); 3], Level>::default();
        build.get_or_create(&build_labels()).set(1);
        registry.register("primer_build_info", "This build; always 1", build);
        process
    }

    /// Reads the figures.
    pub(crate) fn refresh(&self) {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9;
        self.cpu.raise_to(seconds);
        let status = read("status");
        self.resident.set(number(&status, "VmRSS:") << 10);
        self.threads.set(number(&status, "Threads:"));
        let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        // One of them is this look.
        self.open_fds.set((open as u64).saturating_sub(1));
        self.max_fds.set(number(&read("limits"), "Max open files"));
    }
}

fn build_labels() -> [(&'static str, &'static str); 3] {
    let profile = if cfg!(debug_assertions) {
        "checked"
    } else {
        "release"
    };
    [
        ("version", env!("CARGO_PKG_VERSION")),
        ("profile", profile),
        ("arch", std::env::consts::ARCH),
    ]
}

fn read(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default()
}

/// Finds the first number after a name at the beginning of a line.
fn number(text: &str, name: &str) -> u64 {
    let rest = text.lines().find_map(|line| line.strip_prefix(name));
    let word = rest.and_then(|rest| rest.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}
