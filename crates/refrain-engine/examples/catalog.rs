//! Many loops that have stopped, in several projects, as `cargo xtask bench catalog` lists them; and beside them a file
//! with the status object of each, which is what one would parse without a catalog. `catalog BASE LOOPS` fills
//! BASE/projects, BASE/status and the list of projects in BASE/home.
//!
//! `catalog BASE LOOPS RUNNING` makes RUNNING loops in the first project that look running until its input ends. For
//! each line with a number it records one more event of the loop of that number, and prints the clock from just before,
//! in nanoseconds. So `cargo xtask bench serve` knows to the moment when something happened.

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::agent::{AgentReport, Scope, Session, Tokens, Usd};
use refrain_core::event::{
    AttemptFinished, ClaimSource, End, Event, Exit, FORMAT, Identity, LoopStarted, Process,
};
use refrain_core::promise::{MatchMode, Promise};
use refrain_core::spec::{AgentKind, AgentSpec, Limits};
use refrain_core::view::{self, Alive};
use refrain_core::{AttemptId, Spec};
use refrain_engine::{Project, tool};
use refrain_proc::identity;
use refrain_store::RunnerLock;
use refrain_store::access::signing::Signing;
use refrain_store::journal::{Durability, Journal};
use refrain_store::project::projects;

const PROJECTS: usize = 20;
const ATTEMPTS: u32 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (base, loops, running) = match words.as_slice() {
        [base, loops] => (Utf8Path::new(base), loops, 0),
        [base, loops, running] => (Utf8Path::new(base), loops, running.parse()?),
        _ => return Err("usage: catalog BASE LOOPS [RUNNING]".into()),
    };
    let loops = loops.parse::<usize>()?;
    std::fs::create_dir_all(base.join("status"))?;
    // Signed, as the loops of users are: the catalog does not keep what is unsigned.
    let signing = Signing::new(&base.join("home/.local/state/refrain"), &base.join("home/.config/refrain"));
    signing.require_key()?;
    for k in 0..PROJECTS {
        let root = base.join(format!("projects/project-{k:02}"));
        std::fs::create_dir_all(&root)?;
        // The benchmark's folder lies in a repository: a project without one of its own would be one project with it.
        tool::run("git", &["init", "--quiet"], root.as_std_path())?;
        let project = Project::find(&root)?;
        projects::remember(&base.join("home/.local/share/refrain"), &project.root)?;
        for number in (k..loops).step_by(PROJECTS) {
            write_loop(&project, number, &base.join("status"), &signing)?;
        }
    }
    if running == 0 {
        return Ok(());
    }
    let first = Project::find(&base.join("projects/project-00"))?;
    let mut driven: Vec<_> = (0..running)
        .map(|number| Driven::begin(&first, loops + number, &signing))
        .collect::<Result<_, _>>()?;
    writeln!(stdout(), "they run")?;
    for line in stdin().lock().lines() {
        let at = driven.get_mut(line?.parse::<usize>()?).ok_or("there is no such loop")?.go_on()?;
        writeln!(stdout(), "{at}")?;
        stdout().flush()?;
    }
    Ok(())
}

struct Driven {
    journal: Journal,
    _lock: RunnerLock,
}

impl Driven {
    fn begin(project: &Project, number: usize, signing: &Signing) -> Result<Self, Box<dyn Error>> {
        let mut spec = spec(&project.root, number)?;
        spec.limits.max_iterations = None;
        let dir = project.loop_dir(&spec.id);
        let lock = RunnerLock::claim(&dir)?.ok_or("a runner drives it")?;
        let started = LoopStarted { format: FORMAT, refrain: "bench".into(), spec };
        let mut journal: Journal = Journal::create_signed(
            dir,
            Event::LoopStarted(Box::new(started)),
            refrain_engine::now(),
            signing.clone(),
        )?;
        let recover = journal.state().recover(identity::own());
        journal.push(recover, refrain_engine::now())?;
        journal.commit(Durability::Written)?;
        Ok(Self { journal, _lock: lock })
    }

