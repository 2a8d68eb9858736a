//! Runs real commands and sees that what happened is told, and that nothing stays behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, process, thread};

use karve_os::error::ErrorKind;
use karve_os::process::{
    CAPTURE_BYTES, Command, CommandOutcome, Exit, StopFlag, end_tagged, find_program, run,
};

use crate::inner::{INNER, lives, start, wait_until};

fn shell(line: &str) -> Command {
    Command::shell(line, Path::new("/")).limit(Duration::from_secs(300))
}

fn run_now(command: &Command) -> CommandOutcome {
    run(command, &StopFlag::new()).unwrap()
}

fn stdout(line: &str) -> String {
    let ended = run_now(&shell(line));
    assert_eq!(ended.exit, Exit::Code(0), "{}", ended.stderr.text());
    ended.stdout.text().into_owned()
}

/// A test of this file, to be run alone in a process of its own.
fn inner_test(name: &str, argument: &Path) -> Command {
    let me = env::current_exe().unwrap();
    let args = ["--exact", name, "--ignored", "--nocapture", "--test-threads=1"];
    let line = [me.into_os_string()].into_iter().chain(args.map(Into::into));
    Command::argv(line, Path::new("/"))
        .env(INNER, argument.to_str().unwrap())
        .limit(Duration::from_secs(300))
}

#[test]
fn an_exit_code_is_told() {
    let ended = run_now(&shell("echo out; echo err >&2; exit 3"));
    assert_eq!(ended.exit, Exit::Code(3));
    assert!(!ended.exit.success());
    assert_eq!(ended.stdout.text(), "out\n");
    assert_eq!(ended.stderr.text(), "err\n");
    assert_eq!(ended.stdout.total_bytes, 4);
    assert!(!ended.stdout.truncated());
    assert_eq!(ended.orphans, 0);
    assert!(run_now(&shell("exit 0")).exit.success());
}

#[test]
fn a_signal_is_told_and_sigpipe_is_not_ignored() {
    assert_eq!(run_now(&shell("kill -SEGV $$")).exit, Exit::Signal(11));
    assert_eq!(run_now(&shell("kill -PIPE $$")).exit, Exit::Signal(13));
}

#[test]
fn a_command_starts_with_no_signal_blocked_or_ignored() {
    // Those that the C library keeps for itself are as whoever started karve left them.
    let reserved = 0b11_u64 << 31;
    for line in stdout("exec grep -E '^Sig(Blk|Ign):' /proc/self/status").lines() {
        let (_, signals) = line.split_once('\t').unwrap();
        assert_eq!(u64::from_str_radix(signals, 16).unwrap() & !reserved, 0, "{line}");
    }
}

#[test]
fn a_command_leads_its_own_session_and_holds_three_descriptors() {
    let stat = stdout("exec cat /proc/self/stat");
    let fields: Vec<&str> = stat.split(' ').collect();
    assert_eq!((fields[0], fields[0]), (fields[4], fields[5]), "{stat}");
    // The fourth is the directory that ls reads.
    assert_eq!(stdout("exec ls /proc/self/fd"), "0\n1\n2\n3\n");
}

