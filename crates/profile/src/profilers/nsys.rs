//! The SQLite export of Nsight Systems: launches, copies and calls, joined with their names.
//!
//! The file is untrusted: it is opened read-only, its schema may not run code, and a handler
//! aborts a query that takes too long.

use super::gather::ProfileNotes;
use super::timeline::{TimeSpan, TimelineRecorder};
use super::{ParsedProfile, ProfileParseError};
use karve_core::profile::{KernelProfile, ProfileSource};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Row};
use std::path::Path;

const TOOL: &str = "nsys";
/// Instructions of SQLite's virtual machine between two calls of the progress handler.
const STEP: i32 = 100_000;
/// The most calls of the handler: about two billion instructions.
const STEPS_MAX: u32 = 20_000;

/// Copies from the host (1) and to the host (2).
const COPIES: &str =
    "SELECT start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind IN (1, 2) ORDER BY rowid";
const CALLS: &str = "SELECT call.start, call.end, text.value \
     FROM CUPTI_ACTIVITY_KIND_RUNTIME AS call \
     JOIN StringIds AS text ON text.id = call.nameId ORDER BY call.rowid";
const KERNELS: &str = "SELECT run.start, run.end, text.value, run.rowid, \
     run.registersPerThread, run.staticSharedMemory, run.dynamicSharedMemory, \
     run.gridX, run.gridY, run.gridZ, run.blockX, run.blockY, run.blockZ \
     FROM CUPTI_ACTIVITY_KIND_KERNEL AS run \
     JOIN StringIds AS text ON text.id = run.demangledName ORDER BY run.rowid";

/// Reads an exported file.
pub fn read(path: &Path) -> Result<ParsedProfile, ProfileParseError> {
    let file = open(path).map_err(|e| wrong("the file", &e))?;
    let mut recorder: TimelineRecorder<NsysLaunch> = TimelineRecorder::new(TOOL);
    let mut notes = ProfileNotes::default();
    let n = rows(&file, KERNELS, |row| take_kernel(&mut recorder, row))?;
    let all = count(&file, "CUPTI_ACTIVITY_KIND_KERNEL")?;
    if all != n {
        let reason = format!("only {n} of {all} launches have a name");
        return Err(ProfileParseError::at(1, reason));
    }
    for (table, query) in
        [("CUPTI_ACTIVITY_KIND_MEMCPY", COPIES), ("CUPTI_ACTIVITY_KIND_RUNTIME", CALLS)]
    {
        // A program that copies nothing has no such table.
        if !has(&file, table)? {
            notes.add(format!("there is no table {table}"));
            continue;
        }
        rows(&file, query, |row| {
            let span = span(row)?;
            match table {
                "CUPTI_ACTIVITY_KIND_MEMCPY" => recorder.copy(span),
                _ => recorder.call(&text(row, 2)?, span),
            }
        })?;
    }
    recorder.parsed(notes, 1, NsysLaunch::launch_profile)
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut file = Connection::open_with_flags(path, flags)?;
    file.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    file.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    file.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    file.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    file.pragma_update(None, "cell_size_check", true)?;
    file.pragma_update(None, "mmap_size", 0)?;
    let mut steps = 0;
    let too_long = move || {
        steps += 1;
        steps > STEPS_MAX
    };
    file.progress_handler(STEP, Some(too_long))?;
    Ok(file)
}

fn wrong(what: &str, e: &rusqlite::Error) -> ProfileParseError {
    ProfileParseError::at(1, format!("{what} is not an nsys export: {e}"))
}

/// Whether there is a table of that name that is not a view.
fn has(file: &Connection, table: &str) -> Result<bool, ProfileParseError> {
    let query = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    let n = file.query_row(query, [table], |row| row.get::<_, i64>(0));
    n.map(|n| n == 1).map_err(|e| wrong("the schema", &e))
}

fn count(file: &Connection, table: &str) -> Result<usize, ProfileParseError> {
    let query = format!("SELECT count(*) FROM {table}");
    let n = file.query_row(&query, [], |row| row.get::<_, i64>(0));
    let n = n.map_err(|e| wrong(table, &e))?;
    Ok(usize::try_from(n).unwrap_or(usize::MAX))
}

/// Handles all rows of a query, and counts them.
fn rows(
    file: &Connection,
    query: &str,
    mut take: impl FnMut(&Row<'_>) -> Result<(), ProfileParseError>,
) -> Result<usize, ProfileParseError> {
    let mut query = file.prepare(query).map_err(|e| wrong("a table", &e))?;
    let mut rows = query.query([]).map_err(|e| wrong("a table", &e))?;
    let mut n = 0;
    while let Some(row) = rows.next().map_err(|e| wrong("a table", &e))? {
        take(row)?;
        n += 1;
    }
    Ok(n)
}

fn whole(row: &Row<'_>, at: usize) -> Result<u64, ProfileParseError> {
    let value = row.get::<_, i64>(at).map_err(|e| wrong("a row", &e))?;
    u64::try_from(value).map_err(|_| ProfileParseError::at(1, format!("{value} is negative")))
}

fn text(row: &Row<'_>, at: usize) -> Result<String, ProfileParseError> {
    row.get(at).map_err(|e| wrong("a name", &e))
}

fn span(row: &Row<'_>) -> Result<TimeSpan, ProfileParseError> {
    TimeSpan::between(whole(row, 0)?, whole(row, 1)?).map_err(|e| ProfileParseError::at(1, e))
}

/// A launch: its row, when it ran, and how.
struct NsysLaunch {
    id: u64,
    start: u64,
    end: u64,
    values: [u32; 9],
}

impl NsysLaunch {
    fn launch_profile(&self) -> (ProfileSource, KernelProfile) {
        let id = self.id;
        let said = |what: String| {
            let quote = format!("CUPTI_ACTIVITY_KIND_KERNEL row {id}: {what}");
            ProfileSource::at(TOOL, 0, &quote)
        };
        let [registers, fixed, dynamic, gx, gy, gz, bx, by, bz] = self.values.map(f64::from);
        let mut profile = KernelProfile::default();
        let counters = [
            ("registers", "registersPerThread", registers),
            ("shared_bytes", "static and dynamic shared memory", fixed + dynamic),
            ("blocks", "grid", gx * gy * gz),
            ("threads_per_block", "block", bx * by * bz),
        ];
        for (counter, name, value) in counters {
            profile.set(counter, value, said(format!("{name} {value}")));
        }
        let (start, end) = (self.start, self.end);
        (said(format!("end {end} - start {start}")), profile)
    }
}

fn take_kernel(
    recorder: &mut TimelineRecorder<NsysLaunch>,
    row: &Row<'_>,
) -> Result<(), ProfileParseError> {
    let (start, end, id) = (whole(row, 0)?, whole(row, 1)?, whole(row, 3)?);
    let mut values = [0_u32; 9];
    for (value, at) in values.iter_mut().zip(4..) {
        let n = whole(row, at)?;
        let too_large =
            |_| ProfileParseError::at(1, format!("row {id} has {n}, which is too large"));
        *value = u32::try_from(n).map_err(too_large)?;
    }
    let detail = NsysLaunch { id, start, end, values };
    recorder.kernel(&text(row, 2)?, span(row)?, 0, detail)
}
