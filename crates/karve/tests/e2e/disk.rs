//! A disk that is full or may not be written: a clear error, nothing lost, and it goes on.

use crate::e2e::lab::{Lab, Said};
use crate::e2e::tidy::is_tidy;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted tmpfs; unmounted with the test.
struct Mount {
    path: PathBuf,
}

impl Mount {
    /// Mounts a tmpfs, or says that this cannot be tested here.
    fn tmpfs(path: &Path, options: &str) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        mount(&["-t", "tmpfs", "-o", options, "tmpfs"], path)
            .then(|| Self { path: path.to_owned() })
    }

    fn remount(&self, options: &str) {
        assert!(mount(&["-o", &format!("remount,{options}")], &self.path));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

fn mount(args: &[&str], path: &Path) -> bool {
    let output = Command::new("mount").args(args).arg(path).output();
    let said = output.map(|output| Said::of(&output));
    let mounted = said.as_ref().is_ok_and(|said| said.code == 0);
    if !mounted {
        println!("skipped: cannot mount here: {said:?}");
    }
    mounted
}

/// A project whose campaigns live on a disk of their own.
fn with_disk(options: &str) -> Option<(Lab, Mount)> {
    let lab = Lab::new("gains");
    let disk = Mount::tmpfs(&lab.path(".karve"), options)?;
    Some((lab, disk))
}

#[test]
fn a_full_disk_is_named_and_nothing_is_lost() {
    let Some((lab, _disk)) = with_disk("size=2m,mode=700") else {
        return;
    };
    lab.dies("after:20");
    let before = lab.log();
    assert_eq!(before.len(), 21);
    let ballast = lab.path(".karve/ballast");
    for left in [0, 4_096, 16_384, 40_960] {
        // Whatever step runs into it, the log stays whole.
        fill(&ballast, left);
        let said = lab.karve(&["run", "--yes"]);
        assert!(said.code == 3 || (left > 0 && said.code == 0), "{left}: {said:?}");
        if said.code == 3 {
            let named = said.stderr.contains("No space left") || said.stderr.contains("\"df /");
            assert!(named, "{left}: {said:?}");
        }
        fs::remove_file(&ballast).unwrap();
        assert_eq!(lab.log()[..21], before[..], "{left}");
    }
    lab.karve(&["run", "--yes", "--campaign", "toy"]).ends(0);
    // Nor is a candidate blamed for it.
    let verdicts = ["keep", "regressed", "same_artifact", "no_candidate", "keep"];
    assert_eq!(lab.verdicts(), verdicts);
    lab.karve(&["verify"]).ends(0).shows(&["every verdict matches its samples"]);
    is_tidy(&lab);
}

/// Fills the disk with a file, but for some bytes.
fn fill(path: &Path, left: usize) {
    let full = vec![0_u8; 64 << 20];
    let _ = fs::write(path, full);
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(left as u64)).unwrap();
}

#[test]
fn a_full_disk_at_the_very_start_is_named() {
    let Some((lab, _disk)) = with_disk("size=64k,mode=700") else {
        return;
    };
    fill(&lab.path(".karve/ballast"), 0);
    lab.karve(&["run", "--yes"]).ends(3).complains(&["error: cannot", "No space left"]);
    fs::remove_file(lab.path(".karve/ballast")).unwrap();
    lab.karve(&["status"]).ends(2);
}

#[test]
fn a_directory_that_may_not_be_written_is_named_and_nothing_is_lost() {
    let Some((lab, disk)) = with_disk("size=16m,mode=700") else {
        return;
    };
    lab.dies("after:20");
    let before = fs::read(lab.campaign("events.jsonl")).unwrap();
    disk.remount("ro");
    lab.karve(&["run", "--yes"]).ends(3).complains(&["error: cannot", "Read-only file system"]);
    // Looking is still possible.
    for command in ["status", "log", "report", "list", "verify", "best"] {
        lab.karve(&[command]).ends(0);
    }
    lab.karve(&["answer", "hello"]).ends(3).complains(&["Read-only file system"]);
    disk.remount("rw");
    assert_eq!(fs::read(lab.campaign("events.jsonl")).unwrap(), before);
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts().len(), 5);
    is_tidy(&lab);
}
