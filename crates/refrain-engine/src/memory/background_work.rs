//! What is done in a process of its own about a loop that is over, if the user's own file asks for it: the runner
//! starts that process and does not wait for it. It can change nothing about the loop; errors are in the loop's
//! `runner.log`.

use std::io;
use std::time::Duration;

use refrain_core::evolution::is_of_use;
use refrain_core::memory::{after, lessons};
use refrain_core::spec::AgentSpec;
use refrain_core::{LoopId, Spec};
use refrain_proc::detach::{self, DetachedRunner};
use refrain_proc::output;
use refrain_store::config::OwnMemory;
use refrain_store::config::keys::Evolution;
use refrain_store::{LoopDir, journal, make_dir_nofollow, memory as kept};

use super::loop_memories::Past;
use crate::child::judge_spec;
use crate::child::one_shot::{Question, Reply, ask};
use crate::{EngineError, Host, MemoryError, Service, now};

const LIMIT: Duration = Duration::from_secs(600);
/// How much of an agent's last message a judge gets, in bytes.
const EXCERPT: u64 = 4 << 10;
const LESSONS: &str = "lessons";

/// The result of asking a judge about a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReflectionOutcome {
    Remembered(usize),
    /// There was nothing to ask, or an agent was asked already.
    Nothing,
}

/// Starts what is to be done about a loop that has ended, if anything is: what is to be learnt from one with memories,
/// and what is to be proposed for it. One that an agent started gets nothing: what it would start ends with that agent.
pub(crate) fn begin(host: &Host, dir: &LoopDir) {
    let judges = OwnMemory::read(&host.config_home).judge.is_some();
    let reflects = Evolution::of_the_user(&host.config_home).agent.is_some();
    if !judges && !reflects {
        return;
    }
    // What cannot be read is reported when the loop itself is asked for.
    let Ok(state) = journal::read(dir).map(|snapshot| snapshot.state) else { return };
    // Of a plan's tasks many end at once: what each leaves is remembered, and no agent is paid to look back on it.
    let is_alone = state.spec.task.is_none();
    let leaves_something = is_alone && state.spec.memory.is_some() && !after(&state, &[]).is_empty();
    let is_wanted = (judges && leaves_something) || (reflects && is_of_use(&state));
    if state.spec.depth > 0 || !is_wanted {
        return;
    }
    let words = ["-C", state.spec.project.as_str(), "memory", "consolidate", state.spec.id.as_str()];
    // It reports its own errors, as far as it gets; if it cannot be started, nothing breaks.
    let _ = detach::start(&host.program, "refrain", &words.map(str::to_owned), &host.env, &dir.runner_log())
        .map(DetachedRunner::reap);
}

impl Service {
    /// Asks a judge what there is to learn from a loop that is over, and remembers that. One judge is asked about one
    /// end of a loop, even if this is called again.
    /// Errors: [`EngineError`] if it cannot be asked, says something else than was asked for, or nothing can be kept.
    pub fn look_back(&self, id: &LoopId, judge: &AgentSpec) -> Result<ReflectionOutcome, EngineError> {
        let unkept =
            |error: MemoryError| EngineError::Process("nothing can be remembered", io::Error::other(error));
        let dir = self.locate(id)?.dir;
        let past = Past::read(self.host(), &dir)?;
        if past.state.spec.memory.is_none() || past.memories().is_empty() {
            return Ok(ReflectionOutcome::Nothing);
        }
        let (state, home) = (&past.state, &self.host().data_home);
        if !kept::make(home, |file| file.begin_asking(state, LESSONS, now())).map_err(unkept)? {
            return Ok(ReflectionOutcome::Nothing);
        }
        let answer = self.ask_judge(&past, &dir, judge)?;
        kept::make(home, |file| file.asked(state, LESSONS, answer.cost)).map_err(unkept)?;
        let wrong = |why: String| EngineError::Process("the judge is not understood", io::Error::other(why));
        let memories = past.without_secrets(lessons::lessons(state, &answer.said).map_err(wrong)?);
        let kept = kept::make(home, |file| file.remember(memories)).map_err(unkept)?;
        Ok(ReflectionOutcome::Remembered(kept.len()))
    }

    fn ask_judge(&self, past: &Past, dir: &LoopDir, judge: &AgentSpec) -> Result<Reply, EngineError> {
        let state = &past.state;
        let last = state.last_charged().map(|attempt| dir.attempt(attempt.id));
        let last = last.and_then(|dir| {
            let message = output::read_end(&dir.last_message(), EXCERPT);
            message.or_else(|_| output::read_end(&dir.stdout(false), EXCERPT)).ok()
        });
        let last = last.map(|bytes| past.clean(&String::from_utf8_lossy(&bytes)));
        let said: Vec<&str> = past.said.iter().map(String::as_str).collect();
        let prompt = lessons::question(state, &said, last.as_deref());
        let spec = judge_spec::judging(state, judge);
        let spec = match spec.working_dir.exists() {
            true => spec,
            // A worktree of its own is gone by now.
            false => Spec { working_dir: spec.project.clone(), worktree: spec.project.clone(), ..spec },
        };
        let folder = dir.0.join("memory");
        make_dir_nofollow(&folder)?;
        let (file, schema) = (folder.join("question.md"), lessons::schema().to_string());
        let question = Question {
            spec: &spec,
            prompt: &prompt,
            file: &file,
            schema: Some(&schema),
            budget: None,
            limit: LIMIT,
        };
        ask(self.host(), &question)
    }
}
