//! What is heard of one attempt: the ear on its standard output, and what else its end is judged by. Gates are heard in
//! `gate`, agents that judge in `judge`. Lives on the supervisor's thread, which may block.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use refrain_agents::adapter::Call;
use refrain_agents::ear::{Ear, Heard};
use refrain_core::context;
use refrain_core::event::{AttemptFinished, Exit, Sealed};
use refrain_core::fingerprint::{self, Fingerprint};
use refrain_core::text::{cut_middle, printable};
use refrain_proc::{Listener, output};
use refrain_store::layout::AttemptDir;
use tokio::sync::mpsc;

use crate::agent_news::AgentNews;
use crate::gate::GateHearing;
use crate::judge::JudgeHearing;
use crate::seal;

/// How much of a failure is read for its fingerprint, in bytes.
pub(crate) const MOST_READ: usize = 256 << 10;

/// Who listens to a process of the loop's.
pub(crate) enum Hearing {
    /// To an agent.
    Attempt(Box<AttemptHearing>),
    /// To a gate.
    Gate(GateHearing),
    /// To an agent that judges: a reviewer, a critic.
    Judge(Box<JudgeHearing>),
}

impl Listener for Hearing {
    fn hear(&mut self, chunk: &[u8]) {
        match self {
            Self::Attempt(hearing) => hearing.hear(chunk),
            Self::Gate(_) => {}
            Self::Judge(hearing) => hearing.hear(chunk),
        }
    }

    fn hear_stderr(&mut self, chunk: &[u8]) {
        match self {
            Self::Attempt(hearing) => hearing.hear_stderr(chunk),
            Self::Gate(_) => {}
            Self::Judge(hearing) => hearing.hear_stderr(chunk),
        }
    }
}

/// What the runner was told last of an agent whose program waits for its provider by itself.
#[derive(Default)]
pub(crate) struct RetryNews(Option<u32>);

impl RetryNews {
    /// Tells the runner where that changed. This thread may wait for it: a notice that got lost would not come again.
    pub(crate) fn tell(&mut self, ear: &Ear, news: &mpsc::Sender<AgentNews>) {
        let retrying = ear.retrying();
        let number = retrying.map(|(number, _)| number);
        if number != self.0 {
            self.0 = number;
            let retrying = retrying.map(|(_, fault)| (fault.kind, fault.until));
            // Without a runner nobody needs to know.
            let _ = news.blocking_send(AgentNews::Retrying(retrying));
        }
    }
}

/// One attempt's ear.
pub(crate) struct AttemptHearing {
    ear: Ear,
    dir: AttemptDir,
    /// Its standard output is a stream of events.
    streams: bool,
    news: mpsc::Sender<AgentNews>,
    /// It was told that the provider answered.
    is_answered: bool,
    retries: RetryNews,
}

impl AttemptHearing {
    pub(crate) fn new(call: &Call<'_>, dir: &AttemptDir, news: mpsc::Sender<AgentNews>) -> Self {
        let streams = call.spec.agent.streams();
        Self {
            ear: Ear::new(call),
            dir: dir.clone(),
            streams,
            news,
            is_answered: false,
            retries: RetryNews::default(),
        }
    }

    /// The attempt is over: what it left behind.
    pub(crate) fn conclude(self, exit: Exit) -> AttemptFinished {
        let stderr = output::read_end(&self.dir.stderr(), context::EXCERPT as u64).unwrap_or_default();
        let stderr = String::from_utf8_lossy(&stderr);
        let heard = self.ear.conclude(exit, &stderr);
        let fingerprint = failure(exit, &heard, &stderr);
        if let Some(message) = &heard.message {
            // A convenience for people: the stream holds it too.
            let file = OpenOptions::new()
                .create(true)
                .truncate(true)
                .write(true)
                .mode(0o600)
                .open(self.dir.last_message());
            let _ = file.and_then(|mut file| file.write_all(message.as_bytes()));
        }
        let sealed = seal::attempt(&self.dir, self.streams);
        AttemptFinished { fingerprint, sealed, ..finished(exit, heard) }
    }
}

/// What a failure of the agent's own comes down to: its fault, else what it printed.
fn failure(exit: Exit, heard: &Heard, stderr: &str) -> Option<Fingerprint> {
    let fault = heard.report.as_ref().and_then(|report| report.fault.as_ref());
    if exit == Exit::Code(0) && fault.is_none() && heard.report.as_ref().is_none_or(|report| report.is_final)
    {
        return None;
    }
    let message = heard.message.as_deref().unwrap_or_default();
    let said = match fault {
        Some(fault) => &fault.message,
        None if stderr.trim().is_empty() => message,
        None => stderr,
    };
    Some(fingerprint::of("agent", &format!("{}\n{exit:?}", cut_middle(&printable(said), MOST_READ))))
}

/// What was heard, as the journal keeps it.
pub(crate) fn finished(exit: Exit, heard: Heard) -> AttemptFinished {
    AttemptFinished {
        exit,
        promised: heard.finding.claimed,
        gave_up: heard.finding.gave_up,
        work: None,
        needs: None,
        near_miss: heard.finding.near_miss,
        state: None,
        idle: false,
        stdout_bytes: 0,
        stderr_bytes: 0,
        preview: heard.finding.last_line,
        summary: heard.finding.summary,
        left: false,
        output_error: None,
        report: heard.report.map(Box::new),
        fingerprint: None,
        sealed: Sealed::default(),
    }
}

impl AttemptHearing {
    fn hear(&mut self, chunk: &[u8]) {
        // Where the runner is busy it hears the next total, or the end.
        if let Some(used) = self.ear.hear(chunk) {
            let _: Result<(), _> = self.news.try_send(AgentNews::Used(used));
        }
        if !self.is_answered && self.ear.is_answered() {
            self.is_answered = self.news.try_send(AgentNews::Answered).is_ok();
        }
        self.retries.tell(&self.ear, &self.news);
    }

    fn hear_stderr(&mut self, chunk: &[u8]) {
        self.ear.hear_stderr(chunk);
        self.retries.tell(&self.ear, &self.news);
    }
}
