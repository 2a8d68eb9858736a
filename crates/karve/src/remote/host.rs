//! A device on another machine, as the steps of a campaign use it: what the far side lacks is sent,
//! the work is done there, and what came of it is brought back.

use super::engine::{DeviceWait, Engine};
use super::engines::engine_of;
use super::far_state::FarState;
pub use super::far_state::NearSide;
use super::far_state::odd;
pub use super::held::HostUser;
use super::held::{HeldDevice, TaskFailure};
use super::line::{Greeted, Heard, Line, LineParts};
use super::table::{HoldRule, RemoteConfig};
use super::wire::{FromFar, Hello, Outcome, Task, TaskEnd, ToFar, Welcome, WireMessage, Work};
use crate::ui;
use karve_core::campaign::{Event, RemoteDevice, RenewalRule};
use karve_harness::store::CampaignDir;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::StopFlag;
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for a message before the user's wishes are looked at.
const GLANCE: Duration = Duration::from_millis(50);
/// How long a lost line is tried again beyond the grace of the far side, in which work may go on.
const RECONNECT_EXTRA: Duration = Duration::from_secs(60);
/// How often a task is started again on a fresh worker.
const TRIES_MAX: u32 = 5;
/// How long the far side may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// A host with a device.
#[derive(Debug)]
pub struct RemoteHost {
    config: RemoteConfig,
    /// Which of its devices: the first measures, the others help to tune and to choose.
    number: u32,
    all: RemoteConfig,
    engine: Box<dyn Engine>,
    user: HostUser,
    held: Option<HeldDevice>,
    last: Option<(String, String)>,
    met: Option<RemoteDevice>,
    task: u64,
    /// When the current task started.
    started: Instant,
    waited: Duration,
    events: Vec<Event>,
    /// Ends the command of an agent that runs now.
    cancel: StopFlag,
}

/// What came of a task, besides what was stored.
#[derive(Debug)]
pub struct FarAnswer {
    /// The outcome.
    pub outcome: Outcome,
    /// Files for the user, with their paths there.
    pub files: Vec<(String, Vec<u8>)>,
}

impl RemoteHost {
    /// The host of a remote's first device; nothing was asked of it yet.
    pub fn new(config: RemoteConfig, user: HostUser) -> Self {
        Self::numbered(config, user, 0)
    }

    /// The hosts of its other devices.
    pub fn helpers(&self) -> Vec<Self> {
        let helper = |number: u32| {
            let user = HostUser {
                project: format!("{}-{number}", self.user.project),
                ..self.user.clone()
            };
            Self::numbered(self.all.clone(), user, number)
        };
        (1..self.all.devices()).map(helper).collect()
    }

    /// Where it is: what is there is there for every device of the same place.
    pub fn place(&self) -> [Option<String>; 3] {
        self.config.place()
    }

    /// Whether settings can be tried on several devices.
    pub fn has_helpers(&self) -> bool {
        self.all.devices() > 1
    }

    fn numbered(all: RemoteConfig, user: HostUser, number: u32) -> Self {
        let config = all.device(number);
        Self {
            engine: engine_of(&config),
            number,
            all,
            config,
            user,
            held: None,
            last: None,
            met: None,
            task: 0,
            started: Instant::now(),
            waited: Duration::ZERO,
            events: Vec::new(),
            cancel: StopFlag::new(),
        }
    }

    /// Lets something else than the user stop what is done from now on; returns what did so before.
    /// The device that measures is always waited for.
    pub fn waits_until(&mut self, over: &StopFlag) -> StopFlag {
        let before = self.user.stop.clone();
        if self.number > 0 {
            self.user.stop = over.clone();
        }
        before
    }

