//! Waits before a block, with a reason that is shown. How long, and when again, is decided in core.

use super::NoticeSink;
use super::cpu::Pressure;
use crate::process::StopFlag;
use karve_core::pause::{PauseBudget, PauseEnd};
use std::thread;
use std::time::{Duration, Instant};

/// How often the reason is checked.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How often Ctrl-C is checked.
const GLANCE: Duration = Duration::from_millis(20);

/// Waits until there is no reason left, the user stops, or the limit is reached. `holds` returns a
/// reason while there is one.
fn pause(
    limit: Duration,
    look_every: Duration,
    stop: &StopFlag,
    notices: &NoticeSink,
    holds: &mut dyn FnMut() -> Option<String>,
) -> (Duration, PauseEnd) {
    let start = Instant::now();
    let mut said = None;
    let end = loop {
        if start.elapsed() >= limit {
            break PauseEnd::Vain;
        }
        sleep(look_every.min(limit), stop);
        if stop.finish_step() {
            break PauseEnd::Stopped;
        }
        let Some(reason) = holds() else {
            break PauseEnd::Calm;
        };
        let (now, most) = (start.elapsed().as_secs_f64(), limit.as_secs_f64());
        notices.mention(&format!("waiting {now:.0} of at most {most:.0} s: {reason}"));
        said = Some(reason);
    };
    let waited = start.elapsed();
    if let Some(reason) = said {
        let how = match end {
            PauseEnd::Calm => "then the host was calm",
            PauseEnd::Vain => "measuring anyway, which may take more blocks",
            PauseEnd::Stopped => "stopped",
        };
        let waited = waited.as_secs_f64();
        notices.notify(&format!("waited {waited:.1} s: {reason}; {how}"));
    }
    (waited, end)
}

/// Sleeps, but returns early if the user wants to stop.
pub(super) fn sleep(time: Duration, stop: &StopFlag) {
    let end = Instant::now() + time;
    while !stop.finish_step() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(GLANCE));
    }
}

/// One reason to wait, and when it is checked again.
#[derive(Debug)]
pub(super) struct PauseBackoff {
    rests_until: Option<Instant>,
    look_every: Duration,
}

impl Default for PauseBackoff {
    fn default() -> Self {
        Self { rests_until: None, look_every: LOOK_EVERY }
    }
}

impl PauseBackoff {
    /// Whether it is time to check the reason.
    pub(super) fn is_awake(&self) -> bool {
        self.rests_until.is_none_or(|until| Instant::now() >= until)
    }

    /// Waits while there is a reason, as long as the budget allows.
    pub(super) fn wait(
        &mut self,
        budget: &mut PauseBudget,
        stop: &StopFlag,
        notices: &NoticeSink,
        holds: &mut dyn FnMut() -> Option<String>,
    ) -> Duration {
        let (waited, end) = pause(budget.limit(), self.look_every, stop, notices, holds);
        budget.spend(waited);
        self.rests_until = Some(Instant::now() + end.rest());
        waited
    }
}

/// The pressure at which karve waits, in percent, and how it is read.
pub(super) struct PressureLimit<'a> {
    pub(super) read: &'a dyn Fn() -> Option<Pressure>,
    pub(super) max: f64,
}

/// Waits while other processes compete for the CPUs.
///
/// The average of the last ten seconds also counts the waits of our own commands. It only triggers
/// a closer look: while karve waits, nothing of ours runs, so any growth of the pressure comes
/// from others.
pub(super) fn for_pressure(
    patience: &mut PauseBackoff,
    budget: &mut PauseBudget,
    limit: &PressureLimit<'_>,
    stop: &StopFlag,
    notices: &NoticeSink,
) -> Duration {
    if !patience.is_awake() {
        return Duration::ZERO;
    }
    let PressureLimit { read, max } = *limit;
    let Some(first) = read().filter(|now| now.avg10 > max) else {
        return Duration::ZERO;
    };
    let mut before = (Instant::now(), first);
    patience.wait(budget, stop, notices, &mut || {
        let now = (Instant::now(), read()?);
        let share = share_between(before, now);
        before = now;
        (share > max).then(|| {
            format!("other processes keep the CPUs busy: {share:.0}% pressure, limit {max:.0}%")
        })
    })
}

/// The share of the time between two checks in which some process waited, in percent.
fn share_between(before: (Instant, Pressure), now: (Instant, Pressure)) -> f64 {
    let grown = now.1.total_us.saturating_sub(before.1.total_us);
    let elapsed = now.0.duration_since(before.0).as_micros().max(1);
    #[allow(clippy::cast_precision_loss)]
    let share = grown as f64 * 100.0 / elapsed as f64;
    share.min(100.0)
}

#[cfg(test)]
mod tests {
    use super::super::cpu::CpuFiles;
    use super::*;
    use std::cell::Cell;
    use std::fs;
    use std::sync::{Arc, Mutex};