#[test]
fn cpu_time_and_memory_are_told() {
    let ended = run_now(&shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"));
    assert!(ended.cpu > Duration::ZERO);
    assert!(ended.wall > Duration::ZERO);
    assert!(ended.max_rss_bytes > 100_000);
}

#[test]
fn a_command_over_its_limit_is_ended() {
    let limit = Duration::from_millis(100);
    let ended = run_now(&shell("echo begun; sleep 1000; echo never").limit(limit));
    assert_eq!(ended.exit, Exit::TimedOut);
    assert!(ended.wall >= limit);
    assert!(!ended.stdout.text().contains("never"));
}

#[test]
fn a_command_that_prints_without_end_is_ended() {
    let ended = run_now(&shell("yes").limit(Duration::from_millis(200)));
    assert_eq!(ended.exit, Exit::TimedOut);
    assert!(ended.stdout.bytes.len() <= CAPTURE_BYTES);
}

#[test]
fn orphans_that_hold_the_pipe_are_ended_and_counted() {
    let ended = run_now(&shell("sleep 1000 & setsid sleep 1000 & echo $!"));
    assert_eq!(ended.exit, Exit::Code(0));
    assert_eq!(ended.orphans, 2);
    assert!(!lives(&ended.stdout.text()));
}

#[test]
fn head_and_tail_of_a_long_output_are_kept() {
    let command = shell("seq 1 100000; seq 1 100000 >&2").capture_bytes(20);
    let ended = run_now(&command);
    assert_eq!(ended.stdout.total_bytes, 588_895);
    assert!(ended.stdout.truncated());
    assert_eq!(ended.stdout.bytes, b"1\n2\n3\n4\n5\n99\n100000\n");
    assert_eq!(ended.stderr, ended.stdout);
    assert!(ended.stdout.text().contains("[588875 bytes left out]"));
}

#[test]
fn a_gigabyte_of_output_needs_little_memory() {
    let ended = run_now(&inner_test("process::inner_print_a_gigabyte", Path::new("/")));
    assert!(ended.exit.success(), "{}{}", ended.stdout.text(), ended.stderr.text());
    assert!(ended.stdout.text().contains("1 passed"), "{}", ended.stdout.text());
}

#[test]
#[ignore = "started by a_gigabyte_of_output_needs_little_memory"]
fn inner_print_a_gigabyte() {
    if env::var(INNER).is_err() {
        return;
    }
    // The largest resident set so far, which nothing else in this process can raise.
    let peak_kib = || -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let before_kib = peak_kib();
    let both = "head -c 1073741824 /dev/zero & head -c 104857600 /dev/zero >&2; wait";
    let ended = run_now(&shell(both));
    let growth_kib = peak_kib() - before_kib;
    assert_eq!(ended.exit, Exit::Code(0));
    assert_eq!(ended.stdout.total_bytes, 1 << 30);
    assert_eq!(ended.stderr.total_bytes, 100 << 20);
    assert_eq!(ended.stdout.bytes.len(), CAPTURE_BYTES);
    assert!(ended.stdout.truncated());
    assert!(growth_kib < 16 << 10, "grew by {growth_kib} KiB");
}

#[test]
fn a_large_input_is_read_whole_or_not_at_all() {
    let input = vec![b'x'; 3 << 20];
    let counted = run_now(&shell("wc -c").stdin(input.clone()));
    assert_eq!(counted.stdout.text().trim(), (3 << 20).to_string());
    assert!(run_now(&shell("exit 0").stdin(input.clone())).exit.success());
    assert!(run_now(&shell("head -c 1 >/dev/null").stdin(input.clone())).exit.success());
    let echoed = run_now(&shell("cat; cat").stdin(input.clone()));
    assert_eq!(echoed.stdout.bytes, input);
}

#[test]
fn without_input_there_is_nothing_to_read() {
    assert_eq!(stdout("wc -c").trim(), "0");
}

#[test]
fn a_missing_program_is_127_in_a_shell_and_an_error_by_itself() {
    assert_eq!(run_now(&shell("karve-no-such-program")).exit, Exit::Code(127));
    let missing = Command::argv(["karve-no-such-program"], Path::new("/"));
    let error = run(&missing, &StopFlag::new()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Environment);
    assert_eq!(
        error.to_string(),
        "error: cannot start karve-no-such-program: no such program on the PATH\n\
         hint: install karve-no-such-program, or write its full path in karve.toml"
    );
    let missing = Command::argv(["/no/such/program"], Path::new("/"));
    let error = run(&missing, &StopFlag::new()).unwrap_err();
    assert!(error.to_string().starts_with("error: cannot start /no/such/program: No such file"));
    assert_eq!(error.hints.len(), 1);
}

#[test]
fn what_else_cannot_start_says_why() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("plain"), "text").unwrap();
    let start = |command: Command| run(&command, &StopFlag::new()).unwrap_err().to_string();
    let message = start(Command::argv(["./plain"], dir.path()));
    assert!(message.contains("Permission denied"), "{message}");
    assert!(message.contains("chmod +x ./plain"), "{message}");
    let message = start(Command::shell("true", &dir.path().join("nowhere")));
    assert!(message.contains("cannot enter"), "{message}");
    let message = start(Command::argv(["a\0b"], Path::new("/")));
    assert!(message.contains("karve.toml"), "{message}");
    let message = start(Command::argv(Vec::<String>::new(), Path::new("/")));
    assert!(message.contains("without a program"), "{message}");
}

