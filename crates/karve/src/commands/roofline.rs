//! `karve roofline`: the peaks of this host, and how close a project's cases come to them.

use super::check::CheckArgs;
use crate::config::Overrides;
use crate::project::ProjectArgs;
use crate::{session, ui};
use karve_core::chart::Stroke;
use karve_core::charter::Charter;
use karve_core::roofline::{ceiling, shown_cores};
use karve_core::score;
use karve_harness::outcome::split;
use karve_numerics::case::Case;
use karve_numerics::roof::{CallDemand, DevicePeaks};
use karve_os::device;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::process::StopFlag;
use karve_profile::devices::{DeviceCatalog, DeviceFigure, DeviceSpec};
use karve_profile::roofline;
use karve_profile::roofline::plot::{PlotPoint, RoofLine};
use karve_profile::roofline::text::{CaseCeiling, RooflineView};
use karve_profile::roofline::{
    Cores, GpuRoofline, HostRoofline, RooflineEffort, cases, plot, text,
};
use std::path::PathBuf;

/// How far a measured figure may exceed the data sheet: clocks vary.
const ABOVE_SHEET: f64 = 1.05;

/// Measure the peaks of this host, and show how close the project's cases come to them
///
/// Measures multiply-adds and bytes per second at every cache level, on one core and on all, and
/// on a GPU if nvcc is installed. With a karve.toml whose `[metric]` has work and bytes, shows each
/// case's operations per byte, its ceiling, and the share of it that the newest campaign reached.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve roofline                   this host, and the cases of this project
  karve roofline --time            also measure the worktree, for the share it reaches
  karve roofline --device H200 --dtype bf16
  karve roofline --quick --json --svg roofline.svg")]
pub struct RooflineArgs {
    /// Use the roof of this device from devices.toml instead of measuring this host
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// The element type to compute with: fp64, fp32, tf32, bf16, fp16, fp8 or fp4
    #[arg(long, value_name = "TYPE", default_value = "fp32", value_parser = parse_dtype)]
    dtype: DeviceFigure,
    /// Compare the cases with one core or with all [default: one, unless a case is faster]
    #[arg(long, value_name = "WHICH")]
    cores: Option<CoresArg>,
    /// Gate and measure the worktree, as "karve check" does
    #[arg(long)]
    time: bool,
    /// Measure for only a second or two; the figures are not saved
    #[arg(long)]
    quick: bool,
    /// Measure again even if figures of this host are saved
    #[arg(long)]
    fresh: bool,
    /// Write a plot to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The roof that `--cores` names.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum CoresArg {
    /// That of one core.
    One,
    /// That of all cores.
    All,
}

impl CoresArg {
    fn cores(self) -> Cores {
        match self {
            Self::One => Cores::One,
            Self::All => Cores::All,
        }
    }
}

fn parse_dtype(text: &str) -> std::result::Result<DeviceFigure, String> {
    let known = [
        DeviceFigure::Fp64,
        DeviceFigure::Fp32,
        DeviceFigure::Tf32,
        DeviceFigure::Bf16,
        DeviceFigure::Fp16,
        DeviceFigure::Fp8,
        DeviceFigure::Fp4,
    ];
    let found = DeviceFigure::by_name(text).filter(|figure| known.contains(figure));
    found.ok_or_else(|| "expected one of fp64, fp32, tf32, bf16, fp16, fp8, fp4".to_owned())
}

/// The cases of a project, with times in seconds where known.
struct ProjectCases {
    charter: Charter,
    cases: Vec<(usize, Case)>,
    times: cases::CaseTimes,
    whose: Option<String>,
}

