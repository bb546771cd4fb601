//! `refrain fleet list`: the loops that the server gives to workers, and where each is.

use futures::StreamExt;
use refrain_app::options::fleet::ListArgs;
use refrain_app::{Context, RequestError};
use refrain_core::text::printable;
use refrain_engine::chain;
use serde::Serialize;
use temporalio_client::{WorkflowExecution, WorkflowExecutionStatus, WorkflowListOptions};
use temporalio_common::search_attributes::SearchAttributeKey;

use crate::settings::{Settings, failed};
use crate::shared::labels::{AGENT, PLAN, POOL, PROJECT, STATE, TEAM};
use crate::{say, workflow};

/// So many at most: the newest.
const MOST: usize = 1000;

#[derive(Debug, PartialEq, Eq, Serialize)]
struct LoopRow {
    id: String,
    /// Without labels only whether it is over is known.
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    team: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
}

/// Prints them.
pub(crate) async fn run(context: &Context, args: ListArgs) -> Result<(), RequestError> {
    let client = Settings::read(context)?.connect("refrain").await?;
    let mut options = WorkflowListOptions::default();
    options.limit = Some(MOST + 1);
    let mut found = client.list_workflows(query(&args), options);
    let mut rows = Vec::new();
    while let Some(execution) = found.next().await {
        let execution = execution.map_err(|error| {
            failed(format!("the server does not list loops: {}", chain(&error)))
                .hint("refrain doctor --fleet says whether it can filter them; refrain fleet init sets it up")
        })?;
        rows.push(row(&execution));
    }
    if rows.len() > MOST {
        rows.truncate(MOST);
        say::line(&format!(
            "showing the newest {MOST}; filter by --project, --state, --pool, --team or --plan for others"
        ));
    }
    if args.json {
        say::print(&serde_json::to_string_pretty(&rows).map_err(failed)?);
    } else if rows.is_empty() {
        say::print("no loops at the server that fit");
    } else {
        rows.iter().for_each(|row| say::print(&printable(&line(row))));
    }
    Ok(())
}

/// What the server is asked, in its language. The values hold no quotes.
fn query(args: &ListArgs) -> String {
    let state = args.state.map(|state| state.word().to_owned());
    let asked = [
        (&PROJECT, &args.project),
        (&STATE, &state),
        (&POOL, &args.pool),
        (&TEAM, &args.team),
        (&PLAN, &args.plan),
    ];
    // What continued under a new history is there once more.
    let all = format!("WorkflowType = \"{}\" AND ExecutionStatus != \"ContinuedAsNew\"", workflow::NAME);
    let asked = asked.into_iter().filter_map(|(key, value)| {
        let value = value.as_ref()?;
        Some(format!("{} = \"{value}\"", key.name()))
    });
    std::iter::once(all).chain(asked).collect::<Vec<_>>().join(" AND ")
}

fn row(execution: &WorkflowExecution) -> LoopRow {
    let labels = execution.search_attributes();
    let of = |key: &SearchAttributeKey<String>| labels.get(key);
    let is_live = matches!(execution.status(), WorkflowExecutionStatus::Running);
    let state = of(&STATE).filter(|_| is_live);
    LoopRow {
        id: execution.id().rsplit('/').next().unwrap_or_default().to_owned(),
        state: state.unwrap_or_else(|| if is_live { "unknown" } else { "ended" }.to_owned()),
        project: of(&PROJECT),
        pool: of(&POOL),
        team: of(&TEAM),
        plan: of(&PLAN),
        agent: of(&AGENT),
    }
}

fn line(row: &LoopRow) -> String {
    let LoopRow { id, state, project, pool, team, plan, agent } = row;
    let named = [("project", project), ("plan", plan), ("agent", agent), ("pool", pool), ("team", team)];
    let named = named.into_iter().filter_map(|(what, value)| Some(format!("{what} {}", value.as_ref()?)));
    std::iter::once(format!("{id}  {state}")).chain(named).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use refrain_app::options::fleet::LoopPlace;

    use super::*;

    #[test]
    fn each_filter_is_a_condition() {
        let mut args =
            ListArgs { project: None, state: None, pool: None, team: None, plan: None, json: false };
        let all = r#"WorkflowType = "FleetLoop" AND ExecutionStatus != "ContinuedAsNew""#;
        assert_eq!(query(&args), all);
        args.project = Some("shop".into());
        args.state = Some(LoopPlace::Parked);
        assert_eq!(query(&args), format!(r#"{all} AND RefrainProject = "shop" AND RefrainState = "parked""#));
    }

    #[test]
    fn a_loop_is_a_line() {
        let (project, pool, agent) = (Some("shop".into()), Some("default".into()), Some("claude".into()));
        let row = LoopRow {
            id: "job".into(),
            state: "driven".into(),
            project,
            pool,
            team: None,
            plan: None,
            agent,
        };
        assert_eq!(line(&row), "job  driven, project shop, agent claude, pool default");
    }
}
