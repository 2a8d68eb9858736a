//! The server: on loopback only, for browsers that know the token, and read-only unless the user
//! allows more.

use super::admission::{AccessToken, Admission};
use super::campaigns::CampaignWatch;
use super::connections::BoundedListener;
use super::form::form_value;
use super::pages::PageActions;
use super::{assets, compare, guard, live, pages};
use crate::{config, inbox, project};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path as UrlPath, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use karve_harness::commands::BUILD_OUTPUT;
use karve_harness::git::Repo;
use karve_harness::store::{self, CampaignDir};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::sync::locked;
use karve_os::{clock, files, text};
use minijinja::{Value, context};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio_stream::Stream;

/// How often logs are looked at for a page that is open.
const PACE: Duration = Duration::from_millis(250);
/// How long a page is the same for all who ask for it in the same state of a campaign.
const PAGE_AGE: Duration = Duration::from_secs(1);
/// Open pages that are updated at the same time.
const STREAMS_MAX: usize = 64;
/// Bytes of a form.
const FORM_BYTES_MAX: usize = 64 << 10;
/// Campaigns that a page offers for comparison, the newest.
const OTHERS_MAX: usize = 20;
/// Campaigns that are listed, the newest.
const CAMPAIGNS_MAX: usize = 500;

/// What a page may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actions {
    /// Show.
    ReadOnly,
    /// Also answer questions and stop a campaign.
    Allowed,
}

/// The page of a campaign that was rendered last: at each change, all that are open ask for it.
struct RenderedPage {
    /// What the page depends on.
    state: String,
    at: Instant,
    html: String,
}

struct Hub {
    root: PathBuf,
    repo: Option<Repo>,
    access: AccessToken,
    actions: Actions,
    /// Whether campaigns belong to the project, which takes a while to find out.
    members: Mutex<BTreeMap<String, bool>>,
    watches: Mutex<BTreeMap<String, Arc<Mutex<CampaignWatch>>>>,
    streams: Arc<tokio::sync::Semaphore>,
    rendered: Mutex<Option<RenderedPage>>,
}

type Shared = State<Arc<Hub>>;

/// Serves the campaigns under a root until the process ends.
pub async fn serve(
    (root, repo): (PathBuf, Option<Repo>),
    listener: TcpListener,
    (token, actions): (String, Actions),
) -> Result<()> {
    let hub = Arc::new(Hub {
        root,
        repo,
        access: AccessToken::new(token),
        actions,
        members: Mutex::default(),
        watches: Mutex::default(),
        streams: Arc::new(tokio::sync::Semaphore::new(STREAMS_MAX)),
        rendered: Mutex::default(),
    });
    let app = Router::new()
        .route("/", get(overview))
        .route("/events", get(overview_events))
        .route("/c/{name}", get(campaign))
        .route("/c/{name}/payload.json", get(payload))
        .route("/c/{name}/events", get(events))
        .route("/c/{name}/with/{other}", get(together))
        .route("/c/{name}/round/{number}", get(round))
        .route("/c/{name}/round/{number}/payload.json", get(round_payload))
        .route("/c/{name}/answer", post(answer))
        .route("/c/{name}/stop", post(stop))
        .route("/assets/page.css", get(css))
        .route("/assets/page.js", get(script))
        .fallback(|| async { refusal(StatusCode::NOT_FOUND, "there is no such page") })
        .layer(middleware::from_fn_with_state(Arc::clone(&hub), guarded))
        .layer(axum::extract::DefaultBodyLimit::max(FORM_BYTES_MAX))
        .with_state(hub);
    let listener = BoundedListener::new(listener);
    axum::serve(listener, app).await.context(|| "the server stopped".to_owned())
}

fn refusal(status: StatusCode, why: &str) -> Response {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{why}\n")).into_response()
}

fn html(page: String) -> Response {
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}

