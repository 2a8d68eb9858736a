//! FlashInfer-Bench and SOL-ExecBench: a definition with typed inputs and outputs over axes, a
//! reference in Python, and workloads. They map onto a contract almost one to one.

mod axes;
mod format;

use super::draft::{
    CaseDraft, CommandsDraft, ContractDraft, JudgedBy, ProjectDraft, ProjectPart, arg, draw_value,
    task_file, tolerance, tolerance_json,
};
use super::names::{dir_of, param_name, plain_name};
use super::{FoundTask, ImportOptions, TaskFiles};
use axes::Axes;
use format::{TensorSpec, TraceDefinition, TraceInput, TraceWorkload, element_type};
use karve_numerics::draw::Draw;
use karve_numerics::tensor::Dtype;
use serde_json::{Value as Json, json};
use toml::{Table, Value};

/// Most workloads of a definition that become cases.
const CASES_MAX: usize = 400;

/// How close results must be where nothing else is said.
const TOLERANCE: f64 = 1e-2;

/// The tasks of a FlashInfer trace: definitions anywhere, workloads by the name of a definition.
pub(super) fn find_flashinfer(files: &TaskFiles, options: &ImportOptions) -> Vec<FoundTask> {
    let is_definition =
        |path: &str| path.starts_with("definitions/") || path.contains("/definitions/");
    let definitions = files.ending(".json").filter(|(path, _)| is_definition(path));
    let mut found = Vec::new();
    for (path, text) in definitions {
        let name = super::names::stem_of(path).to_owned();
        let draft = format::definition(text).and_then(|definition| {
            let workloads = format::wrapped_workloads(files, &definition.name)?;
            // Paths of tensors are relative to the root of the trace.
            let root = path.split("definitions/").next().unwrap_or_default();
            TraceTask { definition, workloads, root, rule: "both" }.draft(files, options)
        });
        found.push(FoundTask { title: format!("`{path}` of FlashInfer-Bench."), draft, name });
    }
    found
}

/// The tasks of SOL-ExecBench: a directory for each.
pub(super) fn find_sol(files: &TaskFiles, options: &ImportOptions) -> Vec<FoundTask> {
    let definitions = files.ending("definition.json");
    let mut found = Vec::new();
    for (path, text) in definitions {
        let dir = dir_of(path);
        let beside = |name: &str| super::names::joined(dir, name);
        let draft = format::definition(text).and_then(|mut definition| {
            if let Some(reference) = files.text(&beside("reference.py")) {
                definition.reference = reference.to_owned();
            }
            let workloads = files.text(&beside("workload.jsonl"));
            let workloads = workloads.ok_or("there is no workload.jsonl beside it")?;
            let workloads = format::plain_workloads(workloads)?;
            TraceTask { definition, workloads, root: dir, rule: "sum" }.draft(files, options)
        });
        let name = dir.rsplit('/').next().unwrap_or(dir).to_owned();
        found.push(FoundTask { title: format!("`{path}` of SOL-ExecBench."), draft, name });
    }
    found
}

/// A definition with its workloads.
struct TraceTask<'a> {
    definition: TraceDefinition,
    workloads: Vec<TraceWorkload>,
    /// What the paths of tensors are relative to.
    root: &'a str,
    /// How an absolute and a relative tolerance are combined.
    rule: &'static str,
}

