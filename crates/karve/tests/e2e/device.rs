//! The device around a campaign: leases, clocks, pins and throttling.

use crate::e2e::lab::{Lab, Running, wait_until};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Holds the device in the place of another karve.
fn hold(lab: &Lab) -> File {
    hold_named(lab, "cpu")
}

fn hold_named(lab: &Lab, device: &str) -> File {
    fs::create_dir_all(lab.beside("leases")).unwrap();
    let path = lab.beside("leases").join(device).with_extension("lock");
    let named = "{\"pid\": 7, \"holder\": \"another\", \"since\": \"noon\"}";
    fs::write(&path, named).unwrap();
    let file = File::open(path).unwrap();
    file.lock().unwrap();
    file
}

/// The conditions of the baseline.
fn conditions(lab: &Lab) -> Value {
    lab.events("baseline_measured")[0]["conditions"].clone()
}

#[test]
fn a_campaign_waits_for_the_device_and_says_for_whom() {
    let lab = Lab::new("gains");
    let held = hold(&lab);
    let running = lab.start(&["run", "--yes", "--rounds", "1"]);
    wait_until("it waits", || running.says("held by another (process 7) since noon"));
    assert!(lab.events("baseline_measured").is_empty());
    drop(held);
    let said = running.wait().ends(0).shows(&["s waiting for the device"]);
    assert_eq!(said.stderr.matches("held by another").count(), 1, "{said:?}");
    let pauses = &conditions(&lab)["pauses"];
    assert_eq!(pauses[0]["why"], "lease");
    assert!(pauses[0]["waited_ms"].as_u64() >= Some(1000), "{pauses}");
    let doctor = lab.karve(&["doctor"]).ends(0);
    doctor.shows(&["cpu is free", "pressure", "karve may use"]);
}

#[test]
fn campaigns_run_beside_each_other_on_the_devices_of_a_pool() {
    let lab = Lab::new("gains");
    lab.replace("karve.toml", "[device]\n", "[device]\nlease_wait_s = 0\n");
    let member =
        |name: &str| format!("[[tune.pool]]\ndevice = \"{name}\"\nenv = {{ GPU = \"{name}\" }}");
    lab.configure(&[member("gpu0"), member("gpu1")].join("\n\n"));
    lab.commit();
    // Another campaign is at work on the first one, and one on the device of the target.
    let _held = [hold_named(&lab, "gpu0"), hold_named(&lab, "cpu")];
    let said = lab.karve(&["run", "--yes", "--new", "--on", "gpu0"]);
    said.ends(4).complains(&["the device gpu0 is held by another"]);
    let said = lab.karve(&["run", "--yes", "--new", "--on", "gpu1", "--rounds", "1", "--json"]);
    let said = said.ends(0);
    let first: Value = serde_json::from_str(said.stdout.lines().next().unwrap()).unwrap();
    let charter = &first["event"]["charter"];
    assert_eq!(
        (&charter["device"]["member"], &charter["target"]["device"]),
        (&"gpu1".into(), &"cpu".into())
    );
    assert_eq!(charter["commands"]["env"]["GPU"], "gpu1");
    let said = lab.karve(&["run", "--yes", "--new", "--on", "gpu7"]);
    said.ends(2).complains(&["no remote and no device of the pool \"gpu7\"", "has gpu0, gpu1"]);
}

#[test]
fn a_wait_for_the_device_has_a_bound_and_ends_with_ctrl_c() {
    let lab = Lab::new("gains");
    let _held = hold(&lab);
    let running = lab.start(&["run", "--yes"]);
    wait_until("it waits", || running.says("held by another"));
    running.signal("INT");
    running.wait().ends(130).complains(&["stopped by the user"]);
    lab.replace("karve.toml", "[device]\n", "[device]\nlease_wait_s = 0\n");
    lab.commit().karve(&["run", "--yes", "--new"]).ends(4).complains(&[
        "the device cpu is held by another (process 7)",
        "hint: set a larger device.lease_wait_s in karve.toml",
    ]);
    lab.karve(&["doctor"]).ends(0).shows(&[
        "cpu is held by another",
        "test        passed",
        "not measured: the device cpu is held by another",
    ]);
    lab.karve(&["check"]).ends(4).complains(&["the device cpu is held by another"]);
}

#[test]
fn a_check_waits_for_the_device_and_gives_it_back() {
    let lab = Lab::new("gains");
    let held = hold(&lab);
    let running = lab.start(&["check"]);
    wait_until("it waits", || running.says("held by another"));
    drop(held);
    running.wait().ends(0).shows(&["reading "]);
    lab.karve(&["doctor"]).ends(0).shows(&["cpu is free"]);
}

#[test]
fn every_block_tells_its_conditions() {
    let lab = Lab::new("gains");
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    let baseline = conditions(&lab);
    let digits = baseline["environment"].as_str().unwrap();
    assert_eq!(digits.len(), 16);
    assert!(baseline["load"].is_number(), "{baseline}");
    let blocks = lab.events("block_measured");
    assert!(!blocks.is_empty());
    for event in blocks {
        assert_eq!(event["block"]["conditions"]["environment"], digits);
    }
}

/// A project whose clocks are locked by writing to a file, at work and waiting for its agent.
fn locked() -> (Lab, Running) {
    let lab = Lab::new("gains");
    let file = lab.beside("clocks");
    let keys = format!(
        "[device]\nlock = \"echo lock >> '{0}'\"\nunlock = \"echo unlock >> '{0}'\"\n",
        file.display()
    );
    lab.replace("karve.toml", "[device]\n", &keys);
    let wait = "touch ../../waiting\nwhile [ ! -e ../../enough ]; do sleep 0.01; done\n\
                claim \"halve the work\" \"half of it is not needed\" 2.0";
    lab.script("1", "propose", wait).unconfined().commit();
    let running = lab.start(&["run", "--yes", "--rounds", "1"]);
    wait_until("the agent waits", || lab.campaign("waiting").exists());
    assert_eq!(clocks(&lab), ["lock"]);
    (lab, running)
}

