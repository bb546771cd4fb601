//! What is protected in a git folder, and what is written there.

/// What a git folder has that runs programs, or decides which run, or where git fetches and pushes.
pub(super) const GIT_PROTECTED: [&str; 9] =
    ["hooks", "config", "config.worktree", "info", "commondir", "gitdir", "worktrees", "remotes", "branches"];
/// Where else git reads objects: what is hidden from the agent could be checked out.
pub(super) const ALTERNATES: &str = "objects/info/alternates";
/// Those that are made where they are missing: a worktree that the user adds meanwhile is protected too.
pub(super) const GIT_MADE: [&str; 3] = ["hooks", "info", "worktrees"];
/// What the user's own git would believe at once, while the process runs: where its other files and its remotes are, and its
/// settings. These contents say what holds without them.
pub(super) const GIT_PLACEHOLDERS: [(&str, Option<&str>); 5] = [
    ("commondir", Some(".\n")),
    ("config.worktree", Some("")),
    (ALTERNATES, Some("")),
    ("remotes", None),
    ("branches", None),
];
/// Where git keeps the git folders of submodules.
pub(super) const MODULES: &str = "modules";
/// What commits in a linked worktree write in the common folder.
pub(super) const GIT_OF_COMMITS: [&str; 3] = ["objects", "refs", "logs"];
/// What decides about a linked worktree.
pub(super) const WORKTREE_PROTECTED: [&str; 3] = ["commondir", "gitdir", "config.worktree"];
