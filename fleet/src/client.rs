//! What a person's machine asks of the server: to take a loop, and to pass requests on.

use refrain_app::verbs::fleet::FleetRequest;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::view::StatusWord;
use refrain_engine::{chain, tool};
use serde::Serialize;
use temporalio_client::errors::{WorkflowInteractionError, WorkflowStartError};
use temporalio_client::{Client, Priority, WorkflowStartOptions};

use crate::order::{LOOPS, Order, WaitingRequest, workflow_id};
use crate::requests;
use crate::say;
use crate::settings::{Settings, failed};
use crate::workflow::FleetLoop;

/// How long a worker may take to say what follows from what it was told.
const DECIDE: std::time::Duration = std::time::Duration::from_secs(3);

#[derive(Serialize)]
struct FleetState {
    state: String,
}

/// Whether the fleet can be reached, and where it has its loops.
pub(crate) async fn check(context: &Context) -> Result<(), RequestError> {
    let settings = Settings::read(context)?;
    let place = FleetState { state: settings.state()? };
    settings.terms()?;
    settings.connect("refrain").await?;
    say::print(&serde_json::to_string(&place).map_err(failed)?);
    Ok(())
}

fn order(
    context: &Context,
    settings: &Settings,
    id: &LoopId,
    remote: &str,
    agent: &str,
) -> Result<Order, RequestError> {
    let origin = tool::run("git", &["remote", "get-url", "origin"], context.dir.as_std_path()).ok();
    let origin = origin.map(|url| url.trim().to_owned()).filter(|url| has_no_password(url));
    Ok(Order {
        id: id.to_string(),
        remote: remote.to_owned(),
        origin,
        pool: settings.pool(),
        agent: agent.to_owned(),
        terms: settings.terms()?,
        // That of the departure.
        fence: 1,
        ..Order::default()
    })
}

/// A password in an address does not leave the machine.
pub(crate) fn has_no_password(url: &str) -> bool {
    let place = url.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    place.rsplit_once('@').is_none_or(|(who, _)| !who.contains(':') && !url.starts_with("http"))
}

/// Teams get equal shares of the workers that they wait for.
pub(crate) fn share_of(team: Option<&str>) -> Priority {
    Priority::builder().maybe_fairness_key(team).build()
}

async fn start(client: &Client, settings: &Settings, order: Order) -> Result<(), RequestError> {
    let name = workflow_id(&order.remote, &order.id);
    let mut options = WorkflowStartOptions::new(LOOPS, name).build();
    options.task_timeout = Some(DECIDE);
    // Its claims inherit that.
    options.priority = share_of(settings.team());
    match client.start_workflow(FleetLoop::run, order, options).await {
        Ok(_) | Err(WorkflowStartError::AlreadyStarted { .. }) => Ok(()),
        Err(error) => Err(failed(format!("the server did not take the loop: {}", chain(&error)))),
    }
}

/// Gives a loop to the fleet that is at the git remote. It may be repeated.
pub(crate) async fn submit(
    context: &Context,
    id: &LoopId,
    remote: &str,
    agent: &str,
) -> Result<(), RequestError> {
    let settings = Settings::read(context)?;
    let order = order(context, &settings, id, remote, agent)?;
    start(&settings.connect("refrain").await?, &settings, order).await
}

/// Passes a request on. A loop that stopped for want of iterations is given to the fleet once more.
pub(crate) async fn ask(
    context: &Context,
    id: &LoopId,
    remote: &str,
    request: &str,
) -> Result<(), RequestError> {
    let mut what: FleetRequest = serde_json::from_str(request)
        .map_err(|error| RequestError::usage(format!("{request}: {error}; accepted: a request as JSON")))?;
    let settings = Settings::read(context)?;
    let client = settings.connect("refrain").await?;
    let asked = format!("{:016x}", refrain_engine::now().as_nanosecond());
    if let Some(text) = what.take_text() {
        requests::leave(&context.dir, (remote, id, &asked), &text).map_err(|error| failed(chain(&error)))?;
    }
    let (told, wakes) = (told(id, &what), what.wakes());
    let asked = WaitingRequest { id: asked, what };
    let handle = client.get_workflow_handle::<FleetLoop>(workflow_id(remote, id.as_str()));
    match handle.signal(FleetLoop::ask, asked.clone(), Default::default()).await {
        Ok(()) => {}
        Err(WorkflowInteractionError::NotFound(_)) if let Some(word) = is_over(context, id) => {
            say::print(&format!("{id} is already {word}"));
            return Ok(());
        }
        Err(WorkflowInteractionError::NotFound(_)) if wakes => {
            let agent = agent_of(context, id)?;
            let order = order(context, &settings, id, remote, &agent)?;
            start(&client, &settings, Order { waiting: [asked].into(), ..order }).await?;
        }
        Err(WorkflowInteractionError::NotFound(_)) => {
            let error =
                format!("{id} is not driven by the fleet: it has ended, or was moved to {remote} by hand");
            return Err(RequestError::new(Code::Refused, error).hint(format!(
                "refrain status {id} shows it; refrain move {id} --from {remote} takes it here"
            )));
        }
        Err(error) => return Err(failed(format!("the server did not take the request: {}", chain(&error)))),
    }
    say::print(&told);
    Ok(())
}

/// Prints what the server recorded for a loop, in the form that `replay.rs` reads.
pub(crate) async fn history(context: &Context, id: &LoopId, remote: &str) -> Result<(), RequestError> {
    let client = Settings::read(context)?.connect("refrain").await?;
    let handle = client.get_workflow_handle::<FleetLoop>(workflow_id(remote, id.as_str()));
    let bytes = handle.fetch_history(Default::default()).to_json().await;
    let bytes = bytes.map_err(|error| failed(chain(&error)))?;
    say::print(&String::from_utf8_lossy(&bytes));
    Ok(())
}

/// How the loop ended for good, as the git remote has it.
fn is_over(context: &Context, id: &LoopId) -> Option<&'static str> {
    let status = context.service().ok()?.reading(id).ok()?.service.status(id).ok()?.status;
    matches!(status, StatusWord::Completed | StatusWord::Cancelled).then(|| status.as_str())
}

fn agent_of(context: &Context, id: &LoopId) -> Result<String, RequestError> {
    Ok(context.service()?.spec(id)?.agent.kind.to_string())
}

fn told(id: &LoopId, what: &FleetRequest) -> String {
    match what {
        FleetRequest::Pause { now: true } => format!("{id} will pause now"),
        FleetRequest::Pause { now: false } => format!("{id} will pause after this iteration"),
        FleetRequest::Cancel { now: true } => format!("{id} will be cancelled now"),
        FleetRequest::Cancel { now: false } => {
            format!("{id} will be cancelled after this iteration (--now ends it at once)")
        }
        FleetRequest::Steer { .. } => format!("{id} will be told with its next attempt"),
        FleetRequest::Answer { .. } => format!("{id} gets the answer with its next attempt"),
        FleetRequest::Approve { .. } => format!("{id} is approved; a worker finishes it"),
        FleetRequest::Resume(_) => format!("{id} will be continued by a worker"),
    }
}

#[cfg(test)]
mod tests {
    use super::has_no_password;

    #[test]
    fn an_address_with_a_password_does_not_leave_the_machine() {
        for url in ["/srv/a.git", "git@host:a.git", "ssh://git@host/a.git", "https://host/a.git"] {
            assert!(has_no_password(url), "{url}");
        }
        for url in ["https://token@host/a.git", "https://me:word@host/a.git", "ssh://a:b@host/a.git"] {
            assert!(!has_no_password(url), "{url}");
        }
    }
}
