//! Copies directories.

use std::fs::{File, FileTimes};
use std::path::Path;
use std::{fs, io};

/// What is copied at most.
#[derive(Clone, Copy, Debug)]
pub struct CopyLimit {
    /// Files and directories.
    pub entries: usize,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Copies a directory with the timestamps and permissions of its files; links stay links.
pub fn copy_tree(from: &Path, to: &Path, limit: CopyLimit) -> io::Result<()> {
    let mut left = (limit.entries, limit.bytes);
    let copied = copy_into(from, to, &mut left);
    if copied.is_err() {
        let _ = fs::remove_dir_all(to);
    }
    copied
}

fn copy_into(from: &Path, to: &Path, left: &mut (usize, u64)) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (meta, target) = (entry.metadata()?, to.join(entry.file_name()));
        let (entries, bytes) = (left.0.checked_sub(1), left.1.checked_sub(meta.len()));
        let (Some(entries), Some(bytes)) = (entries, bytes) else {
            return Err(io::Error::other("it is too large"));
        };
        *left = (entries, bytes);
        if meta.is_dir() {
            copy_into(&entry.path(), &target, left)?;
        } else if meta.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
        } else if meta.is_file() {
            fs::copy(entry.path(), &target)?;
            let times = FileTimes::new().set_modified(meta.modified()?);
            File::options().write(true).open(&target)?.set_times(times)?;
        } else {
            return Err(io::Error::other("it contains something that is not a file"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const LIMIT: CopyLimit = CopyLimit { entries: 100, bytes: 1 << 20 };

    #[test]
    fn a_copy_keeps_times_rights_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::write(from.join("sub/a"), "x").unwrap();
        fs::set_permissions(from.join("sub/a"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("sub/a", from.join("link")).unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        let file = File::options().write(true).open(from.join("sub/a")).unwrap();
        file.set_times(FileTimes::new().set_modified(old)).unwrap();
        copy_tree(&from, &to, LIMIT).unwrap();
        let meta = fs::metadata(to.join("sub/a")).unwrap();
        assert_eq!(meta.modified().unwrap(), old);
        assert_eq!(meta.permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("sub/a"));
    }

    #[test]
    fn what_is_too_much_is_not_copied_in_part() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(&from).unwrap();
        let big = File::create(from.join("big")).unwrap();
        big.set_len(LIMIT.bytes + 1).unwrap();
        assert!(copy_tree(&from, &to, LIMIT).is_err());
        assert!(!to.exists());
    }
}
