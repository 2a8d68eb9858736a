//! Allocations of SLURM, by its command line: what `squeue -o` prints is the same in all versions.

use super::engine::{Allocation, DeviceWait, Engine, exports, quoted_line};
use super::ssh::SshEngine;
use super::table::{RemoteConfig, SlurmSubmit};
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::{self, Command, PipedProcess, StopFlag};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long a command of SLURM may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How soon the queue is looked at again: first often, and then rarely.
const LOOKS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];
/// How long the queue may not know a job that was submitted.
const UNKNOWN_MAX: Duration = Duration::from_secs(10);

/// A cluster.
#[derive(Debug)]
pub(super) struct SlurmEngine {
    config: RemoteConfig,
    /// The login node, if this host is not one.
    login: Option<SshEngine>,
}

/// A job in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
struct QueuedJob {
    state: String,
    reason: String,
    nodes: String,
    left: String,
}

impl SlurmEngine {
    pub(super) fn new(config: &RemoteConfig) -> Self {
        let login = config.table.host.is_some().then(|| SshEngine::new(config));
        Self { config: config.clone(), login }
    }

    /// A command of SLURM, where SLURM is.
    fn command(&self, words: &[String]) -> Command {
        let env = &self.config.table.env;
        let command = match &self.login {
            Some(login) => {
                let words = quoted_line(words);
                login.command(&format!("{}exec {words}", exports(env)))
            }
            None => {
                let command = Command::argv(words, Path::new("/"));
                env.iter().fold(command, |command, (name, value)| command.env(name, value))
            }
        };
        command.limit(LIMIT)
    }