#[test]
fn arguments_directory_and_environment_reach_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let command = Command::argv(["sh", "-c", "pwd; echo \"$1 $A [$HOME]\"", "sh", "a  b"], &path)
        .env("A", "first")
        .env("A", "second")
        .env_remove("HOME");
    let want = format!("{}\na  b second []\n", path.display());
    assert_eq!(run_now(&command).stdout.text(), want);
}

#[test]
fn a_pinned_command_runs_where_it_is_told_or_not_at_all() {
    let allowed = |command: &Command| {
        let text = run_now(command).stdout.text().into_owned();
        let (_, list) = text.trim().split_once(':').unwrap();
        list.trim().to_owned()
    };
    let look = shell("sh -c 'grep ^Cpus_allowed_list: /proc/self/status'");
    let all = allowed(&look);
    let first: usize = all.split([',', '-']).next().unwrap().parse().unwrap();
    assert_eq!(allowed(&look.clone().pin(&[first, first])), first.to_string());
    assert_eq!(allowed(&look.clone().pin(&[])), all);
    assert_eq!(allowed(&look), all, "karve itself is not confined");
    for missing in [8_191, 8_192, usize::MAX] {
        let error = run(&look.clone().pin(&[first, missing]), &StopFlag::new()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Environment);
        let want = format!("cannot start sh: cannot pin it to CPU {first}, {missing}");
        assert!(error.to_string().contains(&want), "{error}");
        assert!(error.to_string().contains("hint: "), "{error}");
    }
}

#[test]
fn a_command_carries_its_marks() {
    let ended = run_now(&shell("echo $KARVE_RUN; echo $KARVE_CAMPAIGN").tag("a campaign"));
    let text = ended.stdout.text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(!lines[0].is_empty());
    assert_eq!(lines[1], "a campaign");
    assert_ne!(stdout("echo $KARVE_RUN").trim(), lines[0]);
}

/// Starts a process that carries a tag and is nobody's business otherwise.
fn bystander(tag: &str) -> process::Child {
    process::Command::new("sleep").arg("1000").env("KARVE_CAMPAIGN", tag).spawn().unwrap()
}

