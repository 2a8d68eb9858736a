//! The readers of outside data, each with valid inputs to mutate.
//!
//! A reader of several formats takes the format from the first byte of its input.

use super::tasks::{imported_task, task_seeds};
use karve::config::{self, CharterTime, Overrides};
use karve::detect::{self, ProjectFiles};
use karve::library::dialects::{self, KnowledgeFormat, SourcePage};
use karve::library::markdown::parse_entry;
use karve::mcp::{McpServer, StartPermission};
use karve::project::ProjectArgs;
use karve::{agenda, bundle, reports, tuner};
use karve_agents::api::{self, ApiKind};
use karve_agents::cli::{self, CliKind};
use karve_agents::messages::{self, FieldKind, Message, MessageField, MessageFormat};
use karve_audit::{AuditContext, FileChange, audit};
use karve_core::charter::Goal;
use karve_core::integrity::AuditRule;
use karve_core::profile::predicate::Predicate;
use karve_harness::commands::output::{self, OutputFormat, ParseSpec};
use karve_harness::csv::CsvRecords;
use karve_harness::{git, runner, store};
use karve_numerics::search::budget;
use karve_numerics::{expr, space};
use karve_profile::devices::DeviceCatalog;
use karve_profile::profilers::{collect, contract, work};
use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

/// A reader, as a table has it.
#[derive(Debug)]
pub struct FuzzedReader {
    /// The name of its test.
    pub name: &'static str,
    /// Inputs in a run of the test suite.
    pub short: u64,
    /// Valid inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Reads an input, and says whether it was accepted.
    pub read: fn(&[u8]) -> bool,
}

macro_rules! table {
    ($($name:ident $short:literal $seeds:ident),* $(,)?) => {
        /// All readers.
        pub const ALL: &[FuzzedReader] =
            &[$(FuzzedReader {
                name: stringify!($name),
                short: $short,
                seeds: $seeds,
                read: $name,
            }),*];
    };
}

