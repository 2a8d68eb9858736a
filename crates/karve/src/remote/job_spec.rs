//! `job_spec.json` of the TensorRT-LLM workflow: a cluster and what a job there needs, as a remote.

use super::engine::{quoted, quoted_line};
use super::table::{EngineKind, RemoteTable};
use serde_json::{Map, Value};

/// Bytes of such a file.
pub const SPEC_BYTES_MAX: u64 = 1 << 20;

/// Where the connection of a user who logged in with a second factor is.
const CONTROL_PATH: &str = "ControlPath=~/.ssh/karve-%C";
/// How long an allocation with a container lasts, in minutes.
const MINUTES: u64 = 240;

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
    let seconds = word(&mut spec, "monitor_timeout_seconds")?;
    table.time = seconds.map(|seconds| format!("{seconds}s"));
    let by_mfa = spec.remove("mfa_style") == Some(Value::Bool(true));
    let login = table.host.clone().filter(|_| by_mfa);
    if login.is_some() {
        table.options = ["-o", CONTROL_PATH].map(str::to_owned).into();
    }
    let image = word(&mut spec, "container_image")?;
    if let Some(image) = image {
        let mounts = words(&mut spec, "mounts")?;
        table = in_container(table, &image, mounts);
    }
    let mut by_hand: Vec<String> = spec.keys().cloned().collect();
    // karve asks nothing, so whoever needs a second factor logs in beforehand.
    by_hand.extend(login.map(|host| {
        let keep = "-o ControlMaster=yes -o ControlPersist=24h";
        format!("log in once with \"ssh -fN {keep} -o {CONTROL_PATH} {host}\"")
    }));
    Ok(RemoteOfSpec { table, by_hand })
}

/// The same cluster with every command in a container (Pyxis): one for each node of an allocation,
/// which stays there from command to command.
fn in_container(cluster: RemoteTable, image: &str, mut mounts: Vec<String>) -> RemoteTable {
    let seconds = cluster.time.as_deref().and_then(|time| time.strip_suffix('s')?.parse().ok());
    let minutes = seconds.map_or(MINUTES, |seconds: u64| seconds.div_ceil(60).max(1));
    let time = format!("--time={minutes}");
    let mut ask = vec!["salloc", "--no-shell", "--job-name=karve", &time];
    ask.extend(cluster.args.iter().map(String::as_str));
    let number = r"sed -n 's/.*Granted job allocation \([0-9]*\).*/\1/p'";
    let image = format!("--container-image={image}");
    mounts.extend(cluster.dir.iter().map(|dir| format!("{dir}:{dir}")));
    let mounted = match mounts.as_slice() {
        [] => "--container-mount-home".to_owned(),
        all => format!("--container-mounts={}", all.join(",")),
    };
    let step = ["srun", "--jobid={id}", "--overlap", "--nodes=1", "--ntasks=1", "--unbuffered"];
    let inside = ["--container-name=karve", &image, &mounted];
    // ssh hands its words to another shell.
    let command = if cluster.host.is_some() { "{command_word}" } else { "{command}" };
    let there = |words: &[&str]| on_login(&cluster, words);
    RemoteTable {
        engine: EngineKind::Command,
        acquire: Some(format!("{} 2>&1 | {number}", there(&ask))),
        run: Some(format!("{} {command}", there(&[&step[..], &inside].concat()))),
        release: Some(there(&["scancel", "{id}"])),
        status: Some(there(&["squeue", "-h", "-j", "{id}", "-o", "%T"])),
        host: None,
        options: Vec::new(),
        args: Vec::new(),
        time: None,
        ..cluster.clone()
    }
}

/// A command on the login node, as a line for a shell here.
fn on_login(cluster: &RemoteTable, words: &[&str]) -> String {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let line = quoted_line(&owned(words));
    match &cluster.host {
        Some(host) => {
            let mut ssh = owned(&["ssh", "-T", "-o", "BatchMode=yes"]);
            ssh.extend(cluster.options.iter().cloned());
            ssh.extend(owned(&["--", host]));
            format!("{} {}", quoted_line(&ssh), quoted(&line))
        }
        None => line,
    }
}

/// Takes a text, or a list of them, out of the specification.
fn words(spec: &mut Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    let Some(Value::Array(all)) = spec.get(key) else {
        return Ok(word(spec, key)?.into_iter().collect());
    };
    let plain = |one: &Value| one.as_str().filter(|text| is_plain(text)).map(str::to_owned);
    let all: Option<Vec<String>> = all.iter().map(plain).collect();
    let found = spec.remove(key).unwrap_or_default();
    all.ok_or_else(|| format!("{key} cannot be {found}"))
}

/// Whether a text is one word of a command line, and no option and no placeholder.
fn is_plain(text: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "{}".contains(c);
    !text.is_empty() && !text.starts_with('-') && !text.contains(is_odd)
}

