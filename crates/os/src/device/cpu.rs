//! Load, pressure, frequency and CPUs from the kernel: plain files, read in microseconds.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, fs};

/// The variable that names another file in place of the kernel's CPU pressure: a test that is not
/// about pressure must not wait for whoever else uses the machine.
const PRESSURE_FILE: &str = "KARVE_TEST_PRESSURE_FILE";

/// How often governor and frequency are read: some kernels take milliseconds to reply.
const CLOCK_EVERY: Duration = Duration::from_secs(1);

/// Where the readings come from; tests use their own files.
#[derive(Clone, Debug)]
pub struct CpuFiles {
    /// The load averages.
    pub load: PathBuf,
    /// The CPU pressure; absent on kernels that do not track it.
    pub pressure: PathBuf,
    /// One directory for each CPU.
    pub cpus: PathBuf,
}

impl Default for CpuFiles {
    fn default() -> Self {
        Self {
            load: "/proc/loadavg".into(),
            pressure: env::var_os(PRESSURE_FILE)
                .map_or_else(|| "/proc/pressure/cpu".into(), PathBuf::from),
            cpus: "/sys/devices/system/cpu".into(),
        }
    }
}

/// Pressure as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pressure {
    /// The share of the last ten seconds in which some process waited for a CPU, in percent.
    pub avg10: f64,
    /// Total such time since boot.
    pub total_us: u64,
}

impl CpuFiles {
    /// The load average of the last minute.
    pub fn load(&self) -> Option<f64> {
        let text = fs::read_to_string(&self.load).ok()?;
        text.split(' ').next()?.parse().ok()
    }

    /// The pressure now.
    pub fn pressure(&self) -> Option<Pressure> {
        parse_pressure(&fs::read_to_string(&self.pressure).ok()?)
    }
}

fn parse_pressure(text: &str) -> Option<Pressure> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let field = |name: &str| {
        let mut words = line.split(' ');
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    Some(Pressure {
        avg10: field("avg10")?.parse().ok()?,
        total_us: field("total")?.trim().parse().ok()?,
    })
}

/// Governor and frequency of a CPU, cached for a while.
#[derive(Debug)]
pub struct CpuClock {
    dir: PathBuf,
    read: Option<(Instant, Option<String>, Option<u32>)>,
}

impl CpuClock {
    /// The clock of a CPU.
    pub fn new(files: &CpuFiles, cpu: usize) -> Self {
        Self { dir: files.cpus.join(format!("cpu{cpu}/cpufreq")), read: None }
    }

    /// Governor and frequency in MHz, as far as the machine reports them.
    pub fn look(&mut self) -> (Option<String>, Option<u32>) {
        let read = match self.read.take() {
            Some(read) if read.0.elapsed() < CLOCK_EVERY => read,
            Some(_) | None => {
                let line = |name| fs::read_to_string(self.dir.join(name)).ok();
                let governor = line("scaling_governor").map(|text| text.trim().to_owned());
                let khz = line("scaling_cur_freq").and_then(|text| text.trim().parse().ok());
                (Instant::now(), governor, khz.map(|khz: u32| khz / 1000))
            }
        };
        let (_, governor, mhz) = self.read.insert(read);
        (governor.clone(), *mhz)
    }
}

/// The CPUs that karve may use.
pub fn allowed() -> Vec<usize> {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    parse_list(list.unwrap_or_default())
}

/// A list such as `0-3,8`.
fn parse_list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(first..=last)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_read_as_the_kernel_writes_it() {
        let text = "some avg10=12.34 avg60=2.05 avg300=1.60 total=5101495967\n\
            full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        let want = Pressure { avg10: 12.34, total_us: 5_101_495_967 };
        assert_eq!(parse_pressure(text), Some(want));
        for wrong in ["", "some", "full avg10=1 total=2", "some avg10=x total=1"] {
            assert_eq!(parse_pressure(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(parse_list("\t0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(parse_list("5"), [5]);
        assert!(parse_list("").is_empty());
        assert!(!allowed().is_empty());
    }

    #[test]
    fn the_clock_of_a_cpu_is_read_and_kept_for_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let files = CpuFiles { cpus: dir.path().into(), ..CpuFiles::default() };
        let home = dir.path().join("cpu3/cpufreq");
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("scaling_governor"), "schedutil\n").unwrap();
        fs::write(home.join("scaling_cur_freq"), "2400123\n").unwrap();
        let mut clock = CpuClock::new(&files, 3);
        let want = (Some("schedutil".to_owned()), Some(2400));
        assert_eq!(clock.look(), want);
        fs::remove_dir_all(&home).unwrap();
        assert_eq!(clock.look(), want);
        assert_eq!(CpuClock::new(&files, 4).look(), (None, None));
    }
}