fn json(value: &serde_json::Value) -> Response {
    // No tag can begin in it, whatever a browser takes it for.
    let text = value.to_string().replace('<', "\\u003c");
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

fn failed(error: &CommandError) -> Response {
    let status = match error.kind {
        ErrorKind::Usage => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    refusal(status, &told(error))
}

/// An error with its cause and its hints, on one line.
fn told(error: &CommandError) -> String {
    text::safe(&error.to_string(), 1_000)
}

/// Every request: from this host, by a page of this server, with the token.
async fn guarded(State(hub): Shared, request: Request, next: Next) -> Response {
    let mut response = match hub.access.admission(&request) {
        Admission::Granted => next.run(request).await,
        Admission::WithToken { port } => hub.access.welcome(request.uri().path(), port),
        Admission::Refused(status, why) => refusal(status, why),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, assets::SERVER_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With less, browsers do not say that a form is of this page.
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

impl Hub {
    /// The campaigns of the project, the newest first.
    fn dirs(&self) -> Result<Vec<CampaignDir>> {
        let mut dirs = store::list(&self.root)?;
        dirs.reverse();
        dirs.retain(|dir| self.has(dir));
        dirs.truncate(CAMPAIGNS_MAX);
        Ok(dirs)
    }

    /// Whether a campaign is one of the project, and has begun.
    fn has(&self, dir: &CampaignDir) -> bool {
        let mut members = locked(&self.members);
        if let Some(known) = members.get(&dir.name()) {
            return *known && dir.exists();
        }
        let is_begun = store::has_records(dir);
        let is_one = is_begun && project::is_of(dir, self.repo.as_ref());
        // Before its base is in the log, a campaign could be anybody's.
        if is_begun && store::base_of(dir).is_some() {
            members.insert(dir.name(), is_one);
        }
        is_one
    }

    /// The watch of a campaign, up to date; none if there is no such campaign. Only names that a
    /// campaign can have are looked for, so that none leads out of the root.
    fn watch(&self, name: &str) -> Result<Option<Arc<Mutex<CampaignWatch>>>> {
        let dir = CampaignDir::new(&self.root, name);
        if config::campaign_name(name).is_err() || !self.has(&dir) {
            return Ok(None);
        }
        let known = locked(&self.watches).get(name).cloned();
        let watch = match known {
            Some(watch) => watch,
            None => {
                let watch = Arc::new(Mutex::new(CampaignWatch::open(dir)?));
                locked(&self.watches).insert(name.to_owned(), Arc::clone(&watch));
                watch
            }
        };
        locked(&watch).refresh()?;
        Ok(Some(watch))
    }

    /// The page that was just rendered for this state.
    fn rendered(&self, state: &str) -> Option<String> {
        let rendered = locked(&self.rendered);
        let page = rendered.as_ref()?;
        (page.state == state && page.at.elapsed() < PAGE_AGE).then(|| page.html.clone())
    }
}

/// Runs what reads files and renders where it may take its time.
async fn in_background(
    work: impl FnOnce() -> Result<Option<Response>> + Send + 'static,
) -> Response {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(Some(response))) => response,
        Ok(Ok(None)) => refusal(StatusCode::NOT_FOUND, "there is no such campaign or round"),
        Ok(Err(error)) => failed(&error),
        Err(_) => refusal(StatusCode::INTERNAL_SERVER_ERROR, "the page could not be made"),
    }
}

async fn overview(State(hub): Shared) -> Response {
    in_background(move || {
        let (mut rows, mut notes) = (Vec::new(), Vec::new());
        for dir in hub.dirs()? {
            match hub.watch(&dir.name()) {
                Ok(Some(watch)) => rows.push(row(&locked(&watch))),
                Ok(None) => {}
                Err(error) => notes.push(format!("{}: {}", dir.name(), told(&error))),
            }
        }
        pages::overview(&rows, &notes).map(|page| Some(html(page)))
    })
    .await
}

fn row(watch: &CampaignWatch) -> Value {
    let view = watch.campaign().view();
    let state = match (watch.campaign().is_finished(), live::is_running(watch.dir())) {
        (true, _) => "finished",
        (false, true) => "running",
        (false, false) => "paused",
    };
    let op = watch.campaign().charter().map(|charter| text::safe(&charter.target.op, 60));
    let ends = view.headline.and_then(|headline| Some((headline.low?, headline.high?)));
    let interval = ends.map(|(low, high)| format!("[{low:.3}, {high:.3}]"));
    context! {
        name => watch.dir().name(),
        op,
        state,
        rounds => view.rounds_done,
        kept => view.kept,
        gain => view.gain(),
        over => view.headline_over.as_ref().map(|name| format!("over {name}")),
        interval => interval.or(view.speedup_note).unwrap_or_default(),
        trust => view.self_reported.is_some().then_some("self-reported"),
        spent_s => view.spent_s,
        last => clock::utc_minute(watch.payload().to_ms),
    }
}

async fn campaign(State(hub): Shared, UrlPath(name): UrlPath<String>) -> Response {
    in_background(move || {
        // From before the log is read, so that a page is never older than its state.
        let state = fingerprint(&hub, Some(&name));
        let Some(watch) = hub.watch(&name)? else {
            return Ok(None);
        };
        let watch = locked(&watch);
        let live = live::view(&watch);
        let state = format!("{name} {state} {live:?}");
        if let Some(page) = hub.rendered(&state) {
            return Ok(Some(html(page)));
        }
        let actions = match hub.actions {
            Actions::Allowed => PageActions::Yes,
            Actions::ReadOnly => PageActions::No,
        };
        let others = hub.dirs()?.into_iter().map(|dir| dir.name()).filter(|other| *other != name);
        let others: Vec<String> = others.take(OTHERS_MAX).collect();
        let page = pages::campaign(&watch, live.as_ref(), actions, &others)?;
        let rendered = RenderedPage { state, at: Instant::now(), html: page.clone() };
        *locked(&hub.rendered) = Some(rendered);
        Ok(Some(html(page)))
    })
    .await
}

/// Two campaigns side by side.
async fn together(
    State(hub): Shared,
    UrlPath((name, other)): UrlPath<(String, String)>,
) -> Response {
    in_background(move || {
        let mut sides = Vec::new();
        for name in [&name, &other] {
            let Some(watch) = hub.watch(name)? else {
                return Ok(None);
            };
            // One at a time, so that no two requests wait for each other.
            let side = compare::side(&locked(&watch));
            sides.push(side);
        }
        compare::page(&sides).map(|page| Some(html(page)))
    })
    .await
}

async fn round(State(hub): Shared, UrlPath((name, number)): UrlPath<(String, u32)>) -> Response {
    in_background(move || {
        let Some(watch) = hub.watch(&name)? else {
            return Ok(None);
        };
        Ok(pages::round(&locked(&watch), number)?.map(html))
    })
    .await
}

async fn payload(State(hub): Shared, UrlPath(name): UrlPath<String>) -> Response {
    in_background(move || {
        let Some(watch) = hub.watch(&name)? else {
            return Ok(None);
        };
        let watch = locked(&watch);
        Ok(Some(json(&guard::cleaned(&watch.payload()))))
    })
    .await
}

async fn round_payload(
    State(hub): Shared,
    UrlPath((name, number)): UrlPath<(String, u32)>,
) -> Response {
    in_background(move || {
        let Some(watch) = hub.watch(&name)? else {
            return Ok(None);
        };
        let watch = locked(&watch);
        let shown = watch.round(number);
        Ok(shown.map(|shown| json(&guard::cleaned(&shown))))
    })
    .await
}

/// A stream that says when a page should be loaded again.
async fn events(State(hub): Shared, UrlPath(name): UrlPath<String>) -> Response {
    let (looked, wanted) = (Arc::clone(&hub), name.clone());
    let found = tokio::task::spawn_blocking(move || looked.watch(&wanted)).await;
    match found {
        Ok(Ok(Some(_))) => stream(hub, Some(name)),
        _ => refusal(StatusCode::NOT_FOUND, "there is no such campaign"),
    }
}

async fn overview_events(State(hub): Shared) -> Response {
    stream(hub, None)
}

fn stream(hub: Arc<Hub>, name: Option<String>) -> Response {
    let Ok(place) = Arc::clone(&hub.streams).try_acquire_owned() else {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open");
    };
    let changes = changes(hub, name, place);
    Sse::new(changes).keep_alive(KeepAlive::default()).into_response()
}

type SseResult = std::result::Result<SseEvent, Infallible>;

/// An event whenever the state of one campaign, or of any, has changed.
fn changes(
    hub: Arc<Hub>,
    name: Option<String>,
    place: tokio::sync::OwnedSemaphorePermit,
) -> impl Stream<Item = SseResult> {
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    tokio::spawn(async move {
        let _place = place;
        let mut last = None;
        loop {
            let (hub, name) = (Arc::clone(&hub), name.clone());
            let state = tokio::task::spawn_blocking(move || fingerprint(&hub, name.as_deref()));
            let state = state.await.unwrap_or_default();
            // The first one too: the page may be older than its stream.
            if last.as_ref() != Some(&state)
                && sender.send(Ok(SseEvent::default().event("changed").data(&state))).await.is_err()
            {
                return;
            }
            if sender.is_closed() {
                return;
            }
            last = Some(state);
            tokio::time::sleep(PACE).await;
        }
    });
    tokio_stream::wrappers::ReceiverStream::new(receiver)
}

/// What changes when a page would: the logs, by size and time, and what runs.
fn fingerprint(hub: &Hub, name: Option<&str>) -> String {
    let of = |dir: &CampaignDir| {
        let size = |path: PathBuf| std::fs::metadata(path).map_or(0, |meta| meta.len());
        let written = std::fs::metadata(dir.log()).and_then(|meta| meta.modified());
        let written = written.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let written = written.map_or(0, |at| at.as_nanos());
        let note = files::read(&dir.join(live::LIVE), 16 << 10).unwrap_or_default();
        let note = files::sha256_hex(&note);
        let output = size(dir.join(BUILD_OUTPUT));
        format!("{}-{written}-{output}-{}", size(dir.log()), &note[..8])
    };
    match name {
        Some(name) if config::campaign_name(name).is_err() => String::new(),
        Some(name) => of(&CampaignDir::new(&hub.root, name)),
        None => hub.dirs().unwrap_or_default().iter().map(of).collect::<Vec<_>>().join(" "),
    }
}

async fn answer(State(hub): Shared, UrlPath(name): UrlPath<String>, body: String) -> Response {
    act(hub, name, move |watch| {
        let given = form_value(&body, "text").unwrap_or_default();
        inbox::put_answer(watch.dir(), watch.campaign(), &given)
    })
    .await
}

async fn stop(State(hub): Shared, UrlPath(name): UrlPath<String>) -> Response {
    act(hub, name, |watch| inbox::ask_to_stop(watch.dir(), watch.campaign())).await
}

async fn act(
    hub: Arc<Hub>,
    name: String,
    action: impl FnOnce(&CampaignWatch) -> Result<()> + Send + 'static,
) -> Response {
    if hub.actions == Actions::ReadOnly {
        let why = "this server only shows: start it with \"karve serve --allow-actions\"";
        return refusal(StatusCode::FORBIDDEN, why);
    }
    in_background(move || {
        let Some(watch) = hub.watch(&name)? else {
            return Ok(None);
        };
        action(&locked(&watch))?;
        let to = [(LOCATION, format!("/c/{name}"))];
        Ok(Some((StatusCode::SEE_OTHER, to).into_response()))
    })
    .await
}

async fn css() -> Response {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], Body::from(assets::CSS.as_str())).into_response()
}

async fn script() -> Response {
    let kind = [(CONTENT_TYPE, "text/javascript; charset=utf-8")];
    (kind, Body::from(assets::SCRIPT.as_str())).into_response()
}
