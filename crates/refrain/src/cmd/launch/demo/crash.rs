//! `refrain demo --crash`: the runner is killed while the agent works, and the loop is resumed.

use std::fs;
use std::process::ExitCode;

use camino::Utf8Path;
use refrain_app::options::notify::NotifyArgs;
use refrain_app::verbs::start::{StartedLoop, detach};
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::event::Event;
use refrain_core::r#loop::Grant;
use refrain_engine::{FollowEvent, Service, chain, tool};

use super::{begin, closing, failed, write};
use crate::cmd::inspect::watch;
use crate::out;
use crate::run::{self, ShowArgs};

/// Starts the loop in a process of its own, kills that in iteration 2, and resumes the loop here.
pub(super) fn run(context: &Context, dir: &Utf8Path) -> Result<ExitCode, RequestError> {
    // The agent waits in iteration 2 until the supervisor ends it.
    let waits = dir.join("agent.sh.waits");
    write(&waits, "").map_err(failed)?;
    let StartedLoop { service, runner, .. } = begin(context, dir)?;
    let id = runner.id().clone();
    detach(context, (&service, runner), dir, &NotifyArgs::default())?.1.reap();
    let shown = watch::screen(context, &service, &id)?;
    let killed = kill_in_iteration(2, &service, &id, dir);
    // The screen ends with the runner.
    let _ = shown.join();
    fs::remove_file(&waits).map_err(failed)?;
    let pid = killed?;
    out::print(&format!(
        "\n$ kill -9 {pid}     # the runner, while the agent works\n$ refrain status demo\n"
    ));
    watch::gone(&service.status(&id)?);
    out::print("\n$ refrain resume demo\n");
    let runner = service.resume(&id, &Grant::default(), false)?;
    let code = run::drive(context, &service, runner, dir, &ShowArgs::default())?;
    out::print(&closing(
        code,
        "The runner was killed in iteration 2. Nothing was lost: resume tried that iteration again, and the killed attempt does not \
         count.",
        dir,
    ));
    Ok(code)
}

/// Waits until the agent works on this iteration, and kills the runner; returns its process id.
fn kill_in_iteration(
    iteration: usize,
    service: &Service,
    id: &LoopId,
    dir: &Utf8Path,
) -> Result<i32, RequestError> {
    let failed = |error: String| RequestError::new(Code::Failed, error);
    let mut follower = service.follow(id, false)?;
    let mut begun = 0;
    while begun < iteration {
        let event = follower.look().map_err(|error| failed(chain(&error)))?;
        match event {
            Some(FollowEvent::Event(record)) if matches!(record.event, Event::AttemptSpawned { .. }) => {
                begun += 1;
            }
            Some(_) => {}
            None => return Err(failed(format!("loop {id} ended before iteration {iteration}"))),
        }
    }
    let pid = service.status(id)?.runner.and_then(|runner| runner.pid);
    let pid = pid.ok_or_else(|| failed(format!("loop {id} has no runner")))?;
    let kill = format!("kill -9 {pid}");
    tool::run("sh", &["-c", &kill], dir.as_std_path()).map_err(|error| failed(chain(&error)))?;
    Ok(pid)
}
