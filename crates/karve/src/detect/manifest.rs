//! A proposal from a `manifest.yaml` of primus, written by karve or by hand.
//!
//! Only what such files contain is read: keys with a value or a list of values. Other keys are
//! named, not lost in silence.

use super::ConfigProposal;
use karve_core::charter::Better;
use std::collections::BTreeMap;

/// Keys that a `karve.toml` gets elsewhere, or that karve decides itself.
const NOT_TAKEN: [&str; 12] = [
    "campaign",
    "created",
    "base_branch",
    "base_commit",
    "git_commit",
    "git_branch",
    "quick_command",
    "quick_test_command",
    "representative_shapes",
    "primary_metric_unit",
    "hidden_shapes",
    "execution_mode",
];
/// Keys that are taken.
const TAKEN: [&str; 12] = [
    "performance_target",
    "max_iterations",
    "target_op",
    "target_backend",
    "target_lang",
    "target_gpu",
    "primary_metric",
    "target_shapes",
    "kernel_source",
    "build_command",
    "test_command",
    "benchmark_command",
];

/// The proposal of a manifest, or what it lacks.
pub fn propose_from_manifest(text: &str) -> Result<ConfigProposal, String> {
    let values = values_of(text);
    let all = |key: &str| values.get(key).cloned().unwrap_or_default();
    let one = |key: &str| all(key).into_iter().next();
    let needed = |key: &str| one(key).ok_or_else(|| format!("the manifest has no {key}"));
    let metric = one("primary_metric").unwrap_or_else(|| "Combined Step TFLOPS".to_owned());
    let is_time = metric.to_lowercase().contains("time") || metric.ends_with("ms");
    let unit = if is_time { "ms" } else { metric.rsplit(' ').next().unwrap_or("TFLOPS") };
    let shapes: Vec<String> = all("target_shapes").iter().filter_map(|of| shape(of)).collect();
    let all_shapes = text.lines().any(|line| {
        line.strip_prefix("target_shapes:")
            .is_some_and(|value| plain(value).as_deref() == Some("all"))
    });
    let open = values.keys().filter(|key| !TAKEN.contains(&key.as_str()));
    let open = open.filter(|key| !NOT_TAKEN.contains(&key.as_str()) && !all(key).is_empty());
    let open: Vec<&str> = open.map(String::as_str).collect();
    let mut why = vec!["It was read from a manifest of primus.".to_owned()];
    if !open.is_empty() {
        why.push(format!("Not taken over, so set it by hand: {}.", open.join(", ")));
    }
    let backend = needed("target_backend")?;
    Ok(ConfigProposal {
        op: needed("target_op")?,
        language: one("target_lang").unwrap_or_else(|| backend.clone()),
        backend,
        device: one("target_gpu").unwrap_or_else(|| "gpu".to_owned()),
        editable: match all("kernel_source") {
            files if files.is_empty() => return Err("the manifest has no kernel_source".into()),
            files => files,
        },
        build: one("build_command"),
        test: needed("test_command")?,
        bench: needed("benchmark_command")?,
        env: BTreeMap::new(),
        write: Vec::new(),
        format: "csv".to_owned(),
        pattern: None,
        metric_unit: unit.to_owned(),
        metric_name: metric,
        better: if is_time { Better::Lower } else { Better::Higher },
        cases: if shapes.is_empty() { vec!["default".to_owned()] } else { shapes },
        label: None,
        preset: "primus".to_owned(),
        collect: None,
        goal: one("performance_target"),
        rounds: one("max_iterations").and_then(|rounds| rounds.parse().ok()),
        hours: None,
        all_shapes,
        is_placeholder: false,
        why,
    })
}

/// The values of each key; none for null and empty lists.
fn values_of(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut last = None;
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        if let Some(item) = line.trim_start().strip_prefix("- ") {
            let of: Option<&mut Vec<String>> = last.as_ref().and_then(|key| values.get_mut(key));
            if let Some(of) = of {
                of.extend(plain(item));
            }
        } else if let Some((key, value)) = line.split_once(':').filter(|_| !line.starts_with(' ')) {
            let value = plain(value).filter(|value| !["[]", "all"].contains(&value.as_str()));
            values.insert(key.trim().to_owned(), value.into_iter().collect());
            last = Some(key.trim().to_owned());
        }
    }
    values
}

/// A value without quotes; nothing for null.
fn plain(value: &str) -> Option<String> {
    let value = value.trim();
    let text = match value.starts_with('"') {
        true => serde_json::from_str(value).unwrap_or_else(|_| value.trim_matches('"').to_owned()),
        false => value.trim_matches('\'').to_owned(),
    };
    (!text.is_empty() && text != "null").then_some(text)
}

/// The name of a shape: `{name: "small", params: …}` as karve writes it, or a plain one.
fn shape(text: &str) -> Option<String> {
    let Some(rest) = text.strip_prefix("{name: ") else {
        return (!text.starts_with('{')).then(|| text.to_owned());
    };
    let (name, params) = rest.split_once(", params: {")?;
    let pairs = params.trim_end_matches('}').split(", ");
    let pairs = pairs.filter_map(|pair| pair.split_once(": "));
    let pairs: Vec<String> = pairs
        .filter_map(|(key, value)| Some(format!("{}={}", plain(key)?, plain(value)?)))
        .collect();
    if pairs.is_empty() { plain(name) } else { Some(pairs.join(",")) }
}
