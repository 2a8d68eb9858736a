//! FlashInfer-Bench and SOL-ExecBench: a solution, a trace for each workload, and the SOL score.

use super::kernel::{KernelForm, KernelSource, kernel_of};
use super::metrics::{not_measured, pretty};
use super::submission::file_name;
use super::{CaseFigures, ExportFile, ExportResult, ExportSource};
use karve_os::clock;
use karve_os::error::{CommandError, Result};
use serde_json::{Map, Value as Json, json};

/// Facts about the host that are not versions of libraries.
const NOT_LIBRARIES: [&str; 7] =
    ["cpu", "cores", "container", "governor", "load", "pressure", "sandbox"];

/// The two suites; their formats differ in details.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TraceSuite {
    Flashinfer,
    Sol,
}

/// `solutions/` and `traces/`, as in a FlashInfer trace.
pub(super) fn flashinfer(source: &ExportSource<'_>) -> Result<ExportResult> {
    let solution = SolutionExport::of(source, TraceSuite::Flashinfer)?;
    let file = |path: String, text: String| ExportFile { path, text };
    let traces = solution.traces()?;
    Ok(ExportResult {
        files: vec![
            file(format!("solutions/{}.json", solution.name), pretty(&solution.json())),
            file(format!("traces/{}.jsonl", file_name(&solution.definition)), lines(&traces)),
        ],
        notes: solution.notes(),
    })
}

/// `solution.json`, `traces.jsonl` and `score.json`.
pub(super) fn sol_execbench(source: &ExportSource<'_>) -> Result<ExportResult> {
    let solution = SolutionExport::of(source, TraceSuite::Sol)?;
    let file = |path: &str, text: String| ExportFile { path: path.to_owned(), text };
    let traces = solution.traces()?;
    let mut notes = solution.notes();
    let mut files =
        vec![file("solution.json", pretty(&solution.json())), file("traces.jsonl", lines(&traces))];
    let scored = source.figures.cases.iter().filter(|case| case.sol_score().is_some()).count();
    if scored > 0 {
        files.push(file("score.json", pretty(&solution.scores())));
    }
    if scored < source.figures.cases.len() {
        let what = match scored {
            0 => "there is no score.json, because no SOL score",
            _ => "the SOL score of some workloads",
        };
        notes.push(format!(
            "{what} is known: declare contract.flops or contract.bytes, and see \"karve roofline\""
        ));
    }
    Ok(ExportResult { files, notes })
}

fn lines(values: &[Json]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// A kernel as a solution of a definition.
struct SolutionExport<'a> {
    source: &'a ExportSource<'a>,
    suite: TraceSuite,
    kernel: KernelSource,
    task: Json,
    definition: String,
    name: String,
}

impl<'a> SolutionExport<'a> {
    fn of(source: &'a ExportSource<'a>, suite: TraceSuite) -> Result<Self> {
        let title = match suite {
            TraceSuite::Flashinfer => "FlashInfer-Bench",
            TraceSuite::Sol => "SOL-ExecBench",
        };
        let kernel = kernel_of(source, title)?;
        if matches!(kernel.form, KernelForm::Models | KernelForm::Popcorn) {
            let message = format!("{title} calls a function, and {} has none", kernel.path);
            return Err(CommandError::usage(message)
                .hint("\"karve help export\" lists formats for models and trees of inputs"));
        }
        let task = source.task();
        let known = task["definition"].as_str().map(str::to_owned);
        let definition =
            source.names.definition.clone().or(known).unwrap_or(source.charter.target.op.clone());
        let commit: String = source.commit.chars().take(8).collect();
        let name = format!("{}_karve_{}_{commit}", file_name(&definition), source.figures.round);
        Ok(Self { source, suite, kernel, task, definition, name })
    }

