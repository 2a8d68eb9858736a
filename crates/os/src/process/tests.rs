//! What must hold with every combination of kernel features.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use super::*;

const LAYERS_OFF: KernelFeatures = KernelFeatures { cgroup: false, pidfd: false };

/// Runs a check with and without a control group and a pidfd.
fn with_all_layers(check: impl Fn(&dyn Fn(Command) -> CommandOutcome)) {
    for cgroup in [true, false] {
        for pidfd in [true, false] {
            let layers = KernelFeatures { cgroup, pidfd };
            check(&|command| match run_with(&command, &StopFlag::new(), layers) {
                Ok(run) => run,
                Err(error) => panic!("{layers:?}: {error}"),
            });
        }
    }
}

fn shell(line: &str) -> Command {
    Command::shell(line, Path::new("/")).limit(Duration::from_secs(300))
}

/// Whether the process that wrote its id into the file is still alive.
fn lives(pid_file: &Path) -> bool {
    let pid = fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
    table::process(pid).is_some_and(|p| !p.dead)
}

/// Gives the command more and more time until it has written the file, because a busy machine
/// may be slow to start it.
fn time_out_after_writing(
    command: Command,
    file: &Path,
    run: &dyn Fn(Command) -> CommandOutcome,
) -> CommandOutcome {
    for limit_ms in [100, 400, 1_600, 6_400, 25_600] {
        let ended = run(command.clone().limit(Duration::from_millis(limit_ms)));
        assert_eq!(ended.exit, Exit::TimedOut);
        if fs::read(file).is_ok_and(|bytes| bytes.ends_with(b"\n")) {
            return ended;
        }
    }
    panic!("the command never writes {}", file.display());
}

#[test]
fn exit_codes_and_signals_are_told_apart() {
    with_all_layers(|run| {
        assert_eq!(run(shell("exit 0")).exit, Exit::Code(0));
        assert_eq!(run(shell("exit 7")).exit, Exit::Code(7));
        assert_eq!(run(shell("kill -9 $$")).exit, Exit::Signal(9));
        assert_eq!(run(shell("echo out; echo err >&2")).stdout.text(), "out\n");
        assert_eq!(run(shell("echo out; echo err >&2")).stderr.text(), "err\n");
    });
}

#[test]
fn the_limit_ends_a_descendant_that_left_session_and_parent_and_ignores_signals() {
    with_all_layers(|run| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let line = "setsid sh -c '(setsid sh -c \"trap \\\"\\\" TERM HUP INT; echo \\$\\$ > $F; \
            sleep 1000; sleep 1000\" &) ; exit 0' & wait; sleep 1000";
        let command = shell(line).env("F", file.to_str().unwrap());
        let ended = time_out_after_writing(command, &file, run);
        assert_eq!(ended.orphans, 0, "it was killed together with the command");
        assert!(!lives(&file));
    });
}

#[test]
fn the_limit_ends_a_descendant_that_cleared_its_environment() {
    with_all_layers(|run| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let line = "setsid env -i sh -c 'echo $$ > '$F'; sleep 1000; :' & sleep 1000; :";
        let command = shell(line).env("F", file.to_str().unwrap());
        time_out_after_writing(command, &file, run);
        assert!(!lives(&file));
    });
}

#[test]
fn an_orphan_is_ended_and_counted_and_does_not_hold_the_pipe() {
    with_all_layers(|run| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let line = "(setsid sh -c 'echo $$ > $F; exec sleep 1000' &); \
            until [ -s $F ]; do sleep 0.01; done; echo done";
        let ended = run(shell(line).env("F", file.to_str().unwrap()));
        assert_eq!(ended.exit, Exit::Code(0));
        assert_eq!(ended.stdout.text(), "done\n");
        assert_eq!(ended.orphans, 1);
        assert!(!lives(&file));
    });
}

#[test]
fn an_orphan_of_a_nested_karve_is_ended() {
    with_all_layers(|run| {
        let line = "KARVE_RUN=$KARVE_RUN/inner setsid sleep 1000 & exit 0";
        assert_eq!(run(shell(line)).orphans, 1);
    });
}

#[test]
fn an_orphan_that_ended_unnoticed_is_reaped() {
    with_all_layers(|run| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let line = "(sh -c 'echo $$ > $F' &); until [ -s $F ]; do sleep 0.01; done";
        run(shell(line).env("F", file.to_str().unwrap()));
        let pid = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        assert!(table::process(pid).is_none(), "neither alive nor a zombie");
    });
}

