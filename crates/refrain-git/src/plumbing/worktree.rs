//! A worktree in the output of `git worktree list`, and how that is parsed.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::Oid;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worktree {
    pub path: Utf8PathBuf,
    /// The commit that is checked out in it, all zeros if there is none yet.
    pub head: Option<Oid>,
    /// The branch that is checked out in it; none if its head is detached.
    pub branch: Option<String>,
    /// Why it is locked, which may be an empty text; none if it is not.
    pub locked: Option<String>,
}

pub(crate) fn real(path: &Utf8Path) -> Utf8PathBuf {
    let found = |path: &Utf8Path| path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    // The folder may be gone, but its parent is not.
    match (path.parent(), path.file_name()) {
        (Some(above), Some(name)) if !path.exists() => found(above).join(name),
        _ => found(path),
    }
}

pub(crate) fn parse(printed: &[u8]) -> Vec<Worktree> {
    let mut all = Vec::new();
    for line in printed.split(|byte| *byte == 0) {
        let line = String::from_utf8_lossy(line);
        let (key, value) = line.split_once(' ').unwrap_or((line.as_ref(), ""));
        if key == "worktree" {
            all.push(Worktree { path: value.into(), ..Worktree::default() });
        } else if let Some(last) = all.last_mut() {
            match key {
                "HEAD" => last.head = value.parse().ok(),
                "branch" => last.branch = value.strip_prefix("refs/heads/").map(str::to_owned),
                "locked" => last.locked = Some(value.to_owned()),
                _ => {}
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worktrees_are_read_as_git_lists_them() {
        let (one, none) = ("1".repeat(40), "0".repeat(40));
        let said = format!(
            "worktree /a\0HEAD {one}\0branch refs/heads/main\0\0\
             worktree /b c\0HEAD {none}\0detached\0locked why\0prunable gone\0\0"
        );
        let expected = [
            Worktree { path: "/a".into(), head: one.parse().ok(), branch: Some("main".into()), locked: None },
            Worktree {
                path: "/b c".into(),
                head: none.parse().ok(),
                branch: None,
                locked: Some("why".into()),
            },
        ];
        assert_eq!(parse(said.as_bytes()), expected);
    }
}
