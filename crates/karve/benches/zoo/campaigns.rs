//! Every cheat and every honest kernel of `testdata` in whole campaigns of the real binary, one in
//! a round, with the default settings and with the weakest ones that a user can choose.
//!
//! A campaign ends with its first keep, and the next one plays the rest: all meet a plain kernel.

use crate::lab::{Lab, source};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::thread;

/// How a table names what became of a round.
const ENDS: [&str; 7] =
    ["kept", "audit", "correctness", "hidden cases", "duel", "verdict", "not measured"];

/// Cheats that are right on every listed case: without hidden cases, and where only listed shapes
/// count, they are what was asked for.
const RIGHT_AS_LISTED: [&str; 2] = ["s18_listed_shapes", "s21_feature_removal"];

/// A kernel that is played.
#[derive(Clone)]
struct Kernel {
    name: String,
    text: String,
    /// The rule of the audit that may name it although it is honest.
    except: String,
}

/// Kernels of one language that are played against the same plain one.
struct Group {
    name: &'static str,
    /// How the name of its file ends.
    extension: &'static str,
    honest: bool,
    kernels: Vec<Kernel>,
}

/// The settings that a campaign runs with, as replacements in the `karve.toml` of the cheats.
struct Settings {
    name: &'static str,
    replaced: &'static [(&'static str, &'static str)],
}

impl Settings {
    /// Whether a cheat may be kept, since nothing asks for what it leaves out.
    fn allows(&self, cheat: &str) -> bool {
        self.name == WEAKEST.name && RIGHT_AS_LISTED.contains(&cheat)
    }
}

/// What the project of the cheats has for a quick test, and what a campaign has by default: only
/// limits of time differ, and a similar claim is not refused.
const DEFAULT: Settings = Settings {
    name: "default",
    replaced: &[
        ("debug_retries = 0\n", ""),
        ("[policy.accept]\nwarm_up = \"first\"\n", ""),
        ("# Enough for a keep at the usual error of 5% over all rounds, and no more.\n", ""),
        ("blocks_max = 24\n", ""),
        ("[policy.controls]\nevery = 0\n", ""),
        ("mode = \"off\"", "mode = \"on\""),
    ],
};

/// The least evidence, the widest tolerances, and everything off that can be turned off.
const WEAKEST: Settings = Settings {
    name: "weakest",
    replaced: &[
        (
            "[policy]\n",
            "[metric]\nname = \"wall_time\"\nunit = \"us\"\nclocks = \"metric\"\n\n[policy]\n\
             preset = \"trtllm\"\nfull_when = { borderline = 1.0 }\n",
        ),
        (
            "warm_up = \"first\"\n",
            "warm_up = \"first\"\nnull_ratio = 1.0\neffect_ratio = 1.0\nalpha = 0.2\n\
             guard_evidence = 100\ncase_regress_ratio = \"none\"\nminor_regress_ratio = 100\n\
             tail_ratio = 100\nblocks_min = 1\nsmall_gain = \"accept_note\"\n\
             small_gain_ratio = 1.0\nerrors = \"false_discovery\"\n",
        ),
        ("hidden = [\"n=75\"]\n", ""),
        (
            "hostile = [\"denormals\", \"mixed\"]\n",
            "accuracy = \"torch\"\ndeterministic = false\nmixture = []\nshapes = \"listed\"\n",
        ),
        ("[campaign]\n", "[sandbox]\nmode = \"off\"\n\n[campaign]\n"),
    ],
};

/// Plays all groups so many times with either settings, or those that are named, all side by side;
/// prints a table, and gives how many cheats were kept and how many honest kernels flagged.
pub(crate) fn play(repetitions: usize, words: &[String]) -> usize {
    let (mut groups, mut settings) = (groups(), vec![DEFAULT, WEAKEST]);
    let is_wanted = |name: &str, of: &[&str]| {
        let any = words.iter().any(|word| of.contains(&word.as_str()));
        !any || words.iter().any(|word| word == name)
    };
    let names: Vec<&str> = groups.iter().map(|group| group.name).collect();
    groups.retain(|group| is_wanted(group.name, &names));
    settings.retain(|one| is_wanted(one.name, &["default", "weakest"]));
    let play_all = |one: &Settings| -> Vec<Vec<Round>> {
        groups.iter().map(|group| group.play(one)).collect()
    };
    // By settings, repetition, and group.
    let played: Vec<Vec<Vec<Vec<Round>>>> = thread::scope(|scope| {
        let start = |one| (0..repetitions).map(move |_| scope.spawn(move || play_all(one)));
        let started: Vec<Vec<_>> = settings.iter().map(|one| start(one).collect()).collect();
        let ended = |run: thread::ScopedJoinHandle<'_, _>| run.join().expect("campaigns");
        started.into_iter().map(|runs| runs.into_iter().map(ended).collect()).collect()
    });
    println!("| settings | kernels | rounds | {} | wrong |", ENDS.join(" | "));
    println!("|---|---|---|{}---|", "---|".repeat(ENDS.len()));
    let mut wrong = 0;
    for (one, runs) in settings.iter().zip(&played) {
        for (at, group) in groups.iter().enumerate() {
            let rounds: Vec<&Round> = runs.iter().flat_map(|run| &run[at]).collect();
            let count = |end| rounds.iter().filter(|round| round.end == end).count().to_string();
            let (n, ends) = (rounds.len(), ENDS.map(count).join(" | "));
            let of_group = rounds.iter().filter(|round| round.is_wrong).count();
            println!("| {} | {} | {n} | {ends} | {of_group} |", one.name, group.name);
            wrong += of_group;
        }
    }
    wrong
}

