//! GitHub's checks of a commit: check runs of its apps, mostly its own Actions, and the older statuses. Whether some
//! are expected follows from the base's protection, from the workflows, and from the suites that have begun.

use refrain_core::git::Oid;
use refrain_core::text::printable;
use serde::Deserialize;

use crate::checks::{Check, CheckState, Checks, ChecksSetup, summary};
use crate::error::Trouble;
use crate::github::{GitHub, path};

/// The app that runs a repository's own workflows. Other apps get a suite for every commit, even if they do nothing.
const ACTIONS: &str = "github-actions";

#[derive(Debug, Deserialize)]
struct Run {
    id: u64,
    name: String,
    status: String,
    conclusion: Option<String>,
    html_url: Option<String>,
    app: Option<App>,
    output: Option<Output>,
}

#[derive(Debug, Deserialize)]
struct App {
    slug: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Output {
    title: Option<String>,
    summary: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Status {
    context: String,
    state: String,
    target_url: Option<String>,
    description: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Suite {
    status: Option<String>,
    app: Option<App>,
}

#[derive(Debug, Deserialize)]
struct Workflow {
    name: String,
    state: String,
}

#[derive(Debug, Deserialize)]
struct Rule {
    #[serde(rename = "type")]
    kind: String,
    parameters: Option<Parameters>,
}

#[derive(Debug, Deserialize)]
struct Parameters {
    #[serde(default)]
    required_status_checks: Vec<Context>,
}

#[derive(Debug, Deserialize)]
struct Context {
    context: String,
}

impl GitHub {
    pub(crate) fn all_checks(&self, head: &Oid, base: &str) -> Result<Checks, Trouble> {
        let commit = |rest: &str| self.at(&format!("commits/{head}/{rest}"));
        let runs = self.api.all::<Run>(&commit("check-runs?filter=latest"), "/check_runs")?;
        let statuses = self.api.all::<Status>(&commit("status"), "/statuses")?;
        let required = self.required(base)?;
        let mut list: Vec<Check> = runs.into_iter().map(Check::from).collect();
        list.extend(statuses.into_iter().map(Check::from));
        for check in &mut list {
            check.required = required.as_ref().map(|names| names.contains(&check.name));
        }
        let required = required.unwrap_or_default();
        let (configured, unfinished) = self.expected(&list, &commit)?;
        Ok(Checks { head: head.clone(), list, required, unfinished, configured })
    }

    /// The checks that are required for a base; none if this login may not read that.
    fn required(&self, base: &str) -> Result<Option<Vec<String>>, Trouble> {
        let base = path(base);
        let protection = "/protection/required_status_checks/contexts";
        let names: Option<Option<Vec<String>>> =
            self.api.look(&self.at(&format!("branches/{base}")), protection)?;
        let rules: Option<Vec<Rule>> =
            self.api.look(&self.at(&format!("rules/branches/{base}?per_page=100")), "")?;
        if names.is_none() && rules.is_none() {
            return Ok(None);
        }
        let mut names = names.flatten().unwrap_or_default();
        let rules = rules.into_iter().flatten().filter(|rule| rule.kind == "required_status_checks");
        let checks = rules.filter_map(|rule| rule.parameters).flat_map(|it| it.required_status_checks);
        names.extend(checks.map(|check| check.context));
        names.sort();
        names.dedup();
        Ok(Some(names))
    }

    /// Whether checks are expected, and whether more will follow from those that have begun.
    fn expected(
        &self,
        list: &[Check],
        commit: &impl Fn(&str) -> String,
    ) -> Result<(ChecksSetup, bool), Trouble> {
        let suites: Option<Vec<Suite>> =
            self.api.look(&commit("check-suites?per_page=100"), "/check_suites")?;
        let suites = suites.unwrap_or_default();
        let is_own = |suite: &&Suite| suite.app.as_ref().and_then(|app| app.slug.as_deref()) == Some(ACTIONS);
        let unfinished =
            suites.iter().filter(is_own).any(|suite| suite.status.as_deref() != Some("completed"));
        if !list.is_empty() || unfinished {
            return Ok((ChecksSetup::Yes("some were reported".to_owned()), unfinished));
        }
        let workflows: Option<Vec<Workflow>> =
            self.api.look(&self.at("actions/workflows?per_page=100"), "/workflows")?;
        Ok(match workflows {
            None => {
                (ChecksSetup::Unknown("this login may not see the project's workflows".to_owned()), false)
            }
            Some(found) => match found.iter().find(|workflow| workflow.state == "active") {
                Some(workflow) => {
                    let name = printable(&workflow.name).into_owned();
                    (ChecksSetup::Yes(format!("the project has the workflow {name:?}")), false)
                }
                None => (ChecksSetup::No, false),
            },
        })
    }
}

impl From<Run> for Check {
    fn from(run: Run) -> Self {
        let is_own = run.app.and_then(|app| app.slug).as_deref() == Some(ACTIONS);
        let said = run.output.map(|output| [output.title, output.summary]).into_iter().flatten().flatten();
        Self {
            state: of_run(&run.status, run.conclusion.as_deref()),
            name: run.name,
            required: None,
            url: run.html_url,
            summary: summary(&said.collect::<Vec<_>>().join("\n")),
            // A check run of Actions has the id of its job.
            job: is_own.then_some(run.id),
        }
    }
}

impl From<Status> for Check {
    fn from(status: Status) -> Self {
        let state = match status.state.as_str() {
            "success" => CheckState::Passed,
            "failure" | "error" => CheckState::Failed,
            _ => CheckState::Running,
        };
        let summary = summary(&status.description.unwrap_or_default());
        Self { name: status.context, state, required: None, url: status.target_url, summary, job: None }
    }
}

/// The meaning of GitHub's check run states; an unknown conclusion counts as failed.
fn of_run(status: &str, conclusion: Option<&str>) -> CheckState {
    match (status, conclusion) {
        ("completed", Some("success")) => CheckState::Passed,
        ("completed", Some("neutral")) => CheckState::Neutral,
        ("completed", Some("skipped")) => CheckState::Skipped,
        ("completed", Some("cancelled" | "stale")) => CheckState::Cancelled,
        ("completed", Some("action_required")) | ("waiting", _) => CheckState::Waiting,
        ("completed", _) => CheckState::Failed,
        ("in_progress", _) => CheckState::Running,
        _ => CheckState::Queued,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_check_run_are_understood() {
        for (status, conclusion, expected) in [
            ("queued", None, CheckState::Queued),
            ("requested", None, CheckState::Queued),
            ("pending", None, CheckState::Queued),
            ("waiting", None, CheckState::Waiting),
            ("in_progress", None, CheckState::Running),
            ("completed", Some("success"), CheckState::Passed),
            ("completed", Some("failure"), CheckState::Failed),
            ("completed", Some("timed_out"), CheckState::Failed),
            ("completed", Some("startup_failure"), CheckState::Failed),
            ("completed", Some("cancelled"), CheckState::Cancelled),
            ("completed", Some("skipped"), CheckState::Skipped),
            ("completed", Some("neutral"), CheckState::Neutral),
            ("completed", Some("action_required"), CheckState::Waiting),
            ("completed", Some("what is new"), CheckState::Failed),
        ] {
            assert_eq!(of_run(status, conclusion), expected, "{status} {conclusion:?}");
        }
    }
}
