//! Which plan a verb means: the one that is named, else the one that was touched last of those that it could mean.

use refrain_core::LoopId;
use refrain_core::view::StatusWord;
use refrain_core::view::plan::PlanStatus;
use refrain_engine::{EngineError, Service};

use crate::error::{CliError, Code};

/// Which plan.
#[derive(Debug, clap::Args)]
pub(crate) struct WhichArgs {
    /// Which; where it is left out, the one of its tag that was touched last, or of all
    id: Option<LoopId>,
    /// What its tasks are called together
    #[arg(long, value_name = "TAG", conflicts_with = "id")]
    tag: Option<String>,
}

impl WhichArgs {
    /// The plan that `verb` means; without a name, of those that it `could_be`.
    pub(crate) fn find(
        &self,
        service: &Service,
        verb: &str,
        could_be: impl Fn(StatusWord) -> bool,
    ) -> Result<LoopId, CliError> {
        find(service, (self.id.as_ref(), self.tag.as_deref()), verb, could_be)
    }
}

/// The same, for verbs that say it in other words.
pub(super) fn find(
    service: &Service,
    (id, tag): (Option<&LoopId>, Option<&str>),
    verb: &str,
    could_be: impl Fn(StatusWord) -> bool,
) -> Result<LoopId, CliError> {
    if let Some(id) = id {
        return match service.has_plan(id) {
            true => Ok(id.clone()),
            false => Err(no_plan(service, id)?),
        };
    }
    let all: Vec<PlanStatus> =
        service.plans()?.iter().filter_map(|id| service.plan_status(id).ok()).collect();
    let of_tag = |plan: &&PlanStatus| tag.is_none_or(|tag| plan.tag == tag);
    let mut candidates: Vec<_> = all.iter().filter(of_tag).collect();
    if let (Some(tag), true) = (tag, candidates.is_empty()) {
        let mut tags: Vec<_> = all.iter().map(|plan| plan.tag.as_str()).collect();
        tags.sort_unstable();
        tags.dedup();
        let error = CliError::new(Code::NotFound, format!("no plan of this project works on {tag}"));
        return Err(match tags.is_empty() {
            true => error.hint("there is none; refrain plan run starts one"),
            false => error.hint(format!("there are plans of: {}", tags.join(", "))),
        });
    }
    candidates.retain(|plan| could_be(plan.status));
    candidates.sort_by_key(|plan| plan.updated_at);
    candidates.last().map(|plan| plan.id.clone()).ok_or_else(|| {
        CliError::usage(format!("no plan of this project can be meant by {verb} without an ID"))
            .hint("refrain list shows what there is")
    })
}

fn no_plan(service: &Service, id: &LoopId) -> Result<CliError, CliError> {
    let plans = service.plans()?;
    let names = plans.iter().map(LoopId::as_str);
    let project = &service.project().root;
    let error = CliError::new(Code::NotFound, format!("no plan {id} in {project}"));
    let is_loop = !matches!(service.locate(id), Err(EngineError::NoLoop { .. }));
    Ok(match (is_loop, refrain_core::text::nearest(id.as_str(), names)) {
        (true, _) => error.hint(format!("{id} is a loop: refrain status {id}")),
        (false, Some(nearest)) => error.hint(format!("did you mean {nearest}?")),
        (false, None) => error.hint("refrain list shows what there is"),
    })
}