impl TraceTask<'_> {
    fn draft(mut self, files: &TaskFiles, options: &ImportOptions) -> Result<ProjectDraft, String> {
        if self.workloads.is_empty() {
            return Err("it has no workloads".into());
        }
        if !self.definition.reference.contains("def run") {
            return Err("its reference does not define run".into());
        }
        let mut notes = Vec::new();
        if self.workloads.len() > CASES_MAX {
            let n = self.workloads.len();
            notes.push(format!("Only {CASES_MAX} of its {n} workloads became cases."));
            self.workloads.truncate(CASES_MAX);
        }
        let axes = Axes::of(&self.definition)?;
        let [absolute, relative] = self.tolerance(&mut notes);
        let mut draft = match self.obstacle() {
            None => self.contract(&axes, [absolute, relative])?,
            Some(what) => {
                notes.push(format!(
                    "No contract: {what}. {} makes the inputs in a process of its own.",
                    super::draft::RUN_PATH
                ));
                self.commands(&axes, [absolute, relative], options, files)?
            }
        };
        draft.op = self.definition.op_type.clone().unwrap_or_else(|| draft.name.clone());
        draft.constraints.clone_from(&self.definition.constraints);
        draft.editable = vec!["kernel.py".into()];
        notes.push(
            "The kernel returns its outputs. For a solution in destination-passing style write \
             outputs = \"arguments\" in [contract]."
                .into(),
        );
        draft.notes = notes;
        Ok(draft)
    }

    /// The strictest tolerance of the workloads.
    fn tolerance(&self, notes: &mut Vec<String>) -> [f64; 2] {
        let of = |workload: &TraceWorkload| {
            let own = workload.tolerance.as_ref();
            let figure = |of: Option<f64>| of.filter(|v| *v >= 0.0).unwrap_or(TOLERANCE);
            [figure(own.and_then(|t| t.max_atol)), figure(own.and_then(|t| t.max_rtol))]
        };
        let all: Vec<[f64; 2]> = self.workloads.iter().map(of).collect();
        let least = |at: usize| all.iter().map(|one| one[at]).fold(f64::MAX, f64::min);
        let found = [least(0), least(1)];
        if all.iter().any(|one| *one != found) {
            notes.push("Its workloads have different tolerances: the strictest counts.".into());
        }
        notes.push(format!(
            "The task's tolerance is {:e} and {:e} * |reference|{}; karve asks for their sum or \
             less in every element, and compares the error with the incumbent's.",
            found[0],
            found[1],
            if self.rule == "both" { ", of which one suffices" } else { " together" }
        ));
        let matched = |w: &TraceWorkload| w.tolerance.as_ref()?.required_matched_ratio;
        if self.rule == "sum" || self.workloads.iter().any(|w| matched(w).is_some()) {
            notes.push("The task lets a share of all elements be off; karve does not.".into());
        }
        found
    }

    /// Why karve cannot draw the inputs itself, if it cannot.
    fn obstacle(&self) -> Option<String> {
        let tensors = self.definition.inputs.0.iter().chain(&self.definition.outputs.0);
        for (name, spec) in tensors.clone() {
            if spec.shape.as_ref().is_some_and(Vec::is_empty) {
                return Some(format!("`{name}` is a tensor without dimensions"));
            }
            if element_type(&spec.dtype).is_none() {
                return Some(format!("karve has no type for `{name}`, {}", spec.dtype));
            }
        }
        if let Some((name, _)) = self.definition.outputs.0.iter().find(|(_, s)| s.shape.is_none()) {
            return Some(format!("the result `{name}` is a number"));
        }
        if tensors.count() > 24 {
            return Some("it has more than 24 inputs and outputs".into());
        }
        let given = self.workloads.iter().flat_map(|workload| &workload.inputs.0);
        for (name, input) in given {
            match input {
                TraceInput::Random => {}
                TraceInput::Scalar { value } if value.is_number() || value.is_boolean() => {}
                TraceInput::Scalar { .. } => return Some(format!("`{name}` is not a number")),
                TraceInput::Safetensors { .. } => {
                    return Some(format!("`{name}` comes from a file"));
                }
                TraceInput::Custom => {
                    return Some(format!("`{name}` is made by the task's own code"));
                }
            }
        }
        None
    }

    fn contract(
        &self,
        axes: &Axes,
        [absolute, relative]: [f64; 2],
    ) -> Result<ProjectDraft, String> {
        let mut args = Vec::new();
        for (name, spec) in &self.definition.inputs.0 {
            args.push(input_arg(name, spec, axes)?);
        }
        for (name, spec) in &self.definition.outputs.0 {
            args.push(tensor_arg(name, "output", spec, axes)?);
        }
        let mut keys = vec![("tolerance", tolerance(absolute, relative))];
        if !self.definition.constraints.is_empty() {
            keys.push(("shapes", Value::String("listed".into())));
        }
        keys.extend(self.work(axes));
        let judged = JudgedBy::Contract(ContractDraft {
            python: "kernel.py".into(),
            keys,
            args,
            reference: "reference.py".into(),
            is_native: true,
        });
        let cases = self.cases(axes)?;
        let listed: Json = self.listed(axes, &cases)?;
        let task = self.task_json(listed, [absolute, relative], "cuda");
        let mut draft = self.project(judged, cases);
        draft.files.push(task_file(&task));
        Ok(draft)
    }

    fn commands(
        &self,
        axes: &Axes,
        tolerances: [f64; 2],
        options: &ImportOptions,
        files: &TaskFiles,
    ) -> Result<ProjectDraft, String> {
        let mut cases = self.cases(axes)?;
        let mut listed = self.listed(axes, &cases)?;
        let mut reads = Vec::new();
        for input in listed.as_array_mut().into_iter().flatten() {
            let inputs = input["inputs"].as_object_mut();
            for one in inputs.into_iter().flat_map(|inputs| inputs.values_mut()) {
                if let Some(path) = one.get("path").and_then(Json::as_str) {
                    let path = super::names::joined(self.root, path);
                    if path.starts_with("..") || path.starts_with('/') {
                        return Err(format!("its tensors are outside the trace: {path}"));
                    }
                    let full = format!("{}/{path}", files.root);
                    one["path"] = json!(full);
                    reads.push(full);
                }
            }
        }
        reads.sort_unstable();
        reads.dedup();
        let task = self.task_json(listed, tolerances, options.device_name());
        let mut draft = ProjectDraft::by_script(&plain_name(&self.definition.name), options, &task);
        if let JudgedBy::Commands(CommandsDraft { reads: own, .. }) = &mut draft.judged {
            *own = reads;
        }
        cases.iter_mut().for_each(|case| case.params.clear());
        let own = self.project(draft.judged.clone(), cases);
        draft.cases = own.cases;
        draft.files.extend(own.files);
        Ok(draft)
    }

    /// What both modes have: the kernel and the reference.
    fn project(&self, judged: JudgedBy, cases: Vec<CaseDraft>) -> ProjectDraft {
        let names: Vec<&str> = self.definition.outputs.0.iter().map(|(n, _)| n.as_str()).collect();
        let source = self.definition.reference.trim_end();
        let file = |path: &str, name: &str| {
            ProjectPart::text(path, format!("{source}\n{}", entry_point(name, &names)))
        };
        ProjectDraft {
            name: plain_name(&self.definition.name),
            op: String::new(),
            backend: ["pytorch".into(), "Python".into()],
            constraints: Vec::new(),
            editable: Vec::new(),
            judged,
            cases,
            command_s: None,
            notes: Vec::new(),
            files: vec![file("kernel.py", "kernel_fn"), file("reference.py", "reference_fn")],
        }
    }

    fn task_json(&self, cases: Json, [absolute, relative]: [f64; 2], device: &str) -> Json {
        let mut rule = tolerance_json(absolute, relative);
        rule["rule"] = json!(self.rule);
        json!({
            "form": "functions", "definition": self.definition.name,
            "reference": "reference.py", "kernel": "kernel.py",
            "device": device, "tolerance": rule, "tests": [], "cases": cases,
            "custom": self.definition.custom_inputs_entrypoint,
        })
    }

    /// The cases of the script: axes, and what each input is.
    fn listed(&self, axes: &Axes, cases: &[CaseDraft]) -> Result<Json, String> {
        let mut listed = Vec::new();
        for (workload, case) in self.workloads.iter().zip(cases) {
            let numbers = axes.numbers(workload)?;
            let mut inputs = serde_json::Map::new();
            for (name, spec) in &self.definition.inputs.0 {
                let shape = axes.extents(spec, &numbers)?;
                let own = workload.inputs.get(name).unwrap_or(&TraceInput::Random);
                let one = match own {
                    TraceInput::Random => {
                        json!({ "kind": "random", "dtype": spec.dtype, "shape": shape })
                    }
                    TraceInput::Scalar { value } => json!({ "kind": "scalar", "value": value }),
                    TraceInput::Safetensors { path, tensor_key } => {
                        json!({ "kind": "file", "path": path, "key": tensor_key })
                    }
                    TraceInput::Custom => json!({ "kind": "custom" }),
                };
                inputs.insert(name.clone(), one);
            }
            listed.push(json!({
                "name": case.name, "axes": numbers, "inputs": inputs,
                "workload": workload.written,
            }));
        }
        Ok(Json::Array(listed))
    }

    /// A case for each workload: its axes, and the numbers that it gives.
    fn cases(&self, axes: &Axes) -> Result<Vec<CaseDraft>, String> {
        let mut cases: Vec<CaseDraft> = Vec::new();
        for workload in &self.workloads {
            axes.numbers(workload)?;
            let own = axes.variable(workload);
            let mut params: Vec<(String, Value)> =
                own.map(|(name, n)| (param_name(name), Value::Integer(n))).collect();
            let parts = params.iter().map(|(name, n)| format!("{name}={n}"));
            let mut name = parts.collect::<Vec<_>>().join(",");
            for (input, one) in &workload.inputs.0 {
                if let TraceInput::Scalar { value } = one {
                    params.push((param_name(input), scalar_value(value)));
                }
            }
            let is_twin = |case: &&CaseDraft| case.name.split('#').next() == Some(name.as_str());
            let twins = cases.iter().filter(is_twin).count();
            if twins > 0 || name.is_empty() {
                name = format!("{name}#{}", twins + 1);
            }
            cases.push(CaseDraft { name, params });
        }
        Ok(cases)
    }

    /// The least work of a call, for operations whose work is known.
    fn work(&self, axes: &Axes) -> Vec<(&'static str, Value)> {
        let op = self.definition.op_type.as_deref().unwrap_or_default();
        let is_gemm = op == "gemm" && ["M", "N", "K"].iter().all(|name| axes.has(name));
        let is_norm = op.contains("norm");
        let mut keys = Vec::new();
        if is_gemm {
            let [m, n, k] = ["M", "N", "K"].map(|name| axes.expression(name).unwrap_or_default());
            keys.push(("reduction", Value::String(k.clone())));
            keys.push(("flops", Value::String(format!("2*{m}*{n}*{k}"))));
        }
        if let Some(bytes) = self.bytes(axes).filter(|_| is_gemm || is_norm) {
            keys.push(("bytes", Value::String(bytes)));
        }
        keys
    }

    /// The bytes of all tensors, each once.
    fn bytes(&self, axes: &Axes) -> Option<String> {
        let tensors = self.definition.inputs.0.iter().chain(&self.definition.outputs.0);
        let mut terms = Vec::new();
        for (_, spec) in tensors.filter(|(_, spec)| spec.shape.is_some()) {
            let size = element_type(&spec.dtype)?.bytes();
            let shape: Option<Vec<String>> =
                spec.shape.iter().flatten().map(|axis| axes.expression(axis)).collect();
            terms.push(format!("{size}*{}", shape?.join("*")));
        }
        Some(terms.join(" + "))
    }
}

