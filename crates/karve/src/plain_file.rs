//! Reads files that somebody else named or wrote: only plain ones, and only up to a bound.
//!
//! A pipe would keep karve waiting, and a device would never end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes of a file that a person writes, at most.
pub const WRITTEN_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a file of results that a benchmark writes, at most.
pub const RESULT_BYTES_MAX: u64 = 256 << 20;

/// Opens a plain file.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // To open a pipe that nobody writes to would not come back otherwise.
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a plain file")),
    }
}

/// Reads a plain file of at most so many bytes.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => Err(io::Error::other(format!(
            "it is longer than {bytes_max} bytes"
        ))),
        false => Ok(bytes),
    }
}

/// Reads a plain file of text.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read(path, bytes_max)?)
        .map_err(|_| io::Error::other("it is not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
