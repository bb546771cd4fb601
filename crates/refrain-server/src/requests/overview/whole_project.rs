//! What concerns a whole project: what similar loops took, its memories, its settings, and the checkup of the machine.

use std::cmp::Reverse;

use refrain_core::memory::{Kind, Memory};
use refrain_core::spec::Millis;
use refrain_core::view::Kind as LoopKind;
use refrain_core::view::checkup::Checkup;
use refrain_core::view::usage::{Forecast, PastLoop};
use refrain_engine::config::{AgentChoice, Entry, ProjectFile};
use refrain_engine::{Brief, Detail, ListEntry, MemoryFilter, Service};

use crate::requests::status::name;
use crate::requests::{Refusal, RefusalKind, RequestHandler};

/// The settings that count for a loop started in a project.
pub(crate) struct ProjectSettings {
    pub(crate) user_file: String,
    /// The project's file, and whether it is trusted.
    pub(crate) project_file: Option<(String, bool)>,
    pub(crate) entries: Vec<Entry>,
}

impl RequestHandler {
    /// A project that is open as a whole, by its name; the first one by default.
    pub(crate) fn named(&self, project: Option<&str>) -> Result<Service, Refusal> {
        let Some(project) = project else { return self.whole() };
        let named = self.services().into_iter().find(|service| name(service) == project);
        let nothing = || Refusal::of(RefusalKind::NotFound, format!("there is no project {project} here"));
        named.filter(|service| self.is_whole(service)).ok_or_else(nothing)
    }

    /// What loops of this agent took: in this project, or in all that are open if there are too few.
    pub(crate) fn forecast(&self, of: &Service, agent: &str) -> Option<Forecast> {
        let services: Vec<_> = self.services().into_iter().filter(|it| self.is_whole(it)).collect();
        let mut past = Vec::new();
        for row in Service::list_each(&services, Detail::Object).ok()?.into_iter().flatten() {
            if let ListEntry::Loop(brief) = row {
                past.extend(past_loop(&brief, agent).map(|it| (brief, it)));
            }
        }
        past.sort_by_key(|(brief, _)| Reverse(brief.updated_at));
        let root = of.project().root.as_str();
        let latest = |is_own: bool| -> Vec<_> {
            let wanted = past.iter().filter(|(brief, _)| !is_own || *brief.project == *root);
            wanted.map(|(_, it)| *it).take(Forecast::MOST).collect()
        };
        Forecast::of(&latest(true)).or_else(|| Forecast::of(&latest(false)))
    }

    /// The memories of a project or, without words, of one kind; the best match first, or the newest.
    pub(crate) fn memories(
        &self,
        project: Option<&str>,
        kind: Option<Kind>,
        words: &str,
    ) -> Result<(Vec<Memory>, Option<String>), Refusal> {
        let service = self.named(project)?;
        let failed = |error: &dyn std::error::Error| Refusal::of(RefusalKind::Failed, error.to_string());
        let root = service.project().root.to_string();
        let (mut memories, trouble) = match words.trim() {
            "" => {
                let filter = MemoryFilter { project: Some(root), kind, source: None };
                (service.memories(&filter).map_err(|error| failed(&error))?, None)
            }
            words => {
                let found = service.search_memories(words, false, self.context.has_variables());
                let found = found.map_err(|error| failed(&error))?;
                (found.found.into_iter().map(|it| it.memory).collect(), found.trouble)
            }
        };
        memories.retain(|memory| kind.is_none_or(|kind| memory.kind == kind));
        Ok((memories, trouble))
    }

    pub(crate) fn settings(&self, project: Option<&str>) -> Result<ProjectSettings, Refusal> {
        let settings = self.named(project)?.settings(AgentChoice::default(), self.context.has_variables());
        let settings = settings.map_err(|error| Refusal::of(RefusalKind::Failed, error.to_string()))?;
        Ok(ProjectSettings {
            entries: settings.entries(),
            project_file: match settings.project_file {
                ProjectFile::Absent => None,
                ProjectFile::Trusted(path) => Some((path.to_string(), true)),
                ProjectFile::Untrusted(path) => Some((path.to_string(), false)),
            },
            user_file: settings.user_file.to_string(),
        })
    }

    /// The findings of `refrain doctor`; nothing is repaired.
    pub(crate) fn checkup(&self, project: Option<&str>) -> Result<Checkup, Refusal> {
        Ok(self.named(project)?.examine(false, self.context.has_variables()))
    }
}

/// A loop of this agent that ended by itself.
fn past_loop(brief: &Brief, agent: &str) -> Option<PastLoop> {
    if !PastLoop::is_basis(brief.status) || brief.kind != LoopKind::Process {
        return None;
    }
    let facts = brief.facts()?;
    let took = facts.ended_at?.duration_since(facts.started_at).unsigned_abs();
    let duration = facts.active_ms.unwrap_or(Millis::from(took));
    (facts.agent == agent).then(|| PastLoop {
        iterations: brief.iteration,
        cost_usd: facts.usage.cost_usd,
        duration,
        is_verified: brief.verified == Some(true),
    })
}