#[test]
fn runs_at_the_same_time_leave_each_other_alone() {
    with_all_layers(|run| {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let others = scope.spawn(|| {
                let mut n = 0;
                while !done.load(Ordering::SeqCst) || n == 0 {
                    let line = "setsid sleep 1000 & sleep 1000 & exit 3";
                    let ended = run_with(&shell(line), &StopFlag::new(), LAYERS_OFF).unwrap();
                    assert_eq!((ended.exit, ended.orphans), (Exit::Code(3), 2));
                    n += 1;
                }
            });
            for n in 0..5 {
                let line = format!("(setsid sleep 0.05; echo {n}) & sleep 0.05; wait; exit {n}");
                let ended = run(shell(&line));
                assert_eq!((ended.exit, ended.orphans), (Exit::Code(n), 0));
                assert_eq!(ended.stdout.text(), format!("{n}\n"));
            }
            done.store(true, Ordering::SeqCst);
            others.join().unwrap();
        });
    });
}

#[test]
fn a_process_that_keeps_hopping_to_new_sessions_is_caught() {
    with_all_layers(|run| {
        let dir = tempfile::tempdir().unwrap();
        let hop = dir.path().join("hop");
        fs::write(&hop, "setsid sh \"$0\" & exit 0").unwrap();
        let ended = run(shell("sh $F; sleep 0.1").env("F", hop.to_str().unwrap()));
        assert_eq!(ended.exit, Exit::Code(0));
        assert!(ended.orphans >= 1);
        let name = hop.to_str().unwrap();
        let hops = |pid: sys::Pid| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&arguments).contains(name)
        };
        // An orphan is a child of ours; a single check could miss it between two hops.
        assert!((0..50).all(|_| !table::children().into_iter().any(hops)));
    });
}

#[test]
fn a_control_group_finds_an_orphan_without_kin_and_mark() {
    if CommandCgroup::new("test").is_none() {
        eprintln!("skipped: cannot create a control group here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let line = "(setsid env -i sh -c 'echo $$ > '$F'; exec sleep 1000' &); \
        until [ -s $F ]; do sleep 0.01; done";
    let command = shell(line).env("F", file.to_str().unwrap());
    let ended = run(&command, &StopFlag::new()).unwrap();
    assert_eq!((ended.exit, ended.orphans), (Exit::Code(0), 1));
    assert!(!lives(&file));
}

#[test]
fn a_pipe_held_open_by_a_stranger_is_not_waited_for() {
    let (stream, mut held) = CapturedStream::new(100).unwrap();
    held.write_all(b"printed").unwrap();
    let captured = stream.finish(&mut [0; 3]);
    assert_eq!(captured.text(), "printed");
}

#[test]
fn a_leaf_is_removed_after_use() {
    let Some(leaf) = CommandCgroup::new("test") else {
        eprintln!("skipped: cannot create a control group here");
        return;
    };
    let text = format!("{leaf:?}");
    let dir = text.split('"').nth(1).map(PathBuf::from).unwrap();
    assert!(dir.is_dir());
    assert!(leaf.is_empty());
    fs::create_dir(dir.join("below")).unwrap();
    drop(leaf);
    assert!(!dir.exists());
}

#[test]
fn an_empty_leaf_serves_the_next_command_and_a_changed_one_does_not() {
    // In its own thread, whose leaves nothing else uses.
    let thread = thread::spawn(|| {
        let name = |leaf: &CommandCgroup| format!("{leaf:?}").split('"').nth(1).map(PathBuf::from);
        let leaf = CommandCgroup::for_tag("test")?;
        let first = name(&leaf)?;
        leaf.keep_spare();
        let other = CommandCgroup::for_tag("another")?;
        assert_ne!(name(&other)?, first, "each tag has its own");
        let leaf = CommandCgroup::for_tag("test")?;
        if name(&leaf)? != first {
            eprintln!("skipped: the leaves of this machine have controllers");
            return None;
        }
        fs::create_dir(first.join("below")).unwrap();
        leaf.keep_spare();
        assert!(!first.exists(), "one with a group below it is removed");
        let last = name(&CommandCgroup::for_tag("test")?)?;
        assert!(!last.exists(), "a dropped leaf is not kept");
        let leaf = CommandCgroup::for_tag("test")?;
        let last = name(&leaf)?;
        leaf.keep_spare();
        assert!(last.exists());
        Some(last)
    });
    if let Some(last) = thread.join().unwrap() {
        assert!(!last.exists(), "it is removed with its thread");
    }
}

#[test]
fn a_command_after_one_with_orphans_has_none() {
    with_all_layers(|run| {
        assert_eq!(run(shell("exit 0")).orphans, 0);
        assert_eq!(run(shell("setsid sleep 1000 & exit 0")).orphans, 1);
        let limit = Duration::from_millis(100);
        assert_eq!(run(shell("sleep 1000").limit(limit)).exit, Exit::TimedOut);
        let ended = run(shell("exit 3"));
        assert_eq!((ended.exit, ended.orphans), (Exit::Code(3), 0));
    });
}
