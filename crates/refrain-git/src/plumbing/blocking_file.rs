//! Finds the file because of which git takes long: a FIFO or device that an agent put in the place of a file that git opens,
//! or rules with so many wildcards that comparing one path takes minutes. It is looked for only when a git takes long, as
//! that reads all folders.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use camino::Utf8Path;
use refrain_core::text::printable;

/// The files of a worktree that git opens, in each of its folders.
const OPENED: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];

/// The files of patterns: in each folder of a worktree, and in `info` of a git folder.
const RULES: [&str; 2] = [".gitignore", ".gitattributes"];
const OWN_RULES: [&str; 2] = ["exclude", "attributes"];

/// How many files and folders are looked at.
const MOST: usize = 2_000_000;

/// The longest file of patterns, in bytes.
const LONGEST: u64 = 8 << 20;

/// How many wildcards a pattern may have, and all patterns of a file: people need a few.
const MOST_IN_A_LINE: usize = 20;
const MOST_IN_A_FILE: usize = 20_000;

/// The file in `worktree` or in the git folders because of which git takes long, and what to do, in a sentence.
pub(crate) fn find(worktree: &Utf8Path, git_folders: &[&Utf8Path]) -> Option<String> {
    let git_folders = git_folders.iter().map(|folder| (folder.as_std_path().to_owned(), true));
    let mut folders: Vec<(PathBuf, bool)> = git_folders.collect();
    folders.insert(0, (worktree.as_std_path().to_owned(), false));
    let mut seen = 0;
    while let Some((folder, is_of_git)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
            if seen > MOST {
                return None;
            }
            let is_own_rule = is_of_git && folder.ends_with("info");
            let rules = if is_own_rule { OWN_RULES } else { RULES };
            let is_opened = is_of_git || OPENED.iter().any(|opened| name == *opened);
            if kind.is_dir() {
                // Refrain has FIFOs of its own.
                if !is_of_git || name != "refrain" {
                    folders.push((entry.path(), is_of_git || name == OsStr::new(".git")));
                }
            } else if is_opened && !kind.is_file() && blocks(&entry.path()) {
                let path = said(&entry.path());
                return Some(format!(
                    "{path} is a FIFO or a device, and git waits for it for ever: an agent may have made it; remove it"
                ));
            } else if rules.iter().any(|rules| name == *rules) && has_many_wildcards(&entry.path()) {
                let path = said(&entry.path());
                return Some(format!(
                    "the patterns of {path} have so many wildcards (*) that git takes minutes to compare a path with them: an \
                     agent may have written it; shorten it"
                ));
            }
        }
    }
    None
}

/// Whether opening it may wait for ever; a link counts as its target.
fn blocks(path: &Path) -> bool {
    let kind = fs::metadata(path).map(|meta| meta.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_char_device() || kind.is_block_device())
}

fn said(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}

/// Whether git may take minutes to compare a path with these patterns.
fn has_many_wildcards(path: &Path) -> bool {
    let Ok(text) = refrain_files::read_regular(path, LONGEST) else {
        return fs::metadata(path).is_ok_and(|meta| meta.len() > LONGEST);
    };
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"#"));
    let mut all = 0;
    lines.map(|line| memchr::memchr_iter(b'*', line).count()).any(|count| {
        all += count;
        count > MOST_IN_A_LINE || all > MOST_IN_A_FILE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_with_very_many_wildcards_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        let usual = format!("# {}\n/target/\n**/*.rs.bk\n", "*".repeat(60));
        for (text, is_found) in [
            (usual.repeat(100), false),
            (format!("{usual}{}a\n", "**/".repeat(200)), true),
            ("*a*b*c\n".repeat(10_000), true),
        ] {
            refrain_files::write(&root.join(".gitignore"), text.as_bytes()).unwrap();
            assert_eq!(find(root, &[]).is_some_and(|it| it.contains("so many wildcards")), is_found);
        }
    }

    #[test]
    fn a_fifo_that_git_opens_is_found_wherever_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        let git = root.join(".git");
        for (path, is_found) in [
            (".gitignore", true),
            ("deep/er/.gitattributes", true),
            ("nested/.git/HEAD", true),
            (".git/objects/info/x", true),
            ("control.fifo", false),
            (".git/refrain/bell", false),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let folder = refrain_files::Folder::open(&path.parent().unwrap().canonicalize_utf8().unwrap());
            assert!(folder.unwrap().make_fifo(path.file_name().unwrap()).unwrap());
            assert_eq!(find(root, &[&git]).is_some(), is_found, "{path}");
            fs::remove_file(&path).unwrap();
        }
    }
}
