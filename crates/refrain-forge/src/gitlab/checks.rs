//! GitLab's checks of a commit: the jobs of its pipelines, and statuses of external systems. Whether some are
//! expected follows from the pipelines and from the file that configures them.

use std::collections::HashSet;

use refrain_core::git::Oid;
use refrain_core::text::printable;
use serde::Deserialize;
use serde_json::Value;

use crate::checks::{Check, CheckState, Checks, ChecksSetup, summary};
use crate::error::Trouble;
use crate::gitlab::GitLab;
use crate::place::encoded;

#[derive(Debug, Deserialize)]
struct Pipeline {
    id: u64,
    status: String,
    /// What the pipeline runs for and what triggered it: of pipelines with equal values only the newest counts.
    #[serde(rename = "ref")]
    name: Option<String>,
    source: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Job {
    id: u64,
    name: String,
    status: String,
    #[serde(default)]
    allow_failure: bool,
    web_url: Option<String>,
    failure_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Status {
    name: String,
    status: String,
    #[serde(default)]
    allow_failure: bool,
    target_url: Option<String>,
    description: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Project {
    builds_access_level: Option<String>,
    ci_config_path: Option<String>,
    auto_devops_enabled: Option<bool>,
}

impl GitLab {
    pub(crate) fn all_checks(&self, head: &Oid) -> Result<Checks, Trouble> {
        let endpoint = self.at(&format!("pipelines?sha={head}&order_by=id&sort=desc&per_page=30"));
        let mut pipelines: Vec<Pipeline> = self.api.get(&endpoint)?;
        let mut seen = HashSet::new();
        pipelines.retain(|it| seen.insert((it.name.clone(), it.source.clone())));
        let mut list: Vec<Check> = Vec::new();
        for pipeline in &pipelines {
            let endpoint = self.at(&format!("pipelines/{}/jobs", pipeline.id));
            list.extend(self.api.all::<Job>(&endpoint, "")?.into_iter().map(Check::from));
        }
        // The statuses include the jobs again; only those of external systems are added.
        let endpoint = self.at(&format!("repository/commits/{head}/statuses"));
        for status in self.api.all::<Status>(&endpoint, "")? {
            if !list.iter().any(|check| check.name == status.name) {
                list.push(Check::from(status));
            }
        }
        let has_begun =
            |it: &Pipeline| matches!(of_job(&it.status, false), CheckState::Queued | CheckState::Running);
        let unfinished = pipelines.iter().any(has_begun);
        let configured = match list.is_empty() && !unfinished {
            false => ChecksSetup::Yes("some were reported".to_owned()),
            true => self.is_configured(head)?,
        };
        Ok(Checks { head: head.clone(), list, required: Vec::new(), unfinished, configured })
    }

    fn is_configured(&self, head: &Oid) -> Result<ChecksSetup, Trouble> {
        let project: Option<Project> = self.api.look(self.at("").trim_end_matches('/'), "")?;
        let Some(project) = project else {
            return Ok(ChecksSetup::Unknown("this login may not see how the project is set up".to_owned()));
        };
        if project.builds_access_level.as_deref() == Some("disabled") {
            return Ok(ChecksSetup::No);
        }
        let file = project.ci_config_path.filter(|path| !path.is_empty());
        let file = file.unwrap_or_else(|| ".gitlab-ci.yml".to_owned());
        if file.contains('@') || file.contains("://") {
            return Ok(ChecksSetup::Yes(format!("the project is configured by {}", printable(&file))));
        }
        let endpoint = self.at(&format!("repository/files/{}?ref={head}", encoded(&file)));
        Ok(match self.api.look::<Value>(&endpoint, "")? {
            Some(_) => ChecksSetup::Yes(format!("the commit has {}", printable(&file))),
            None if project.auto_devops_enabled == Some(true) => {
                ChecksSetup::Yes("the project has Auto DevOps".to_owned())
            }
            None => ChecksSetup::No,
        })
    }
}

impl From<Job> for Check {
    fn from(job: Job) -> Self {
        Self {
            state: of_job(&job.status, job.allow_failure),
            name: job.name,
            required: Some(!job.allow_failure),
            url: job.web_url,
            summary: summary(&job.failure_reason.unwrap_or_default()),
            job: Some(job.id),
        }
    }
}

impl From<Status> for Check {
    fn from(status: Status) -> Self {
        Self {
            state: of_job(&status.status, status.allow_failure),
            name: status.name,
            required: Some(!status.allow_failure),
            url: status.target_url,
            summary: summary(&status.description.unwrap_or_default()),
            job: None,
        }
    }
}

/// The meaning of GitLab's job and pipeline states. A job that may fail never counts against the commit, and an
/// optional manual job is not waited for.
fn of_job(status: &str, may_fail: bool) -> CheckState {
    match status {
        "success" => CheckState::Passed,
        "failed" | "canceled" | "canceling" | "manual" if may_fail => CheckState::Neutral,
        "canceled" | "canceling" => CheckState::Cancelled,
        "skipped" => CheckState::Skipped,
        "manual" | "scheduled" => CheckState::Waiting,
        "running" => CheckState::Running,
        "created" | "waiting_for_resource" | "preparing" | "pending" | "waiting_for_callback" => {
            CheckState::Queued
        }
        _ => CheckState::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_job_are_understood() {
        for (status, may_fail, expected) in [
            ("created", false, CheckState::Queued),
            ("pending", false, CheckState::Queued),
            ("running", true, CheckState::Running),
            ("success", false, CheckState::Passed),
            ("failed", false, CheckState::Failed),
            ("failed", true, CheckState::Neutral),
            ("canceled", false, CheckState::Cancelled),
            ("skipped", false, CheckState::Skipped),
            ("manual", false, CheckState::Waiting),
            ("manual", true, CheckState::Neutral),
            ("what is new", false, CheckState::Failed),
        ] {
            assert_eq!(of_job(status, may_fail), expected, "{status} {may_fail}");
        }
    }
}
