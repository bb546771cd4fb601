//! Selects the plan of a verb: the named one; else, for reading, the one touched last, and for changes, the only
//! possible one.

use refrain_app::{Code, RequestError};
use refrain_core::LoopId;
use refrain_core::text::nearest;
use refrain_core::view::plan::PlanStatus;
use refrain_engine::Service;

use crate::values;

use crate::render::phrase;

/// Which plan.
#[derive(Debug, clap::Args)]
pub(crate) struct WhichArgs {
    /// The plan [default: the only one that the verb fits; for `status`, the one touched last]
    id: Option<LoopId>,
    /// The tag of its tasks
    #[arg(long, value_name = "TAG", conflicts_with = "id")]
    tag: Option<String>,
}

impl WhichArgs {
    /// The plan to show: without a name, the one touched last, preferring plans that have not stopped.
    pub(crate) fn latest(&self, service: &Service) -> Result<LoopId, RequestError> {
        if let Some(id) = &self.id {
            return named(service, id);
        }
        let found = of_tag(service, self.tag.as_deref())?;
        let latest = found.iter().max_by_key(|plan| (!plan.status.has_stopped(), plan.updated_at));
        latest.map(|plan| plan.id.clone()).ok_or_else(|| none(Code::Usage))
    }

    /// The plan that `verb` changes: without a name, the only one that it `is_candidate`. `none` says that there is none.
    pub(crate) fn only(
        &self,
        service: &Service,
        (verb, none): (&str, &str),
        is_candidate: impl Fn(&PlanStatus) -> bool,
    ) -> Result<LoopId, RequestError> {
        only(service, (self.id.as_ref(), self.tag.as_deref()), (verb, none), is_candidate)
    }
}

/// The same, for verbs that say it in other words.
pub(super) fn only(
    service: &Service,
    (id, tag): (Option<&LoopId>, Option<&str>),
    (verb, none): (&str, &str),
    is_candidate: impl Fn(&PlanStatus) -> bool,
) -> Result<LoopId, RequestError> {
    if let Some(id) = id {
        return named(service, id);
    }
    let mut found = of_tag(service, tag)?;
    found.retain(is_candidate);
    found.sort_by_key(|plan| std::cmp::Reverse(plan.updated_at));
    match found.as_slice() {
        [only] => Ok(only.id.clone()),
        [] => {
            let error = format!("{verb} without an ID: {none}");
            Err(RequestError::usage(error).hint("refrain list shows what there is"))
        }
        found => {
            let told = |plan: &PlanStatus| {
                let all = u32::try_from(plan.tasks_total).unwrap_or(u32::MAX);
                let landed = format!("{} of {}", plan.tasks_done, phrase::counted(all, "task", "tasks"));
                format!("{} of {}, {landed} landed", plan.status.as_str(), plan.tag)
            };
            let found: Vec<_> = found.iter().map(|plan| (&plan.id, told(plan))).collect();
            Err(values::several(verb, "plans", &found))
        }
    }
}

fn named(service: &Service, id: &LoopId) -> Result<LoopId, RequestError> {
    service.locate_plan(id)?;
    Ok(id.clone())
}

/// The plans of the project that work on a tag, or all.
fn of_tag(service: &Service, tag: Option<&str>) -> Result<Vec<PlanStatus>, RequestError> {
    let ids = service.plans()?;
    // An unreadable plan must not hide the others.
    let mut plans: Vec<_> = ids.iter().filter_map(|id| service.plan_status(id).ok()).collect();
    if plans.is_empty() {
        // Without a name, nothing was not found.
        return Err(none(if tag.is_some() { Code::NotFound } else { Code::Usage }));
    }
    let Some(tag) = tag else { return Ok(plans) };
    let mut tags: Vec<_> = plans.iter().map(|plan| plan.tag.clone()).collect();
    plans.retain(|plan| plan.tag == tag);
    if plans.is_empty() {
        tags.sort_unstable();
        tags.dedup();
        let error = RequestError::new(Code::NotFound, format!("no plan of this project works on {tag}"));
        let meant = nearest(tag, tags.iter().map(String::as_str)).map(|tag| format!("did you mean {tag}?"));
        let error = meant.into_iter().fold(error, RequestError::hint);
        return Err(error.hint(format!("there are plans of: {}", tags.join(", "))));
    }
    Ok(plans)
}

fn none(code: Code) -> RequestError {
    let error = RequestError::new(code, "this project has no plan");
    error.hint("refrain plan run --plan FILE --verify CMD starts one; refrain plan new \"IDEA\" writes a file for it")
}