/// A roof that cases are compared with.
enum RoofChoice<'a> {
    Host(&'a HostRoofline, Cores),
    Gpu(&'a GpuRoofline, DeviceFigure),
    Device(&'a DeviceSpec, DeviceFigure),
    Nothing,
}

impl RooflineArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let stop = StopFlag::new();
        session::watch_signals_at_once(&stop, "stopping")?;
        session::unless_stopped(&stop, self.run_until(place, &stop))
    }

    fn run_until(&self, place: &ProjectArgs, stop: &StopFlag) -> Result<()> {
        let config = place.config().ok();
        let devices = DeviceCatalog::load(config.as_deref().and_then(|path| path.parent()))?;
        // Report a wrong name before measuring anything.
        let wished = self.device.as_deref().map(|name| devices.named(name));
        let wished = wished.transpose()?;
        let project = match config {
            Some(_) => Some(self.project(place, stop)?),
            None => None,
        };
        let mut notes = Vec::new();
        // With a device given, nothing of this host is needed.
        let (host, fresh, gpu) = match wished {
            Some(_) => (None, false, None),
            None => {
                let (host, fresh) = self.host(stop)?;
                let gpu = with_gpu(&host, stop, &mut notes)?;
                (Some(host), fresh, gpu)
            }
        };
        let target = project.as_ref().map(|p| p.charter.target.device.as_str());
        let recognized = || {
            let gpu = gpu.as_ref().map(|gpu| gpu.name.as_str());
            let names = [target, gpu, host.as_ref().map(|host| host.cpu.as_str())];
            names.into_iter().flatten().find_map(|name| devices.find(name))
        };
        let device = wished.or_else(recognized);
        notes.extend(gpu.as_ref().and_then(|gpu| above_sheet(gpu, &devices)));
        let under = self.under(project.as_ref(), host.as_ref(), gpu.as_ref(), device);
        let cases = project.as_ref().map(|project| rows(project, &under));
        let cases = cases.unwrap_or_default();
        if let Some(project) = project.as_ref().filter(|_| cases.is_empty()) {
            notes.push(why_no_case(project, &under).to_owned());
        }
        let view = RooflineView {
            roof: under.name(),
            times: project.as_ref().and_then(|project| project.whose.clone()),
            cases,
            notes,
            gpu: gpu.clone(),
            device: device.cloned(),
            host: host.clone(),
            fresh,
        };
        self.write_svg(&view, &under)?;
        if self.json {
            ui::out_json(&view);
        } else {
            ui::out(&text::render(&view));
        }
        Ok(())
    }

    /// The peaks of this host: saved earlier, or measured now.
    fn host(&self, stop: &StopFlag) -> Result<(HostRoofline, bool)> {
        if let (false, false, Some(kept)) = (self.fresh, self.quick, roofline::read_cached()) {
            return Ok((kept, false));
        }
        let _lease = device::lease_of("cpu", "karve roofline", stop, &ui::notices())?;
        let effort = if self.quick { RooflineEffort::Quick } else { RooflineEffort::Usual };
        let measured = roofline::measure(effort, stop)?;
        if effort == RooflineEffort::Usual && roofline::keep(&measured).is_none() {
            ui::note("note: cannot save the figures; set XDG_CACHE_HOME to a writable directory");
        }
        Ok((measured, true))
    }

    fn project(&self, place: &ProjectArgs, stop: &StopFlag) -> Result<ProjectCases> {
        if self.time {
            let charter = place.load_in(&place.repo()?, &Overrides::default())?.charter;
            let findings = CheckArgs::of_all_cases().findings(place, stop)?;
            findings.expect_passed()?;
            let cases = visible_of(&charter);
            let mut times = cases::CaseTimes::new();
            for (index, case) in &cases {
                let reading = findings.cases.iter().find(|reading| reading.case == case.name);
                let seconds = |value| score::implied_seconds(&charter.metric, value, case);
                let seconds = reading.and_then(|reading| seconds(reading.median));
                times.extend(seconds.map(|seconds| (*index, seconds)));
            }
            let whose = Some("the worktree".to_owned());
            return Ok(ProjectCases { charter, cases, times, whose });
        }
        let charter = place.load(&Overrides::default())?.charter;
        let newest = place.open().ok().map(|opened| opened.campaign);
        // A campaign with other cases or another metric says nothing about these.
        let same = |own: &Charter| {
            let of = |charter: &Charter| {
                let metric = &charter.metric;
                (metric.name.clone(), metric.unit.clone(), metric.expr.clone())
            };
            own.cases == charter.cases && of(own) == of(&charter)
        };
        let newest = newest.filter(|campaign| campaign.charter().is_some_and(same));
        let cases = match &newest {
            Some(campaign) => cases::visible(campaign),
            None => visible_of(&charter),
        };
        let times = newest.as_ref().map(cases::of_incumbent).unwrap_or_default();
        let whose = newest.filter(|_| !times.is_empty()).map(|campaign| {
            let name = campaign.charter().map(|charter| charter.name.clone());
            format!("the best kernel of campaign {}", name.unwrap_or_default())
        });
        Ok(ProjectCases { charter, cases, times, whose })
    }

    /// Which roof to use.
    fn under<'a>(
        &self,
        project: Option<&ProjectCases>,
        host: Option<&'a HostRoofline>,
        gpu: Option<&'a GpuRoofline>,
        device: Option<&'a DeviceSpec>,
    ) -> RoofChoice<'a> {
        let Some(host) = host else {
            return device
                .map_or(RoofChoice::Nothing, |device| RoofChoice::Device(device, self.dtype));
        };
        let target = project.map_or("cpu", |project| project.charter.target.device.as_str());
        if target.eq_ignore_ascii_case("cpu") {
            let cores = self.cores.map(CoresArg::cores);
            let cores = cores.unwrap_or_else(|| cores_of(project, host));
            return RoofChoice::Host(host, cores);
        }
        match (gpu, device) {
            (Some(gpu), _) if matches!(self.dtype, DeviceFigure::Fp32 | DeviceFigure::Fp16) => {
                RoofChoice::Gpu(gpu, self.dtype)
            }
            (_, Some(device)) => RoofChoice::Device(device, self.dtype),
            (_, None) => RoofChoice::Nothing,
        }
    }

    fn write_svg(&self, view: &RooflineView, under: &RoofChoice<'_>) -> Result<()> {
        let Some(path) = &self.svg else {
            return Ok(());
        };
        let points: Vec<PlotPoint> = view.cases.iter().filter_map(point).collect();
        let svg = plot::render("Roofline", &under.lines(self.dtype, view), &points);
        let Some(svg) = svg else {
            return Err(CommandError::usage("there is no roof to draw")
                .hint("choose a device with known peaks with --device"));
        };
        std::fs::write(path, svg)
            .context(|| format!("cannot write {}", path.display()))
            .map_err(|error| error.hint("choose another file with --svg FILE"))
    }
}