/// An input of the call.
fn input_arg(name: &str, spec: &TensorSpec, axes: &Axes) -> Result<Table, String> {
    if spec.shape.is_some() {
        let mut table = tensor_arg(name, "input", spec, axes)?;
        let dtype = element_type(&spec.dtype).ok_or_else(|| format!("no type {}", spec.dtype))?;
        table.insert("draw".into(), draw_value(&usual_draw(dtype)));
        return Ok(table);
    }
    let dtype = element_type(&spec.dtype).ok_or_else(|| format!("no type {}", spec.dtype))?;
    let dtype = match dtype {
        Dtype::F64 => "f64",
        other if other.is_float() => "f32",
        _ => "i64",
    };
    let mut table = arg(name, "scalar", dtype);
    table.insert("value".into(), Value::String(param_name(name)));
    Ok(table)
}

fn tensor_arg(name: &str, kind: &str, spec: &TensorSpec, axes: &Axes) -> Result<Table, String> {
    let dtype = element_type(&spec.dtype).ok_or_else(|| format!("no type {}", spec.dtype))?;
    let mut shape = Vec::new();
    for axis in spec.shape.iter().flatten() {
        let text = axes.expression(axis);
        shape.push(Value::String(text.ok_or_else(|| format!("there is no axis `{axis}`"))?));
    }
    let mut table = arg(name, kind, dtype.name());
    table.insert("shape".into(), Value::Array(shape));
    Ok(table)
}