    fn ask(&self, words: &[&str]) -> Result<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let ran = process::run(&self.command(&words), &StopFlag::new())
            .map_err(|error| error.hint(self.hint()))?;
        match ran.exit.success() {
            true => Ok(ran.stdout.text().into_owned()),
            false => Err(CommandError::environment(format!("{} failed", words[0]))
                .cause(process::excerpt(&ran))
                .hint(self.hint())),
        }
    }

    fn hint(&self) -> String {
        let name = &self.config.name;
        match &self.login {
            Some(_) => format!("\"karve remote check {name}\" says what works on the login node"),
            None => format!("set remote.{name}.host to a login node, if SLURM is not here"),
        }
    }

    /// The job as the queue knows it.
    fn job(&self, id: &str) -> Result<Option<QueuedJob>> {
        // An unknown job is an error for squeue, so all of the user's are listed.
        let listed = self.ask(&["squeue", "-h", "--me", "-o", "%i|%T|%r|%N|%L"])?;
        Ok(find_job(&listed, id))
    }

    /// Submits, and returns the job's number.
    fn submit(&self, name: &str) -> Result<String> {
        let minutes = self.config.time.as_secs().div_ceil(60).max(1);
        let mut words = vec![format!("--job-name=karve-{name}"), format!("--time={minutes}")];
        words.extend(self.config.table.args.iter().cloned());
        match self.config.table.submit {
            SlurmSubmit::Sbatch => {
                words.insert(0, "sbatch".to_owned());
                words.extend(["--parsable", "--output=/dev/null"].map(str::to_owned));
                words.push("--wrap=sleep infinity".to_owned());
                let ran = process::run(&self.command(&words), &StopFlag::new())
                    .map_err(|error| error.hint(self.hint()))?;
                let printed = ran.stdout.text();
                let id = printed.trim().split(';').next().unwrap_or_default().to_owned();
                match ran.exit.success() && is_number(&id) {
                    true => Ok(id),
                    false => Err(self.refused("sbatch", &process::excerpt(&ran))),
                }
            }
            SlurmSubmit::Salloc => {
                words.insert(0, "salloc".to_owned());
                words.push("--no-shell".to_owned());
                let (mut process, pipes) = PipedProcess::start(&self.command(&words))
                    .map_err(|error| error.hint(self.hint()))?;
                drop(pipes);
                let start = Instant::now();
                loop {
                    // It waits for the allocation; the number comes before that.
                    let ended = process.has_ended();
                    if let Some(id) = job_in(&process.said()) {
                        self.keep_waiting(process);
                        return Ok(id);
                    }
                    if ended || start.elapsed() > LIMIT {
                        process.end_within(Duration::ZERO);
                        return Err(self.refused("salloc", &process.said()));
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    /// An salloc that is ended takes its pending allocation with it, so it is let end by itself.
    fn keep_waiting(&self, mut process: PipedProcess) {
        let queue = self.config.queue;
        thread::spawn(move || process.end_within(queue));
    }

    fn refused(&self, program: &str, said: &str) -> CommandError {
        let name = &self.config.name;
        // A shell says this of a program that it does not find.
        let hint = match said.contains("command not found") {
            true => format!(
                "set remote.{name}.host to a login node of SLURM, where \"ssh HOST {program} \
                 --version\" works"
            ),
            false => {
                format!("compare remote.{name}.args with \"sinfo\" and \"{program} --help\"")
            }
        };
        CommandError::environment(format!("{program} gave no allocation"))
            .cause(said.trim())
            .hint(hint)
    }
}

impl Engine for SlurmEngine {
    fn acquire(&mut self, wait: &DeviceWait<'_>) -> Result<Allocation> {
        if let Some(job) = &self.config.table.job {
            return match self.job(job)? {
                Some(found) if found.state == "RUNNING" => {
                    Ok(Allocation { id: job.clone(), own: false })
                }
                found => {
                    let state = found.map_or("not in the queue".to_owned(), |job| job.state);
                    let name = &self.config.name;
                    let message = format!("the allocation {job} of remote.{name}.job is {state}");
                    Err(CommandError::environment(message)
                        .hint(format!("name a running job of yours in remote.{name}.job")))
                }
            };
        }
        let held = Allocation { id: self.submit(wait.name)?, own: true };
        let started = self.wait_for(&held.id, wait);
        if started.is_err() {
            let _ = self.ask(&["scancel", &held.id]);
        }
        started.map(|()| held)
    }

    fn gate(&self, _held: &Allocation, script: &str) -> Command {
        match &self.login {
            Some(login) => login.command(script),
            None => Command::argv(["/bin/sh", "-c", script], Path::new("/")),
        }
    }

    fn bring(&self, held: &Allocation) -> Vec<String> {
        let job = format!("--jobid={}", held.id);
        let words = ["srun", &job, "--overlap", "--nodes=1", "--ntasks=1", "--unbuffered"];
        let end = ["--kill-on-bad-exit=1", "--quit-on-interrupt"];
        words.iter().chain(&end).map(|word| (*word).to_owned()).collect()
    }

    fn may_drop(&self) -> bool {
        self.login.is_some()
    }

    fn time_left(&self, held: &Allocation) -> Option<Duration> {
        let job = self.job(&held.id).ok()?;
        match job {
            Some(job) if job.state == "RUNNING" => duration_of(&job.left),
            // It has ended, so nothing is left of it.
            Some(_) | None => Some(Duration::ZERO),
        }
    }

    fn will(&self, held: &Allocation) -> Option<String> {
        held.own.then(|| format!("scancel {}", held.id))
    }

    fn release(&self, held: &Allocation) -> Option<String> {
        let line = format!("{}scancel {}", exports(&self.config.table.env), held.id);
        let line = match &self.login {
            Some(login) => quoted_line(&login.words(&line)),
            None => line,
        };
        held.own.then_some(line)
    }

    fn state(&self, held: &Allocation) -> Option<String> {
        let job = self.job(&held.id).ok()?;
        let Some(job) = job else {
            let ended = self.ask(&["sacct", "-X", "-P", "-n", "-j", &held.id, "-o", "State"]);
            let ended = ended.ok().and_then(|text| text.lines().next().map(str::to_owned));
            return Some(format!(
                "the allocation {} is {}",
                held.id,
                ended.as_deref().unwrap_or("no longer in the queue")
            ));
        };
        Some(format!("the allocation {} is {} on {}", held.id, job.state, job.nodes))
    }
}

impl SlurmEngine {
    /// Waits until a job runs, and shows why it does not.
    fn wait_for(&self, id: &str, wait: &DeviceWait<'_>) -> Result<()> {
        let start = Instant::now();
        let name = &self.config.name;
        let (mut unknown, mut look) = (Duration::ZERO, LOOKS[0]);
        loop {
            let job = self.job(id)?;
            let (state, reason) = match &job {
                Some(job) => (job.state.as_str(), job.reason.as_str()),
                None => ("unknown", "None"),
            };
            match state {
                "RUNNING" => return Ok(()),
                "PENDING" | "CONFIGURING" | "REQUEUED" | "RESIZING" => unknown = Duration::ZERO,
                "unknown" if unknown < UNKNOWN_MAX => unknown += look,
                _ => {
                    let message = format!("the allocation {id} of {name} is {state} ({reason})");
                    return Err(CommandError::environment(message).hint(self.hint()));
                }
            }
            let waited = start.elapsed();
            let seconds = waited.as_secs();
            let words = format!("{name}: allocation {id} is {state} ({reason}) for {seconds} s");
            wait.notices.mention(&words);
            if wait.stop.finish_step() {
                let message = format!("stopped while allocation {id} was {state}");
                return Err(CommandError::new(ErrorKind::Interrupted, message)
                    .hint("resume with \"karve run\""));
            }
            if waited > self.config.queue {
                let message = format!("the allocation {id} of {name} is still {state} ({reason})");
                return Err(CommandError::environment(message)
                    .cause(format!("waited {seconds} s"))
                    .hint(format!(
                        "\"squeue -j {id}\" shows why; remote.{name}.queue is the limit"
                    )));
            }
            thread::sleep(look);
            look = (look * 3 / 2).min(LOOKS[1]);
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

/// The number of the job in what salloc says: `salloc: Granted job allocation 12`.
fn job_in(said: &str) -> Option<String> {
    let (_, rest) = said.split_once("job allocation ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    // The line may still be on its way.
    let whole = rest.len() > digits.len();
    (whole && is_number(&digits)).then_some(digits)
}

fn find_job(listed: &str, id: &str) -> Option<QueuedJob> {
    let mut rows = listed.lines().map(|line| line.trim().split('|').collect::<Vec<_>>());
    let row = rows.find(|row| row.len() == 5 && row[0] == id)?;
    let text = |at: usize| row[at].to_owned();
    Some(QueuedJob { state: text(1), reason: text(2), nodes: text(3), left: text(4) })
}

/// `1-02:03:04`, `02:03:04`, `03:04`; none for a job without a limit.
fn duration_of(text: &str) -> Option<Duration> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (days.parse::<u64>().ok()?, rest),
        None => (0, text),
    };
    let parts: Option<Vec<u64>> = rest.split(':').map(|part| part.parse().ok()).collect();
    let seconds =
        parts?.iter().try_fold(0_u64, |sum, part| sum.checked_mul(60)?.checked_add(*part));
    Some(Duration::from_secs(days.checked_mul(86_400)?.checked_add(seconds?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slurm_prints_is_read() {
        let pending = "salloc: Pending job allocation 31\nsalloc: job 31 queued\n";
        assert_eq!(job_in(pending).as_deref(), Some("31"));
        assert_eq!(job_in("salloc: Granted job allocation 4"), None);
        assert_eq!(job_in("salloc: error: Invalid partition"), None);
        let listed = "30|RUNNING|None|n1|5:00\n31|PENDING|Resources||1-00:00:10\n";
        let job = find_job(listed, "31").unwrap();
        assert_eq!((job.state.as_str(), job.reason.as_str()), ("PENDING", "Resources"));
        assert_eq!(duration_of(&job.left), Some(Duration::from_secs(86_410)));
        assert_eq!(duration_of("4:59"), Some(Duration::from_secs(299)));
        assert_eq!(duration_of("UNLIMITED"), None);
        assert_eq!(find_job(listed, "3"), None);
    }
}
