//! Fuzzing: every reader of outside data gets mutated valid inputs. None may panic, hang, overflow
//! its stack, or hold more than 64 MiB.
//!
//! The default run is short and the same each time. `KARVE_FUZZ=N` tries N inputs for each reader,
//! and `KARVE_FUZZ_AT=N` starts at input number N. CONTRIBUTING.md has the commands, and
//! docs/decisions/0033 says why this is not `cargo fuzz`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    unreachable_pub,
    reason = "a test says so when it breaks"
)]

#[allow(unsafe_code)]
#[path = "../../os/testing/counting.rs"]
mod counting;
#[path = "fuzz/mutate.rs"]
mod mutate;
#[path = "fuzz/readers.rs"]
mod readers;
#[path = "fuzz/tasks.rs"]
mod tasks;

use readers::FuzzedReader;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

#[global_allocator]
static COUNTING: counting::CountingAllocator = counting::CountingAllocator;

/// The most that reading one input may hold, in bytes.
const PEAK_BYTES_MAX: usize = 64 << 20;
/// The most processor time for one input, in the kernel's ticks: ten seconds.
const TICKS_MAX: u64 = 1_000;
/// Seconds without progress, for a reader that waits forever; far beyond any load.
const STALLED_S_MAX: u64 = 600;
/// Stack of the reading thread, in bytes: what a thread of the program has.
const STACK_BYTES: usize = 2 << 20;
/// Failures after which a run ends.
const FAILURES_MAX: usize = 20;

/// Where inputs of failures and the numbers of current inputs go.
fn place() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    fs::create_dir_all(&place).unwrap();
    place
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is not a number: {value}")))
}

/// What a run saw.
#[derive(Debug, Default)]
struct FuzzRun {
    inputs: u64,
    bytes: u64,
    accepted: u64,
    /// The most memory, and the number of its input.
    peak: (usize, u64),
    /// The longest time, and the number of its input.
    slowest: (Duration, u64),
    /// What went wrong, once for each message.
    failures: BTreeMap<String, u64>,
}

/// Tries the inputs of a reader in a thread of its own, and watches it.
fn fuzz(name: &str) {
    let reader = readers::ALL.iter().find(|reader| reader.name == name).unwrap();
    let from = variable("KARVE_FUZZ_AT").unwrap_or(0);
    let count = variable("KARVE_FUZZ").unwrap_or(reader.short);
    let current = Arc::new(AtomicU64::new(from));
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    let progress = Arc::clone(&current);
    let worker = thread.spawn(move || {
        sender.send(fs::read_link("/proc/thread-self").unwrap()).unwrap();
        run(reader, from..from + count, &progress)
    });
    let worker = worker.unwrap();
    watch(&worker, &Path::new("/proc").join(receiver.recv().unwrap()), &current);
    let run = worker.join().unwrap();
    eprintln!(
        "fuzz {name}: {} inputs of {} bytes on average, {:.1}% accepted, most memory {} KiB at {}, \
         longest {:?} at {}",
        run.inputs,
        run.bytes / run.inputs.max(1),
        100.0 * run.accepted as f64 / run.inputs.max(1) as f64,
        run.peak.0 >> 10,
        run.peak.1,
        run.slowest.0,
        run.slowest.1,
    );
    let failures = run.failures.iter();
    let failures: Vec<String> = failures
        .map(|(what, index)| {
            let file = place().join(format!("{name}-{index}"));
            fs::write(&file, mutate::input(&(reader.seeds)(), name, *index)).unwrap();
            format!(
                "input {index} of {name}, saved as {}: {what}\nrepeat it with \
                 KARVE_FUZZ_AT={index} KARVE_FUZZ=1 cargo test -p karve --test fuzz -- \
                 --exact {name}",
                file.display()
            )
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Ends the process if one input takes too long: a thread cannot be ended.
fn watch<T>(worker: &std::thread::JoinHandle<T>, thread: &Path, current: &AtomicU64) {
    let (mut input, mut ticks, mut since) = (u64::MAX, 0, Instant::now());
    while !worker.is_finished() {
        std::thread::park_timeout(Duration::from_millis(20));
        let now = current.load(Ordering::Relaxed);
        if now != input {
            (input, ticks, since) = (now, ticks_of(thread), Instant::now());
        } else if ticks_of(thread) > ticks + TICKS_MAX || since.elapsed().as_secs() > STALLED_S_MAX
        {
            let name = worker.thread().name().unwrap_or_default();
            eprintln!("fuzz {name}: input {now} takes too long");
            std::process::abort();
        }
    }
}

/// The processor time of a thread.
fn ticks_of(thread: &Path) -> u64 {
    let stat = fs::read_to_string(thread.join("stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn run(reader: &FuzzedReader, inputs: std::ops::Range<u64>, current: &AtomicU64) -> FuzzRun {
    let seeds = (reader.seeds)();
    // If the process dies, this file has the number of the input.
    let number = File::create(place().join(format!("{}.at", reader.name))).unwrap();
    let mut run = FuzzRun::default();
    for index in inputs {
        current.store(index, Ordering::Relaxed);
        number.write_all_at(format!("{index:20}\n").as_bytes(), 0).unwrap();
        let input = mutate::input(&seeds, reader.name, index);
        let before = counting::held();
        counting::take_peak(before);
        let started = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| (reader.read)(&input)));
        let (took, peak) = (started.elapsed(), counting::take_peak(before));
        run.inputs += 1;
        run.bytes += input.len() as u64;
        run.accepted += u64::from(matches!(outcome, Ok(true)));
        run.peak = run.peak.max((peak, index));
        run.slowest = run.slowest.max((took, index));
        if let Err(panic) = &outcome {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            let text: String = text.unwrap_or_default().chars().take(60).collect();
            run.failures.entry(format!("it panics: {text}")).or_insert(index);
        }
        if peak > PEAK_BYTES_MAX {
            run.failures.entry("it takes more than 64 MiB".to_owned()).or_insert(index);
        }
        if index < seeds.len() as u64 && outcome.is_ok_and(|accepted| !accepted) {
            run.failures.entry(format!("the valid input {index} is refused")).or_insert(index);
        }
        if run.failures.len() >= FAILURES_MAX {
            break;
        }
    }
    run
}

/// A test for each reader, and one that none is missing.
macro_rules! readers {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            fuzz(stringify!($name));
        })*

        #[test]
        fn every_reader_has_a_test() {
            let tests = [$(stringify!($name)),*];
            let names: Vec<&str> = readers::ALL.iter().map(|reader| reader.name).collect();
            assert_eq!(names, tests);
        }
    };
}

readers! {
    event_log config benchmark_output profiler_text profiler_database profiler_report call_counts
    agent_answer agent_output session_log model_stream workflow_message mcp worker_message
    module_inputs git_answer source_file detected_project primus_manifest knowledge_entry
    knowledge_page plan csv knobs tuning_space packed_space bundle_archive imported_task expression
    device_table
}

#[test]
fn a_long_line_is_not_kept_for_each_finding_in_it() {
    let line = "extern int tick(int, void *) __asm__(\"clock_gettime\");".repeat(1_500);
    let reader = readers::ALL.iter().find(|reader| reader.name == "source_file").unwrap();
    let before = counting::held();
    counting::take_peak(before);
    assert!((reader.read)(&[b"\0", line.as_bytes()].concat()));
    let peak = counting::take_peak(before);
    assert!(peak < PEAK_BYTES_MAX, "{} MiB", peak >> 20);
}
