//! What a GPU reports: its clocks, its temperature, and why it is throttled.
//!
//! A tool takes tens of milliseconds, so it is queried only for a kernel that runs on a GPU, and
//! rarely. The library behind one of them takes microseconds, and is asked before every block.

use crate::gpu::{GpuReading, GpuSensors};
use crate::process::{self, Command, StopFlag};
use karve_core::charter::{Charter, GpuPlace, Target};
use karve_core::measurement::GpuConditions;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two queries while nothing is wrong: of a tool, and of the library.
const EVERY: Duration = Duration::from_secs(10);
const LIBRARY_EVERY: Duration = Duration::from_millis(20);

/// Time limit of a query.
const LIMIT: Duration = Duration::from_secs(10);

/// The reasons in the bit mask of `nvidia-smi`, and whether they are worth waiting for. An idle
/// GPU (bit 0) is not a reason; a busy one runs at its power cap all day.
const REASONS: [(u64, &str, ThrottleWait); 8] = [
    (0x2, "applications_clocks_setting", ThrottleWait::No),
    (0x4, "sw_power_cap", ThrottleWait::No),
    (0x8, "hw_slowdown", ThrottleWait::Yes),
    (0x10, "sync_boost", ThrottleWait::No),
    (0x20, "sw_thermal_slowdown", ThrottleWait::Yes),
    (0x40, "hw_thermal_slowdown", ThrottleWait::Yes),
    (0x80, "hw_power_brake_slowdown", ThrottleWait::Yes),
    (0x100, "display_clock_setting", ThrottleWait::No),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThrottleWait {
    Yes,
    No,
}

/// Whole words that mean that a target runs on a GPU.
const WORDS: [&str; 7] = ["gpu", "ck", "hip", "turbo", "flydsl", "hipblaslt", "metal"];

/// Prefixes of such words.
const BEGINNINGS: [&str; 18] = [
    "cuda", "triton", "nvidia", "rocm", "cutile", "cutlass", "tilelang", "geforce", "rtx", "gtx",
    "gfx", "radeon", "instinct", "mi2", "mi3", "h100", "h200", "b200",
];

/// The same for devices named by a letter and digits.
const MODELS: [&str; 9] = ["a10", "a30", "a40", "a100", "l4", "l40", "l40s", "t4", "v100"];

/// The tool that is queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GpuTool {
    /// With the name that recent drivers use for the reasons, or with the older one.
    Nvidia {
        reasons: &'static str,
    },
    Rocm,
    /// The library of the driver.
    Library,
}

/// Queries a GPU, at most every few seconds.
#[derive(Debug)]
pub struct GpuMonitor {
    tool: Option<GpuTool>,
    /// Which GPU, by its number.
    index: String,
    sensors: Option<GpuSensors>,
    last: Option<(Instant, GpuConditions)>,
}

impl GpuMonitor {
    /// For the GPU of a charter, if it targets one and a tool to query it is available.
    pub fn new(charter: &Charter) -> Self {
        let index = index_of(charter);
        let sensors = is_gpu(&charter.target).then(|| GpuSensors::open(index.parse().ok()?));
        let sensors = sensors.flatten();
        let tool = if !is_gpu(&charter.target) {
            None
        } else if sensors.is_some() {
            Some(GpuTool::Library)
        } else if process::find_program("nvidia-smi").is_some() {
            Some(GpuTool::Nvidia { reasons: "clocks_event_reasons" })
        } else {
            process::find_program("rocm-smi").map(|_| GpuTool::Rocm)
        };
        Self { tool, index, sensors, last: None }
    }

    /// The GPU's state, at most a few seconds old.
    pub fn look(&mut self, stop: &StopFlag) -> Option<&GpuConditions> {
        let every = if self.sensors.is_some() { LIBRARY_EVERY } else { EVERY };
        let fresh = self.last.as_ref().is_some_and(|l| l.0.elapsed() < every);
        if !fresh {
            self.ask(stop);
        }
        self.last.as_ref().map(|(_, said)| said)
    }

