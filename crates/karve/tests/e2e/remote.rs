//! Campaigns and commands on other machines: a real sshd and a real SLURM on this one.

mod far;

use crate::e2e::harness::in_workspace;
use crate::e2e::kill::reference;
use crate::e2e::lab::{Lab, PATH, Said, source, wait_until};
use crate::e2e::tidy::Remains;
pub(crate) use far::{Far, Ray, Slurm, Sshd, kill};
use std::fs;

/// A whole campaign there, which must end as the one here did.
#[track_caller]
fn ends_as_here(lab: &Lab, far: &Far) {
    lab.karve(&["run", "--yes", "--on", "far"]).ends(0);
    assert_eq!(reference().remains.difference(&Remains::of(lab)), None);
    lab.karve(&["remote", "add", "other", "--host", "nowhere"]).ends(0);
    let elsewhere = ["run", "--yes", "--campaign", "toy", "--on", "other"];
    lab.karve(&elsewhere).ends(2).complains(&["toy runs on far, not on other"]);
    let verified = lab.karve(&["verify", "--json"]).ends(0).json();
    assert_eq!(verified["differences"], serde_json::json!([]));
    assert_eq!(far.running(), Vec::<String>::new());
    let acquired = lab.events("device_acquired");
    assert_eq!(acquired.len(), 1, "{acquired:?}");
    let released = lab.events("device_released");
    let held = released[0]["held_ms"].as_u64().unwrap();
    assert!(held >= released[0]["busy_ms"].as_u64().unwrap());
}

#[test]
fn a_campaign_through_a_command_ends_as_it_does_here() {
    let lab = Lab::new("gains");
    let far = Far::by_command(&lab);
    ends_as_here(&lab, &far);
    let report = lab.karve(&["report"]).ends(0).stdout;
    assert!(report.contains("far:"), "{report}");
    // What is handed back is tested there: here the tests are without what they need.
    far.set("run", "false {command}");
    lab.karve(&["apply", "--branch", "fast"]).ends(3).complains(&["far cannot be reached"]);
    far.set("run", "{command}");
    lab.karve(&["apply", "--branch", "fast"]).ends(0);
    assert_eq!(lab.git(&["rev-parse", "fast"]), lab.git(&["rev-parse", "optimize/toy"]));
    assert_eq!(far.running(), Vec::<String>::new());
}

#[test]
fn a_workspace_is_measured_elsewhere_as_it_is_here() {
    let here = in_workspace();
    here.karve(&["run", "--yes"]).ends(0);
    let lab = in_workspace();
    let far = Far::by_command(&lab);
    lab.karve(&["run", "--yes", "--on", "far"]).ends(0);
    assert_eq!(Remains::of(&here).difference(&Remains::of(&lab)), None);
    assert_eq!(far.running(), Vec::<String>::new());
}

#[test]
fn a_campaign_over_ssh_ends_as_it_does_here() {
    let Some(sshd) = Sshd::start() else { return };
    let lab = Lab::new("gains");
    let far = Far::by_ssh(&lab, &sshd);
    ends_as_here(&lab, &far);
}

#[test]
fn a_campaign_in_allocations_of_slurm_ends_as_it_does_here() {
    let Some(slurm) = Slurm::start(8) else { return };
    for submit in ["salloc", "sbatch"] {
        let lab = Lab::new("gains");
        let far = Far::by_slurm(&lab, &slurm, &format!("submit = \"{submit}\"\n"));
        ends_as_here(&lab, &far);
        let acquired = &lab.events("device_acquired")[0]["device"];
        assert!(acquired["host"].as_str().unwrap().starts_with('n'), "{acquired}");
        assert!(acquired["allocation"].is_string(), "{acquired}");
        for block in lab.events("block_measured") {
            assert_eq!(block["block"]["conditions"]["host"], acquired["host"], "{block}");
        }
        wait_until("the allocation is given back", || slurm.jobs().is_empty());
    }
}

#[test]
fn a_campaign_in_an_actor_of_ray_ends_as_it_does_here() {
    let Some(ray) = Ray::start(1) else { return };
    let lab = Lab::new("gains");
    let far = Far::by_ray(&lab, &ray, 1);
    ends_as_here(&lab, &far);
}