/// What FlashInfer-Bench draws random inputs from.
fn usual_draw(dtype: Dtype) -> Draw {
    match dtype {
        Dtype::Bool => Draw::Integers { low: 0, high: 1 },
        Dtype::I8 => Draw::Integers { low: -128, high: 127 },
        Dtype::U8 => Draw::Integers { low: 0, high: 255 },
        other if other.is_float() => Draw::Normal { mean: 0.0, sd: 1.0 },
        _ => Draw::Integers { low: -1024, high: 1023 },
    }
}

fn scalar_value(value: &Json) -> Value {
    match (value.as_i64(), value.as_f64(), value.as_bool()) {
        (Some(n), _, _) => Value::Integer(n),
        (None, Some(n), _) => Value::Float(n),
        (None, None, Some(is)) => Value::Integer(i64::from(is)),
        _ => Value::String(value.to_string()),
    }
}

/// The function that karve calls; results by name become a tuple.
fn entry_point(name: &str, outputs: &[&str]) -> String {
    let names = serde_json::to_string(outputs).unwrap_or_default();
    format!(
        "\n\n# Added by \"karve import\".\ndef {name}(*args):\n    result = run(*args)\n    \
         if isinstance(result, dict):\n        result = [result[name] for name in {names}]\n    \
         if isinstance(result, list):\n        result = tuple(result)\n    \
         if isinstance(result, tuple) and len(result) == 1:\n        return result[0]\n    \
         return result\n"
    )
}

#[cfg(test)]
mod tests;