    /// Queries again.
    pub fn ask(&mut self, stop: &StopFlag) -> Option<&GpuConditions> {
        let said = match self.tool? {
            GpuTool::Rocm => {
                command_output(ROCM, stop).and_then(|text| parse_rocm(&text, &self.index))
            }
            GpuTool::Nvidia { reasons } => self.ask_nvidia(reasons, stop),
            GpuTool::Library => self.sensors.as_ref().map(|sensors| conditions(sensors.read())),
        };
        match said {
            Some(said) => self.last = Some((Instant::now(), said)),
            // A tool that failed once is not queried over and over.
            None => (self.tool, self.last) = (None, None),
        }
        self.last.as_ref().map(|(_, said)| said)
    }

    fn ask_nvidia(&mut self, reasons: &'static str, stop: &StopFlag) -> Option<GpuConditions> {
        let ask = |reasons| command_output(&nvidia_line(reasons, &self.index), stop);
        if let Some(text) = ask(reasons) {
            return parse_nvidia(&text);
        }
        // Older drivers use another name for the same mask.
        let reasons = "clocks_throttle_reasons";
        let said = parse_nvidia(&ask(reasons)?);
        self.tool = Some(GpuTool::Nvidia { reasons });
        said
    }
}

const ROCM: &str =
    "rocm-smi --showproductname --showuniqueid --showdriverversion --showclocks --showtemp --json";

fn nvidia_line(reasons: &str, index: &str) -> String {
    format!(
        "nvidia-smi --id={index} --format=csv,noheader,nounits --query-gpu=name,driver_version,\
         clocks.sm,clocks.mem,temperature.gpu,{reasons}.active,uuid"
    )
}

fn command_output(line: &str, stop: &StopFlag) -> Option<String> {
    let command = Command::shell(line, Path::new("/")).limit(LIMIT);
    let run = process::run(&command, stop).ok()?;
    run.exit.success().then(|| run.stdout.text().into_owned())
}

/// Whether a kernel runs on a GPU, according to the target in the charter.
pub fn is_gpu(target: &Target) -> bool {
    let said = format!("{} {} {}", target.device, target.backend, target.language).to_lowercase();
    said.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| {
        let begins = BEGINNINGS.iter().any(|start| word.starts_with(start));
        begins || WORDS.contains(&word) || MODELS.contains(&word)
    })
}

/// Whether the GPU of a charter is missing: its kernel runs on one here, but no tool reports on one
/// and there is no device file of a driver.
pub fn is_missing(charter: &Charter, stop: &StopFlag) -> bool {
    let is_due = charter.device.gpu == GpuPlace::Here && is_gpu(&charter.target);
    let has_file = || {
        let names = std::fs::read_dir("/dev").into_iter().flatten().flatten();
        names.map(|entry| entry.file_name()).any(|name| {
            let name = name.to_string_lossy();
            name == "kfd" || name == "nvidiactl"
        })
    };
    is_due && !has_file() && GpuMonitor::new(charter).look(stop).is_none()
}

/// The number of the GPU: the first that the commands may see.
fn index_of(charter: &Charter) -> String {
    let names = ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"];
    let set = names.iter().find_map(|name| {
        let own = charter.commands.env.get(*name).cloned();
        own.or_else(|| std::env::var(name).ok())
    });
    let first = set.as_deref().and_then(|list| list.split(',').next());
    let number = first.and_then(|first| first.trim().parse::<u32>().ok());
    number.unwrap_or(0).to_string()
}

/// The reasons for throttling that go away if one waits.
pub fn worth_waiting(said: &GpuConditions) -> Vec<&str> {
    let listed = |name: &&str| said.throttle.iter().any(|reason| reason == name);
    let waits = REASONS.iter().filter(|(_, _, wait)| *wait == ThrottleWait::Yes);
    waits.map(|(_, name, _)| *name).filter(listed).collect()
}