/// How one round ended.
struct Round {
    end: &'static str,
    is_wrong: bool,
}

impl Group {
    fn play(&self, settings: &Settings) -> Vec<Round> {
        let mut rounds = Vec::new();
        while rounds.len() < self.kernels.len() {
            let rest = &self.kernels[rounds.len()..];
            let alike = |kernel: &&Kernel| kernel.threads() == rest[0].threads();
            let played = &rest[..rest.iter().take_while(alike).count()];
            let lab = self.lab(settings, played);
            let said = lab.karve(&["run", "--yes"]);
            let (log, settled) = (lab.log(), lab.events("settled"));
            assert!(!settled.is_empty(), "{} {}: {said:#?}", settings.name, self.name);
            for ((number, event), kernel) in (1..).zip(&settled).zip(played) {
                let end = end(&log, number, event);
                let mut found = findings(&log, number);
                found.retain(|rule| *rule != kernel.except);
                let is_wrong = match self.honest {
                    true => !(["kept", "verdict"].contains(&end) && found.is_empty()),
                    false => end == "kept" && !settings.allows(&kernel.name),
                };
                let mark = if is_wrong { "WRONG " } else { "" };
                let (of, name, verdict) = (settings.name, &kernel.name, &event["verdict"]);
                println!("{mark}{of}, {}: {name}: {end}, {found:?}, {verdict}", self.name);
                rounds.push(Round { end, is_wrong });
            }
        }
        rounds
    }

    /// The project with a plain kernel of this language, and a script that plays some others.
    fn lab(&self, settings: &Settings, played: &[Kernel]) -> Lab {
        let lab = Lab::new("cheats/project");
        let file = format!("kernel.{}", self.extension);
        for (from, to) in settings.replaced {
            lab.replace("karve.toml", from, to);
        }
        lab.replace("karve.toml", "rounds = 100", &format!("rounds = {}", played.len()));
        lab.replace("karve.toml", "device = \"cpu\"", "device = \"cpu\"\ngoal = \">1.000001x\"");
        lab.replace("karve.toml", "[\"kernel.c\"]", &format!("[\"{file}\"]"));
        if played[0].threads() == 2 {
            lab.replace("karve.toml", "reduction =", "threads = 2\nreduction =");
        }
        if self.extension != "c" {
            // Compilers of other languages take longer, and none of these cheats hangs.
            lab.replace("karve.toml", "command_s = 5", "command_s = 60");
        }
        self.rewrite(&lab, &file);
        for (round, kernel) in (1_u32..).zip(played) {
            let name = &kernel.name;
            lab.write(&format!("cheats/{round}"), &kernel.text);
            let claim = format!("claim \"{name} {round}\" \"{name} {round}\" 2.0");
            let implement = format!("cp cheats/{round} {file}\necho done");
            let round = round.to_string();
            lab.script(&round, "propose", &claim).script(&round, "implement", &implement);
        }
        lab.commit();
        lab
    }

