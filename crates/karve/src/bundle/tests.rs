//! What is not a bundle is refused, and says why.

use super::archive::{ArchiveWriter, copy_entry, next_entry};
use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use karve_os::files::sha256_hex;
use std::io::Write;

/// Files under a top, packed.
fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ArchiveWriter::new(Vec::new(), "toy", 1_700_000_000);
    for (path, bytes) in files {
        archive.add(path, bytes).unwrap();
    }
    zipped(&archive.finish().unwrap())
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// Why a file is refused; it must name a command.
fn refused(bytes: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tar.gz");
    std::fs::write(&path, bytes).unwrap();
    let error = unpack(&path).unwrap_err();
    assert!(error.hints.iter().any(|hint| hint.contains("karve report --bundle")), "{error}");
    error.to_string()
}

/// A header with some of its fields replaced, and the right sum.
fn header(path: &[u8], bytes: &[u8; 12], kind: u8) -> Vec<u8> {
    let mut archive = ArchiveWriter::new(Vec::new(), "toy", 0);
    archive.add("x", b"").unwrap();
    let mut header = archive.finish().unwrap()[..512].to_vec();
    header[..100].fill(0);
    header[..path.len()].copy_from_slice(path);
    header[124..136].copy_from_slice(bytes);
    header[156] = kind;
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

const SMALL: &[u8; 12] = b"00000000000\0";

#[test]
fn files_are_read_as_they_were_written() {
    let long = vec![7; 1_300];
    let mut archive = ArchiveWriter::new(Vec::new(), "toy", 5);
    archive.add("a/b.txt", b"short").unwrap();
    archive.add("long", &long).unwrap();
    archive.add("empty", b"").unwrap();
    let bytes = archive.finish().unwrap();
    assert_eq!(bytes.len() % 512, 0);
    let mut input = &bytes[..];
    let mut found = Vec::new();
    while let Some(entry) = next_entry(&mut input).unwrap() {
        let mut contents = Vec::new();
        copy_entry(&mut input, &entry, |bytes| contents.write_all(bytes)).unwrap();
        found.push((entry.path, contents));
    }
    let want = [("a/b.txt", b"short".to_vec()), ("long", long), ("empty", Vec::new())];
    assert_eq!(found, want.map(|(path, bytes)| (path.to_owned(), bytes)));
    for path in ["../up", "/abs", "a//b", "a/./b", "-rf", "a b", "a\\b", "a/b/c/d/e", "", ".git"] {
        let mut archive = ArchiveWriter::new(Vec::new(), "toy", 5);
        assert!(archive.add(path, b"").is_err(), "{path}");
    }
}

#[test]
fn what_leads_out_of_the_directory_or_is_no_plain_file_is_refused() {
    for path in [&b"../../etc/passwd"[..], b"/etc/passwd", b"a/../../b", b"\xff\xfe", b"x\0y"] {
        let why = refused(&zipped(&[header(path, SMALL, b'0'), vec![0; 1024]].concat()));
        assert!(why.contains("is not one that karve writes") || why.contains("not text"), "{why}");
    }
    // A hard link, a symbolic link, a device, a directory, an extended header.
    for kind in [b'1', b'2', b'3', b'5', b'x', b'L', 0] {
        let why = refused(&zipped(&[header(b"SHA256SUMS", SMALL, kind), vec![0; 1024]].concat()));
        assert!(why.contains("is not a plain file"), "{why}");
    }
}

#[test]
fn a_size_beyond_the_limits_is_refused_before_it_is_read() {
    let huge = b"77777777777\0";
    let why = refused(&zipped(&header(b"SHA256SUMS", huge, b'0')));
    assert!(why.contains("SHA256SUMS is longer than"), "{why}");
    let sums = format!("{}  a\n", sha256_hex(b""));
    let mut archive = ArchiveWriter::new(Vec::new(), "toy", 0);
    archive.add(SUMS, sums.as_bytes()).unwrap();
    let mut bytes = archive.finish().unwrap();
    bytes.truncate(bytes.len() - 1024);
    let why = refused(&zipped(&[bytes, header(b"a", huge, b'0')].concat()));
    assert!(why.contains("a is larger than karve writes (8589934591 bytes)"), "{why}");
    // In base 256, as other programs write what is larger still.
    let why = refused(&zipped(&header(b"SHA256SUMS", b"\x80\0\0\0\0\x7f\0\0\0\0\0\0", b'0')));
    assert!(why.contains("is not a number"), "{why}");
}

#[test]
fn the_list_names_every_file_in_order() {
    let sum = |bytes: &[u8], path: &str| format!("{}  {path}\n", sha256_hex(bytes));
    let (a, b) = (sum(b"A", "a"), sum(b"B", "b"));
    let list = format!("{a}{b}");
    let check = |files: &[(&str, &[u8])], want: &str| {
        let why = refused(&packed(files));
        assert!(why.contains(want), "{want:?}: {why}");
    };
    check(&[("a", b"A")], "its first file is not SHA256SUMS");
    check(&[(SUMS, list.as_bytes()), ("a", b"A")], "it has no b");
    check(
        &[(SUMS, list.as_bytes()), ("b", b"B"), ("a", b"A")],
        "it has b where SHA256SUMS names a",
    );
    check(&[(SUMS, list.as_bytes()), ("a", b"A"), ("b", b"b")], "b does not match its hash");
    check(&[(SUMS, a.as_bytes()), ("a", b"A"), ("b", b"B")], "that SHA256SUMS does not name");
    check(&[(SUMS, format!("{b}{a}").as_bytes())], "is not sorted");
    check(&[(SUMS, format!("{a}{a}").as_bytes())], "is not sorted");
    check(&[(SUMS, a.to_uppercase().as_bytes())], "a line that is not");
    check(&[(SUMS, list.as_bytes()), ("a", b"A"), ("b", b"B")], "bundle.json");
}

#[test]
fn garbage_is_refused() {
    let good = packed(&[(SUMS, b"")]);
    let trailing = [&good[..], b"more"].concat();
    let twice = [&good[..], &good[..]].concat();
    let cut = &good[..good.len() - 9];
    let bomb = zipped(&vec![0; 64 << 20]);
    for (bytes, want) in [
        (&b""[..], "ends too early"),
        (b"not gzip at all", "invalid gzip header"),
        (&zipped(b"short"), "ends too early"),
        (&zipped(&[7; 4096]), "is damaged"),
        (&bomb, "goes on after its end"),
        (&trailing, "something after the archive"),
        (&twice, "something after the archive"),
        (cut, "is not a valid bundle"),
    ] {
        let why = refused(bytes);
        assert!(why.contains(want), "{want:?}: {why}");
    }
    let missing = unpack(std::path::Path::new("/nowhere/x.tar.gz")).unwrap_err();
    assert!(missing.to_string().contains("karve report --bundle"), "{missing}");
}
