//! The places of a loop on this machine, for its sandbox.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU32, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::Spec;
use refrain_core::sandbox::{GitFolders, Mechanism, Places, hidden_below};
use refrain_core::spec::AgentKind;

use crate::Host;

/// How deep submodules of submodules are looked for, and how many there may be.
const MODULE_DEPTH: u32 = 8;
const MOST_MODULES: usize = 200;
/// Files in a git folder with a longer path could not be reached.
const LONGEST_MODULE: usize = 3 << 10;
/// No path in a git folder is longer.
const LONGEST_PATH: u64 = 8 << 10;

/// Variables that say where an agent's home is, and its path in there.
const HOMES: [(&str, &str, AgentKind); 5] = [
    ("CLAUDE_CONFIG_DIR", "", AgentKind::Claude),
    ("CODEX_HOME", "", AgentKind::Codex),
    ("XDG_CONFIG_HOME", "opencode", AgentKind::Opencode),
    ("XDG_DATA_HOME", "opencode", AgentKind::Opencode),
    ("XDG_STATE_HOME", "opencode", AgentKind::Opencode),
];
/// The same of an agent's caches.
const CACHES: [(&str, &str, AgentKind); 2] = [
    ("XDG_CACHE_HOME", "opencode", AgentKind::Opencode),
    ("XDG_DATA_HOME", "opencode/snapshot", AgentKind::Opencode),
];

/// Variables that say where programs keep what is hidden, and where that is without them.
const BASES: [(&str, &str); 3] =
    [("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share"), ("XDG_STATE_HOME", ".local/state")];
/// Variables that say where credentials are, and their path in there.
const CREDENTIALS: [(&str, &str); 14] = [
    ("GNUPGHOME", ""),
    ("GH_CONFIG_DIR", ""),
    ("CLOUDSDK_CONFIG", ""),
    ("AZURE_CONFIG_DIR", ""),
    ("AWS_SHARED_CREDENTIALS_FILE", ""),
    ("AWS_CONFIG_FILE", ""),
    ("GOOGLE_APPLICATION_CREDENTIALS", ""),
    ("KUBECONFIG", ""),
    ("DOCKER_CONFIG", ""),
    ("NETRC", ""),
    ("PGPASSFILE", ""),
    ("NPM_CONFIG_USERCONFIG", ""),
    ("CARGO_HOME", "credentials.toml"),
    ("HISTFILE", ""),
];

/// The places, for a process that starts in `dir`. `show` are files of Refrain that it reads, and the layer over the
/// user's caches is kept in the loop's folder.
pub(super) fn places(
    spec: &Spec,
    host: &Host,
    dir: &Utf8Path,
    (mut show, loop_dir): (Vec<Utf8PathBuf>, Option<&Utf8Path>),
) -> Places {
    let checkout = (!dir.starts_with(&spec.worktree)).then(|| {
        let depth =
            spec.working_dir.strip_prefix(&spec.worktree).map_or(0, |inside| inside.components().count());
        dir.ancestors().nth(depth).unwrap_or(dir).to_owned()
    });
    let checkout_git = checkout.as_deref().and_then(git_dirs);
    let linked = checkout_git.clone().filter(|git| is_linked_to(&spec.project, git));
    // A gate in a checkout of its own reads its history.
    show.extend(checkout_git.into_iter().flat_map(|git| [git.own, git.common]));
    let is_files = spec.sandbox.as_ref().is_some_and(|sandbox| sandbox.mechanism == Mechanism::Files);
    let git = git_dirs(&spec.worktree).filter(|git| !is_files || is_linked_to(&spec.project, git));
    let modules = git.as_ref().map(modules).unwrap_or_default();
    let env = host.env.as_slice();
    let of_agents = |rows: &[(&str, &str, AgentKind)]| {
        let named = rows.iter().flat_map(|(name, inside, kind)| {
            named_by(env, name, inside).into_iter().map(|path| (*kind, path))
        });
        named.collect()
    };
    let credentials = CREDENTIALS.iter().flat_map(|(name, inside)| named_by(env, name, inside));
    let in_bases = BASES.iter().flat_map(|(name, usual)| {
        hidden_below(usual).flat_map(|inside| named_by(env, name, inside.as_str()))
    });
    let home = Utf8PathBuf::from(variable(env, "HOME").unwrap_or("/nonexistent"));
    let link_targets = linked_from_hidden(&home).filter(|path| !spec.worktree.starts_with(path));
    Places {
        checkout,
        checkout_git: linked,
        worktree: spec.worktree.clone(),
        git,
        modules,
        credentials: credentials.chain(in_bases).chain(link_targets).collect(),
        home: home.clone(),
        own: vec![
            host.data_home.clone(),
            host.state_home.clone(),
            host.config_home.clone(),
            // Where a project has its loops: without git, and where `.git` is a link of the user's.
            spec.project.join(".refrain/data"),
            spec.project.join(".git/refrain"),
        ],
        show,
        agent_homes: of_agents(&HOMES),
        agent_caches: of_agents(&CACHES),
        cache_layers: loop_dir.map(|dir| dir.join("caches")),
        verification: None,
        is_base_clean: spec.clean_checkout,
        temporary: loop_dir.map(|dir| dir.join("tmp").join(unique())),
    }
}

