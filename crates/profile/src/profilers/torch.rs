//! The trace of PyTorch's profiler: JSON with one object for each event, times in microseconds.
//!
//! A trace may have gigabytes, so it is streamed, one event at a time; only the duration and the
//! position of each launch are kept.

use super::gather::ProfileNotes;
use super::timeline::{TimeSpan, TimelineRecorder};
use super::{ParsedProfile, ProfileParseError};
use karve_core::profile::{KernelProfile, ProfileSource};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::cell::Cell;
use std::io::Read;
use std::{fmt, io};

const TOOL: &str = "torch";
/// The most bytes of one event, and of one key.
const EVENT_BYTES_MAX: u64 = 1024 * 1024;
/// The most bytes of a whole trace.
const TRACE_BYTES_MAX: u64 = 4 << 30;
/// What a text may start with.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// An event; one that is not a time span has no duration.
#[derive(Deserialize)]
struct TraceEvent {
    #[serde(default)]
    cat: String,
    #[serde(default)]
    name: String,
    ts: Option<f64>,
    dur: Option<f64>,
    #[serde(default)]
    args: LaunchArgs,
}

/// The values of a kernel besides its time.
#[derive(Default, Deserialize)]
struct LaunchArgs {
    #[serde(rename = "registers per thread")]
    registers: Option<u32>,
    #[serde(rename = "shared memory")]
    shared: Option<u32>,
    grid: Option<[u32; 3]>,
    block: Option<[u32; 3]>,
}

/// Only the phase of an event, for those that are otherwise ignored.
#[derive(Deserialize)]
struct EventPhase {
    #[serde(default)]
    ph: serde_json::Value,
    #[serde(default)]
    cat: serde_json::Value,
}

/// Reads the whole trace, or fails.
pub(super) fn parse(text: &str) -> Result<ParsedProfile, ProfileParseError> {
    read(text.as_bytes())
}

/// The same as a stream.
pub(super) fn read(from: impl Read) -> Result<ParsedProfile, ProfileParseError> {
    let place = TraceProgress::default();
    let mut recorder = TimelineRecorder::new(TOOL);
    let mut fault = None;
    let counted = CountingReader { from, place: &place, pending: Vec::new(), is_open: false };
    let mut json = serde_json::Deserializer::from_reader(counted);
    let trace = TraceDocument { place: &place, recorder: &mut recorder, error: &mut fault };
    let read = json.deserialize_map(trace).and_then(|()| json.end());
    if let Some(fault) = fault {
        return Err(fault);
    }
    read.map_err(|e| {
        let early = if e.is_eof() { "the output ends early: " } else { "" };
        let line = if e.is_io() { place.line() } else { e.line() };
        ProfileParseError::at(line.max(1), format!("{early}it is not a trace: {e}"))
    })?;
    recorder.parsed(ProfileNotes::default(), 1, TorchLaunch::launch_profile)
}

/// How far a trace was read.
#[derive(Default)]
struct TraceProgress {
    line_ends: Cell<usize>,
    bytes: Cell<u64>,
    /// Where the current item must end.
    bound: Cell<Option<u64>>,
}

impl TraceProgress {
    fn line(&self) -> usize {
        self.line_ends.get() + 1
    }

    /// An event or a key starts, with this length limit.
    fn begin(&self) {
        self.bound.set(Some(self.bytes.get() + EVENT_BYTES_MAX));
    }

    /// Something starts that is not kept.
    fn pass(&self) {
        self.bound.set(None);
    }

    fn take(&self, bytes: &[u8]) -> io::Result<()> {
        let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
        self.line_ends.set(self.line_ends.get() + ends);
        self.bytes.set(self.bytes.get() + bytes.len() as u64);
        let at = self.bytes.get();
        if self.bound.get().is_some_and(|bound| at > bound) {
            return Err(io::Error::other("an event is longer than 1 MiB"));
        }
        if at > TRACE_BYTES_MAX { Err(io::Error::other("it is longer than 4 GiB")) } else { Ok(()) }
    }
}

/// A trace that tracks how far it was read. It is read byte by byte, so this is exact.
struct CountingReader<'a, R> {
    from: R,
    place: &'a TraceProgress,
    /// Bytes that were read to look for a byte order mark, but are not one.
    pending: Vec<u8>,
    is_open: bool,
}

impl<R: Read> Read for CountingReader<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.is_open {
            self.is_open = true;
            let mut first = Vec::new();
            let most = BYTE_ORDER_MARK.len() as u64;
            self.from.by_ref().take(most).read_to_end(&mut first)?;
            if first != BYTE_ORDER_MARK {
                first.reverse();
                self.pending = first;
            }
        }
        let n = match (self.pending.pop(), into.first_mut()) {
            (Some(byte), Some(first)) => {
                *first = byte;
                1
            }
            _ => self.from.read(into)?,
        };
        self.place.take(&into[..n])?;
        Ok(n)
    }
}

