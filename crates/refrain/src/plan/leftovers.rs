//! What a stopped plan left outside its base branch, with the commands to take it or to remove it.

use refrain_core::git::OmittedPath;
use refrain_core::text::printable;
use refrain_core::view::StatusWord;
use refrain_core::view::plan::{PlanStatus, TaskView, UncommittedWork};

const SHOWN: usize = 5;

/// Landed commits that are not on the base branch; none if it has them all, or will get them by itself.
pub(crate) fn behind(view: &PlanStatus) -> Option<String> {
    let behind = view.behind.as_ref().filter(|behind| view.status.has_stopped() || behind.why.is_some())?;
    let branch = view.branch.as_deref().unwrap_or("what was checked out");
    let tasks: Vec<_> = behind.tasks.iter().map(ToString::to_string).collect();
    let task = if tasks.len() == 1 { "task" } else { "tasks" };
    let why = behind.why.as_deref().unwrap_or("the wave is not complete");
    let lacks = format!("{branch} lacks what landed of {task} {}: {why}", tasks.join(", "));
    let reference = &behind.reference;
    let text = match view.status {
        StatusWord::Cancelled => {
            let id = &view.id;
            format!("{lacks}; refrain merge {id} takes it, git update-ref -d {reference} drops it")
        }
        _ => format!("{lacks}; it is kept as {reference}"),
    };
    Some(flat(&text))
}

/// Waves that landed on the base branch, and are no longer on it.
pub(crate) fn missing(view: &PlanStatus) -> Option<String> {
    let last = view.missing.last()?;
    let waves: Vec<_> = view.missing.iter().map(|it| it.wave.to_string()).collect();
    let wave = if waves.len() == 1 { "wave" } else { "waves" };
    let branch = view.branch.as_deref().unwrap_or("what was checked out");
    let tasks: Vec<_> =
        view.missing.iter().flat_map(|it| &it.tasks_completed).map(ToString::to_string).collect();
    let task = if tasks.len() == 1 { "task" } else { "tasks" };
    Some(flat(&format!(
        "{branch} no longer has {wave} {} ({task} {}), as it was moved; git merge {} takes back what was there",
        waves.join(", "),
        tasks.join(", "),
        last.commit_hash
    )))
}

/// The branches with work that has not landed.
pub(crate) fn branches(view: &PlanStatus) -> Option<String> {
    let shown = view.branches.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    let more = match view.branches.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!shown.is_empty()).then(|| {
        let first = &view.branches[0];
        flat(&format!(
            "{shown}{more}; git log {first} shows one, git merge {first} takes it, git branch -D {first} drops it"
        ))
    })
}

pub(crate) fn uncommitted(view: &PlanStatus) -> Option<String> {
    let told = |work: &UncommittedWork| {
        let files = match work.files {
            1 => "1 file is".to_owned(),
            files => format!("{files} files are"),
        };
        format!("{files} not committed on {}, in {}", work.branch, work.folder)
    };
    let shown: Vec<_> = view.uncommitted.iter().take(SHOWN).map(told).collect();
    let more = match view.uncommitted.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!shown.is_empty()).then(|| flat(&format!("{}{more}", shown.join("; "))))
}

/// Files of its tasks that are in no commit.
pub(crate) fn left_out(view: &PlanStatus) -> Option<String> {
    let all = || view.tasks.iter().flat_map(|task| task.left_out.iter().map(move |left| (task, left)));
    let told =
        |(task, left): (&TaskView, &OmittedPath)| format!("{} of task {}: {}", left.path, task.id, left.why);
    let shown: Vec<_> = all().take(SHOWN).map(told).collect();
    let more = match all().count().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!shown.is_empty()).then(|| flat(&format!("{}{more}", shown.join("; "))))
}

fn flat(text: &str) -> String {
    printable(text).replace('\n', " ")
}