/// Where links in hidden folders of a home lead, within that home: many people keep their settings elsewhere and link to them.
fn linked_from_hidden(home: &Utf8Path) -> impl Iterator<Item = Utf8PathBuf> {
    let entries =
        hidden_below("").flat_map(|path| home.join(path).read_dir_utf8().into_iter().flatten().flatten());
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let targets = links.filter_map(|link| link.path().canonicalize_utf8().ok());
    targets.filter(move |target| target.starts_with(home) && target != home)
}

/// Paths of the configuration, of which `~/` is the user's home. One that is relative is none: a start refuses it.
pub(super) fn absolute(env: &[(OsString, OsString)], paths: &[Utf8PathBuf]) -> Vec<Utf8PathBuf> {
    let home = Utf8Path::new(variable(env, "HOME").unwrap_or("/nonexistent"));
    let paths = paths
        .iter()
        .map(|path| path.strip_prefix("~").map_or_else(|_| path.clone(), |inside| home.join(inside)));
    paths.filter(|path| path.is_absolute()).collect()
}

/// How many symbolic links a path may lead through.
const MOST_LINKS: u32 = 40;

/// Each place that a path leads through, from the root on, and through symbolic links.
#[must_use]
pub fn leads_through(path: &Utf8Path) -> Vec<Utf8PathBuf> {
    let (mut found, mut current, mut links) = (Vec::new(), Utf8PathBuf::from("/"), 0);
    let words =
        |path: &Utf8Path| path.components().rev().map(|it| it.as_str().to_owned()).collect::<Vec<_>>();
    let mut open = words(path);
    while let Some(word) = open.pop() {
        match word.as_str() {
            "/" => current = "/".into(),
            ".." => drop(current.pop()),
            name => {
                let next = current.join(name);
                found.push(next.clone());
                match next.read_link_utf8() {
                    Ok(target) if links < MOST_LINKS => {
                        links += 1;
                        open.extend(words(&target));
                    }
                    _ => current = next,
                }
            }
        }
    }
    found
}

/// A name that no other process of this machine has now.
fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Whether these are the folders of a linked worktree of the project: without namespaces, an agent can write what leads
/// to them.
fn is_linked_to(project: &Utf8Path, git: &GitFolders) -> bool {
    let common = git_dirs(project).and_then(|of_project| of_project.common.canonicalize_utf8().ok());
    common.is_some_and(|common| git.common == common && git.own.parent() == Some(&common.join("worktrees")))
}

