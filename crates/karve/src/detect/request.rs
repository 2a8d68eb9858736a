//! A target in a person's words, such as "optimize gemm_fp8_blockwise in Triton on MI300X to more
//! than 500 TFLOPS, at most 40 rounds": what the words name, and nothing that they do not.

/// What a request names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WordedTarget {
    /// The operation, as written.
    pub op: Option<String>,
    /// The backend or language.
    pub backend: Option<String>,
    /// The device.
    pub device: Option<String>,
    /// The goal, in the form of `target.goal`.
    pub goal: Option<String>,
    /// The number of rounds.
    pub rounds: Option<u32>,
    /// The hours.
    pub hours: Option<f64>,
    /// The workflow.
    pub preset: Option<String>,
    /// Whether all shapes of the benchmark are meant.
    pub all_shapes: bool,
}

/// Backends and languages by the words that name them.
const BACKENDS: [(&str, &str); 12] = [
    ("triton", "TRITON"),
    ("flydsl", "FLYDSL"),
    ("hipblaslt", "HIPBLASLT"),
    ("turbo", "TURBO"),
    ("ck", "CK"),
    ("hip", "HIP"),
    ("cutile", "cutile"),
    ("cute", "cute"),
    ("cuda", "cuda"),
    ("rust", "rust"),
    ("c++", "c++"),
    ("numpy", "numpy"),
];
/// Workflows by their names.
const PRESETS: [&str; 5] = ["hyper-mla", "primus", "tilegym", "trtllm", "strict"];
/// Parts of the names of operations.
const OPERATIONS: [&str; 16] = [
    "gemm",
    "matmul",
    "attention",
    "attn",
    "softmax",
    "norm",
    "conv",
    "rope",
    "moe",
    "reduce",
    "sum",
    "scan",
    "sort",
    "transpose",
    "mla",
    "swiglu",
];
/// How the names of devices begin.
const DEVICES: [&str; 13] = [
    "mi2", "mi3", "gfx", "h100", "h200", "b200", "b300", "gb200", "a100", "l40", "rtx", "sm_",
    "sm1",
];

/// Reads a request.
pub fn read_words(text: &str) -> WordedTarget {
    let is_part = |c: char| c.is_alphanumeric() || "_+-.%<>=/".contains(c);
    let tokens: Vec<&str> = text
        .split(|c: char| !is_part(c))
        .map(|token| token.trim_matches(|c: char| ".-/".contains(c)))
        .filter(|token| !token.is_empty())
        .collect();
    let lower: Vec<String> = tokens.iter().map(|token| token.to_lowercase()).collect();
    let find = |wanted: &dyn Fn(&str) -> bool| lower.iter().position(|token| wanted(token));
    let as_written = |at: usize| tokens[at].to_owned();
    let is_op = |token: &str| {
        let named = OPERATIONS.iter().any(|op| token.contains(op));
        named && !token.contains(['.', '/', '%'])
    };
    // A name with parts, as in code, is meant before a word of the sentence.
    let op = find(&|token| is_op(token) && token.contains('_')).or_else(|| find(&is_op));
    let is_device = |token: &str| {
        DEVICES.iter().any(|prefix| token.starts_with(prefix))
            && token.chars().any(|c| c.is_ascii_digit())
    };
    let device = find(&is_device).or_else(|| find(&|token| token == "cpu"));
    let backend = BACKENDS.iter().find(|(word, _)| lower.iter().any(|token| token == word));
    let preset = PRESETS.iter().find(|name| {
        lower.iter().any(|token| token == *name || token.starts_with(&format!("{name}-")))
    });
    WordedTarget {
        op: op.map(as_written),
        backend: backend.map(|(_, name)| (*name).to_owned()),
        device: device.map(|at| match lower[at].as_str() {
            "cpu" => "cpu".to_owned(),
            _ => as_written(at),
        }),
        goal: goal(&lower),
        rounds: counted(&lower, &["round", "rounds", "iteration", "iterations"])
            .and_then(|count| count.parse().ok()),
        hours: counted(&lower, &["hour", "hours", "h"]).and_then(|count| count.parse().ok()),
        preset: preset.map(|name| (*name).to_owned()),
        all_shapes: lower
            .windows(2)
            .any(|two| two[0] == "all" && ["shapes", "shape", "cases"].contains(&two[1].as_str())),
    }
}

/// The number before one of these words.
fn counted<'a>(tokens: &'a [String], words: &[&str]) -> Option<&'a String> {
    let pairs = tokens.windows(2);
    pairs
        .filter(|two| words.contains(&two[1].as_str()))
        .map(|two| &two[0])
        .find(|number| number.parse::<f64>().is_ok_and(|number| number.is_finite() && number > 0.0))
}

/// A goal: a rate, a share of the peak, a time, or a speedup.
fn goal(tokens: &[String]) -> Option<String> {
    let number = |token: &str| {
        let bare = token.trim_start_matches(['<', '>', '=']);
        bare.parse::<f64>().is_ok_and(|value| value > 0.0).then(|| bare.to_owned())
    };
    let after = |at: usize| tokens.get(at + 1).map(String::as_str).unwrap_or_default();
    tokens.iter().enumerate().find_map(|(at, token)| {
        let is_peak = |word: &str| ["peak", "of"].contains(&word);
        if let Some(share) = token.strip_suffix('%').and_then(number)
            && is_peak(after(at))
        {
            return Some(format!(">{share}% peak"));
        }
        if let Some(ratio) = token.strip_suffix('x').and_then(number) {
            return Some(format!(">{ratio}x"));
        }
        let value = number(token)?;
        match after(at) {
            "tflops" | "tflop/s" => Some(format!(">{value} TFLOPS")),
            "gflops" | "gflop/s" => Some(format!(">{value} GFLOPS")),
            unit @ ("ms" | "us" | "ns") => Some(format!("<{value} {unit}")),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_operation_backend_device_goal_and_limits() {
        let read = read_words(
            "Optimize gemm_fp8_blockwise with the Triton backend on MI300X to >500 TFLOPS over \
             all shapes, at most 40 rounds or 8 hours, as primus does.",
        );
        let want = WordedTarget {
            op: Some("gemm_fp8_blockwise".into()),
            backend: Some("TRITON".into()),
            device: Some("MI300X".into()),
            goal: Some(">500 TFLOPS".into()),
            rounds: Some(40),
            hours: Some(8.0),
            preset: Some("primus".into()),
            all_shapes: true,
        };
        assert_eq!(read, want);
    }

    #[test]
    fn goals_are_read_in_every_form_and_nothing_is_made_up() {
        let check = |text: &str, want: Option<&str>| {
            assert_eq!(read_words(text).goal.as_deref(), want, "{text}");
        };
        check("make softmax 2x faster", Some(">2x"));
        check("reach 60% of peak", Some(">60% peak"));
        check("under 1.5 ms please", Some("<1.5 ms"));
        check("with 8 warps and 16 stages", None);
        assert_eq!(read_words("make it faster"), WordedTarget::default());
        let cpu = read_words("speed up the matmul on the CPU in Rust");
        assert_eq!((cpu.op.as_deref(), cpu.device.as_deref()), (Some("matmul"), Some("cpu")));
        assert_eq!(cpu.backend.as_deref(), Some("rust"));
    }
}
