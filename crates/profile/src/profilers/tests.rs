//! Values from real outputs, and what limits the four sample kernels.

mod hostile;
mod timelines;

use super::*;
use karve_core::profile::{Bottleneck, DiagnosisRuleSet, diagnose};

/// A sample of `testdata/profiles/`.
fn sample(name: &str) -> String {
    let path = format!("{}/../../testdata/profiles/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn read(tool: ProfilerTool, name: &str) -> ParsedProfile {
    let text = sample(name);
    assert_eq!(sniff(&text), Some(tool), "{name}");
    let parsed = parse(tool, &text).unwrap_or_else(|e| panic!("{name}: {e}"));
    for (counter, value) in parsed.kernels.iter().flat_map(|kernel| &kernel.counters) {
        let known = karve_core::profile::counters::known(counter);
        assert!(known.is_some(), "{counter}");
        assert_eq!(value.source.tool, tool.name());
        let quoted =
            matches!(tool, ProfilerTool::Ncu | ProfilerTool::Ptxas | ProfilerTool::RocprofCompute);
        if value.source.line > 0 && quoted {
            let line = text.lines().nth(value.source.line as usize - 1).unwrap();
            let word = value.source.quote.split([' ', ',']).nth(1).unwrap();
            let there = line.contains(word);
            assert!(there, "{counter}: {:?} is not in {line}", value.source.quote);
        }
    }
    parsed
}

fn kernel<'a>(parsed: &'a ParsedProfile, name: &str) -> &'a KernelProfile {
    let found = parsed.kernels.iter().find(|kernel| kernel.name.starts_with(name));
    found.unwrap_or_else(|| panic!("{name} is not in {:?}", parsed.kernels))
}

/// Checks values to within a millionth.
fn check(kernel: &KernelProfile, want: &[(&str, f64)]) {
    for (counter, want) in want {
        let value = kernel.value(counter);
        let near = value.is_some_and(|value| (value - want).abs() <= want.abs() * 1e-6);
        assert!(near, "{}: {counter} is {value:?}, not {want}", kernel.name);
    }
}

fn names(parsed: &ParsedProfile) -> Vec<&str> {
    let names = parsed.kernels.iter().map(|kernel| kernel.name.as_str());
    names.map(|name| name.split('(').next().unwrap()).collect()
}

#[test]
fn the_page_details_of_ncu_is_read_with_its_rules() {
    let parsed = read(ProfilerTool::Ncu, "ncu_details.csv");
    assert_eq!(names(&parsed), ["strided", "sgemm_naive", "sgemm_tiled", "copyk"]);
    let naive = kernel(&parsed, "sgemm_naive");
    check(
        naive,
        &[
            ("duration_us", 3176.0),
            ("launches", 1.0),
            ("compute_pct", 64.84),
            ("memory_pct", 97.30),
            ("dram_pct", 0.30),
            ("l1_pct", 97.81),
            ("l2_pct", 19.54),
            ("dram_bytes_per_s", 14_450_297_229.22),
            ("l1_hit_pct", 87.46),
            ("l2_hit_pct", 98.77),
            ("occupancy_pct", 97.87),
            ("occupancy_limit_pct", 100.0),
            ("registers", 32.0),
            ("shared_bytes", 0.0),
            ("waves", 15.52),
            ("blocks", 16_384.0),
            ("threads_per_block", 256.0),
            ("units", 132.0),
            ("issue_pct", 37.14),
            ("ipc", 1.49),
            ("eligible_warps", 2.49),
            ("spill_requests", 0.0),
            ("branch_efficiency_pct", 100.0),
            ("clock_hz", 1_978_963_436.71),
            ("instructions", 1_230_897_152.0),
            ("cycles", 6_288_139.0),
            ("stall.lg_throttle", 39.4),
            ("stall.long_scoreboard", 31.7),
        ],
    );
    let source = &naive.counters["duration_us"].source;
    assert_eq!((source.line, source.quote.as_str()), (13, "Duration 3,176,000 ns"));
    check(kernel(&parsed, "sgemm_tiled"), &[("shared_bytes", 2048.0)]);
    let strided = kernel(&parsed, "strided");
    check(strided, &[("wasted_sectors_pct", 100.0 * 234_881_024.0 / 301_989_888.0)]);
    let rule = |name: &str| strided.remarks.iter().find(|remark| remark.rule == name);
    assert_eq!(rule("UncoalescedGlobalAccess").unwrap().gain_pct, Some(77.11));
    // A gain on a part of the device is not a gain in run time.
    assert_eq!(rule("HighPipeUtilization").unwrap().gain_pct, None);
    assert_eq!(parsed.notes, Vec::<String>::new());
}

