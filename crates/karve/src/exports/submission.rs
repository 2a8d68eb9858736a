//! One file to submit: ModelNew for KernelBench, `submission.py` for GPU MODE.

use super::kernel::{KernelForm, KernelSource, kernel_of};
use super::{ExportNames, ExportResult, ExportSource};
use karve_os::error::{CommandError, Result};

/// What KernelBench and the wrapper below call the model.
const MODEL: &str = "ModelNew";

/// The mark of a directive of GPU MODE.
const POPCORN: &str = "#!POPCORN";

/// A file with `ModelNew`.
pub(super) fn kernelbench(source: &ExportSource<'_>) -> Result<ExportResult> {
    let kernel = kernel_of(source, "KernelBench")?;
    kernel.in_one_file("KernelBench", &|_| false)?;
    let name = format!("{}.py", file_name(&source.charter.target.op));
    let text = match kernel.form {
        KernelForm::Models => kernel.text,
        KernelForm::Returning => format!(
            "{}\n\n\n# Added by \"karve export\".\nimport torch\n\n\n\
             class {MODEL}(torch.nn.Module):\n    def __init__(self, *args, **kwargs):\n        \
             super().__init__()\n\n    def forward(self, *inputs):\n        \
             return kernel_fn(*inputs)\n",
            kernel.text.trim_end()
        ),
        KernelForm::Writing | KernelForm::Popcorn => {
            return Err(unfit(&kernel, "KernelBench calls a model that returns its outputs"));
        }
    };
    Ok(ExportResult::one(name, text))
}

/// `submission.py`, with the directives that name its leaderboard.
pub(super) fn gpumode(source: &ExportSource<'_>) -> Result<ExportResult> {
    let kernel = kernel_of(source, "GPU MODE")?;
    let editable = karve_harness::project_file::glob_set(&source.charter.editable)?;
    // The files of the task are there when it is evaluated; those of a contract are not.
    let is_given = |path: &str| kernel.form == KernelForm::Popcorn && !editable.is_match(path);
    kernel.in_one_file("GPU MODE", &is_given)?;
    let text = match kernel.form {
        KernelForm::Popcorn => kernel.text,
        KernelForm::Returning => format!(
            "{}\n\n\n# Added by \"karve export\".\ndef custom_kernel(data):\n    \
             return kernel_fn(*data)\n",
            kernel.text.trim_end()
        ),
        KernelForm::Models | KernelForm::Writing => {
            return Err(unfit(&kernel, "GPU MODE calls custom_kernel with its inputs alone"));
        }
    };
    let (text, has_leaderboard) = with_directives(&text, &source.names);
    let mut result = ExportResult::one("submission.py", text);
    if !has_leaderboard {
        result.notes.push(
            "no leaderboard is named in it: use --leaderboard NAME, or name it when you submit"
                .to_owned(),
        );
    }
    Ok(result)
}

fn unfit(kernel: &KernelSource, why: &str) -> CommandError {
    let is = match kernel.form {
        KernelForm::Models => "a model with state of its own",
        KernelForm::Returning => "a function that returns its outputs",
        KernelForm::Writing => "a function that gets its outputs as arguments",
        KernelForm::Popcorn => "a function of one tree of inputs",
    };
    CommandError::usage(format!("{} is {is}, and {why}", kernel.path))
        .hint("\"karve help export\" lists other formats")
}

/// The text with the directives first: those of the command line, else those that it has.
fn with_directives(text: &str, names: &ExportNames) -> (String, bool) {
    let is_comment = |line: &&str| line.starts_with('#');
    let header: Vec<&str> = text.lines().take_while(is_comment).collect();
    let own = |name: &str| {
        let words = header.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut own = words.filter(|words| words.len() > 2 && words[0] == POPCORN);
        let found = own.find(|words| words[1].trim_end_matches('s').eq_ignore_ascii_case(name));
        found.map(|words| words[2..].join(" "))
    };
    let gpus = Some(names.gpus.join(" ")).filter(|gpus| !gpus.is_empty());
    let leaderboard = names.leaderboard.clone().or_else(|| own("leaderboard"));
    let directives = [("leaderboard", &leaderboard), ("gpus", &gpus.or_else(|| own("gpu")))];
    let mut out = String::new();
    for (name, value) in directives {
        if let Some(value) = value {
            out.push_str(&format!("{POPCORN} {name} {value}\n"));
        }
    }
    for (at, line) in text.lines().enumerate() {
        if at >= header.len() || !line.starts_with(POPCORN) {
            out.push_str(line);
            out.push('\n');
        }
    }
    (out, leaderboard.is_some())
}

/// A name for a file: letters, digits, `-` and `_`.
pub(super) fn file_name(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = text.chars().map(|c| if is_plain(c) { c } else { '-' }).take(80).collect();
    if name.is_empty() { "kernel".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, leaderboard: Option<&str>, gpus: &[&str], want: &str) {
        let names = ExportNames {
            leaderboard: leaderboard.map(str::to_owned),
            gpus: gpus.iter().map(|gpu| (*gpu).to_owned()).collect(),
            ..ExportNames::default()
        };
        let (out, has) = with_directives(text, &names);
        assert_eq!(out, want);
        assert_eq!(has, want.contains("leaderboard"));
    }

    #[test]
    fn directives_come_first_and_once() {
        let body = "# a comment\nimport torch\n#!POPCORN leaderboard later\n";
        let want = "#!POPCORN leaderboard sort\n#!POPCORN gpus H100 B200\n";
        check(body, Some("sort"), &["H100", "B200"], &format!("{want}{body}"));
        let own = "# a comment\n#!POPCORN gpu A100\n#!POPCORN leaderboard scan\nx = 1\n";
        let kept = "#!POPCORN leaderboard scan\n#!POPCORN gpus A100\n# a comment\nx = 1\n";
        check(own, None, &[], kept);
        check(own, Some("sort"), &[], &kept.replace("scan", "sort"));
        check("x = 1\n", None, &[], "x = 1\n");
    }
}