    const STEP: Duration = Duration::from_millis(1);

    /// Collects all notices.
    type Heard = Arc<Mutex<Vec<String>>>;

    fn heard() -> (NoticeSink, Heard) {
        let lines = Heard::default();
        let sink = Arc::clone(&lines);
        let notices =
            NoticeSink::new(move |said| sink.lock().unwrap().push(said.text().to_owned()));
        (notices, lines)
    }

    /// Pressure that grows by a whole second from one check to the next, for this many checks.
    fn growing(looks: u64) -> impl Fn() -> Option<Pressure> {
        let n = Cell::new(0);
        move || {
            n.set((n.get() + 1).min(looks));
            Some(Pressure { avg10: 95.0, total_us: n.get() * 1_000_000 })
        }
    }

    /// A reason that is checked often.
    fn quick() -> PauseBackoff {
        PauseBackoff { look_every: STEP, ..PauseBackoff::default() }
    }

    struct Scene {
        patience: PauseBackoff,
        budget: PauseBudget,
        stop: StopFlag,
    }

    impl Scene {
        fn new(once: Duration) -> Self {
            Self { patience: quick(), budget: PauseBudget::of(once), stop: StopFlag::new() }
        }

        fn wait(&mut self, read: &dyn Fn() -> Option<Pressure>, notices: &NoticeSink) -> Duration {
            let limit = PressureLimit { read, max: 50.0 };
            for_pressure(&mut self.patience, &mut self.budget, &limit, &self.stop, notices)
        }
    }

    #[test]
    fn without_pressure_nothing_waits() {
        let dir = tempfile::tempdir().unwrap();
        let files = CpuFiles { pressure: dir.path().join("cpu"), ..CpuFiles::default() };
        let mut scene = Scene::new(Duration::from_secs(600));
        let read = || files.pressure();
        assert_eq!(scene.wait(&read, &heard().0), Duration::ZERO);
        fs::write(&files.pressure, "some avg10=49.90 avg60=0 avg300=0 total=7\n").unwrap();
        assert_eq!(scene.wait(&read, &heard().0), Duration::ZERO);
        fs::write(&files.pressure, "some avg10=90.00 avg60=0 avg300=0 total=7\n").unwrap();
        assert!(scene.wait(&read, &heard().0) >= STEP);
    }

    #[test]
    fn pressure_of_our_own_is_noticed_in_one_look_and_not_spoken_of() {
        let mut scene = Scene::new(Duration::from_secs(600));
        let (notices, lines) = heard();
        assert!(scene.wait(&growing(1), &notices) >= STEP);
        assert!(lines.lock().unwrap().is_empty());
        assert_eq!(scene.wait(&growing(1), &notices), Duration::ZERO, "it rests");
    }

    #[test]
    fn pressure_of_others_is_waited_for_and_named() {
        let mut scene = Scene::new(Duration::from_secs(600));
        let (notices, lines) = heard();
        assert!(scene.wait(&growing(5), &notices) >= STEP * 4);
        let lines = lines.lock().unwrap();
        let busy = |line: &String| line.contains("other processes keep the CPUs busy");
        assert!(lines.iter().all(busy), "{lines:?}");
        let (last, updates) = lines.split_last().unwrap();
        assert!(updates.iter().all(|line| line.starts_with("waiting ")), "{lines:?}");
        assert!(updates.len() >= 4 && last.contains("then the host was calm"), "{lines:?}");
    }

    #[test]
    fn a_pause_has_a_bound_and_is_not_repeated_in_vain() {
        let once = Duration::from_millis(20);
        let mut scene = Scene::new(once);
        let (notices, lines) = heard();
        assert!(scene.wait(&growing(u64::MAX), &notices) >= once);
        assert!(lines.lock().unwrap().last().unwrap().contains("measuring anyway"));
        assert_eq!(scene.wait(&growing(u64::MAX), &notices), Duration::ZERO);
    }

    #[test]
    fn a_budget_that_is_spent_allows_no_pause() {
        let mut scene = Scene::new(Duration::from_millis(20));
        scene.budget.spend(Duration::MAX);
        let (notices, lines) = heard();
        scene.wait(&growing(u64::MAX), &notices);
        assert!(lines.lock().unwrap().is_empty());
    }

    #[test]
    fn ctrl_c_ends_a_pause_at_once() {
        let mut scene = Scene::new(Duration::from_secs(600));
        let (notices, lines) = heard();
        let stop = scene.stop.clone();
        let notices = NoticeSink::new(move |said| {
            notices.mention(said.text());
            stop.request();
        });
        scene.wait(&growing(u64::MAX), &notices);
        assert!(lines.lock().unwrap().last().unwrap().contains("stopped"));
    }
}
