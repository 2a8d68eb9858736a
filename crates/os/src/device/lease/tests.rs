//! Leases in their own directory; tests with several processes are in `tests/device.rs`.

use super::*;
use std::os::unix::fs::symlink;
use std::sync::Mutex;

fn home(dir: &Path) -> LeaseDir {
    LeaseDir { dir: dir.join("leases"), shared: false }
}

fn now(home: &LeaseDir, device: &str) -> Result<(Lease, Duration)> {
    let wish = LeaseRequest { device, holder: "me", limit: Duration::ZERO };
    home.take(&wish, &StopFlag::new(), &NoticeSink::default())
}

#[test]
fn a_device_is_held_once_and_free_again_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let (lease, _) = now(&home, "NVIDIA H200 / 0").unwrap();
    let text = fs::read_to_string(home.dir.join("nvidia-h200---0.lock")).unwrap();
    let holder: LeaseHolder = serde_json::from_str(&text).unwrap();
    assert_eq!((holder.pid, holder.holder.as_str()), (std::process::id(), "me"));
    let busy = now(&home, "NVIDIA H200 / 0").unwrap_err();
    assert_eq!(busy.kind, ErrorKind::Busy);
    assert!(busy.message.contains("held by me (process"), "{busy}");
    assert!(home.try_take("NVIDIA H200 / 0", "other").unwrap().is_none());
    assert!(now(&home, "another").is_ok());
    drop(lease);
    assert!(now(&home, "NVIDIA H200 / 0").is_ok());
}

#[test]
fn a_waiting_karve_gets_the_lease_as_soon_as_it_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let (lease, _) = now(&home, "cpu").unwrap();
    let held = Mutex::new(Some(lease));
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let wish =
                LeaseRequest { device: "cpu", holder: "later", limit: Duration::from_secs(60) };
            home.take(&wish, &StopFlag::new(), &NoticeSink::default())
        });
        held.lock().unwrap().take();
        assert!(waiter.join().unwrap().is_ok());
    });
}

#[test]
fn ctrl_c_ends_the_wait() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let _lease = now(&home, "cpu").unwrap();
    let wish = LeaseRequest { device: "cpu", holder: "me", limit: Duration::from_secs(600) };
    let stop = StopFlag::new();
    stop.request();
    let error = home.take(&wish, &stop, &NoticeSink::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Interrupted);
}

#[test]
fn only_a_plain_file_is_a_lease() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    fs::create_dir(&home.dir).unwrap();
    let precious = dir.path().join("precious");
    fs::write(&precious, "do not touch").unwrap();
    symlink(&precious, home.path("link")).unwrap();
    fs::hard_link(&precious, home.path("twin")).unwrap();
    fs::create_dir(home.path("directory")).unwrap();
    symlink(dir.path().join("nowhere"), home.path("dangling")).unwrap();
    for device in ["link", "twin", "directory", "dangling"] {
        let error = now(&home, device).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Environment, "{device}: {error}");
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), "do not touch");
    assert!(!dir.path().join("nowhere").exists());
}

#[test]
fn a_shared_directory_lets_everybody_in_and_nobody_remove() {
    let dir = tempfile::tempdir().unwrap();
    let home = LeaseDir { dir: dir.path().join("leases"), shared: true };
    let _lease = now(&home, "cpu").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&home.dir), 0o1777);
    assert_eq!(mode(&home.path("cpu")), 0o666);
}

#[test]
fn a_lease_that_was_removed_does_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let _lease = now(&home, "cpu").unwrap();
    fs::remove_file(home.path("cpu")).unwrap();
    let (_second, _) = now(&home, "cpu").unwrap();
    assert!(now(&home, "cpu").is_err(), "the new file is held");
}

#[test]
fn names_of_others_play_no_tricks() {
    let holder = LeaseHolder { pid: 7, holder: "a\u{1b}[31m\nb".into(), since: "now".into() };
    assert_eq!(holder.describe(), "a31mb (process 7) since now");
}

#[test]
fn a_command_does_not_wait_for_the_karve_that_waits_for_it() {
    assert!(is_within("7-1f-0", 7));
    assert!(is_within("7-1f-0/9-2e-3", 9));
    assert!(!is_within("77-1f-0", 7));
    assert!(!is_within("", 7));
}

#[test]
fn a_holder_that_has_not_named_itself_is_not_given_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let (lease, _) = now(&home, "cpu").unwrap();
    let named = home.holder("cpu").unwrap().describe();
    assert!(named.contains("(process "), "{named}");
    lease.file().set_len(0).unwrap();
    let unnamed = home.holder("cpu").unwrap().describe();
    assert_eq!(unnamed, "a process that has not named itself");
}

#[test]
fn a_holder_is_named_once_however_often_it_is_waited_for() {
    let named = AtomicU32::new(u32::MAX);
    let told: Vec<bool> = [7, 7, 7, 9, 9, 7].map(|pid| is_new(&named, pid)).into();
    assert_eq!(told, [true, false, false, true, false, true]);
}