table! {
    event_log 150 log_seeds,
    config 300 config_seeds,
    benchmark_output 2_000 output_seeds,
    profiler_text 600 profile_seeds,
    profiler_database 100 database_seeds,
    profiler_report 1_000 report_seeds,
    call_counts 1_000 count_seeds,
    agent_answer 2_000 answer_seeds,
    agent_output 400 agent_seeds,
    session_log 400 session_seeds,
    model_stream 400 stream_seeds,
    workflow_message 1_000 message_seeds,
    mcp 100 mcp_seeds,
    worker_message 3_000 worker_seeds,
    module_inputs 3_000 inputs_seeds,
    git_answer 3_000 git_seeds,
    source_file 300 source_seeds,
    detected_project 300 project_seeds,
    primus_manifest 500 manifest_seeds,
    knowledge_entry 400 entry_seeds,
    knowledge_page 400 page_seeds,
    plan 1_000 plan_seeds,
    csv 2_000 csv_seeds,
    knobs 2_000 knob_seeds,
    tuning_space 400 space_seeds,
    packed_space 300 packed_seeds,
    bundle_archive 300 bundle_seeds,
    imported_task 300 task_seeds,
    expression 3_000 expression_seeds,
    device_table 300 device_seeds,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn file(path: &str) -> Vec<u8> {
    fs::read(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files of a directory, sorted.
fn files(dir: &str) -> Vec<PathBuf> {
    let list = fs::read_dir(root().join(dir)).unwrap();
    let mut paths: Vec<PathBuf> = list.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// A valid input of the format with this number.
pub(super) fn of_format(format: usize, text: impl AsRef<[u8]>) -> Vec<u8> {
    [&[format as u8], text.as_ref()].concat()
}

/// The format of an input, and the rest as text.
pub(super) fn format_and_text<T: Copy>(bytes: &[u8], formats: &[T]) -> (T, String) {
    let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    (formats[usize::from(*first) % formats.len()], lossy(rest))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file that a reader writes or reads; one for each thread.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{}-{name}", std::process::id()))
}

fn log_seeds() -> Vec<Vec<u8>> {
    vec![file("testdata/logs/v3-agents.jsonl"), file("testdata/logs/v3-small.jsonl")]
}

/// What is derived from a log is derived from outside data, too.
fn event_log(bytes: &[u8]) -> bool {
    let Ok(loaded) = store::parse_log(Path::new("events.jsonl"), bytes) else {
        return false;
    };
    let campaign = &loaded.campaign;
    campaign.next_step();
    campaign.view();
    reports::render_terminal_summary(campaign);
    if bytes.len().is_multiple_of(16) {
        reports::derived_files(campaign);
    }
    true
}

fn config_seeds() -> Vec<Vec<u8>> {
    let templates = ["rust", "c", "cuda", "triton", "python-numpy", "cutile", "cute-dsl"];
    let templates = templates.map(|name| format!("crates/karve/templates/{name}/karve.toml"));
    let others =
        ["examples/stencil", "examples/matmul", "testdata/gains", "testdata/cheats/project"];
    let others = others.map(|dir| format!("{dir}/karve.toml"));
    templates.iter().chain(&others).map(|path| file(path)).collect()
}

fn config(bytes: &[u8]) -> bool {
    let now = CharterTime { minute: "2026-11-17 01:00".into() };
    let text = lossy(bytes);
    karve_harness::project_file::without_hidden(&text);
    config::parse(&text, Path::new("/nowhere"), &Overrides::default(), &now).is_ok()
}

fn output_seeds() -> Vec<Vec<u8>> {
    let written = [
        "case,time_ms,valid\nsmall,1.25,1\n\"a,\"\"b\"\"\",2.5e-3,1\n",
        r#"{"results": [{"case": "a", "time_ms": 1.5}, {"case": "b", "time_ms": 2}]}"#,
        "noise\n{\"case\": \"a\", \"time_ms\": 1.5}\n{\"case\": \"b\", \"time_ms\": 2}\n",
        "hello\nMETRIC time_ms=1.25 case=small\nMETRIC time_ms=2 case=large check=PASS M=256\n",
        r#"{"results": [{"command": "sleep", "mean": 0.5, "stddev": 0.01, "median": 0.5,
            "user": 0.1, "system": 0.1, "min": 0.4, "max": 0.6, "times": [0.4, 0.6],
            "exit_codes": [0, 0], "parameters": {"n": "3"}}]}"#,
        "tests/x.py::test_perf[a] Torch: {'f': {'mean': 9, 'std': 0.1}} ms\nPASSED\n",
    ];
    let written = written.iter().enumerate().map(|(format, text)| of_format(format, text));
    let files = [
        (6, "google-benchmark.json"),
        (6, "google-benchmark-repeated.json"),
        (7, "nvbench.json"),
        (8, "nvbench.csv"),
        (9, "pytest-benchmark.json"),
        (10, "criterion-estimates.json"),
        (10, "criterion-several.json"),
        (11, "libtest.txt"),
        (12, "triton.txt"),
        (12, "triton.csv"),
    ];
    let read =
        files.map(|(format, name)| of_format(format, file(&format!("testdata/formats/{name}"))));
    written.chain(read).collect()
}

fn benchmark_output(bytes: &[u8]) -> bool {
    let (format, text) = format_and_text(bytes, &OutputFormat::ALL);
    let plain =
        ParseSpec { format, case_column: None, check_column: None, label: None, pattern: None };
    let named = ParseSpec { case_column: Some("case"), check_column: Some("valid"), ..plain };
    let labeled = ParseSpec { label: Some("matmul-performance-fp16"), ..plain };
    let read = [plain, named, labeled].map(|spec| output::parse(&text, &spec).is_ok());
    read.contains(&true)
}

fn profile_seeds() -> Vec<Vec<u8>> {
    let is_sample = |path: &PathBuf| path.extension().is_none_or(|ext| ext != "c");
    let paths = files("testdata/profiles").into_iter().filter(is_sample);
    paths.map(|path| fs::read(path).unwrap()).collect()
}

fn profiler_text(bytes: &[u8]) -> bool {
    // A database is another reader's.
    let is_database = bytes.starts_with(b"SQLite format 3");
    !is_database && collect::read_any(bytes).is_ok()
}

fn database_seeds() -> Vec<Vec<u8>> {
    let path = scratch("seed.sqlite");
    let _ = fs::remove_file(&path);
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "PRAGMA page_size = 512; VACUUM;
             CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
             INSERT INTO StringIds VALUES (1, 'gemm(float *)'), (2, 'cudaLaunchKernel_v7000');
             CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER,
                 demangledName INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER,
                 gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER,
                 staticSharedMemory INTEGER, dynamicSharedMemory INTEGER);
             INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
                 (1000000, 1040000, 1, 64, 8, 4, 1, 128, 1, 1, 1024, 2048),
                 (1075000, 1100000, 1, 64, 8, 4, 1, 128, 1, 1, 1024, 2048);
             CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, nameId INTEGER);
             INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (900000, 910000, 2);
             CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, copyKind INTEGER);
             INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1055000, 1065000, 2);",
        )
        .unwrap();
    drop(database);
    vec![fs::read(path).unwrap()]
}

