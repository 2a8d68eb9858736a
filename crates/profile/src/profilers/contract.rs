//! The hyper-mla profiler contract, parsed and validated in both published variants: with the
//! configuration after the title, or in a separate table.
//!
//! ```text
//! ## Profile: mla v3 | b=32, s=1, t=4096
//! ### Configuration              the other variant, instead of the part after the bar
//! ### Stages                     a row for each stage
//! ### Bottleneck: Memory-bound   Memory, Compute or Latency; below it the root cause
//! ### Top 3 Opportunities        1. name — est. 40% gain — trigger: metric=value
//! ### vs Baseline                optional
//! ```
//!
//! The report is untrusted data: each value is checked, every error is reported with its line,
//! and missing values are not invented.

mod claims;
mod figures;
mod sections;

pub use claims::claims_of;
pub use figures::pairs;

use figures::{change_holds, duration, figure};
use karve_core::markdown::{MarkdownSection, NumberedLine};
use sections::{ReportErrors, is_called, quoted, rows, sections, table};
use serde::Serialize;

/// The largest report that is read, in bytes.
pub const BYTES_MAX: usize = 256 << 10;
/// The most rows of a table.
const ROWS_MAX: usize = 64;
/// The most characters of a cell, and of a paragraph.
const CELL_CHARS: usize = 400;
const TEXT_CHARS: usize = 2_000;
/// The most errors that are reported.
const ERRORS_MAX: usize = 20;
/// How many characters of a line an error quotes.
const QUOTE_CHARS: usize = 80;
/// The most sentences of a root cause.
const SENTENCES_MAX: usize = 2;
/// The most opportunities of a report.
pub const OPPORTUNITIES_MAX: usize = 3;
/// The highest utilization in percent; sampled values may be slightly above 100.
pub const PERCENT_MAX: f64 = 105.0;
/// The highest expected gain in percent.
const GAIN_PCT_MAX: f64 = 1_000.0;
/// Written where nothing was measured or reported.
pub const NONE: &str = "-";

/// The columns of the stages.
pub const STAGE_COLUMNS: [&str; 7] =
    ["Stage", "Duration (us)", "TC%", "DRAM%", "Occ%", "Bottleneck", "Key Issue"];
/// The columns of the comparison.
pub const VERSUS_COLUMNS: [&str; 4] = ["Metric", "Previous", "Current", "Change"];

/// The columns of the stages in one of the published copies: without a unit, which is then in
/// the cells.
const STAGE_COLUMNS_UNITLESS: [&str; 7] =
    ["Stage", "Duration", "TC%", "DRAM%", "Occ%", "Bottleneck", "Key Issue"];

/// The sections in their order.
const SECTIONS: [&str; 5] =
    ["Configuration", "Stages", "Bottleneck:", "Top 3 Opportunities", "vs Baseline"];

/// Where the configuration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigPlacement {
    /// In the title, after a bar.
    Title,
    /// In a table.
    Table,
}

/// What limits a kernel, in the terms of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum BottleneckClass {
    Memory,
    Compute,
    Latency,
}

/// A report that satisfies the contract.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfilerReport {
    /// The kernel.
    pub kernel: String,
    /// Its version.
    pub version: String,
    /// Where its configuration is.
    pub variant: ConfigPlacement,
    /// Problem parameters, such as `b`, `s` and `t`.
    pub configuration: Vec<(String, String)>,
    /// The stages, at least one.
    pub stages: Vec<StageRow>,
    /// What limits it.
    pub bottleneck: BottleneckClass,
    /// At most two sentences.
    pub root_cause: String,
    /// At most three.
    pub opportunities: Vec<ReportOpportunity>,
    /// The comparison with an earlier version, if there is one.
    pub versus: Vec<ComparisonRow>,
}

/// A row of the stages. Values that were not measured are `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRow {
    /// Its name.
    pub name: String,
    /// Microseconds.
    pub duration_us: Option<f64>,
    /// Utilization of the matrix units, in percent.
    pub tensor_pct: Option<f64>,
    /// Utilization of device memory, in percent.
    pub dram_pct: Option<f64>,
    /// Occupancy, in percent.
    pub occupancy_pct: Option<f64>,
    /// What limits it.
    pub bottleneck: BottleneckClass,
    /// Details about that, from parentheses.
    pub remark: String,
    /// What stands out.
    pub issue: String,
}

/// Something to try.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportOpportunity {
    /// What.
    pub name: String,
    /// The expected gain, in percent.
    pub gain_pct: f64,
    /// Metrics and their values.
    pub trigger: Vec<(String, String)>,
}

/// A row of the comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComparisonRow {
    /// What is compared.
    pub metric: String,
    /// Before.
    pub previous: String,
    /// After.
    pub current: String,
    /// The change.
    pub change: String,
}

