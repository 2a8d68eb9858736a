//! Outputs that are truncated, shuffled, contradictory, huge or nonsense: no parser panics, and a
//! reported value is the one from the full output, or absent.

use super::*;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

/// Counters about a whole output, which differ for a part of it.
const OF_THE_WHOLE: [&str; 3] = ["launches", "share_pct", "inst_share_pct"];

/// Samples of all tools whose output is text.
fn samples() -> Vec<(ProfilerTool, String)> {
    let samples = [
        (ProfilerTool::Ncu, "ncu_details.csv"),
        (ProfilerTool::Ncu, "ncu_raw.csv"),
        (ProfilerTool::Ptxas, "ptxas.txt"),
        (ProfilerTool::Perf, "perf.csv"),
        (ProfilerTool::Cachegrind, "cachegrind.out"),
        (ProfilerTool::Callgrind, "callgrind.out"),
        (ProfilerTool::Rocprof, "rocprofv3.csv"),
        (ProfilerTool::RocprofCompute, "rocprof_compute.txt"),
        (ProfilerTool::Torch, "torch_trace.json"),
    ];
    // One launch of the long sample is enough.
    let is_other =
        |line: &str| ["\"1\",", "\"2\",", "\"3\","].iter().any(|id| line.starts_with(id));
    let shorter = |text: String| match text.len() > 20_000 {
        true => {
            let lines = text.lines().filter(|line| !is_other(line));
            lines.map(|line| format!("{line}\n")).collect()
        }
        // The median of several launches is reported, which changes if some are missing.
        false if rocprof::is_header(&text) => text.split_inclusive('\n').take(3).collect(),
        false => text,
    };
    samples.map(|(tool, name)| (tool, shorter(sample(name)))).into()
}

/// Whether each line of a tool names its kernel.
fn lines_stand_alone(tool: ProfilerTool) -> bool {
    match tool {
        ProfilerTool::Ncu
        | ProfilerTool::Perf
        | ProfilerTool::Rocprof
        | ProfilerTool::RocprofCompute => true,
        ProfilerTool::Ptxas
        | ProfilerTool::Cachegrind
        | ProfilerTool::Callgrind
        | ProfilerTool::Torch
        | ProfilerTool::Nsys => false,
    }
}

/// What differs between a full output and a damaged one.
fn lie(whole: &ParsedProfile, harmed: &ParsedProfile) -> Option<String> {
    for kernel in &harmed.kernels {
        let Some(honest) = whole.kernels.iter().find(|k| k.name == kernel.name) else {
            return Some(format!("there is no kernel {}", kernel.name));
        };
        for (name, counter) in &kernel.counters {
            let of_the_whole = OF_THE_WHOLE.contains(&name.as_str());
            if !of_the_whole && honest.value(name) != Some(counter.value) {
                let (is, was) = (counter.value, honest.value(name));
                return Some(format!("{} of {} is {is}, not {was:?}", name, kernel.name));
            }
        }
    }
    None
}

/// Reads a damaged output. It must be rejected, or report nothing that the full one does not.
fn check(tool: ProfilerTool, whole: &ParsedProfile, text: &str, what: &str) {
    let lie = parse(tool, text).ok().and_then(|harmed| lie(whole, &harmed));
    assert_eq!(lie, None, "{tool:?} {what}");
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(20),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

#[test]
fn an_output_that_is_cut_anywhere_tells_nothing_false() {
    for (tool, text) in samples() {
        // Trying every byte of a long sample takes too long.
        let text =
            if text.len() > 9_000 { text.split_inclusive('\n').take(20).collect() } else { text };
        let whole = parse(tool, &text).unwrap();
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let cut = &text[..end];
            let Ok(parsed) = parse(tool, cut) else {
                continue;
            };
            assert_eq!(lie(&whole, &parsed), None, "{tool:?} cut at {end}");
            let reported = parsed.notes.iter().any(|note| note.contains("ends"));
            let whole_enough = cut.ends_with('\n') || parsed == whole;
            assert!(reported || whole_enough, "{tool:?} cut at {end}");
        }
    }
}

/// Numbers with point and comma swapped, as in another locale.
fn localized(text: &str) -> String {
    let is_number = |cell: &str| {
        cell.contains(|c: char| c.is_ascii_digit())
            && cell.chars().all(|c| c.is_ascii_digit() || c == ',' || c == '.')
    };
    let swap = |cell: &str| -> String {
        let swapped = cell.chars().map(|c| match c {
            ',' => '.',
            '.' => ',',
            c => c,
        });
        swapped.collect()
    };
    let cells = text.split('"').map(|cell| match is_number(cell) {
        true if cell != "," => swap(cell),
        _ => cell.to_owned(),
    });
    cells.collect::<Vec<_>>().join("\"")
}