fn profiler_database(bytes: &[u8]) -> bool {
    bytes.starts_with(b"SQLite format 3") && collect::read_any(bytes).is_ok()
}

fn report_seeds() -> Vec<Vec<u8>> {
    let report = "## Profile: mla decode v3 | b=32, s=1, t=4096\n\n### Stages\n\
        | Stage | Duration (us) | TC% | DRAM% | Occ% | Bottleneck | Key Issue |\n\
        |---|---|---|---|---|---|---|\n| split \\| kv | 120.5 | 12 | 88.2% | 41 | Memory | L2 |\n\
        | combine | 8 | - | n/a | 12 | Latency (occupancy) | few blocks |\n\n\
        ### Bottleneck: Memory-bound\nRoot cause: DRAM is at 88.2%. Only fewer bytes help.\n\n\
        ### Top 3 Opportunities (ranked by estimated impact)\n\
        1. head grouping — est. 40% gain — trigger: DRAM%=88.2\n\n\
        ### vs Baseline (if applicable)\n| Metric | Previous | Current | Change |\n\
        |---|---|---|---|\n| us | 150 | 128 | -14.7% |\n| spills | none | 12 | - |\n";
    vec![report.into()]
}

fn profiler_report(bytes: &[u8]) -> bool {
    contract::parse(&lossy(bytes)).is_ok()
}

fn count_seeds() -> Vec<Vec<u8>> {
    let call = |part: u32, totals: &str| {
        format!(
            "# callgrind format\nversion: 1\npid: 7\ncmd: ./main\npart: {part}\n\n\
             desc: Trigger: --dump-after=kernel\n\nevents: Ir Dr Dw I1mr\nfn=(1) kernel\n\
             0 {totals}\n\ntotals: {totals}\n"
        )
    };
    vec![[call(1, "24583 4097 0 1"), call(2, "24583 4097")].concat().into_bytes()]
}

fn call_counts(bytes: &[u8]) -> bool {
    work::parse_calls(&lossy(bytes)).is_ok_and(|calls| !calls.is_empty())
}