fn variable<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a str> {
    let (_, value) = env.iter().rev().find(|(set, _)| set == name)?;
    value.to_str().filter(|value| value.starts_with('/'))
}

/// The paths below those that a variable names: `KUBECONFIG` may name several. The root is none.
fn named_by(env: &[(OsString, OsString)], name: &str, inside: &str) -> Vec<Utf8PathBuf> {
    let value = variable(env, name).unwrap_or_default();
    let paths = if name == "KUBECONFIG" { value.split(':').collect() } else { vec![value] };
    let paths = paths.into_iter().map(Utf8Path::new);
    // Without a slash at the end, with which a file is not found.
    let below = |path: &Utf8Path| path.components().chain(Utf8Path::new(inside).components()).collect();
    paths.filter(|path| path.is_absolute()).map(below).filter(|path: &Utf8PathBuf| path != "/").collect()
}

/// The git folders of a worktree. A plain clone's `.git` is its own whatever is in it, and a link is none: an agent could
/// have made either to lead elsewhere.
fn git_dirs(worktree: &Utf8Path) -> Option<GitFolders> {
    let path =
        |file: &Utf8Path| String::from_utf8(refrain_files::read_regular(file, LONGEST_PATH).ok()?).ok();
    let dot_git = worktree.join(".git");
    if dot_git.symlink_metadata().ok()?.is_dir() {
        return Some(GitFolders { common: dot_git.clone(), own: dot_git });
    }
    if dot_git.is_symlink() {
        return None;
    }
    let own = worktree.join(path(&dot_git)?.strip_prefix("gitdir:")?.trim()).canonicalize_utf8().ok()?;
    let common = match path(&own.join("commondir")) {
        Some(text) => own.join(text.trim()).canonicalize_utf8().ok()?,
        None => own.clone(),
    };
    Some(GitFolders { own, common })
}

