//! Values of traces, and how profilers are started and fail.

use super::*;
use crate::profilers::run::{diagnose_failure, start};
use karve_core::profile::ProfileDepth;
use karve_harness::commands::ProfilerOutput;
use rusqlite::Connection;
use std::path::Path;

#[test]
fn a_kernel_trace_of_rocprofv3_is_read() {
    let parsed = read(ProfilerTool::Rocprof, "rocprofv3.csv");
    let gemm = &parsed.kernels[0];
    assert_eq!(gemm.name, "void gemm<128, 64>(float const*, float*)");
    let want = [
        ("duration_us", 122.0),
        ("launches", 3.0),
        ("registers", 128.0),
        ("shared_bytes", 65_536.0),
        ("spill_bytes", 48.0),
        ("threads_per_block", 256.0),
        ("blocks", 1024.0),
        ("share_pct", 100.0 * 372.0 / 400.0),
    ];
    check(gemm, &want);
    assert_eq!(gemm.counters["duration_us"].source.line, 4);
    let timeline = parsed.timeline.unwrap();
    check(&timeline, &[("gpu_busy_pct", 94.0), ("gpu_idle_pct", 6.0), ("small_kernels_pct", 25.0)]);
    let text = sample("rocprofv3.csv");
    let again = text.lines().last().unwrap().replace("65536,48", "65536,64");
    let error = parse(ProfilerTool::Rocprof, &format!("{text}{again}\n")).unwrap_err();
    assert!(error.reason.contains("twice"), "{error}");
    let backwards = text.replace("7600000000120000", "7500000000120000");
    assert_eq!(parse(ProfilerTool::Rocprof, &backwards).unwrap_err().line, 2);
    let grouped = text.replace(",65536,48,", ",\"65.536\",48,");
    let parsed = parse(ProfilerTool::Rocprof, &grouped).unwrap();
    assert_eq!(parsed.kernels[0].value("shared_bytes"), None);
    assert!(!parsed.notes.is_empty());
}

#[test]
fn a_counter_collection_of_rocprofv3_is_read() {
    let parsed = read(ProfilerTool::Rocprof, "rocprofv3_counters.csv");
    let text = sample("rocprofv3_counters.csv");
    let want = [
        ("duration_us", 120.0),
        ("launches", 1.0),
        ("registers", 128.0),
        ("shared_bytes", 65_536.0),
        ("threads_per_block", 256.0),
        ("blocks", 1024.0),
        ("occupancy_pct", 37.5),
        ("l2_hit_pct", 81.25),
    ];
    check(kernel(&parsed, "gemm"), &want);
    let source = &kernel(&parsed, "gemm").counters["l2_hit_pct"].source;
    assert_eq!((source.line, source.quote.as_str()), (3, "L2CacheHit 81.25"));
    check(kernel(&parsed, "scale"), &[("occupancy_pct", 9.0)]);
    // A counter of a launch has one value, and a launch has one time.
    for (from, to) in [
        ("\"L2CacheHit\"", "\"OccupancyPercent\""),
        ("81.25,7600000000000000", "81.25,7600000000000001"),
    ] {
        let error = parse(ProfilerTool::Rocprof, &text.replace(from, to)).unwrap_err();
        assert!(error.reason.contains("twice"), "{error}");
    }
    let localized = text.replace("81.25", "\"81,25\"");
    let parsed = parse(ProfilerTool::Rocprof, &localized).unwrap();
    assert_eq!(kernel(&parsed, "gemm").value("l2_hit_pct"), None);
}

#[test]
fn tables_of_rocprof_compute_are_read() {
    let parsed = read(ProfilerTool::RocprofCompute, "rocprof_compute.txt");
    let want = [
        ("fma_pct", 21.84),
        ("tensor_pct", 38.2),
        ("ipc", 0.74),
        ("occupancy_pct", 25.0),
        ("bank_conflict_pct", 8.0),
        ("l1_hit_pct", 61.5),
        ("l2_hit_pct", 84.31),
        ("l2_pct", 11.46),
        ("dram_pct", 50.0),
    ];
    check(&parsed.kernels[0], &want);
    let localized = sample("rocprof_compute.txt").replace("84.31", "84,31");
    let parsed = parse(ProfilerTool::RocprofCompute, &localized).unwrap();
    assert_eq!(parsed.kernels[0].value("l2_hit_pct"), None);
}