fn answer_seeds() -> Vec<Vec<u8>> {
    let texts = [
        r#"{"title":"T","mechanism":"m","expected_ratio":1.1,"files":["k.c"],"tokens":5}"#,
        "Look:\n```json\n{\"title\":\"T\",\"mechanism\":\"m\",\"expected_ratio\":2}\n```\n",
        "## Hypothesis\n- **title**: T\n- mechanism: m\n- expected ratio: 1.3x\n",
        r#"{"exhausted":"nothing left"}"#,
        r#"{"mechanism":"m","condition":"c","pitfall":"p","usd":0.5}"#,
        r#"{"give_up":"too hard","tokens":1e3}"#,
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

fn agent_answer(bytes: &[u8]) -> bool {
    karve_agents::reads_answer(&lossy(bytes))
}

fn agent_seeds() -> Vec<Vec<u8>> {
    let kinds = CliKind::ALL.iter().enumerate().take(4);
    let sample = |name| file(&format!("testdata/agents/{name}.jsonl"));
    kinds.map(|(number, kind)| of_format(number, sample(kind.name()))).collect()
}

fn agent_output(bytes: &[u8]) -> bool {
    let (kind, text) = format_and_text(bytes, &CliKind::ALL);
    for line in text.lines() {
        cli::parse_session_line(kind.name(), line.as_bytes());
    }
    cli::reads_output(kind, text.as_bytes(), Path::new("/dev/null")).unwrap()
}

/// The events of a stream, one a line, as a session log has them.
fn session_seeds() -> Vec<Vec<u8>> {
    let log = |seed: Vec<u8>| {
        let lines = lossy(&seed[1..]);
        let events = lines.lines().filter_map(|line| line.strip_prefix("data: "));
        let own = "{\"karve\":\"tool\",\"name\":\"read\",\"input\":{},\"text\":\"x\"}\n";
        let events = events.map(|event| format!("{event}\n")).collect::<String>() + own;
        [&seed[..1], events.as_bytes()].concat()
    };
    stream_seeds().into_iter().map(log).collect()
}

fn session_log(bytes: &[u8]) -> bool {
    let (kind, text) = format_and_text(bytes, &ApiKind::ALL);
    let mut reader = api::SessionLogReader::of(kind.name()).unwrap();
    let events = text.lines().map(|line| reader.take(line.as_bytes()).len()).sum::<usize>();
    events + reader.rest().len() > 0
}

fn stream_seeds() -> Vec<Vec<u8>> {
    let kinds = ApiKind::ALL.iter().enumerate();
    let sample = |name| file(&format!("testdata/agents/api/{name}.sse"));
    kinds.map(|(number, kind)| of_format(number, sample(kind.name()))).collect()
}

fn model_stream(bytes: &[u8]) -> bool {
    let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let kind = ApiKind::ALL[usize::from(*first) % ApiKind::ALL.len()];
    api::reads_stream(kind, rest, Path::new("/dev/null")).unwrap()
}

/// A value for a field of a message.
fn value_of(field: &MessageField) -> Value {
    let rows = |value: Value| Value::from(vec![value; field.least.unwrap_or(1).max(1)]);
    match field.kind {
        FieldKind::Line | FieldKind::Text => json!("words"),
        FieldKind::Number => json!(1.5),
        FieldKind::Count => json!(1),
        FieldKind::Truth => json!(true),
        FieldKind::Choice => json!(field.of[0]),
        FieldKind::Lines => rows(json!("line")),
        FieldKind::Rows => rows(record_of(&field.field)),
        FieldKind::Record => record_of(&field.field),
    }
}

fn record_of(fields: &[MessageField]) -> Value {
    fields.iter().map(|field| (field.name.clone(), value_of(field))).collect()
}

fn message_seeds() -> Vec<Vec<u8>> {
    let seed = |(number, form): (usize, &Message)| match form.form {
        MessageFormat::Object => Some(of_format(number, record_of(&form.field).to_string())),
        MessageFormat::Markdown => {
            Some(of_format(number, file(&format!("testdata/messages/{}.md", form.name))))
        }
        // Those are read as profiles.
        MessageFormat::Own => None,
    };
    messages::all().unwrap().iter().enumerate().filter_map(seed).collect()
}

fn workflow_message(bytes: &[u8]) -> bool {
    let numbers: Vec<usize> = (0..messages::all().unwrap().len()).collect();
    let (number, text) = format_and_text(bytes, &numbers);
    let _ = (messages::hypothesis_of(&text), messages::summary_of(&text));
    messages::parse(&messages::all().unwrap()[number], &text).is_ok()
}

/// The start of each conversation.
const HELLO: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","#,
    r#""capabilities":{},"clientInfo":{"name":"fuzz","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n"
);

fn mcp_seeds() -> Vec<Vec<u8>> {
    let call = |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": 3}});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        (call.to_string() + "\n").into_bytes()
    };
    vec![
        b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/list\"}\n".to_vec(),
        call("verdict", json!({"round": 3})),
        call("next", json!({"begin": true})),
        call("propose", json!({"title": "T", "mechanism": "m", "expected_ratio": 1.5})),
        call("submit", json!({"diff": "--- a/k.c\n+++ b/k.c\n", "summary": "s"})),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
            .to_string()
            .into_bytes(),
    ]
}

fn mcp(bytes: &[u8]) -> bool {
    // A library of knowledge is loaded for each call of this tool, which is slow.
    if lossy(bytes).contains("knowledge") {
        return false;
    }
    let place = ProjectArgs { dir: Some(PathBuf::from("/proc")), campaign: None };
    let server = McpServer::new(place, StartPermission::GoOn);
    let sent = Cursor::new([HELLO.as_bytes(), bytes, b"\n"].concat());
    let transport = AsyncRwTransport::new_server(sent, tokio::io::sink());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let Ok(serving) = server.serve(transport.with_max_line_length(16 << 20)).await else {
            return false;
        };
        let ended = serving.waiting().await;
        // Calls that are still under way.
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
        ended.is_ok()
    })
}

