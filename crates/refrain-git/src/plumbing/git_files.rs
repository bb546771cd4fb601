//! The files of a git folder that every git command reads (gitrepository-layout(5)). An agent can put a FIFO there,
//! on which every git would block for ever, or an endless index. Both are refused by name before git runs.

use std::fs;
use std::os::unix::fs::FileTypeExt;

use camino::{Utf8Path, Utf8PathBuf};

use crate::error::GitError;
use crate::plumbing::disk::{LARGEST, text};

/// The folders whose files git reads, below the git folder that all worktrees share.
const FOLDERS: [&str; 3] = ["", "info", "objects/info"];

/// Refuses git folders with a FIFO, on which git would block, or with an index that is too large.
pub(crate) fn check(git_dir: &Utf8Path, common_dir: &Utf8Path) -> Result<(), GitError> {
    let shared = FOLDERS.iter().map(|folder| common_dir.join(folder));
    let own = (git_dir != common_dir).then(|| ["", "info"].map(|folder| git_dir.join(folder)));
    for folder in shared.chain(own.into_iter().flatten()) {
        for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| !kind.is_file() && !kind.is_dir()) {
                check_kind(entry.path())?;
            }
        }
    }
    let index = git_dir.join("index");
    if fs::metadata(&index).is_ok_and(|meta| meta.len() > LARGEST) {
        return Err(GitError::LargeIndex { path: index, most: LARGEST });
    }
    let packed = common_dir.join("packed-refs");
    if fs::metadata(&packed).is_ok_and(|meta| meta.len() > LARGEST) {
        return Err(GitError::LargeReferences { path: packed, most: LARGEST });
    }
    check_shallow(common_dir.join("shallow"))?;
    let head = text(&git_dir.join("HEAD")).unwrap_or_default();
    match head.strip_prefix("ref: ") {
        Some(branch) => check_kind(&common_dir.join(branch.trim_end())),
        None => Ok(()),
    }
}

/// The most that is read of the list of a shallow clone's oldest commits.
const MOST_SHALLOW: u64 = 16 << 20;

/// Refuses a list of oldest commits that git cannot read: no git command works then.
fn check_shallow(path: Utf8PathBuf) -> Result<(), GitError> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let is_name = |line: &str| matches!(line.len(), 40 | 64) && line.bytes().all(|it| it.is_ascii_hexdigit());
    let listed =
        refrain_files::read_regular(&path, MOST_SHALLOW).ok().and_then(|it| String::from_utf8(it).ok());
    match listed {
        Some(listed) if listed.lines().all(is_name) => Ok(()),
        Some(_) | None => Err(GitError::Shallow(path)),
    }
}

/// Files of a git folder that git writes besides those of a branch, and their folders.
const WRITTEN: [&str; 8] =
    ["index", "HEAD", "objects", "refs", "packed-refs", "logs", "logs/HEAD", "COMMIT_EDITMSG"];

/// Refuses a git folder in which git would write to something else through a link, and returns what links lead to. An agent
/// of another loop can make links there: what an agent in a sandbox made is removed after it.
/// [`FileLimits`](refrain_proc::tool::FileLimits) hold git to it, too, when an agent makes the link a moment later.
pub(crate) fn link_targets(git_dir: &Utf8Path, common_dir: &Utf8Path) -> Result<Vec<Utf8PathBuf>, GitError> {
    let head = text(&git_dir.join("HEAD")).unwrap_or_default();
    let branch = head.strip_prefix("ref: ").map(str::trim_end).unwrap_or_default();
    let of_branch = Utf8Path::new(branch).ancestors().filter(|path| !path.as_str().is_empty());
    let of_branch = of_branch.flat_map(|path| [path.to_owned(), Utf8Path::new("logs").join(path)]);
    let names = of_branch.map(|name| (common_dir, name));
    let folders = if git_dir == common_dir { vec![common_dir] } else { vec![git_dir, common_dir] };
    let usual = folders.iter().flat_map(|folder| WRITTEN.map(|name| (*folder, name.into())));
    // Some people keep objects on another disk, or share all but a few files of a git folder.
    let objects = common_dir.join("objects").read_link_utf8().is_ok().then(|| common_dir.join("objects"));
    let objects = objects.and_then(|path| path.canonicalize_utf8().ok());
    let shared = objects.as_deref().filter(|path| path.ends_with("objects")).and_then(Utf8Path::parent);
    let mut targets = Vec::new();
    for (folder, name) in usual.chain(names) {
        let path = folder.join(&name);
        let Ok(text) = path.read_link_utf8() else { continue };
        // As `core.preferSymlinkRefs` writes it.
        if name == "HEAD" && text.starts_with("refs/heads") {
            continue;
        }
        let is_known = |target: &Utf8PathBuf| match name == "objects" {
            true => target.join("pack").is_dir(),
            false => shared.is_some_and(|shared| *target == shared.join(&name)),
        };
        let target = path.canonicalize_utf8().ok().filter(is_known);
        targets.push(target.ok_or(GitError::Link(path))?);
    }
    Ok(targets)
}

