//! Drives a loop that machines hand to each other, as a worker of a fleet does:
//!
//! ```text
//! leased ID REMOTE FENCE LEASE_MS PROMPT PROGRAM [ARGUMENT…]   starts a loop
//! leased ID REMOTE FENCE LEASE_MS                              takes it over from the remote
//! leased ID                                                    verifies it
//! ```
//!
//! The scheduler of the fleet is missing here: a fence comes from the command line, and the lease is renewed as long as
//! this process runs.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::r#loop::Grant;
use refrain_core::{LoopId, Spec};
use refrain_engine::{
    ByKind, DriveEnd, Host, Lease, LeaseDeadline, LeaseTime, Runner, Service, Signals, keeper,
};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::sleep;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args();
    if words.next().as_deref() == Some(keeper::KEEPER_NAME) {
        return Ok(keeper::run()?);
    }
    let id: LoopId = words.next().ok_or("which loop?")?.parse()?;
    let folder = Utf8PathBuf::from(".").canonicalize_utf8()?;
    let home = folder.join("../home/leased");
    let host = Host {
        program: std::env::current_exe()?,
        env: std::env::vars_os().collect(),
        config_home: home.join("config"),
        data_home: home.join("data"),
        state_home: home.join("state"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let service = Service::open(&folder, host.clone())?;
    let Some(remote) = words.next() else {
        if let ByKind::Loop(verdict) = service.verify(&id, None)? {
            say(&serde_json::to_string(&verdict)?);
        }
        return Ok(());
    };
    let fence: u64 = words.next().ok_or("which fence?")?.parse()?;
    let span = Duration::from_millis(words.next().ok_or("how long is a lease?")?.parse()?);
    let started = match (words.next(), words.next()) {
        (Some(prompt), Some(program)) => {
            let spec = spec(&service, &folder, &prompt, &program, words.collect())?;
            Some(service.start(spec, Some(id.clone()))?)
        }
        _ => None,
    };
    let end = match drive(&service, (&id, &remote, &folder), (fence, span), started) {
        Ok(end) => end,
        Err(error) => DriveEnd::from(error),
    };
    say(&format!("{end:?}"));
    Ok(())
}

fn drive(
    service: &Service,
    (id, remote, folder): (&LoopId, &str, &Utf8Path),
    (fence, span): (u64, Duration),
    started: Option<Runner>,
) -> Result<DriveEnd, refrain_engine::EngineError> {
    // The right to drive the loop is given back, because the take-over needs it.
    drop(started);
    let witness = Arc::new(service.take_lease(id, (remote, folder), fence, None)?);
    let runner = service.resume(id, &Grant::default(), false)?;
    let deadline = LeaseDeadline::new(LeaseTime::now().after(span));
    let (drain, drained) = watch::channel(false);
    let lease = Lease {
        fence,
        witness,
        deadline: deadline.clone(),
        replicate_within: span / 2,
        drain: drained,
        money: None,
        accounts: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| refrain_engine::EngineError::Process("no runtime", error))?;
    Ok(runtime.block_on(async {
        tokio::select! {
            end = runner.drive_leased(service.host(), Signals::None, lease, || {}) => end,
            () = renew(deadline, span) => DriveEnd::Lapsed,
            () = drain_when_told(drain) => DriveEnd::Lapsed,
        }
    }))
}

/// SIGTERM drains it: the drive ends after the iteration. `Service::ask` pauses and cancels.
async fn drain_when_told(drain: watch::Sender<bool>) {
    if let Ok(mut told) = signal(SignalKind::terminate()) {
        told.recv().await;
        drain.send_replace(true);
        say("drains");
    }
    std::future::pending().await
}

/// A worker reckons the new end from before it sent its heartbeat, and sets it once the heartbeat was accepted.
async fn renew(deadline: LeaseDeadline, span: Duration) {
    loop {
        let sent = LeaseTime::now();
        sleep(span / 20).await;
        deadline.renew(sent.after(span));
    }
}

fn spec(
    service: &Service,
    folder: &Utf8PathBuf,
    prompt: &str,
    program: &str,
    args: Vec<String>,
) -> Result<Spec, Box<dyn Error>> {
    let project = service.project();
    Ok(serde_json::from_value(json!({
        "id": "example",
        "agent": {
            "kind": "generic", "program": program, "args": args, "env": {}, "clean_env": false, "prompt_mode": "auto"
        },
        "prompt": prompt,
        "iteration_context": true,
        "promise": {"text": "COMPLETE", "match": "plain"},
        "limits": {"max_iterations": 6},
        "git": {"workflow": "commit", "checkout": {"worktree": {"branch": "work", "from": "HEAD"}}},
        "project": project.root, "worktree": project.worktree, "working_dir": folder,
        "depth": 0, "output_cap": Spec::OUTPUT_CAP,
    }))?)
}

#[expect(clippy::print_stdout, reason = "an example that shows what it does")]
fn say(text: &str) {
    println!("{text}");
}