fn worker_seeds() -> Vec<Vec<u8>> {
    let message = |kind: u8, body: &[u8]| [&[kind], &7u64.to_le_bytes()[..], body].concat();
    let hello = json!({"path": "k.so", "entry": "run", "input_bytes": 64, "output_bytes": 64,
        "module": {"device": null, "wide": true, "alone": false, "hidden": ["x"], "seed": 1}});
    let number = |value: u64| value.to_le_bytes().to_vec();
    let arg = |kind: u8, value: u64| [vec![kind], number(value)].concat();
    let tensor = |kind| [arg(kind, 0), b"\x03f32\x02".to_vec(), number(2), number(2)].concat();
    let slots = [number(64), number(64), number(0)].concat();
    let setup = [slots, arg(0, 3), arg(1, 5), arg(2, 5), tensor(3), tensor(4), tensor(5)];
    vec![
        message(b'H', hello.to_string().as_bytes()),
        message(b'S', &setup.concat()),
        message(b'P', b""),
        message(b'O', b""),
        message(b'I', &[0; 32]),
        message(b'B', &[1; 40]),
        message(b'd', b""),
        message(b'f', &[9; 28]),
        message(b'e', b"it failed"),
    ]
}

fn worker_message(bytes: &[u8]) -> bool {
    runner::reads_message(bytes)
}

fn inputs_seeds() -> Vec<Vec<u8>> {
    let tensor = json!({"name": "x", "dtype": "f32", "shape": [4, 8], "low": -1.5, "high": 2});
    let number = json!({"name": "n", "dtype": "i32", "value": "8", "low": 8, "high": 8});
    let result = json!({"name": "y", "dtype": "f32", "shape": [4]});
    vec![json!({"inputs": [tensor, number], "outputs": [result]}).to_string().into_bytes()]
}

fn module_inputs(bytes: &[u8]) -> bool {
    runner::parse_inputs(&lossy(bytes)).is_ok()
}

fn git_seeds() -> Vec<Vec<u8>> {
    let oid = "0123456789abcdef0123456789abcdef01234567";
    let changes = format!(
        ":100644 100755 {oid} {oid} M\0src/k.c\0:100644 000000 {oid} {oid} D\0a\0\0diff --git a/a \
         b/a\nGIT binary patch\nliteral 3\nKcmZ\n"
    );
    let tree = format!("100644 blob {oid}\tsrc/k.c\0160000 commit {oid}\tsub\0");
    let objects = format!("{oid} blob 5\nhello\n{oid} blob 0\n\n");
    [changes, tree, objects].map(String::into_bytes).into()
}

fn git_answer(bytes: &[u8]) -> bool {
    git::reads_answer(bytes)
}

const SOURCES: [&str; 6] = ["k.c", "k.cpp", "k.cu", "k.py", "k.rs", "flags.mk"];

fn source_seeds() -> Vec<Vec<u8>> {
    let paths = files("testdata/audit/honest").into_iter().chain(files("testdata/audit/cheats"));
    let seed = |path: PathBuf| {
        let ends = |name: &&str| Path::new(*name).extension() == path.extension();
        let format = SOURCES.iter().position(ends)?;
        Some(of_format(format, fs::read(path).unwrap()))
    };
    paths.filter_map(seed).collect()
}

fn source_file(bytes: &[u8]) -> bool {
    let (path, text) = format_and_text(bytes, &SOURCES);
    let change = FileChange { path: path.into(), before: None, after: Some(text.into_bytes()) };
    let (rule, reads) = (AuditRule::default(), BTreeSet::from(["REPEATS".to_owned()]));
    let harness = ["reference".to_owned()];
    let scene = AuditContext { cases: &[], rule: &rule, harness: &harness, reads: &reads };
    audit(&[change], &scene);
    true
}

