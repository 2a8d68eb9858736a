//! Timelines: when the device and the host did what, and the totals for the whole run.
//!
//! ```text
//! device   [kernel]  gap  [kernel][copy]  gap  [kernel]
//!          ├───────────────── window ────────────────┤  busy, copying, communicating: its shares
//! host     [launch][launch]   [synchronize      ]       launching, waiting: of its own window
//! ```
//!
//! Overlapping time counts once. The device is idle when no kernel runs, even while it copies.

use super::gather::{ProfileNotes, WeightedKernel, exact, heaviest};
use super::number::whole;
use super::{ParsedProfile, ProfileParseError};
use karve_core::profile::{KernelProfile, ProfileSource, TIMELINE};
use std::collections::BTreeMap;

/// The most launches, copies and calls of one timeline.
const EVENTS_MAX: usize = 5_000_000;
/// The most bytes of all kernel names together.
const NAMES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Shorter launches are small, in nanoseconds.
const SMALL_NS: f64 = 10_000.0;

/// From when to when, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimeSpan {
    start: f64,
    end: f64,
    /// Exact, while the others may be rounded.
    length: f64,
}

/// What the host does in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostCall {
    Launch,
    Wait,
    Other,
}

impl TimeSpan {
    /// Two timestamps in whole nanoseconds.
    pub(super) fn of(start: &str, end: &str) -> Result<Self, String> {
        let (Some(from), Some(to)) = (whole(start), whole(end)) else {
            return Err(format!("{start:?} and {end:?} are not timestamps"));
        };
        Self::between(from, to)
    }

    /// Two timestamps in nanoseconds.
    #[allow(
        clippy::cast_precision_loss,
        reason = "the length is exact; a start may be off by 1 us"
    )]
    pub(super) fn between(from: u64, to: u64) -> Result<Self, String> {
        let Some(length) = to.checked_sub(from) else {
            return Err(format!("it ends ({to}) before it starts ({from})"));
        };
        Ok(Self::lasting(from as f64, length as f64))
    }

    /// A start and a length, in nanoseconds.
    pub(super) fn lasting(start: f64, length: f64) -> Self {
        Self { start, end: start + length, length }
    }

    fn length(self) -> f64 {
        self.length
    }
}

/// One launch: how long it took, and where its other values are. Only the launch with the median
/// time is reported, and there may be millions.
struct TimelineLaunch<D> {
    length_ns: f64,
    detail: D,
}

/// Collects the events.
pub(super) struct TimelineRecorder<D> {
    tool: &'static str,
    kernels: BTreeMap<String, Vec<TimelineLaunch<D>>>,
    names_bytes: usize,
    spans: Vec<TimeSpan>,
    communication: Vec<TimeSpan>,
    copies: Vec<TimeSpan>,
    calls: Vec<(HostCall, TimeSpan)>,
    n: usize,
}

impl<D> TimelineRecorder<D> {
    pub(super) fn new(tool: &'static str) -> Self {
        Self {
            tool,
            kernels: BTreeMap::new(),
            names_bytes: 0,
            spans: Vec::new(),
            communication: Vec::new(),
            copies: Vec::new(),
            calls: Vec::new(),
            n: 0,
        }
    }

    fn count(&mut self, line: usize) -> Result<(), ProfileParseError> {
        self.n += 1;
        if self.n > EVENTS_MAX {
            let reason = format!("there are more than {EVENTS_MAX} events");
            return Err(ProfileParseError::at(line.max(1), reason));
        }
        Ok(())
    }

    /// A kernel launch on a line of the output, with the key of its other values.
    pub(super) fn kernel(
        &mut self,
        name: &str,
        span: TimeSpan,
        line: usize,
        detail: D,
    ) -> Result<(), ProfileParseError> {
        self.count(line)?;
        if name.is_empty() {
            return Err(ProfileParseError::at(line.max(1), "a kernel has no name"));
        }
        self.spans.push(span);
        let lower = name.to_lowercase();
        if lower.contains("nccl") || lower.contains("rccl") {
            self.communication.push(span);
        }
        let launch = TimelineLaunch { length_ns: span.length(), detail };
        if let Some(launches) = self.kernels.get_mut(name) {
            launches.push(launch);
            return Ok(());
        }
        self.names_bytes += name.len();
        if self.names_bytes > NAMES_BYTES_MAX {
            let reason = "the kernel names together are longer than 64 MiB";
            return Err(ProfileParseError::at(line.max(1), reason));
        }
        self.kernels.insert(name.to_owned(), vec![launch]);
        Ok(())
    }

    /// A copy from or to the host.
    pub(super) fn copy(&mut self, span: TimeSpan) -> Result<(), ProfileParseError> {
        self.copies.push(span);
        self.count(0)
    }

    /// A call of the runtime on the host, such as `cudaLaunchKernel_v7000`.
    pub(super) fn call(&mut self, name: &str, span: TimeSpan) -> Result<(), ProfileParseError> {
        let call = if name.contains("Launch") {
            HostCall::Launch
        } else if name.contains("Synchronize") {
            HostCall::Wait
        } else {
            HostCall::Other
        };
        self.calls.push((call, span));
        self.count(0)
    }

