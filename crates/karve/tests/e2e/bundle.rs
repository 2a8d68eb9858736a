//! A bundle of a real campaign: whoever gets it can check it, and what was changed is found.

use crate::e2e::lab::{Lab, Said};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use karve_os::files::sha256_hex;
use serde_json::json;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;

const UNIT: usize = 512;

/// The files of a bundle, with the header of each.
struct Opened(Vec<(Vec<u8>, Vec<u8>)>);

impl Opened {
    fn of(path: &Path) -> Self {
        let mut bytes = Vec::new();
        GzDecoder::new(fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
        let mut files = Vec::new();
        let mut rest = &bytes[..];
        while rest[0] != 0 {
            let size = std::str::from_utf8(&rest[124..135]).unwrap();
            let size = usize::from_str_radix(size, 8).unwrap();
            files.push((rest[..UNIT].to_vec(), rest[UNIT..UNIT + size].to_vec()));
            rest = &rest[UNIT + size.next_multiple_of(UNIT)..];
        }
        Self(files)
    }

    fn name(header: &[u8]) -> String {
        String::from_utf8_lossy(&header[..100]).trim_end_matches('\0').to_owned()
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|(header, _)| Self::name(header)).collect()
    }

    fn text(&self, name: &str) -> String {
        let file = self.0.iter().find(|(header, _)| Self::name(header) == name).unwrap();
        String::from_utf8_lossy(&file.1).into_owned()
    }

