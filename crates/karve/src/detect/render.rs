//! A proposal as a commented `karve.toml`.

use super::ConfigProposal;
use crate::config::PROFILE_AUTO;
use karve_core::charter::Better;
use std::fmt::Write as _;

/// The widest comment, in columns.
const WIDTH: usize = 96;

/// The text of a `karve.toml` for the proposal, with comments that help to edit it.
pub fn render_karve_toml(proposal: &ConfigProposal) -> String {
    let mut out = TomlText::default();
    out.comment("What karve may do here, and how the kernel is judged.");
    out.comment("\"karve doctor\" checks this file, \"karve run\" starts a campaign.");
    for why in &proposal.why {
        out.comment(&format!("- {why}"));
    }
    target(&mut out, proposal);
    commands(&mut out, proposal);
    numbers(&mut out, proposal);
    cases(&mut out, proposal);
    rules(&mut out);
    sandbox(&mut out, proposal);
    out.0
}

fn target(out: &mut TomlText, proposal: &ConfigProposal) {
    out.table("target");
    out.value("op", &proposal.op);
    out.value("backend", &proposal.backend);
    out.value("language", &proposal.language);
    out.value("device", &proposal.device);
    out.comment("Stop at this goal: \"<1.2 ms\", \">500 TFLOPS\", \">60% peak\" or \">5x\".");
    out.comment("goal = \">2x\"");
    out.table("sources");
    out.comment(
        "Globs of the files that may be changed; everything else is read-only. \"*\" stays",
    );
    out.comment("in one directory, \"**\" does not.");
    out.list("editable", &proposal.editable);
}

fn commands(out: &mut TomlText, proposal: &ConfigProposal) {
    out.table("commands");
    out.comment(
        "Run by sh in this directory. {case}, {seed} and the parameters of the case, such as",
    );
    out.comment("{M}, are replaced and quoted; write {{ for a literal brace.");
    match &proposal.build {
        Some(build) => out.value("build", build),
        None => out.comment("build = \"make -s\"   # if there is something to build"),
    }
    out.comment("Exits with 0 if and only if the kernel is correct.");
    out.value("test", &proposal.test);
    out.comment("Prints the numbers; a command with {out} writes them to that file instead.");
    out.value("bench", &proposal.bench);
    out.comment("auto: installed profilers show why the kernel is slow; or a command of your own.");
    out.value("profile", PROFILE_AUTO);
    out.comment("Prints METRIC peak_gflops=<number>; lets karve report the share of the peak.");
    out.comment("peak = \"./build/peak\"");
    out.comment("Globs of the build outputs; if they are byte-identical, nothing is measured.");
    out.comment("artifacts = [\"build/*.o\"]");
}

fn numbers(out: &mut TomlText, proposal: &ConfigProposal) {
    out.table("output");
    out.comment("csv, json, jsonl, metric (lines like METRIC time_ms=1.5 case=small), hyperfine,");
    out.comment("pytest (records of --print-record), google-benchmark, nvbench, nvbench-csv,");
    out.comment("pytest-benchmark, criterion, libtest or triton.");
    out.value("format", &proposal.format);
    out.table("metric");
    out.value("name", &proposal.metric_name);
    out.value("unit", &proposal.metric_unit);
    out.value(
        "better",
        match proposal.better {
            Better::Lower => "lower",
            Better::Higher => "higher",
        },
    );
    out.comment("Operations of one case, in terms of its parameters; gives the share of the peak.");
    out.comment("work = \"2*M*N*K\"");
    out.comment("Bytes that it must read and write, each once; \"karve roofline\" needs both.");
    out.comment("bytes = \"4*(M*K + K*N + M*N)\"");
}

fn cases(out: &mut TomlText, proposal: &ConfigProposal) {
    out.table("cases");
    out.comment(
        "Every case counts, and none may become slower. A name like \"M=256,N=256\" also gives",
    );
    out.comment("the parameters; { name = \"odd\", M = 129 } gives them separately.");
    out.list("list", &proposal.cases);
    out.comment("Cases that briefs never mention; they show whether a gain is general.");
    out.comment("hidden = [\"M=100,N=50,K=60\"]");
    out.comment("Names of a few cases that are measured first, to drop a bad candidate early.");
    out.comment("quick = [\"M=256,N=256,K=256\"]");
}

fn rules(out: &mut TomlText) {
    out.table("policy");
    out.comment("strict: a gain is at least 2%, no case gets 2% slower. Others: primus, tilegym,");
    out.comment("trtllm, hyper-mla. Every rule can be overridden here; see karve.schema.json.");
    out.value("preset", "strict");
    out.table("limits");
    out.0.push_str("rounds = 40\nhours = 8.0\n");
    out.comment("Seconds that one command may take.");
    out.0.push_str("command_s = 900\n");
    out.table("agent");
    out.comment(
        "builtin tunes what it can without a model; [agents.mine] with command = \"…\" makes",
    );
    out.comment("any program an agent that can be selected here.");
    out.value("name", "builtin");
}

/// Only if something needs to be set: the sandbox is on by default.
fn sandbox(out: &mut TomlText, proposal: &ConfigProposal) {
    if proposal.write.is_empty() {
        return;
    }
    out.table("sandbox");
    out.comment("What the benchmark may write in its worktree; the rest is read-only for it.");
    out.list("write", &proposal.write);
}

#[derive(Default)]
struct TomlText(String);

impl TomlText {
    fn table(&mut self, name: &str) {
        let _ = write!(self.0, "\n[{name}]\n");
    }

    /// A comment, wrapped between words.
    fn comment(&mut self, text: &str) {
        let mut line = "#".to_owned();
        let plain = text.replace(char::is_control, " ");
        for word in plain.split(' ') {
            if line.chars().count() + word.chars().count() >= WIDTH && line.len() > 2 {
                let _ = writeln!(self.0, "{line}");
                line = "# ".to_owned();
            }
            line.push(' ');
            line.push_str(word);
        }
        let _ = writeln!(self.0, "{}", line.trim_end());
    }

    fn value(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.0, "{key} = {}", quoted(value));
    }

    fn list(&mut self, key: &str, items: &[String]) {
        let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
        let _ = writeln!(self.0, "{key} = [{}]", items.join(", "));
    }
}

/// A TOML string; the crate handles escaping.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