#[test]
fn the_page_raw_of_ncu_has_units_pipes_and_stalls() {
    let parsed = read(ProfilerTool::Ncu, "ncu_raw.csv");
    assert_eq!(names(&parsed), ["strided", "sgemm_naive", "sgemm_tiled", "copyk"]);
    check(
        kernel(&parsed, "sgemm_tiled"),
        &[
            ("duration_us", 2104.288),
            ("compute_pct", 73.35),
            ("memory_pct", 93.64),
            ("shared_pct", 80.61),
            ("l1_pct", 93.78),
            ("fma_pct", 15.29),
            ("tensor_pct", 0.01),
            ("sectors_per_request", 4.0),
            ("wasted_sectors_pct", 0.0),
            ("bank_conflict_pct", 100.0 * 2_319_923.0 / 442_966_049.0),
            ("shared_bytes", 2048.0),
            ("dram_bytes", 33_595_136.0 + 12_513_536.0),
            ("dram_bytes_per_s", 21_911_768_731.28),
            ("issue_pct", 35.95),
            ("active_threads", 32.0),
            ("cycles", 4_166_330.0),
        ],
    );
    let strided = kernel(&parsed, "strided");
    check(
        strided,
        &[
            ("sectors_per_request", 32.0),
            ("wasted_sectors_pct", 77.777_777_8),
            ("dram_bytes", 18_254_538_752.0),
            ("clock_hz", 1_979_813_708.98),
        ],
    );
    assert!(strided.value("stall.selected").is_none());
    let stalls = strided.counters.iter().filter(|(name, _)| name.starts_with("stall."));
    let stalls: Vec<f64> = stalls.map(|(_, counter)| counter.value).collect();
    assert!(stalls.len() > 15);
    let all: f64 = stalls.iter().sum();
    assert!((98.0..100.0).contains(&all), "{all}");
    let waits = strided.value("stall.long_scoreboard").unwrap();
    assert!((waits - 88.856).abs() < 0.001, "{waits}");
    let source = &strided.counters["duration_us"].source;
    assert_eq!((source.line, source.quote.as_str()), (13, "gpu__time_duration.sum 6,542,720 ns"));
}

#[test]
fn the_four_sample_kernels_are_limited_by_memory_for_different_reasons() {
    for page in ["ncu_details.csv", "ncu_raw.csv"] {
        let parsed = read(ProfilerTool::Ncu, page);
        let check = |name: &str, cause: &str, advice: &str| {
            let found = diagnose(kernel(&parsed, name), DiagnosisRuleSet::Karve);
            assert_eq!(found.bottleneck, Bottleneck::Memory, "{page} {name}: {found:?}");
            assert!(found.root_cause.contains(cause), "{page} {name}: {}", found.root_cause);
            let reported = found.opportunities.iter().any(|o| o.name.contains(advice));
            assert!(reported, "{page} {name}: {:?}", found.opportunities);
        };
        check("sgemm_naive", "first-level cache", "registers");
        check("sgemm_tiled", "first-level cache and shared memory", "registers");
        check("copyk", "Device memory is at 88", "fewer bytes");
        check("strided", "neighboring threads do not read neighboring", "coalesce");
    }
}

#[test]
fn launches_of_one_kernel_are_taken_together_at_their_median() {
    let text = sample("ncu_details.csv");
    let mut more = text.clone();
    for (id, duration) in [("7", "9,000,000"), ("8", "4,000,000")] {
        let rows = text.lines().filter(|line| line.starts_with("\"0\","));
        for row in rows {
            let row = row.replacen("\"0\"", &format!("\"{id}\""), 1);
            more += &row.replace("\"3,176,000\"", &format!("\"{duration}\""));
            more.push('\n');
        }
    }
    let parsed = parse(ProfilerTool::Ncu, &more).unwrap();
    // 16.2 ms in three launches are more than 6.5 ms in one.
    assert!(parsed.kernels[0].name.starts_with("sgemm_naive"));
    check(&parsed.kernels[0], &[("launches", 3.0), ("duration_us", 4000.0)]);
    assert!(parsed.notes[0].contains("launched 3 times"), "{:?}", parsed.notes);
}