const PROJECT: [&str; 8] = [
    "kernel.c",
    "Makefile",
    "Cargo.toml",
    "pyproject.toml",
    "bench.py",
    "CMakeLists.txt",
    "src/kernel.cu",
    "benches/b.rs",
];

fn project_seeds() -> Vec<Vec<u8>> {
    let kernel = file("examples/matmul/kernel.c");
    let makefile = file("examples/matmul/Makefile");
    let python = file("examples/spaces/triton_matmul.py");
    let cargo = b"[package]\nname = \"x\"\n[[bench]]\nname = \"b\"\nharness = false\n";
    vec![of_format(0, kernel), of_format(1, makefile), of_format(2, cargo), of_format(4, python)]
}

fn detected_project(bytes: &[u8]) -> bool {
    let (path, text) = format_and_text(bytes, &PROJECT);
    let cut = text.floor_char_boundary(text.len().min(detect::TEXT_MAX));
    let files = vec![(path.to_owned(), text[..cut].to_owned()), ("k.c".into(), "void f();".into())];
    let proposal = detect::propose(&ProjectFiles { files, kernel: None });
    let written = detect::render_karve_toml(&proposal);
    detect::questions(&proposal);
    // What karve proposes, karve must be able to read.
    assert!(written.parse::<toml::Table>().is_ok(), "the proposal is not TOML: {written}");
    true
}

fn manifest_seeds() -> Vec<Vec<u8>> {
    vec![file("testdata/reports/manifest.yaml")]
}

fn primus_manifest(bytes: &[u8]) -> bool {
    let Ok(proposal) = detect::propose_from_manifest(&String::from_utf8_lossy(bytes)) else {
        return false;
    };
    let written = detect::render_karve_toml(&proposal);
    assert!(written.parse::<toml::Table>().is_ok(), "the proposal is not TOML: {written}");
    true
}

fn entry_seeds() -> Vec<Vec<u8>> {
    let entries = files("crates/karve/knowledge").into_iter().take(24);
    entries.map(|path| fs::read(path).unwrap()).collect()
}

fn knowledge_entry(bytes: &[u8]) -> bool {
    parse_entry(&lossy(bytes)).is_ok()
}

const PAGES: [KnowledgeFormat; 6] = [
    KnowledgeFormat::Karve,
    KnowledgeFormat::HyperMla,
    KnowledgeFormat::Casebook,
    KnowledgeFormat::Tips,
    KnowledgeFormat::Wiki,
    KnowledgeFormat::Playbook,
];

fn page_seeds() -> Vec<Vec<u8>> {
    let entries: Vec<_> =
        entry_seeds().iter().take(4).map(|text| parse_entry(&lossy(text)).unwrap()).collect();
    let mut seeds = Vec::new();
    for (number, form) in PAGES.iter().enumerate() {
        for entry in &entries {
            let pages = dialects::render(*form, &[entry]).unwrap_or_default();
            let read = pages.iter().filter(|page| dialects::parse(*form, page).is_ok());
            seeds.extend(read.map(|page| of_format(number, &page.text)));
        }
    }
    seeds
}

fn knowledge_page(bytes: &[u8]) -> bool {
    let (form, text) = format_and_text(bytes, &PAGES);
    let path = PathBuf::from("knowledge/languages/cutile/optimizations/a.md");
    dialects::parse(form, &SourcePage { path, text }).is_ok()
}

fn plan_seeds() -> Vec<Vec<u8>> {
    let markdown = "# Analysis\n\nPrimary bottleneck: memory-bound\nEvidence: dram 85%\n\n\
        ## Recommendations\n\n1. [High] Walk rows first (l1_miss_pct=9)\n   - effort: low\n   \
        - expected: 1.8x\n   - when: l1_miss_pct > 4\n2. [Low] Unroll four times\n   the inner \
        loop\n   - needs: 1\n   - knobs: UNROLL=4\n\n## Remarks\n\nnone\n";
    let items = json!({"bottleneck": "memory", "items": [
        {"id": "1", "title": "rows first", "impact": "High", "effort": "low", "when": ["ipc < 2"]},
        {"title": "unroll", "knobs": {"UNROLL": 4}, "needs": ["1"], "expected_ratio": 1.5}]});
    vec![markdown.into(), items.to_string().into_bytes()]
}

fn plan(bytes: &[u8]) -> bool {
    agenda::analysis::parse(&lossy(bytes)).is_ok()
}