/// The git folders of a repository's submodules; a linked worktree has its own.
fn modules(git: &GitFolders) -> Vec<Utf8PathBuf> {
    let own = (git.own != git.common).then(|| git.own.join("modules"));
    let mut found = Vec::new();
    let mut open: Vec<_> =
        own.into_iter().chain([git.common.join("modules")]).map(|folder| (folder, 0)).collect();
    while let Some((folder, depth)) = open.pop() {
        // An agent can make a folder that looks like that of a submodule, and in it a link to a repository elsewhere.
        if depth > MODULE_DEPTH || folder.as_str().len() > LONGEST_MODULE || folder.is_symlink() {
            continue;
        }
        for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if !(path.join("HEAD").is_file() && path.join("objects").is_dir()) {
                open.push((path.to_owned(), depth + 1));
            } else if found.len() < MOST_MODULES {
                found.push(path.to_owned());
                open.push((path.join("modules"), depth + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_names_files_and_folders() {
        let env = [
            ("KUBECONFIG".into(), "/k/one:/k/two".into()),
            ("NETRC".into(), "/n/netrc".into()),
            ("XDG_CONFIG_HOME".into(), "/c/".into()),
            ("HISTFILE".into(), "/".into()),
            ("GNUPGHOME".into(), "gnupg".into()),
        ];
        for (name, inside, expected) in [
            ("KUBECONFIG", "", &["/k/one", "/k/two"][..]),
            ("NETRC", "", &["/n/netrc"]),
            ("XDG_CONFIG_HOME", "git/credentials", &["/c/git/credentials"]),
            ("HISTFILE", "", &[]),
            ("GNUPGHOME", "", &[]),
            ("PGPASSFILE", "", &[]),
        ] {
            let paths: Vec<String> = named_by(&env, name, inside).into_iter().map(Into::into).collect();
            assert_eq!(paths, expected, "{name}");
        }
    }

    #[test]
    fn a_path_leads_through_each_link() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
        std::fs::create_dir_all(root.join("work/deep")).unwrap();
        std::os::unix::fs::symlink("work/deep/../link", root.join("mine")).unwrap();
        std::os::unix::fs::symlink("/usr", root.join("work/link")).unwrap();
        let through = leads_through(&root.join("mine/lib"));
        let expected = [root.join("mine"), root.join("work"), root.join("work/deep"), root.join("work/link")];
        let expected = [&expected[..], &["/usr".into(), "/usr/lib".into()]].concat();
        assert!(through.ends_with(&expected), "{through:?}");
    }

    #[test]
    fn submodules_lead_to_no_repository_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        let (folder, other) = (root.join("clone/.git/modules"), root.join("other/.git"));
        let planted = folder.join("planted");
        for git in [&planted, &other] {
            make_git_folder(git);
        }
        std::os::unix::fs::symlink(root.join("other"), planted.join("modules")).unwrap();
        assert_eq!(modules_of("clone", root), std::slice::from_ref(&planted));
        std::fs::rename(&folder, root.join("away")).unwrap();
        std::os::unix::fs::symlink(root, &folder).unwrap();
        assert_eq!(modules_of("clone", root), Vec::<Utf8PathBuf>::new());
    }

    #[test]
    fn submodules_of_submodules_and_of_a_linked_worktree_are_found_up_to_a_number() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        let own = root.join("project/.git/worktrees/linked/modules");
        let in_project = root.join("project/.git/modules");
        let expected = [in_project.join("lib"), in_project.join("lib/modules/deep"), own.join("libs/one")];
        expected.iter().for_each(|git| make_git_folder(git));
        assert_eq!(modules_of("linked", root), expected);
        for number in 0..=MOST_MODULES {
            make_git_folder(&in_project.join(format!("more/{number}")));
        }
        assert_eq!(modules_of("project", root).len(), MOST_MODULES);
    }

    #[test]
    fn what_links_in_hidden_folders_lead_to_is_hidden_within_the_home() {
        let dir = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
        for folder in [".ssh", ".config/gh", "dotfiles"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        refrain_store::write_atomic(&home.join("dotfiles/key"), b"secret").unwrap();
        refrain_store::write_atomic(&home.join("dotfiles/hosts.yml"), b"secret").unwrap();
        let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, home.join(name)).unwrap();
        link("../dotfiles/key", ".ssh/id");
        link("../../dotfiles/hosts.yml", ".config/gh/hosts.yml");
        link("/usr", ".ssh/usr");
        let mut found: Vec<_> = linked_from_hidden(&home).collect();
        found.sort();
        assert_eq!(found, [home.join("dotfiles/hosts.yml"), home.join("dotfiles/key")]);
    }

    fn make_git_folder(git: &Utf8Path) {
        std::fs::create_dir_all(git.join("objects")).unwrap();
        refrain_store::write_atomic(&git.join("HEAD"), b"ref: refs/heads/main\n").unwrap();
    }

    /// Of a project, or of a linked worktree of a project.
    fn modules_of(name: &str, root: &Utf8Path) -> Vec<Utf8PathBuf> {
        let common = if name == "linked" { root.join("project/.git") } else { root.join(name).join(".git") };
        let own = if name == "linked" { common.join("worktrees/linked") } else { common.clone() };
        modules(&GitFolders { own, common })
    }

    #[test]
    fn an_agent_cannot_lead_a_clone_to_another_folder() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
        let (clone, own, elsewhere) = (root.join("clone"), root.join("clone/.git"), root.join("elsewhere"));
        for folder in [&own, &elsewhere] {
            std::fs::create_dir_all(folder).unwrap();
        }
        refrain_store::write_atomic(&own.join("commondir"), b"../../elsewhere\n").unwrap();
        assert_eq!(git_dirs(&clone), Some(GitFolders { own: own.clone(), common: own.clone() }));
        std::fs::remove_dir_all(&own).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &own).unwrap();
        assert_eq!(git_dirs(&clone), None);
    }
}