#[test]
fn ncu_in_another_locale_or_with_contradictions_gives_no_wrong_value() {
    let text = sample("ncu_details.csv");
    let refused = |from: &str, to: &str, says: &str| {
        assert!(text.contains(from), "{from}");
        let error = parse(ProfilerTool::Ncu, &text.replacen(from, to, 1)).unwrap_err();
        assert!(error.reason.contains(says), "{error}");
    };
    refused("\"64.84\",", "\"64,84\",", "another locale");
    refused("\"3,176,000\",", "\"3.176.000\",", "another locale");
    refused("\"64.84\",", "\"64.84\"", "cells");
    refused("\"Metric Value\"", "\"Metric Worth\"", "no column");
    let absent = |from: &str, to: &str, counter: &str| {
        let parsed = parse(ProfilerTool::Ncu, &text.replacen(from, to, 1)).unwrap();
        assert_eq!(kernel(&parsed, "sgemm_naive").value(counter), None, "{to}");
        assert_eq!(parsed.notes.len(), 1, "{:?}", parsed.notes);
    };
    absent("\"64.84\",", "\"n/a\",", "compute_pct");
    absent("\"64.84\",", "\"inf\",", "compute_pct");
    absent("\"64.84\",", "\"1e999\",", "compute_pct");
    absent("\"ns\",\"3,176,000\"", "\"ticks\",\"3,176,000\"", "duration_us");
    absent("\"16,384\",", "\"16.384\",", "blocks");
    let row = text.lines().find(|line| line.contains("\"64.84\"")).unwrap();
    let twice = format!("{text}{}\n", row.replace("64.84", "74.84"));
    let parsed = parse(ProfilerTool::Ncu, &twice).unwrap();
    assert_eq!(kernel(&parsed, "sgemm_naive").value("compute_pct"), None);
    assert!(parsed.notes[0].contains("twice"), "{:?}", parsed.notes);
}

#[test]
fn ptxas_tells_registers_spills_and_shared_memory() {
    let parsed = read(ProfilerTool::Ptxas, "ptxas.txt");
    assert_eq!(names(&parsed), ["sgemm_naive", "sgemm_tiled", "strided", "copyk"]);
    let tiled = kernel(&parsed, "sgemm_tiled");
    check(
        tiled,
        &[
            ("registers", 32.0),
            ("shared_bytes", 2048.0),
            ("spill_bytes", 0.0),
            ("stack_bytes", 0.0),
        ],
    );
    let source = &tiled.counters["registers"].source;
    assert_eq!(source.line, 15);
    assert_eq!(source.quote, "Used 32 registers, used 1 barriers, 2048 bytes smem");
    let spilled = "ptxas info    : Compiling entry function '_Z1fILi4EEvPf' for 'sm_80'\n\
        ptxas info    : Function properties for _Z1fILi4EEvPf\n    \
        48 bytes stack frame, 36 bytes spill stores, 40 bytes spill loads\n\
        ptxas info    : Used 255 registers, 360 bytes cmem[0]\n\
        ptxas info    : Function properties for _Z6helperPf\n    \
        8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
    let two = format!("{spilled}{}", spilled.replace("sm_80", "sm_90"));
    let parsed = parse(ProfilerTool::Ptxas, &two).unwrap();
    assert_eq!(parsed.kernels.len(), 2);
    check(
        kernel(&parsed, "_Z1fILi4EEvPf for sm_90"),
        &[("registers", 255.0), ("spill_bytes", 76.0), ("stack_bytes", 48.0)],
    );
    assert!(parse(ProfilerTool::Ptxas, &spilled.replace("255", "2.55")).is_err());
    let other = spilled.replace("255", "254");
    let contradiction = parse(ProfilerTool::Ptxas, &format!("{spilled}{other}"));
    assert!(contradiction.is_err(), "{contradiction:?}");
}