#[test]
fn only_the_exact_tag_is_ended() {
    let tag = format!("exact-{}", process::id());
    let mut marked = bystander(&tag);
    let mut others = [bystander(&format!("{tag}x")), bystander(&tag[1..]), bystander("")];
    assert_eq!(end_tagged(""), 0);
    assert_eq!(end_tagged(&tag), 1);
    assert!(!marked.wait().unwrap().success());
    assert_eq!(end_tagged(&tag), 0);
    for other in &mut others {
        assert!(other.try_wait().unwrap().is_none(), "another tag was ended");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}

#[test]
fn a_command_dies_with_karve_and_its_orphans_are_found_by_the_tag() {
    let dir = tempfile::tempdir().unwrap();
    // A new child of this process belongs to the only command that runs here, and that may be one
    // of another test. So there are two.
    let done = dir.path().join("done");
    let wait = format!("echo > begun; until [ -e '{}' ]; do sleep 0.05; done", done.display());
    let other = Command::shell(&wait, dir.path()).limit(Duration::from_secs(300));
    let other = thread::spawn(move || run_now(&other));
    wait_until("the start of the other command", || dir.path().join("begun").exists());
    let mut karve = start("process::inner_run_until_killed", dir.path());
    let pid_in = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap_or_default();
    let written = || pid_in("main").ends_with('\n') && pid_in("orphan").ends_with('\n');
    wait_until("the start of the command", written);
    assert!(lives(&pid_in("main")) && lives(&pid_in("orphan")));
    karve.kill();
    wait_until("the death of the command", || !lives(&pid_in("main")));
    assert!(lives(&pid_in("orphan")), "it has left the session");
    assert_eq!(end_tagged(dir.path().to_str().unwrap()), 1);
    assert!(!lives(&pid_in("orphan")));
    fs::write(done, "").unwrap();
    other.join().unwrap();
}

#[test]
#[ignore = "started by a_command_dies_with_karve_and_its_orphans_are_found_by_the_tag"]
fn inner_run_until_killed() {
    let Ok(dir) = env::var(INNER) else { return };
    let line = "setsid sh -c 'echo $$ > orphan; exec sleep 1000' & echo $$ > main; exec sleep 1000";
    let command = Command::shell(line, Path::new(&dir)).tag(dir.as_str());
    run_now(&command);
}

#[test]
fn end_tagged_spares_this_process_and_its_ancestors() {
    let tag = format!("spare-{}", process::id());
    // The shell is the ancestor, the sleep a relative that is not.
    let me = inner_test("process::inner_end_own_tag", Path::new(&tag));
    let karve_os::process::Program::Argv(args) = &me.program else { panic!("it is an argv") };
    let args: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
    let line = format!("sleep 1000 & '{}'; echo code $?", args.join("' '"));
    let ended = run_now(&shell(&line).env(INNER, &tag).tag(&tag));
    assert!(ended.stdout.text().contains("code 0"), "{}", ended.stdout.text());
    assert_eq!(ended.orphans, 0, "the sleep was ended");
}

#[test]
#[ignore = "started by end_tagged_spares_this_process_and_its_ancestors"]
fn inner_end_own_tag() {
    let Ok(tag) = env::var(INNER) else { return };
    assert_eq!(end_tagged(&tag), 1);
}

#[test]
fn runs_in_several_threads_leave_each_other_alone() {
    thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for n in 0..10 {
                    let code = thread * 10 + n;
                    let line = format!("setsid sleep 1000 & echo {code}; exit {code}");
                    let ended = run_now(&shell(&line).stdin("x").tag("threads"));
                    assert_eq!((ended.exit, ended.orphans), (Exit::Code(code), 1));
                    assert_eq!(ended.stdout.text(), format!("{code}\n"));
                }
            });
        }
    });
}

#[test]
fn the_second_request_to_stop_ends_the_command() {
    let stop = StopFlag::new();
    assert!(!stop.finish_step() && !stop.at_once());
    stop.request();
    assert!(stop.finish_step() && !stop.at_once());
    assert!(run(&shell("exit 0"), &stop).unwrap().exit.success());
    let running = stop.clone();
    let ended = thread::scope(|scope| {
        let run = scope.spawn(move || run(&shell("sleep 1000; exit 0"), &running).unwrap());
        stop.request();
        run.join().unwrap()
    });
    assert_eq!(ended.exit, Exit::Stopped);
    assert!(stop.at_once());
    (0..300).for_each(|_| stop.request());
    assert!(stop.at_once(), "the count does not wrap");
}

#[test]
fn programs_are_found_on_the_path() {
    assert!(find_program("sh").is_some_and(|sh| sh.is_absolute()));
    assert_eq!(find_program("/bin/sh"), Some(PathBuf::from("/bin/sh")));
    assert_eq!(find_program("karve-no-such-program"), None);
    assert_eq!(find_program("/etc/passwd"), None);
    assert_eq!(find_program(""), None);
}