fn clocks(lab: &Lab) -> Vec<String> {
    let text = fs::read_to_string(lab.beside("clocks")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn clocks_are_locked_once_and_unlocked_once() {
    let (lab, running) = locked();
    assert!(lab.campaign("undo").exists());
    fs::write(lab.campaign("enough"), "").unwrap();
    running.wait().ends(0);
    assert_eq!(clocks(&lab), ["lock", "unlock"]);
    assert!(!lab.campaign("undo").exists());
}

#[test]
fn clocks_are_unlocked_when_karve_is_killed() {
    let (lab, running) = locked();
    running.kill().ends(crate::e2e::lab::KILLED);
    wait_until("they are unlocked", || !lab.campaign("undo").exists());
    assert_eq!(clocks(&lab), ["lock", "unlock"]);
    fs::write(lab.campaign("enough"), "").unwrap();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(clocks(&lab), ["lock", "unlock", "lock", "unlock"]);
}

#[test]
fn clocks_are_unlocked_when_karve_and_its_cleanup_were_killed() {
    for command in [["doctor", "--json"], ["run", "--yes"]] {
        let (lab, running) = locked();
        let cleanup = cleanup_of(&lab).expect("a cleanup process");
        let mut kill = std::process::Command::new("kill");
        kill.args(["-s", "KILL", &cleanup]).status().unwrap();
        running.kill().ends(crate::e2e::lab::KILLED);
        assert_eq!(clocks(&lab), ["lock"]);
        fs::write(lab.campaign("enough"), "").unwrap();
        lab.karve(&command).ends(0);
        assert_eq!(clocks(&lab)[..2], ["lock", "unlock"]);
        assert!(!lab.campaign("undo").exists());
    }
}

fn cleanup_of(lab: &Lab) -> Option<String> {
    let mark = lab.beside("clocks").display().to_string();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    pids.map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .find(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains("karve-cleanup") && line.contains(&mark)
        })
}

#[test]
fn clocks_that_cannot_be_locked_stop_the_campaign_and_leave_nothing() {
    let lab = Lab::new("gains");
    let keys = "[device]\nlock = \"echo no right to >&2; exit 4\"\nunlock = \"true\"\n";
    lab.replace("karve.toml", "[device]\n", keys).commit();
    lab.karve(&["run", "--yes"]).ends(3).complains(&[
        "cannot lock the clocks of the device",
        "no right to",
        "hint: run device.lock",
    ]);
    assert!(!lab.campaign("undo").exists());
}

#[test]
fn only_the_benchmark_is_pinned() {
    let lab = Lab::new("gains");
    let seen = lab.beside("seen");
    let look = |what: &str| {
        let file = seen.display();
        format!(
            "sed -n 's/Cpus_allowed_list:/{what}/p' /proc/self/status >> '{file}'; sh {what}.sh"
        )
    };
    lab.replace("karve.toml", "[device]\n", "[device]\npin = [0]\n")
        .replace("karve.toml", "\"sh test.sh", &format!("\"{}", look("test")))
        .replace("karve.toml", "\"sh bench.sh", &format!("\"{}", look("bench")))
        .unconfined()
        .commit();
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    assert_eq!(conditions(&lab)["pinned"], serde_json::json!([0]));
    let text = fs::read_to_string(seen).unwrap();
    let all = fs::read_to_string("/proc/self/status").unwrap();
    let all = all.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    for line in text.lines() {
        let (what, cpus) = line.split_once('\t').unwrap();
        let want = if what == "bench" { "0" } else { all.unwrap().trim() };
        assert_eq!(cpus, want, "{line}");
    }
    assert!(text.contains("bench\t") && text.contains("test\t"));
    lab.replace("karve.toml", "pin = [0]", "pin = [8000]").commit();
    lab.karve(&["run", "--yes", "--new"])
        .ends(3)
        .complains(&["karve may not use CPU 8000", "device.pin"]);
}

#[test]
fn a_hot_gpu_is_waited_for() {
    let lab = Lab::new("gains");
    lab.replace("karve.toml", "device = \"cpu\"", "device = \"h200\"").commit();
    let bin = lab.beside("bin");
    let tool = "#!/bin/sh\ncase \"$*\" in *event_reasons*) exit 2;; esac\n\
        echo x >> \"$(dirname \"$0\")/asked\"\n\
        n=$(wc -l < \"$(dirname \"$0\")/asked\")\n\
        [ $n -lt 4 ] && hot=0x0000000000000040 || hot=0x0000000000000004\n\
        echo \"NVIDIA H200, 580.159.04, 1980, 3201, 91, $hot\"\n";
    install(&bin, "nvidia-smi", tool);
    let mut command = lab.command(&["run", "--yes", "--rounds", "1"]);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let output = command.env("PATH", path).output().unwrap();
    let said = crate::e2e::lab::Said::of(&output).ends(0);
    said.complains(&["s: the GPU is throttled: hw_thermal_slowdown; then the host was calm"]);
    let baseline = conditions(&lab);
    assert_eq!(baseline["pauses"][0]["why"], "throttling");
    assert_eq!(baseline["gpu"]["name"], "NVIDIA H200");
    assert_eq!(baseline["gpu"]["throttle"][0], "sw_power_cap");
}

fn install(bin: &Path, name: &str, text: &str) {
    fs::create_dir_all(bin).unwrap();
    fs::write(bin.join(name), text).unwrap();
    fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
}
