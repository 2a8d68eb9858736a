//! Reads files that others named or wrote: only plain ones, and only up to a size limit.
//!
//! A pipe would keep karve waiting, and a device would never end.

use crate::error::{Result, WithContext};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Maximum size of a file that a person writes, in bytes.
pub const WRITTEN_BYTES_MAX: u64 = 16 << 20;

/// Maximum size of a result file that a benchmark writes, in bytes.
pub const RESULT_BYTES_MAX: u64 = 256 << 20;

/// A path without links, or the path itself if it does not exist.
pub fn settled(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Opens a plain file.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Otherwise, opening a pipe without a writer would block forever.
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a plain file"))
    }
}

/// Reads a plain file of at most `bytes_max` bytes.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open(path)?;
    // A file that grows meanwhile is found out by reading it.
    let mut length = file.metadata()?.len();
    if length <= bytes_max {
        file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
        length = bytes.len() as u64;
    }
    if length > bytes_max {
        Err(io::Error::other(format!("it is longer than {bytes_max} bytes")))
    } else {
        Ok(bytes)
    }
}

/// Reads the end of a plain file, at most `bytes_max` bytes.
pub fn read_tail(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::other("it is a link"));
    }
    let mut file = open(path)?;
    let size = file.metadata()?.len();
    file.seek(io::SeekFrom::Start(size.saturating_sub(bytes_max)))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a plain file of text.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read(path, bytes_max)?).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

/// The SHA-256 of some bytes, in hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The SHA-256 of a file, read in pieces.
pub fn sha256_file(path: &Path) -> Result<String> {
    let cannot = || format!("cannot read {}", path.display());
    let mut file = open(path).context(cannot)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let n = file.read(&mut buffer).context(cannot)?;
        if n == 0 {
            return Ok(hex(&digest.finalize()));
        }
        digest.update(&buffer[..n]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A name as one part of a path: nothing in it leads elsewhere.
pub fn path_part(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "._-=,+".contains(c) { c } else { '-' };
    let part: String = name.chars().map(plain).collect();
    match part.trim_matches('.').is_empty() {
        true => "-".to_owned(),
        false => part.trim_start_matches('.').to_owned(),
    }
}

/// The first directory between a path and one above it that is a symbolic link: what is written
/// there would be elsewhere.
pub fn link_above(path: &Path, above: &Path) -> Option<PathBuf> {
    let between = path.ancestors().skip(1).take_while(|dir| *dir != above);
    let is_link = |dir: &&Path| fs::symlink_metadata(dir).is_ok_and(|data| data.is_symlink());
    between.filter(is_link).last().map(Path::to_path_buf)
}

/// Whether a path below a directory leads elsewhere: it, or a directory on the way, is a symbolic
/// link. A cloned project may contain one.
pub fn is_linked(path: &Path, above: &Path) -> bool {
    let is_link = fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink());
    is_link || link_above(path, above).is_some()
}

/// Writes a complete file or nothing: a temporary file next to it, synced, then renamed.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    };
    write()
        .inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })
        .context(cannot)
}

/// Removes temporary files that `write_atomic` leaves in a directory when it is killed.
pub fn remove_temporary(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "tmp") {
            let _ = fs::remove_file(path);
        }
    }
}

/// The bytes of a file, or of all files in a directory; links are not followed.
pub fn bytes_of(path: &Path) -> u64 {
    let is_dir = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    match is_dir {
        true => {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| bytes_of(&entry.path())).sum()
        }
        false => fs::symlink_metadata(path).map_or(0, |meta| meta.len()),
    }
}

/// Writes a derived file; it can be rebuilt, so it is not synced. An identical file is not touched.
pub fn write_derived(path: &Path, bytes: &[u8]) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).context(cannot)?;
    }
    fs::write(path, bytes).context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_part_of_a_path_stays_one_part() {
        for (name, want) in [
            ("matmul", "matmul"),
            ("m=4,n=8", "m=4,n=8"),
            ("../../etc/x", "-..-etc-x"),
            ("..", "-"),
            ("", "-"),
            ("a b/c", "a-b-c"),
        ] {
            assert_eq!(path_part(name), want, "{name}");
        }
    }

    #[test]
    fn a_link_on_the_way_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::create_dir_all(dir.join("inside/deep")).unwrap();
        std::os::unix::fs::symlink("inside", dir.join("link")).unwrap();
        assert_eq!(link_above(&dir.join("inside/deep/file"), dir), None);
        assert_eq!(link_above(&dir.join("link/deep/file"), dir), Some(dir.join("link")));
        assert_eq!(link_above(&dir.join("link"), dir), None);
        assert!(is_linked(&dir.join("link"), dir) && is_linked(&dir.join("link/deep/file"), dir));
        assert!(!is_linked(&dir.join("inside/deep/file"), dir));
    }

    fn check(path: &Path, bytes_max: u64, want: std::result::Result<&str, &str>) {
        let got = read_text(path, bytes_max).map_err(|error| error.to_string());
        let got = got.as_deref().map_err(String::as_str);
        match want {
            Ok(text) => assert_eq!(got, Ok(text)),
            Err(part) => assert!(got.is_err_and(|why| why.contains(part)), "{got:?}"),
        }
    }

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "four").unwrap();
        check(&path, 4, Ok("four"));
        check(&path, 3, Err("longer than 3 bytes"));
        check(&dir.path().join("none"), 3, Err("No such file"));
        fs::write(&path, [0xff]).unwrap();
        check(&path, 3, Err("UTF-8"));
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(read(&link, 3).unwrap(), [0xff]);
    }

    #[test]
    fn what_never_ends_is_no_plain_file() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()));
        for path in [&pipe, dir.path(), Path::new("/dev/zero")] {
            check(path, 1 << 20, Err("not a plain file"));
        }
    }
}