/// The same for the repository that contains a folder, before anything is known of it.
pub(crate) fn check_above(folder: &Utf8Path) -> Result<(), GitError> {
    let dot_git = folder.ancestors().map(|folder| folder.join(".git"));
    let Some(dot_git) = dot_git.into_iter().find(|path| path.symlink_metadata().is_ok()) else {
        return Ok(());
    };
    check_kind(&dot_git)?;
    let is_clone = dot_git.symlink_metadata().is_ok_and(|it| it.is_dir());
    let Some(git_dir) = (if dot_git.is_dir() { Some(dot_git) } else { named(&dot_git) }) else {
        return Ok(());
    };
    let common = git_dir.join("commondir");
    check_kind(&common)?;
    // That of a running sandbox leads nowhere.
    let is_placeholder = || {
        common.symlink_metadata().is_ok_and(|it| it.is_file()) && text(&common).is_ok_and(|it| it == ".\n")
    };
    if is_clone && common.symlink_metadata().is_ok() && !is_placeholder() {
        return Err(GitError::Planted(common));
    }
    let common = text(&common);
    let common = common.map_or_else(|_| git_dir.clone(), |common| git_dir.join(common.trim_end()));
    check(&git_dir, &common)
}

/// The git folder that a `.git` file names, even if it does not exist.
pub(crate) fn named(dot_git: &Utf8Path) -> Option<Utf8PathBuf> {
    let text = text(dot_git).ok()?;
    let path = text.strip_prefix("gitdir:")?.trim();
    Some(dot_git.parent()?.join(path))
}