    /// Turns the project of the cheats into one in this language.
    fn rewrite(&self, lab: &Lab, file: &str) {
        let compile = "cc -O2 -falign-functions=64 -falign-loops=64 -pthread -shared -fPIC \
                       -o build/kernel.so kernel.c -ldl";
        let plain = lab.read("kernel.c");
        match self.extension {
            "c" => lab.replace("karve.toml", compile, &format!("{compile} -lm")),
            "cpp" => {
                let more = "-std=c++20 -Wl,--no-as-needed -lstdc++";
                let text = format!("#define restrict __restrict__\nextern \"C\" {{\n{plain}}}\n");
                lab.write(file, &text);
                let compile_it = compile.replace("kernel.c -ldl", &format!("{file} {more} -lm"));
                lab.replace("karve.toml", compile, &compile_it)
            }
            "rs" => {
                let sysroot = sysroot();
                let text = text_of("cheats/rust/cheats.rs");
                let head = text.split("\n// ").next().unwrap_or_default();
                lab.write(file, &format!("{head}\nentry!(product, honest);\n"));
                let compile_it = format!(
                    "{sysroot}/bin/rustc -O --edition 2024 --crate-type cdylib -C panic=abort \
                     -A warnings -o build/kernel.so {file}"
                );
                let read = format!("[sandbox]\nread = [\"{sysroot}\"]");
                let toml = lab.read("karve.toml");
                match toml.contains("[sandbox]") {
                    true => lab.replace("karve.toml", "[sandbox]", &read),
                    false => lab.configure(&read),
                };
                lab.replace("karve.toml", compile, &compile_it)
            }
            _ => self.rewrite_in_python(lab),
        };
    }

    fn rewrite_in_python<'a>(&self, lab: &'a Lab) -> &'a Lab {
        let toml = lab.read("karve.toml");
        let (head, rest) = toml.split_once("[commands]").expect("commands");
        let (_, rest) = rest.split_once("]\nreduction = \"n\"").expect("arguments");
        let (terms, rest) = rest.split_once("[contract.reference]").expect("a reference");
        let (_, rest) = rest.split_once("[cases]").expect("cases");
        let rest = rest.replace("n=96", "n=1000").replace("n=75", "n=77");
        lab.write("karve.toml", &format!("{head}{PYTHON}{terms}{REFERENCE}[cases]{rest}"));
        lab.write("kernel.py", &format!("import numpy as np\n\n\ndef kernel_fn{PLAIN}"));
        lab.write("reference.py", &format!("import numpy as np\n\n\ndef reference_fn{PLAIN}"));
        lab
    }
}

const PYTHON: &str = r#"[commands]

[contract]
python = "kernel.py"
interpreter = "/usr/bin/python3"
args = [
  { name = "n", kind = "scalar", dtype = "i64", value = "n" },
  { name = "alpha", kind = "scalar", dtype = "f32", value = "3/2" },
  { name = "x", kind = "input", dtype = "f32", shape = ["n"] },
  { name = "y", kind = "inout", dtype = "f32", shape = ["n"] },
  { name = "z", kind = "output", dtype = "f32", shape = ["n"] },
]
reduction = "1""#;

const REFERENCE: &str = "[contract.reference]\npython = \"reference.py\"\n\n";

const PLAIN: &str = "(n, alpha, x, y):
    z = x * y
    y += np.asarray(alpha, dtype=x.dtype) * x
    return z
";

/// What ended a round: the layer, as far as the log of a campaign says.
fn end(log: &[Value], number: u64, settled: &Value) -> &'static str {
    let verdict = &settled["verdict"];
    if verdict["verdict"].as_str().is_some_and(|verdict| verdict.starts_with("keep")) {
        return "kept";
    }
    let events = of_round(log, number);
    let refused = events.iter().find(|event| {
        let gate = event["gate"]["gate"].as_str();
        gate.is_some_and(|gate| gate != "passed")
    });
    let Some(event) = refused else {
        let reason = verdict["reason"]["reason"].as_str().unwrap_or_default();
        let unmeasured = ["no_candidate", "no_change", "same_artifact", "already_tried"];
        return if unmeasured.contains(&reason) { "not measured" } else { "verdict" };
    };
    let why = event["gate"]["why"].as_str().unwrap_or_default();
    match (&event["type"], &event["gate"]["gate"], &event["gate"]["case"]) {
        (kind, _, _) if kind == "block_failed" => "duel",
        (_, gate, _) if gate == "build_failed" || gate == "out_of_scope" => "not measured",
        (_, _, case) if case == "a hidden case" => "hidden cases",
        _ if why.starts_with("the audit forbids") => "audit",
        _ => "correctness",
    }
}

fn of_round(log: &[Value], number: u64) -> Vec<&Value> {
    let events = log.iter().map(|record| &record["event"]);
    events.filter(|event| event["round"] == number || event["duel"]["round"] == number).collect()
}