#[test]
fn numbers_of_another_locale_are_not_taken_for_others() {
    for (tool, text) in samples() {
        let whole = parse(tool, &text).unwrap();
        check(tool, &whole, &localized(&text), "localized");
        check(tool, &whole, &text.replace('.', ","), "with commas");
        // Each number alone, in an otherwise valid output.
        let digit = |c: char| c.is_ascii_digit();
        for (at, mark) in text.match_indices(['.', ',']) {
            if text[..at].ends_with(digit) && text[at + 1..].starts_with(digit) {
                let mut one = text.clone();
                one.replace_range(at..=at, if mark == "." { "," } else { "." });
                check(tool, &whole, &one, &format!("with another mark at {at}"));
            }
        }
    }
}

/// A line with another value in it, if it has one.
fn contradiction(line: &str) -> Option<String> {
    // Another name is not another value.
    let names = line.contains("Compiling entry function");
    let at = line.rfind(|c: char| c.is_ascii_digit()).filter(|_| !names)?;
    let digit = line[at..].chars().next()?.to_digit(10)?;
    let mut other = line.to_owned();
    other.replace_range(at..=at, &((digit + 1) % 10).to_string());
    Some(other)
}

#[test]
fn a_second_line_with_another_value_is_noticed() {
    for (tool, text) in samples() {
        let whole = parse(tool, &text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let doubled = |extra: &str| {
                let (before, after) = lines.split_at(index + 1);
                let all = before.iter().chain([&extra]).chain(after);
                all.map(|line| format!("{line}\n")).collect::<String>()
            };
            check(tool, &whole, &doubled(line), &format!("line {index} twice"));
            let is_rule = line.matches("\",\"").count() > 15 && tool == ProfilerTool::Ncu;
            if let (Some(other), false) = (contradiction(line), is_rule) {
                let what = format!("line {index} and {other}");
                check(tool, &whole, &doubled(&other), &what);
            }
        }
    }
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn lines_in_another_order_tell_nothing_false(
        order in Just((0..200).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        for (tool, text) in samples() {
            let whole = parse(tool, &text).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            let mixed = order.iter().filter_map(|at| lines.get(*at));
            let mixed: String = mixed.map(|line| format!("{line}\n")).collect();
            // If a line depends on the one before it, no parser can detect this; it must not panic.
            let read = parse(tool, &mixed);
            if let (true, Ok(read)) = (lines_stand_alone(tool), read) {
                prop_assert_eq!(lie(&whole, &read), None);
            }
        }
    }

}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn a_megabyte_in_one_place_is_borne(
        at in any::<Index>(),
        piece in prop_oneof![
            Just("x"), Just("9"), Just(","), Just("\""), Just("\"\""), Just("[{"), Just("é"),
            Just("1,"), Just("\"1\","), Just(" 1"),
        ],
        ends in any::<bool>(),
    ) {
        for (tool, text) in samples() {
            let whole = parse(tool, &text).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let at = at.index(lines.len());
            let long = piece.repeat(1_000_000 / piece.len());
            if ends { lines.insert(at, long) } else { lines[at].push_str(&long) }
            if let Ok(read) = parse(tool, &(lines.join("\n") + "\n")) {
                // A longer name is another kernel, so only values are compared.
                let known = |k: &KernelProfile| whole.kernels.iter().any(|w| w.name == k.name);
                let kernels = read.kernels.into_iter().filter(known).collect();
                let read = ParsedProfile { kernels, ..ParsedProfile::default() };
                if lines_stand_alone(tool) {
                    prop_assert_eq!(lie(&whole, &read), None);
                }
            }
        }
    }

    #[test]
    fn nonsense_makes_no_parser_panic(
        text in noise(),
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let bytes = String::from_utf8_lossy(&bytes);
        for tool in ProfilerTool::ALL {
            for text in [text.as_str(), &bytes] {
                let _ = sniff(text);
                match parse(tool, text) {
                    Ok(parsed) => {
                        let values = parsed.kernels.iter().chain(&parsed.timeline);
                        let mut values = values.flat_map(|kernel| kernel.counters.values());
                        prop_assert!(values.all(|counter| counter.value.is_finite()));
                    }
                    Err(unreadable) => prop_assert!(unreadable.line >= 1),
                }
            }
        }
    }
}

/// Pieces of outputs in any order.
fn noise() -> impl Strategy<Value = String> {
    let texts: Vec<String> = samples().into_iter().map(|(_, text)| text).collect();
    let lines: Vec<String> =
        texts.iter().flat_map(|text| text.lines().take(60)).map(str::to_owned).collect();
    let piece = prop_oneof![
        4 => proptest::sample::select(lines).prop_map(|line| line + "\n"),
        1 => "[\\[\\]{}(),:\"'=\r\n \\\\]{1,4}",
        1 => "(NaN|inf|-1e999|0|1.5|n/a|é|\u{feff}|18446744073709551616|fn=\\(1\\)|calls=)",
        1 => any::<String>(),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}