    /// All kernels, and the timeline. `tell` returns the source of a launch's time, and its other
    /// values.
    pub(super) fn parsed(
        self,
        mut notes: ProfileNotes,
        line: usize,
        tell: impl Fn(&D) -> (ProfileSource, KernelProfile),
    ) -> Result<ParsedProfile, ProfileParseError> {
        if self.kernels.is_empty() {
            return Err(ProfileParseError::at(line, "no kernel was launched"));
        }
        let timeline = self.timeline();
        let window_us = timeline.value("duration_us").unwrap_or(0.0);
        let tool = self.tool;
        let kernels = self.kernels.into_iter();
        let kernels = kernels.filter_map(|(name, launches)| {
            let median = median(&launches)?;
            let (source, mut profile) = tell(&median.detail);
            profile.set("duration_us", median.length_ns / 1e3, source);
            Some(weighted(name, &launches, profile, tool, window_us))
        });
        let kernels = kernels.collect();
        Ok(ParsedProfile {
            kernels: heaviest(kernels, &mut notes),
            timeline: Some(timeline),
            notes: notes.finish(),
        })
    }

    fn timeline(&self) -> KernelProfile {
        let mut whole = KernelProfile::named(TIMELINE);
        let mut set = |counter: &str, value: f64, quote: &str| {
            whole.set(counter, value, ProfileSource::at(self.tool, 0, quote));
        };
        let device: Vec<TimeSpan> = self.spans.iter().chain(&self.copies).copied().collect();
        let n = self.spans.len();
        set("launches", exact(n), &format!("{n} kernel launches"));
        let small = self.spans.iter().filter(|span| span.length() < SMALL_NS);
        let small = small.count();
        let quote = format!("{small} of {n} launches take less than 10 us");
        set("small_kernels_pct", 100.0 * exact(small) / exact(n.max(1)), &quote);
        if let Some(window) = window(&device) {
            let us = window / 1e3;
            set("duration_us", us, "from the first to the last device activity");
            let mut share = |counter: &str, spans: &[TimeSpan], what: &str| {
                let busy = union(spans);
                let quote = format!("{what} {:.3} us of {us:.3} us", busy / 1e3);
                set(counter, 100.0 * busy / window, &quote);
                (window - busy, quote)
            };
            let (idle, quote) = share("gpu_busy_pct", &self.spans, "kernels");
            share("communication_pct", &self.communication, "communication");
            share("copy_pct", &self.copies, "copies from and to the host");
            set("gpu_idle_pct", 100.0 * idle / window, &format!("all but {quote}"));
        }
        let calls: Vec<TimeSpan> = self.calls.iter().map(|(_, span)| *span).collect();
        if let Some(window) = window(&calls) {
            for (kind, counter) in
                [(HostCall::Launch, "launch_api_pct"), (HostCall::Wait, "sync_pct")]
            {
                let spans = self.calls.iter().filter(|(call, _)| *call == kind);
                let spans: Vec<TimeSpan> = spans.map(|(_, span)| *span).collect();
                let (busy, n) = (union(&spans) / 1e3, spans.len());
                let us = window / 1e3;
                let quote = format!("{n} calls, {busy:.3} us of {us:.3} us of the host");
                set(counter, 100.0 * busy / us, &quote);
            }
        }
        whole
    }
}

/// The launch with the median time, the shorter one of two; the earliest of several equal ones.
fn median<D>(launches: &[TimelineLaunch<D>]) -> Option<&TimelineLaunch<D>> {
    let mut order: Vec<&TimelineLaunch<D>> = launches.iter().collect();
    order.sort_by(|a, b| a.length_ns.total_cmp(&b.length_ns));
    order.get(order.len().saturating_sub(1) / 2).copied()
}

/// A kernel with the values of its median launch, and its weight in all launches.
fn weighted<D>(
    name: String,
    launches: &[TimelineLaunch<D>],
    mut profile: KernelProfile,
    tool: &str,
    window_us: f64,
) -> WeightedKernel {
    let n = launches.len();
    let total_us = launches.iter().map(|launch| launch.length_ns).sum::<f64>() / 1e3;
    let quote =
        format!("{n} launches, {total_us:.3} us in total; the values are of a median launch");
    profile.set("launches", exact(n), ProfileSource::at(tool, 0, &quote));
    if window_us > 0.0 {
        let quote = format!("{total_us:.3} us of {window_us:.3} us");
        let share = 100.0 * total_us / window_us;
        profile.set("share_pct", share, ProfileSource::at(tool, 0, &quote));
    }
    WeightedKernel { name, weight: total_us, profile }
}

/// From the first start to the last end, if longer than zero.
fn window(spans: &[TimeSpan]) -> Option<f64> {
    let start = spans.iter().map(|span| span.start).reduce(f64::min)?;
    let end = spans.iter().map(|span| span.end).reduce(f64::max)?;
    Some(end - start).filter(|window| *window > 0.0)
}

/// The time in which at least one of them runs.
fn union(spans: &[TimeSpan]) -> f64 {
    let mut sorted = spans.to_vec();
    sorted.sort_by(|a, b| a.start.total_cmp(&b.start));
    let mut total = 0.0;
    let mut reached = f64::NEG_INFINITY;
    for span in sorted {
        if span.end > reached {
            total += span.end - span.start.max(reached);
            reached = span.end;
        }
    }
    total
}
