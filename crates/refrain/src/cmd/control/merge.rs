use std::process::ExitCode;

use refrain_app::verbs::merge::{Merge, merge};
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::gate::GateName;
use refrain_core::protect::LocalCommit;
use refrain_core::view::{Kind, StatusWord};
use refrain_engine::{Brief, MergeKind, MergedBranch, OwnBranch};

use crate::render::gates;
use crate::run::runtime;
use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain merge docs-3f9c
  refrain merge docs-3f9c --squash")]
pub(crate) struct Args {
    /// Which loop or plan [default: the only completed loop whose branch is not merged yet]
    id: Option<LoopId>,
    /// Make one commit of all its work
    #[arg(long)]
    squash: bool,
    /// Merge it although no gate verified it
    #[arg(long)]
    unverified: bool,
}

/// Which loops it can mean as far as a list shows that; a completed plan has handed over its work itself.
pub(crate) fn is_candidate(status: &Brief) -> bool {
    status.kind != Kind::Plan && status.status == StatusWord::Completed
}

/// Merges the branch, and says what was done.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = values::only_one(
        &service,
        args.id.as_ref(),
        ("refrain merge", "no completed loop here has a branch that is not merged yet"),
        // If that cannot be found out, the merge says why.
        |status| {
            is_candidate(status)
                && service.branch_state(&status.id).map_or(true, |branch| branch == Some(OwnBranch::Open))
        },
    )?;
    let how = Merge { squash: args.squash, unverified: args.unverified };
    let notice = |gate: &GateName, passed| out::tell(&gates::on_merged(gate, passed));
    let merged = runtime()?.block_on(merge(context, &service, &id, how, &notice))?;
    out::print(&format!("{}\n", merge_words(&merged)));
    if let Ok(plan) = service.plan(&id) {
        let tasks = plan.landed_but_to_do().map(|task| task.as_str()).collect::<Vec<_>>().join(", ");
        if !tasks.is_empty() {
            out::tell_note(format!(
                "{} does not say that these tasks are done, and another plan would do them again: {tasks}",
                plan.spec.tasks
            ));
        }
    }
    Ok(Code::Done.into())
}

/// What was merged, in a sentence, and what it lacks.
pub(crate) fn merge_words(MergedBranch { name, into, head, how, submodules }: &MergedBranch) -> String {
    let into = into.as_deref().unwrap_or("the detached head");
    let at = head.short();
    let mut text = match how {
        MergeKind::UpToDate => format!("{into} has all of {name} already"),
        MergeKind::FastForward => format!("merged {name} into {into}: fast-forward to {at}"),
        MergeKind::Merge => format!("merged {name} into {into}: merge commit {at}"),
        MergeKind::Squash => format!("merged {name} into {into}: one commit, {at}"),
    };
    for LocalCommit { path, commit } in submodules {
        let commit = commit.short();
        text.push_str(&format!(
            "\n  note: {path} is a submodule at commit {commit}, and this clone knows no remote that has that commit; git submodule \
             update --init {path} fetches it if a remote has it"
        ));
    }
    text
}