    /// Replaces a file.
    fn set(&mut self, name: &str, bytes: &[u8]) {
        let file = self.0.iter_mut().find(|(header, _)| Self::name(header) == name).unwrap();
        file.1 = bytes.to_vec();
        file.0[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        file.0[148..156].fill(b' ');
        let sum: u32 = file.0.iter().map(|byte| u32::from(*byte)).sum();
        file.0[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }

    /// Makes the list agree with the files again, as a forger would.
    fn list_again(&mut self) {
        let lines = self.0[1..]
            .iter()
            .map(|(header, bytes)| format!("{}  {}\n", sha256_hex(bytes), Self::name(header)));
        let list: String = lines.collect();
        self.set("SHA256SUMS", list.as_bytes());
    }

    fn write(&self, path: &Path) {
        let mut packer = GzEncoder::new(fs::File::create(path).unwrap(), Compression::fast());
        for (header, bytes) in &self.0 {
            packer.write_all(header).unwrap();
            packer.write_all(bytes).unwrap();
            packer.write_all(&vec![0; bytes.len().next_multiple_of(UNIT) - bytes.len()]).unwrap();
        }
        packer.write_all(&[0; 2 * UNIT]).unwrap();
        packer.finish().unwrap();
    }
}

/// Verifies a file outside of every repository.
fn verify(lab: &Lab, path: &Path, more: &[&str]) -> Said {
    let elsewhere = lab.beside("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let mut command = lab.command(&["verify", path.to_str().unwrap()]);
    command.args(more).current_dir(elsewhere).env("GIT_CEILING_DIRECTORIES", lab.beside(""));
    Said::of(&command.output().unwrap())
}

#[test]
fn a_bundle_is_checked_by_anybody_and_what_was_changed_is_found() {
    let lab = Lab::new("gains");
    lab.karve(&["run", "--yes"]).ends(0);
    let path = lab.beside("toy.tar.gz");
    let file = path.to_str().unwrap();
    let said = lab.karve(&["report", "--bundle", file]).ends(0);
    said.shows(&[
        "bundle    ",
        "toy.tar.gz (",
        "sha256    ",
        "reveals   the names of 1 hidden case",
    ]);
    anybody_checks_it(&lab, &path);
    the_same_campaign_gives_the_same_bundle(&lab, &path);
    one_changed_byte_in_any_file_is_refused(&lab, &path);
    a_forged_list_does_not_help(&lab, &path);
    an_unpacked_bundle_is_checked_too(&lab, &path);
    the_patch_is_checked_where_the_repository_is(&lab, &path);
}

fn anybody_checks_it(lab: &Lab, path: &Path) {
    verify(lab, path, &[]).ends(0).shows(&[
        "speedup     2.500x",
        "judged 5 rounds again",
        "files as listed, written by karve 0.2.0",
        "patch     not checked: no repository here has the commit",
        "every verdict matches its samples",
    ]);
    let found = verify(lab, path, &["--json"]).ends(0).json();
    assert_eq!((&found["rounds"], &found["differences"]), (&json!(5), &json!([])));
    assert_eq!(found["bundle"]["patch"]["state"], "not_checked");
    let opened = Opened::of(path);
    let readme = opened.text("README.md");
    for part in ["# Bundle of the campaign toy", "karve verify FILE.tar.gz", "`n=3`", "2.500x"] {
        assert!(readme.contains(part), "{part:?} is not in:\n{readme}");
    }
    assert!(opened.text("final.patch").contains("+TIME=40"));
    assert!(opened.text("environment.json").contains("\"cpu\""));
    assert!(opened.names().iter().filter(|name| name.starts_with("artifacts/")).count() > 3);
    // Other programs read it too.
    let unpacked = lab.beside("unpacked");
    fs::create_dir(&unpacked).unwrap();
    let script = format!("tar xzf {} && cd toy && sha256sum -c SHA256SUMS", path.display());
    let mut sh = lab.command_of("sh");
    sh.args(["-c", &script]).current_dir(unpacked);
    Said::of(&sh.output().unwrap()).ends(0).shows(&["events.jsonl: OK"]);
    assert_eq!(fs::read_dir(lab.beside("tmp")).unwrap().count(), 0, "nothing is left behind");
}

fn the_same_campaign_gives_the_same_bundle(lab: &Lab, path: &Path) {
    let again = lab.beside("again.tar.gz");
    let said = lab.karve(&["report", "--json", "--bundle", again.to_str().unwrap()]).ends(0).json();
    let bytes = fs::read(path).unwrap();
    assert_eq!(fs::read(&again).unwrap(), bytes);
    assert_eq!(said["sha256"], sha256_hex(&bytes));
    assert_eq!(said["bundle"]["hidden_cases"], json!(["n=3"]));
}

fn one_changed_byte_in_any_file_is_refused(lab: &Lab, path: &Path) {
    let changed = lab.beside("changed.tar.gz");
    let n_files = Opened::of(path).0.len();
    for number in 0..n_files {
        let mut opened = Opened::of(path);
        let (header, bytes) = &mut opened.0[number];
        let name = Opened::name(header);
        if bytes.is_empty() {
            continue;
        }
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        opened.write(&changed);
        verify(lab, &changed, &[]).ends(1).complains(&[
            "changed.tar.gz is not a valid bundle",
            if name == "SHA256SUMS" { "SHA256SUMS" } else { &name },
            "hint: get it again from the sender",
        ]);
    }
}

fn a_forged_list_does_not_help(lab: &Lab, path: &Path) {
    let changed = lab.beside("changed.tar.gz");
    let refused = |name: &str, change: &dyn Fn(String) -> String, want: &str| {
        let mut opened = Opened::of(path);
        let text = change(opened.text(name));
        assert_ne!(text, opened.text(name));
        opened.set(name, text.as_bytes());
        opened.list_again();
        opened.write(&changed);
        verify(lab, &changed, &[])
            .ends(1)
            .shows(&["differs", want])
            .complains(&["do not trust it"]);
    };
    // A better reading, a torn log, and an artifact, a report and facts that say something else.
    let log = "events.jsonl";
    let better = |text: String| text.replace("\"value\":60.0", "\"value\":30.0");
    refused(log, &better, "line ");
    refused(log, &|text| text[..text.len() - 20].to_owned(), "line ");
    // Readings of the final duel, which no round depends on.
    let final_line = |line: &str| match line.contains("\"duel\":{\"duel\":\"final\"}") {
        true => line.replace("\"value\":40.0", "\"value\":38.0") + "\n",
        false => format!("{line}\n"),
    };
    let better = |text: String| text.lines().map(final_line).collect::<String>();
    refused(log, &better, "final duel: stored \"2.500x");
    refused("REPORT.md", &|text| text.replace("2.500x", "9.500x"), "REPORT.md is not what the log");
    refused("environment.json", &|text| text.replace("cpu", "gpu"), "environment.json is not what");
    refused(
        "bundle.json",
        &|text| text.replace("true", "false"),
        "bundle.json is not what the log",
    );
    let artifact = Opened::of(path).names().into_iter().find(|name| name.starts_with("artifacts/"));
    let artifact = artifact.unwrap();
    refused(&artifact, &|text| format!("{text} "), &format!("{artifact} does not match its hash"));
    // What the facts say was left out is not looked for, and said.
    lab.karve(&["verify", "missing.tar.gz"]).ends(3).complains(&["cannot read", "--bundle FILE"]);
}

fn an_unpacked_bundle_is_checked_too(lab: &Lab, path: &Path) {
    let home = lab.beside("opened");
    let opened = Opened::of(path);
    for name in opened.names() {
        let file = home.join(&name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let bytes = opened.0.iter().find(|(header, _)| Opened::name(header) == name);
        fs::write(file, &bytes.unwrap().1).unwrap();
    }
    verify(lab, &home, &[]).ends(0).shows(&["judged 5 rounds again", "every verdict matches"]);
    let refused = |want: &str| verify(lab, &home, &[]).ends(1).complains(&["opened", want]);
    fs::write(home.join("notes.txt"), "mine").unwrap();
    refused("it has \"notes.txt\", which SHA256SUMS does not name");
    fs::remove_file(home.join("notes.txt")).unwrap();
    let log = fs::read_to_string(home.join("events.jsonl")).unwrap();
    fs::write(home.join("events.jsonl"), log.replace("60.0", "59.0")).unwrap();
    refused("events.jsonl does not match its hash");
    let list = fs::read_to_string(home.join("SHA256SUMS")).unwrap();
    let hash = list.split_whitespace().next().unwrap();
    fs::write(home.join("SHA256SUMS"), format!("{hash}  ../../../etc/passwd\n")).unwrap();
    refused("is not one that karve writes");
    fs::remove_file(home.join("SHA256SUMS")).unwrap();
    refused("\"karve verify --campaign NAME\"");
}

fn the_patch_is_checked_where_the_repository_is(lab: &Lab, path: &Path) {
    let file = path.to_str().unwrap();
    let objects = || lab.git(&["count-objects", "-v"]);
    let before = objects();
    lab.karve(&["verify", file]).ends(0).shows(&["patch     the original with it is the final"]);
    let changed = lab.beside("changed.tar.gz");
    let mut opened = Opened::of(path);
    let patch = opened.text("final.patch").replace("+TIME=40", "+TIME=41");
    opened.set("final.patch", patch.as_bytes());
    opened.list_again();
    opened.write(&changed);
    let said = lab.karve(&["verify", changed.to_str().unwrap()]).ends(1);
    said.shows(&["patch     does not give the final kernel", "differs   final.patch"]);
    assert_eq!(objects(), before, "nothing is written into the repository");
    // A clone needs the original commit only.
    let clone = lab.beside("clone");
    lab.git(&["clone", "-q", "--single-branch", ".", clone.to_str().unwrap()]);
    let said = lab.karve(&["-C", clone.to_str().unwrap(), "verify", file]).ends(0);
    said.shows(&["patch     the original with it is the final kernel"]);
}

#[test]
fn what_is_missing_or_unfinished_is_said() {
    let lab = Lab::new("gains");
    lab.dies("after:30");
    let path = lab.beside("toy.tar.gz");
    let artifacts = lab.campaign("artifacts");
    let gone = fs::read_dir(&artifacts).unwrap().next().unwrap().unwrap();
    fs::remove_file(gone.path()).unwrap();
    lab.karve(&["report", "--bundle", path.to_str().unwrap()]).ends(0).shows(&[
        "note      the campaign is not finished",
        "left out  1 artifact, too large or gone",
    ]);
    verify(&lab, &path, &[]).ends(0).shows(&["left out  1 artifact, so not checked"]);
    let readme = Opened::of(&path).text("README.md");
    assert!(readme.contains("**not finished**"), "{readme}");
    assert!(readme.contains(&*gone.file_name().to_string_lossy()), "{readme}");
    let nowhere = lab.beside("no/such/place.tar.gz");
    lab.karve(&["report", "--bundle", nowhere.to_str().unwrap()])
        .ends(3)
        .complains(&["cannot write", "--bundle FILE"]);
}
