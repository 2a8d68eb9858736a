//! What goes wrong on other machines: nothing is lost, and nothing is left running.

use crate::e2e::kill::reference;
use crate::e2e::lab::{Lab, Running, by_default, wait_until};
use crate::e2e::remote::{Far, Slurm, Sshd, kill};
use crate::e2e::tidy::Remains;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A campaign there that is in the middle of something.
fn under_way(lab: &Lab, blocks: usize) -> Running {
    let mut running = lab.start(&["run", "--yes", "--on", "far"]);
    wait_until("some blocks are measured", || {
        assert!(!running.has_ended() || lab.events("finished").len() == 1);
        lab.events("block_measured").len() >= blocks
    });
    running
}

/// The campaign ended as the one that nobody disturbed.
#[track_caller]
fn is_whole(lab: &Lab, far: &Far) {
    assert_eq!(reference().remains.difference(&Remains::of(lab)), None);
    wait_until("nothing is left running", || far.running().is_empty());
}

#[test]
fn a_dropped_line_is_found_again_and_the_worker_has_gone_on() {
    let Some(sshd) = Sshd::start() else { return };
    let lab = Lab::new("gains");
    let far = Far::by_ssh(&lab, &sshd);
    let running = under_way(&lab, 3);
    let worker = far.workers();
    for _ in 0..3 {
        sshd.cut();
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    assert_eq!(far.workers(), worker, "the same worker");
    running.wait().ends(0);
    is_whole(&lab, &far);
    assert_eq!(lab.events("device_acquired").len(), 1);
}

#[test]
fn a_line_that_stays_away_ends_the_work_there_and_nothing_is_lost() {
    let Some(sshd) = Sshd::start() else { return };
    let lab = Lab::new("gains");
    let far = Far::by_ssh(&lab, &sshd);
    far.set("grace", "1s");
    let running = under_way(&lab, 3);
    sshd.stop();
    sshd.cut();
    wait_until("the worker ends by itself", || far.running().is_empty());
    running.signal("INT");
    running.wait().ends(130);
    sshd.begin();
    lab.karve(&["run", "--yes"]).ends(0);
    is_whole(&lab, &far);
}

#[test]
fn a_killed_worker_costs_one_step() {
    let lab = Lab::new("gains");
    let far = Far::by_command(&lab);
    let running = under_way(&lab, 3);
    for pid in far.workers() {
        kill(&pid);
    }
    let said = running.wait().ends(0);
    said.complains(&["this step starts again"]);
    is_whole(&lab, &far);
}

#[test]
fn a_killed_karve_leaves_nothing_there_and_resumes() {
    let lab = Lab::new("gains");
    let far = Far::by_command(&lab);
    far.set("grace", "1s");
    under_way(&lab, 3).kill();
    wait_until("the worker ends by itself", || far.running().is_empty());
    under_way(&lab, 5).kill();
    // At once, while the old worker is still there.
    lab.karve(&["run", "--yes"]).ends(0);
    is_whole(&lab, &far);
}

#[test]
fn a_killed_karve_gives_its_allocation_back() {
    let Some(slurm) = Slurm::start(1) else { return };
    let lab = Lab::new("gains");
    let far = Far::by_slurm(&lab, &slurm, "");
    under_way(&lab, 3).kill();
    wait_until("the allocation is given back", || slurm.jobs().is_empty());
    // Without the daemon of its node, the worker goes on.
    let running = under_way(&lab, 5);
    let job = slurm.jobs()[0].clone();
    slurm.kill_daemon(job.rsplit(' ').next().unwrap());
    running.wait().ends(0);
    is_whole(&lab, &far);
    wait_until("the allocation is given back", || slurm.jobs().is_empty());
}

#[test]
fn a_lost_node_and_a_preempted_allocation_are_replaced_and_controlled() {
    let Some(slurm) = Slurm::start(2) else { return };
    let lab = Lab::new("gains");
    // After the first control, only a change of the device calls for another.
    lab.replace("karve.toml", "every = 3", "every = 100");
    lab.commit();
    let far = Far::by_slurm(&lab, &slurm, "args = [\"--exclusive\"]\n");
    let running = under_way(&lab, 3);
    let is_control = |event: &&serde_json::Value| event["duel"]["duel"] == "control";
    wait_until("the first control is over", || {
        let blocks = lab.events("block_measured");
        let last = blocks.iter().rposition(|block| is_control(&block));
        last.is_some_and(|last| last + 1 < blocks.len())
    });
    let job = slurm.jobs()[0].clone();
    let (job, node) = (job.split(' ').next().unwrap(), job.rsplit(' ').next().unwrap());
    slurm.kill_node(node, job);
    wait_until("another node is used", || lab.events("device_acquired").len() == 2);
    let hosts = lab.events("device_acquired");
    assert_ne!(hosts[0]["device"]["host"], hosts[1]["device"]["host"]);
    // A partition with a higher priority takes the node for a while.
    let urgent = ["-p", "urgent", "-N1", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 1"];
    slurm.run("sbatch", &urgent).ends(0);
    running.wait().ends(0);
    assert_eq!(lab.events("device_acquired").len(), 3, "it was preempted");
    let verdicts = reference().remains.kinds().iter().filter(|kind| *kind == "settled").count();
    assert_eq!(lab.events("settled").len(), verdicts);
    assert_eq!(lab.verdicts()[0], "keep");
    // When the device had changed, it was tested on equals.
    let blocks = lab.events("block_measured");
    let is_later = |event: &&serde_json::Value| {
        event["duel"]["after"].as_u64() > Some(1) || event["duel"]["device"].is_u64()
    };
    assert!(blocks.iter().filter(is_control).any(|event| is_later(&event)), "{blocks:#?}");
    // Each block says where it ran; a duel on two devices has them as strata.
    let hosts: std::collections::BTreeSet<String> =
        blocks.iter().map(|block| block["block"]["conditions"]["host"].to_string()).collect();
    assert_eq!(hosts.len(), 2, "{hosts:?}");
    lab.karve(&["verify"]).ends(0);
    wait_until("nothing is left", || far.running().is_empty() && slurm.jobs().is_empty());
}

/// It takes more than the minute that SLURM gives at least, so only the full run has it.
#[test]
fn an_allocation_is_renewed_before_its_end() {
    let Some(slurm) = Slurm::start(2).filter(|_| by_default(false, true)) else { return };
    let lab = Lab::new("gains");
    lab.replace("build.sh", "mkdir -p build", "sleep 4\nmkdir -p build");
    lab.commit();
    let far = Far::by_slurm(&lab, &slurm, "time = \"1m\"\n");
    let said = lab.karve(&["run", "--yes", "--on", "far"]).ends(0);
    said.complains(&["the allocation ends soon; asking for another"]);
    let acquired = lab.log().iter().rposition(|r| r["event"]["type"] == "device_acquired").unwrap();
    let is_control = |r: &serde_json::Value| r["event"]["duel"]["duel"] == "control";
    assert!(acquired > 1 && lab.log()[acquired..].iter().any(is_control), "an A/A test follows");
    lab.karve(&["verify"]).ends(0);
    wait_until("nothing is left", || far.running().is_empty() && slurm.jobs().is_empty());
}

#[test]
fn copies_there_are_listed_and_removed_unless_they_are_used() {
    let lab = Lab::new("gains");
    let wait = "touch ../../waiting\nwhile [ ! -e ../../enough ]; do sleep 0.01; done\n\
                claim \"halve the work\" \"half of it is not needed\" 2.0";
    lab.script("1", "propose", wait).unconfined().commit();
    let far = Far::by_command(&lab);
    lab.karve(&["clean", "--on", "far"]).ends(0).shows(&["karve-", "in use"]);
    let clean = |args: &[&str]| lab.karve(&[&["clean", "--on", "far", "--yes"], args].concat());
    let running = lab.start(&["run", "--yes", "--on", "far", "--rounds", "1"]);
    wait_until("the agent waits", || lab.campaign("waiting").exists());
    clean(&[]).ends(0).shows(&["toy ", "in use"]);
    clean(&["toy"]).ends(4).complains(&["toy is in use there"]);
    clean(&["--finished"]).ends(0).shows(&["toy "]);
    fs::write(lab.campaign("enough"), "").unwrap();
    running.wait().ends(0);
    clean(&["nope"]).ends(2).complains(&["no copy of \"nope\"", "karve clean --on"]);
    lab.karve(&["clean", "--on", "far", "toy"]).ends(2).complains(&["nothing was removed"]);
    let project = fs::read_dir(far.dir.join("projects")).unwrap().flatten();
    let project = project.map(|entry| entry.path()).find(|path| path.join("campaigns").is_dir());
    let project = project.unwrap();
    assert!(project.join("campaigns/toy").exists(), "nothing is removed by these");
    clean(&["--finished"]).ends(0).shows(&["removed toy from far, "]);
    assert!(!project.join("campaigns/toy").exists() && project.join("repo").exists());
    assert!(lab.campaign("events.jsonl").exists(), "nothing is removed here");
    // Whatever is used again is sent again.
    let again = ["run", "--yes", "--new", "--campaign", "again", "--on", "far"];
    lab.karve(&[&again[..], &["--rounds", "1"]].concat()).ends(0);
    let id = project.file_name().unwrap().to_str().unwrap();
    clean(&[]).ends(0).shows(&["again ", "finished", id, "this project, with its campaigns"]);
    clean(&[id]).ends(0).shows(&["removed", id]);
    assert!(!project.exists());
    lab.karve(&["exec", "--on", "far", "--", "cat", "kernel.sh"]).ends(0);
    assert_eq!(far.running(), Vec::<String>::new());
}

#[test]
fn a_full_disk_there_stops_the_campaign_and_nothing_is_lost() {
    let lab = Lab::new("gains");
    let far = Far::by_command(&lab);
    let small = lab.beside("small");
    fs::create_dir(&small).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=3m", "small"];
    let mounted = Command::new("mount").args(mount).arg(&small).status();
    if !mounted.is_ok_and(|status| status.success()) {
        println!("skipped: cannot mount a small disk");
        return;
    }
    let _end = Unmount(&small);
    std::os::unix::fs::symlink(fs::read_link(far.dir.join("bin")).unwrap(), small.join("bin"))
        .unwrap();
    far.set("dir", small.to_str().unwrap());
    fs::write(small.join("filler"), vec![0; 2_900_000]).unwrap();
    let said = lab.karve(&["run", "--yes", "--on", "far"]).ends(3);
    said.complains(&["No space left on device"]);
    fs::remove_file(small.join("filler")).unwrap();
    let running = under_way(&lab, 3);
    // Whatever is free.
    let _ = fs::write(small.join("filler"), vec![0; 4_000_000]);
    running.wait().ends(3).complains(&["No space left on device", "karve run"]);
    fs::remove_file(small.join("filler")).unwrap();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(reference().remains.difference(&Remains::of(&lab)), None);
}

struct Unmount<'a>(&'a Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_clock_that_is_an_hour_ahead_changes_nothing() {
    let lab = Lab::new("gains");
    let far = Far::by_command(&lab);
    let code = "#define _GNU_SOURCE\n#include <time.h>\n#include <sys/syscall.h>\n\
        #include <unistd.h>\nint clock_gettime(clockid_t c, struct timespec *t) {\n\
        int r = syscall(SYS_clock_gettime, c, t);\n\
        if (c == CLOCK_REALTIME) t->tv_sec += 3600;\nreturn r; }\n";
    fs::write(lab.beside("skew.c"), code).unwrap();
    let library = lab.beside("skew.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &lab.beside("skew.c")])
        .status()
        .unwrap();
    assert!(built.success());
    far.set("env", &format!("__{{ LD_PRELOAD = {library:?} }}"));
    lab.karve(&["run", "--yes", "--on", "far"]).ends(0);
    is_whole(&lab, &far);
}

#[test]
fn two_campaigns_share_a_device_block_by_block() {
    let labs = [Lab::new("gains"), Lab::new("gains")];
    let fars = labs.each_ref().map(Far::by_command);
    // The same leases, as on one machine.
    let leases = labs[0].beside("leases");
    let start = |lab: &Lab| {
        let mut command = lab.command(&["run", "--yes", "--on", "far"]);
        command.env("KARVE_LEASE_DIR", &leases).stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut children = labs.each_ref().map(start);
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    for (lab, far) in labs.iter().zip(&fars) {
        is_whole(lab, far);
    }
}
