//! The trace of PyTorch's profiler: JSON with one object for each event, times in microseconds.

use super::gather::Notes;
use super::text::TEXT_BYTES_MAX;
use super::timeline::{Recorder, Span};
use super::{Parsed, Unreadable};
use karve_core::profile::{KernelProfile, Source};
use serde::Deserialize;
use serde_json::value::RawValue;

const TOOL: &str = "torch";
/// Bytes of one event at most.
const EVENT_BYTES_MAX: usize = 1024 * 1024;

/// The document; what else it says is not looked at.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, rename = "traceEvents")]
    events: Vec<&'a RawValue>,
}

/// An event; one that is no span of time has no length.
#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    cat: String,
    #[serde(default)]
    name: String,
    ts: Option<f64>,
    dur: Option<f64>,
    #[serde(default)]
    args: Args,
}

/// What is told of a kernel besides its time.
#[derive(Default, Deserialize)]
struct Args {
    #[serde(rename = "registers per thread")]
    registers: Option<u32>,
    #[serde(rename = "shared memory")]
    shared: Option<u32>,
    grid: Option<[u32; 3]>,
    block: Option<[u32; 3]>,
}

/// The phase of an event alone, for those of which nothing else is wanted.
#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    ph: serde_json::Value,
    #[serde(default)]
    cat: serde_json::Value,
}

/// Reads the whole trace, or nothing of it.
pub(super) fn parse(text: &str) -> Result<Parsed, Unreadable> {
    if text.len() > TEXT_BYTES_MAX {
        let mib = TEXT_BYTES_MAX / 1024 / 1024;
        return Err(Unreadable::at(1, format!("it is longer than {mib} MiB")));
    }
    let text = text.trim_start_matches('\u{feff}');
    let document: Document<'_> = serde_json::from_str(text).map_err(|e| {
        let early = if e.is_eof() {
            "the output ends early: "
        } else {
            ""
        };
        Unreadable::at(e.line().max(1), format!("{early}it is no trace: {e}"))
    })?;
    let mut recorder = Recorder::new(TOOL);
    // Events are parts of the text, so that their lines can be counted on the way.
    let (mut line, mut seen) = (1, 0);
    for raw in &document.events {
        let json = raw.get();
        let at = (json.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        if let Some(between) = text.as_bytes().get(seen..at) {
            line += between.iter().filter(|byte| **byte == b'\n').count();
            seen = at;
        }
        if json.len() > EVENT_BYTES_MAX {
            return Err(Unreadable::at(line, "an event is longer than 1 MiB"));
        }
        take(&mut recorder, json, line)?;
    }
    recorder.parsed(Notes::default(), 1)
}

fn take(recorder: &mut Recorder, json: &str, line: usize) -> Result<(), Unreadable> {
    let wrong = |e: serde_json::Error| Unreadable::at(line, format!("it is no event: {e}"));
    let kind: Kind = serde_json::from_str(json).map_err(wrong)?;
    let cat = kind.cat.as_str().unwrap_or_default();
    let wanted = [
        "kernel",
        "gpu_memcpy",
        "cuda_runtime",
        "cuda_driver",
        "hip_runtime",
    ];
    if kind.ph.as_str() != Some("X") || !wanted.contains(&cat) {
        return Ok(());
    }
    let event: Event = serde_json::from_str(json).map_err(wrong)?;
    let (Some(start), Some(length)) = (event.ts, event.dur) else {
        return Err(Unreadable::at(line, "an event has no time"));
    };
    let is_time = |us: f64| us.is_finite() && (0.0..1e18).contains(&us);
    if !is_time(start) || !is_time(length) {
        return Err(Unreadable::at(line, "the time of an event is no time"));
    }
    let span = Span::lasting(start * 1e3, length * 1e3);
    match event.cat.as_str() {
        "kernel" => {
            let source = Source::at(TOOL, line, &format!("dur {length}"));
            recorder.kernel(&event.name, span, source, of_args(&event.args, line))
        }
        // `Memcpy DtoD` stays on the device.
        "gpu_memcpy" if event.name.contains("HtoD") || event.name.contains("DtoH") => {
            recorder.copy(span)
        }
        "gpu_memcpy" => Ok(()),
        _ => recorder.call(&event.name, span),
    }
}

fn of_args(args: &Args, line: usize) -> KernelProfile {
    let mut profile = KernelProfile::default();
    let product = |sizes: [u32; 3]| {
        let product = sizes.iter().try_fold(1_u32, |all, n| all.checked_mul(*n));
        product.filter(|product| *product > 0)
    };
    let values = [
        ("registers", "registers per thread", args.registers),
        ("shared_bytes", "shared memory", args.shared),
        ("blocks", "grid", args.grid.and_then(product)),
        ("threads_per_block", "block", args.block.and_then(product)),
    ];
    for (counter, name, value) in values {
        if let Some(value) = value {
            let source = Source::at(TOOL, line, &format!("{name} {value}"));
            profile.set(counter, f64::from(value), source);
        }
    }
    profile
}