impl BottleneckClass {
    /// Its name in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "Memory",
            Self::Compute => "Compute",
            Self::Latency => "Latency",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        let all = [Self::Memory, Self::Compute, Self::Latency];
        let plain = name.strip_suffix("-bound").unwrap_or(name);
        all.into_iter().find(|class| class.name().eq_ignore_ascii_case(plain))
    }
}

/// Parses a report, or lists everything that is wrong with it.
pub fn parse(text: &str) -> Result<ProfilerReport, Vec<String>> {
    if text.len() > BYTES_MAX {
        return Err(vec![format!("the report is larger than {BYTES_MAX} bytes")]);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut faults = ReportErrors::default();
    let n_lines = text.lines().count();
    if n_lines > 0 && !text.ends_with('\n') {
        faults.add(n_lines, "the last line has no newline, so the report may be truncated");
    }
    let (title, parts) = sections(text, &mut faults);
    let title = title.and_then(|title| take_title(title, &mut faults));
    let of = |name: &str| parts.iter().find(|part| is_called(part, name));
    let table = of("Configuration").map(|part| take_configuration(part, &mut faults));
    let stages = of("Stages").map(|part| take_stages(part, &mut faults));
    let limit = of("Bottleneck:").map(|part| take_bottleneck(part, &mut faults));
    let tries = of("Top 3 Opportunities").map(|part| take_opportunities(part, &mut faults));
    let versus = of("vs Baseline").map(|part| take_versus(part, &mut faults));
    for (there, name) in [
        (stages.is_some(), "### Stages"),
        (limit.is_some(), "### Bottleneck: <class>-bound"),
        (tries.is_some(), "### Top 3 Opportunities"),
    ] {
        if !there {
            faults.missing(&format!("the section \"{name}\""));
        }
    }
    let Some((kernel, version, behind)) = title else {
        return Err(faults.into_lines());
    };
    let (variant, configuration) = match (behind.is_empty(), table) {
        (true, Some(table)) => (ConfigPlacement::Table, table),
        (_, None) => (ConfigPlacement::Title, behind),
        (false, Some(_)) => {
            faults.add(1, "the configuration is both in the title and in a table");
            (ConfigPlacement::Title, behind)
        }
    };
    if configuration.is_empty() {
        faults.missing("the configuration, in the title or as \"### Configuration\",");
    }
    match (stages, limit.flatten(), tries) {
        (Some(stages), Some((bottleneck, root_cause)), Some(opportunities))
            if faults.list.is_empty() =>
        {
            Ok(ProfilerReport {
                kernel,
                version,
                variant,
                configuration,
                stages,
                bottleneck,
                root_cause,
                opportunities,
                versus: versus.unwrap_or_default(),
            })
        }
        _ => Err(faults.into_lines()),
    }
}

type ReportTitle = (String, String, Vec<(String, String)>);

/// `Profile: kernel version | b=32, s=1, t=4096`.
fn take_title(
    (number, heading): NumberedLine<'_>,
    faults: &mut ReportErrors,
) -> Option<ReportTitle> {
    let Some(title) = heading.strip_prefix("Profile:") else {
        faults.add(number, "the heading must be \"## Profile: <kernel> <version>\"");
        return None;
    };
    let (subject, behind) = match title.split_once('|') {
        Some((subject, behind)) => (subject, Some(behind)),
        None => (title, None),
    };
    let Some((kernel, version)) = subject.trim().rsplit_once(' ') else {
        faults.add(number, "the title must name a kernel and its version");
        return None;
    };
    let mut configuration = Vec::new();
    for pair in behind.into_iter().flat_map(|behind| behind.split(',')) {
        match pair.split_once('=') {
            Some((name, value)) => {
                add_parameter(number, name, value, &mut configuration, faults);
            }
            None => faults.add(number, format!("{} is not name=value", quoted(pair))),
        }
    }
    Some((kernel.trim().to_owned(), version.to_owned(), configuration))
}

fn add_parameter(
    number: usize,
    name: &str,
    value: &str,
    configuration: &mut Vec<(String, String)>,
    faults: &mut ReportErrors,
) {
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || value.is_empty() {
        faults.add(number, "a parameter has no name or no value");
    } else if configuration.iter().any(|(known, _)| known == name) {
        faults.add(number, format!("the parameter {} appears twice", quoted(name)));
    } else if configuration.len() < ROWS_MAX {
        configuration.push((name.to_owned(), value.to_owned()));
    } else {
        faults.add(number, format!("there are more than {ROWS_MAX} parameters"));
    }
}

/// A table with a column for each parameter, and one row.
fn take_configuration(
    part: &MarkdownSection<'_>,
    faults: &mut ReportErrors,
) -> Vec<(String, String)> {
    let mut configuration = Vec::new();
    let Some(((_, names), rows)) = table(part, faults) else {
        return configuration;
    };
    if let Some((number, _)) = rows.get(1) {
        faults.add(*number, "the configuration has more than one row");
    }
    for (number, values) in rows.iter().take(1) {
        for (name, value) in names.iter().zip(values) {
            add_parameter(*number, name, value, &mut configuration, faults);
        }
    }
    configuration
}

fn take_stages(part: &MarkdownSection<'_>, faults: &mut ReportErrors) -> Vec<StageRow> {
    let mut stages = Vec::new();
    let spellings = [STAGE_COLUMNS, STAGE_COLUMNS_UNITLESS];
    let (spelling, found) = rows(part, &spellings, faults);
    for (number, row) in found {
        let [name, time, tensor, dram, occupancy, bottleneck, issue] = row;
        let mut reported = |read: Result<Option<f64>, String>, column: &str| {
            read.unwrap_or_else(|why| {
                faults.add(number, format!("{column}: {why}"));
                None
            })
        };
        let column = spellings[spelling][1];
        let duration_us = reported(duration(&time, column), column);
        let tensor_pct = reported(figure(&tensor, PERCENT_MAX), "TC%");
        let dram_pct = reported(figure(&dram, PERCENT_MAX), "DRAM%");
        let occupancy_pct = reported(figure(&occupancy, PERCENT_MAX), "Occ%");
        let (class, remark) = match bottleneck.split_once('(') {
            Some((class, remark)) => (class.trim(), remark.trim_end_matches(')')),
            None => (bottleneck.as_str(), ""),
        };
        let Some(bottleneck) = BottleneckClass::by_name(class) else {
            faults.add(number, format!("the bottleneck {}", unknown(class)));
            continue;
        };
        stages.push(StageRow {
            name,
            duration_us,
            tensor_pct,
            dram_pct,
            occupancy_pct,
            bottleneck,
            remark: remark.to_owned(),
            issue,
        });
    }
    stages
}

fn unknown(class: &str) -> String {
    format!("{} is not one of Memory, Compute, Latency", quoted(class))
}

fn take_bottleneck(
    part: &MarkdownSection<'_>,
    faults: &mut ReportErrors,
) -> Option<(BottleneckClass, String)> {
    let name = part.heading.trim_start_matches("Bottleneck:").trim();
    let class = BottleneckClass::by_name(name).filter(|_| name.ends_with("-bound"));
    if class.is_none() {
        let what = unknown(name);
        faults.add(part.line, format!("the bottleneck {what}, followed by -bound"));
    }
    let words = part.body.iter().flat_map(|(_, line)| line.split_whitespace());
    let text = words.collect::<Vec<_>>().join(" ");
    let text = text.strip_prefix("Root cause:").unwrap_or(&text).trim();
    match sentences(text) {
        0 => faults.add(part.line, "the root cause is missing"),
        1..=SENTENCES_MAX => {}
        n => {
            let what = format!("the root cause has {n} sentences, the limit is {SENTENCES_MAX}");
            faults.add(part.line, what);
        }
    }
    if text.chars().count() > TEXT_CHARS {
        let what = format!("the root cause has more than {TEXT_CHARS} characters");
        faults.add(part.line, what);
    }
    Some((class?, text.to_owned()))
}

/// How many sentences: each ends with punctuation before a space, and the next does not start
/// with a lowercase letter.
fn sentences(text: &str) -> usize {
    let words: Vec<&str> = text.split_whitespace().collect();
    let begins = |word: &str| word.chars().next().is_some_and(|c| !c.is_lowercase());
    let ends =
        words.windows(2).filter(|pair| pair[0].ends_with(['.', '!', '?']) && begins(pair[1]));
    ends.count() + usize::from(!words.is_empty())
}

fn take_opportunities(
    part: &MarkdownSection<'_>,
    faults: &mut ReportErrors,
) -> Vec<ReportOpportunity> {
    let mut found = Vec::new();
    let lines = part.filled();
    if let [(_, line)] = lines.as_slice()
        && line.trim().eq_ignore_ascii_case("none")
    {
        return found;
    }
    if lines.is_empty() {
        faults.add(part.line, "no opportunity is named; write \"none\" if there is none");
    }
    for (place, (number, line)) in lines.into_iter().enumerate() {
        if place == OPPORTUNITIES_MAX {
            let what = format!("more than {OPPORTUNITIES_MAX} opportunities are named");
            faults.add(number, what);
            break;
        }
        match figures::opportunity(line.trim(), place + 1) {
            Ok(opportunity) => found.push(opportunity),
            Err(why) => faults.add(number, why),
        }
    }
    found
}

fn take_versus(part: &MarkdownSection<'_>, faults: &mut ReportErrors) -> Vec<ComparisonRow> {
    let mut versus = Vec::new();
    let (_, found) = rows(part, &[VERSUS_COLUMNS], faults);
    for (number, [metric, previous, current, change]) in found {
        if let Some(true_change) = change_holds(&previous, &current, &change) {
            let what = format!("from {previous} to {current} is {true_change}, not {change}");
            faults.add(number, what);
        }
        versus.push(ComparisonRow { metric, previous, current, change });
    }
    versus
}

#[cfg(test)]
mod tests;