    /// What ends commands of an agent from now on.
    pub fn cancelled_by(&mut self, cancel: &StopFlag) {
        self.cancel = cancel.clone();
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// How long the last tasks waited for the device.
    pub fn waited(&mut self) -> Duration {
        std::mem::take(&mut self.waited)
    }

    /// What happened to the device since the last call, for the log.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Makes sure that there is a device and a line to its worker, and says who that is.
    pub fn meet(&mut self) -> Result<RemoteDevice> {
        self.connect(None)?;
        self.met.clone().ok_or_else(|| odd("it does not say who it is"))
    }

    /// The same, unless something else is over before that.
    pub fn get_ready(&mut self, near: &NearSide<'_>, over: &StopFlag) -> Result<()> {
        let before = self.waits_until(over);
        let ready = self.connect(near.dir);
        self.waits_until(&before);
        if ready.is_err() {
            self.release();
        }
        ready
    }

    /// Does some work there.
    pub fn ask(&mut self, near: &NearSide<'_>, work: &Work) -> Result<FarAnswer> {
        self.renew(near.dir)?;
        self.task += 1;
        let mut tries = 0;
        let (end, attached) = loop {
            tries += 1;
            match self.attempt(near, work) {
                Ok(end) => break end,
                Err(TaskFailure::Error(error)) => return Err(error),
                Err(TaskFailure::Lost(why) | TaskFailure::Again(why)) if tries >= TRIES_MAX => {
                    return Err(self.lost(&why));
                }
                Err(TaskFailure::Again(why)) => self.start_again(&why),
                Err(TaskFailure::Lost(why)) => {
                    // Nothing of this device can be relied on any more.
                    self.drop_lost();
                    self.start_again(&why);
                }
            }
        };
        let waited = Duration::from_millis(end.waited_ms);
        self.waited += waited;
        if let Some(held) = &mut self.held {
            held.busy += self.started.elapsed().saturating_sub(waited);
        }
        let name = self.config.name.clone();
        let files = near.store(&end, attached)?;
        if let Some(held) = &mut self.held {
            held.far.made(&end, near);
        }
        let outcome = end.outcome.map_err(|error| error.on(&name))?;
        if self.config.table.hold == HoldRule::Block {
            self.release();
        }
        Ok(FarAnswer { outcome, files })
    }

    fn attempt(
        &mut self,
        near: &NearSide<'_>,
        work: &Work,
    ) -> Result<(TaskEnd, Vec<Vec<u8>>), TaskFailure> {
        self.connect(near.dir)?;
        let Some(held) = &mut self.held else {
            return Err(TaskFailure::Lost("there is no device".to_owned()));
        };
        self.started = Instant::now();
        let (sync, attached) = held.far.lacks(near)?;
        let task = Task { id: self.task, sync, work: work.clone() };
        let sync = task.sync.clone();
        let message = WireMessage { body: ToFar::Task(Box::new(task)), attached };
        let instance = held.far.instance.clone();
        if let Err(why) = self.say(&message) {
            // It was lost between two tasks.
            self.find_again(&instance, &why, near.dir)?;
        }
        let end = self.wait(&instance, near.dir)?;
        if let Some(held) = &mut self.held {
            held.far.got(&sync, near);
        }
        Ok(end)
    }

    fn say(&mut self, message: &WireMessage<ToFar>) -> Result<(), String> {
        let line = self.held.as_mut().and_then(|held| held.line.as_mut());
        let line = line.ok_or_else(|| "there is no line".to_owned())?;
        line.say(message).map_err(|error| error.to_string())
    }

    /// Waits for the end of the current task, across lost lines.
    fn wait(
        &mut self,
        instance: &str,
        dir: Option<&CampaignDir>,
    ) -> Result<(TaskEnd, Vec<Vec<u8>>), TaskFailure> {
        let mut stopping: Option<Instant> = None;
        let mut is_cancelled = false;
        loop {
            if !is_cancelled && self.cancel.at_once() {
                is_cancelled = true;
                let _ = self.say(&ToFar::Cancel.into());
            }
            if self.user.stop.at_once() {
                let since = *stopping.get_or_insert_with(Instant::now);
                if since.elapsed() < GLANCE {
                    let _ = self.say(&ToFar::Stop.into());
                }
                if since.elapsed() > STOP_LIMIT {
                    return Err(TaskFailure::Error(interrupted()));
                }
            }
            let line = self.held.as_mut().and_then(|held| held.line.as_mut());
            let Some(line) = line else {
                return Err(TaskFailure::Lost("the line was closed".to_owned()));
            };
            match line.hear(GLANCE) {
                Heard::Nothing => {}
                Heard::Message(message) => match message.body {
                    FromFar::End(end) if end.id == self.task => {
                        return Ok((*end, message.attached));
                    }
                    FromFar::Unknown { id } if id == self.task => {
                        return Err(TaskFailure::Again(
                            "the worker does not know the task".to_owned(),
                        ));
                    }
                    FromFar::Notice { lasting, text } => self.pass_on(lasting, &text),
                    FromFar::Output { stderr } => {
                        let pass = if stderr { ui::pass_on_errors } else { ui::pass_on_output };
                        message.attached.iter().for_each(|bytes| pass(bytes));
                    }
                    FromFar::Welcome(_) | FromFar::Refused { .. } | FromFar::Beat => {}
                    FromFar::End(_) | FromFar::Unknown { .. } => {}
                },
                Heard::Lost(why) if stopping.is_some() => {
                    return Err(TaskFailure::Error(interrupted().cause(why)));
                }
                Heard::Lost(why) => self.find_again(instance, &why, dir)?,
            }
        }
    }

    fn pass_on(&self, lasting: bool, text: &str) {
        // What comes from another machine must not control this terminal.
        let text: String = text.chars().filter(|c| !c.is_control()).take(400).collect();
        let text = format!("{}: {text}", self.config.name);
        match lasting {
            true => self.user.notices.notify(&text),
            false => self.user.notices.mention(&text),
        }
    }

    /// Opens the line to the same worker again, which has worked on meanwhile.
    fn find_again(
        &mut self,
        instance: &str,
        why: &str,
        dir: Option<&CampaignDir>,
    ) -> Result<(), TaskFailure> {
        if !self.engine.may_drop() {
            return Err(TaskFailure::Lost(why.to_owned()));
        }
        let until = Instant::now() + self.config.grace + RECONNECT_EXTRA;
        let mut pause = Duration::from_millis(200);
        loop {
            let words = format!("{}: the line was lost ({why}); trying again", self.config.name);
            self.user.notices.mention(&words);
            if let Some(held) = &mut self.held {
                held.line = None;
            }
            match self.connect(dir) {
                Ok(()) => break,
                Err(error) if error.kind == ErrorKind::Interrupted => return Err(error.into()),
                Err(error) if Instant::now() > until => {
                    let hint = "when it is back, resume with \"karve run\": nothing is lost";
                    return Err(TaskFailure::Error(error.cause(why).hint(hint)));
                }
                Err(_) => {}
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(10));
            if self.user.stop.finish_step() {
                return Err(TaskFailure::Error(interrupted()));
            }
        }
        let is_same = self.held.as_ref().is_some_and(|held| held.far.instance == instance);
        if !is_same {
            return Err(TaskFailure::Again(why.to_owned()));
        }
        self.say(&ToFar::Resume { id: self.task }.into()).map_err(TaskFailure::Lost)
    }

    /// Makes sure that there is a device and a line to its worker.
    fn connect(&mut self, dir: Option<&CampaignDir>) -> Result<()> {
        if self.held.is_none() {
            self.acquire()?;
        }
        let Some(held) = &mut self.held else {
            return Ok(());
        };
        if held.line.is_some() {
            return Ok(());
        }
        let session = match &self.user.campaign {
            Some(campaign) => format!("{}-{campaign}", self.user.project),
            None => format!("{}-{}", self.user.project, std::process::id()),
        };
        let parts = LineParts {
            config: &self.config,
            engine: self.engine.as_ref(),
            held: &held.allocation,
            session: &session,
        };
        let mut line = parts.open(&self.user.stop)?;
        let hello = Hello {
            project: self.user.project.clone(),
            campaign: self.user.campaign.clone(),
            patience_s: self.user.patience_s,
            instance: held.far.instance.clone(),
            will: self.engine.will(&held.allocation),
        };
        let welcome = line.greet(&hello, &self.user.stop).map_err(|greeted| {
            let name = &self.config.name;
            match greeted {
                Greeted::Refused(error) => error.on(name),
                Greeted::Silent(why) => {
                    CommandError::environment(format!("{name} does not answer"))
                        .cause(why)
                        .hint(format!("\"karve remote check {name}\" tries each part of the way"))
                }
            }
        })?;
        held.line = Some(line);
        if held.far.instance == welcome.instance {
            return Ok(());
        }
        held.far = FarState::of(&welcome, dir);
        self.note_device(&welcome);
        Ok(())
    }

    fn acquire(&mut self) -> Result<()> {
        let user = &self.user;
        let name = match &user.campaign {
            Some(campaign) => format!("{}-{campaign}", &user.project[..8]),
            None => user.project[..8].to_owned(),
        };
        let wait = DeviceWait { name: &name, notices: &user.notices, stop: &user.stop };
        let start = Instant::now();
        let allocation = self.engine.acquire(&wait)?;
        self.waited += start.elapsed();
        self.held = Some(HeldDevice::new(allocation, self.engine.as_ref())?);
        Ok(())
    }

    /// Notes for the log where the campaign is measured from now on.
    fn note_device(&mut self, welcome: &Welcome) {
        let Some(held) = &self.held else {
            return;
        };
        let now = (welcome.host.clone(), held.allocation.id.clone());
        if self.last.as_ref() == Some(&now) {
            return;
        }
        let device = RemoteDevice {
            remote: self.config.name.clone(),
            host: now.0.clone(),
            allocation: Some(now.1.clone()).filter(|id| !id.is_empty()),
            sandbox: welcome.sandbox.clone(),
            price_per_hour: self.config.table.price_per_hour,
        };
        let is_held_on = self.config.table.hold == HoldRule::Campaign;
        let replaces = self.met.replace(device.clone()).is_some() && is_held_on;
        if self.number == 0 {
            self.events.push(Event::DeviceAcquired { device: Box::new(device), replaces });
        }
        self.last = Some(now);
    }

    /// Gets another allocation if this one is about to end. Between two steps the log then has it
    /// before the next one is due.
    pub fn renew(&mut self, dir: Option<&CampaignDir>) -> Result<()> {
        let Some(held) = &mut self.held else {
            return Ok(());
        };
        let rule = RenewalRule::of(self.config.time);
        if held.asked_left.elapsed() < rule.every {
            return Ok(());
        }
        held.asked_left = Instant::now();
        if !rule.is_due(self.engine.time_left(&held.allocation)) {
            return Ok(());
        }
        let words = format!("{}: the allocation ends soon; asking for another", self.config.name);
        self.user.notices.notify(&words);
        self.release();
        self.connect(dir)
    }

    /// Gives the device back, if it is held.
    pub fn release(&mut self) {
        self.end_line(Line::close);
    }

    /// The worker or the node is gone: what is left is given back, and not waited for.
    fn drop_lost(&mut self) {
        self.end_line(drop);
    }

    fn end_line(&mut self, end: impl FnOnce(Line)) {
        if let Some(mut held) = self.held.take() {
            held.line.take().map(end);
            held.give_back();
            self.note_release(&held);
        }
    }

    fn note_release(&mut self, held: &HeldDevice) {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (held_ms, busy_ms) = (ms(held.since.elapsed()), ms(held.busy));
        let Some((_, device)) = self.last.take().zip(self.met.clone()) else {
            return;
        };
        self.events.push(match self.number {
            0 => Event::DeviceReleased { held_ms, busy_ms },
            _ => Event::DeviceHelped { device: Box::new(device), held_ms, busy_ms },
        });
    }

    /// Gives the device back while an agent thinks, if the remote says so.
    pub fn rest(&mut self) {
        if self.config.table.hold != HoldRule::Campaign {
            self.release();
        }
    }

    fn start_again(&self, why: &str) {
        let words = format!("{}: lost ({why}); this step starts again", self.config.name);
        self.user.notices.notify(&words);
    }

    fn lost(&self, why: &str) -> CommandError {
        let name = &self.config.name;
        CommandError::environment(format!("{name} was lost {TRIES_MAX} times in one step"))
            .cause(why)
            .hint(format!("\"karve remote check {name}\" tries each part of the way"))
            .hint("resume with \"karve run\": nothing is lost")
    }
}

impl Drop for RemoteHost {
    fn drop(&mut self) {
        self.release();
    }
}

fn interrupted() -> CommandError {
    CommandError::new(ErrorKind::Interrupted, "stopped immediately")
        .hint("resume with \"karve run\"")
}