#[test]
fn perf_tells_what_was_counted_and_what_was_not() {
    let parsed = read(ProfilerTool::Perf, "perf.csv");
    check(
        &parsed.kernels[0],
        &[
            ("duration_us", 747.439),
            ("cpu_busy_pct", 100.0 * 0.28e6 / 747_439.0),
            ("page_faults", 7.0),
            ("context_switches", 0.0),
        ],
    );
    assert_eq!(parsed.kernels[0].value("ipc"), None);
    let about = |note: &&String| note.contains("not supported");
    let reported: Vec<&String> = parsed.notes.iter().filter(about).collect();
    assert!(
        matches!(reported[..], [note] if note.contains("cycles, ") && note.contains("--tool")),
        "{reported:?}"
    );
    let counted = "2000,,cycles:u,900,100.00,,\n\
        3000,,instructions:u,900,50.00,1.50,insn per cycle\n\
        100,,L1-dcache-loads,900,100.00,,\n7,,L1-dcache-load-misses,900,100.00,7.00,of all\n\
        40,,branches,900,100.00,,\n1,,branch-misses,900,100.00,,\n\
        8,,cache-references,900,100.00,,\n2,,cache-misses,900,100.00,,\n\
        1.00,msec,task-clock,900,100.00,1.0,CPUs utilized\n,,,,,12.5,%  tma_backend_bound\n";
    let parsed = parse(ProfilerTool::Perf, counted).unwrap();
    check(
        &parsed.kernels[0],
        &[
            ("ipc", 1.5),
            ("l1_miss_pct", 7.0),
            ("branch_miss_pct", 2.5),
            ("llc_miss_pct", 25.0),
            ("clock_hz", 2e6),
            ("backend_bound_pct", 12.5),
        ],
    );
    assert!(parsed.notes[0].contains("50% of the time"), "{:?}", parsed.notes);
    // A comma instead of the decimal point shifts all cells.
    let localized = counted.replace("1.00,msec", "1,00,msec");
    assert_eq!(parse(ProfilerTool::Perf, &localized).unwrap_err().line, 9);
    let twice = format!("{counted}2001,,cycles:u,900,100.00,,\n");
    assert_eq!(parse(ProfilerTool::Perf, &twice).unwrap().kernels[0].value("ipc"), None);
}

#[test]
fn perf_tells_how_much_of_the_arithmetic_is_in_vectors() {
    let events = [
        "scalar_single",
        "scalar_double",
        "128b_packed_double",
        "128b_packed_single",
        "256b_packed_double",
        "256b_packed_single",
        "512b_packed_double",
        "512b_packed_single",
    ];
    let lines = events.map(|e| format!("10,,fp_arith_inst_retired.{e},9,100.00,,\n"));
    let parsed = parse(ProfilerTool::Perf, &lines.concat()).unwrap();
    check(&parsed.kernels[0], &[("vector_pct", 100.0 * 42.0 / 44.0)]);
    let fewer = parse(ProfilerTool::Perf, &lines[1..].concat()).unwrap();
    assert_eq!(fewer.kernels[0].value("vector_pct"), None);
}

