//! THE LOOP: the campaign requests a step, `steps` performs it, the store makes it durable, and the
//! campaign applies it.
//!
//! Read this file first. `Campaign` (in karve-core) decides and touches nothing; `steps`
//! does one step and decides nothing; `Store` writes the log. A campaign may die between any two
//! lines here, and the next `karve run` resumes it: every step may be repeated.

use crate::publish::Publisher;
use crate::steps::{self, Context};
use crate::ui::Screen;
use karve_core::campaign::{Campaign, Event, Record};
use karve_harness::store::Store;
use karve_os::clock;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::StopFlag;
use std::time::Instant;

/// How a drive ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveEnd {
    /// The campaign is finished.
    Finished,
    /// The user asked to stop; the next run resumes here.
    Paused,
    /// Waiting for an answer from an external agent.
    Waiting,
}

/// Everything that makes up a running campaign.
#[derive(Debug)]
pub struct CampaignSession {
    /// What decides.
    pub campaign: Campaign,
    /// What the steps work with.
    pub context: Context,
    /// What remembers.
    pub store: Store,
    /// What writes the derived files.
    pub publisher: Publisher,
    /// What the user asked for with Ctrl-C.
    pub stop: StopFlag,
}

/// Runs a campaign until it is finished or the user stops it.
pub fn drive(session: &mut CampaignSession, screen: &mut dyn Screen) -> Result<DriveEnd> {
    loop {
        if session.campaign.is_finished() {
            return Ok(DriveEnd::Finished);
        }
        if session.stop.finish_step() {
            return Ok(DriveEnd::Paused);
        }
        for news in steps::news(&mut session.context, &session.campaign)? {
            take(session, screen, news, 0)?;
        }
        // Only now, because the brief of the step contains the news.
        let Some(step) = session.campaign.next_step() else {
            return Ok(DriveEnd::Finished);
        };
        if steps::waits_for_answer(&session.context, &step, &session.campaign)? {
            return Ok(DriveEnd::Waiting);
        }
        screen.starts(&session.campaign, &step);
        let start = Instant::now();
        let performed = steps::perform(&mut session.context, &step, &session.campaign);
        if session.stop.at_once() {
            // An interrupted step has no valid result or error; it will be repeated.
            return Err(CommandError::new(ErrorKind::Interrupted, "stopped immediately")
                .hint("resume with \"karve run\""));
        }
        let spent = start.elapsed().saturating_sub(session.context.waited());
        let spent_ms = u64::try_from(spent.as_millis()).unwrap_or(u64::MAX);
        // A full disk explains more than the errors it causes.
        session.context.check_disk_space()?;
        let event = performed?;
        take(session, screen, event, spent_ms)?;
    }
}

/// An event is made durable first, then applied, then shown.
pub fn take(
    session: &mut CampaignSession,
    screen: &mut dyn Screen,
    event: Event,
    spent_ms: u64,
) -> Result<Record> {
    let by = steps::asked_agent(&session.context, &session.campaign, &event);
    let record = session.store.append(event, by, clock::now_ms(), spent_ms)?;
    session.campaign.record(&record).map_err(|error| {
        CommandError::new(ErrorKind::Bug, "the campaign rejects its own event").cause(error)
    })?;
    let repo = &session.context.repos.work;
    session.publisher.publish(repo, &session.campaign, &record)?;
    screen.saw(&session.campaign, &record);
    Ok(record)
}
