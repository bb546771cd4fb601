//! How the work of tasks lands, and what that changes in the plan: batches, the line of what has landed, waves.

use std::collections::HashSet;

use jiff::Timestamp;

use super::MAX_RETURNS;
use crate::git::Oid;
use crate::plan::event::{MergedTask, Stop, TaskCommit, UnmergedTask, WaveNumber};
use crate::plan::state::{Batch, PlanState, Return, Stage};
use crate::plan::task::TaskId;

impl PlanState {
    pub(super) fn merge_batch(
        &mut self,
        merged: &[MergedTask],
        refused: &[UnmergedTask],
        at: Timestamp,
    ) -> Result<(), &'static str> {
        if self.batch.is_some() {
            return Err("one batch lands after the other");
        }
        if merged.is_empty() && refused.is_empty() {
            return Err("a batch has something in it");
        }
        // None for what a person took off the plan while it was merged.
        let place_of = |id: &TaskId| match self.graph.index(id) {
            Some(task) if self.proven.contains(&task) => Ok(Some(task)),
            Some(task) if self.tasks[task].rounds > 0 => Ok(None),
            None if self.gone.contains_key(id) => Ok(None),
            Some(_) => Err("only what is proven is merged"),
            None => Err("there is no such task"),
        };
        let parts = merged.iter().map(|one| place_of(&one.task)).collect::<Result<Vec<_>, _>>()?;
        let back = refused.iter().map(|one| place_of(&one.task)).collect::<Result<Vec<_>, _>>()?;
        // A task merged on top of that one holds its work, and is merged again.
        let parts: Vec<_> = parts.into_iter().map_while(|task| task).collect();
        let is_whole = parts.len() == merged.len();
        let merged = &merged[..parts.len()];
        let mut good = 0;
        for (number, (task, one)) in parts.into_iter().zip(merged).enumerate() {
            self.proven.remove(&task);
            if self.is_proven(task, one) || !self.spec.verifies() {
                good = number + 1;
            }
        }
        self.batch = (!merged.is_empty()).then(|| Batch { merged: merged.to_vec(), good, bad: None });
        for (task, one) in back.into_iter().zip(refused).filter_map(|(task, one)| Some((task?, one))) {
            match &one.why {
                Some(reason) => self.stop(task, Stop::Other { reason: reason.clone() }, at),
                None if is_whole => self.send_back(task, Return::Conflict(one.paths.clone()), at),
                // It may have been at odds with what was taken off.
                None => continue,
            }
            self.proven.remove(&task);
        }
        Ok(())
    }

    /// Whether what was merged is the very tree that the task's gates passed on.
    fn is_proven(&self, task: usize, merged: &MergedTask) -> bool {
        matches!(&self.tasks[task].stage, Stage::Proven { tree: Some(tree) } if *tree == merged.tree)
    }

    pub(super) fn land_batch(
        &mut self,
        commits: &[Option<Oid>],
        refused: Option<&String>,
        tip: &Oid,
        at: Timestamp,
    ) -> Result<(), &'static str> {
        let batch = self.batch.as_ref().ok_or("no batch lands")?;
        let landed = commits.len();
        let is_whole = if refused.is_some() { landed < batch.good } else { landed == batch.good };
        if batch.question().is_some() || !is_whole {
            return Err("it is not known to be well");
        }
        let parts = batch.merged.iter().map(|one| self.place(&one.task)).collect::<Result<Vec<_>, _>>()?;
        let mut landing = parts.iter().zip(&batch.merged).take(landed);
        let is_verified = self.spec.verifies() || landing.all(|(task, one)| self.is_proven(*task, one));
        self.landed_unverified |= !is_verified;
        let bad = self.batch.take().and_then(|batch| batch.bad);
        for (task, commit) in parts.iter().zip(commits) {
            self.land(*task, commit.clone(), at);
        }
        match (parts.get(landed), refused, bad) {
            (Some(task), Some(reason), _) => self.stop(*task, Stop::Other { reason: reason.clone() }, at),
            (Some(task), None, Some((_, failed))) => self.send_back(*task, Return::Failed(failed), at),
            (None, _, _) | (Some(_), None, None) => {}
        }
        self.tip = Some(tip.clone());
        for task in parts.into_iter().skip(landed + 1) {
            match self.tasks[task].is_withdrawn {
                true => self.withdraw(task),
                false => self.proven.extend([task]),
            }
        }
        Ok(())
    }

    pub(super) fn complete_wave(
        &mut self,
        number: WaveNumber,
        commit: Option<&Oid>,
        (tasks, rest): (&[TaskId], &[Oid]),
        at: Timestamp,
    ) -> Result<(), &'static str> {
        let current = self.current_wave();
        if number.place() != Some(current) {
            return Err("waves are completed one after the other");
        }
        if self.waves.len() <= current {
            return Err("there is no such wave");
        }
        if let Some(commit) = commit {
            let tasks: HashSet<_> = tasks.iter().collect();
            let (its, later) = self.line.iter().cloned().partition(|(id, _)| tasks.contains(id));
            self.follow(commit, later, rest)?;
            self.handover.due.push((number, its));
        }
        self.handover.refused = None;
        let wave = &mut self.waves[current];
        (wave.completed, wave.completed_at) = (Some(commit.cloned()), Some(at));
        // The file, or a person, may have brought something new into it while its commit was made.
        if wave.open > 0 {
            self.arrange();
        }
        Ok(())
    }

    /// The complete waves are at this commit. Work that landed ahead of its wave is not in it, and was made anew on top
    /// of it.
    pub(super) fn follow(
        &mut self,
        commit: &Oid,
        line: Vec<(TaskId, Oid)>,
        rest: &[Oid],
    ) -> Result<(), &'static str> {
        if rest.len() != line.len() {
            return Err("what has landed is not all there");
        }
        let places = line.iter().map(|(id, _)| self.place(id)).collect::<Result<Vec<_>, _>>()?;
        for (task, anew) in places.into_iter().zip(rest) {
            self.tasks[task].stage = Stage::Landed { commit: Some(anew.clone()) };
        }
        self.trunk = Some(commit.clone());
        self.tip = Some(rest.last().unwrap_or(commit).clone());
        self.line = line.into_iter().zip(rest).map(|((id, _), anew)| (id, anew.clone())).collect();
        Ok(())
    }

    /// These tasks have other commits now, with the same changes.
    pub(super) fn replace_commits(&mut self, commits: &[TaskCommit]) -> Result<(), &'static str> {
        for TaskCommit { task, commit } in commits {
            let place = self.place(task)?;
            if !matches!(self.tasks[place].stage, Stage::Landed { .. }) {
                return Err("only what has landed has a commit");
            }
            self.tasks[place].stage = Stage::Landed { commit: Some(commit.clone()) };
            let due = self.handover.due.iter_mut().flat_map(|(_, its)| its);
            due.filter(|(id, _)| id == task).for_each(|(_, known)| known.clone_from(commit));
        }
        Ok(())
    }

    pub(super) fn land(&mut self, task: usize, commit: Option<Oid>, at: Timestamp) {
        let state = &mut self.tasks[task];
        self.line.extend(commit.clone().map(|commit| (state.card.id.clone(), commit)));
        (state.stage, state.again) = (Stage::Landed { commit }, None);
        state.settled_at = Some(at);
        self.settle(task);
        for dependent in self.graph.dependents(task) {
            let state = &mut self.tasks[dependent];
            if let Stage::Waiting(unmet) = &mut state.stage {
                *unmet = unmet.saturating_sub(1);
                if *unmet == 0 && !state.is_hopeless {
                    self.make_ready(dependent);
                }
            }
        }
    }

    /// Its own gates had passed, and yet it cannot land.
    pub(super) fn send_back(&mut self, task: usize, why: Return, at: Timestamp) {
        let state = &mut self.tasks[task];
        (state.returns, state.again) = (state.returns + 1, Some(why));
        if state.returns > MAX_RETURNS {
            return self.stop(task, Stop::Unfit, at);
        }
        if state.is_withdrawn {
            return self.withdraw(task);
        }
        // Its file may name more dependencies than when it began.
        let unmet = self.graph.dependencies(task).iter().filter(|n| !self.tasks[**n].is_met()).count();
        let state = &mut self.tasks[task];
        state.stage = Stage::Waiting(unmet);
        match (unmet, state.is_hopeless) {
            (_, true) => self.lose(task),
            (0, false) => self.make_ready(task),
            (_, false) => {}
        }
    }
}