#[test]
fn a_trace_of_pytorch_tells_kernels_and_the_timeline() {
    let parsed = read(ProfilerTool::Torch, "torch_trace.json");
    let gemm = kernel(&parsed, "void gemm");
    let want = [
        ("duration_us", 60.0),
        ("registers", 128.0),
        ("shared_bytes", 49_152.0),
        ("blocks", 128.0),
        ("threads_per_block", 256.0),
        ("share_pct", 30.0),
    ];
    check(gemm, &want);
    assert_eq!(gemm.counters["duration_us"].source.line, 25);
    let timeline = parsed.timeline.unwrap();
    // The device works from 1010 to 1210, kernels run 124 us of it.
    let want = [
        ("duration_us", 200.0),
        ("launches", 3.0),
        ("gpu_busy_pct", 62.0),
        ("gpu_idle_pct", 38.0),
        ("communication_pct", 30.0),
        ("copy_pct", 10.0),
        ("launch_api_pct", 15.0),
        ("sync_pct", 75.0),
        ("small_kernels_pct", 100.0 / 3.0),
    ];
    check(&timeline, &want);
    let text = sample("torch_trace.json");
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        assert!(parse(ProfilerTool::Torch, &text.replacen(from, to, 1)).is_err(), "{to}");
    };
    refused("\"dur\": 60.000,\n    \"args\"", "\"dur\": \"60,0\",\n    \"args\"");
    refused("\"dur\": 60.000,\n    \"args\"", "\"dur\": -60.0,\n    \"args\"");
    refused("\"dur\": 60.000,\n    \"args\"", "\"dur\": 1e999,\n    \"args\"");
    refused("\"dur\": 60.000,\n    \"args\"", "\"dur\": 1, \"dur\": 2,\n    \"args\"");
    let deep = format!("{{\"traceEvents\": [{}", "[".repeat(1_000_000));
    assert!(parse(ProfilerTool::Torch, &deep).is_err());
}

/// Reads a text in small pieces.
struct Pieces<'a>(&'a [u8], usize);