/// What an agent tries with `karve exec`: a name, and a line that it runs there.
const TRIED: [(&str, &str); 8] = [
    ("files", "sed -n s/^TIME=//p kernel.sh; mkdir -p build; echo kept >>build/kept"),
    ("again", "echo kept >>build/kept; wc -l <build/kept"),
    ("log", "cat ../../events.jsonl ../../../../../*/*/campaigns/*/events.jsonl | head -c 9"),
    ("write", "echo x >../../left; echo $?"),
    ("flood", "yes karve | head -c 3000000 | tail -c 3000000"),
    ("queue", "squeue; scancel --state=RUNNING; sbatch --wrap=true; echo tried"),
    ("others", "ls /proc | grep -c ^[0-9]; kill -9 -1"),
    ("process", "setsid sleep 98765 >/dev/null 2>&1 & echo started"),
];

/// A campaign of one round whose agent runs commands where it is measured.
#[track_caller]
fn agent_runs_commands(far: impl Fn(&Lab) -> Far) {
    let lab = Lab::new("gains");
    lab.write(".gitignore", "build/\n");
    let tries = TRIED.map(|(name, line)| format!("say {name} '{line}'\n")).concat();
    let script = format!(
        "edit 's/TIME=100/TIME=77/'\n\
         say() {{\n  printf '# %s: %s\\n' \"$1\" \"$(karve exec -- sh -c \"$2\" 2>&1 \
         | tr '\\n' ' ' | head -c 300)\" >>kernel.sh\n}}\n\
         {tries}(cd / && karve exec -- pwd) >/dev/null && echo '# root: ran' >>kernel.sh\n\
         karve exec --limit 1 -- sleep 30 || echo \"# limit: $?\" >>kernel.sh\n\
         karve exec -- sleep 300 >/dev/null 2>&1 &\n\
         sleep 0.3\n\
         echo '{{\"summary\": \"done\"}}'"
    );
    lab.script("1", "implement", &script).commit();
    let far = far(&lab);
    lab.karve(&["run", "--yes", "--on", "far", "--rounds", "1"]).ends(0);
    let files = fs::read_dir(lab.campaign("artifacts")).unwrap().flatten();
    let texts: Vec<String> =
        files.map(|file| fs::read_to_string(file.path()).unwrap_or_default()).collect();
    let host = lab.events("device_acquired")[0]["device"]["host"].to_string();
    let said = format!("remote: far: {}", host.trim_matches('"'));
    assert!(texts.iter().any(|text| text.contains(&said) && text.contains("karve exec -- ")));
    let commit = lab.events("implemented")[0]["candidate"]["commit"].as_str().unwrap().to_owned();
    let kernel = lab.git(&["show", &format!("{commit}:kernel.sh")]);
    let line = |name: &str| {
        let mark = format!("# {name}: ");
        kernel
            .lines()
            .find_map(|line| line.strip_prefix(&mark))
            .unwrap_or_else(|| panic!("{kernel}"))
    };
    assert_eq!((line("files"), line("again")), ("77 ", "2 "), "{kernel}");
    assert!(!line("log").contains("{\"seq\"") && !line("log").contains("\"seq"), "{kernel}");
    assert!(line("flood").len() <= 300 && line("flood").starts_with("karve karve"), "{kernel}");
    assert!(line("queue").contains("tried ") && line("queue").contains("error"), "{kernel}");
    assert!(line("process").contains("started"), "{kernel}");
    assert_eq!((line("root"), line("limit")), ("ran", "1"), "{kernel}");
    assert_eq!(lab.events("device_acquired").len(), 1, "its own allocation, and no other");
    lab.karve(&["verify"]).ends(0);
    wait_until("nothing is left", || {
        far.running().is_empty() && far::processes_with("sleep 98765").is_empty()
    });
    assert!(far::processes_with("sleep 300").is_empty());
    let found = std::process::Command::new("find").arg(&far.dir).args(["-name", "left"]).output();
    assert_eq!(String::from_utf8(found.unwrap().stdout).unwrap(), "", "nothing outside its copy");
}

#[test]
fn an_agent_runs_commands_on_the_device_of_its_campaign_and_nowhere_else() {
    let (Some(sshd), Some(slurm)) = (Sshd::start(), Slurm::start(1)) else { return };
    agent_runs_commands(|lab| Far::by_ssh(lab, &sshd));
    agent_runs_commands(|lab| Far::by_slurm(lab, &slurm, ""));
    wait_until("the allocation is given back", || slurm.jobs().is_empty());
}