/// A function, its own cost, and its callees with their costs.
type Cost<'a> = (&'a str, u64, Option<(&'a str, u64)>);

/// A callgrind file of a process with some functions: name, own instructions, and callees.
fn process(command: &str, functions: &[Cost<'_>]) -> String {
    let mut text = format!("# callgrind format\ncmd: {command}\nevents: Ir Dr D1mr\n");
    let mut total = 0;
    for (name, own, calls) in functions {
        text.push_str(&format!("fl=???\nfn={name}\n1 {own} {} 0\n", own / 2));
        if let Some((callee, cost)) = calls {
            text.push_str(&format!("cfn={callee}\ncalls=1 0\n1 {cost} {} 8\n", cost / 2));
        }
        total += own;
    }
    let loads: u64 = functions.iter().map(|(_, own, _)| own / 2).sum();
    text + &format!("totals: {total} {loads} 0\n")
}

#[test]
fn of_several_processes_the_kernel_counts_with_what_it_calls() {
    let make = process("make -s bench", &[("jhash", 90_000, None)]);
    let shell = process("sh -c ./prog", &[("eval", 5_000, None)]);
    let program = process(
        "./prog",
        &[
            ("main", 2_000, Some(("softmax", 50_000))),
            ("softmax", 20_000, Some(("__expf_fma", 30_000))),
            ("__expf_fma", 30_000, None),
            ("_dl_start", 100, None),
        ],
    );
    let text = [make.clone(), shell, program].concat();
    let kernel = "void softmax(const float *x, float *y, int n) {\n  y[0] = expf(x[0]);\n}\n";
    let editable = EditableFiles::of(&[("kernel.c".to_owned(), kernel.as_bytes().to_vec())]);
    let parsed = parse_of(ProfilerTool::Callgrind, &text, &editable).unwrap();
    assert_eq!(names(&parsed), ["softmax", "__expf_fma", "main"]);
    check(
        &parsed.kernels[0],
        &[
            ("instructions", 50_000.0),
            ("inst_share_pct", 100.0 * 50_000.0 / 52_100.0),
            ("l1_miss_pct", 100.0 * 8.0 / 25_000.0),
        ],
    );
    assert!(parsed.kernels[0].editable && !parsed.kernels[1].editable);
    check(&parsed.kernels[1], &[("instructions", 30_000.0)]);
    let reported = parsed.notes.join("\n");
    assert!(reported.contains("of 3 processes, this one is reported: ./prog"), "{reported}");
    assert!(reported.contains("1 functions with less than 0.5%"), "{reported}");
    // Without a function of the editable files, the whole program counts, and a note says so.
    let other = EditableFiles::of(&[("other.c".to_owned(), Vec::new())]);
    let parsed = parse_of(ProfilerTool::Callgrind, &text, &other).unwrap();
    assert_eq!(parsed.kernels[0].name, "the whole program");
    check(&parsed.kernels[0], &[("instructions", 52_100.0)]);
    assert!(parsed.notes.join("").contains("no function of the editable files"));
    let parsed = parse_of(ProfilerTool::Callgrind, &make, &editable).unwrap();
    assert!(parsed.notes.join("").contains("only programs that start others"));
}

#[test]
fn a_share_of_what_hardly_happens_is_not_told() {
    let text = process("./prog", &[("k", 1_000_000, None)]);
    let seldom = text.replace("1 1000000 500000 0", "1 1000000 7 7");
    let seldom = seldom.replace("500000 0", "7 7");
    let parsed = parse(ProfilerTool::Callgrind, &seldom).unwrap();
    assert_eq!(parsed.kernels[0].value("l1_miss_pct"), None);
    let often = parse(ProfilerTool::Callgrind, &text).unwrap();
    assert_eq!(often.kernels[0].value("l1_miss_pct"), Some(0.0));
    // There cannot be more misses than loads.
    let lines = "100,,L1-dcache-loads,9,100.00,,\n500,,L1-dcache-load-misses,9,100.00,,\n";
    let parsed = parse(ProfilerTool::Perf, lines).unwrap();
    assert_eq!(parsed.kernels[0].value("l1_miss_pct"), None);
    assert!(parsed.notes.join("").contains("above 100%"));
}

#[test]
fn cachegrind_and_callgrind_agree_on_what_functions_cost_themselves() {
    let cachegrind = read(ProfilerTool::Cachegrind, "cachegrind.out");
    let callgrind = read(ProfilerTool::Callgrind, "callgrind.out");
    let order = ["by_columns", "by_rows", "toss", "pick", "depth"];
    assert_eq!(names(&cachegrind)[..5], order);
    for parsed in [&cachegrind, &callgrind] {
        check(
            kernel(parsed, "by_columns"),
            &[
                ("instructions", 263_172.0),
                ("l1_miss_pct", 100.0),
                ("llc_miss_pct", 100.0 * 4096.0 / 65_537.0),
                ("branch_miss_pct", 100.0 * 279.0 / 65_792.0),
            ],
        );
        check(kernel(parsed, "by_rows"), &[("l1_miss_pct", 100.0 * 4097.0 / 65_537.0)]);
        check(kernel(parsed, "pick"), &[("branch_miss_pct", 100.0 * 10_044.0 / 40_001.0)]);
        // It calls itself, which counts once.
        check(kernel(parsed, "depth"), &[("instructions", 4876.0)]);
    }
    check(&cachegrind.kernels[0], &[("inst_share_pct", 100.0 * 263_172.0 / 821_181.0)]);
    let source = &cachegrind.kernels[0].counters["l1_miss_pct"].source;
    assert_eq!(source.quote, "D1mr = 65537, Dr = 65537");
    for (tool, name) in
        [(ProfilerTool::Cachegrind, "cachegrind.out"), (ProfilerTool::Callgrind, "callgrind.out")]
    {
        let text = sample(name);
        let lost = text.replacen("262400 ", "262401 ", 1);
        assert!(parse(tool, &lost).unwrap_err().reason.contains("add up to"), "{name}");
    }
}
