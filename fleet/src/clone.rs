//! The repository of a worker for the loops of one git remote.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_app::Context;
use refrain_engine::tool::{self, ToolError};

/// Where it is.
pub(crate) fn folder(context: &Context, remote: &str) -> Utf8PathBuf {
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let shown: String = remote.chars().map(word).collect();
    let end = shown.len().saturating_sub(60);
    context.host.data_home.join("fleet/clones").join(format!("{:016x}{}", hash(remote), &shown[end..]))
}

/// FNV-1a: the name has to stay the same, and nothing more.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Makes it, unless it is there. Its `origin` is where the loops publish.
pub(crate) fn prepare(folder: &Utf8Path, origin: &str) -> Result<(), ToolError> {
    let git = |words: &[&str]| tool::run("git", &[&["-C", folder.as_str()], words].concat(), "/".as_ref());
    if folder.join(".git/config").is_file() {
        return if git(&["remote", "get-url", "origin"])?.trim() == origin {
            Ok(())
        } else {
            git(&["remote", "set-url", "origin", origin]).map(drop)
        };
    }
    tool::run("git", &["init", "--quiet", folder.as_str()], "/".as_ref())?;
    git(&["remote", "add", "origin", origin]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_has_one_folder_and_another_has_another() {
        let names = ["ssh://host/a.git", "ssh://host-a.git", "/srv/a"].map(hash);
        assert_eq!(hash("ssh://host/a.git"), names[0]);
        assert!(names[0] != names[1] && names[1] != names[2]);
    }
}