/// Takes a text or a whole number out of the specification.
fn word(spec: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match spec.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) if is_plain(&text) => Ok(Some(text)),
        Some(Value::Number(number)) if number.is_u64() => Ok(Some(number.to_string())),
        Some(other) => Err(format!("{key} cannot be {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::table::RemoteConfig;

    #[test]
    fn a_specification_becomes_a_remote_and_says_what_is_left() {
        let text = r#"{"script_path": "run.sh", "ssh_host": "login1", "slurm_user": "me",
            "remote_work_dir": "/scratch/me", "account": "perf", "partition": "b200",
            "node_count": 1, "gpus_per_node": 8, "required_devices_per_node": 1,
            "monitor_timeout_seconds": 7200, "packages": ["nvtx"], "mfa_style": null}"#;
        let read = parse_job_spec(text).unwrap();
        assert_eq!(read.table.engine, EngineKind::Slurm);
        assert_eq!(read.table.host.as_deref(), Some("me@login1"));
        assert_eq!(read.table.dir.as_deref(), Some("/scratch/me"));
        assert_eq!(
            read.table.args,
            ["--account=perf", "--partition=b200", "--nodes=1", "--gpus-per-node=1"]
        );
        assert_eq!(read.table.time.as_deref(), Some("7200s"));
        assert_eq!(read.by_hand, ["packages"]);
        let total = parse_job_spec(r#"{"total_required_devices": 4}"#).unwrap();
        assert_eq!((total.table.host, total.table.args), (None, vec!["--gpus=4".to_owned()]));
    }

    #[test]
    fn with_a_container_every_command_is_in_it() {
        let text = r#"{"ssh_host": "login1", "partition": "b200", "gpus_per_node": 1,
            "monitor_timeout_seconds": 7201, "container_image": "nvcr.io#nvidia/pytorch:25.01",
            "mounts": ["/data:/data"], "remote_work_dir": "/scratch/me"}"#;
        let RemoteOfSpec { table, by_hand } = parse_job_spec(text).unwrap();
        assert_eq!((table.engine, by_hand.len()), (EngineKind::Command, 0));
        RemoteConfig::new("lab", &table).unwrap();
        let ssh = "ssh -T -o BatchMode=yes -- login1";
        let ask =
            r"'salloc --no-shell --job-name=karve --time=121 --partition=b200 --gpus-per-node=1'";
        let number = r"sed -n 's/.*Granted job allocation \([0-9]*\).*/\1/p'";
        assert_eq!(table.acquire.unwrap(), format!("{ssh} {ask} 2>&1 | {number}"));
        let run = table.run.unwrap();
        for part in [
            r"ssh -T -o BatchMode=yes -- login1 'srun '\''--jobid={id}'\'' --overlap",
            r" --container-name=karve '\''--container-image=nvcr.io#nvidia/pytorch:25.01'\''",
            " --container-mounts=/data:/data,/scratch/me:/scratch/me' {command_word}",
        ] {
            assert!(run.contains(part), "{run}");
        }
        assert_eq!(table.release.unwrap(), format!(r"{ssh} 'scancel '\''{{id}}'\'''"));
        // On the login node itself nothing is quoted twice.
        let here = parse_job_spec(r#"{"container_image": "trt.sqsh"}"#).unwrap().table;
        let run = here.run.unwrap();
        assert!(run.starts_with("srun '--jobid={id}' --overlap"), "{run}");
        assert!(run.ends_with("--container-mount-home {command}"), "{run}");
    }

    #[test]
    fn a_second_factor_is_asked_for_before_karve_runs() {
        let text = r#"{"ssh_host": "login1", "slurm_user": "me", "mfa_style": true}"#;
        let read = parse_job_spec(text).unwrap();
        assert_eq!(read.table.options, ["-o", "ControlPath=~/.ssh/karve-%C"]);
        assert!(read.by_hand[0].contains("-o ControlPath=~/.ssh/karve-%C me@login1"));
        let direct = parse_job_spec(&text.replace("true", "false")).unwrap();
        assert_eq!((direct.table.options.len(), direct.by_hand.len()), (0, 0));
    }

    #[test]
    fn what_is_not_a_plain_word_is_refused() {
        for (text, why) in [
            ("[]", "it is not a JSON object"),
            (r#"{"partition": "gpu --wrap=evil"}"#, "partition cannot be"),
            (r#"{"ssh_host": "-oProxyCommand=evil"}"#, "ssh_host cannot be"),
            (r#"{"node_count": 1.5}"#, "node_count cannot be 1.5"),
            (r#"{"container_image": "{command}"}"#, "container_image cannot be"),
            (r#"{"container_image": "a", "mounts": ["/a:/a", "-x y"]}"#, "mounts cannot be"),
        ] {
            let said = parse_job_spec(text).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