fn visible_of(charter: &Charter) -> Vec<(usize, Case)> {
    let visible = charter.visible_cases().into_iter();
    visible.map(|index| (index, charter.cases[index].clone())).collect()
}

/// One core, unless the contract has more threads or a case is faster than one core can run.
fn cores_of(project: Option<&ProjectCases>, host: &HostRoofline) -> Cores {
    let Some(project) = project else {
        return Cores::All;
    };
    let ProjectCases { charter, cases, times, .. } = project;
    shown_cores(charter, cases, &host.roof(), &[times])
}

impl RoofChoice<'_> {
    fn peaks(&self, demand: CallDemand) -> DevicePeaks {
        match self {
            Self::Host(host, cores) => host.peaks(demand, *cores),
            Self::Gpu(gpu, dtype) => {
                let flops = if *dtype == DeviceFigure::Fp16 { gpu.fp16 } else { gpu.fp32 };
                DevicePeaks {
                    flops: flops.map(|peak| peak.best),
                    bytes: gpu.copy.map(|peak| peak.best),
                }
            }
            Self::Device(device, dtype) => device.peaks(*dtype),
            Self::Nothing => DevicePeaks::default(),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Host(_, cores) => format!("{} of this host, fp32", cores.name()),
            Self::Gpu(gpu, dtype) => format!("the measured {}, {}", gpu.name, dtype.name()),
            Self::Device(device, dtype) => format!("{}, {}", device.name, dtype.name()),
            Self::Nothing => "no roof".to_owned(),
        }
    }

    /// The roofs to draw: the one in use, and next to a measured one its data sheet roof.
    fn lines(&self, dtype: DeviceFigure, view: &RooflineView) -> Vec<RoofLine> {
        let line = |name: String, peaks: DevicePeaks, stroke: Stroke| {
            let (flops, per_s) = (peaks.flops?, peaks.bytes?);
            Some(RoofLine { name, flops, per_s, stroke })
        };
        let all = CallDemand::default();
        let mut lines = Vec::new();
        match self {
            Self::Host(host, cores) => {
                for level in host.levels.iter().rev() {
                    let peaks = DevicePeaks {
                        flops: Some(host.flops(*cores)),
                        bytes: Some(level.best(*cores)),
                    };
                    let name = format!("{}, {}", cores.name(), level.level);
                    lines.extend(line(name, peaks, Stroke::Solid));
                }
            }
            Self::Gpu(..) => lines.extend(line(self.name(), self.peaks(all), Stroke::Solid)),
            Self::Device(..) | Self::Nothing => {}
        }
        if let Some(device) = &view.device {
            let name = format!("{}, {}", device.name, dtype.name());
            lines.extend(line(name, device.peaks(dtype), Stroke::Dashed));
        }
        lines
    }
}