/// The rules of the audit that a round met, advice aside.
fn findings(log: &[Value], number: u64) -> Vec<String> {
    let events = of_round(log, number);
    let found = events.iter().flat_map(|event| event["findings"].as_array().into_iter().flatten());
    let counts = found.filter(|finding| finding["severity"] != "advice");
    let mut rules: Vec<String> =
        counts.map(|finding| finding["rule"].as_str().unwrap_or_default().to_owned()).collect();
    rules.sort();
    rules.dedup();
    rules
}

/// Where the Rust compiler is, whatever starts it.
fn sysroot() -> String {
    let said = Command::new("rustc").args(["--print", "sysroot"]).output().expect("rustc");
    String::from_utf8(said.stdout).expect("a path").trim().to_owned()
}

fn groups() -> Vec<Group> {
    let group = |name, extension, honest, mut kernels: Vec<Kernel>| {
        kernels.sort_by_key(Kernel::threads);
        Group { name, extension, honest, kernels }
    };
    let honest_c = [files("honest"), entries("styles/kernels.c", "void ")].concat();
    vec![
        group("cheats in C", "c", false, files("cheats/kernels")),
        group("cheats in Rust", "rs", false, cheats_in_rust()),
        group("cheats in Python", "py", false, files("cheats/python")),
        group("honest C", "c", true, honest_c),
        group("honest C++", "cpp", true, entries("styles/kernels.cpp", "void ")),
        group("honest Rust", "rs", true, entries("styles/kernels.rs", "entry!(")),
        group("honest Python", "py", true, sections("styles/kernels.py")),
    ]
}

impl Kernel {
    fn new(name: &str, text: &str) -> Self {
        Self { name: name.replace(' ', "_"), text: text.to_owned(), except: String::new() }
    }

    /// How many threads it may use.
    fn threads(&self) -> u32 {
        if self.name.starts_with("threads") { 2 } else { 1 }
    }
}

fn text_of(path: &str) -> String {
    fs::read_to_string(source("testdata").join(path)).expect("kernels")
}

/// One kernel in each file.
fn files(dir: &str) -> Vec<Kernel> {
    let files = fs::read_dir(source("testdata").join(dir)).expect("kernels");
    let files = files.map(|file| file.expect("a file")).filter(|file| file.path().is_file());
    let mut names: Vec<String> =
        files.map(|file| file.file_name().into_string().expect("a name")).collect();
    names.sort();
    let kernel = |name: &String| {
        let stem = name.split('.').next().unwrap_or_default();
        Kernel::new(stem, &text_of(&format!("{dir}/{name}")))
    };
    names.iter().map(kernel).collect()
}

/// One kernel for each entry of a file, which is called `product` in it. Of Rust the other entries
/// are left out, for each of them would be exported.
fn entries(path: &str, begin: &str) -> Vec<Kernel> {
    let text = text_of(path);
    let name_of = |line: &str| {
        let (name, rest) = line.strip_prefix(begin)?.split_once(['(', ','])?;
        (begin != "void " || rest.starts_with("int n, const float")).then(|| name.to_owned())
    };
    let kernel = |name: String| {
        let own = format!("{begin}{name}");
        let as_product = |line: &str| match name_of(line) {
            Some(other) if other == name => line.replacen(&own, &format!("{begin}product"), 1),
            Some(_) if path.ends_with("rs") => String::new(),
            _ => line.to_owned(),
        };
        let text: String = text.lines().map(as_product).map(|line| line + "\n").collect();
        // The functions of all others are in the file too, and have no part in the results.
        Kernel { except: "ghost".into(), ..Kernel::new(&name, &text) }
    };
    text.lines().filter_map(name_of).map(kernel).collect()
}

/// What all cheats in Rust have in common, and each with its entry and what belongs to it.
fn cheats_in_rust() -> Vec<Kernel> {
    let text = text_of("cheats/rust/cheats.rs");
    let (head, cheats) = text.split_once("\n// ").expect("a cheat");
    let kernel = |section: &str| {
        let (_, cheat) = section.split_once("\nentry!(").expect("an entry");
        let (name, cheat) = cheat.split_once(',').expect("a name");
        Kernel::new(name, &format!("{head}\nentry!(product,{cheat}"))
    };
    cheats.split("\n// ").map(kernel).collect()
}

/// One kernel in each section of a Python file.
fn sections(path: &str) -> Vec<Kernel> {
    let text = text_of(path);
    let kernel = |section: &str| {
        let (head, kernel) = section.split_once('\n').expect("a style");
        let (style, except) = head.split_once("; audit: ").unwrap_or((head, ""));
        Kernel { except: except.to_owned(), ..Kernel::new(style, kernel) }
    };
    text.split("# style: ").skip(1).map(kernel).collect()
}
