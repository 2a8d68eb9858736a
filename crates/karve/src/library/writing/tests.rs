//! Changes in temporary directories: interrupted at every step, refused, and concurrent.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

fn entry(id: &str, title: &str) -> Entry {
    Entry { id: id.into(), title: title.into(), date: "2026-11".into(), ..Entry::default() }
}

fn library_layers(dir: &Path) -> LibraryLayers {
    let mut all_layers = LibraryLayers::default();
    for (layer, name) in
        [(Layer::User, "user"), (Layer::Project, "project"), (Layer::Staged, "karve/staged")]
    {
        all_layers.put(layer, dir.join(name));
    }
    all_layers
}

/// The content of each layer: ids and titles.
fn held_in(all_layers: &LibraryLayers) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for layer in [Layer::User, Layer::Project, Layer::Staged] {
        let dir = all_layers.dir(layer).unwrap();
        for path in super::super::markdown_below(dir).unwrap() {
            let entry = read_entry(&path).unwrap();
            all.push((format!("{}/{}", layer.name(), entry.id), entry.title));
        }
    }
    all
}

/// Whatever is left next to the entries.
fn litter(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(litter(&path));
        } else if path.extension().is_none_or(|end| end != "md") {
            found.push(path);
        }
    }
    let ours = |path: &PathBuf| {
        let name = path.file_name().unwrap();
        name == LOCK || name == ".gitignore"
    };
    found.retain(|path| !ours(path));
    found
}

/// A layer with two entries, and a change that replaces one, adds one and moves one.
fn promoted(all_layers: &LibraryLayers) -> RootWrite<'_> {
    all_layers.write(Layer::Project, &entry("a", "old")).unwrap();
    all_layers.write(Layer::Staged, &entry("c", "staged")).unwrap();
    let held = all_layers.hold(&[Layer::Project]).unwrap();
    let mut change = all_layers.change(&held);
    change.put(Layer::Project, &entry("a", "new")).unwrap();
    change.put(Layer::Project, &entry("b", "new")).unwrap();
    change.put(Layer::Project, &entry("c", "new")).unwrap();
    let staged = all_layers.dir(Layer::Staged).unwrap().join("c.md");
    change.remove(Layer::Staged, &staged).unwrap();
    let (root, write) = change.roots.pop_first().unwrap();
    RootWrite { layers: all_layers, root, plan: write.plan, texts: write.texts }
}

#[test]
fn a_change_that_is_broken_off_at_any_step_is_whole_or_nothing_afterwards() {
    let pair = |(a, b): (&str, &str)| (a.to_owned(), b.to_owned());
    let before = [("project/a", "old"), ("staged/c", "staged")].map(pair);
    let after = [("project/a", "new"), ("project/b", "new"), ("project/c", "new")].map(pair);
    let mut outcomes = Vec::new();
    for stop in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let all_layers = library_layers(dir.path());
        let mut site = promoted(&all_layers);
        let more = (0..stop).all(|number| site.step(number).unwrap());
        // Here the process is gone, and with it the lock.
        let library = all_layers.load().unwrap();
        let (is, left) = (held_in(&all_layers), litter(dir.path()));
        assert_eq!(left, Vec::<PathBuf>::new(), "stopped before step {stop}");
        assert!(is == before || is == after, "step {stop}: {is:?}");
        outcomes.push((is == after, library.settled.concat()));
        if !more {
            break;
        }
    }
    // Nothing changes until everything is staged, then everything does.
    let whole: Vec<bool> = outcomes.iter().map(|(whole, _)| *whole).collect();
    assert!(whole.is_sorted() && !whole[5] && whole[6], "{outcomes:?}");
    assert!(outcomes[3].1.contains("4 files in the library is now undone"));
    assert!(outcomes[8].1.contains("is now finished"), "{outcomes:?}");
}

#[test]
fn what_cannot_be_moved_is_moved_back() {
    let dir = tempfile::tempdir().unwrap();
    let all_layers = library_layers(dir.path());
    let mut site = promoted(&all_layers);
    let before = held_in(&all_layers);
    let steps = 2 * site.plan.moves.len() + 1;
    (0..steps).for_each(|number| assert!(site.step(number).unwrap()));
    // Everything is in place, and then something fails.
    let error = site.take_back(CommandError::usage("it cannot be moved"));
    assert_eq!(held_in(&all_layers), before);
    assert_eq!(litter(dir.path()), Vec::<PathBuf>::new());
    assert!(error.to_string().contains("nothing was changed"), "{error}");
}

#[test]
fn a_file_that_cannot_be_written_means_that_nothing_is() {
    let dir = tempfile::tempdir().unwrap();
    let all_layers = library_layers(dir.path());
    all_layers.write(Layer::Project, &entry("a", "old")).unwrap();
    let held = all_layers.hold(&[Layer::Project]).unwrap();
    let mut change = all_layers.change(&held);
    change.put(Layer::Project, &entry("a", "new")).unwrap();
    change.put(Layer::Project, &entry("b", "new")).unwrap();
    // In place of the file there is a directory that is not empty.
    fs::create_dir_all(dir.path().join("project/b.md/inside")).unwrap();
    let error = change.commit().unwrap_err().to_string();
    assert!(error.contains("b.md"), "{error}");
    fs::remove_dir_all(dir.path().join("project/b.md")).unwrap();
    assert_eq!(held_in(&all_layers), [("project/a".into(), "old".into())]);
    assert_eq!(litter(dir.path()), Vec::<PathBuf>::new());
}

