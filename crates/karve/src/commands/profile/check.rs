//! `karve profile --check`: checks a report against hyper-mla's profiler format.

use crate::ui;
use karve_core::profile::predicate::short;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;
use karve_os::text::safe;
use karve_profile::profilers::contract::{self, ConfigPlacement, ProfilerReport, StageRow};
use std::path::Path;

/// Most characters shown of a cell or a name.
const SHOWN_CHARS: usize = 120;

/// Reports that the file is valid and what was read, or everything that is wrong with it.
pub(super) fn run(here: &Path, name: &str, json: bool) -> Result<()> {
    let text = files::read_text(&here.join(name), contract::BYTES_MAX as u64)
        .context(|| format!("cannot read {name}"))
        .map_err(|error| {
            error.hint("name a readable Markdown file: karve profile --check REPORT.md")
        })?;
    let faults = match contract::parse(&text) {
        Ok(report) if json => {
            ui::out_json(&serde_json::json!({"valid": true, "report": report}));
            return Ok(());
        }
        Ok(report) => {
            print_report(&report);
            return Ok(());
        }
        Err(faults) => faults,
    };
    if json {
        ui::out_json(&serde_json::json!({"valid": false, "faults": faults}));
    } else {
        for fault in &faults {
            ui::outln(&format!("error     {}", safe(fault, 400)));
        }
    }
    Err(CommandError::usage(format!("{name} does not follow the profiler report format"))
        .hint("docs/profile.md shows a valid report; --form hyper-mla writes one"))
}

fn print_report(report: &ProfilerReport) {
    let shown = |text: &str| safe(text, SHOWN_CHARS);
    let of = |(name, value): &(String, String)| format!("{}={}", shown(name), shown(value));
    let configuration: Vec<String> = report.configuration.iter().map(of).collect();
    let place = match report.variant {
        ConfigPlacement::Title => "after the title",
        ConfigPlacement::Table => "in a table",
    };
    let (kernel, version) = (shown(&report.kernel), shown(&report.version));
    ui::outln(&format!("valid     {kernel} {version}"));
    ui::outln(&format!("for       {} ({place})", configuration.join(", ")));
    for stage in &report.stages {
        ui::outln(&format!("stage     {}: {}", shown(&stage.name), figures(stage)));
    }
    let class = report.bottleneck.name().to_lowercase();
    ui::outln(&format!("limit     {class}"));
    ui::outln(&format!("cause     {}", safe(&report.root_cause, 1_000)));
    for opportunity in &report.opportunities {
        let trigger: Vec<String> = opportunity.trigger.iter().map(of).collect();
        let (name, gain) = (shown(&opportunity.name), short(opportunity.gain_pct));
        ui::outln(&format!("try       {name}: {gain}% ({})", trigger.join(", ")));
    }
    for row in &report.versus {
        let [metric, before, after, change] =
            [&row.metric, &row.previous, &row.current, &row.change].map(|text| shown(text));
        ui::outln(&format!("moved     {metric}: {before} -> {after} ({change})"));
    }
}

/// What was measured of a stage.
fn figures(stage: &StageRow) -> String {
    let figures = [
        ("duration", stage.duration_us, " us"),
        ("matrix units", stage.tensor_pct, "%"),
        ("device memory", stage.dram_pct, "%"),
        ("occupancy", stage.occupancy_pct, "%"),
    ];
    let reported = figures.iter().filter_map(|(name, value, unit)| {
        let value = short((*value)?);
        Some(format!("{name} {value}{unit}, "))
    });
    let reported: String = reported.collect();
    let remark = match stage.remark.as_str() {
        "" => String::new(),
        remark => format!(" ({})", safe(remark, SHOWN_CHARS)),
    };
    format!("{reported}{}{remark}", stage.bottleneck.name().to_lowercase())
}