#[test]
fn a_device_is_given_back_while_an_agent_thinks_or_after_each_block() {
    for hold in ["round", "block"] {
        let lab = Lab::new("gains");
        let far = Far::by_command(&lab);
        far.set("hold", hold);
        far.set("release", &format!("echo given >>{}", far.dir.join("given").display()));
        far.set("price_per_hour", "__3600.0");
        lab.karve(&["run", "--yes", "--on", "far"]).ends(0);
        assert_eq!(reference().remains.difference(&Remains::of(&lab)), None);
        let given = fs::read_to_string(far.dir.join("given")).unwrap().lines().count();
        assert_eq!(lab.events("device_released").len(), given);
        assert!(given >= 5, "given back {given} times with hold = {hold}");
        let report = lab.karve(&["report"]).ends(0).stdout;
        assert!(report.contains(" paid; sandbox"), "{report}");
        assert_eq!(far.running(), Vec::<String>::new());
    }
}

#[test]
fn a_campaign_through_a_login_node_ends_as_it_does_here() {
    let (Some(sshd), Some(slurm)) = (Sshd::start(), Slurm::start(2)) else { return };
    let lab = Lab::new("gains");
    let far = Far::by_login(&lab, &sshd, &slurm);
    ends_as_here(&lab, &far);
    wait_until("the allocation is given back", || slurm.jobs().is_empty());
}

#[test]
fn commands_run_elsewhere_on_the_files_of_the_checkout() {
    let lab = Lab::new("gains");
    let far = Far::by_command(&lab);
    lab.write("kernel.sh", &lab.read("kernel.sh").replace("TIME=100", "TIME=50"));
    lab.write("new.txt", "mine\n");
    let line = "sed -n 's/^TIME=//p' kernel.sh; cat new.txt; echo made >made.txt; exit 3";
    let said = lab.karve(&["exec", "--on", "far", "--", "sh", "-c", line]).ends(3);
    assert_eq!(said.stdout, "50\nmine\n");
    assert_eq!(lab.read("made.txt"), "made\n");
    fs::remove_file(lab.path("made.txt")).unwrap();
    let bench = ["bench", "HEAD", ".", "--on", "far", "--save", "saved.json"];
    lab.karve(&bench).ends(0).shows(&["faster"]);
    assert!(lab.read("saved.json").contains("pairs"));
    lab.karve(&["check", "--on", "far"]).ends(0);
    lab.karve(&["doctor", "--on", "far"]).ends(0).shows(&["git"]);
    lab.karve(&["devices", "--on", "far"]).ends(0).shows(&["none is held"]);
    assert_eq!(far.running(), Vec::<String>::new());
}

#[test]
fn the_other_engines_of_the_documentation_work_with_stand_ins() {
    let docs = fs::read_to_string(source("docs/remote.md")).unwrap();
    let lab = Lab::new("gains");
    let (bin, state) = (lab.beside("bin"), lab.beside("jobs"));
    fs::create_dir(&bin).unwrap();
    fs::create_dir(&state).unwrap();
    for name in ["qsub", "qstat", "qdel", "ssh", "flux", "docker", "kubectl"] {
        std::os::unix::fs::symlink(source("testing/schedulers/fake"), bin.join(name)).unwrap();
    }
    for name in ["docker", "k8s", "pbs", "flux", "sge"] {
        let start = format!("[remote.{name}]\n");
        let table = docs.split(&start).nth(1).and_then(|rest| rest.split("\n\n").next());
        let far = Far::of(&lab, table.unwrap().split("```").next().unwrap());
        let karve = |args: &[&str]| {
            let mut command = lab.command(args);
            command.env("PATH", format!("{}:{PATH}", bin.display())).env("FAKE_STATE", &state);
            Said::of(&command.output().unwrap())
        };
        let jobs = || fs::read_dir(&state).unwrap().count();
        let held = format!("ls {} | wc -l; cat kernel.sh | wc -l", state.display());
        let said = karve(&["exec", "--on", "far", "--", "sh", "-c", &held]).ends(0);
        let held = if name == "k8s" { "0\n" } else { "1\n" };
        assert!(said.stdout.starts_with(held), "{name}: {said:#?}");
        assert_eq!(jobs(), 0, "{name} is given back");
        karve(&["exec", "--on", "far", "--", "sh", "-c", "exit 3"]).ends(3);
        assert_eq!((jobs(), far.running()), (0, Vec::new()), "{name}");
    }
}