impl std::io::Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.1 = self.1 % 7 + 1;
        let n = self.1.min(into.len()).min(self.0.len());
        into[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

#[test]
fn a_trace_that_comes_in_pieces_tells_the_same() {
    let text = sample("torch_trace.json");
    let whole = parse(ProfilerTool::Torch, &text).unwrap();
    assert_eq!(torch::read(Pieces(text.as_bytes(), 0)), Ok(whole.clone()));
    let marked = format!("\u{feff}{text}");
    assert_eq!(torch::read(Pieces(marked.as_bytes(), 0)), Ok(whole.clone()));
    // The same values are two lines further down, and all launches are counted.
    let (head, tail) = text.split_once("\"traceEvents\": [").unwrap();
    let launch =
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"many\", \"ts\": 1040, \"dur\": 1},\n";
    let more = format!("{head}\"traceEvents\": [\n\n{}{tail}", launch.repeat(5_000));
    let parsed = torch::read(Pieces(more.as_bytes(), 0)).unwrap();
    check(kernel(&parsed, "many"), &[("launches", 5_000.0), ("duration_us", 1.0)]);
    let gemm = kernel(&parsed, "void gemm");
    assert_eq!(gemm.counters["duration_us"].source.line, 25 + 2 + 5_000);
    assert_eq!(gemm.counters["registers"].source.quote, "registers per thread 128");
}

#[test]
fn what_is_wrong_with_a_trace_is_told_with_its_line() {
    let refused = |text: &str, line: usize, says: &str| {
        let error = parse(ProfilerTool::Torch, text).unwrap_err();
        assert!(error.line == line && error.reason.contains(says), "{error}");
    };
    let long = "x".repeat(1 << 21);
    refused("{\n\"traceEvents\": [\n{\"ph\": \"X\"", 3, "ends early");
    refused("{\n\"other\": 1}", 2, "traceEvents");
    let event = "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"ts\": 1}";
    refused(&format!("{{\"traceEvents\": [\n\n{event}]}}"), 3, "no time");
    let event = format!("{{\"name\": \"{long}\"}}");
    refused(&format!("{{\"traceEvents\": [\n{event}]}}"), 2, "longer than 1 MiB");
    refused("{\"traceEvents\": []}", 1, "no kernel");
    refused("{\"traceEvents\": [], \"traceEvents\": []}", 1, "duplicate");
    refused("{\"traceEvents\": []} x", 1, "trailing");
    // Ignored parts may be longer.
    let event = event_of("k");
    let text = format!("{{\"about\": \"{long}\", \"traceEvents\": [{event}]}}");
    assert_eq!(parse(ProfilerTool::Torch, &text).unwrap().kernels.len(), 1);
}

fn event_of(name: &str) -> String {
    format!("{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{name}\", \"ts\": 1, \"dur\": 2}}")
}

/// An nsys export, modified by some extra statements.
fn exported(dir: &Path, more: &str) -> std::path::PathBuf {
    let path = dir.join("a.sqlite");
    let file = Connection::open(&path).unwrap();
    file.execute_batch(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
         INSERT INTO StringIds VALUES (1, 'gemm(float *)'), (2, 'cudaLaunchKernel_v7000'),
             (3, 'cudaStreamSynchronize_v3020'), (4, 'scale(float *)');
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
             demangledName INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER,
             gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER,
             staticSharedMemory INTEGER, dynamicSharedMemory INTEGER);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
             (1000000, 1040000, 0, 1, 64, 8, 4, 1, 128, 1, 1, 1024, 2048),
             (1030000, 1050000, 0, 4, 16, 8, 1, 1, 64, 1, 1, 0, 0),
             (1075000, 1100000, 0, 1, 64, 8, 4, 1, 128, 1, 1, 1024, 2048);
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, nameId INTEGER);
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
             (900000, 910000, 2), (920000, 925000, 2), (1000000, 1100000, 3);
         CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, copyKind INTEGER);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES
             (1055000, 1065000, 2), (1066000, 1070000, 8);",
    )
    .unwrap();
    file.execute_batch(more).unwrap();
    path
}

#[test]
fn an_export_of_nsys_tells_kernels_and_the_timeline() {
    let dir = tempfile::tempdir().unwrap();
    let parsed = nsys::read(&exported(dir.path(), "")).unwrap();
    let want = [
        ("duration_us", 25.0),
        ("launches", 2.0),
        ("registers", 64.0),
        ("shared_bytes", 3072.0),
        ("blocks", 32.0),
        ("threads_per_block", 128.0),
        ("share_pct", 65.0),
    ];
    check(kernel(&parsed, "gemm"), &want);
    let source = &kernel(&parsed, "gemm").counters["duration_us"].source;
    assert!(source.quote.contains("row 3: end 1100000 - start 1075000"), "{source:?}");
    // Kernels run from 1000 to 1050 and from 1075 to 1100.
    let want = [
        ("duration_us", 100.0),
        ("gpu_busy_pct", 75.0),
        ("gpu_idle_pct", 25.0),
        ("copy_pct", 10.0),
        ("launch_api_pct", 7.5),
        ("sync_pct", 50.0),
        ("communication_pct", 0.0),
        ("small_kernels_pct", 0.0),
    ];
    check(&parsed.timeline.unwrap(), &want);
}