/// One line of `nvidia-smi` in CSV: name, driver, two clocks, temperature, mask of reasons, id.
fn parse_nvidia(text: &str) -> Option<GpuConditions> {
    let mut cells = text.lines().next()?.split(", ").map(str::trim);
    let name = cells.next().filter(|name| !name.is_empty())?.to_owned();
    let driver = cells.next().filter(|d| is_known(d)).map(str::to_owned);
    let mut number = || cells.next().and_then(|cell| cell.parse::<f64>().ok());
    let (sm, mem, temperature_c) = (number(), number(), number());
    let mask = cells.next().and_then(|cell| cell.strip_prefix("0x"));
    let mask = mask.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let id = cells.next().filter(|id| is_known(id)).map(str::to_owned);
    Some(GpuConditions {
        name,
        id,
        driver,
        sm_clock_mhz: sm.and_then(whole),
        mem_clock_mhz: mem.and_then(whole),
        temperature_c,
        power_w: None,
        throttle: reasons_in(mask.unwrap_or(0)),
    })
}

/// The reasons in a mask.
fn reasons_in(mask: u64) -> Vec<String> {
    let active = REASONS.iter().filter(|(bit, _, _)| mask & bit != 0);
    active.map(|(_, name, _)| (*name).to_owned()).collect()
}

fn conditions(reading: GpuReading) -> GpuConditions {
    let [sm_clock_mhz, mem_clock_mhz] = reading.clocks_mhz;
    GpuConditions {
        name: reading.name,
        id: reading.id,
        driver: reading.driver,
        sm_clock_mhz,
        mem_clock_mhz,
        temperature_c: reading.temperature_c.map(f64::from),
        power_w: reading.power_mw.map(|mw| f64::from(mw) / 1_000.0),
        throttle: reasons_in(reading.reasons.unwrap_or(0)),
    }
}