#[test]
fn one_writes_at_a_time_and_who_waits_too_long_is_told_by_whom() {
    let dir = tempfile::tempdir().unwrap();
    let all_layers = library_layers(dir.path());
    let held = all_layers.hold(&[Layer::Staged]).unwrap();
    // A project has one lock, a user another.
    let error = all_layers.hold_within(&[Layer::Project], Duration::ZERO);
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Busy);
    let reported = error.to_string();
    let pid = format!("process {}", std::process::id());
    assert!(reported.contains(&pid) && reported.contains("karve list"), "{reported}");
    all_layers.hold_within(&[Layer::User], Duration::ZERO).unwrap();
    // Reading does not wait for a lock.
    assert!(all_layers.load().unwrap().settled.is_empty());
    drop(held);
    all_layers.hold_within(&[Layer::Project], Duration::ZERO).unwrap();
}

#[test]
fn writers_that_read_and_write_lose_nothing_of_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let all_layers = Arc::new(library_layers(dir.path()));
    all_layers.write(Layer::Staged, &entry("x", "")).unwrap();
    let work = |name: char| {
        let all_layers = Arc::clone(&all_layers);
        std::thread::spawn(move || {
            for _ in 0..5 {
                let held = all_layers.hold(&[Layer::Staged]).unwrap();
                let mut change = all_layers.change(&held);
                let mut entry = change.there(Layer::Staged, "x").unwrap().unwrap();
                entry.title.push(name);
                change.put(Layer::Staged, &entry).unwrap();
                change.commit().unwrap();
            }
        })
    };
    let threads: Vec<_> = ['a', 'b', 'c'].map(work).into();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let title = &held_in(&all_layers)[0].1;
    for name in ['a', 'b', 'c'] {
        assert_eq!(title.matches(name).count(), 5, "{title}");
    }
}

#[test]
fn a_link_out_of_a_project_is_not_followed_and_one_of_the_user_is() {
    let dir = tempfile::tempdir().unwrap();
    let all_layers = library_layers(dir.path());
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("x.md"), render_entry(&entry("x", "elsewhere")).unwrap())
        .unwrap();
    fs::create_dir_all(dir.path().join("karve")).unwrap();
    for name in ["user", "project", "karve/staged"] {
        symlink(elsewhere.path(), dir.path().join(name)).unwrap();
    }
    let library = all_layers.load().unwrap();
    assert_eq!(library.get("x").unwrap().layer, Layer::User);
    assert_eq!(library.unreadable.len(), 2, "{:?}", library.unreadable);
    for layer in [Layer::Project, Layer::Staged] {
        let error = all_layers.write(layer, &entry("y", "new")).unwrap_err();
        let reported = error.to_string();
        assert!(
            reported.contains("is a symlink that points outside") && reported.contains("--to user")
        );
    }
    assert!(!elsewhere.path().join("y.md").exists());
    // A symlink to a sibling stays in the project.
    fs::remove_file(dir.path().join("project")).unwrap();
    fs::remove_file(dir.path().join("karve/staged")).unwrap();
    fs::create_dir_all(dir.path().join("docs/kernels")).unwrap();
    symlink("docs/kernels", dir.path().join("project")).unwrap();
    all_layers.write(Layer::Project, &entry("y", "new")).unwrap();
    assert!(dir.path().join("docs/kernels/y.md").exists());
}

#[test]
fn a_plan_or_a_lock_that_came_with_a_repository_leads_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let all_layers = library_layers(dir.path());
    let root = all_layers.dir(Layer::Staged).unwrap().to_owned();
    fs::create_dir_all(&root).unwrap();
    let own = dir.path().join("own.md");
    fs::write(&own, "mine").unwrap();
    for path in ["../../own.md", "/etc/x.md", "x.sh"] {
        let plan = format!(
            "{{\"version\":1,\"phase\":\"undoing\",\"moves\":[{{\"layer\":\"project\",\
             \"path\":{path:?},\"do\":\"make\"}}]}}"
        );
        fs::write(root.join(PLAN), plan).unwrap();
        let reported = all_layers.load().unwrap().settled.concat();
        assert!(reported.contains("karve did not write it"), "{reported}");
        let error = all_layers.hold(&[Layer::Staged]).unwrap_err().to_string();
        assert!(error.contains(PLAN), "{error}");
    }
    assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
    fs::remove_file(root.join(PLAN)).unwrap();
    fs::remove_file(root.join(LOCK)).unwrap();
    symlink(&own, root.join(LOCK)).unwrap();
    assert!(all_layers.hold(&[Layer::Staged]).is_err());
    assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
}

#[test]
fn what_may_not_be_written_to_is_read_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let all_layers = library_layers(dir.path());
    all_layers.write(Layer::Staged, &entry("x", "old")).unwrap();
    let root = all_layers.dir(Layer::Staged).unwrap();
    fs::remove_file(root.join(LOCK)).unwrap();
    fs::set_permissions(root, fs::Permissions::from_mode(0o500)).unwrap();
    let library = all_layers.load();
    fs::set_permissions(root, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(library.unwrap().get("x").is_ok());
}