#[test]
fn a_hostile_export_of_nsys_is_refused() {
    let refused = |more: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = exported(dir.path(), more);
        assert!(nsys::read(&path).is_err(), "{more}");
    };
    refused("DROP TABLE StringIds;");
    refused("DELETE FROM StringIds WHERE id = 4;");
    refused("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 'soon';");
    refused("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 1.5e300;");
    refused("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 5;");
    refused("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = -5;");
    refused("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = NULL;");
    refused("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL;");
    // A view that never ends is not run.
    refused(
        "DROP TABLE StringIds; CREATE VIEW StringIds AS WITH RECURSIVE n(id) AS
         (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, 'x' AS value FROM n;",
    );
    let dir = tempfile::tempdir().unwrap();
    let path = exported(dir.path(), "DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY;");
    assert_eq!(nsys::read(&path).unwrap().notes.len(), 1);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(sniff(&String::from_utf8_lossy(&bytes)), Some(ProfilerTool::Nsys));
    let whole = nsys::read(&path).unwrap();
    for step in 0..64 {
        let cut = dir.path().join("cut.sqlite");
        std::fs::write(&cut, &bytes[..bytes.len() * step / 64]).unwrap();
        let read = nsys::read(&cut);
        assert!(read.as_ref().map_or(true, |read| *read == whole), "{step}: {read:?}");
    }
    assert!(nsys::read(&dir.path().join("none.sqlite")).is_err());
}

#[test]
fn profilers_are_started_lightly_first() {
    let command = ["./a".to_owned(), "8".to_owned()];
    let dir = Path::new("out");
    let line = |tool, depth| {
        let start = start(tool, depth, &command, dir)?;
        assert_eq!(start.environment, [("LC_ALL".to_owned(), "C".to_owned())]);
        Some(start.commands.iter().map(|words| words.join(" ")).collect::<Vec<_>>())
    };
    let ncu = line(ProfilerTool::Ncu, ProfileDepth::Full).unwrap();
    assert!(ncu[0].contains("--clock-control none"), "{ncu:?}");
    assert!(ncu[0].ends_with("--set full --log-file out/ncu.csv ./a 8"), "{ncu:?}");
    assert!(line(ProfilerTool::Ncu, ProfileDepth::Light).unwrap()[0].contains("--set basic"));
    let nsys = line(ProfilerTool::Nsys, ProfileDepth::Light).unwrap();
    assert!(nsys[1].starts_with("nsys export --type sqlite"), "{nsys:?}");
    assert!(line(ProfilerTool::Cachegrind, ProfileDepth::Light).is_none());
    let valgrind = line(ProfilerTool::Cachegrind, ProfileDepth::Full).unwrap();
    assert!(valgrind[0].contains("--cache-sim=yes --branch-sim=yes"), "{valgrind:?}");
    let perf = start(ProfilerTool::Perf, ProfileDepth::Light, &command, dir).unwrap();
    assert_eq!(perf.output, ProfilerOutput::File(dir.join("perf.csv")));
    assert!(line(ProfilerTool::Torch, ProfileDepth::Full).is_none());
}

#[test]
fn what_a_failure_means_is_told_with_what_to_do() {
    let check = |tool, exit, said: &str, words: &str| {
        let hint = diagnose_failure(tool, exit, said).unwrap();
        assert!(hint.hints.iter().any(|hint| hint.contains(words)), "{hint:?}");
    };
    let denied = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission";
    check(ProfilerTool::Ncu, Some(1), denied, "NVreg_RestrictProfilingToUserGroups=0");
    check(ProfilerTool::Ncu, Some(1), denied, "SYS_ADMIN");
    let paranoid = "access is limited: /proc/sys/kernel/perf_event_paranoid is 4";
    check(ProfilerTool::Perf, Some(255), paranoid, "sysctl kernel.perf_event_paranoid=1");
    check(ProfilerTool::Callgrind, Some(132), "", "-march=x86-64-v3");
    check(
        ProfilerTool::Cachegrind,
        Some(1),
        "unhandled instruction bytes: 0x62",
        "-march=x86-64-v3",
    );
    for tool in ProfilerTool::ALL {
        check(tool, None, "", "install");
        assert_eq!(ProfilerTool::by_name(tool.name()), Some(tool));
    }
    assert_eq!(diagnose_failure(ProfilerTool::Perf, Some(1), "the program failed"), None);
}