/// The document; everything else in it is ignored.
struct TraceDocument<'a> {
    place: &'a TraceProgress,
    recorder: &'a mut TimelineRecorder<TorchLaunch>,
    /// What is wrong with an event.
    error: &'a mut Option<ProfileParseError>,
}

impl<'de> Visitor<'de> for TraceDocument<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with traceEvents")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        loop {
            self.place.begin();
            let Some(key) = map.next_key::<String>()? else {
                break;
            };
            if key != "traceEvents" {
                self.place.pass();
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if found {
                return Err(A::Error::duplicate_field("traceEvents"));
            }
            found = true;
            map.next_value_seed(TraceEvents {
                place: self.place,
                recorder: &mut *self.recorder,
                error: &mut *self.error,
            })?;
        }
        self.place.pass();
        if found { Ok(()) } else { Err(A::Error::missing_field("traceEvents")) }
    }
}

/// The events of a trace.
struct TraceEvents<'a> {
    place: &'a TraceProgress,
    recorder: &'a mut TimelineRecorder<TorchLaunch>,
    error: &'a mut Option<ProfileParseError>,
}

impl<'de> DeserializeSeed<'de> for TraceEvents<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for TraceEvents<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        loop {
            self.place.pass();
            let Some((line, event)) = events.next_element_seed(EventSeed { place: self.place })?
            else {
                return Ok(());
            };
            if let Err(wrong) = take(self.recorder, event.get(), line) {
                let error = A::Error::custom(&wrong);
                *self.error = Some(wrong);
                return Err(error);
            }
        }
    }
}

/// One event, and the line on which it starts.
struct EventSeed<'a> {
    place: &'a TraceProgress,
}

impl<'de> DeserializeSeed<'de> for EventSeed<'_> {
    type Value = (usize, Box<RawValue>);

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        self.place.begin();
        let line = self.place.line();
        Ok((line, Box::<RawValue>::deserialize(from)?))
    }
}

/// What is kept of a launch.
struct TorchLaunch {
    line: usize,
    length_us: f64,
    values: [Option<u32>; 4],
}

fn take(
    recorder: &mut TimelineRecorder<TorchLaunch>,
    json: &str,
    line: usize,
) -> Result<(), ProfileParseError> {
    let wrong =
        |e: serde_json::Error| ProfileParseError::at(line, format!("it is not an event: {e}"));
    let kind: EventPhase = serde_json::from_str(json).map_err(wrong)?;
    let cat = kind.cat.as_str().unwrap_or_default();
    let wanted = ["kernel", "gpu_memcpy", "cuda_runtime", "cuda_driver", "hip_runtime"];
    if kind.ph.as_str() != Some("X") || !wanted.contains(&cat) {
        return Ok(());
    }
    let event: TraceEvent = serde_json::from_str(json).map_err(wrong)?;
    let (Some(start), Some(length)) = (event.ts, event.dur) else {
        return Err(ProfileParseError::at(line, "an event has no time"));
    };
    let is_time = |us: f64| us.is_finite() && (0.0..1e18).contains(&us);
    if !is_time(start) || !is_time(length) {
        return Err(ProfileParseError::at(line, "the time of an event is invalid"));
    }
    let span = TimeSpan::lasting(start * 1e3, length * 1e3);
    match event.cat.as_str() {
        "kernel" => {
            let launched = TorchLaunch { line, length_us: length, values: values_of(&event.args) };
            recorder.kernel(&event.name, span, line, launched)
        }
        // `Memcpy DtoD` stays on the device.
        "gpu_memcpy" if event.name.contains("HtoD") || event.name.contains("DtoH") => {
            recorder.copy(span)
        }
        "gpu_memcpy" => Ok(()),
        _ => recorder.call(&event.name, span),
    }
}

/// Registers, shared memory, blocks and threads of a block.
fn values_of(args: &LaunchArgs) -> [Option<u32>; 4] {
    let product = |sizes: [u32; 3]| {
        let product = sizes.iter().try_fold(1_u32, |all, n| all.checked_mul(*n));
        product.filter(|product| *product > 0)
    };
    [args.registers, args.shared, args.grid.and_then(product), args.block.and_then(product)]
}

impl TorchLaunch {
    fn launch_profile(&self) -> (ProfileSource, KernelProfile) {
        const NAMES: [(&str, &str); 4] = [
            ("registers", "registers per thread"),
            ("shared_bytes", "shared memory"),
            ("blocks", "grid"),
            ("threads_per_block", "block"),
        ];
        let mut profile = KernelProfile::default();
        for ((counter, name), value) in NAMES.into_iter().zip(self.values) {
            if let Some(value) = value {
                let source = ProfileSource::at(TOOL, self.line, &format!("{name} {value}"));
                profile.set(counter, f64::from(value), source);
            }
        }
        let quote = format!("dur {}", self.length_us);
        (ProfileSource::at(TOOL, self.line, &quote), profile)
    }
}