    /// Records the next event, and returns when, by the wall clock.
    fn go_on(&mut self) -> Result<i128, Box<dyn Error>> {
        let state = self.journal.state();
        let next = match state.in_flight() {
            None if state.attempts.len() as u32 == state.iteration => {
                Event::IterationBegun { iteration: state.iteration + 1, work: None }
            }
            None => Event::AttemptStarted(AttemptId { iteration: state.iteration, attempt: 1 }),
            Some(flight) if flight.spawned.is_none() => {
                Event::AttemptSpawned { process: identity::own().process }
            }
            Some(_) => Event::AttemptFinished(Box::new(finished(false))),
        };
        let now = refrain_engine::now();
        self.journal.push(next, now)?;
        #[expect(clippy::disallowed_methods, reason = "what is measured is finer than a millisecond")]
        let before = jiff::Timestamp::now().as_nanosecond();
        self.journal.commit(Durability::Written)?;
        Ok(before)
    }
}

fn write_loop(
    project: &Project,
    number: usize,
    statuses: &Utf8Path,
    signing: &Signing,
) -> Result<(), Box<dyn Error>> {
    let spec = spec(&project.root, number)?;
    let id = spec.id.clone();
    let at = refrain_engine::now();
    let started = LoopStarted { format: FORMAT, refrain: "bench".into(), spec };
    let mut journal: Journal = Journal::create_signed(
        project.loop_dir(&id),
        Event::LoopStarted(Box::new(started)),
        at,
        signing.clone(),
    )?;
    let process = Process { pid: 1, start: 1 };
    let recover = journal.state().recover(Identity { process, boot: "boot".into(), host: "host".into() });
    journal.push(recover, at)?;
    for iteration in 1..=ATTEMPTS {
        journal.push(Event::IterationBegun { iteration, work: None }, at)?;
        journal.push(Event::AttemptStarted(AttemptId { iteration, attempt: 1 }), at)?;
        journal.push(Event::AttemptSpawned { process }, at)?;
        journal.push(Event::AttemptFinished(Box::new(finished(iteration == ATTEMPTS))), at)?;
    }
    journal.push(Event::LoopEnded(End::Completed { claim: ClaimSource::Promise }), at)?;
    journal.commit(Durability::Written)?;
    let status = view::status(journal.state(), Alive::NO_RUNNER);
    #[expect(clippy::disallowed_methods, reason = "what is measured against needs no crash promise")]
    std::fs::write(statuses.join(format!("{id}.json")), serde_json::to_vec(&status)?)?;
    Ok(())
}

fn spec(root: &Utf8PathBuf, number: usize) -> Result<Spec, Box<dyn Error>> {
    Ok(Spec {
        promise: Some(Promise { text: "COMPLETE".parse()?, mode: MatchMode::Tag }),
        limits: Limits { max_iterations: Some(20), ..Limits::default() },
        ..Spec::new(
            format!("claude-{number:05}").parse()?,
            AgentSpec {
                args: ["--verbose", "--dangerously-skip-permissions"].map(str::to_owned).to_vec(),
                model: Some("claude-opus-4".into()),
                ..AgentSpec::new(AgentKind::Claude, "claude")
            },
            "Do the next item of the plan. When all is finished say so as agreed.",
            root.clone(),
        )
    })
}

fn finished(promised: bool) -> AttemptFinished {
    let report = AgentReport {
        session: Session { id: None, model: Some("claude-opus-4".into()), version: Some("2.1.0".into()) },
        tokens: Some((
            Scope::Attempt,
            Tokens { input: Some(120_000), cached_input: Some(90_000), output: Some(3_000) },
        )),
        cost: Some((Scope::Attempt, Usd(312_500_000))),
        is_final: true,
        ..AgentReport::default()
    };
    AttemptFinished {
        promised,
        stdout_bytes: 1000,
        report: Some(Box::new(report)),
        preview: "The test still fails; the next iteration continues from here.".into(),
        ..AttemptFinished::new(Exit::Code(0))
    }
}
