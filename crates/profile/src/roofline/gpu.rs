//! The measured peaks of a GPU, if there is one and a compiler for it.

use super::{Peak, peak};
use karve_harness::outcome::ReasonResult;
use karve_os::error::WithContext;
use karve_os::process::{self, Command, StopFlag};
use karve_os::text::safe;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// The program that measures the GPU.
const PROGRAM: &str = include_str!("gpu.cu");
/// How long compiling and measuring may take.
const LIMIT: Duration = Duration::from_secs(120);
/// The most characters of a name.
const NAME_MAX: usize = 80;
/// The most lines that are read.
const LINES_MAX: usize = 10_000;

/// What was measured on a GPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GpuRoofline {
    /// Its name, as reported by the driver.
    pub name: String,
    /// Multiply-adds in fp32, in operations per second.
    pub fp32: Option<Peak>,
    /// Matrix products in fp16 with fp32 accumulation, by instructions that every tensor core has;
    /// newer ones also have faster instructions.
    pub fp16: Option<Peak>,
    /// Bytes read and written per second while memory is copied.
    pub copy: Option<Peak>,
}

/// Measures the first GPU, or says why that is impossible.
pub fn measure_gpu(stop: &StopFlag) -> ReasonResult<GpuRoofline> {
    if process::find_program("nvidia-smi").is_none() {
        return Err("nvidia-smi was not found, so no GPU was measured".to_owned().into());
    }
    if process::find_program("nvcc").is_none() {
        return Err("nvcc was not found, so the GPU was not measured".to_owned().into());
    }
    let dir = tempfile::tempdir().context(|| "cannot create a temporary directory".into())?;
    let source = dir.path().join("gpu.cu");
    fs::write(&source, PROGRAM).context(|| format!("cannot write {}", source.display()))?;
    let line = ["nvcc", "-O3", "-arch=native", "-o", "gpu", "gpu.cu"];
    let built = process::run(&Command::argv(line, dir.path()).limit(LIMIT), stop)?;
    if !built.exit.success() {
        let why = safe(built.stderr.text().trim(), 300);
        return Err(format!("nvcc failed: {why}").into());
    }
    let run = process::run(&Command::argv(["./gpu", "20"], dir.path()).limit(LIMIT), stop)?;
    if !run.exit.success() {
        let why = safe(run.stderr.text().trim(), 300);
        let how = run.exit.describe();
        return Err(format!("the GPU was not measured ({how}): {why}").into());
    }
    let gpu = parse_gpu(&run.stdout.text());
    Ok(gpu.ok_or_else(|| "the GPU printed no figures".to_owned())?)
}

fn parse_gpu(text: &str) -> Option<GpuRoofline> {
    let mut name = None;
    let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for line in text.lines().take(LINES_MAX) {
        match line.split_once(' ') {
            Some(("name", rest)) => name = Some(safe(rest.trim(), NAME_MAX)),
            Some((kind, rest)) => {
                let rate = rest.trim().parse::<f64>().ok();
                let rate = rate.filter(|rate| *rate > 0.0 && *rate < super::RATE_MAX);
                rates.entry(kind).or_default().extend(rate);
            }
            None => {}
        }
    }
    let of = |kind: &str| rates.get(kind).and_then(|rates| peak(rates));
    let gpu = GpuRoofline { name: name?, fp32: of("fp32"), fp16: of("fp16"), copy: of("copy") };
    (gpu.fp32.is_some() && gpu.copy.is_some()).then_some(gpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_all_runs_counts() {
        let text = "name NVIDIA H200\nfp32 5e13\nfp32 6e13\nfp32 nan\ncopy 4e12\ncopy -1\nodd\n";
        let gpu = parse_gpu(text).expect("a GPU");
        assert_eq!(gpu.name, "NVIDIA H200");
        assert_eq!(gpu.fp32.map(|peak| (peak.best, peak.runs)), Some((6e13, 2)));
        assert_eq!(gpu.copy.map(|peak| peak.best), Some(4e12));
        assert_eq!(gpu.fp16, None);
        assert_eq!(parse_gpu("name X\n"), None);
        assert_eq!(parse_gpu("fp32 1e13\ncopy 1e12\n"), None);
        assert_eq!(parse_gpu(""), None);
    }
}
