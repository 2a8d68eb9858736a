//! `job_spec.json` of the TensorRT-LLM workflow: a cluster and what a job there needs, as a remote.

use super::table::{EngineKind, RemoteTable};
use serde_json::{Map, Value};

/// Bytes of such a file.
pub const SPEC_BYTES_MAX: u64 = 1 << 20;

/// Keys that the project, a campaign or karve itself takes the place of.
const OF_KARVE: [&str; 15] = [
    "script_path",
    "script_name",
    "work_dir",
    "remote_cwd",
    "model_name",
    "workflow_type",
    "success_patterns",
    "failure_patterns",
    "log_file_pattern",
    "repo_url",
    "repo_branch",
    "device_type",
    "slurm_cluster",
    "extra_files",
    "job_name",
];

/// A remote, and the keys of the file that it has no place for.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteOfSpec {
    /// The remote.
    pub table: RemoteTable,
    /// What is left to do by hand, in the order of the file.
    pub by_hand: Vec<String>,
}

/// Reads a specification.
pub fn parse_job_spec(text: &str) -> Result<RemoteOfSpec, String> {
    let mut spec: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("it is not a JSON object: {error}"))?;
    spec.retain(|key, value| !value.is_null() && !OF_KARVE.contains(&key.as_str()));
    let mut table: RemoteTable =
        toml::from_str("engine = \"slurm\"").map_err(|error| error.to_string())?;
    let host = word(&mut spec, "ssh_host")?;
    let user = word(&mut spec, "slurm_user")?;
    table.host = host.map(|host| match user {
        Some(user) if !host.contains('@') => format!("{user}@{host}"),
        _ => host,
    });
    table.dir = word(&mut spec, "remote_work_dir")?;
    for (key, option) in
        [("account", "--account"), ("partition", "--partition"), ("node_count", "--nodes")]
    {
        table.args.extend(word(&mut spec, key)?.map(|value| format!("{option}={value}")));
    }
    let per_node = word(&mut spec, "gpus_per_node")?;
    let needed = word(&mut spec, "required_devices_per_node")?;
    table.args.extend(needed.or(per_node).map(|n| format!("--gpus-per-node={n}")));
    let total = word(&mut spec, "total_required_devices")?;
    let has_nodes = table.args.iter().any(|arg| arg.starts_with("--gpus-per-node"));
    table.args.extend(total.filter(|_| !has_nodes).map(|n| format!("--gpus={n}")));
    if let Some(seconds) = word(&mut spec, "monitor_timeout_seconds")? {
        table.time = Some(format!("{seconds}s"));
    }
    debug_assert_eq!(table.engine, EngineKind::Slurm);
    Ok(RemoteOfSpec { table, by_hand: spec.keys().cloned().collect() })
}

/// Takes a text or a whole number out of the specification.
fn word(spec: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    let plain = |text: &str| {
        !text.is_empty() && !text.starts_with('-') && !text.contains(char::is_whitespace)
    };
    match spec.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) if plain(&text) => Ok(Some(text)),
        Some(Value::Number(number)) if number.is_u64() => Ok(Some(number.to_string())),
        Some(other) => Err(format!("{key} cannot be {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_becomes_a_remote_and_says_what_is_left() {
        let text = r#"{"script_path": "run.sh", "ssh_host": "login1", "slurm_user": "me",
            "remote_work_dir": "/scratch/me", "account": "perf", "partition": "b200",
            "node_count": 1, "gpus_per_node": 8, "required_devices_per_node": 1,
            "monitor_timeout_seconds": 7200, "container_image": "trt.sqsh", "mfa_style": null,
            "mounts": "/data:/data"}"#;
        let read = parse_job_spec(text).unwrap();
        assert_eq!(read.table.engine, EngineKind::Slurm);
        assert_eq!(read.table.host.as_deref(), Some("me@login1"));
        assert_eq!(read.table.dir.as_deref(), Some("/scratch/me"));
        assert_eq!(
            read.table.args,
            ["--account=perf", "--partition=b200", "--nodes=1", "--gpus-per-node=1"]
        );
        assert_eq!(read.table.time.as_deref(), Some("7200s"));
        assert_eq!(read.by_hand, ["container_image", "mounts"]);
        let total = parse_job_spec(r#"{"total_required_devices": 4}"#).unwrap();
        assert_eq!((total.table.host, total.table.args), (None, vec!["--gpus=4".to_owned()]));
    }

    #[test]
    fn what_is_not_a_plain_word_is_refused() {
        for (text, why) in [
            ("[]", "it is not a JSON object"),
            (r#"{"partition": "gpu --wrap=evil"}"#, "partition cannot be"),
            (r#"{"ssh_host": "-oProxyCommand=evil"}"#, "ssh_host cannot be"),
            (r#"{"node_count": 1.5}"#, "node_count cannot be 1.5"),
        ] {
            let said = parse_job_spec(text).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