#[test]
fn what_cannot_be_reached_is_said_with_what_to_do() {
    let lab = Lab::new("gains");
    let far = Far::by_command(&lab);
    let said = lab.karve(&["run", "--yes", "--on", "fare"]).ends(2);
    said.complains(&["fare", "karve remote list"]);
    lab.karve(&["remote", "check", "nowhere"]).ends(2).complains(&["far", "karve remote list"]);
    lab.karve(&["remote", "check", "far"]).ends(0).shows(&["reached", "sandbox", "there and back"]);
    // What a machine says that is no karve.
    for (run, part) in [
        ("true {command}", "cannot be reached"),
        ("echo hello; false {command}", "cannot be reached"),
        ("echo no such host >&2; false {command}", "no such host"),
        ("head -c 300000 /dev/urandom; : {command}", "cannot be reached"),
        ("{command} | head -c 100", "far"),
    ] {
        far.set("run", run);
        let said = lab.karve(&["remote", "check", "far"]);
        assert!(matches!(said.code, 1 | 3), "{run}: {said:#?}");
        said.complains(&[part, "hint"]);
    }
    assert!(!lab.path(".karve").exists(), "nothing half-done is left");
    let Some(sshd) = Sshd::start() else { return };
    let wrong = Far::by_ssh(&lab, &sshd);
    wrong.set("host", "unknown.invalid");
    lab.karve(&["remote", "check", "far"]).ends(3).complains(&["unknown.invalid"]);
    wrong.set("host", "far1");
    fs::remove_file(sshd.path("authorized_keys")).unwrap();
    let denied = lab.karve(&["remote", "check", "far"]).ends(3);
    denied.complains(&["Permission denied", "yourself: ssh -T"]);
}

#[test]
fn an_allocation_that_never_starts_is_shown_and_bounded() {
    let Some(slurm) = Slurm::start(1) else { return };
    let lab = Lab::new("gains");
    let far =
        Far::by_slurm(&lab, &slurm, "queue = \"3s\"\nargs = [\"-N\", \"1\", \"--exclusive\"]\n");
    slurm.run("salloc", &["--no-shell", "-N", "1", "--exclusive"]);
    let said = lab.karve(&["run", "--yes", "--on", "far"]).ends(3);
    said.complains(&["PENDING", "Resources", "remote.far.queue"]);
    assert_eq!(slurm.jobs().len(), 1, "only the other one is left");
    far.set("args", "__[\"--partition=none\"]");
    lab.karve(&["run", "--yes", "--on", "far"]).ends(3).complains(&["invalid partition"]);
}

#[test]
fn the_users_own_remotes_are_added_listed_and_removed() {
    let lab = Lab::new("gains");
    fs::create_dir(lab.beside("config")).unwrap();
    let karve = |args: &[&str]| lab.karve(args);
    karve(&["remote", "list"]).ends(0).shows(&["no remotes"]);
    karve(&["remote", "add", "box", "--host", "me@gpu1", "--option=-p", "--option=2222"]).ends(0);
    karve(&["remote", "add", "box", "--host", "other"]).ends(2).complains(&["already"]);
    karve(&["remote", "add", "bad name", "--host", "x"]).ends(2).complains(&["letters"]);
    karve(&["remote", "add", "odd", "--host=-oProxyCommand=touch"]).ends(2).complains(&["host"]);
    karve(&["remote", "add", "tmpl", "--engine", "command", "--run", "x"]).ends(2);
    karve(&["remote", "list"]).ends(0).shows(&["box", "me@gpu1", "user"]);
    // In the form of another workflow, with what is left to the user.
    lab.write("job_spec.json", r#"{"ssh_host": "login1", "partition": "gpu", "mounts": "/d:/d"}"#);
    let said = karve(&["remote", "add", "lab", "--job-spec", "job_spec.json"]).ends(0);
    said.complains(&["by hand in", ": mounts"]);
    karve(&["remote", "list"]).ends(0).shows(&["lab", "login1"]);
    karve(&["remote", "remove", "lab"]).ends(0);
    lab.write("job_spec.json", r#"{"partition": "gpu --wrap=x"}"#);
    let said = karve(&["remote", "add", "lab", "--job-spec", "job_spec.json"]).ends(2);
    said.complains(&["partition cannot be", "--engine slurm"]);
    karve(&["remote", "remove", "box"]).ends(0);
    karve(&["remote", "remove", "box"]).ends(2);
    fs::write(lab.beside("config/karve/remotes.toml"), "[x]\nengine = 7\n").unwrap();
    karve(&["remote", "list"]).ends(2).complains(&["remotes.toml", "docs/remote.md"]);
}