fn csv_seeds() -> Vec<Vec<u8>> {
    vec![b"a,b\n\"x \"\"y\"\"\",2\n\n 3 ,\"line\nbreak\"\n".to_vec()]
}

fn csv(bytes: &[u8]) -> bool {
    let text = lossy(bytes);
    let mut records = CsvRecords { rest: &text, line: 1 };
    loop {
        match records.next_record() {
            Ok(None) => return true,
            Ok(Some(record)) => assert!(record.line <= records.line),
            Err(_) => return false,
        }
    }
}

fn knob_seeds() -> Vec<Vec<u8>> {
    let text = "// karve: knob TILE in 8,16,32,64\n#define TILE 16\n\
        # karve: knob UNROLL in 1..64*2 when TILE > 8\nUNROLL = 4\n\
        // karve: restrict TILE * UNROLL <= 512\nconst int WIDTH = 2;\n";
    vec![text.into()]
}

fn knobs(bytes: &[u8]) -> bool {
    let text = lossy(bytes);
    for restriction in space::parse_restrictions(&text) {
        let _ = expr::parse_expr(&restriction);
    }
    let Ok(knobs) = space::parse_knobs("k.c", &text, &[]) else {
        return false;
    };
    for knob in &knobs {
        space::set_knob(&text, knob, "32");
    }
    !knobs.is_empty()
}

fn space_seeds() -> Vec<Vec<u8>> {
    let table = b"A,B,valid,time\n1,x,1,2.5\n2,y,0,\n2,x,1,3\n".to_vec();
    files("testdata/spaces").iter().map(|path| fs::read(path).unwrap()).chain([table]).collect()
}

fn tuning_space(bytes: &[u8]) -> bool {
    matches!(tuner::recorded::parse_space("fuzz", bytes), Ok(Some(_)))
}

fn packed_seeds() -> Vec<Vec<u8>> {
    let packed = |text: Vec<u8>| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&text).unwrap();
        packer.finish().unwrap()
    };
    let mut seeds: Vec<Vec<u8>> = space_seeds().into_iter().map(packed).collect();
    seeds.push(file("examples/spaces/stencil-cpu.csv.gz"));
    seeds
}

fn packed_space(bytes: &[u8]) -> bool {
    tuning_space(bytes)
}

fn bundle_seeds() -> Vec<Vec<u8>> {
    let (log, long) = (file("testdata/logs/v3-small.jsonl"), vec![b'x'; 1_500]);
    let few: [(&str, &[u8]); 2] = [("a", b""), ("artifacts/b", &long)];
    let more: [(&str, &[u8]); 3] = [("README.md", b"text"), ("events.jsonl", &log), ("z", b"z")];
    [bundle::archive_of(&few), bundle::archive_of(&more)].into_iter().flatten().collect()
}

/// Nothing is written outside of the directory that it is unpacked into.
fn bundle_archive(bytes: &[u8]) -> bool {
    bundle::reads_archive(bytes)
}

fn expression_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "2 * M * N * K / (time_ms + 1e-9)",
        "min(a, max(b, 3)) >= 4 && !(c != 0) || d % 2 == 1",
        "ipc < 2 && ceiling_pct < 60",
        "1.5x",
        "30m",
        "geomean >= 1.2",
        "min(sqrt(x), 2) * -(3 + y)",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

fn expression(bytes: &[u8]) -> bool {
    let text = lossy(bytes);
    let others = [
        Predicate::parse(&text).is_ok(),
        Goal::parse(&text).is_ok(),
        budget::parse(&text).is_ok(),
        budget::parse_time(&text).is_ok(),
        karve::bench::command_args::parse_effect(&text).is_ok(),
    ];
    let parsed = expr::parse_expr(&text);
    if let Ok(parsed) = &parsed {
        let _ = (parsed.names(), parsed.evaluate(&|_| Some(2.0)));
    }
    parsed.is_ok() || others.contains(&true)
}

fn device_seeds() -> Vec<Vec<u8>> {
    vec![file("crates/profile/data/devices.toml")]
}

fn device_table(bytes: &[u8]) -> bool {
    DeviceCatalog::built_in().unwrap().add(&lossy(bytes), "devices.toml").is_ok()
}