fn is_known(cell: &str) -> bool {
    !cell.is_empty() && !cell.starts_with('[') && cell != "N/A"
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(number: f64) -> Option<u32> {
    (0.0..1e6).contains(&number).then(|| number.round() as u32)
}

/// The JSON of `rocm-smi`, which warnings may precede. Keys differ a little between versions.
fn parse_rocm(text: &str, index: &str) -> Option<GpuConditions> {
    let all: Value = serde_json::from_str(text.get(text.find('{')?..)?.trim()).ok()?;
    let card = all.get(format!("card{index}"))?.as_object()?;
    let find = |wanted: &[&str]| {
        let matching = |wanted: &str| {
            let key = card.keys().find(|key| key.eq_ignore_ascii_case(wanted))?;
            card[key].as_str().filter(|value| is_known(value))
        };
        wanted.iter().find_map(|wanted| matching(wanted))
    };
    let mhz = |key: &str| {
        let text = find(&[key])?.trim_start_matches('(').to_lowercase();
        text.split("mhz").next()?.trim().parse().ok().and_then(whole)
    };
    let temperature = find(&[
        "Temperature (Sensor junction) (C)",
        "Temperature (Sensor edge) (C)",
        "Temperature (Sensor memory) (C)",
    ]);
    let driver = all.pointer("/system/Driver version").and_then(Value::as_str);
    Some(GpuConditions {
        name: find(&["Card series", "Device name", "Card model", "Card SKU"])?.to_owned(),
        id: find(&["Unique ID"]).map(str::to_owned),
        driver: driver.map(str::to_owned),
        sm_clock_mhz: mhz("sclk clock speed:"),
        mem_clock_mhz: mhz("mclk clock speed:"),
        temperature_c: temperature.and_then(|text| text.parse().ok()),
        power_w: None,
        throttle: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_gpu_is_not_held_down() {
        let said = parse_nvidia("NVIDIA H200, 580.159.04, 405, 3201, 38, 0x1, GPU-7c\n");
        let want = GpuConditions {
            name: "NVIDIA H200".into(),
            id: Some("GPU-7c".into()),
            driver: Some("580.159.04".into()),
            sm_clock_mhz: Some(405),
            mem_clock_mhz: Some(3201),
            temperature_c: Some(38.0),
            power_w: None,
            throttle: Vec::new(),
        };
        assert_eq!(said, Some(want));
    }

    #[test]
    fn heat_is_worth_waiting_for_and_a_power_cap_is_not() {
        let check = |mask: &str, listed: &[&str], waits: &[&str]| {
            let line = format!("NVIDIA A100-SXM4-80GB, 535.104.12, 1095, 1593, 84, {mask}");
            let said = parse_nvidia(&line).unwrap();
            assert_eq!(said.throttle, listed);
            assert_eq!(worth_waiting(&said), waits);
        };
        check("0x0000000000000004", &["sw_power_cap"], &[]);
        check("0x0000000000000000", &[], &[]);
        check(
            "0x0000000000000048",
            &["hw_slowdown", "hw_thermal_slowdown"],
            &["hw_slowdown", "hw_thermal_slowdown"],
        );
        check("0x0000000000000012", &["applications_clocks_setting", "sync_boost"], &[]);
        check("[N/A]", &[], &[]);
    }

    #[test]
    fn what_a_gpu_does_not_tell_is_left_out() {
        let said = parse_nvidia("Tesla T4, 470.82.01, [N/A], [N/A], 41, [Not Supported]").unwrap();
        assert_eq!((said.sm_clock_mhz, said.temperature_c), (None, Some(41.0)));
        assert_eq!(parse_nvidia(""), None);
    }

    #[test]
    fn rocm_is_read_whatever_its_version() {
        let old = "WARNING: AMD GPU device(s) is/are in a low-power state.\n\
            {\"card0\": {\"Temperature (Sensor edge) (c)\": \"41.0\", \
            \"Temperature (Sensor junction) (c)\": \"43.0\", \"mclk clock speed:\": \"(1600Mhz)\", \
            \"sclk clock speed:\": \"(1700Mhz)\", \"Card series\": \"AMD INSTINCT MI250X\", \
            \"Unique ID\": \"0x1a\"}, \"system\": {\"Driver version\": \"5.18.13\"}}";
        let said = parse_rocm(old, "0").unwrap();
        assert_eq!(said.name, "AMD INSTINCT MI250X");
        assert_eq!(said.driver.as_deref(), Some("5.18.13"));
        assert_eq!(said.id.as_deref(), Some("0x1a"));
        assert_eq!((said.sm_clock_mhz, said.mem_clock_mhz), (Some(1700), Some(1600)));
        assert_eq!(said.temperature_c, Some(43.0));
        let new = "{\"card1\": {\"Device Name\": \"AMD Instinct MI300X OAM\", \
            \"Temperature (Sensor edge) (C)\": \"N/A\", \
            \"Temperature (Sensor junction) (C)\": \"37.0\", \"sclk clock speed:\": \"(132Mhz)\"}}";
        let said = parse_rocm(new, "1").unwrap();
        assert_eq!((said.sm_clock_mhz, said.temperature_c), (Some(132), Some(37.0)));
        assert_eq!(parse_rocm(new, "0"), None);
        assert_eq!(parse_rocm("no devices", "0"), None);
    }

    #[test]
    fn a_target_says_whether_it_is_a_gpu() {
        let check = |device: &str, backend: &str, want: bool| {
            let target =
                Target { device: device.into(), backend: backend.into(), ..Target::default() };
            assert_eq!(is_gpu(&target), want, "{device} {backend}");
        };
        check("cpu", "c", false);
        check("cpu", "rust", false);
        check("AMD EPYC 9654", "c", false);
        check("Graviton 3", "c", false);
        check("cpu", "CK", true);
        check("cpu", "check", false);
        check("h200", "cute", true);
        check("MI300X", "asm", true);
        check("gfx942", "asm", true);
        check("cuda:1", "c", true);
        check("NVIDIA L40S", "c", true);
    }
}
