//! One interface for loops and plans: which of both an id names is found out here, and nowhere else.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use refrain_core::event::{Ask, Asker};
use refrain_core::plan::{PlanEvent, PlanState, TaskStarted};
use refrain_core::view::plan::PlanStatus;
use refrain_core::view::report::{Report, ReportFile, Verdict};
use refrain_core::view::{self, Status};
use refrain_core::{Event, LoopId, LoopState, Record, Spec};
use refrain_store::project::archive;
use refrain_store::{LoopDir, journal};
use serde::Serialize;

use super::requests::SlowRunner;
use crate::observe::follow::Follower;
use crate::service::{LoopLocation, Service};
use crate::{EngineError, LoopRequest, PlanFollower, PlanRunner, Runner};

/// Something of a loop, or the same of a plan.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ByKind<L, P> {
    Loop(L),
    Plan(P),
}

impl ByKind<Status, PlanStatus> {
    /// The runner that drives it, or drove it last.
    pub fn runner(&self) -> Option<&view::Runner> {
        match self {
            Self::Loop(status) => status.runner.as_ref(),
            Self::Plan(status) => status.runner.as_ref(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct PlanReport {
    pub status: PlanStatus,
    pub rounds: Vec<(TaskStarted, Report)>,
}

impl Service {
    /// The loop or the plan of this id, the archive included.
    pub fn find(&self, id: &LoopId) -> Result<ByKind<LoopLocation, LoopDir>, EngineError> {
        let dir = self.project.plan_dir(id);
        match self.archived.get(id) {
            Some(ByKind::Plan(dir)) => return Ok(ByKind::Plan(dir.clone())),
            None if dir.exists() => return Ok(ByKind::Plan(dir)),
            Some(ByKind::Loop(_)) | None => {}
        }
        match (self.locate(id), archive::find_plan(&self.project, id)) {
            (Err(EngineError::NoLoop { .. }), Some(archived)) => Ok(ByKind::Plan(archived)),
            (located, _) => located.map(ByKind::Loop),
        }
    }

    /// The same, to read the archived loop or plan in the folder of this name, whatever its id reaches; none if it is not there.
    pub fn reading_archived(&self, id: &LoopId, folder: &str) -> Option<Self> {
        let [own, plan] = [self.project.archive(), self.project.plan_archive()]
            .map(|archive| LoopDir(archive.join(folder)));
        let archived = match self.find(id) {
            Ok(ByKind::Loop(found)) if found.dir == own => BTreeMap::new(),
            Ok(ByKind::Plan(found)) if found == plan => BTreeMap::new(),
            _ if own.0.is_dir() => BTreeMap::from([(id.clone(), ByKind::Loop(own))]),
            _ if plan.0.is_dir() => {
                let mut archived = self.archived_rounds(&plan);
                archived.insert(id.clone(), ByKind::Plan(plan));
                archived
            }
            _ => return None,
        };
        Some(Self { archived, ..self.clone() })
    }

    /// The folders of the loops of an archived plan: those of a later plan of its name have the same names.
    fn archived_rounds(&self, plan: &LoopDir) -> BTreeMap<LoopId, ByKind<LoopDir, LoopDir>> {
        let archived = archive::by_id(&self.project.archive());
        let records = journal::records_as::<PlanState>(plan).unwrap_or_default().into_iter();
        let round = |Record { at, event, .. }: Record<PlanEvent>| {
            let PlanEvent::TaskStarted(started) = event else { return None };
            let began = |dir: &LoopDir| journal::read(dir).ok().map(|read| read.state.started_at);
            let dirs = archived.get(&started.id)?.iter();
            let later = dirs.filter_map(|dir| Some((began(dir).filter(|began| *began >= at)?, dir)));
            let (_, dir) = later.min_by_key(|(began, _)| *began)?;
            Some((started.id, ByKind::Loop(dir.clone())))
        };
        records.filter_map(round).collect()
    }

    pub fn standing(&self, id: &LoopId) -> Result<ByKind<Status, PlanStatus>, EngineError> {
        Ok(match self.find(id)? {
            ByKind::Loop(_) => ByKind::Loop(self.status(id)?),
            ByKind::Plan(_) => ByKind::Plan(self.plan_status(id)?),
        })
    }

    /// Asks something of a loop, or a plan, for this asker, and returns its state after it was heard. A runner that lives is
    /// asked; without one it is done here. `slow` is called with the runner if that does not answer: it hangs, is stopped, or
    /// cannot be reached.
    /// Errors: [`EngineError::Refused`] if the state does not allow it, and it is unchanged; else what failed.
    pub fn ask(
        &self,
        id: &LoopId,
        what: LoopRequest,
        ask: (Ask, Asker),
        slow: impl FnOnce(SlowRunner),
    ) -> Result<ByKind<LoopState, PlanState>, EngineError> {
        Ok(match self.find(id)? {
            ByKind::Loop(found) => ByKind::Loop(self.ask_machine(&found.dir, id, what, ask, slow)?),
            ByKind::Plan(dir) => ByKind::Plan(self.ask_machine(&dir, id, what, ask, slow)?),
        })
    }

    /// Takes over a loop, or a plan, that was just started or resumed elsewhere: what a detached runner does.
    pub fn take(&self, id: &LoopId) -> Result<ByKind<Runner, PlanRunner>, EngineError> {
        Ok(match self.find(id)? {
            ByKind::Loop(found) => ByKind::Loop(self.take_loop(id, found.dir)?),
            ByKind::Plan(dir) => ByKind::Plan(self.take_plan(id, dir)?),
        })
    }

    /// Follows a loop, or a plan, from its first event on: of a loop's agents, what they print from now on.
    pub fn watch(&self, id: &LoopId) -> Result<ByKind<Follower, PlanFollower>, EngineError> {
        Ok(match self.find(id)? {
            ByKind::Loop(_) => ByKind::Loop(self.follow(id, false)?),
            ByKind::Plan(dir) => ByKind::Plan(PlanFollower::of(dir)?),
        })
    }

    /// The events of a loop, or a plan, without what must not be seen outside.
    pub fn redacted_events(&self, id: &LoopId) -> Result<Vec<Record<ByKind<Event, PlanEvent>>>, EngineError> {
        fn each<E, T>(records: Vec<Record<E>>, of: impl Fn(E) -> T) -> Vec<Record<T>> {
            let records = records.into_iter();
            records.map(|Record { seq, at, event }| Record { seq, at, event: of(event) }).collect()
        }
        Ok(match self.find(id)? {
            ByKind::Loop(found) => {
                each(journal::records(&found.dir)?, |event: Event| ByKind::Loop(event.redacted()))
            }
            ByKind::Plan(_) => each(self.plan_events(id)?, |event: PlanEvent| ByKind::Plan(event.redacted())),
        })
    }

    /// The report on a loop; of a plan, its status and the reports on its loops.
    pub fn report(&self, id: &LoopId) -> Result<ByKind<Report, PlanReport>, EngineError> {
        Ok(match self.find(id)? {
            ByKind::Loop(_) => ByKind::Loop(self.loop_report(id)?),
            ByKind::Plan(_) => {
                let status = self.plan_status(id)?;
                let rounds = self.plan_rounds(id)?.into_iter();
                let rounds = rounds.map(|round| self.loop_report(&round.id).map(|report| (round, report)));
                ByKind::Plan(PlanReport { status, rounds: rounds.collect::<Result<_, _>>()? })
            }
        })
    }

    /// Checks every byte of a journal, whether what it says of logs, trees and commits is so, and whether the given
    /// report on the loop says the same. Of a plan, its own verdict comes first, then those of its loops.
    /// Errors: [`EngineError`] if it is not there or its journal cannot be read; one that is damaged is a verdict.
    pub fn verify(
        &self,
        id: &LoopId,
        given: Option<&ReportFile>,
    ) -> Result<ByKind<Verdict, Vec<Verdict>>, EngineError> {
        Ok(match self.find(id)? {
            ByKind::Loop(_) => ByKind::Loop(self.verify_loop(id, given)?),
            ByKind::Plan(_) if given.is_some() => return Err(EngineError::IsPlan(id.clone())),
            ByKind::Plan(_) => ByKind::Plan(self.verify_plan(id)?),
        })
    }

    /// The process that drives a loop, or a plan, if that is stopped: nothing that is asked is done before it is
    /// continued.
    pub fn stopped_runner(&self, id: &LoopId) -> Option<i32> {
        self.standing(id).ok()?.runner().filter(|runner| runner.stopped)?.pid
    }

    /// The data folder of a loop or a plan, and that of the loop whose attempt started it.
    pub fn family(&self, id: &LoopId) -> Result<(Utf8PathBuf, Option<Utf8PathBuf>), EngineError> {
        let dir = match self.find(id)? {
            ByKind::Loop(found) => found.dir,
            ByKind::Plan(dir) => dir,
        };
        Ok((dir.0, self.spec_of(id)?.parent))
    }

    /// The specification of a loop, or of each loop of a plan.
    pub fn spec_of(&self, id: &LoopId) -> Result<Spec, EngineError> {
        Ok(match self.find(id)? {
            ByKind::Loop(found) => journal::read(&found.dir)?.state.spec,
            ByKind::Plan(dir) => *journal::read_as::<PlanState>(&dir)?.state.spec.each,
        })
    }
}