/// The cases whose ceiling is known.
fn rows(project: &ProjectCases, under: &RoofChoice<'_>) -> Vec<CaseCeiling> {
    let row = |(index, case): &(usize, Case)| {
        let demand = project.charter.demand(case)?;
        let time_s = project.times.get(index).copied();
        let level = match under {
            RoofChoice::Host(host, cores) => host.level_of(demand.bytes?, *cores),
            RoofChoice::Gpu(..) | RoofChoice::Device(..) | RoofChoice::Nothing => None,
        };
        Some(CaseCeiling {
            case: case.name.clone(),
            level: level.map(|level| level.level.clone()),
            ceiling: ceiling(demand, under.peaks(demand), time_s)?,
        })
    };
    project.cases.iter().filter_map(row).collect()
}

fn point(row: &CaseCeiling) -> Option<PlotPoint> {
    Some(PlotPoint {
        name: row.case.clone(),
        intensity: row.ceiling.intensity,
        reached: row.ceiling.reached?,
        sort: 1,
    })
}

fn why_no_case(project: &ProjectCases, under: &RoofChoice<'_>) -> &'static str {
    let known = |(_, case): &(usize, Case)| {
        let demand = project.charter.demand(case);
        demand.is_some_and(|demand| demand.work.is_some() && demand.bytes.is_some())
    };
    match under {
        RoofChoice::Nothing => {
            "the device of karve.toml was neither measured nor found; choose one with --device"
        }
        _ if !project.cases.iter().any(known) => {
            "no case is shown: [metric] of karve.toml needs work and bytes"
        }
        RoofChoice::Host(..) | RoofChoice::Gpu(..) | RoofChoice::Device(..) => {
            "no case is shown: the peaks for this element type are not known; see --dtype"
        }
    }
}

/// The GPU of this host, and notes on both.
fn with_gpu(
    host: &HostRoofline,
    stop: &StopFlag,
    notes: &mut Vec<String>,
) -> Result<Option<GpuRoofline>> {
    if host.was_disturbed() {
        let busy = "the host was busy while it was measured: its peaks may be too low";
        notes.push(format!("{busy}; --fresh measures again and keeps the better figures"));
    }
    if host.hid_cores() {
        let same = "all cores were no faster than one: other processes were using them";
        notes.push(format!("{same}; measure again with --fresh when the host is idle"));
    }
    match split(roofline::measure_gpu(stop))? {
        Ok(gpu) => Ok(Some(gpu)),
        Err(why) => {
            notes.push(why);
            Ok(None)
        }
    }
}

/// A measured figure above the data sheet is worth a note.
fn above_sheet(gpu: &GpuRoofline, devices: &DeviceCatalog) -> Option<String> {
    let device = devices.find(&gpu.name)?;
    let pairs = [
        (gpu.fp32, DeviceFigure::Fp32),
        (gpu.fp16, DeviceFigure::Fp16),
        (gpu.copy, DeviceFigure::MemoryRate),
    ];
    let above = pairs.into_iter().find(|(found, figure)| {
        let known = device.figure(*figure).map(|known| known.value * ABOVE_SHEET);
        found.is_some_and(|found| known.is_some_and(|known| found.best > known))
    });
    above.map(|(_, figure)| {
        format!("{} was measured above its data sheet; do not trust that figure", figure.name())
    })
}
