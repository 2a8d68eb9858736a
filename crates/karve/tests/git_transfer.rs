//! Commits that travel to a copy of a repository.

use std::fs;

use karve_harness::git::{CommitNote, NewFile, Oid, init_with, mirror};

const NOTE: CommitNote<'static> = CommitNote { message: "try it\n", date: 1_700_000_000 };

fn file(path: String, text: &str) -> NewFile {
    NewFile { path, bytes: text.as_bytes().to_vec(), executable: false }
}

#[test]
fn a_commit_travels_without_its_history_and_the_next_one_travels_light() {
    let dir = tempfile::tempdir().unwrap();
    // A project of ordinary size.
    let text = |part: u32| -> String {
        (0..200_u32).map(|line| format!("{part} {}\n", line.wrapping_mul(2_654_435_761))).collect()
    };
    let mut files: Vec<NewFile> =
        (0..40).map(|part| file(format!("library/part-{part}.txt"), &text(part))).collect();
    files.push(file("kernel.c".to_owned(), "int kernel(void) { return 1; }\n"));
    let (repo, base) = init_with(&dir.path().join("repo"), &files, &NOTE).unwrap();
    fs::write(repo.root().join("kernel.c"), "int kernel(void) { return 2; }\n").unwrap();
    fs::write(repo.root().join("untracked.txt"), "mine\n").unwrap();
    let second = repo.snapshot(&dir.path().join("index")).unwrap();
    assert_ne!(second, base);
    assert_eq!(repo.head().unwrap().oid(), &base, "the user's branch stays");
    assert_eq!(repo.dirty().unwrap(), ["kernel.c"], "the user's index stays");

    let far = mirror(&dir.path().join("far")).unwrap();
    let send = |wanted: &[Oid], has: &[Oid]| {
        let pack = repo.pack(wanted, has).unwrap();
        let size = pack.len();
        far.cut_history(wanted).unwrap();
        far.unpack(pack).unwrap();
        size
    };
    let first_size = send(std::slice::from_ref(&base), &[]);
    let second_size = send(std::slice::from_ref(&second), std::slice::from_ref(&base));
    println!("transfer: the first commit took {first_size} bytes, the second {second_size}");
    assert!(second_size * 20 <= first_size, "{second_size} of {first_size} bytes");
    let both = std::slice::from_ref(&base);
    assert_eq!(repo.pack(both, both).unwrap(), Vec::<u8>::new());

    let index = dir.path().join("far-index");
    far.show(&base, &second, &index).unwrap();
    let read = |name: &str| fs::read_to_string(far.root().join(name)).unwrap();
    assert!(read("kernel.c").contains("return 2"));
    assert_eq!(read("untracked.txt"), "mine\n");
    fs::write(far.root().join("made.txt"), "new\n").unwrap();
    let mut changed = far.changed_since(&second, &index).unwrap();
    changed.sort();
    assert_eq!(changed, ["made.txt"]);
    far.show(&base, &base, &index).unwrap();
    assert!(read("kernel.c").contains("return 1"));
    assert!(!far.root().join("made.txt").exists(), "what an earlier command made is gone");
    // Opened again, it is the same copy.
    assert!(mirror(far.root()).unwrap().has_commit(second.as_str()));
}

#[test]
fn garbage_is_not_unpacked() {
    let dir = tempfile::tempdir().unwrap();
    let far = mirror(&dir.path().join("far")).unwrap();
    assert!(far.unpack(b"PACK and nothing else".to_vec()).is_err());
}