    /// The solution.
    fn json(&self) -> Json {
        let entry = format!("{}::kernel_fn", self.kernel.path);
        let mut spec = json!({
            "target_hardware": [self.target()],
            "entry_point": entry,
            "dependencies": [],
            "destination_passing_style": self.kernel.form == KernelForm::Writing,
        });
        let language = self.language();
        match self.suite {
            TraceSuite::Flashinfer => spec["language"] = json!(language),
            TraceSuite::Sol => spec["languages"] = json!([language]),
        }
        let mut sources = vec![json!({ "path": self.kernel.path, "content": self.kernel.text })];
        // An empty `__init__.py` is not accepted, and not needed.
        let modules = self.kernel.modules.iter().filter_map(|path| {
            let text = self.source.files.get(path).filter(|text| !text.is_empty())?;
            Some(json!({ "path": path, "content": text }))
        });
        sources.extend(modules);
        let round = self.source.figures.round;
        json!({
            "name": self.name,
            "definition": self.definition,
            "author": self.source.names.author.as_deref().unwrap_or("karve"),
            "description": format!(
                "Version {round} of the karve campaign {}, commit {}.",
                self.source.charter.name, self.source.commit
            ),
            "spec": spec,
            "sources": sources,
        })
    }

    fn language(&self) -> &'static str {
        let uses = |words: &[&str]| {
            let own = [&self.kernel.path].into_iter().chain(&self.kernel.modules);
            let mut texts = own.filter_map(|path| self.source.files.get(path));
            texts.any(|text| words.iter().any(|word| text.contains(word)))
        };
        let triton = uses(&["import triton", "from triton"]);
        match self.suite {
            _ if triton => "triton",
            TraceSuite::Flashinfer if uses(&["import tilelang"]) => "tilelang",
            TraceSuite::Flashinfer => "python",
            TraceSuite::Sol if uses(&["cutlass.cute"]) => "cute_dsl",
            TraceSuite::Sol if uses(&["cuda.tile"]) => "cutile",
            TraceSuite::Sol => "pytorch",
        }
    }

    /// What was measured on, such as `NVIDIA_H200`.
    fn hardware(&self) -> String {
        let facts = self.source.campaign.preparation().map(|prepared| &prepared.environment.facts);
        let fact = |name: &str| facts.and_then(|facts| facts.get(name)).cloned();
        let is_gpu = self.source.charter.target.device != "cpu";
        let gpu = fact("nvidia").or_else(|| fact("amd")).filter(|_| is_gpu);
        let name = gpu.or_else(|| fact("cpu")).unwrap_or_else(|| "unknown".to_owned());
        let name =
            name.split(',').next().unwrap_or_default().replace("(R)", "").replace("(TM)", "");
        let name = name.split_whitespace().collect::<Vec<_>>().join("_");
        if name.is_empty() { "unknown".to_owned() } else { name }
    }

    fn target(&self) -> String {
        match self.suite {
            TraceSuite::Flashinfer => self.hardware(),
            TraceSuite::Sol if self.hardware().contains("B200") => "B200".to_owned(),
            TraceSuite::Sol => "LOCAL".to_owned(),
        }
    }

    /// One trace for each case.
    fn traces(&self) -> Result<Vec<Json>> {
        let figures = &self.source.figures;
        if figures.cases.is_empty() {
            return Err(not_measured(figures.round));
        }
        figures.cases.iter().map(|case| self.trace(case)).collect()
    }

    fn trace(&self, case: &CaseFigures) -> Result<Json> {
        let (Some(time), Some(baseline)) = (case.time_s, case.baseline_s) else {
            let metric = &self.source.charter.metric.name;
            return Err(CommandError::usage(format!(
                "{metric} is not a time, and a trace has one"
            ))
            .hint("declare [metric] unit = \"us\" in karve.toml, or contract.flops"));
        };
        let facts = self.source.campaign.preparation().map(|prepared| &prepared.environment.facts);
        let facts = facts.into_iter().flatten();
        let mut libs: Map<String, Json> = facts
            .filter(|(name, _)| !NOT_LIBRARIES.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect();
        libs.insert("karve".into(), env!("CARGO_PKG_VERSION").into());
        Ok(json!({
            "definition": self.definition,
            "workload": self.workload(case),
            "solution": self.name,
            "evaluation": {
                "status": "PASSED",
                "environment": { "hardware": self.hardware(), "libs": libs },
                "timestamp": clock::utc_second(self.source.at_s).replace(' ', "T") + "Z",
                "log": "reference_latency_ms is of the kernel that the campaign started from",
                "correctness": self.correctness(case),
                "performance": {
                    "latency_ms": time * 1e3,
                    "reference_latency_ms": baseline * 1e3,
                    "speedup_factor": case.estimate.ratio,
                },
            },
        }))
    }

    fn correctness(&self, case: &CaseFigures) -> Json {
        // Under commands the errors are not known: a number that is not one says so, where the
        // format has it.
        let error = |at: usize| match (case.errors, self.suite) {
            (Some(errors), _) if errors[at].is_finite() => json!(errors[at]),
            (_, TraceSuite::Flashinfer) => json!("NaN"),
            (_, TraceSuite::Sol) => json!(0.0),
        };
        json!({
            "max_absolute_error": error(0),
            "max_relative_error": error(1),
            "extra": { "karve": {
                "errors_measured": case.errors.is_some(),
                "speedup_over": "the kernel that the campaign started from",
                "speedup_low": case.estimate.low,
                "speedup_high": case.estimate.high,
                "blocks": self.source.figures.blocks,
                "baseline": self.source.figures.baseline,
                "speedup_over_baseline": self.source.figures.over_baseline,
            }},
        })
    }

    /// The workload as the task has it, or made of the parameters of the case.
    fn workload(&self, case: &CaseFigures) -> Json {
        let cases = self.task["cases"].as_array();
        let own = cases.into_iter().flatten().find(|own| own["name"] == case.name.as_str());
        if let Some(known) = own.map(|own| &own["workload"]).filter(|known| known.is_object()) {
            return known.clone();
        }
        let params = self.source.campaign.case(case.case).map(|case| case.params);
        let mut axes = Map::new();
        for (name, value) in params.into_iter().flatten() {
            if let Ok(number) = value.parse::<u64>() {
                axes.insert(name, number.into());
            }
        }
        let args = self.source.charter.contract.iter().flat_map(|contract| &contract.args);
        let inputs = args.filter_map(|arg| Some((arg.name.clone(), input_spec(&arg.kind)?)));
        json!({ "uuid": case.name, "axes": axes, "inputs": inputs.collect::<Map<_, _>>() })
    }

    fn scores(&self) -> Json {
        let figures = &self.source.figures;
        let ms = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e3);
        let of = |case: &CaseFigures| {
            json!({
                "workload": self.workload(case)["uuid"],
                "kernel_ms": ms(case.time_s),
                "baseline_ms": ms(case.baseline_s),
                "bound_ms": ms(case.bound_s),
                "score": case.sol_score(),
            })
        };
        json!({
            "definition": self.definition,
            "solution": self.name,
            "baseline": "the kernel that the campaign started from",
            "bound": "the measured roofline",
            "score": figures.sol_score(),
            "workloads": figures.cases.iter().map(of).collect::<Vec<_>>(),
        })
    }

    fn notes(&self) -> Vec<String> {
        let is_known =
            self.task["definition"].is_string() || self.source.names.definition.is_some();
        let note = format!(
            "no definition is known: it is called {}; name it with --definition NAME",
            self.definition
        );
        if is_known { Vec::new() } else { vec![note] }
    }
}

/// What an argument is in a workload; outputs are not in it.
fn input_spec(kind: &karve_numerics::contract::ArgKind) -> Option<Json> {
    use karve_numerics::contract::ArgKind;
    match kind {
        ArgKind::Scalar { value, .. } => {
            let number: Option<f64> = value.parse().ok();
            Some(number.map_or(
                json!({ "type": "random" }),
                |number| json!({ "type": "scalar", "value": number }),
            ))
        }
        ArgKind::Input { .. } | ArgKind::InOut { .. } => Some(json!({ "type": "random" })),
        ArgKind::Output { .. } => None,
    }
}