/// Refuses endless and blocking files; a link counts as its target.
fn check_kind(path: &Utf8Path) -> Result<(), GitError> {
    let kind = fs::metadata(path).map(|meta| meta.file_type());
    let is_endless = kind.is_ok_and(|kind| kind.is_fifo() || kind.is_char_device() || kind.is_block_device());
    if is_endless { Err(GitError::NoFile(Utf8PathBuf::from(path))) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::File;

    use super::*;

    fn write(path: &Utf8Path, text: &str) {
        testkit::write(path.as_std_path(), text);
    }

    /// A git folder with a branch, as far as it is checked.
    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        for folder in ["inner", ".git/refs/heads", ".git/info", ".git/objects/info"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        write(&root.join(".git/HEAD"), "ref: refs/heads/main\n");
        write(&root.join(".git/index"), "DIRC");
        (dir, root)
    }

    fn make_fifo(path: &Utf8Path) {
        let _ = fs::remove_file(path);
        let folder = refrain_files::Folder::open(path.parent().unwrap()).unwrap();
        assert!(folder.make_fifo(path.file_name().unwrap()).unwrap());
    }

    #[test]
    fn a_fifo_that_git_would_read_is_refused_by_name() {
        for name in [
            "HEAD",
            "index",
            "config",
            "packed-refs",
            "commondir",
            "info/exclude",
            "info/attributes",
            "objects/info/alternates",
            "refs/heads/main",
        ] {
            let (_dir, root) = folder();
            assert!(check_above(&root.join("inner")).is_ok());
            let path = root.join(".git").join(name);
            make_fifo(&path);
            for found in [check_above(&root.join("inner")), check(&root.join(".git"), &root.join(".git"))] {
                assert!(matches!(found, Err(GitError::NoFile(named)) if named == path), "{name}");
            }
        }
    }

    /// What a killed sandbox left there, for example: git would run what the other folder's configuration names.
    #[test]
    fn a_clone_that_takes_its_settings_from_another_folder_is_refused_by_name() {
        let (_dir, root) = folder();
        let planted = root.join(".git/commondir");
        write(&planted, ".\n");
        assert!(check_above(&root.join("inner")).is_ok(), "it leads nowhere");
        write(&planted, "../inner\n");
        let error = check_above(&root.join("inner")).unwrap_err();
        assert!(matches!(&error, GitError::Planted(path) if *path == planted), "{error}");
        assert!(error.to_string().ends_with(&format!("rm {planted}")), "{error}");
    }

    #[test]
    fn a_fifo_behind_a_link_or_in_the_git_folder_of_a_worktree_is_refused_too() {
        let (_dir, root) = folder();
        make_fifo(&root.join("fifo"));
        std::os::unix::fs::symlink("../fifo", root.join(".git/packed-refs")).unwrap();
        assert!(matches!(check_above(&root), Err(GitError::NoFile(_))));
        let (_dir, root) = folder();
        let git_dir = root.join(".git/worktrees/inner");
        fs::create_dir_all(&git_dir).unwrap();
        write(&root.join("inner/.git"), &format!("gitdir: {git_dir}\n"));
        write(&git_dir.join("commondir"), "../..\n");
        assert!(check_above(&root.join("inner")).is_ok());
        make_fifo(&git_dir.join("HEAD"));
        assert!(matches!(check_above(&root.join("inner")), Err(GitError::NoFile(_))));
    }

    #[test]
    fn a_link_through_which_git_would_write_is_refused_by_name() {
        let names =
            ["index", "logs", "logs/HEAD", "logs/refs/heads/main", "refs/heads", "logs/refs", "packed-refs"];
        for name in names {
            for target in ["inner", ".git/info", ".git/config", ".git/hooks/pre-commit", ".git/refrain/file"]
            {
                let (_dir, root) = folder();
                let git = root.join(".git");
                assert_eq!(link_targets(&git, &git).unwrap(), [""; 0]);
                let path = git.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
                std::os::unix::fs::symlink(root.join(target), &path).unwrap();
                let found = link_targets(&git, &git);
                assert!(matches!(found, Err(GitError::Link(named)) if named == path), "{name} {target}");
            }
        }
    }

    #[test]
    fn links_of_the_user_to_a_shared_git_folder_are_followed() {
        let (_dir, root) = folder();
        let (git, other) = (root.join(".git"), root.join("other.git"));
        for folder in ["objects/pack", "refs/heads", "logs/refs"] {
            fs::create_dir_all(other.join(folder)).unwrap();
        }
        write(&other.join("packed-refs"), "");
        let link = |name: &str| {
            let _ = fs::remove_dir_all(git.join(name));
            std::os::unix::fs::symlink(other.join(name), git.join(name)).unwrap();
        };
        link("packed-refs");
        assert!(matches!(link_targets(&git, &git), Err(GitError::Link(_))), "its objects are its own");
        let names = ["objects", "refs", "packed-refs", "logs"];
        ["objects", "refs", "logs"].iter().for_each(|name| link(name));
        let found = || BTreeSet::from_iter(link_targets(&git, &git).unwrap());
        let targets = BTreeSet::from(names.map(|name| other.join(name)));
        assert_eq!(found(), targets);
        let head = git.join("HEAD");
        fs::remove_file(&head).unwrap();
        std::os::unix::fs::symlink("refs/heads/main", &head).unwrap();
        assert_eq!(found(), targets, "as core.preferSymlinkRefs makes it");
    }

    #[test]
    fn what_keeps_every_git_from_working_is_refused_with_the_command_that_removes_it() {
        let (_dir, root) = folder();
        let shallow = root.join(".git/shallow");
        write(&shallow, &format!("{}\n{}\n", "a".repeat(40), "0".repeat(64)));
        assert!(check_above(&root).is_ok());
        write(&shallow, "garbage\n");
        let error = check_above(&root).unwrap_err().to_string();
        assert!(error.contains(&format!("rm {shallow}")), "{error}");
        fs::remove_file(&shallow).unwrap();
        let packed = root.join(".git/packed-refs");
        File::create(&packed).unwrap().set_len(LARGEST + 1).unwrap();
        let error = check_above(&root).unwrap_err().to_string();
        assert!(error.contains(&format!("mv {packed} {packed}.aside")), "{error}");
    }

    #[test]
    fn an_index_that_no_repository_has_is_refused_by_name() {
        let (_dir, root) = folder();
        File::create(root.join(".git/index")).unwrap().set_len(LARGEST + 1).unwrap();
        let error = check_above(&root).unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("{root}/.git/index has more than 1024 MiB")),
            "{error}"
        );
    }
}
